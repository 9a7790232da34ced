"""How large the house may be: lines of code, modules and layers, as `pyproject.toml` allows."""

import ast
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
ALLOWED = TOOLS["house"]


def lines_of_code(source):
    """Lines that are neither blank, nor a comment, nor part of a docstring."""
    kept = {
        number
        for number, line in enumerate(source.splitlines(), 1)
        if line.strip() and not line.lstrip().startswith("#")
    }
    for node in ast.walk(ast.parse(source)):
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            kept -= set(range(first.lineno, first.end_lineno + 1))
    return len(kept)


def rooms():
    """Lines of code of every folder of the package, and of every file at its top."""
    found, package = Counter(), ROOT / "caltest"
    for path in sorted(package.rglob("*.py")):
        found[path.relative_to(package).parts[0].removesuffix(".py")] += lines_of_code(path.read_text())
    return found


def test_lines_of_code_are_counted_without_what_explains_them():
    said = '"""Title.\n\nMore.\n"""\n\n# why\n'
    assert lines_of_code(said) == 0
    assert lines_of_code(said + "x = 1  # it counts\n\ndef f():\n    return (\n        x\n    )\n") == 5


def test_rooms_have_the_lines_that_they_may_have():
    """Whoever raises a number in `pyproject.toml` says in the commit what the lines are for."""
    found, allowed = rooms(), ALLOWED["lines"]
    assert set(found) == set(allowed), (
        "give a new room its range in [tool.house.lines], or take one out"
    )
    ranges = {room: range(low, high + 1) for room, (low, high) in allowed.items()}
    outside = {room: lines for room, lines in found.items() if lines not in ranges[room]}
    assert not outside, "these have more or fewer lines of code than their range"
    assert found.total() <= ALLOWED["all"]


def by_name(path):
    """How the names begin that a module imports by calls; None for one that is computed."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(
            ("import_module", "__import__")
        ):
            text = node.args[0]
            start = text.values[0] if isinstance(text, ast.JoinedStr) else text
            yield start.value if isinstance(start, ast.Constant) else None


@pytest.mark.slow
def test_only_the_front_door_imports_a_room_by_its_name():
    """Else rooms could know each other in ways that `lint-imports` does not see."""
    package = ROOT / "caltest"
    found = {str(each.relative_to(package)): [*by_name(each)] for each in package.rglob("*.py")}
    assert {name: starts for name, starts in found.items() if starts} == {
        "__init__.py": ["caltest.", "caltest."],
        "text/__init__.py": ["."],  # a part of its own
    }


def layers():
    every, *_ = (each["layers"] for each in TOOLS["importlinter"]["contracts"] if "layers" in each)
    return [set(re.findall(r"\w+", each)) for each in every]


def test_modules_and_layers():
    assert len(list((ROOT / "caltest").rglob("*.py"))) <= ALLOWED["modules"]
    assert len(layers()) <= ALLOWED["layers"]


def test_contributing_shows_the_layers():
    page = (ROOT / ".github" / "CONTRIBUTING.md").read_text()
    table = re.sub(r"\n +", "  ", page.partition("```text\n")[2].partition("```")[0])
    rooms_of = [line.split("  ", 1)[1] for line in table.splitlines()]
    assert [set(re.findall(r"\w+", each)) for each in rooms_of] == layers()
