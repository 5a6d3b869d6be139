"""Time grows in proportion to the text: every regular expression of the package, normalisation and label cells."""

import ast
import importlib
import itertools
import re
import time
from pathlib import Path

import pytest

from topicsteer.corpora.columns import label_names
from topicsteer.labels.codebook import Lineage
from topicsteer.system.memory import in_bytes
from topicsteer.system.templates import guarded, unguarded, visible
from topicsteer.system.values import composed, fold, label_name, tidy
from topicsteer.text.words import locate, normal, word_rule, words_of

SOURCE = Path(__file__).parents[1] / "src" / "topicsteer"
USES = ("match", "search", "fullmatch", "sub", "split", "findall", "finditer")
# Characters for attacks on any pattern, besides the ones that stand in it.
USUAL = " \t\n\rabAZ0129.,;-_+=>'\"%()\\é\u0301\u0323\x00"
# A linear search of 4,000 characters takes 0.1 ms, and a quadratic one 8 ms or more.
SHORT, LONG, LIMIT = 22, 4_000, 0.003


def calls(tree):
    """Calls of the module re in a file: pairs of a call and the name of the function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if isinstance(node.func.value, ast.Name) and node.func.value.id == "re":
                yield node, node.func.attr
        elif isinstance(node, ast.ImportFrom) and node.module == "re":
            raise AssertionError("write `import re`: this test looks for its functions")


def evaluated(node, module):
    """The value of an expression that uses names of its module only."""
    try:
        return eval(compile(ast.Expression(node), "pattern", "eval"), vars(module))
    except NameError as error:
        raise AssertionError(
            f"{module.__name__}, line {node.lineno}: {error}: a pattern has names of modules"
        ) from None


def found_patterns():
    """All patterns of the package, each with the functions that it is used with."""
    found, named = {}, {}
    trees = {path: ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}
    for path, tree in trees.items():
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        module = None
        for call, function in calls(tree):
            if function == "escape":
                continue
            module = module or importlib.import_module(".".join(parts).removesuffix(".__init__"))
            place = f"{path.name}:{call.lineno}"
            if function == "compile":
                found[place] = (re.compile(*(evaluated(one, module) for one in call.args)), set())
                assert not call.keywords, place
                target = next(
                    node.targets[0].id
                    for node in ast.walk(tree)
                    if isinstance(node, ast.Assign) and any(child is call for child in ast.walk(node.value))
                )
                named[path, target] = place
            else:
                assert function in USES, place
                found[place] = (re.compile(evaluated(call.args[0], module)), {function})
    for (path, name), place in named.items():
        for node in ast.walk(trees[path]):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name:
                found[place][1].update({node.attr} & {*USES})
    return found


PATTERNS = found_patterns()


def seconds(function, *given):
    """The shortest processor time of three calls."""
    spent = []
    for _ in range(3):
        began = time.process_time()
        function(*given)
        spent.append(time.process_time() - began)
        if not LIMIT < spent[-1] < 0.1:  # noise does not matter
            break
    return min(spent)


def attacks(source, length):
    """Texts that repeat one or two characters, after the longest word of the pattern or nothing, and end otherwise."""
    own = [one for one in dict.fromkeys(source) if one not in "*?{}[]|^$"]
    some = [*dict.fromkeys((*own[:12], *" \ta0."))]
    pumps = [*dict.fromkeys((*own[:100], *USUAL)), *("".join(pair) for pair in itertools.permutations(some, 2))]
    word = max(re.findall(r"[\w>. -]+", source) or [""], key=len)
    for pump, start, end in itertools.product(pumps, ("", word), ("\x00", "\n!")):
        yield start + pump * (length // len(pump)) + end


def is_slow(run, text, length):
    """Whether a call takes long, and a text of twice the length more than three times as long."""
    if seconds(run, text) <= LIMIT:
        return False
    return length == SHORT or seconds(run, text[:-2] * 2 + text[-2:]) > 3 * seconds(run, text)


def slow_attack(pattern, use):
    """The first text on which the time of a pattern grows faster than the text; None if there is none."""
    function = getattr(pattern, use)
    run = (lambda text: function("", text)) if use == "sub" else lambda text: list(function(text) or ())
    if use in ("match", "search", "fullmatch"):
        run = function
    for length in (SHORT, LONG):
        for text in attacks(pattern.pattern, length):
            if all(is_slow(run, text, length) for _ in range(3)):  # a busy machine is slow once or twice
                return text
    return None


def test_no_pattern_is_forgotten():
    """The AST has as many patterns as the text of the files has calls."""
    text = "\n".join(path.read_text() for path in SOURCE.rglob("*.py"))
    assert len(PATTERNS) == len(
        re.findall(r"\bre\.(?:compile|match|search|fullmatch|sub|split|findall|finditer)\(", text)
    )
    assert len(PATTERNS) > 15


@pytest.mark.parametrize("place", PATTERNS)
def test_patterns_are_linear(place):
    pattern, uses = PATTERNS[place]
    for use in uses:
        assert slow_attack(pattern, use) is None, (pattern.pattern, use)


@pytest.mark.parametrize(
    ("pattern", "use"),
    [
        (r"\s*,\s*", "split"),
        (r"\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*([kmgt]?)i?b?\s*", "fullmatch"),
        (r'("[^"]*"|\\.|[^;])*;', "search"),
        (r"(a+)+$", "match"),
        (r"-+x", "search"),
    ],
)
def test_slow_patterns_are_noticed(pattern, use):
    assert slow_attack(re.compile(pattern), use) is not None


def lineage_topic(text):
    return Lineage(separator="/").topic(text)


def memory(text):
    with pytest.raises(ValueError, match="memory"):
        in_bytes(text)


def words(text):
    return words_of(text, pairs=False)


def places(text):
    return locate(text, word_rule(frozenset(), 2, None), {"a": 0}, pairs=False)


def label_cell(text):
    return label_names(text, ";"), label_names(text, None)


@pytest.mark.parametrize(
    "function",
    [
        composed,
        tidy,
        fold,
        normal,
        words,
        places,
        label_name,
        label_cell,
        lineage_topic,
        guarded,
        unguarded,
        visible,
        memory,
    ],
)
@pytest.mark.parametrize(
    "unit",
    ["\u0323\u0301", "\u0f73\u0f72\u0f75", "\U0001d16d\U0001d165", " ", " ;", "; ", "a/", "/ a", "1", "'", "-\t"],
)
def test_functions_on_strange_texts_are_linear(function, unit):
    def text(length):
        return "a" + unit * (length // len(unit)) + "!"

    if seconds(function, text(20_000)) > 0.1:
        assert seconds(function, text(40_000)) < 3 * seconds(function, text(20_000))


def test_marks_on_a_letter_are_capped():
    assert composed("e" + "\u0323\u0301" * 10) == "\u1eb9" + "\u0323" * 9 + "\u0301" * 10
    assert len(composed("e" + "\u0323\u0301" * 100)) == 30
    for text in ("cafe\u0301", "हिन्दी", "Tiếng Việt", "😂" * 100, "𝓱" * 100, "\u0301" * 30, "a" * 40 + "é" * 40):
        assert len(composed(text)) <= len(text)
        assert composed(composed(text)) == composed(text)
    assert composed("😂" * 100) == "😂" * 100
    assert composed("e" * 29 + "\u0301" * 99) == composed("e" * 29 + "\u0301" * 30)
