"""TopicModel on what is larger than memory: the same answers in memory, from blocks on disk and on a cluster."""

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from topicsteer import TopicModel
from topicsteer.cli.commands import app
from topicsteer.corpora import load_docstrings, read_table
from topicsteer.model.spool import memory_needed, spool, too_large
from topicsteer.model.state import read_state
from topicsteer.system.memory import in_bytes
from topicsteer.text import TextVectorizer

pytestmark = pytest.mark.slow

SMALL = 1 << 20


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    documents = load_docstrings().hide_labels(0.8, 0)
    path = tmp_path_factory.mktemp("table") / "texts.csv"
    rows = range(0, len(documents), 4)
    labels = ["; ".join(documents.labels[i]) for i in rows]
    pl.DataFrame(
        {"id": [documents.ids[i] for i in rows], "text": [documents.texts[i] for i in rows], "label": labels}
    ).write_csv(path)
    return path


@pytest.fixture(scope="module", autouse=True)
def small_blocks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TextVectorizer, "chunk_size", 1 << 18)
        yield


@pytest.fixture(scope="module")
def whole(table):
    return TopicModel(2).fit(table)


def assert_same(model, whole):
    np.testing.assert_allclose(model.state_.known_memberships, whole.state_.known_memberships, atol=1e-6)
    np.testing.assert_allclose(model.state_.thresholds, whole.state_.thresholds, atol=1e-6)
    assert np.linalg.norm(model.state_.topics.H - whole.state_.topics.H) <= 1e-5 * np.linalg.norm(whole.state_.topics.H)
    assert model.state_.topics.names == whole.state_.topics.names
    assert list(model.state_.topics.ids) == list(whole.state_.topics.ids)
    for k in range(len(whole.state_.topics)):
        assert model.state_.topics.top_terms(k) == whole.state_.topics.top_terms(k)


@pytest.fixture(scope="module")
def on_disk(table, tmp_path_factory):
    stages = set()
    folder = tmp_path_factory.mktemp("work")

    def note(stage, *_):
        stages.add(stage)

    corpus = spool(table, folder / "corpus", block=1 << 17, progress=note)
    model = TopicModel(2).fit(corpus, folder=folder / "fit", progress=note)
    assert stages == {"columns", "terms", "blocks", "guide", "fit"}
    return model


def test_blocks_on_disk_give_what_memory_gives(on_disk, whole):
    assert len(on_disk.matrix_) > 1
    assert_same(on_disk, whole)


def test_what_is_on_disk_is_not_in_memory(on_disk):
    assert isinstance(on_disk.state_.topics.W, np.memmap)
    assert isinstance(on_disk.state_.known_memberships, np.memmap)
    assert isinstance(on_disk.state_.topics.proportions, np.memmap)


def test_everything_can_be_asked_of_it(on_disk, whole, tmp_path):
    assert on_disk.labels.suggest(4)["id"].to_list() == whole.labels.suggest(4)["id"].to_list()
    assert on_disk.top_documents(0, 5)["id"].to_list() == whole.top_documents(0, 5)["id"].to_list()
    assert on_disk.labels.audit(5)["id"].to_list() == whole.labels.audit(5)["id"].to_list()
    on_disk.report(tmp_path / "report.html")
    assert on_disk.state_.topics.names[0] in (tmp_path / "report.html").read_text()
    assert str(on_disk.explain(id=on_disk.state_.topics.ids[3]))


def test_it_is_saved_and_loaded_like_any_other(on_disk, tmp_path):
    on_disk.save(tmp_path / "model", texts=True)
    for mapped in (1 << 28, 1000):
        again = TopicModel.load(tmp_path / "model")
        again.state_, _ = read_state(tmp_path / "model", mapped=mapped)
        assert isinstance(again.state_.known_memberships, np.memmap) == (mapped == 1000)
        np.testing.assert_array_equal(again.state_.known_memberships, on_disk.state_.known_memberships)
        np.testing.assert_array_equal(again.state_.topics.W, on_disk.state_.topics.W)
        assert again.predict(["the sum of an array"]) == on_disk.predict(["the sum of an array"])
    first, second = again.state_.topics.names[:2]
    again.edit.merge([first, second])  # a mapped file is not written to
    np.testing.assert_array_equal(
        TopicModel.load(tmp_path / "model").state_.known_memberships, on_disk.state_.known_memberships
    )


def test_an_interrupted_fit_starts_again_in_its_folder(table, whole, tmp_path):
    class Killed(BaseException):
        pass

    def kill(stage, done, *_):
        if stage == "fit" and done == 4:
            raise Killed

    with pytest.raises(Killed):
        TopicModel(2).fit(table, memory=SMALL, folder=tmp_path, progress=kill)
    assert_same(TopicModel(2).fit(table, memory=SMALL, folder=tmp_path), whole)


def test_a_temporary_folder_goes_with_the_model(table):
    model = TopicModel(2).fit(table, memory=SMALL)
    folder = model.matrix_.path.parent.parent
    assert folder.exists()
    del model
    assert not folder.exists()


def test_a_spool_is_evaluated_on_labelled_documents_and_a_sample(table, tmp_path):
    spooled = spool(table, tmp_path / "corpus", memory=SMALL)
    found = TopicModel(2).fit(spooled).evaluate(folds=2)
    expected = TopicModel(2).fit(read_table(table)).evaluate(folds=2)
    assert found.table() == expected.table()


def test_new_documents_join_a_model_from_disk(on_disk, table):
    model = TopicModel(2).fit(table, memory=SMALL)
    model.update(["compute the mean of an array along an axis"])
    assert len(model.state_.topics.W) == len(on_disk.state_.topics.W) + 1


def test_sizes():
    assert in_bytes("1.5 GB") == 1_500_000_000
    for bad in ("many", "-3GB", "0", "1.2.3MB"):
        with pytest.raises(ValueError, match="expected a number of bytes"):
            in_bytes(bad)


def test_what_seems_too_large(table, tmp_path):
    size = table.stat().st_size
    assert memory_needed(table) == 10 * size
    packed = tmp_path / "texts.csv.gz"
    packed.write_bytes(b"x" * 100)
    assert memory_needed(packed) == 3000
    assert too_large(table, 10 * size - 1)
    assert not too_large(table, 10 * size)
    assert not too_large(table, None)
    assert not too_large(["a text"], 1)


def test_command_line_says_what_it_chose(table, whole, tmp_path):
    for memory, words in (("1MB", "working in blocks on disk"), ("100GB", "working in memory")):
        out = tmp_path / memory
        done = CliRunner().invoke(app, ["fit", str(table), "--free", "2", "--memory", memory, "-o", str(out)])
        assert done.exit_code == 0, done.output
        assert words in done.output
        assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".work")] == []
        assert_same(TopicModel.load(out), whole)


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with distributed.LocalCluster(n_workers=2, **options) as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
class TestCluster:
    """With a scheduler and workers in processes of their own."""

    def test_a_file(self, client, table, whole):
        assert_same(TopicModel(2).fit(table, client=client), whole)

    def test_the_command_line(self, client, table, whole, tmp_path):
        address = client.scheduler.address
        out = tmp_path / "model"
        options = ["--free", "2", "--scheduler", address, "-o", str(out), "-q"]
        done = CliRunner().invoke(app, ["fit", str(table), *options])
        assert done.exit_code == 0, done.output
        assert_same(TopicModel.load(out), whole)
