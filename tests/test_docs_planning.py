"""What docs/planning.md shows is what happens."""

from __future__ import annotations

import csv
import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from pages import ROOT, blocks, commands, page, shown_in
from scipy.stats import binom, norm
from typer.testing import CliRunner

import caltest
from caltest.cli import app
from caltest.planning.search import _COARSE

pytestmark = pytest.mark.slow

PAGE = page("docs/planning.md")
MAKE, *OTHERS = blocks(PAGE, "python")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the pilot that the page makes."""
    folder = tmp_path_factory.mktemp("docs")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(compile(MAKE, "planning.md", "exec"), {})
    return folder


@pytest.fixture(autouse=True)
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)


def test_commands_print_what_is_shown():
    shown = [*blocks(PAGE, "text"), ""]
    texts = blocks(PAGE, "console")
    assert len(texts) == len(shown)
    for text, expected in zip(texts, shown, strict=True):
        (arguments,) = commands(text)
        result = CliRunner().invoke(app, arguments)
        assert (result.exit_code, result.stderr) == (0, ""), result.stderr
        assert shown_in(expected, result.stdout)
    assert Path("power.png").stat().st_size > 10_000


@pytest.mark.usefixtures("pictures")
def test_python_runs_and_prints_what_its_comments_say(capsys):
    code = "\n".join([MAKE, *OTHERS])
    exec(compile(code, "planning.md", "exec"), {})
    assert capsys.readouterr().out.splitlines() == re.findall(r"print\(.*\)  # (.*)", code)


def power_of_z_test(draws, level=0.05, power=0.8):
    """Power of the Monte-Carlo version of a z-test that has ``power``."""
    z = np.linspace(-8.0, 12.0, 20_001)
    effect = norm.isf(level) + norm.ppf(power)
    rejected = binom.cdf(round(level * (draws + 1)) - 1, draws, norm.sf(z))
    return float(np.trapezoid(rejected * norm.pdf(z - effect), z))


def test_the_numbers_in_the_text():
    assert f"has {power_of_z_test(199):.3f} with 199 draws and {power_of_z_test(999):.3f}" in PAGE
    help_text = inspect.getdoc(caltest.power)
    assert f"{power_of_z_test(999):.3f} where 199 have {power_of_z_test(199):.3f}" in help_text
    default = inspect.signature(caltest.power).parameters["n_datasets"].default
    assert default == inspect.signature(caltest.sample_size).parameters["n_datasets"].default == 400
    for datasets, width in ((400, 0.04), (1600, 0.02)):
        assert 1.96 * np.sqrt(0.16 / datasets) == pytest.approx(width, abs=0.002)
    assert f"with {_COARSE} data sets each" in PAGE


def rows_of(study):
    with (ROOT / f"validation/results/planning_{study}.csv").open() as file:
        return list(csv.DictReader(file))


USUAL = ("z, one side", "z, two sides", "chi-square, 20", "normal in n", "bound")


def test_the_table_of_pilots_is_the_record():
    for row in rows_of("pilots"):
        numbers = {name: float(row[name] or "nan") for name in row if name != "recalibration"}
        power = "{mean_power:.2f} ({power_10:.2f} to {power_90:.2f})".format(**numbers)
        end = f"{row['careful']}, {numbers['mean_careful']:.2f}" if row["mean_careful"] else "none"
        cells = [
            row["recalibration"],
            f"{int(row['pilot_rows']):,}",
            *(f"{100 * numbers[name]:.1f}" for name in ("true_error", "mean_error")),
            f"{int(row['rows']):,}",
            f"{numbers['true_power']:.2f}",
            *(power, row["not_shown"], end),
        ]
        assert f"| {' | '.join(cells)} |" in PAGE
        assert row["pilots"] == "40"
        assert int(row["too_much"]) <= 2


def test_what_was_measured():
    shares = {True: [], False: []}
    for row in rows_of("coverage"):
        shares[row["test"] in USUAL].append(100 * int(row["held"]) / int(row["of"]))
    assert (len(shares[True]), len(shares[False])) == (20, 12)
    claims = [r"it held in (\d+) to (\d+) of 100 cases", r"held the truth in (\d+) to (\d+) of 100"]
    for claim, found in zip(claims, shares.values(), strict=True):
        low, high = map(int, re.findall(claim, PAGE)[0])
        assert (low, high) == (int(min(found)), int(max(found)))
    for row in rows_of("speed"):
        seconds = round(float(row["cpu_seconds"]))
        if not row["n"]:
            assert f"{seconds} seconds" in PAGE[PAGE.index("that `--max-n` rows do not reach:") :]
        elif row["statistic"] == "omnibus":
            n = f"{int(row['n']):,}"
            assert re.search(rf"\b{seconds} (seconds of one core )?for (an answer|one) of {n} rows|"
                             rf"\b{seconds} for one of {n}\b", PAGE)  # fmt: skip
        else:
            assert seconds in (3, 4)
    assert "some 3 seconds" in PAGE
