"""Forms of plain values from JSON: a check before a value of a stranger's file is used."""

from collections.abc import Mapping
from typing import Any, TypeAlias

# A form is a type, a list with the form of its items, or a dict with the forms of its values. A tuple lists
# alternatives. In a dict the name of an optional value ends with "?", and `str` stands for any other name.
Form: TypeAlias = Any


def check_form(value: object, form: Form, name: str) -> None:
    """Raise ValueError, with the path of the value, if a value has another form.

    True and False are no integers here, unless the form has ``bool`` too.

    Examples
    --------
    >>> check_form({"terms": ["tea"], "n": 3}, {"terms": [str], "n": int, "seed?": int}, "model")
    >>> check_form({"terms": ["tea", 4]}, {"terms": [str]}, "model")
    Traceback (most recent call last):
    ValueError: model.terms[1] is 4; expected str
    """
    match form:
        case tuple():
            _check_alternatives(value, form, name)
        case [inner]:
            if not isinstance(value, list):
                raise ValueError(_problem(value, form, name))
            if not isinstance(inner, type) or not set(map(type, value)) <= {inner}:  # the quick way for a million ids
                for number, item in enumerate(value):
                    check_form(item, inner, f"{name}[{number}]")
        case dict():
            _check_names(value, form, name)
        case _:
            number = isinstance(value, bool) and bool not in getattr(form, "__args__", (form,))
            if number or not isinstance(value, form):
                raise ValueError(_problem(value, form, name))


def _check_alternatives(value: object, forms: tuple[Form, ...], name: str) -> None:
    for form in forms:
        same = isinstance(value, type(form)) if isinstance(form, list | dict) else True
        try:
            return check_form(value, form, name)
        except ValueError:
            if same and isinstance(form, list | dict):  # its own message is the clearest
                raise
    raise ValueError(_problem(value, forms, name))


def _check_names(value: object, form: Mapping[Any, Form], name: str) -> None:
    if not isinstance(value, dict):
        raise ValueError(_problem(value, form, name))
    named = {key: inner for key, inner in form.items() if isinstance(key, str)}
    for key in named:
        if not key.endswith("?") and key not in value:
            raise ValueError(f"{name}.{key} is missing")
    forms = {key.removesuffix("?"): inner for key, inner in named.items()}
    for key, item in value.items():
        if key not in forms and str not in form:
            raise ValueError(f"{name}.{key} is unknown")
        check_form(item, forms.get(key, form.get(str)), f"{name}.{key}")


def _problem(value: object, form: Form, name: str) -> str:
    shown = repr(value)
    return f"{name} is {shown if len(shown) < 60 else shown[:57] + '...'}; expected {_words(form)}"


def _words(form: Form) -> str:
    match form:
        case tuple():
            return " or ".join(map(_words, form))
        case list():
            return "a list"
        case dict():
            return "a mapping"
    return getattr(form, "__name__", str(form)).replace("NoneType", "null") if isinstance(form, type) else str(form)
