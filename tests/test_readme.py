"""The README is short, and its first command makes the picture that it shows."""

import struct

import pytest
from pages import ROOT, blocks, commands, page
from support import command as invoke

README = page("README.md")
LONGEST = 5_500


def test_it_is_short():
    assert len(README) <= LONGEST


@pytest.mark.slow
def test_the_first_command_finds_what_the_picture_shows(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (arguments,) = commands(blocks(README, "console")[0])
    result = invoke(*arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    (about,) = [line for line in README.splitlines() if "report.png" in line]
    headline = "The model's confidence in its top class is about 19 percentage points too low"
    assert headline.lower() in " ".join(result.stdout.split()).lower()
    assert headline.lower() in about.lower()
    assert "about 19" in report


def test_the_picture_is_one():
    head = (ROOT / "docs" / "_static" / "report.png").read_bytes()[:24]
    width, height = struct.unpack(">II", head[16:])
    assert head.startswith(b"\x89PNG")
    assert width >= 1200
    assert height >= 900
