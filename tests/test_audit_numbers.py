"""Audits of predicted distributions of numbers: what is looked at, words, sizes, power, validity."""

import importlib.resources
import json

import jsonschema
import numpy as np
import pandas as pd
import pytest
import scipy.stats
from support import binomial_limits

import caltest
from caltest import InputError, auditing, report
from caltest.auditing.options import LENSES_OF_NUMBERS
from caltest.predictive import Normal
from caltest.text import captions

QUICK = {"n_resamples": 199, "rng": 0}


def forecasts(n=1200, shift=0.0, scale=1.0, seed=0):
    """Normal forecasts whose outcomes are shifted by so many deviations, and spread so many times."""
    rng = np.random.default_rng(seed)
    mean, sd = rng.uniform(10.0, 50.0, n), rng.uniform(1.0, 3.0, n)
    return Normal(mean, sd=sd), mean + sd * (shift + scale * rng.normal(size=n))


@pytest.fixture(scope="module")
def narrow():
    """Intervals that are too narrow."""
    law, outcomes = forecasts(scale=1.4)
    return caltest.audit(law, outcomes, materiality=0.02, **QUICK)


@pytest.mark.slow
def test_what_is_looked_at(narrow):
    assert narrow.lenses == LENSES_OF_NUMBERS
    assert narrow.groups == ("predicted level", "predicted spread")
    assert narrow.n_classes == 0
    assert narrow.classes == ()
    whole = {view.lens: view for view in narrow.views if view.group is None}
    assert set(whole) == set(LENSES_OF_NUMBERS)
    assert {check.statistic for check in narrow.checks if check.view.lens == "distribution"} == {
        "bias",
        "spread",
        "pit_ks",
        "pit_ad",
    }
    levels = [view for view in narrow.views if view.group and view.lens == "quantile:0.5"]
    assert len(levels) == 20
    assert sum(view.rows for view in levels) == 2 * narrow.n_samples


@pytest.mark.slow
def test_intervals_that_are_too_narrow(narrow):
    assert narrow.verdict == "material"
    assert "% interval is too narrow: about " in narrow.headline
    worst = narrow.worst
    assert worst.lens.startswith("interval")
    assert worst.direction == "over"
    assert "points fewer than predicted (95% confidence)" in " ".join(str(narrow).split())
    assert "Until then, read the " in str(narrow)
    assert narrow.units.factor == pytest.approx(1.4, abs=0.1)
    assert narrow.units.factor_low < narrow.units.factor < narrow.units.factor_high
    assert narrow.units.low < 0.0 < narrow.units.high


@pytest.mark.slow
@pytest.mark.parametrize(("shift", "way"), [(0.6, "too low"), (-0.6, "too high")])
def test_medians_in_the_wrong_place(shift, way):
    law, outcomes = forecasts(shift=shift)
    found = caltest.audit(law, outcomes, **QUICK)
    assert found.rejected
    assert found.worst.lens.startswith("quantile")
    assert f" is {way}: about " in found.headline
    assert (found.units.predicted < found.units.observed) == (way == "too low")


def test_a_shift_is_not_corrected_a_second_time():
    """How far ends of intervals have to move is said of what the mean error leaves."""
    law, outcomes = forecasts(shift=0.6)
    found = caltest.audit(law, outcomes, lenses="quantile:0.5", n_resamples=99, rng=0)
    assert found.units.factor_low < 1.0 < found.units.factor_high
    assert found.units.factor == pytest.approx(1.0, abs=0.05)
    assert "Once it is taken off, for 95% intervals to contain" in " ".join(str(found).split())


def test_an_interval_that_a_shift_empties_is_not_called_too_narrow_alone():
    """With the median of the same rows wrong, too few outcomes in an interval may have two reasons."""
    law, outcomes = forecasts(shift=0.6)
    lenses, options = ["interval:0.5", "quantile:0.5"], {"n_resamples": 99, "rng": 0}
    both = caltest.audit(law, outcomes, lenses=lenses, **options)
    assert [captions.side(both, view) for view in both.views[:2]] == [
        "too narrow or off-centre",
        "too low",
    ]
    assert "◆ too narrow or off-centre" in report.to_html(both)
    centred = caltest.audit(*forecasts(scale=1.6), lenses=lenses, **options)
    assert centred.headline.startswith("The predicted 50% interval is too narrow: about ")


def test_intervals_that_are_too_wide():
    law, outcomes = forecasts(scale=0.6)
    assert " is too wide: about " in caltest.audit(law, outcomes, **QUICK).headline


def test_sizes_are_those_of_the_events(narrow):
    law, outcomes = forecasts(scale=1.4)
    view = next(each for each in narrow.views if each.key == ("interval:0.8", None))
    inside = np.abs(outcomes - law.mean) <= scipy.stats.norm.ppf(0.9) * law.factors[:, 0, 0]
    assert (view.predicted, view.observed) == pytest.approx((0.8, inside.mean()))


def test_levels_are_drawn(narrow):
    law, outcomes = forecasts(scale=1.4)
    drawn = next(view for view in narrow.views if view.key == ("distribution", None)).cumulative
    level = drawn.share.index(0.105)
    below = (outcomes <= law.quantile(np.full(law.n_samples, 0.105))).mean()
    assert drawn.difference[level] == pytest.approx(0.105 - below)
    assert 0.0 < drawn.band < max(map(abs, drawn.difference))


def test_the_call_names_columns_that_there_are():
    law, outcomes = forecasts(200)
    frame = pd.DataFrame({"region": np.arange(200) % 2})
    found = caltest.audit(law, outcomes, groups=frame, lenses="quantile:0.5", n_resamples=199, rng=0)
    assert "predicted level" in found.groups
    assert "groups=groups[['region']]" in found.call


@pytest.mark.slow
def test_a_group_is_named():
    law, outcomes = forecasts(2000)
    region = np.random.default_rng(1).choice(["north", "south", "west"], 2000)
    outcomes = np.where(region == "north", outcomes + 3.0, outcomes)
    found = caltest.audit(law, outcomes, groups={"region": region}, **QUICK)
    assert found.worst.group == auditing.Group.of(region="north")
    crossed = [view for view in found.views if view.group and len(view.group.conditions) > 1]
    assert not crossed  # what is predicted is not crossed with what is known


@pytest.mark.slow
def test_calibrated_forecasts_are_within_a_limit_with_enough_rows():
    law, outcomes = forecasts(40_000, seed=3)
    found = caltest.audit(law, outcomes, materiality=0.05, n_resamples=99, rng=0, statistics="citl")
    assert found.verdict == "within"
    assert "Use the predictions as they are" in str(found)
    few = caltest.audit(*forecasts(600), materiality=0.02, **QUICK)
    assert few.verdict == "undecided"
    assert few.rows_needed > 600


@pytest.mark.slow
def test_weights_gates_json_and_reports(narrow, tmp_path):
    law, outcomes = forecasts(scale=1.4)
    weighted = caltest.audit(law, outcomes, weights=np.linspace(0.5, 1.5, 1200), **QUICK)
    assert weighted.rejected
    assert weighted.units.factor_low is None
    schema = json.loads((importlib.resources.files("caltest.report") / "audit.schema.json").read_text())
    for each in (narrow, weighted):
        jsonschema.validate(each.to_dict(), schema)
    with pytest.raises(AssertionError, match="interval is too narrow"):
        caltest.assert_calibrated(law, outcomes, n_resamples=199)
    for name in ("audit.html", "audit.md", "audit.json", "audit.xml"):
        report.save(narrow, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000
    page = (tmp_path / "audit.html").read_text()
    assert "distributions of numbers" in page
    assert "level of the predicted quantile" in page
    assert "0 classes" not in page
    assert "Level by level, the worst first" in page
    assert page.count('<svg class="small"') == min(
        6, sum(v.cumulative is not None for v in narrow.views)
    )
    assert "an error was found" in page


@pytest.mark.slow
def test_counts_have_atoms():
    rng = np.random.default_rng(1)
    rate = rng.uniform(1.0, 30.0, 1500)
    fair = caltest.audit(scipy.stats.poisson(rate), rng.poisson(rate), **QUICK)
    assert not fair.rejected
    assert fair.units.predicted == pytest.approx(rate.mean())
    assert fair.units.low < 0.0 < fair.units.high
    high = caltest.audit(scipy.stats.poisson(rate), rng.poisson(0.8 * rate), **QUICK)
    assert "is too high" in high.headline


def test_what_is_not_for_numbers():
    law, outcomes = forecasts(200)
    for wrong, said in (
        ({"lenses": "canonical"}, "give 'distribution'"),
        ({"lenses": "top_label"}, "is for classes"),
        ({"event": "rain"}, "event is about probabilities of classes"),
        ({"sampling_rates": {0: 0.5}}, "sampling_rates is about probabilities of classes"),
    ):
        with pytest.raises(InputError, match=said):
            caltest.audit(law, outcomes, **wrong, **QUICK)
    probs = np.full(100, 0.5)
    with pytest.raises(InputError, match="'distribution' is for predicted distributions of numbers"):
        caltest.audit(probs, np.arange(100) % 2, lenses="distribution", **QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["normal", "poisson"])
def test_calibrated_forecasts_are_rejected_as_often_as_is_said(kind):
    rejected, runs = np.zeros(2), 120
    for seed in range(runs):
        rng = np.random.default_rng([7, seed])
        place = rng.uniform(1.0, 20.0, 300)
        law, outcomes = Normal(place, sd=1.0), rng.normal(place, 1.0)
        if kind == "poisson":
            law, outcomes = scipy.stats.poisson(place), rng.poisson(place)
        found = caltest.audit(law, outcomes, alpha=0.1, n_resamples=99, rng=seed)
        rejected += found.pvalue <= 0.1, any(not v.low <= 0.0 <= v.high for v in found.views if v.event)
    low, high = binomial_limits(runs, 0.1, 1e-4)
    assert low <= rejected[0] / runs <= high
    assert rejected[1] / runs <= high


@pytest.mark.slow
def test_power_of_the_default_audit():
    """Bias, spread, skewness, tails and a spread that depends on the level, at n = 500."""
    found, runs = dict.fromkeys(["bias", "spread", "skewness", "tails", "by level"], 0), 10
    for seed in range(runs):
        rng = np.random.default_rng([11, seed])
        mean, z = rng.uniform(0.0, 10.0, 500), rng.normal(size=500)
        outcomes = {
            "bias": mean + 0.25 + z,
            "spread": mean + 1.3 * z,
            "skewness": mean + rng.gamma(2.0, 2.0**-0.5, 500) - 2.0**0.5,
            "tails": mean + rng.standard_t(3.0, 500) / 3.0**0.5,
            "by level": mean + z * np.where(mean > 5.0, 1.4, 0.75),
        }
        for name, values in outcomes.items():
            found[name] += caltest.audit(Normal(mean, sd=1.0), values, n_resamples=199, rng=0).rejected
    assert all(count >= 0.8 * runs for count in found.values()), found


def test_an_outcome_near_the_largest_number_is_audited_without_a_warning():
    """Squares of such numbers overflow: nothing is said of the mean error in units of the outcome."""
    law, outcomes = forecasts(200)
    outcomes[2] = 1e308
    found = caltest.audit(law, outcomes, n_resamples=199, lenses=LENSES_OF_NUMBERS, rng=0)
    assert (found.impossible, found.views[0].impossible) == (1, 1)
    assert (found.units.predicted, found.units.low, found.units.high) == (None, None, None)
    assert found.headline == "In 1 of 200 rows the model gave probability 0 to the observed outcome."
    assert "in these" not in str(found).split("Errors in percentage points")[0]


def test_a_wrong_shape_is_not_laid_on_tails_that_are_right():
    """Outcomes of an exponential law, with the mean and the deviation that were predicted."""
    rng = np.random.default_rng(0)
    law = Normal(np.full(1500, 10.0), sd=np.full(1500, 2.0))
    outcomes = 8.0 + rng.exponential(2.0, 1500)
    found = caltest.audit(law, outcomes, lenses=["distribution", "quantile:0.5"], **QUICK)
    view = next(each for each in found.views if each.key == ("distribution", None))
    drawn = dict(zip(view.cumulative.share, view.cumulative.difference, strict=True))
    assert drawn[0.995] > 0.0  # too many lie above the highest quantiles
    low, high = max(drawn, key=drawn.get), min(drawn, key=drawn.get)
    title = captions.levels_title(found, view, view.cumulative)
    assert low < 0.2 < high < 0.6
    assert (
        title
        == f"Too few outcomes below the {100 * low:.3g}% and above the {100 * high:.3g}% quantile."
    )
    said = (
        "Such a shift and factor would change little: what is wrong is the shape of the distributions"
    )
    assert said in " ".join(str(found).split())
    assert "would change little" not in str(caltest.audit(*forecasts(shift=0.6), **QUICK))


def test_levels_are_named_where_the_line_is_furthest_off(narrow):
    """At one side of 0 alone, its end is near the level where it is furthest off."""
    view = next(view for view in narrow.views if view.key == ("distribution", None))

    def title(*difference):
        drawn = auditing.Cumulative((0.1, 0.3, 0.6, 0.9), (0.1, 0.3, 0.6, 0.9), difference, 0.05)
        return captions.levels_title(narrow, view, drawn)

    assert (
        title(-0.1, -0.06, 0.06, 0.08) == "Too many outcomes below the 10% and above the 90% quantile."
    )
    assert title(0.0, -0.1, -0.06, 0.0) == "Too many outcomes below the 30% quantile."
    assert title(0.0, 0.06, 0.1, 0.0) == "Too many outcomes above the 60% quantile."
    assert title(0.0, 0.0, -0.1, 0.0) == "Too few outcomes above the 60% quantile."
    assert title(-0.1, -0.1, -0.1, -0.1) == "Outcomes lie lower than predicted."


def test_cells_between_quantiles_are_audited_as_classes():
    law = caltest.predictive.Normal(np.zeros(200), sd=0.5)
    outcomes = np.random.default_rng(0).normal(size=200)
    found = caltest.audit(law, outcomes, lenses="pit:4", n_resamples=39, rng=0)
    assert {check.statistic for check in found.checks} == {"skce_uq", "ecd"}
    assert found.rejected
