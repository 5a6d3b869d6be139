import errno
import itertools
import os

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from problems import make_problem

from topicsteer.backends.block_folder import BlockError, BlockFolder, BlockWriter, write_blocks


def parts_of(X, bounds):
    return [X[a:b] for a, b in itertools.pairwise([0, *sorted(bounds), X.shape[0]])]


@settings(max_examples=25, deadline=None)
@given(bounds=st.lists(st.integers(0, 60), max_size=6), rows=st.lists(st.integers(0, 59), max_size=20))
def test_rows_do_not_depend_on_block_boundaries(tmp_path_factory, bounds, rows):
    X, _, _ = make_problem(0, dtype=np.float32)
    folder = write_blocks(tmp_path_factory.mktemp("blocks") / "X", parts_of(X, bounds))
    assert folder.shape == X.shape
    assert folder.dtype == X.dtype
    assert (sp.vstack(list(folder)) != X).nnz == 0
    np.testing.assert_array_equal(folder.sizes, np.diff(X.indptr))
    assert (folder.take(rows) != X[rows]).nnz == 0
    weights = sp.random_array((3, 60), density=0.3, rng=np.random.default_rng(1))
    np.testing.assert_allclose(folder.combine(weights), (weights @ X).toarray(), rtol=1e-6, atol=1e-12)


def test_blocks_are_mapped_and_not_read(tmp_path):
    X, _, _ = make_problem(0)
    folder = write_blocks(tmp_path / "X", [X])
    assert isinstance(folder[0].data, np.memmap)
    assert not folder[0].data.flags.writeable


def test_duplicates_are_added_up(tmp_path):
    X = sp.csr_array((np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    assert write_blocks(tmp_path / "X", [X])[0].toarray().tolist() == [[2, 0, 5]]


def test_a_writer_that_fails_leaves_nothing(tmp_path):
    def write():
        with BlockWriter(tmp_path / "X", 2) as writer:
            writer.append(sp.csr_array((1, 2)))
            writer.append(sp.csr_array((1, 3)))

    with pytest.raises(BlockError, match=r"block 1 has 3 columns.*the folder has 2"):
        write()
    assert not (tmp_path / "X").exists()


def test_a_folder_that_was_never_finished_is_refused(tmp_path):
    BlockWriter(tmp_path / "X", 2).append(sp.csr_array((1, 2)))
    with pytest.raises(BlockError, match="never finished"):
        BlockFolder(tmp_path / "X")


def test_other_peoples_files_are_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(BlockError, match="holds other files"):
        BlockWriter(tmp_path, 2)
    assert (tmp_path / "thesis.txt").read_text() == "mine"


def test_a_full_disk_is_reported_with_the_block_and_the_folder(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    writer = BlockWriter(tmp_path / "X", 2)
    writer.append(sp.csr_array((1, 2)))
    monkeypatch.setattr(np, "save", full)
    with pytest.raises(BlockError, match=r"could not write block 1 in .*X: No space left .* GB are free"):
        writer.append(sp.csr_array((1, 2)))


@pytest.mark.parametrize("harm", ["missing", "cut off", "no array", "another type"])
def test_a_bad_file_is_named_with_its_block(tmp_path, harm):
    X, _, _ = make_problem(0)
    folder = write_blocks(tmp_path / "X", parts_of(X, [20, 40]))
    path = tmp_path / "X" / "00001-data.npy"
    if harm == "missing":
        path.unlink()
    elif harm == "cut off":
        path.write_bytes(path.read_bytes()[:-8])
    elif harm == "no array":
        path.write_bytes(b"not an array")
    else:
        np.save(path, np.load(path).astype(np.float32))
    folder[0], folder[2]
    with pytest.raises(BlockError, match=r"block 1 .*00001-data\.npy"):
        folder[1]


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("data", -1.0, "entry -1"),
        ("data", np.nan, "entry nan"),
        ("indices", 99, "columns beyond"),
        ("indptr", 9, "row"),
    ],
)
def test_impossible_entries_are_refused_with_their_block(tmp_path, part, value, message):
    X, _, _ = make_problem(0)
    folder = write_blocks(tmp_path / "X", parts_of(X, [20]))
    folder.check()
    path = tmp_path / "X" / f"00001-{part}.npy"
    values = np.load(path)
    values[0] = value
    np.save(path, values)
    with pytest.raises(BlockError, match=rf"block 1 of .*{message}"):
        folder.check()


def test_a_newer_format_is_refused(tmp_path):
    write_blocks(tmp_path / "X", [sp.csr_array((1, 2))])
    index = tmp_path / "X" / "blocks.json"
    index.write_text(index.read_text().replace('"format": 1', '"format": 2'))
    with pytest.raises(BlockError, match="upgrade"):
        BlockFolder(tmp_path / "X")


def test_no_blocks():
    with pytest.raises(BlockError, match="there are no blocks"):
        write_blocks("unused", [])


def test_unfinished_files_of_a_killed_run_are_replaced(tmp_path):
    name = ".blocks.json.0123456789ab.part"
    (tmp_path / name).write_text("{")
    folder = write_blocks(tmp_path, [sp.csr_array((1, 2))])
    assert folder.shape == (1, 2)
    assert not (tmp_path / name).exists()


def test_a_folder_that_cannot_be_finished_is_removed(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(BlockError, match="could not finish"):
        write_blocks(tmp_path / "blocks", [sp.csr_array((1, 2))])
    assert not (tmp_path / "blocks").exists()
