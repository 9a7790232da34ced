"""What docs/dependent.md shows is what happens."""

from __future__ import annotations

import csv
import re

import pytest
from pages import ROOT, blocks, commands, page, shown_in
from typer.testing import CliRunner

from caltest.cli import app

pytestmark = pytest.mark.slow

PAGE = page("docs/dependent.md")


def test_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code = "\n".join(blocks(PAGE, "python"))
    exec(compile(code, "docs/dependent.md", "exec"), {})
    said = re.findall(r"^print\(.*\)  # (.*)$", code, flags=re.MULTILINE)
    assert len(said) >= 3
    assert capsys.readouterr().out.splitlines() == said
    console, shown = blocks(PAGE, "console"), blocks(PAGE, "text")
    for command, text in zip(commands("\n".join(console)), shown, strict=True):
        assert shown_in(text, CliRunner().invoke(app, command).stdout)


def test_the_table_of_sizes_is_the_record():
    with (ROOT / "validation" / "results" / "clusters.csv").open(newline="") as file:
        record = list(csv.DictReader(file))
    known = {
        (row["clusters"], row["size"], row["statistic"], row["rows taken as"]): float(row["rejected"])
        for row in record
    }
    rows = re.findall(r"^\| (\d+) × (\d+), [^|]*\|(.*)\|$", PAGE, flags=re.MULTILINE)
    assert len(rows) == 5
    names = [("skce_uq", "clusters"), ("ecd", "clusters"), ("ks, top label", "clusters")]
    names += [("omnibus", "clusters"), ("omnibus", "alone")]
    for clusters, size, cells in rows:
        for cell, name in zip(cells.split("|"), names, strict=True):
            assert float(cell.strip(" %")) == pytest.approx(100 * known[clusters, size, *name])
