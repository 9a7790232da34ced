"""What docs/planning.md shows is what happens."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from pages import blocks, commands, made_by, page, rows_of, shown_in
from scipy.stats import binom, norm
from support import command

import caltest

pytestmark = pytest.mark.slow

PAGE = page("docs/planning.md")
MAKE, *OTHERS = blocks(PAGE, "python")


folder, here = made_by(MAKE)


def test_commands_print_what_is_shown():
    shown = [*blocks(PAGE, "text"), ""]
    texts = blocks(PAGE, "console")
    assert len(texts) == len(shown)
    for text, expected in zip(texts, shown, strict=True):
        (arguments,) = commands(text)
        result = command(*arguments)
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
    power, error, low, high = (
        float(row[name]) for name in ("true_power", "mean_error", "power_10", "power_90")
    )
    assert f"of {row['pilots']} pilots of 200 rows" in PAGE
    assert f"showed an error of {100 * error:.1f} points" in PAGE
    assert f"from a power of {low:.2f} to {high:.2f}, where the true one is {power:.2f}" in PAGE


def test_what_was_measured():
    rows = rows_of("planning_coverage")
    shares = [100 * int(row["held"]) // int(row["of"]) for row in rows]
    assert f"it held in {min(shares)} to {max(shares)} of 100 cases" in PAGE
    usual = [100 * float(row["mean_log_error"]) for row in rows if row["test"] in USUAL]
    assert len(usual) == 20
    assert f"by {min(usual):.0f}% to {max(usual):.0f}% on average" in PAGE
    for row in rows_of("planning_speed"):
        seconds = round(float(row["cpu_seconds"]))
        if row["statistic"] == "omnibus" and row["temperature"] == "0.82":
            assert f"takes {seconds} seconds of one core for an answer of {row['n']} rows" in PAGE
