"""What docs/recipes.md and docs/fix.md show is what happens."""

import ast
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import yaml
from pages import blocks, commands, follow, page
from support import command

from caltest.simulation import tempered

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("pictures")]
RECIPES = page("docs/recipes.md")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_model_is_fixed_and_tested_again():
    follow("docs/fix.md")
    assert Path("before_after.png").stat().st_size > 10_000


def test_recipes_do_what_they_show():
    follow("docs/recipes.md")
    shown = sys.modules["shown"]
    shown.test_probabilities_mean_what_they_say()
    assert "<table" in shown.audit._repr_html_()
    for name in ("reliability.png", "report.html", "audit.json"):
        assert Path(name).stat().st_size > 5_000


def test_what_is_not_run_is_python_and_says_so():
    shown = blocks(RECIPES, "py")
    assert len(shown) == 5
    assert RECIPES.count("shown, not run") == len(shown)
    for block in shown:
        ast.parse(block)


@pytest.mark.parametrize("place", [0, 1], ids=["GitHub", "GitLab"])
def test_jobs_run_and_keep_what_they_write(place):
    data = tempered(n_samples=300, alpha=[1.0, 1.0, 1.0], temperature=1.0, rng=0)
    table = pd.DataFrame(data.probs, columns=["a", "b", "c"])
    table.assign(label=np.array(["a", "b", "c"])[data.labels]).to_csv("predictions.csv", index=False)
    job = yaml.safe_load(blocks(RECIPES, "yaml")[place])
    if place == 0:
        steps = job["jobs"]["audit"]["steps"]
        lines = [step["run"] for step in steps if "run" in step]
        kept = next(step["with"]["path"] for step in steps if "path" in step.get("with", {})).split()
    else:
        lines = job["calibration"]["script"]
        artifacts = job["calibration"]["artifacts"]
        kept = [*artifacts["paths"], artifacts["reports"]["junit"]]
    ((arguments,),) = [found for found in map(commands, lines) if found]
    result = command(*arguments)
    assert result.exit_code in (0, 1), result.stderr
    assert sorted(kept) == ["junit.xml", "report.html"]
    assert Path("report.html").stat().st_size > 10_000
    assert ElementTree.parse("junit.xml").getroot().tag == "testsuites"
