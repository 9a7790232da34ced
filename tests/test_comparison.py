"""`compare`: errors of models in points and their differences, values, what is refused, the result."""

import json
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from scipy.stats import beta, binomtest, t
from support import P6, Y6, dirichlet, labels_from

import caltest
from caltest import InputError, auditing
from caltest.data import sample
from caltest.kernels import Exponential
from caltest.predictive import GaussianPredictions
from caltest.statistics import STATISTICS, UnbiasedSKCE

ROWS = 400
TRUTH = dirichlet(120, 3, 0)
LABELS = labels_from(TRUTH, np.random.default_rng(0))
CODES = np.arange(120) // 3


def raised(g, target, bias):
    logits = np.log(g)
    logits[:, target] += bias
    return softmax(logits, axis=1)


MODELS = {"sharp": softmax(3.0 * np.log(TRUTH), axis=1), "true": TRUTH, "biased": raised(TRUTH, 0, 1.5)}
TWO = {name: MODELS[name] for name in ("sharp", "true")}


def quick(models=MODELS, labels=LABELS, statistic="skce_uq", **options):
    return caltest.compare(models, labels, statistic, **options)


def drawn(seed, n=ROWS):
    rng = np.random.default_rng(seed)
    truth = rng.beta(1, 3, n)
    return truth, (rng.random(n) < truth).astype(int)


def sharpened(p):
    return p**2 / (p**2 + (1 - p) ** 2)


def tenths(scores):
    """Split rows into tenths of different scores."""
    return np.split(np.argsort(scores), 10)


# ------------------------------------------------------------------ errors in points


def test_errors_of_two_classes_by_hand():
    truth, y = drawn(1)
    models = {"sure": sharpened(truth), "true": truth}
    sizes = quick(models, y, "ecd")
    assert (sizes.probability, sizes.event) == ("canonical", "the label is class 1")
    for found, p in zip(sizes.errors, models.values(), strict=True):
        assert (found.predicted, found.observed) == pytest.approx((p.mean(), y.mean()))
        level, events = 0.025 / 4, y.sum()  # half of 5%, two models, two sides
        ends = beta.ppf(level, events, ROWS - events + 1), beta.isf(level, events + 1, ROWS - events)
        assert (found.low, found.high) == pytest.approx((p.mean() - ends[1], p.mean() - ends[0]))
        parts = [p[rows].mean() - y[rows].mean() for rows in tenths(p)]
        assert found.absolute[1] == pytest.approx(np.abs(parts).mean())
        assert found.absolute[0] <= found.absolute[1] <= found.absolute[2]
        assert found.brier == pytest.approx(np.mean((p - y) ** 2))
        assert found.log_loss == pytest.approx(-np.mean(np.log(np.where(y == 1, p, 1 - p))))
    (gap,) = sizes.gaps
    known = float(np.mean(models["sure"] - truth))
    assert gap.mean == pytest.approx((known,) * 3)  # the observed rate cancels
    losses = [(p - y) ** 2 for p in models.values()]
    apart = losses[0] - losses[1]
    reach = t.ppf(0.975, ROWS - 1) * apart.std() / ROWS**0.5
    assert gap.brier[1] == pytest.approx(apart.mean())
    assert gap.brier[2] - gap.brier[1] == pytest.approx(gap.brier[1] - gap.brier[0])
    assert gap.brier[2] - gap.brier[1] >= reach * (1 - 1e-9)
    first, second = sizes.errors
    assert gap.absolute[1] == pytest.approx(first.absolute[1] - second.absolute[1])


@pytest.mark.level
@pytest.mark.parametrize("rows", [200, 1000], ids=["few", "many"])
@pytest.mark.parametrize("design", ["calibrated", "sharpened", "opposite", "rare"])
def test_intervals_hold_the_true_errors(design, rows):
    """Those of errors in all but 5% at most, all together; those of differences in about as many."""
    sets, missed = 100, np.zeros(2)
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
        sizes = quick(dict(zip("ab", models, strict=True)), y, "citl")
        cut = [[np.arange(rows)] if np.ptp(p) == 0 else tenths(p) for p in models]
        true = [
            float(np.mean([abs((p - truth)[part].mean()) for part in parts]))
            for p, parts in zip(models, cut, strict=True)
        ]
        (gap,) = sizes.gaps
        missed[0] += any(
            not (
                each.low <= (p - truth).mean() <= each.high
                and each.absolute[0] <= size <= each.absolute[2]
            )
            for each, p, size in zip(sizes.errors, models, true, strict=True)
        )
        missed[1] += not gap.absolute[0] <= true[0] - true[1] <= gap.absolute[2]
    assert binomtest(int(missed[0]), sets, 0.05, "greater").pvalue > 0.001
    assert binomtest(int(missed[1]), sets, 0.05, "greater").pvalue > 0.001


def said(found):
    return " ".join(found.summary().split())


def test_the_winner_comes_first():
    truth, y = drawn(3, 3000)
    found = quick({"sure": sharpened(truth), "true": truth}, y, None)
    assert (found.nearest, found.statistic, len(found.values)) == (["true", "sure"], None, 0)
    assert found.story.verdict == "better"
    assert [each.code for each in found.story.steps] == ["use", "audit"]
    turned = found.gap("true", "sure")
    assert turned.absolute == pytest.approx([-each for each in found.gaps[0].absolute[::-1]])
    low, size, _ = found.gap("sure", "true").absolute
    assert low > 0.02
    words = f"Clear winner. true is better calibrated than sure by {100 * size:.1f} points (95%: about "
    assert said(found).startswith(words)
    assert repr(found).startswith("Comparison(true nearest of 2, off by ")
    with pytest.raises(InputError, match="no models 'sure' and 'other' were compared"):
        found.gap("sure", "other")


def test_a_crossed_cell_that_an_audit_convicts_is_named():
    """Neither model is said to be without an error; text has the first lines, and the page all."""
    rng = np.random.default_rng(0)
    truth = rng.uniform(0.1, 0.5, 2000)
    groups = {"region": rng.choice(list("NESW"), 2000), "product": rng.choice(["lease", "loan"], 2000)}
    cell = (groups["region"] == "W") & (groups["product"] == "lease")
    y = rng.random(2000) < truth + 0.3 * cell
    models = {"a": truth, "b": np.clip(truth + 0.15, 0.0, 1.0)}
    assert caltest.audit(truth, y, groups=groups, n_resamples=99, rng=0).rejected
    found = quick(models, y, None, groups=groups)
    worst = next(each for each in found.story.others if each.kind == "error")
    assert (worst.kind, worst.side) == ("error", "under")
    assert worst.of.group == auditing.Group.of(region="W", product="lease")
    text, page = said(found), caltest.report.to_html(found)
    assert "too low where region is W and product is lease" in text
    assert "and 18 more: see .errors" in text
    assert "No error" not in text
    assert page.count('<th scope="row">region = ') == 24
    assert len(found.summary().splitlines()) <= 40


def test_the_top_class_where_there_are_more():
    found = quick()
    assert (found.event, found.n_classes) == ("the top class is right", 3)
    top = MODELS["sharp"].argmax(axis=1)
    error = MODELS["sharp"].max(axis=1).mean() - (top == LABELS).mean()
    assert found.errors[0].error == pytest.approx(error)
    same = found.gap("sharp", "true")  # a temperature leaves the top class as it is
    assert same.mean[0] == same.mean[1] == same.mean[2]
    other = found.gap("biased", "true")
    assert other.mean[0] < other.mean[1] < other.mean[2]
    assert "Mean absolute error of the model's confidence in its top class, in points: true" in said(
        found
    )
    of_class = quick(lens="class:2", statistic="ece")
    assert (of_class.probability, of_class.event) == ("class:2", "the label is class 2")
    assert of_class.errors[1].predicted == pytest.approx(TRUTH[:, 2].mean())


def test_groups():
    truth, y = drawn(4)
    region = np.where(np.arange(ROWS) % 4 == 0, "N", "S")
    groups = pd.DataFrame({"region": region, "few": ["x"] * 30 + ["y"] * (ROWS - 30)})
    models = {"sure": sharpened(truth), "true": truth}
    found = quick(models, y, "ece", groups=groups)
    known = [None, *(auditing.Group.of(region=each) for each in "NS"), auditing.Group.of(few="y")]
    crossed = [auditing.Group.of(region=each, few="y") for each in "NS"]
    assert [each.group for each in found.errors[::2]] == known + crossed
    apart = quick(models, y, "ece", groups=groups, intersections=1)
    assert [each.group for each in apart.errors[::2]] == known
    assert apart.errors[0].high < found.errors[0].high  # fewer intervals hold together
    north = found.errors[2]
    assert (north.rows, north.predicted) == (100, pytest.approx(sharpened(truth)[region == "N"].mean()))
    both = found.errors[8]
    here = (region == "N") & (groups["few"] == "y")
    assert (both.rows, both.predicted) == (here.sum(), pytest.approx(sharpened(truth)[here].mean()))
    assert any("few = x" in note and "fewer than 50 rows" in note for note in found.warnings)
    assert found.gap("true", "sure", known[1]).group == known[1]
    json.dumps(found.to_dict(), allow_nan=False)
    assert len(pd.DataFrame(found.errors)) == 12


def test_rows_of_weight_0_and_clusters():
    truth, y = drawn(5)
    weights = np.where(np.arange(ROWS) < 40, 0.0, 2.0)
    models = {"sure": sharpened(truth), "true": truth}
    region = np.where(np.arange(ROWS) % 2 == 0, "N", "S")
    found = quick(models, y, "ece", weights=weights, groups=region)
    expected = quick({name: p[40:] for name, p in models.items()}, y[40:], "ece", groups=region[40:])
    for one, other in zip(found.errors, expected.errors, strict=True):
        assert (one.rows, one.error, one.absolute) == (
            other.rows,
            *map(pytest.approx, (other.error, other.absolute)),
        )
    twice = {name: np.repeat(p, 2) for name, p in models.items()}
    again = quick(twice, np.repeat(y, 2), "brier", clusters=np.repeat(np.arange(ROWS), 2))
    once = quick(models, y, "brier")
    assert (again.n_clusters, once.n_clusters) == (ROWS, None)
    assert again.gaps[0].brier == pytest.approx(once.gaps[0].brier)
    assert again.errors[0].error == pytest.approx(once.errors[0].error)
    assert "800 rows of 2 classes, in 400 clusters" in again.summary()


def test_what_was_called_impossible():
    _, y = drawn(6)
    y[0] = 0
    found = quick({"wrong": np.where(np.arange(ROWS) == 0, 1.0, 0.3), "rate": np.full(ROWS, 0.25)}, y)
    assert (found.errors[0].log_loss, found.gaps[0].log_loss) == (np.inf, (-np.inf, np.inf, np.inf))
    assert "infinite for wrong, which gave probability 0 to what was observed" in said(found)
    json.dumps(found.to_dict(), allow_nan=False)


def test_models_are_compared_among_the_rows_kept():
    rates, share = {0: 0.1, 2: 0.5}, np.array([0.1, 1.0, 0.5])
    kept = {name: p * share / (p * share).sum(axis=1, keepdims=True) for name, p in MODELS.items()}
    found, expected = quick(sampling_rates=rates), quick(kept)
    assert found.values == pytest.approx(expected.values)
    assert found.errors[0].error == pytest.approx(expected.errors[0].error)
    assert found.sampling_rates == rates
    assert "10% of class 0, 50% of class 2; errors refer to the rows kept" in found.summary()
    with pytest.raises(InputError, match="5, which is not a class"):
        quick(sampling_rates={5: 0.1})


# ------------------------------------------------------------------ values


@pytest.mark.parametrize("clusters", [None, CODES])
@pytest.mark.parametrize("statistic", ["ckce", "skce_uq", "ecd", "ks", "brier"])
def test_values_are_those_of_estimate(statistic, clusters):
    found = quick(statistic=statistic, clusters=clusters)
    assert found.statistic == statistic
    assert found.measures == STATISTICS[statistic].measures
    for name, value in zip(found.names, found.values, strict=True):
        assert value == caltest.estimate(MODELS[name], LABELS, statistic, clusters=clusters)


# ------------------------------------------------------------------ input


def test_binary_columns_frames_and_names():
    frame = pd.DataFrame(TRUTH, columns=["p_ant", "p_bee", "p_cat"])
    names = np.array(["ant", "bee", "cat"])[LABELS]
    found = quick({"a": frame, "b": frame[["p_cat", "p_ant", "p_bee"]]}, names)
    assert found.values[0] == pytest.approx(found.values[1])
    assert quick({"a": TRUTH[:, 0], "b": TRUTH[:, 1].tolist()}, LABELS % 2).warnings == ()


REFUSED = [
    ({"models": {"a": P6}}, "at least two different ones"),
    ({"models": [P6, P6]}, "models is of type list; give predictions by name"),
    ({"models": {"1": P6, 1: P6}}, "models has the names '1', 1"),
    ({"models": {"a": P6, "b": P6[:5]}}, "model 'b': "),
    ({"models": {"a": P6, "b": 3 * P6}}, "model 'b': "),
    ({"models": {"a": P6, "b": P6[:, :2]}}, "model 'b': "),
    ({"models": {"a": P6, "b": np.hstack([P6, np.zeros((6, 1))])}}, "6 rows of 3 classes, b 6 of 4"),
    (
        {"models": {"a": P6, "b": GaussianPredictions(np.zeros(6), np.ones(6))}},
        "model 'b': these are Gaussian predictions of numbers",
    ),
    ({"models": {"a": P6[:3], "b": P6[:3]}, "labels": Y6[:3]}, "are 3 rows; a comparison needs 4"),
    ({"clusters": [0, 0, 1, 1, 2, 2]}, "there are 3 clusters; a comparison needs 4"),
    ({"statistic": "ckse"}, "did you mean 'ckce'"),
    ({"lens": "top_lable"}, "there is no lens 'top_lable'"),
    ({"lens": "class:7"}, "the lens asks for class '7'"),
    ({"statistic": "ece", "lens": 3}, "lens is 3"),
    ({"confidence": 95}, "confidence is 95; give one between 0 and 1"),
    ({"confidence": None}, "confidence is None"),
    ({"intersections": 0}, "intersections is 0"),
    ({"statistic": lambda probs, labels: None}, "model 'a': the statistic <lambda> returned None"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED, ids=[text[:40] for _, text in REFUSED])
def test_refusals(options, message):
    with pytest.raises(InputError) as caught:
        quick(**{"models": {"a": P6, "b": P6[:, [1, 0, 2]]}, "labels": Y6, **options})
    assert message in str(caught.value)


def test_an_error_of_a_model_keeps_its_facts():
    broken = np.where(np.arange(6)[:, None] == 2, np.nan, P6)
    with pytest.raises(InputError) as caught:
        quick({"a": P6, "b": broken}, Y6)
    assert caught.value.fact("model") == "'b'"
    assert str(caught.value.fact("row")) == "row 2 (counting from 0)"
    assert "row 7 (counting from 0)" in str(caught.value.moved(5))


def test_columns_in_another_order_are_noticed():
    frame = pd.DataFrame(P6, columns=["ant", "bee", "cat"])
    with pytest.raises(InputError, match=r"model 'b': the columns are 'bee', 'ant', 'cat', .* row 0"):
        quick({"a": frame, "b": frame[["bee", "ant", "cat"]]}, Y6)


def test_clusters_must_be_those_of_the_same_rows():
    known, other = (sample(TRUTH, LABELS, clusters=codes).rows for codes in (CODES, CODES // 2))
    for second in (other, TRUTH):
        with pytest.raises(InputError, match="different clusters of rows"):
            quick({"a": known, "b": second})
    assert quick({"a": known, "b": sample(TRUTH, LABELS, clusters=CODES + 7).rows}).n_clusters == 40


# ------------------------------------------------------------------ the result


def test_the_result_is_frozen_and_plain():
    found = quick()
    with pytest.raises(FrozenInstanceError):
        found.lens = "top_label"
    with pytest.raises(ValueError, match="read-only"):
        found.values[0] = 1.0
    plain = found.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert quick().to_dict() == plain


def test_summary():
    found = quick(TWO, statistic=UnbiasedSKCE(Exponential(0.5)))
    assert found.summary() == str(found)
    assert found.summary().startswith(SUMMARY)
    assert "skce_uq (squared kernel calibration error): true 0.00763, sharp 0.0152, not tested" in said(
        found
    )


SUMMARY = """\
No clear difference. sharp's error is larger than true's by 5.7 points (95%: about −14.4 to
27.2), which may be chance.
Mean absolute error of the model's confidence in its top class, in points: true 14.0 (0.0 to
30.1), sharp 19.7 (1.0 to 39.6).

Largest error of a mean: true: none proved, the clearest −1.2 points overall (−12.2 to 10.7);
sharp: about 19 points too high overall (8.0 to 30.9).

  model  off by (95%)        mean error            more than true (about)
  true   14.0 (0.0 to 30.1)  −1.2 (−12.2 to 10.7)  nearest
  sharp  19.7 (1.0 to 39.6)  +19.0 (8.0 to 30.9)   +5.7 (−14.4 to 27.2)
"""


def test_summary_of_many_models():
    many = {f"model_{k}": softmax((1.0 + 0.02 * k) * np.log(TRUTH), axis=1) for k in range(7)}
    found = quick(many)
    lines = found.summary().splitlines()
    assert found.story.verdict in ("some", "alike")
    assert "2 more are below" in said(found)
    assert max(map(len, lines)) <= 100
    assert len(lines) <= 40
