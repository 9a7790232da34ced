"""What the pages of the site show is what happens, and what they name is there."""

import importlib
import re
import shlex
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from pages import ROOT, blocks, follow, page
from support import command as invoke

import caltest

DOCS = ROOT / "docs"
FUTURE = "from __future__ import annotations"
MADE_BY_THE_BUILD = ("gallery/", "generated/", "report.html")


def run(name, monkeypatch):
    """Run the Python of a page, as one module that can be looked up, as dataclasses must be."""
    module = ModuleType("shown")
    monkeypatch.setitem(sys.modules, "shown", module)
    code = "\n".join(blocks(page(name), "python"))
    code = FUTURE + "\n" + code.replace(FUTURE, "")
    exec(compile(code, name, "exec"), module.__dict__)
    return module


def said(name):
    """Return what the comments of a page's Python say is printed."""
    return re.findall(r"print\(.*\)(?:  |\n)# (.*)", "\n".join(blocks(page(name), "python")))


START = "docs/start.md"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        START,
        "docs/compare.md",
        "docs/sizes.md",
        "docs/reports.md",
        "docs/where.md",
        "docs/points.md",
        "docs/clusters.md",
        "docs/weights.md",
        "docs/sampling.md",
        "docs/order.md",
        "docs/extend/house.md",
    ],
)
def test_pages_do_what_they_show(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").symlink_to(DOCS)  # where the README's example is
    follow(name)
    for written in re.findall(r'"([\w-]+\.(?:html|png))"', page(name)):
        assert (tmp_path / written).stat().st_size > 10_000


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
    result = invoke(*shlex.split("test --example digits:platt_svm --statistic sure_errors --seed 1"))
    assert (result.exit_code, result.stderr) == (1, "")
    assert "overconfidence where the model is sure" in result.stdout


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
    displays = [name for name in caltest.plots.__all__ if name.endswith("Display")]
    named |= {name: getattr(caltest.plots, name) for name in displays}
    named = {name: value for name, value in named.items() if callable(value)}
    assert len(named) > 30
    assert not {name for name, value in named.items() if ">>>" not in (value.__doc__ or "")}


def test_statistics_that_the_decision_names_exist():
    decision = page("docs/choosing.md").split("\n### ")[0]
    names = re.findall(r'`"([a-z_]+)"`', decision)
    assert len(names) > 5
    assert set(names) <= set(caltest.statistics.STATISTICS)


def pages_of_the_site():
    found = [path for path in DOCS.rglob("*.md") if not {"generated", "gallery"} & set(path.parts)]
    others = ROOT / "README.md", ROOT / "validation" / "README.md", DOCS / "llms.txt"
    return [*found, *others, *(ROOT / ".github").glob("*.md")]


def test_links_lead_to_files():
    """On GitHub, where the built pages are not."""
    for path in pages_of_the_site():
        prose = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)#]+)", prose):
            if "://" not in target and not target.startswith((*MADE_BY_THE_BUILD, "../generated")):
                assert (path.parent / target).is_file(), (path, target)


COMMANDS = re.findall(
    r"^(python -m validation\S*.*)$",
    "\n".join(path.read_text(encoding="utf-8") for path in pages_of_the_site()),
    flags=re.MULTILINE,
)


def test_commands_beside_numbers_are_there():
    studies = importlib.import_module("validation._registry").STUDIES
    for command in sorted(set(COMMANDS)):
        _, _, module, *arguments = shlex.split(command)
        if module == "validation":
            assert arguments[0] in studies or arguments[0] == "all", command
        else:
            assert (ROOT / Path(*module.split("."))).with_suffix(".py").exists(), command


def test_the_setup_of_the_start_is_that_of_the_first_page():
    (shell,) = blocks(page(START), "shell")
    typed = shell.splitlines()
    assert typed[1] == ". .venv/bin/activate"
    first = blocks(page("README.md"), "console")[0]
    install = typed[2].removesuffix(" scikit-learn")
    assert first.startswith(f"{typed[0]} && .venv/bin/{install} && ")
    assert "`. .venv/bin/activate`" in page("README.md")


NEEDED = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
CALLED = {"sklearn": "scikit-learn"}  # as pip knows them


@pytest.mark.parametrize("path", pages_of_the_site(), ids=lambda path: path.name)
def test_blocks_that_need_another_package_say_how_it_is_installed(path):
    """After the install command of the README, as a reader meets them: from the top."""
    there = {*sys.stdlib_module_names, "caltest", *(re.split("[><=]", each)[0] for each in NEEDED)}
    before, *others = re.split(r"^```python\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for each in others:
        code = each.partition("\n```")[0]
        for name in set(re.findall(r"^ *(?:import|from) (\w+)", code, re.MULTILINE)) - there:
            command = rf"pip install [^`\n]*{CALLED.get(name, name)}"
            assert re.search(command, before), f"{path.name}: {name}"
        before += each


def test_pages_are_short_and_guides_have_pictures():
    written = r"^<!-- (?:results|table|studies).*?^<!-- (?:end )?-->$|<!--.*?-->"  # tables and marks
    words = {
        path: sum(
            bool(re.search(r"\w", each))
            for each in re.sub(written, "", path.read_text("utf-8"), flags=re.DOTALL | re.M).split()
        )
        for path in pages_of_the_site()
        if path.suffix == ".md" and path.parent.name != ".github"
    }
    assert sum(words.values()) <= 32_000
    assert max(words.values()) <= 1_200
    toctrees = re.findall(r":caption: (.*)\n\n((?:.+\n)+?)```", page("docs/index.md"))
    guides = [
        re.sub(r".*<(.*)>", r"\1", line)
        for caption, lines in toctrees
        if caption.startswith("Guides") or caption == "Get started"
        for line in lines.splitlines()
    ]
    assert guides[:5] == ["start", "reading", "audit", "where", "fix"]
    missing = [
        each for each in guides if each != "gallery/index" and "![" not in page(f"docs/{each}.md")
    ]
    assert missing == []


def test_every_picture_of_the_studies_is_shown():
    there = {path.resolve() for path in (ROOT / "validation" / "results").glob("*.png")}
    shown = {
        (path.parent / target).resolve()
        for path in pages_of_the_site()
        for target in re.findall(r"\]\((\S*/results/\S+\.png)\)", path.read_text(encoding="utf-8"))
    }
    assert shown == there


def test_the_page_for_programs_names_what_is_there():
    text = page("docs/llms.txt")
    assert re.match(r"# caltest\n\n> .*\.\n\n", text)
    for name in re.findall(r"`(?:\w+ = )?caltest\.([\w.]+)", text):
        found = caltest
        for part in name.split("."):
            found = getattr(found, part)
    for name in re.findall(r"`([A-Z]\w+)[`(]", text):
        assert hasattr(caltest.predictive, name)
    audit = caltest.audit([0.2, 0.8] * 30, [0, 1] * 30, n_resamples=99)
    for name in re.findall(r"`audit\.(\w+)", text):
        assert hasattr(audit, name)


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
    assert len(names) > 20
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


def test_the_decision_list_is_drawn_for_dark_pages():
    """Every light box and dark text has a rule of its own; the boxes of blue are for both."""
    picture = (DOCS / "_static" / "choose.svg").read_text(encoding="utf-8")
    light, dark = (
        picture.replace("</style>", "<style>").split("<style>")[2],
        picture.split("</style>")[0],
    )
    assert "prefers-color-scheme: dark" in dark
    seen = set(re.findall(r'<(rect|text) [^>]*fill="(#\w+)"', light))
    for_both = {("rect", "#0b5a94"), ("text", "#ffffff"), ("text", "#e3eef6")}
    assert {(tag, fill) for tag, fill in seen if f'{tag}[fill="{fill}"]' not in dark} == for_both
    assert "choose.svg" in (DOCS / "_static" / "site.css").read_text(encoding="utf-8")
