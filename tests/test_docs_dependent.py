"""What docs/dependent.md shows is what happens."""

import re

import pytest
from pages import blocks, commands, page, rows_of, shown_in
from support import command

pytestmark = pytest.mark.slow

PAGE = page("docs/dependent.md")


def test_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    code = "\n".join(blocks(PAGE, "python"))
    exec(compile(code, "docs/dependent.md", "exec"), {})
    said = re.findall(r"^print\(.*\)  # (.*)$", code, flags=re.MULTILINE)
    assert len(said) >= 3
    assert capsys.readouterr().out.splitlines() == said
    every, shown = commands("\n".join(blocks(PAGE, "console"))), blocks(PAGE, "text")
    for words, text in zip((each for each in every if each[0] == "test"), shown, strict=True):
        assert shown_in(text, command(*words).stdout)


def test_the_table_of_sizes_is_the_record():
    record = [row for row in rows_of("clusters_summary") if row["level"] == "0.05"]
    known = {(row["clusters"], row["null"], row["statistic"]): float(row["rate"]) for row in record}
    table, _, _ = PAGE.partition("## Which of two models is better?")
    rows = re.findall(r"^\| (\d+ × \d+[^|]*?) \|(.*)\|$", table, flags=re.MULTILINE)
    assert len(rows) == 7
    names = [("cluster_signs", name) for name in ("skce_uq", "ks", "ecd", "omnibus")]
    names.append(("monte_carlo", "omnibus"))
    for clusters, cells in rows:
        for cell, name in zip(cells.split("|"), names, strict=True):
            assert float(cell.strip(" %")) == pytest.approx(100 * known[clusters, *name], abs=0.051)


def test_the_sizes_of_few_clusters_are_the_record():
    record = rows_of("rare_clusters")
    told = re.search(r"In (\d+) designs .* at most ([\d.]+)% .* at most ([\d.]+)% \(", PAGE)
    largest = (
        max(100 * int(row[level]) / int(row["datasets"]) for row in record)
        for level in ("p<=0.05", "p<=0.01")
    )
    assert int(told[1]) == len({row["design"] for row in record})
    assert [float(told[2]), float(told[3])] == pytest.approx(list(largest), abs=0.051)


def test_the_sizes_of_audits_are_the_record():
    record = rows_of("clusters_audits")
    rates = [100 * int(row["p<=0.05"]) / int(row["datasets"]) for row in record]
    told = re.search(r"([\d.]+)%, ([\d.]+)% and ([\d.]+)% of the audits of calibrated models", PAGE)
    assert [float(each) for each in told.groups()] == pytest.approx(rates, abs=0.051)
    assert {row["datasets"] for row in record} == {"1000"}
    assert "(1 000 audits each)" in PAGE
    assert all(int(row["all hold"]) >= 0.97 * int(row["datasets"]) for row in record)
