import hashlib
import threading
from dataclasses import replace
from functools import partial
from http.server import HTTPServer, SimpleHTTPRequestHandler

import pytest

from topicsteer.corpora import ReadError, fetch, find_corpus, load_reuters
from topicsteer.corpora.known.downloads import CORPORA, DATA_VARIABLE

pytest.importorskip("pooch")
CONTENT = b"as published"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A local server in place of the public address, and an empty cache."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "r.tar.gz").write_bytes(CONTENT)
    server = HTTPServer(("127.0.0.1", 0), partial(Quiet, directory=home))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}/r.tar.gz"
    corpus = replace(CORPORA["reuters"], url=url, sha256=hashlib.sha256(CONTENT).hexdigest())
    monkeypatch.setitem(CORPORA, "reuters", corpus)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    yield home
    server.shutdown()
    thread.join()
    server.server_close()


def test_what_was_fetched_is_found(served, tmp_path):
    with pytest.raises(ReadError, match=r'Reuters-21578.* is not on this machine: download it with fetch\("reuters"\)'):
        load_reuters()
    path = fetch("reuters")
    assert path.read_bytes() == CONTENT
    assert path == tmp_path / "cache" / "topicsteer" / "reuters21578.tar.gz"
    assert find_corpus("reuters") == path


def test_a_second_fetch_needs_no_network(served, tmp_path):
    path = fetch("reuters", tmp_path / "mine")
    (served / "r.tar.gz").unlink()
    assert fetch("reuters", tmp_path / "mine") == path
    assert path.parent == tmp_path / "mine"


def test_other_content_is_refused(served, tmp_path):
    (served / "r.tar.gz").write_bytes(b"something else")
    with pytest.raises(ReadError, match=r"could not be downloaded from http://127\.0\.0\.1.*hash"):
        fetch("reuters", tmp_path / "mine")
    assert not list((tmp_path / "mine").glob("*"))


def test_a_missing_file_is_explained(served, tmp_path):
    (served / "r.tar.gz").unlink()
    with pytest.raises(ReadError, match=r"could not be downloaded(.|\n)*404(.|\n)*set TOPICSTEER_DATA to that folder"):
        fetch("reuters", tmp_path / "mine")


def test_the_data_folder_comes_first(served, tmp_path, monkeypatch):
    fetch("reuters")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "reuters21578.tar.gz").write_bytes(b"mine")
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path / "data"))
    assert find_corpus("reuters").parent == tmp_path / "data"


def test_unknown_names_are_listed():
    for function in (fetch, find_corpus):
        with pytest.raises(
            ReadError, match="unknown corpus 'brown': expected one of 'reuters', 'medline', 'newsgroups'"
        ):
            function("brown")


def test_a_missing_pooch_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pooch", None)
    with pytest.raises(ReadError, match="pip install pooch"):
        fetch("reuters")


def test_every_corpus_has_a_home_and_a_hash():
    for corpus in CORPORA.values():
        assert corpus.url.startswith("http")
        assert corpus.url.endswith(corpus.names[0])
        assert len(bytes.fromhex(corpus.sha256)) == 32
