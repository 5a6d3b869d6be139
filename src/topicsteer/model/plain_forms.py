"""Forms of the plain values of a fitted state in files."""

from collections.abc import Mapping

from topicsteer.system.plain import Form

# Alternatives in the forms of plain values.
_NUMBER, _TEXT, _NONE, _WORDS = int | float, str | None, type(None), {str: ([str], str)}
# Form of the options of a vectoriser.
_VECTORIZER: Form = {
    "preset?": str,
    "max_features?": int | str | None,
    "min_df?": _NUMBER | str,
    "max_df?": _NUMBER | str,
    "ngram_range": [int],
    "stop_words?": ([str], _TEXT),
    "sublinear_tf?": bool | str,
    "min_length?": int | str,
    "segmented?": bool,
    "segmenter?": _TEXT,
    "threads?": int | None,
}
# Form of the parameters of an estimator.
_ESTIMATOR: Form = {str: str | int | float | bool | None}
# Form of a codebook.
_CODEBOOK: Form = [
    {
        "key": int,
        "name": str | int | float | bool,
        "parent?": int | None,
        "description?": str,
        "keywords?": [str],
        "banned?": [str],
        "found?": bool,
    }
]
# Forms of the plain values of a state, as they are in files; see `topicsteer.system.plain`.
FORMS: Mapping[str, Form] = {
    "parameters": {
        "free_topics?": (int | str | None, {"inside": {str: int | str | None}, "top?": int | str | None}),
        "world?": _TEXT,
        "topics?": ([str | int | float | bool], {"codebook": _CODEBOOK}, _NONE),
        "parents?": ({str: str}, _NONE),
        "path_separator?": _TEXT,
        "complete": bool,
        "guidance?": _TEXT,
        "keywords?": (_WORDS, _NONE),
        "banned?": (_WORDS, _NONE),
        "descriptions?": ({str: str}, _NONE),
        "vectorizer?": (_VECTORIZER, _NONE),
        "estimator?": (_ESTIMATOR, _NONE),
        "random_state": int,
        "threads?": int | None,
        str: object,
    },
    "codebook": _CODEBOOK,
    "free_names": [str],
    "groups": [[int]],
    "free_groups": [[int]],
    "vectorizer": {
        "parameters": _VECTORIZER,
        "languages": [str],
        "stop_words": [str],
        "n_texts?": _NUMBER,
        str: object,
    },
    "vocabulary": [str],
    "lemmatized": bool,
    "estimator": {"n_iter": int, "ended": str, "error?": _NUMBER, **_ESTIMATOR},
    "fingerprint": str,
    "ids": [str | int | bool],
    "texts": ([str], _NONE),
    "learnt_from": int,
    "seconds": {str: _NUMBER},
    "frames": str,
    "encoder": {"source?": str, "digest?": str, "column?": str},
    "reading": {
        "text?": ([str], str),
        "labels?": ([str], str | bool),
        **{f"{name}?": str | bool for name in ("id", "forbidden")},
        **{f"{name}?": str for name in ("separator", "encoding", "delimiter", "sheet")},
    },
}
