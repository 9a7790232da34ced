"""What docs/monitoring.md shows is what happens."""

import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from pages import blocks, commands, follow, page
from support import command as invoke

PAGE = page("docs/monitoring.md")
pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [
        f"{p:.3f},{rng.choice(['n', 's'])},{int(rng.random() < p)}" for p in rng.uniform(0.1, 0.6, 200)
    ]
    for name in ("week-1.csv", "batch.csv", "outcomes.csv"):
        Path(name).write_text("\n".join(["risk,region,outcome", *rows]) + "\n")


def test_the_page_runs():
    follow("docs/monitoring.md")


def test_the_cron_line_runs():
    (line,) = blocks(PAGE, "sh")
    command = re.search(r"caltest (monitor .*?) \|\|", line)[1]
    command = re.sub(r"\$\(date -d yesterday \+\\%F\)", "2026-05-11", command)
    command = command.replace("outcomes/2026-05-11.csv", "outcomes.csv --group region")
    result = invoke(*command.split())
    assert (result.exit_code, result.stderr) == (0, "")
    assert Path("monitor.html").stat().st_size > 5_000


def test_the_workflow_runs_and_keeps_its_state():
    (block,) = blocks(PAGE, "yaml")
    steps = yaml.safe_load(block)["jobs"]["monitor"]["steps"]
    (arguments,) = [each for step in steps for each in commands(step.get("run", ""))]
    arguments += ["--group", "region"]
    assert invoke(*arguments).exit_code == 0
    again = invoke(*arguments)
    assert again.exit_code == 2
    assert "taken in before" in again.stderr
    for name in next(step["with"]["path"] for step in steps if "path" in step.get("with", {})).split():
        assert Path(name).stat().st_size > 1_000
