"""What the pages of the site show is what happens, and what they name is there."""

from __future__ import annotations

import builtins
import importlib
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from pages import ROOT, blocks, commands, page, shown_in
from typer.testing import CliRunner

import caltest
from caltest.cli import app

DOCS = ROOT / "docs"
FUTURE = "from __future__ import annotations"
MADE_BY_THE_BUILD = ("gallery/", "generated/", "report.html")


def run(name: str, monkeypatch) -> ModuleType:
    """Run the Python of a page, as one module that can be looked up, as dataclasses must be."""
    module = ModuleType("shown")
    monkeypatch.setitem(sys.modules, "shown", module)
    code = "\n".join(blocks(page(name), "python"))
    code = FUTURE + "\n" + code.replace(FUTURE, "")
    exec(compile(code, name, "exec"), module.__dict__)
    return module


def said(name: str) -> list[str]:
    """Return what the comments of a page's Python say is printed."""
    return re.findall(r"print\(.*\)(?:  |\n)# (.*)", "\n".join(blocks(page(name), "python")))


START = "docs/start.md"


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """What its Python prints, in a folder that then has its file."""
    folder = tmp_path_factory.mktemp("start")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        lines: list[str] = []
        shown = builtins.print  # what is compiled for the first time is printed to files

        def heard(*args: object, **options: Any) -> None:
            if options:
                shown(*args, **options)
            else:
                lines.append(" ".join(map(str, args)))

        patch.setattr("builtins.print", heard)
        run(START, patch)
    return folder, lines


@pytest.mark.slow
def test_the_start_prints_what_is_shown(started):
    _, lines = started
    *_, shown = blocks(page(START), "text")
    texts = [line for line in lines if "\n" in line]
    assert [line for line in lines if "\n" not in line] == said(START)
    assert len(texts) == 1
    assert shown_in(shown, texts[0])


@pytest.mark.slow
def test_the_starts_commands_print_what_is_shown(started, monkeypatch):
    monkeypatch.chdir(started[0])
    shown = blocks(page(START), "text")[:-1]
    texts = blocks(page(START), "console")
    for text, expected in zip(texts, shown, strict=True):
        ((arguments),) = commands(text)
        result = CliRunner().invoke(app, arguments)
        assert (result.exit_code, result.stderr) == (1, "")
        assert shown_in(expected, result.stdout)
    assert Path("report.html").stat().st_size > 10_000


@pytest.mark.slow
@pytest.mark.parametrize("name", ["docs/extend/statistic.md", "docs/extend/null.md"])
def test_pages_about_adding_run(name, monkeypatch, capsys):
    run(name, monkeypatch)
    shown = "\n".join(blocks(page(name), "text")).split("\n")
    expected = {*said(name), *filter(None, shown)}
    assert expected
    assert set(capsys.readouterr().out.splitlines()) == expected


@pytest.mark.slow
def test_an_added_statistic_has_its_name_everywhere(monkeypatch, capsys):
    module = run("docs/extend/statistic.md", monkeypatch)
    monkeypatch.setitem(caltest.statistics.STATISTICS, "sure_errors", module.SureErrors)
    command = "test --example digits:platt_svm --statistic sure_errors --seed 1"
    result = CliRunner().invoke(app, shlex.split(command))
    assert (result.exit_code, result.stderr) == (1, "")
    assert "over-confidence where the model is sure" in result.stdout


def test_the_table_of_forms_is_right():
    """Which nulls a form has besides the exact one."""
    text = page("docs/extend/statistic.md")
    (row,) = re.findall(r"`LinearSum` \| (.*) \|", text)
    digits = caltest.datasets.load_digits_predictions("platt_svm")
    for null in re.findall(r"`(\w+)`", row):
        assert caltest.test(digits.probs, digits.labels, "brier", null=null).null == null
    for name in re.findall(r"`([A-Z]\w+)`(?=[^\n]*\|[^\n]*\|)", text):
        assert hasattr(caltest.forms, name)


def test_every_public_name_has_an_example():
    named = {name: getattr(caltest, name) for name in caltest.__all__ if not name.startswith("_")}
    named = {name: value for name, value in named.items() if callable(value)}
    assert len(named) > 30
    assert not {name for name, value in named.items() if ">>>" not in (value.__doc__ or "")}


def test_statistics_that_the_decision_names_exist():
    (_, decision, *_) = page("docs/choosing.md").split("\n## ")
    names = re.findall(r'`"([a-z_]+)"`', decision)
    assert len(names) > 5
    assert set(names) <= set(caltest.statistics.STATISTICS)


def pages_of_the_site() -> list[Path]:
    found = [path for path in DOCS.rglob("*.md") if not {"generated", "gallery"} & set(path.parts)]
    return [*found, ROOT / "README.md", *(ROOT / ".github").glob("*.md")]


@pytest.mark.parametrize("path", pages_of_the_site(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files(path):
    """On GitHub, where the built pages are not."""
    prose = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)", prose):
        if "://" not in target and not target.startswith(MADE_BY_THE_BUILD):
            assert target.startswith("../generated") or (path.parent / target).is_file(), target


COMMANDS = re.findall(
    r"^(?::command: )?(python -m validation\S*.*)$",
    "\n".join(path.read_text(encoding="utf-8") for path in pages_of_the_site()),
    flags=re.MULTILINE,
)


@pytest.mark.parametrize("command", sorted(set(COMMANDS)))
def test_commands_beside_numbers_are_there(command):
    _, _, module, *arguments = shlex.split(command)
    assert (ROOT / Path(*module.split("."))).with_suffix(".py").exists() or module == "validation"
    if module == "validation":
        studies = importlib.import_module("validation._registry").STUDIES
        assert arguments[0] in studies or arguments[0] == "all"


def test_the_setup_of_the_start_is_that_of_the_first_page():
    (shell,) = blocks(page(START), "shell")
    typed = shell.splitlines()
    assert typed[1] == ". .venv/bin/activate"
    for name in ("README.md", "docs/index.md"):
        first = blocks(page(name), "console")[0]
        assert first.startswith(f"{typed[0]} && .venv/bin/{typed[2]} && ")
        assert "`. .venv/bin/activate`" in page(name)


def test_every_picture_of_the_studies_is_shown():
    shown = re.findall(r"\{picture\} (\S+)", page("docs/validation.md"))
    assert {path.name for path in (ROOT / "validation" / "results").glob("*.png")} <= set(shown)


def test_the_citation_is_of_this_version():
    citation = yaml.safe_load(page("CITATION.cff"))
    assert citation["version"] == caltest.__version__
    assert citation["cff-version"] == "1.2.0"
    (bibtex,) = blocks(page("docs/cite.md"), "bibtex")
    told = dict(re.findall(r"^  (\w+) = \{+(.*?)\}+,?$", bibtex, flags=re.MULTILINE))
    assert (told["title"], told["version"]) == (citation["title"], citation["version"])
    assert (told["author"], told["license"]) == (citation["authors"][0]["name"], citation["license"])
    assert {"message", "title", "authors", "license"} <= set(citation)
    assert all(author["name"] for author in citation["authors"])


def test_the_page_about_the_house_names_what_is_there():
    """Every `module.name` on it can be imported, every file is there."""
    text = page("docs/extend/house.md")
    dotted = re.findall(r"`(_?[a-z]\w*(?:\.\w+)+)`", text)
    names = [name for name in dotted if "caltest." not in name and not name.endswith(".py")]
    paths = re.findall(r"`((?:\w+/)?\w+\.py|\w+/)`", text)
    assert len(names) > 30
    assert len(paths) > 8
    for name in names:
        found = caltest
        for part in name.split("."):
            if isinstance(found, ModuleType) and not hasattr(found, part):
                found = importlib.import_module(f"{found.__name__}.{part}")
            else:
                found = getattr(found, part)
    for path in paths:
        assert (ROOT / "caltest" / path).exists(), path
