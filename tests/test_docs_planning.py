"""What docs/planning.md shows is what happens."""

import inspect
from pathlib import Path

import numpy as np
import pytest
from pages import follow, page, rows_of
from scipy.stats import binom, norm

import caltest

pytestmark = pytest.mark.slow

PAGE = page("docs/planning.md")


def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    follow("docs/planning.md")
    assert Path("planning.png").stat().st_size > 10_000


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
    functions, defaults = (caltest.power, caltest.sample_size), (400, 200)
    found = [inspect.signature(each).parameters["n_datasets"].default for each in functions]
    assert tuple(found) == defaults
    for datasets, width in ((400, 0.04), (1600, 0.02)):
        assert 1.96 * np.sqrt(0.16 / datasets) == pytest.approx(width, abs=0.002)


USUAL = ("z, one side", "z, two sides", "chi-square, 20", "normal in n", "bound")


def test_the_noise_of_pilots_is_the_record():
    (row,) = (
        row
        for row in rows_of("planning_pilots")
        if (row["recalibration"], row["slope"], row["pilot_rows"]) == ("logistic", "1.0", "200")
    )
    assert f"In {row['pilots']} pilots of 200 rows" in PAGE
    assert f"showed an error of {100 * float(row['mean_error']):.1f}<" in PAGE


def test_what_was_measured():
    rows = rows_of("planning_coverage")
    shares = [100 * int(row["held"]) // int(row["of"]) for row in rows]
    assert f"held it in {min(shares)} to {max(shares)} of 100 cases" in PAGE
    usual = [100 * float(row["mean_log_error"]) for row in rows if row["test"] in USUAL]
    assert len(usual) == 20
    assert f"{min(usual):.0f}% to {max(usual):.0f}% more than the fewest rows on average" in PAGE
    for row in rows_of("planning_speed"):
        seconds = round(float(row["cpu_seconds"]))
        if row["statistic"] == "omnibus" and row["temperature"] == "0.82":
            assert f"takes {seconds} seconds of one core for an answer of {row['n']} rows" in PAGE
