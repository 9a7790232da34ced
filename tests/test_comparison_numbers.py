"""`compare` of predicted distributions of numbers: coverage in points, scores, units, validity."""

import numpy as np
import pytest
import scipy.stats
from support import binomial_limits, some_fast

import caltest
from caltest import InputError
from caltest.predictive import GaussianPredictions, Normal, Point, Quantiles, Survival

LEVELS = [0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95]
ROWS = 400


def drawn(seed=0, n=ROWS):
    rng = np.random.default_rng(seed)
    mean = rng.uniform(10.0, 50.0, n)
    return mean, rng.normal(mean, 2.0), rng


MEAN, OUTCOMES, _ = drawn()
MODELS = {
    "good": Normal(MEAN, sd=2.0),
    "narrow": Normal(MEAN, sd=1.0),
    "high": Normal(MEAN + 2.0, sd=2.0),
}


def quick(models=MODELS, outcomes=OUTCOMES, **options):
    return caltest.compare(models, outcomes, **options)


def test_errors_by_hand():
    found = quick(statistic="pit_ad")
    assert (found.probability, found.statistic, found.n_classes) == ("interval:0.8", "pit_ad", None)
    assert found.nearest[0] == "good"
    assert found.values.argmin() == 0
    for each, (mean, sd) in zip(
        found.errors, [(MEAN, 2.0), (MEAN, 1.0), (MEAN + 2.0, 2.0)], strict=True
    ):
        inside = np.abs(OUTCOMES - mean) / sd <= scipy.stats.norm.ppf(0.9)
        assert (each.predicted, each.observed) == pytest.approx((0.8, inside.mean()))
        tenths = np.split(np.argsort(mean), 10)
        assert each.absolute[1] == pytest.approx(np.mean([abs(0.8 - inside[t].mean()) for t in tenths]))
        assert each.absolute[0] <= each.absolute[1] <= each.absolute[2]
        assert each.units.predicted - each.units.observed == pytest.approx(np.mean(mean - OUTCOMES))
        assert each.log_loss is each.brier is None
        assert each.crps == pytest.approx(np.mean(Normal(mean, sd=sd).crps(OUTCOMES)))
    gap = found.gap("narrow", "good")
    apart = MODELS["narrow"].crps(OUTCOMES) - MODELS["good"].crps(OUTCOMES)
    reach = scipy.stats.t.ppf(1.0 - 0.025 / 3, ROWS - 1) * apart.std() / ROWS**0.5
    assert gap.crps[1] == pytest.approx(apart.mean())
    assert gap.crps[2] - gap.crps[1] >= reach * (1.0 - 1e-9)
    assert gap.crps[0] > 0.0
    assert found.gap("good", "narrow").crps == pytest.approx((-gap.crps[2], -gap.crps[1], -gap.crps[0]))


def test_the_same_law_in_another_form_has_no_difference():
    (gap,) = quick({"normal": Normal(MEAN, sd=2.0), "scipy": scipy.stats.norm(MEAN, 2.0)}).gaps
    assert gap.crps == pytest.approx((0.0, 0.0, 0.0), abs=1e-6)  # of SciPy's it is integrated
    assert gap.mean[1] == gap.absolute[1] == 0.0


def rounded(mean, sd, levels=LEVELS):
    return Quantiles(levels, np.round(scipy.stats.norm(mean[:, None], sd).ppf(levels)))


def test_quantile_forecasts_count_ties_as_they_claim():
    whole = np.round(OUTCOMES)
    models = {"good": rounded(MEAN, 2.0), "wide": rounded(MEAN, 6.0), "law": Normal(MEAN, sd=2.0)}
    found = quick(models, whole, statistic="pit_ad")
    good, wide, _ = found.errors
    assert good.low < 0.0 < good.high
    assert good.absolute[0] == 0.0
    assert wide.error < 0.0
    assert wide.high < 0.0
    quantiles, score = models["good"].values, 0.0
    for level, at in zip(LEVELS, quantiles.T, strict=True):
        over = whole - at
        score += 2.0 * np.mean(np.where(over > 0.0, level, level - 1.0) * over) / len(LEVELS)
    assert good.crps == pytest.approx(score)
    assert any("mean quantile score" in note and "7 of their levels" in note for note in found.warnings)
    assert found.values.argmax() == 1


def test_levels_in_common_are_those_compared():
    one = rounded(MEAN, 2.0, [0.1, 0.3, 0.5, 0.9])
    found = quick({"one": one, "other": rounded(MEAN, 2.0, [0.1, 0.5, 0.7, 0.9])})
    assert (found.probability, found.gaps[0].crps) == ("interval:0.8", (0.0, 0.0, 0.0))
    with pytest.raises(InputError, match="no level is stated in every row"):
        quick({"one": rounded(MEAN, 2.0, [0.4]), "other": rounded(MEAN, 2.0, [0.5])})
    assert quick({"a": rounded(MEAN, 2.0, [0.5]), "b": one}).probability == "quantile:0.5"


@pytest.mark.slow
def test_an_event_weights_groups_and_clusters():
    _, _, rng = drawn(3)
    options = {"groups": {"half": np.arange(ROWS) % 2}, "weights": rng.exponential(size=ROWS)}
    found = quick(lens="above:30", statistic="citl", **options)
    assert found.event == "the outcome is above 30"
    assert [each.group is None for each in found.errors] == [True] * 3 + [False] * 6
    assert found.gaps[0].mean[0] == found.gaps[0].mean[2]  # the same event: what was observed cancels
    together = quick(clusters=np.arange(ROWS) // 4)
    assert together.n_clusters == 100
    assert together.errors[0].high > quick().errors[0].high


def test_what_is_read():
    text = " ".join(str(quick()).split())
    assert text.startswith("Clear winner. good is better calibrated than high by ")
    assert "Mean absolute error of the predicted 80% interval, in points: good" in text
    assert "3 models on 400 rows of numbers" in text
    assert "mean error (about)" in text
    assert quick().to_dict()["errors"][2]["units"]["predicted"] == pytest.approx(MEAN.mean() + 2.0)


def of_times(seed, n=1500, factor=1.4):
    """Two models of times that are censored, the first of hazards that are too high."""
    rng, grid = np.random.default_rng(seed), np.linspace(0.05, 4.0, 80)
    rate = rng.uniform(0.3, 1.0, n)
    time, end = rng.exponential(1.0 / rate), rng.uniform(0.3, 1.0, n) + rate * 2.0
    laws = [Survival(np.exp(-np.outer(each * rate, grid)), grid) for each in (factor, 1.0)]
    return dict(zip("ab", laws, strict=True)), (np.minimum(time, end), time <= end), rate


def test_times_are_compared_by_the_risk_until_a_horizon():
    models, seen, rate = of_times(0)
    found = quick(models, seen, lens="until:1", groups={"fast": rate > 0.6})
    assert (found.probability, found.loss, found.nearest) == ("until:1", "brier", ["b", "a"])
    a, b = found.errors[:2]
    assert (a.predicted, b.predicted) == pytest.approx(
        (1 - np.exp(-np.outer([1.4, 1], rate))).mean(1), abs=1e-3
    )
    assert (a.low, b.absolute[0]) > (0.0, -1e-9)
    gap = found.gap("a", "b")
    assert gap.absolute[1] == pytest.approx(a.absolute[1] - b.absolute[1])
    assert gap.mean == pytest.approx((a.predicted - b.predicted,) * 3)
    assert gap.brier[0] < gap.brier[1] == pytest.approx(a.brier - b.brier)
    assert "rows of times, lens until:1" in " ".join(str(found).split())
    assert quick(models, seen).probability.startswith("until:")
    for options, message in (
        ({"lens": "quantile:0.5"}, "give a lens such as 'until:365'"),
        ({"clusters": np.arange(1500) // 2}, "rows are independent and count alike"),
    ):
        with pytest.raises(InputError, match=message):
            quick(models, seen, **options)


def test_where_nothing_is_censored_times_are_labels():
    models, (time, _), _ = of_times(1)
    found = quick(models, (time, np.ones(len(time))), lens="until:1")
    known = quick({name: law.risk(1.0) for name, law in models.items()}, time <= 1.0)
    for one, other in zip(found.errors, known.errors, strict=True):
        assert (one.predicted, one.observed) == pytest.approx((other.predicted, other.observed))
        assert one.absolute[1] == pytest.approx(other.absolute[1])
        assert one.brier == pytest.approx(other.brier, abs=2e-3)
    assert found.gaps[0].absolute == pytest.approx(known.gaps[0].absolute, abs=5e-3)


@pytest.mark.parametrize(
    ("models", "outcomes", "message"),
    [
        ({"a": MODELS["good"], "b": np.full(ROWS, 0.5)}, OUTCOMES, "model 'b': "),
        ({"a": MODELS["good"], "b": Normal(MEAN[1:], sd=1.0)}, OUTCOMES, "model 'b': the outcomes"),
        (
            {"a": GaussianPredictions(np.zeros((9, 2)), np.eye(2)), "b": MODELS["good"]},
            np.zeros((9, 2)),
            "entry at a",
        ),
    ],
)
def test_what_is_refused(models, outcomes, message):
    with pytest.raises(InputError, match=message):
        quick(models, outcomes)
    with pytest.raises(InputError, match="distributions of numbers"):
        caltest.ReliabilityDisplay.from_predictions(MODELS, OUTCOMES)


PROBS = np.column_stack([MEAN, 60.0 - MEAN]) / 60.0
CLASSES = {"a": PROBS, "b": PROBS[:, ::-1]}


@pytest.mark.parametrize(
    ("models", "outcomes", "statistic", "message"),
    [
        (MODELS, OUTCOMES, "ece", "model 'good': 'ece' is for probabilities of classes, and these are"),
        (CLASSES, OUTCOMES > 30.0, "crps", "model 'a': 'crps' is for distributions of numbers, and"),
    ],
)
def test_a_statistic_of_other_outcomes_is_refused_in_one_sentence(models, outcomes, statistic, message):
    with pytest.raises(InputError, match=message) as raised:
        quick(models, outcomes, statistic=statistic)
    text = str(raised.value)
    assert text.endswith(".")
    assert text.count(". ") == text.count("\n") == 0


@pytest.mark.parametrize("clusters", [None, pytest.param(np.arange(ROWS) // 4, marks=pytest.mark.slow)])
def test_the_kernel_error_is_that_of_numbers(clusters):
    models = {"good": MODELS["good"], "high": MODELS["high"]}
    given = {"statistic": "skce_uq", "clusters": clusters}
    found = quick(models, **given)
    expected = [caltest.estimate(law, OUTCOMES, **given) for law in models.values()]
    assert found.values == pytest.approx(expected, rel=1e-9)
    law = scipy.stats.poisson(MEAN)
    with pytest.raises(InputError, match="or Gaussian predictions of numbers or members"):
        quick({"a": law, "b": law}, np.round(OUTCOMES), **given)


@pytest.mark.level
@pytest.mark.parametrize("kind", ["calibrated", "counts", "quantiles", "clusters", "times"])
def test_intervals_hold_as_often_as_they_say(kind):
    """Two models that are equally good: intervals of errors and of scores hold."""
    times = 40 if kind in ("counts", "clusters") else 100  # which take longer
    exact = score = 0
    for seed in range(times):
        rng, options = np.random.default_rng(seed), {}
        mean = rng.uniform(2.0, 9.0, 200)
        noise = rng.normal(size=200)
        if kind == "clusters":
            noise, options = np.repeat(noise[:50], 4), {"clusters": np.repeat(np.arange(50), 4)}
        half = rng.random(200) < 0.5
        means = [np.where(each, mean * 1.1, mean) for each in (half, ~half)]
        y, laws = mean + noise, [Normal(each, sd=1.0) for each in means]
        if kind in ("counts", "quantiles"):
            y = scipy.stats.poisson(mean).ppf(scipy.stats.norm.cdf(noise))
            laws = [scipy.stats.poisson(each) for each in means]
        if kind == "quantiles":
            laws = [Quantiles(LEVELS, law.ppf(np.array(LEVELS)[:, None]).T) for law in laws]
        if kind == "times":
            _, y, rate = of_times(seed, 400, 1.0)
            halves = [
                np.where(each, rate * 1.2, rate)
                for each in (np.arange(400) % 2 < 1, np.arange(400) % 2 > 0)
            ]
            grid = np.linspace(0.05, 4.0, 80)
            laws, options = (
                [Survival(np.exp(-np.outer(x, grid)), grid) for x in halves],
                {"lens": "until:1"},
            )
        found = quick(dict(zip("ab", laws, strict=True)), y, **options)
        if kind == "calibrated":
            half = scipy.stats.norm.ppf(0.9)
            rates = [
                np.mean(np.diff(scipy.stats.norm.cdf(each - mean + np.c_[[-half, half]]), axis=0))
                for each in means
            ]
            misses = [not e.low <= 0.8 - r <= e.high for e, r in zip(found.errors, rates, strict=True)]
            exact += any(misses)
        if kind == "times":
            errors = [np.mean(np.exp(-rate) - np.exp(-x)) for x in halves]
            exact += any(not e.low <= r <= e.high for e, r in zip(found.errors, errors, strict=True))
        low, _, high = getattr(found.gaps[0], found.loss)
        score += not low <= 0.0 <= high
    most = binomial_limits(times, 0.05)[1]
    assert exact / times <= most
    assert score / times <= most


OF_POINTS = ["mean", "median", "quantile:0.9", "expectile:0.9"]


def points(functional, **more):
    return {"high": Point(MEAN + 1.0, functional, **more), "good": Point(MEAN, functional, **more)}


@pytest.mark.parametrize("functional", some_fast(OF_POINTS, "mean", "quantile:0.9"))
def test_points_are_compared_by_the_loss_that_is_consistent(functional):
    level, squared = 0.9 if ":" in functional else 0.5, functional in ("mean", "expectile:0.9")
    apart = np.array([MEAN + 1.0 - OUTCOMES, MEAN - OUTCOMES])
    weighted = np.where(apart >= 0.0, 1.0 - level, level) * 2.0 * apart
    losses = weighted * apart if squared else np.abs(weighted)
    found = quick(points(functional))
    measure, d = "squared" if squared else "crps", losses[0] - losses[1]
    assert (found.functional, found.loss) == (functional, measure)
    assert [getattr(x, measure) for x in found.errors] == pytest.approx(losses.mean(axis=1))
    reach = scipy.stats.t.ppf(0.975, ROWS - 1) * d.std() / ROWS**0.5
    ends = pytest.approx((d.mean() - reach, d.mean(), d.mean() + reach))
    assert getattr(found.gap("high", "good"), measure) == ends
    mean = (weighted if squared else level - (apart >= 0.0)).mean(axis=1)
    assert [x.error for x in found.errors] == pytest.approx(mean)
    best = "high" if d.mean() < 0.0 else "good"
    assert (found.nearest[0], f"{best} has a lower " in str(found)) == (best, True)


def test_points_of_different_functionals_are_refused():
    for other, words in ((Point(MEAN, "median"), "median"), (MODELS["good"], "distributions")):
        with pytest.raises(InputError, match=f"these state {words}, and those of the first model mean"):
            quick({"a": Point(MEAN), "b": other})
    with pytest.raises(InputError, match="leave the lens out"):
        quick(points("mean"), lens="above:30")
    assert "rarer than 1 in 133" in quick(points("mean")).warnings[-1]
    assert not quick(points("mean", low=-100, high=200)).warnings


@pytest.mark.level
def test_paired_intervals_of_points_miss_as_rarely_as_they_say():
    missed = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        x, unit = rng.uniform(1.0, 3.0, 200), rng.normal(size=50).repeat(4)
        y = x * (1.0 + 0.3 * unit) * rng.gamma(4.0, 0.25, 200)
        models = {"a": Point(x + 0.4), "b": Point(x - 0.1)}
        (gap,) = caltest.compare(models, y, clusters=np.arange(50).repeat(4)).gaps
        missed += not gap.squared[0] <= 0.4**2 - 0.1**2 <= gap.squared[2]
    assert missed / 300 <= binomial_limits(300, 0.05)[1]
