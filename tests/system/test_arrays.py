import errno
import hashlib
import json
import os
import random
import re
import stat
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import topicsteer
from topicsteer.system.arrays import FORMAT, StorageError, check_folder, load, load_array, save

META = {
    "names": ["tea", "コーヒー", 'quo"te\\', "\udc80"],
    "options": {"alpha": 0.1, "deep": [1, None, True]},
    "empty": {},
}
ARRAYS = {
    "components": np.random.default_rng(0).random((5, 7)),
    "half": np.asfortranarray(np.random.default_rng(1).random((4, 3), dtype=np.float32)),
    "offsets": np.array([0, 2, -5], dtype=">i8"),
    "mask": np.array([[True], [False]]),
    "terms": np.array(["a", "größer", ""]),
    "raw": np.array([b"ab", b"c"]),
    "when": np.array(["2020-01-01", "NaT"], dtype="M8[s]"),
    "wave": np.array([1 + 2j]),
    "odd": np.array([np.nan, -0.0, np.inf, 5e-324]),
    "number": np.array(7, dtype=np.uint8),
    "nothing": np.zeros((0, 3)),
    "every_other": np.arange(10.0)[::2],
}


def same(left, right):
    """Whether two loaded models are the same, to the bit and in the same order."""
    (meta, arrays), (other_meta, others) = left, right
    return (
        json.dumps(meta) == json.dumps(other_meta)
        and list(arrays) == list(others)
        and all(a.dtype == others[k].dtype and a.shape == others[k].shape for k, a in arrays.items())
        and all(a.tobytes() == others[k].tobytes() for k, a in arrays.items())
    )


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def forge(folder, change):
    """Change model.json, with a correct checksum."""
    path = folder / "model.json"
    document = json.loads(path.read_text())
    change(document)
    document.pop("sha256", None)
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"))
    path.write_text(json.dumps({**document, "sha256": hashlib.sha256(canonical.encode()).hexdigest()}))


@pytest.fixture
def folder(tmp_path):
    save(tmp_path / "model", META, ARRAYS)
    return tmp_path / "model"


# --- round trips


def test_round_trip_is_exact(folder):
    meta, arrays = load(folder)
    assert same((meta, arrays), (META, ARRAYS))
    assert arrays["half"].flags.f_contiguous
    assert arrays["components"].flags.c_contiguous
    assert all(array.flags.aligned and array.flags.writeable for array in arrays.values())


def test_others_can_read_the_files(folder):
    document = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    assert document["format"] == FORMAT
    assert document["topicsteer"] == topicsteer.__version__
    for name, entry in document["arrays"].items():
        data = (folder / entry["file"]).read_bytes()
        assert hashlib.sha256(data).hexdigest() == entry["sha256"]
        assert entry["file"] == f"{name}-{entry['sha256'][:12]}.npy"
        np.testing.assert_array_equal(np.load(folder / entry["file"], allow_pickle=False), ARRAYS[name])


def test_model_json_may_be_laid_out_otherwise(folder):
    path = folder / "model.json"
    assert '"names": ["tea", "コーヒー", ' in path.read_text(encoding="utf-8")
    path.write_text(
        json.dumps(json.loads(path.read_text(encoding="utf-8")), indent=8, sort_keys=True).replace("\n", "\r\n")
    )
    meta, arrays = load(folder)
    assert meta == META
    assert arrays.keys() == ARRAYS.keys()


def test_large_files_are_mapped_and_stay_as_they_are(folder, monkeypatch):
    before = content(folder)
    smallest = min(map(len, before.values()))
    monkeypatch.setattr(np, "fromfile", None)  # every file is large enough
    meta, arrays = load(folder, mapped=smallest)
    assert same((meta, arrays), (META, ARRAYS))
    arrays["components"][:] = 0
    assert content(folder) == before


@pytest.mark.parametrize("mode", [None, "r", "c"])
def test_one_array(folder, mode):
    array = load_array(next(folder.glob("half-*.npy")), mode)
    np.testing.assert_array_equal(array, ARRAYS["half"])
    assert isinstance(array, np.memmap) == (mode is not None)
    assert array.flags.writeable == (mode != "r")


def test_an_array_with_objects_is_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(ValueError, match="allow_pickle"):
        load_array(tmp_path / "a.npy")


def test_nothing_at_all(tmp_path):
    save(tmp_path / "new" / "and" / "deep", {}, {})
    assert load(tmp_path / "new" / "and" / "deep") == ({}, {})


@pytest.mark.slow
def test_a_million_ids(tmp_path):
    ids = [f"document-{i}" for i in range(1_000_000)]
    save(tmp_path, {"ids": ids}, {})
    assert load(tmp_path)[0]["ids"] == ids
    assert (tmp_path / "model.json").stat().st_size < 20e6


@pytest.mark.slow
def test_a_large_array_is_held_once(tmp_path):
    code = (
        "import sys, resource, numpy as np\nfrom topicsteer.system.arrays import load, save\n"
        "save(sys.argv[1], {}, {'a': np.ones(1)}); load(sys.argv[1])\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "array = np.ones(12_000_000); before = peak(); save(sys.argv[1], {}, {'a': array}); saved = peak()\n"
        "del array; load(sys.argv[1]); print(saved - before, peak() - saved)"
    )
    run = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    size = 12_000_000 * 8 / (1024 if sys.platform != "darwin" else 1)
    assert all(int(extra) < 0.6 * size for extra in run.stdout.split())


def test_load_needs_numpy_only(folder):
    code = "import sys; from topicsteer.system.arrays import load; load(sys.argv[1]); print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, check=True)
    assert not {"scipy", "sklearn", "numba", "narwhals"} & set(run.stdout.split())


# --- saving to folders that are not empty


def test_a_new_model_replaces_the_old_one_and_keeps_unrelated_files(folder):
    foreign = {"notes.txt": b"mine", "components.npy": b"mine", "Components-0123456789ab.npy": b"mine"}
    for name, data in foreign.items():
        (folder / name).write_bytes(data)
    (folder / "plots").mkdir()
    (folder / "dir-0123456789ab.npy").mkdir()
    new = {"b": 1}, {"components": ARRAYS["components"], "other": np.arange(3)}
    save(folder, *new)
    assert same(load(folder), new)
    left = content(folder)
    assert {name: left.pop(name) for name in foreign} == foreign
    assert len(left) == 3
    assert (folder / "plots").is_dir()
    assert (folder / "dir-0123456789ab.npy").is_dir()


def test_saving_again_changes_nothing(folder):
    before = content(folder)
    save(folder, META, ARRAYS)
    assert content(folder) == before


def test_saving_repairs_a_damaged_file(folder):
    next(folder.glob("half-*.npy")).write_bytes(b"")
    save(folder, META, ARRAYS)
    assert same(load(folder), (META, ARRAYS))


def test_the_first_save_may_have_been_killed(tmp_path):
    (tmp_path / "components-0123456789ab.npy").write_bytes(b"half")
    (tmp_path / ".model.json.0123456789ab.part").write_bytes(b"half")
    save(tmp_path, {}, {"a": np.ones(1)})
    assert sorted(re.sub("[0-9a-f]{12}", "*", name) for name in content(tmp_path)) == ["a-*.npy", "model.json"]


def test_a_temporary_link_is_not_followed(folder, tmp_path):
    (tmp_path / "precious").write_text("mine")
    (folder / ".model.json.0123456789ab.part").symlink_to(tmp_path / "precious")
    save(folder, {}, {"a": np.ones(1)})
    assert (tmp_path / "precious").read_text() == "mine"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"thesis.txt": "mine", "data.csv": "mine"}, "holds other files, such as 'data.csv', and no model.json"),
        ({"model.json": '{"layers": []}'}, "model.json was not written by topicsteer; delete it"),
    ],
)
def test_folders_of_others_are_refused(tmp_path, files, message):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    before = content(tmp_path)
    for attempt in (lambda: save(tmp_path, META, ARRAYS), lambda: check_folder(tmp_path)):
        with pytest.raises(StorageError, match=re.escape(message)):
            attempt()
    assert content(tmp_path) == before


def test_a_file_at_the_path_is_refused(tmp_path):
    (tmp_path / "model").write_text("mine")
    with pytest.raises(StorageError, match="model is not a folder; choose"):
        save(tmp_path / "model", META, ARRAYS)
    with pytest.raises(StorageError, match=r"could not save to .*below"):
        save(tmp_path / "model" / "below", META, ARRAYS)
    assert (tmp_path / "model").read_text() == "mine"


def test_a_model_json_that_cannot_be_read_is_refused(tmp_path):
    (tmp_path / "model.json").mkdir()
    with pytest.raises(StorageError, match="cannot read"):
        save(tmp_path, META, ARRAYS)
    with pytest.raises(StorageError, match=r"there is no file .*model.json"):
        load(tmp_path)


@pytest.mark.parametrize("name", ["", "A", "1a", "a-b", "a/b", "../a", "a.npy", "é", "a\n", "_a"])
def test_array_names_are_checked(tmp_path, name):
    with pytest.raises(StorageError, match=r"the array name .* has characters other than"):
        save(tmp_path / "model", {}, {name: np.ones(1)})
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    "array",
    [np.array([{}, None]), np.zeros(2, dtype="i4,f8"), [1, 2], np.array(["a"], dtype=np.dtypes.StringDType())],
    ids=["objects", "records", "list", "StringDType"],
)
def test_arrays_that_need_pickle_are_refused(tmp_path, array):
    with pytest.raises(StorageError, match=r"the array 'a' has .*expected an array of numbers"):
        save(tmp_path / "model", {}, {"a": array})
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    "value", [(1, 2), {1: "a"}, float("nan"), np.ones(2), {"a"}, "\ud83d\ude00"], ids=lambda value: type(value).__name__
)
def test_meta_that_json_changes_is_refused(tmp_path, value):
    with pytest.raises(StorageError, match=r"meta\['key'\]"):
        save(tmp_path / "model", {"key": value}, {})
    assert not (tmp_path / "model").exists()


# --- folders that cannot be loaded


def test_no_model(tmp_path):
    (tmp_path / "model.zip").touch()
    with pytest.raises(StorageError, match=r"model.zip is a file; give the folder .*unpack a"):
        load(tmp_path / "model.zip")
    with pytest.raises(StorageError, match=r"there is no folder .*nowhere; give the folder of a saved model"):
        load(tmp_path / "nowhere")
    with pytest.raises(StorageError, match=r"there is no file .*model\.json; give the folder of a saved model"):
        load(tmp_path)


@pytest.mark.parametrize(
    "text", ["", "{", "\xff", "[" * 100_000, "9" * 5000], ids=["nothing", "open", "no text", "deep", "large number"]
)
def test_not_json(folder, text):
    (folder / "model.json").write_text(text, encoding="latin-1")
    with pytest.raises(StorageError, match=r"model\.json is not JSON \(.*; restore the folder from a backup"):
        load(folder)


@pytest.mark.parametrize("text", ["[]", "{}", "3", '{"format": 1}', '{"topicsteer": "1", "format": "1"}'])
def test_not_ours(folder, text):
    (folder / "model.json").write_text(text)
    with pytest.raises(StorageError, match=r"model\.json was not written by topicsteer"):
        load(folder)


def test_a_newer_format(folder):
    (folder / "model.json").write_text(json.dumps({"topicsteer": "9.1", "format": FORMAT + 1, "blobs": []}))
    with pytest.raises(StorageError, match=rf"format {FORMAT + 1}, written by topicsteer 9\.1; .*upgrade"):
        load(folder)


def test_an_earlier_format(folder):
    forge(folder, lambda document: document.update(format=1, topicsteer="0.2.0"))
    with pytest.raises(StorageError, match=r"written by topicsteer 0\.2\.0, an earlier version .*: fit again"):
        load(folder)


def test_unknown_keys_are_ignored(folder):
    forge(folder, lambda document: (document.update(later=1), document["arrays"]["half"].update(later=2)))
    assert same(load(folder), (META, ARRAYS))


def test_an_edited_model_json(folder):
    path = folder / "model.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"tea"', '"pea"'), encoding="utf-8")
    with pytest.raises(StorageError, match=r"model\.json is damaged or was edited"):
        load(folder)


def test_a_missing_array(folder):
    path = next(folder.glob("half-*.npy"))
    path.unlink()
    with pytest.raises(StorageError, match=rf"there is no file {re.escape(str(path))}; restore"):
        load(folder)


def test_a_flipped_byte(folder):
    path = next(folder.glob("components-*.npy"))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(StorageError, match=rf"{path.name} is damaged: its checksum is wrong; restore"):
        load(folder)


@pytest.mark.parametrize("wrong", [{"dtype": "<f4"}, {"shape": [7, 5]}, {"shape": [35]}, {"dtype": "|O"}])
def test_a_wrong_description(folder, wrong):
    forge(folder, lambda document: document["arrays"]["components"].update(wrong))
    with pytest.raises(StorageError, match=r"components-.*npy is not the array of dtype .* it holds dtype <f8 and"):
        load(folder)


@pytest.mark.parametrize("entry", [None, [], {}, {"file": 3}, {"file": "a-0123456789ab.npy", "dtype": "<f8"}])
def test_a_description_that_is_none(folder, entry):
    forge(folder, lambda document: document["arrays"].update(half=entry))
    with pytest.raises(StorageError, match=r"model\.json does not describe the array 'half'"):
        load(folder)


@pytest.mark.parametrize(
    "header",
    [
        b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999,), }",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': ((((",
        b"__import__('os').abort()",
        b"",
    ],
)
def test_a_forged_array_file(folder, header):
    data = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(8)
    sha256 = hashlib.sha256(data).hexdigest()
    entry = {"file": f"half-{sha256[:12]}.npy", "sha256": sha256}
    found = re.search(rb"'(.*?)',.*\((\d+),", header)
    entry |= {"dtype": found[1].decode(), "shape": [int(found[2])]} if found else {"dtype": "<f8", "shape": [1]}
    (folder / entry["file"]).write_bytes(data)
    forge(folder, lambda document: document["arrays"].update(half=entry))
    with pytest.raises(StorageError, match=r"half-.*npy is not the array"):
        load(folder)


@pytest.mark.parametrize(
    "trick", ["../x-0123456789ab.npy", "{out}", "a/x-0123456789ab.npy", "..\\x.npy", ".", "", "x\0"]
)
def test_path_tricks(folder, tmp_path, trick):
    (folder / "a").mkdir()
    (outside,) = folder.glob("half-*.npy")
    for place in (tmp_path, folder / "a"):
        (place / "x-0123456789ab.npy").write_bytes(outside.read_bytes())
    file = trick.format(out=tmp_path / "x-0123456789ab.npy")
    forge(folder, lambda document: document["arrays"]["half"].update(file=file))
    with pytest.raises(StorageError, match=r"model\.json names .* as the file of the array 'half'.*that you trust"):
        load(folder)


@pytest.mark.parametrize("pattern", ["half-*.npy", "model.json"])
def test_a_link_out_of_the_folder(folder, tmp_path, pattern):
    path = next(folder.glob(pattern))
    path.rename(tmp_path / "outside")
    path.symlink_to(tmp_path / "outside")
    with pytest.raises(StorageError, match=f"{re.escape(str(path))} is a link to a file outside"):
        load(folder)


def test_a_link_to_the_folder_is_fine(folder, tmp_path):
    (tmp_path / "link").symlink_to(folder)
    assert same(load(tmp_path / "link"), (META, ARRAYS))
    save(tmp_path / "link", {}, {})
    assert load(folder) == ({}, {})


def test_a_disk_that_cannot_be_read(folder, monkeypatch):
    def fails(*_, **__):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(np, "fromfile", fails)
    with pytest.raises(StorageError, match=r"cannot read .*model\.json: .*; check the disk"):
        load(folder)


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzzed")
    save(folder, META, ARRAYS)
    return folder, content(folder)


@pytest.mark.slow
@settings(max_examples=600, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_damage_is_always_noticed(fuzzed, data):
    folder, files = fuzzed
    name = data.draw(st.sampled_from(["model.json", *sorted(files)]))
    damaged = bytearray(files[name])
    place = data.draw(st.integers(0, len(damaged) - 1))
    if data.draw(st.booleans()):
        damaged[place] ^= data.draw(st.integers(1, 255))
    else:
        del damaged[place:]
    try:
        (folder / name).write_bytes(damaged)
        try:
            loaded = load(folder)
        except StorageError:
            return
        assert name == "model.json"
        assert json.loads(damaged) == json.loads(files[name])
        assert same(loaded, (META, ARRAYS))
    finally:
        (folder / name).write_bytes(files[name])


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True)
@given(meta=st.dictionaries(st.text(), JSONS, max_size=5))
def test_any_json_comes_back(tmp_path_factory, meta):
    folder = tmp_path_factory.getbasetemp() / "any-json"
    save(folder, meta, {})
    assert json.dumps(load(folder)[0]) == json.dumps(meta)


# --- full disks and killed processes


class Full:
    """A function of `os` for which the disk is full from its n-th call on, or at that call only."""

    def __init__(self, function, call, lasting, code=errno.ENOSPC):
        self.function, self.left, self.lasting, self.code = function, call, lasting, code

    def __call__(self, *args, **kwargs):
        self.left -= 1
        if self.left == 0 or (self.left < 0 and self.lasting):
            raise OSError(self.code, os.strerror(self.code))
        return self.function(*args, **kwargs)


@pytest.mark.parametrize("lasting", [True, False])
@pytest.mark.parametrize("function", ["fsync", "replace"])
@pytest.mark.parametrize("old", [True, False])
def test_a_full_disk_leaves_the_old_model(tmp_path, monkeypatch, function, lasting, old):
    new = {"new": 1}, {"components": np.zeros(3), "half": ARRAYS["half"]}
    calls = {"fsync": 5, "replace": 3}[function]  # two arrays, (the parent, the folder,) model.json
    for call in range(1, calls + 1):
        folder = tmp_path / str(call)
        if old:
            save(folder, META, ARRAYS)
            (folder / ".model.json.0123456789ab.part").write_bytes(b"of a save that was killed")
        before = content(folder) if old else {}
        with monkeypatch.context() as patch:
            patch.setattr(os, function, Full(getattr(os, function), call, lasting))
            with pytest.raises(
                StorageError, match=r"could not save to .*No space left.*; the folder is unchanged; make room"
            ):
                save(folder, *new)
        before.pop(".model.json.0123456789ab.part", None)
        assert content(folder) == before
        save(folder, *new)
        assert same(load(folder), new)


def test_a_disk_that_fills_after_the_new_model_is_in_place(folder, monkeypatch):
    new = {"new": 1}, {"half": np.zeros(3)}
    before = content(folder)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", Full(os.fsync, 5, True))
        save(folder, *new)
    assert same(load(folder), new)
    assert set(before) < set(content(folder))  # the old files wait for the next save
    save(folder, *new)
    assert len(content(folder)) == 2


def test_a_folder_that_cannot_be_listed_just_once(folder, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(os, "listdir", Full(os.listdir, 1, False, errno.EMFILE))
        with pytest.raises(StorageError, match="could not save to"):
            save(folder, {}, {})
    assert same(load(folder), (META, ARRAYS))


@pytest.mark.slow
def test_a_real_limit_on_the_size_of_files(folder):
    before = content(folder)
    code = (
        "import sys, resource, signal, numpy as np\nfrom topicsteer.system.arrays import StorageError, save\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "try: save(sys.argv[1], {}, {'small': np.ones(2), 'large': np.ones(1_000_000)})\n"
        "except StorageError as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, check=True)
    assert "could not save to" in run.stdout
    assert content(folder) == before


def test_folders_that_cannot_be_synced(tmp_path, monkeypatch):
    def no_folders(descriptor, fsync=os.fsync):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", no_folders)
    save(tmp_path, META, ARRAYS)
    assert same(load(tmp_path), (META, ARRAYS))


MODELS = """
import sys
import numpy as np
from topicsteer.system.arrays import save

def model(letter):
    rng = np.random.default_rng(ord(letter))
    arrays = {name: rng.random((50 * k, 40)) for k, name in enumerate(["components", "weights", "biases"], start=1)}
    return {"letter": letter, "ids": [letter + str(i) for i in range(2000)]}, {**arrays, "shared": np.arange(1000)}
"""
ENDLESS = """
models = [model("B"), model("A")]
print("ready", flush=True)
while True:
    for one in models:
        save(sys.argv[1], *one)
"""


@pytest.mark.slow
def test_killed_at_any_moment(tmp_path):
    names = {}
    exec(MODELS, names)
    models = {letter: names["model"](letter) for letter in "AB"}
    folder = tmp_path / "model"
    start = time.perf_counter()
    for letter in "ABA":
        save(folder, *models[letter])
    one_save = (time.perf_counter() - start) / 3
    rng = random.Random(0)
    seen, states = set(), set()
    for kill in range(100):
        if kill >= 25 and len(seen) > 1 and len(states) > 1:
            break
        with subprocess.Popen([sys.executable, "-c", MODELS + ENDLESS, folder], stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            time.sleep(rng.uniform(0, 4 * one_save * (1 + kill // 25)))  # longer if saves became slower meanwhile
            process.kill()
            process.wait()
        loaded = load(folder)
        letter = loaded[0]["letter"]
        assert same(loaded, models[letter])
        seen.add(letter)
        states.add(len(content(folder)))
    assert seen == {"A", "B"}
    assert len(states) > 1  # some kills came during a save
    save(folder, *models["A"])
    assert len(content(folder)) == 5


@pytest.mark.slow
def test_stopped_before_each_call_to_the_system(tmp_path, monkeypatch):
    """Stop at every single step, as a kill does, without any cleanup."""

    class Killed(BaseException):
        pass

    models = (
        ({"letter": "A"}, {"x": np.zeros(3), "y": np.ones(2)}),
        ({"letter": "B"}, {"x": np.ones(3), "z": np.ones(2)}),
    )
    step, found = 0, []
    while True:
        step += 1
        folder, left = tmp_path / str(step), [step]
        save(folder, *models[0])

        def count(function, left=left):
            def counted(*args, **kwargs):
                left[0] -= 1
                if left[0] == 0:
                    raise Killed
                return function(*args, **kwargs)

            return counted

        with monkeypatch.context() as patch:
            for name in ("fsync", "replace", "unlink", "open", "close"):
                patch.setattr(os, name, count(getattr(os, name)))
            try:
                save(folder, *models[1])
                break
            except Killed:
                pass
        loaded = load(folder)
        found.append(loaded[0]["letter"])
        assert same(loaded, models[found[-1] == "B"])
    assert found == sorted(found)
    assert set(found) == {"A", "B"}
