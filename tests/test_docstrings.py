"""Docstrings: examples print what they say, a module at a time; public parameters have types."""

import doctest
import importlib
import inspect
import re
from pathlib import Path

import pytest

import caltest

PACKAGE = Path(caltest.__file__).parent
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
#: Modules in which something is typed at a prompt.
WITH_EXAMPLES = sorted(
    ".".join(("caltest", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if ">>> " in path.read_text()
)


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_print_what_they_say(name, capsys):
    failed, tried = doctest.testmod(importlib.import_module(name), optionflags=FLAGS)
    assert tried
    assert not failed, capsys.readouterr().out


def test_every_public_parameter_has_a_type(monkeypatch):
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(str(PACKAGE.parent / "docs" / "_ext"))
    import reference

    shown = [*reference.described().values()]
    inside = [vars(each).items() for each in shown if inspect.isclass(each)]
    shown += [value for each in inside for name, value in each if name[0] != "_"]
    sections = r"^(?:Parameters|Attributes)\n-+\n(.*?)(?=^\w[^\n]*\n---|\Z)"
    lines = []
    for each in shown:
        text = inspect.getdoc(getattr(each, "__func__", each)) or ""
        for section in re.findall(sections, text, flags=re.MULTILINE | re.DOTALL):
            lines += [line for line in section.splitlines() if re.match(r"[\w*]", line)]
    assert len(lines) > 700
    assert [line for line in lines if not re.match(r"[\w*]+(, [\w*]+)* : \S", line)] == []


@pytest.mark.parametrize("function", [caltest.audit, caltest.test])
def test_the_main_functions_are_described_in_900_words(function):
    assert len(function.__doc__.split()) <= 900
