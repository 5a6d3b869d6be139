"""Forged models with correct checksums: loading and using one ends in a message, never in a signal or a traceback."""

import copy
import functools
import random
import warnings

import numpy as np

from tests.fuzz._rounds import main
from topicsteer import TopicModel
from topicsteer.system import arrays as storage

WORDS = {"tea": "leaves pot kettle brew cup", "coffee": "beans roast espresso grind mug", "rail": "train track ticket"}
PLACES = """
street city house river road market village bridge park tower window door table chair floor wall roof garden tree
flower bird horse dog cat fish summer winter spring autumn morning evening night week month year people family
friend child mother father brother sister king queen school church doctor teacher student lawyer farmer soldier
"""
FILLERS = PLACES.split()
# Values that a forger would try in place of another.
ODD = [None, True, False, -1, 0, 1, 7, 2**31, 2**63, 10**30, 1e300, -0.5, "", "x", "auto", [], {}, [1], ["x"], {"x": 1}]
ODD_NUMBERS = [0, 1, -1, 2, 100, 2**31 - 1, -(2**31), 2**62, -(2**62), 1e-300, 1e30, -1e30, 1e300, np.inf, np.nan]
KINDS = ["<f4", "<f8", "<i1", "<i4", "<i8", "<u8", "?", "<c8", "<U3", ">f8", ">i4", "<f2"]


def corpus(n, seed=0):
    """Texts with one topic each."""
    rng = np.random.default_rng(seed)
    topics = [list(WORDS)[i] for i in rng.integers(3, size=n)]
    return [" ".join([*rng.choice(WORDS[name].split(), 3), *rng.choice(FILLERS, 5)]) for name in topics], topics


@functools.cache
def originals(folder):
    """Plain values and arrays of honest models: without a guide, with one, open, with embeddings, with a tree."""
    texts, topics = corpus(60)
    labels = [name if row % 2 and name != "coffee" else None for row, name in enumerate(topics)]
    embeddings = np.random.default_rng(0).normal(size=(60, 3))
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k, (model, given) in enumerate(
            [
                (TopicModel(2, world="closed", keywords={"tea": ["kettle"]}, threads=1), {}),
                (TopicModel(2, world="open", threads=1), {}),
                (TopicModel(2, world="open", threads=1), {"embeddings": embeddings}),
                (TopicModel(0, parents={"tea": "drinks"}, embeddings=None, threads=1), {}),
            ]
        ):
            model.fit(texts, labels, **given).save(folder / f"original-{k}", texts=True)
            found.append(storage.load(folder / f"original-{k}"))
    return found


def forge(rng, meta, arrays):
    """Change some arrays or plain values."""
    meta, arrays = copy.deepcopy(meta), dict(arrays)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        if rng.random() < 0.7 and arrays:
            name = rng.choice(sorted(arrays))
            forged = forge_array(rng, name, arrays)
            if forged is None:
                del arrays[name]
            else:
                arrays[name] = forged
        else:
            forge_value(rng, meta)
    return meta, arrays


def forge_array(rng, name, arrays):
    """Another dtype, shape, order or value; None to leave it out."""
    array = arrays[name]
    way = rng.randrange(9)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if way == 0 and array.size:  # some values
            array = array.copy(order="K")
            for _ in range(rng.choice([1, 3])):
                value = np.array(rng.choice(ODD_NUMBERS))
                array.flat[rng.randrange(array.size)] = value.astype(array.dtype)
        elif way == 1 and array.ndim:  # longer or shorter
            axis = rng.randrange(array.ndim)
            picks = np.arange(max(array.shape[axis] + rng.choice([-20, -1, 1, 20, 500]), 0))
            array = np.take(array, picks % max(array.shape[axis], 1), axis=axis) if array.shape[axis] else array
        elif way == 2:  # another dtype
            array = array.astype(rng.choice(KINDS))
        elif way == 3:
            array = array.T
        elif way == 4:
            array = array[None] if rng.random() < 0.5 else array.ravel()
        elif way == 5 and array.ndim:
            array = array[:0] if rng.random() < 0.3 else array[::-1]
        elif way == 6:
            array = arrays[rng.choice(sorted(arrays))]
        elif way == 7 and array.dtype.kind == "f":
            array = array * array.dtype.type(rng.choice([0, -1, 1e-30, 1e30]))
        elif way == 8:
            return None
    return array


def forge_value(rng, value):
    """Change a value somewhere in nested lists and dicts."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = rng.choice(keys)
        if isinstance(value[key], dict | list) and value[key] and rng.random() < 0.8:
            value = value[key]
            continue
        way = rng.randrange(4)
        if way == 0:
            del value[key]
        elif way == 1 and isinstance(value, list):
            value.insert(key, copy.deepcopy(rng.choice([*value, *ODD])))
        elif way == 2 and isinstance(value[key], int | float):
            value[key] = rng.choice([value[key] + 1, -value[key], value[key] * 1000])
        else:
            value[key] = copy.deepcopy(rng.choice(ODD))
        return


def use(model, folder):
    """What a person might do with a model of somebody else."""
    texts, _ = corpus(5, seed=1)
    needs = {"embeddings": np.ones((len(texts), 3))} if model.guide_ is not None and model.guide_.embedding else {}
    yield lambda: repr(model)
    yield lambda: model.state_.topics.table(none=True)
    yield lambda: model.memberships(texts, **needs)
    yield lambda: model.transform(texts, **needs)
    yield lambda: model.belief
    if not needs:
        yield lambda: model.predict(texts)
        yield lambda: model.explain(texts[0])
        yield lambda: model.labels.suggest(3)
    yield lambda: model.labels.audit(3)
    yield lambda: model.report(folder / "report.html")
    if not model.state_.outside:
        yield lambda: model.update(texts, ["tea", None, "new", None, None], **needs)
    elif model.state_.free_names:
        yield lambda: model.edit.adopt("free 1", "adopted")
    yield lambda: model.save(folder / "again", texts=True)


def attack(number, folder):
    """Forge a model, load it and use it; return the traceback of an error that is no message."""
    rng = random.Random(number)
    meta, arrays = forge(rng, *rng.choice(originals(folder)))
    try:
        storage.save(folder / "forged", meta, arrays)
    except storage.StorageError:  # such as an array that needs pickle
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = TopicModel.load(folder / "forged")
        except storage.StorageError:
            return
        steps = list(use(model, folder))
        for step in sorted(rng.sample(steps, min(5, len(steps))), key=steps.index):
            try:
                step()
            except ValueError as error:
                if any(word in str(error) for word in NUMPY):
                    raise


# Words of numpy and scipy in messages about arrays that do not fit: the schema should have refused them.
NUMPY = ("broadcast", "operands", "shape mismatch", "matmul", "array dimensions", "must match", "axis", "dimension")

if __name__ == "__main__":
    main("tests.fuzz.models", attack, 10_000)
