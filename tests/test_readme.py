"""What the README shows is what happens."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_python_example_runs_and_prints_what_its_comments_say(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    code = "\n".join(_blocks("python"))
    exec(compile(code, "README.md", "exec"), {})
    assert (tmp_path / "reliability.png").stat().st_size > 10_000
    printed = capsys.readouterr().out.split("\n")[:-1]
    assert printed == re.findall(r"print\(.*\)  # (.*)", code)


def test_shown_output_is_the_real_one():
    (shown,) = _blocks("text")
    command = [sys.executable, "-m", "caltest", "test", "--example", "digits:naive_bayes"]
    run = subprocess.run([*command, "--seed", "1"], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stdout == shown
