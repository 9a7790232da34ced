"""The examples of docstrings, a module at a time: they say what they print."""

import doctest
import importlib
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
