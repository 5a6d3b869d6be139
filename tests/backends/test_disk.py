import errno
import itertools
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from problems import make_problem

from topicsteer import TSNMF
from topicsteer.backends.block_folder import BlockError, write_blocks
from topicsteer.backends.weight_folder import WeightFolder

pytestmark = pytest.mark.slow

BOUNDS = [0, 13, 13, 40, 60]


def blocks(X, bounds=BOUNDS):
    return [X[a:b] for a, b in itertools.pairwise(bounds)]


def fit(X, y, **options):
    further = {
        name: options.pop(name) for name in ("folder", "callback", "penalties", "sample_weight") if name in options
    }
    settings = {"n_components": 6, "max_iter": 15, "tol": 0.0, "random_state": 0} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return TSNMF(**settings).fit(X, y, **further)


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-9), (np.float32, 1e-5)])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"init": "random"},
        {"init": "acol", "solver": "mu"},
        {"solver": "mu"},
        {"alpha_W": 0.001, "alpha_H": 0.001, "l1_ratio": 0.5},
        {"free_in_labelled": False},
    ],
)
def test_blocks_on_disk_give_the_result_of_memory(options, dtype, rtol):
    X, y, L = make_problem(1, dtype=dtype)
    weight = np.random.default_rng(0).uniform(0.5, 2, 60)
    whole = fit(X, y, sample_weight=weight, **options)
    stored_in_blocks = fit(iter(blocks(X)), y, sample_weight=weight, **options)
    assert np.linalg.norm(stored_in_blocks.components_ - whole.components_) <= rtol * np.linalg.norm(whole.components_)
    np.testing.assert_allclose(stored_in_blocks.objective_history_, whole.objective_history_, rtol=1e-5)
    W = np.asarray(stored_in_blocks.document_topics_)
    assert W.dtype == dtype
    assert (W[L == 0] == 0).all()
    np.testing.assert_allclose(W, whole.document_topics_, atol=100 * rtol * W.max())


def test_penalties_may_be_on_disk(tmp_path):
    X, y, _ = make_problem(2)
    rng = np.random.default_rng(0)
    penalties = sp.random_array((60, 6), density=0.6, rng=rng, format="csr") + sp.csr_array(
        np.eye(60, 6) + np.eye(60, 6, -6)
    )
    whole = fit(X, y, penalties=penalties)
    stored_in_blocks = fit(blocks(X), y, penalties=penalties)
    stored = fit(blocks(X), y, penalties=write_blocks(tmp_path / "penalties", blocks(sp.csr_array(penalties))))
    np.testing.assert_allclose(stored_in_blocks.components_, whole.components_, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(stored.components_, stored_in_blocks.components_)


def test_topics_that_die_are_revived_from_blocks_as_from_memory():
    X = sp.csr_array(np.kron(np.eye(3), np.ones((20, 8))) + 0.01)
    y = {0: "a", 1: "b"}  # two topics from the same documents: one of them dies
    whole = fit(X, y, n_components=5)
    stored_in_blocks = fit(blocks(X), y, n_components=5)
    np.testing.assert_allclose(stored_in_blocks.components_, whole.components_, rtol=1e-9, atol=1e-12)


def test_odd_scales_are_moved_from_h_to_w_in_blocks_too():
    X, y, _ = make_problem(3)
    X = X * 1e9
    whole, stored_in_blocks = fit(X, y), fit(blocks(X), y)
    np.testing.assert_allclose(stored_in_blocks.components_, whole.components_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        np.asarray(stored_in_blocks.document_topics_), whole.document_topics_, rtol=1e-6, atol=1e-3
    )


def test_an_interrupted_fit_starts_again_in_its_folder(tmp_path):
    X, y, _ = make_problem(4)
    source = write_blocks(tmp_path / "X", blocks(X))
    whole = fit(source, y)

    class Killed(BaseException):
        pass

    def kill(iteration, *_):
        if iteration == 4:
            raise Killed

    with pytest.raises(Killed):
        fit(source, y, folder=tmp_path / "fit", callback=kill)
    seen = []
    again = fit(source, y, folder=tmp_path / "fit", callback=lambda i, *_: seen.append(i))
    assert seen == list(range(1, 16))
    np.testing.assert_array_equal(again.components_, whole.components_)
    np.testing.assert_array_equal(np.asarray(again.document_topics_), np.asarray(whole.document_topics_))


def test_old_versions_are_removed(tmp_path):
    X, y, _ = make_problem(5)
    fit(blocks(X), y, folder=tmp_path)
    assert not list((tmp_path / "weights").glob("W-*"))


def test_a_temporary_folder_is_deleted_and_the_weights_stay(tmp_path):
    X, y, _ = make_problem(5)
    model, kept = fit(blocks(X), y), fit(blocks(X), y, folder=tmp_path)
    assert not Path(model.document_topics_.filename).exists()
    assert Path(kept.document_topics_.filename).parent == tmp_path
    np.testing.assert_array_equal(model.document_topics_, kept.document_topics_)


def test_weights_of_all_blocks_are_mapped_from_one_file(tmp_path):
    W = np.random.default_rng(0).random((10, 4)).round() * 3
    folder = WeightFolder.make(tmp_path / "W", np.array([0, 4, 4, 10]), 4, np.float64)
    for number, (a, b) in enumerate([(0, 4), (4, 4), (4, 10)]):
        folder.write(number, 1, W[a:b])
    np.testing.assert_array_equal(folder.mapped(1, tmp_path / "W.npy"), W)


def test_damaged_weights_are_named(tmp_path):
    def write(bits, values):
        path.write_bytes(bits.tobytes() + values.tobytes())

    folder = WeightFolder.make(tmp_path, np.array([0, 4]), 3, np.float32)
    folder.write(0, 1, np.ones((4, 3), np.float32))
    path = tmp_path / "W-000001-00000.weights"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(BlockError, match=r"weights of block 0 cannot be read: .*W-000001-00000\.weights"):
        folder.read(0, 1)
    write(np.full(2, 255, np.uint8), np.ones(3, np.float32))
    with pytest.raises(BlockError, match="its bits and values do not match"):
        folder.read(0, 1)
    path.write_bytes(b"1")
    with pytest.raises(BlockError, match="it is too short"):
        folder.read(0, 1)


def test_a_full_disk_harms_no_earlier_version(tmp_path, monkeypatch):
    X, y, _ = make_problem(6)
    whole = fit(blocks(X), y)
    place, left = os.replace, [30]

    def full(unfinished, path):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        place(unfinished, path)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(BlockError, match="No space left on device"):
        fit(blocks(X), y, folder=tmp_path)
    monkeypatch.undo()
    assert not list(tmp_path.rglob("*.part"))
    np.testing.assert_array_equal(fit(blocks(X), y, folder=tmp_path).components_, whole.components_)


def test_options_that_need_memory_are_refused_for_blocks():
    X, y, _ = make_problem(0)
    with pytest.raises(ValueError, match="needs X in memory"):
        fit(blocks(X), y, init=(np.ones((60, 6)), np.ones((6, 40))))
    with pytest.raises(ValueError, match="X is a matrix in memory"):
        fit(X, y, folder="somewhere")
    with pytest.raises(ValueError, match="error_weight"):
        TSNMF(solver="mu").fit(blocks(X), y, error_weight=np.ones(X.shape))


def test_transform_of_blocks():
    X, y, _ = make_problem(8)
    model = fit(blocks(X), y)
    np.testing.assert_allclose(model.transform(iter(blocks(X))), model.transform(X))


def test_unfinished_weights_of_a_killed_run_are_removed(tmp_path):
    X, y, _ = make_problem(0)
    fit(blocks(X), y, folder=tmp_path)
    left = tmp_path / "weights" / ".W-000001-00000.weights.0.part"
    left.write_text("")
    fit(blocks(X), y, folder=tmp_path)
    assert not left.exists()


def test_a_folder_of_the_user_is_refused(tmp_path):
    X, y, _ = make_problem(0)
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "W-1-mine").write_text("years")
    with pytest.raises(ValueError, match="files that topicsteer did not write, such as 'weights'"):
        fit(blocks(X), y, folder=tmp_path)
    assert (tmp_path / "weights" / "W-1-mine").read_text() == "years"
