"""What the README shows is what happens."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from pages import ROOT, blocks, commands, page, shown_in
from typer.testing import CliRunner

from caltest.cli import app

pytestmark = pytest.mark.slow

README = page("README.md")


def test_python_example_runs_and_prints_what_its_comments_say(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    code = "\n".join(blocks(README, "python"))
    exec(compile(code, "README.md", "exec"), {})
    assert (tmp_path / "reliability.png").stat().st_size > 10_000
    assert (tmp_path / "report.html").stat().st_size > 10_000
    printed = capsys.readouterr().out.split("\n")[:-1]
    assert printed == re.findall(r"print\(.*\)  # (.*)", code)


def test_the_first_command_succeeds_and_prints_what_is_shown(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    shown = blocks(README, "text")[0]
    (arguments,) = commands(blocks(README, "console")[0])
    result = CliRunner().invoke(app, arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    assert shown_in(shown, result.stdout)
    assert Path("report.html").stat().st_size > 10_000


def test_shown_output_is_the_real_one():
    _, shown = blocks(README, "text")
    (line,) = re.findall(r"`caltest (test [^`]*)` tests", README)
    command = [sys.executable, "-m", "caltest", *shlex.split(line)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stdout == shown


def test_links_lead_to_files():
    for target in re.findall(r"\]\((docs/[^)#]+)", README):
        assert (ROOT / target).is_file()
