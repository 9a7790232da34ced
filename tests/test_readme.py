"""The README is short, and its first command makes the picture that it shows."""

import io
import re
import runpy
import struct

import pytest
from pages import ROOT, blocks, commands, page
from support import command as invoke

README = page("README.md")
LONGEST = 900  # words


def test_it_is_short():
    assert len(re.sub(r"<!--.*?-->", "", README).split()) <= LONGEST
    assert len(page("CHANGELOG.md").split()) <= LONGEST


def test_its_example_is_what_the_script_draws():
    example = runpy.run_path(str(ROOT / "docs" / "readmissions.py"))
    drawn = io.StringIO()
    example["table"]().to_csv(drawn, index=False)
    assert drawn.getvalue() == page("docs/readmissions.csv")


@pytest.mark.slow
def test_the_first_command_finds_what_the_picture_shows(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    (arguments,) = commands(blocks(README, "console")[0])
    result = invoke(*arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    (about,) = [line for line in README.splitlines() if "report.png" in line]
    headline = (
        "is about 5 percentage points too high overall, and 29 points too high where age is over 73 "
        "and hospital is south"
    )
    assert headline in " ".join(result.stdout.split())
    assert headline in about
    assert "about 5" in report


def test_the_picture_is_one():
    head = (ROOT / "docs" / "_static" / "report.png").read_bytes()[:24]
    width, height = struct.unpack(">II", head[16:])
    assert head.startswith(b"\x89PNG")
    assert width >= 1200
    assert height >= 900
