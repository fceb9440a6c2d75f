"""One thing a line: a condition only asks, and each assignment has a line of its own."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ["paperlib", "likelihood", "book/companion", "benchmarks", "tests"]


def conditions_of(node):
    """The conditions of a statement, of an expression or of a part of a comprehension."""
    if isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert):
        return [node.test]
    if isinstance(node, ast.comprehension):
        return node.ifs
    if isinstance(node, ast.match_case) and node.guard is not None:
        return [node.guard]
    return []


def assigned_in_conditions(node):
    """Line of each name that a condition assigns by `:=`, and what to write instead."""
    for condition in conditions_of(node):
        for part in ast.walk(condition):
            if isinstance(part, ast.NamedExpr):
                name = part.target.id
                yield (
                    part.lineno,
                    f"a condition assigns {name}; write {name} = ... on a line before it",
                )


def packed_assignments(node):
    """Line of an assignment of several values to as many names, and what to write instead."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
        return
    for target in node.targets:
        names = names_of(target)
        values = node.value.elts
        if names and len(names) == len(values) and can_be_split(names, values):
            lines = map("{} = {}".format, names, map(ast.unparse, values))
            yield node.lineno, "\n    ".join(["packed assignments; write a line for each:", *lines])


def names_of(target):
    """The names of a tuple of names, in their order; of anything else none."""
    if isinstance(target, ast.Tuple) and all(isinstance(part, ast.Name) for part in target.elts):
        return [part.id for part in target.elts]
    return []


def can_be_split(names, values):
    """Whether one assignment after the other does the same: no value reads an earlier name.

    A swap cannot be split.
    """
    earlier = set()
    for name, value in zip(names, values, strict=True):
        reads = {part.id for part in ast.walk(value) if isinstance(part, ast.Name)}
        if reads & earlier:
            return False
        earlier.add(name)
    return True


def faults_of(code):
    """Line and advice for everything in this code that is not one thing a line."""
    nodes = list(ast.walk(ast.parse(code)))
    rules = (assigned_in_conditions, packed_assignments)
    return sorted({fault for node in nodes for rule in rules for fault in rule(node)})


@pytest.mark.parametrize("folder", FOLDERS)
def test_one_thing_a_line(folder):
    paths = sorted((ROOT / folder).rglob("*.py"))
    assert len(paths) > 5
    faults = [
        f"{path.relative_to(ROOT)}:{line}: {advice}"
        for path in paths
        for line, advice in faults_of(path.read_text(encoding="utf-8"))
    ]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize(
    "code",
    [
        "if (n := len(rows)) > 2: pass",
        "while (line := next(lines)): pass",
        "assert (error := exact - mean) < 1",
        "kept = [n for row in rows if (n := len(row))]",
        "size = n if (n := len(rows)) else 1",
        "low, high = 0, 1",
        "low, high = f(low), g(high)",
        "low, high = high, other",
    ],
)
def test_what_packs_two_things_is_noticed(code):
    assert len(faults_of(code)) == 1


@pytest.mark.parametrize(
    "code",
    [
        "low, high = high, low",
        "low, high = 0, low + 1",
        "low, high = interval",
        "low, high = (f(x) for x in ends)",
        "ends = 0, 1",
        "ends[0], ends[1] = 0, 1",
        "first, *rest = 1, 2, 3",
        "print(n := 3)",
    ],
)
def test_what_cannot_be_split_is_left_alone(code):
    assert faults_of(code) == []
