"""What is released: one version, true requirements, a paper whose numbers are the record's."""

import importlib.util
import re
import tomllib

import yaml
from pages import ROOT, of_source, page

import caltest

PROJECT = tomllib.loads(page("pyproject.toml"))["project"]
RECIPE = yaml.safe_load(page(".github/release/meta.yaml"))
PAPER = page(".github/release/paper.md")
pytestmark = of_source


def script(name):
    """Import a script of the documentation."""
    path = ROOT / "docs" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_version_is_one():
    (latest,) = re.findall(r"^## (?!Unreleased)(\S+) \(.*\)$", page("CHANGELOG.md"), re.MULTILINE)[:1]
    citation = yaml.safe_load(page("CITATION.cff"))["version"]
    versions = {latest, citation, RECIPE["package"]["version"], script("badges").facts()["version"]}
    assert versions == {caltest.__version__}


def test_pythons_are_the_same_everywhere():
    listed = [each.split(" :: ")[-1] for each in PROJECT["classifiers"] if ":: 3." in each]
    assert listed == ["3.11", "3.12", "3.13"]
    assert PROJECT["requires-python"] == f">={listed[0]}"
    tried = re.findall(r"for version in (.*); do|interpreter (3\.\d+)\)", page(".ci/run"))
    assert sorted(" ".join(map("".join, tried)).split()) == listed
    assert f"Python {', '.join(listed[:-1])} and {listed[-1]} are supported" in page(
        "docs/stability.md"
    )
    assert all("python >=3.11" in RECIPE["requirements"][part] for part in ("host", "run"))


def test_the_recipe_requires_what_the_package_requires():
    required = {each.replace(" ", "") for each in RECIPE["requirements"]["run"]} - {"python>=3.11"}
    assert {each.replace("matplotlib-base", "matplotlib") for each in required} == set(
        PROJECT["dependencies"]
    )
    (command,) = (f"{name} = {to}" for name, to in PROJECT["scripts"].items())
    assert RECIPE["build"]["entry_points"] == [command]
    assert RECIPE["about"]["license"] == PROJECT["license"]
    assert RECIPE["about"]["summary"] == PROJECT["description"]


def test_badges_are_those_that_the_script_makes():
    badges = script("badges")
    for name, value in badges.facts().items():
        assert (badges.FOLDER / f"{name}.svg").read_text(encoding="utf-8") == badges.badge(name, value)
        assert f"![{name.capitalize() if name == 'python' else name} {value}]" in page("README.md")


# ------------------------------------------------------------------ the paper


def test_numbers_of_the_paper_are_marked():
    marked = re.sub(r"[\d.]+%?<!-- .*? -->", "", PAPER.split("\n# Summary")[1])
    told = re.findall(r"(?<![\w@/])\d[\d .]*%?", re.sub(r"\[@.*?\]|\(.*?\)", "", marked))
    assert {each.strip(" .") for each in told} <= {"30%", "5%", "999", "1 000"}


def test_the_paper_has_the_sections_that_are_required():
    """Those of the Journal of Open Source Software."""
    _, head, text = PAPER.split("---\n", 2)
    found = re.findall(r"^# (.*)$", text, flags=re.MULTILINE)
    assert found == [
        "Summary", "Statement of need", "State of the field", "Software design",
        "Research impact statement", "AI usage disclosure", "Acknowledgements", "References",
    ]  # fmt: skip
    about = yaml.safe_load(head)
    assert {"title", "tags", "authors", "affiliations", "date", "bibliography"} <= set(about)
    assert 750 < len(re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL).split()) < 1750
    cited = set(re.findall(r"@(\w+\d{4}|mapie)\b", text))
    assert cited == set(
        re.findall(r"^@\w+\{(\w+),", page(".github/release/paper.bib"), flags=re.MULTILINE)
    )
    for picture in re.findall(r"\]\((\S+\.png)\)", text):
        assert (ROOT / ".github" / "release" / picture).is_file()
