"""Pages of documentation: their blocks, and whether what they show is what is printed."""

import contextlib
import csv
import io
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType

import pytest
from support import command as invoke

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "validation" / "results"
of_source = pytest.mark.skipif(not RESULTS.exists(), reason="validation is part of the source")


def rows_of(table):
    """Return the rows of a CSV file, or of a result of the record by its name."""
    path = table if isinstance(table, Path) else RESULTS / f"{table}.csv"
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def page(name):
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(text, language):
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def made_by(code):
    """Return two fixtures: a folder with what a page makes, and one that goes there."""

    @pytest.fixture(scope="module")
    def folder(tmp_path_factory):
        made = tmp_path_factory.mktemp("docs")
        with contextlib.chdir(made):
            exec(compile(code, "page", "exec"), {})
        return made

    @pytest.fixture(autouse=True)
    def here(folder, monkeypatch):
        monkeypatch.chdir(folder)

    return folder, here


def commands(text):
    """Return the arguments of every `caltest` that begins a line, or follows `&&`."""
    lines = re.findall(r"^(?:.*&& )?(?:\S*/)?caltest (.*)$", text, flags=re.MULTILINE)
    return [shlex.split(line) for line in lines]


def shown_in(shown, printed):
    """Whether every part of what is shown, between lines of dots, is printed, in this order."""
    start = 0
    for part in re.split(r"^ *…\n", shown, flags=re.MULTILINE):
        found = printed.find(part.strip("\n"), start)
        if found < 0:
            return False
        start = found + len(part.strip("\n"))
    return True


def follow(name):
    """Do what a page says, in the working directory: run its Python, as one module, and its commands.

    What a comment behind a print, or the text block that follows, shows must be what is printed; a
    command ends with a verdict, so with status 0 or 1, and writes no error.
    """
    module = ModuleType("shown")
    sys.modules["shown"] = module
    printed = ""
    for language, block in re.findall(r"^```(\w+)\n(.*?)^```", page(name), re.DOTALL | re.MULTILINE):
        if language == "python":
            heard = io.StringIO()
            with contextlib.redirect_stdout(heard):
                exec(compile(block, name, "exec"), module.__dict__)
            printed = heard.getvalue()
            said = re.findall(r"^ *print\(.*\)(?:  |\n *)# (.*)$", block, flags=re.MULTILINE)
            assert [line for line in printed.splitlines() if line in said] == said, (block, printed)
        elif language == "console":
            runs = [invoke(*arguments) for arguments in commands(block)]
            assert all(run.exit_code in (0, 1) and not run.stderr for run in runs), (block, runs)
            printed = "".join(run.stdout for run in runs)
        elif language == "text":
            assert shown_in(block, printed), (block, printed)
