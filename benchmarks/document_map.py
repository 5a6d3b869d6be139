"""Measure the document map: its quality on three corpora, and a report with 100,000 documents in a browser.

    python benchmarks/document_map.py quality    trustworthiness and neighbours kept, on three corpora;
    python benchmarks/document_map.py peers      the same documents, laid out by umap-learn and by openTSNE;
    python benchmarks/document_map.py page       fit 100,000 made documents, write the report, open it in Chromium.

Quality is measured against the latent semantics (all directions, rows of length 1). Trustworthiness is scikit-learn's,
with 15 neighbours, on 4,000 random documents. Neighbours kept is the share of the 15 nearest documents that are among
the 15 nearest on the map, for 1,000 of them. Topic agreement is the accuracy of a vote of 15 neighbours on the map on
the first true label. Seconds are processor seconds. The corpora are in the folder TOPICSTEER_DATA.
"""

import argparse
import shutil
import tempfile
import time
import warnings
from pathlib import Path

import corpora
import numpy as np

from topicsteer import TopicModel
from topicsteer.analysis import map_layout as maps
from topicsteer.model.findings import document_map

# Neighbours of a document that are compared.
NEAR = 15
# Documents on which trustworthiness is measured, and documents whose neighbours are counted.
TRUSTED, COUNTED = 4_000, 1_000
# Share of the documents that keep their labels.
LABELLED = 0.05
# Beginning of a word that only one document of the large report has.
NEEDLE = "needle"


def corpus(name):
    """Return the documents of a corpus that have a label."""
    if name == "reuters":
        documents = corpora.load_reuters()
    elif name == "newsgroups":
        documents = corpora.load_newsgroups(remove=("headers", "quotes"))
    else:
        documents = corpora.load_medline(check_tags=False, min_documents=100)
    return documents.select(i for i, labels in enumerate(documents.labels) if labels)


def scores(latent, places, truth):
    """Return trustworthiness, neighbours kept and topic agreement of a map."""
    from sklearn.manifold import trustworthiness
    from sklearn.model_selection import cross_val_score
    from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

    unit = latent / np.maximum(np.linalg.norm(latent, axis=1, keepdims=True), 1e-9)
    some = np.random.default_rng(0).permutation(len(unit))[:TRUSTED]
    trusted = trustworthiness(unit[some], places[some], n_neighbors=NEAR)

    def near(points):
        found = NearestNeighbors(n_neighbors=NEAR + 1).fit(points).kneighbors(points[some[:COUNTED]])[1]
        return [set(row) for row in found]

    pairs = zip(near(unit), near(places), strict=True)
    kept = np.mean([(len(a & b) - 1) / NEAR for a, b in pairs])  # each contains the document itself
    with warnings.catch_warnings(action="ignore"):  # topics with fewer than three documents
        agreement = cross_val_score(KNeighborsClassifier(NEAR), places, truth, cv=3).mean()
    return f"trustworthiness {trusted:.3f}  neighbours kept {kept:.3f}  topic agreement {agreement:.3f}"


def prepared(name):
    """Return a model with few labels, the latent semantics of its documents, and their first true labels."""
    documents = corpus(name)
    with warnings.catch_warnings(action="ignore"):  # labelled documents without a term
        model = TopicModel().fit(documents.hide_labels(1 - LABELLED, 0))
    latent = np.asarray(model.matrix_ @ model.guide_.features.directions)
    return model, latent, np.array([labels[0] for labels in documents.labels])


def quality(names):
    """Print the scores of the map by words and memberships, and by words alone."""
    for name in names:
        model, latent, truth = prepared(name)
        size = f"{name}, {len(truth):,} documents"
        began = time.process_time()
        mapped = document_map(model)
        print(f"{size}: map of the report, {time.process_time() - began:.0f} s: ", end="")
        print(scores(latent, mapped.map.layout.places, truth), flush=True)
        began = time.process_time()
        places, _ = maps.lay_out(maps.features(latent))
        print(f"{size}: map of the workbench, {time.process_time() - began:.0f} s: ", end="")
        print(scores(latent, places, truth), flush=True)


def peers(names):
    """Print seconds and scores of both methods on the same points, 10,000 at most, and whether they repeat."""
    from openTSNE import TSNE

    methods = {
        "umap-learn": lambda points: maps.lay_out(points, threads=1)[0],
        "openTSNE": lambda points: np.asarray(TSNE(random_state=0, n_jobs=1).fit(points)),
    }
    for name in names:
        _, latent, truth = prepared(name)
        some = np.sort(np.random.default_rng(1).permutation(len(latent))[:10_000])
        points = maps.features(latent[some])
        for method, run in methods.items():
            began = time.process_time()
            first, seconds = run(points), time.process_time() - began
            again = "the same again" if np.array_equal(first, run(points)) else "another result each time"
            found = scores(latent[some], first, truth[some])
            print(f"{name}, {len(some):,}, {method}: {seconds:.0f} s, {again}, {found}", flush=True)


def made_documents(n):
    """Return texts about 30 subjects, 40 words each, with labels for 600 of 20 subjects."""
    rng = np.random.default_rng(0)
    letters = np.array(list("bdfgklmnprst"))
    words = np.array(["".join(rng.choice(letters, 3)) + str(k) for k in range(30 * 60)]).reshape(30, 60)
    words = np.char.replace(words, "0", "o")
    subject = rng.integers(0, 30, n)
    own, other = rng.integers(0, 60, (n, 28)), rng.integers(0, 60, (n, 12))
    second = rng.integers(0, 30, n)
    texts = [
        f"{NEEDLE}{i} " + " ".join(words[subject[i]][own[i]]) + " " + " ".join(words[second[i]][other[i]])
        for i in range(n)
    ]
    labelled = set(rng.permutation(n)[:900].tolist())
    labels = [[f"subject {subject[i]}"] if i in labelled and subject[i] < 20 else [] for i in range(n)]
    return corpora.Documents([f"d{i}" for i in range(n)], texts, labels)


def page(n):
    """Print size, seconds and milliseconds of a report with n documents."""
    documents = made_documents(n)
    model = TopicModel().fit(documents)
    with tempfile.TemporaryDirectory() as folder:
        path, began = Path(folder) / "report.html", (time.process_time(), time.perf_counter())
        model.report(path, title="Large")
        print(f"report: {time.process_time() - began[0]:.0f} processor s, {time.perf_counter() - began[1]:.0f} s")
        print(f"page: {path.stat().st_size / 1e6:.1f} MB")
        measure(path)


def measure(path):
    """Print the moment of the first picture and the time of searches, each until the map is drawn.

    The second number of a search is processor time of the page, which other programs on the machine do not lengthen.
    """
    from playwright.sync_api import sync_playwright

    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for _ in range(3):
            opened = browser.new_page(viewport={"width": 1280, "height": 1000})
            tool = opened.context.new_cdp_session(opened)
            tool.send("Performance.enable", {"timeDomain": "threadTicks"})
            opened.goto(path.as_uri())
            opened.wait_for_function("performance.getEntriesByName('document-map').length > 0")
            first, begun = opened.evaluate("performance.getEntriesByName('document-map')[0].startTime"), worked(tool)
            opened.focus("#map-search")
            opened.wait_for_timeout(1500)
            listed = []
            for word in (f"{NEEDLE}77", "subject", f"{NEEDLE} 5", "zzz"):
                before = worked(tool)
                seconds = opened.evaluate(SEARCH, word)
                listed.append(f"{seconds:.0f} ({worked(tool) - before:.0f})")
            print(f"first picture {first:.0f} ({begun:.0f}) ms; searches {', '.join(listed)} ms", flush=True)
            opened.close()
        browser.close()


def worked(tool):
    """Return the processor milliseconds of the page's main thread so far."""
    found = {one["name"]: one["value"] for one in tool.send("Performance.getMetrics")["metrics"]}
    return 1000 * found["TaskDuration"]


# Type a word, and wait until the map is drawn; milliseconds from the key to the picture.
SEARCH = """async (word) => {
  const field = document.getElementById('map-search');
  field.value = word;
  const began = performance.now();
  field.dispatchEvent(new Event('input'));
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  return performance.now() - began;
}"""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("quality", "peers", "page"))
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--corpora", nargs="+", default=["reuters", "newsgroups", "pubmed"])
    given = parser.parse_args()
    {"quality": lambda: quality(given.corpora), "peers": lambda: peers(given.corpora),
     "page": lambda: page(given.documents)}[given.what]()  # fmt: skip
