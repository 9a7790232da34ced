"""`compare`: errors of models in points, and their differences."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pandas as pd
import pytest
from compared import LABELS, MODELS, TRUTH, quick
from scipy.stats import beta, binomtest, t
from typer.testing import CliRunner

import caltest
from caltest import InputError
from caltest.auditing import Group
from caltest.bounds.intervals import absolute_bounds
from caltest.cli import app
from caltest.comparison.errors import sizes_of
from caltest.data import sample

ROWS = 400


def drawn(seed, n=ROWS):
    rng = np.random.default_rng(seed)
    truth = rng.beta(1, 3, n)
    return truth, (rng.random(n) < truth).astype(int)


def sharpened(p):
    return p**2 / (p**2 + (1 - p) ** 2)


def tenths(scores):
    """Split rows into tenths of different scores."""
    return np.split(np.argsort(scores), 10)


def test_errors_of_two_classes_by_hand():
    truth, y = drawn(1)
    models = {"sure": sharpened(truth), "true": truth}
    sizes, _ = sizes_of({name: sample(p, y) for name, p in models.items()}, None, (), 0.95)
    assert (sizes["probability"], sizes["event"]) == ("canonical", "the label is class 1")
    for found, p in zip(sizes["errors"], models.values(), strict=True):
        assert (found.predicted, found.observed) == pytest.approx((p.mean(), y.mean()))
        level, events = 0.025 / 4, y.sum()  # half of 5%, two models, two sides
        ends = beta.ppf(level, events, ROWS - events + 1), beta.isf(level, events + 1, ROWS - events)
        assert (found.low, found.high) == pytest.approx((p.mean() - ends[1], p.mean() - ends[0]))
        parts = [p[rows].mean() - y[rows].mean() for rows in tenths(p)]
        assert found.absolute[1] == pytest.approx(np.abs(parts).mean())
        assert found.absolute[0] <= found.absolute[1] <= found.absolute[2]
        assert found.brier == pytest.approx(np.mean((p - y) ** 2))
        assert found.log_loss == pytest.approx(-np.mean(np.log(np.where(y == 1, p, 1 - p))))
    (gap,) = sizes["gaps"]
    known = float(np.mean(models["sure"] - truth))
    assert gap.mean == pytest.approx((known,) * 3)  # the observed rate cancels
    losses = [(p - y) ** 2 for p in models.values()]
    apart = losses[0] - losses[1]
    reach = t.ppf(0.975, ROWS - 1) * apart.std() / ROWS**0.5
    assert gap.brier[1] == pytest.approx(apart.mean())
    assert gap.brier[2] - gap.brier[1] == pytest.approx(gap.brier[1] - gap.brier[0])
    assert gap.brier[2] - gap.brier[1] >= reach * (1 - 1e-9)
    first, second = sizes["errors"]
    assert gap.absolute[1] == pytest.approx(first.absolute[1] - second.absolute[1])


def test_bounds_of_an_absolute_error_are_those_of_all_signs():
    predicted, counts, events = np.array([0.2, 0.6]), np.array([30.0, 70.0]), np.array([9, 35])
    low, high = absolute_bounds(predicted, counts, events, 0.02)
    ends = []
    for signs in product((1, -1), repeat=2):
        turned = np.array(signs) < 0
        seen = np.where(turned, counts - events, events).sum()
        stated = (np.where(turned, 1 - predicted, predicted) * counts).sum() / 100
        least, most = beta.ppf(0.005, seen, 101 - seen), beta.isf(0.005, seen + 1, 100 - seen)
        ends.append((stated - most, stated - least))
    assert (low, high) == pytest.approx((max(0, *(a for a, _ in ends)), max(b for _, b in ends)))


@pytest.mark.level
@pytest.mark.parametrize(
    "rows", [200, pytest.param(1000, marks=pytest.mark.level)], ids=["few", "many"]
)
@pytest.mark.parametrize("design", ["calibrated", "sharpened", "opposite", "rare"])
def test_intervals_hold_the_true_errors(design, rows):
    """Those of errors in all but 5% at most, all together; those of differences in about as many."""
    sets, missed = (100 if rows == 200 else 300), np.zeros(2)
    for seed in range(sets):
        truth, _ = drawn(seed, rows)
        truth = truth / 20 if design == "rare" else truth
        y = (np.random.default_rng(seed + 10_000).random(rows) < truth).astype(int)
        models = {
            "calibrated": (truth, np.full(rows, truth.mean())),
            "sharpened": (sharpened(truth), truth),
            "opposite": (np.minimum(truth + 0.05, 1), np.maximum(truth - 0.05, 0)),
            "rare": (1.5 * truth, truth),
        }[design]
        wholes = {name: sample(p, y) for name, p in zip("ab", models, strict=True)}
        sizes, _ = sizes_of(wholes, None, (), 0.95)
        cut = [[np.arange(rows)] if np.ptp(p) == 0 else tenths(p) for p in models]
        true = [
            float(np.mean([abs((p - truth)[part].mean()) for part in parts]))
            for p, parts in zip(models, cut, strict=True)
        ]
        (gap,) = sizes["gaps"]
        missed[0] += any(
            not (
                each.low <= (p - truth).mean() <= each.high
                and each.absolute[0] <= size <= each.absolute[2]
            )
            for each, p, size in zip(sizes["errors"], models, true, strict=True)
        )
        missed[1] += not gap.absolute[0] <= true[0] - true[1] <= gap.absolute[2]
    assert binomtest(int(missed[0]), sets, 0.05, "greater").pvalue > 0.001
    assert binomtest(int(missed[1]), sets, 0.05, "greater").pvalue > 0.001


def test_a_large_difference_is_shown():
    truth, y = drawn(3, 3000)
    found = caltest.compare({"sure": sharpened(truth), "true": truth}, y, "ece", n_resamples=5, rng=0)
    assert found.nearest == ["true", "sure"]
    assert found.gap("sure", "true").absolute[0] > 0.02
    turned = found.gap("true", "sure")
    assert turned.absolute == pytest.approx([-each for each in found.gaps[0].absolute[::-1]])
    text = found.summary().replace("\n", " ")
    assert "No error is shown in true's probabilities (at most" in text
    assert repr(found).startswith("Comparison(true: no error shown, at most ")
    assert "; sure's are off by about" in text
    assert "sure is further off than true, by" in text
    assert "By log loss, which also counts how well predictions separate, true is best" in text
    with pytest.raises(InputError, match="no models 'sure' and 'other' were compared"):
        found.gap("sure", "other")


def test_a_difference_in_points_that_the_statistic_does_not_find_is_named():
    """Standard errors allow for labels of either model, which costs power where one says little."""
    rng = np.random.default_rng(0)
    truth = rng.uniform(0.05, 0.95, 600)
    over, y = sharpened(sharpened(truth)), (rng.random(600) < truth).astype(int)
    three = {"base": np.full(600, 0.5), "over": over, "true": truth}
    text = " ".join(caltest.compare(three, y, "skce_uq", n_resamples=5, rng=0).summary().split())
    assert "over is further off than base, by" in text
    assert "By skce_uq, below, no difference is found between base and over (p = " in text
    assert "). No difference in this error is shown between base and true" in text
    assert "A difference that is not found may still exist, and be larger than one that is." in text


def test_the_top_class_where_there_are_more():
    found = quick()
    assert (found.event, found.n_predicted) == ("the top class is right", 3)
    top = MODELS["sharp"].argmax(axis=1)
    error = MODELS["sharp"].max(axis=1).mean() - (top == LABELS).mean()
    assert found.errors[0].error == pytest.approx(error)
    same = found.gap("sharp", "true")  # a temperature leaves the top class as it is
    assert same.mean[0] == same.mean[1] == same.mean[2]
    other = found.gap("biased", "true")
    assert other.mean[0] < other.mean[1] < other.mean[2]
    assert "No error is shown in true's confidence in its top class (" in found.summary()
    of_class = quick(lens="class:2", statistic="ece")
    assert (of_class.probability, of_class.event) == ("class:2", "the label is class 2")
    assert of_class.errors[1].predicted == pytest.approx(TRUTH[:, 2].mean())


def test_groups():
    truth, y = drawn(4)
    region = np.where(np.arange(ROWS) % 4 == 0, "N", "S")
    groups = pd.DataFrame({"region": region, "few": ["x"] * 30 + ["y"] * (ROWS - 30)})
    models = {"sure": sharpened(truth), "true": truth}
    found = caltest.compare(models, y, "ece", groups=groups, n_resamples=5, rng=0)
    known = [None, *(Group.of(region=each) for each in "NS"), Group.of(few="y")]
    assert [each.group for each in found.errors[::2]] == known
    north = found.errors[2]
    assert (north.rows, north.predicted) == (100, pytest.approx(sharpened(truth)[region == "N"].mean()))
    assert any("few = x" in note and "fewer than 50 rows" in note for note in found.warnings)
    assert "  region = N: 100 rows" in found.summary()
    assert found.gap("true", "sure", known[1]).group == known[1]
    json.dumps(found.to_dict(), allow_nan=False)
    assert len(pd.DataFrame(found.errors)) == 8
    alone = caltest.compare(models, y, "ece", n_resamples=5, rng=0)
    assert alone.errors[0].high < found.errors[0].high  # fewer intervals hold together


def test_rows_of_weight_0_and_clusters():
    truth, y = drawn(5)
    weights = np.where(np.arange(ROWS) < 40, 0.0, 2.0)
    models = {"sure": sharpened(truth), "true": truth}
    region = np.where(np.arange(ROWS) % 2 == 0, "N", "S")
    options = {"n_resamples": 5, "rng": 0}
    found = caltest.compare(models, y, "ece", weights=weights, groups=region, **options)
    kept = {name: p[40:] for name, p in models.items()}
    expected = caltest.compare(kept, y[40:], "ece", groups=region[40:], **options)
    for one, other in zip(found.errors, expected.errors, strict=True):
        assert (one.rows, one.error, one.absolute) == (
            other.rows,
            *map(pytest.approx, (other.error, other.absolute)),
        )
    twice = {name: np.repeat(p, 2) for name, p in models.items()}
    again = caltest.compare(
        twice, np.repeat(y, 2), "brier", clusters=np.repeat(np.arange(ROWS), 2), **options
    )
    once = caltest.compare(models, y, "brier", **options)
    assert again.gaps[0].brier == pytest.approx(once.gaps[0].brier)
    assert again.errors[0].error == pytest.approx(once.errors[0].error)


def test_what_was_called_impossible():
    wrong = np.where(np.arange(ROWS) == 0, 1.0, 0.3)
    _, y = drawn(6)
    y[0] = 0
    found = caltest.compare(
        {"wrong": wrong, "rate": np.full(ROWS, 0.25)}, y, "ece", n_resamples=5, rng=0
    )
    assert found.errors[0].log_loss == np.inf
    assert found.gaps[0].log_loss == (-np.inf, np.inf, np.inf)
    assert "wrong gave probability 0 to what was observed" in found.summary().replace("\n", " ")
    json.dumps(found.to_dict(), allow_nan=False)


def test_in_the_shell(tmp_path):
    truth, y = drawn(7)
    table = pd.DataFrame(
        {"sure": sharpened(truth), "true": truth, "y": y, "region": ["N", "S"] * (ROWS // 2)}
    )
    table.to_csv(tmp_path / "both.csv", index=False)
    for name in ("sure", "true"):
        table[[name, "y", "region"]].to_csv(tmp_path / f"{name}.csv", index=False)
    printed = []
    for asked in (["both.csv", "--columns", "sure,true"], ["sure.csv", "true.csv"]):
        words = [str(tmp_path / each) if each.endswith(".csv") else each for each in asked]
        options = [
            "--label",
            "y",
            "--group",
            "region",
            "--statistic",
            "ece",
            "--resamples",
            "5",
            "--json",
        ]
        result = CliRunner().invoke(app, ["compare", *words, *options])
        assert result.exit_code == 0, result.output
        printed.append(json.loads(result.stdout))
    assert printed[0]["errors"] == printed[1]["errors"]
    assert printed[0]["errors"][2]["group"]["conditions"] == [{"column": "region", "value": "N"}]
