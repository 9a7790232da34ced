"""The omnibus: standardised parts, their combination, exactness, power, p-values of the parts."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from support import P6, Y6, binomial_limits, central_moments, dirichlet, every_outcome, labels_from

import caltest
from caltest import InputError
from caltest.data import Rows
from caltest.forms import Combined, Component, HasMoments
from caltest.forms.base import BrownianLimit, Moments
from caltest.kernels import Exponential
from caltest.lenses import Reduction, TopLabel
from caltest.nulls.asymptotic import tails
from caltest.statistics import ECD, KolmogorovSmirnov, Kuiper, Omnibus, UnbiasedSKCE
from validation.generative import local

TWO = Rows(np.column_stack([1.0 - P6[:, 0], P6[:, 0]]))


class Known(HasMoments):
    """A statistic whose moments are what they are said to be: the count of label 1, less 2."""

    def __init__(self, mean=0.0, variance=4.0, skewness=0.0, resolution=0.0, offset=2.0):
        self._moments = Moments(mean, variance, skewness)
        self._resolution, self.offset = resolution, offset

    @property
    def resolution(self):
        return self._resolution

    def moments(self, workers=None):
        return self._moments

    def of_labels(self, labels, workers=None):
        return np.sum(labels == 1, axis=1) - self.offset


# ------------------------------------------------------------------ the combination, by hand

LABELS = np.array([[0, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1]])  # values −2, 0, 2; z = −1, 0, 1


def test_by_hand():
    one = Component("one-sided", Known())
    form = Combined((one, Component("two-sided", Known(variance=1.0), "two-sided")))
    assert form.names == ("one-sided", "two-sided")
    assert form.values(LABELS).tolist() == [[-2.0, -2.0], [0.0, 0.0], [2.0, 2.0]]
    expected = np.column_stack([-norm.logsf([-1.0, 0.0, 1.0]), -np.log(2.0 * norm.sf([2.0, 0.0, 2.0]))])
    assert form.evidence(form.values(LABELS)) == pytest.approx(expected, abs=1e-12)
    assert form.of_labels(LABELS) == pytest.approx(expected.max(axis=1), abs=1e-12)


def test_parts_look_at_labels_of_their_own():
    view = Reduction(Rows(np.full((4, 2), 0.5)), lambda labels, rows=None: 1 - labels)
    mirrored = Component("mirrored", Known(), view=view)
    assert Combined((mirrored,)).values(LABELS)[:, 0].tolist() == [2.0, 0.0, -2.0]


def test_a_part_that_cannot_vary_says_nothing():
    form = Combined((Component("constant", Known(variance=0.0)),))
    assert not form.evidence(form.values(LABELS)).any()
    assert form.resolution == 0.0


def test_a_part_that_only_rounds_has_a_deviation_well_above_that():
    form = Combined((Component("rounding", Known(variance=1e-20, resolution=1e-12), "two-sided"),))
    assert form.moments_of_parts()[0].variance == pytest.approx(1e-16)
    assert form.evidence(np.array([[1e-12], [1.0]])).ravel() == pytest.approx([0.0, 5e15], 1e-9, 1e-3)
    assert 0.0 < form.resolution < 0.02


def test_the_impossible_is_infinite_evidence():
    form = Combined((Component("skewed", Known(skewness=-2.0), "two-sided"), Component("x", Known())))
    found = form.evidence(np.array([[np.inf, 0.0], [0.0, 0.0]]))
    assert found[0, 0] == np.inf
    assert np.isfinite(found[1]).all()
    assert found.max(axis=1)[0] == np.inf


@pytest.mark.parametrize("skewness", [-1e6, -3.0, -0.5, 0.0, 1e-9, 0.5, 2.0, 3.0, 1e12])
@pytest.mark.parametrize("alternative", ["greater", "two-sided"])
def test_resolution_covers_what_rounding_does(skewness, alternative):
    """Whatever the skewness, a move of a value by its rounding moves the evidence by less than that."""
    known = Known(variance=1.0, skewness=skewness, resolution=1e-6)
    form = Combined((Component("x", known, alternative),))
    values = np.linspace(-40.0, 40.0, 20_001)[:, None]
    moved = form.evidence(values + known.resolution) - form.evidence(values)
    assert np.abs(moved).max() <= form.resolution
    assert form.resolution <= 1e-3
    assert np.isfinite(form.evidence(values)).all()


# ------------------------------------------------------------------ moments of the parts


@pytest.mark.parametrize("predictions", [Rows(P6), TWO], ids=["3 classes", "2 classes"])
def test_moments_by_enumeration(predictions):
    """Kernel parts and the ECD: exactly; evidence is about −log of the tail."""
    outcomes, chances = every_outcome(predictions.probs)
    form = Omnibus().given(predictions)
    values = form.values(outcomes)
    for known, part, column in zip(form.moments_of_parts(), form.components, values.T, strict=True):
        if hasattr(part.form, "moments"):
            mean, variance, third = central_moments(column, chances)
            assert known.mean == pytest.approx(mean, abs=1e-12)
            assert known.variance == pytest.approx(variance, rel=1e-9)
            assert known.skewness == pytest.approx(third / variance**1.5, rel=1e-7)
    assert [hasattr(part.form, "moments") for part in form.components] == [True, True, True, False]


def test_moments_of_brownian_functionals_by_quadrature():
    for functional in ("maximum", "range"):
        raw = [
            quad(lambda x, k=k, f=functional: k * x ** (k - 1) * tails(f, x)[0], 0, 12, limit=200)[0]
            for k in (1, 2, 3)
        ]
        known = BrownianLimit(functional, 2.0, 100.0).moments
        variance = raw[1] - raw[0] ** 2
        third = raw[2] - 3 * raw[0] * raw[1] + 2 * raw[0] ** 3
        assert known.mean == pytest.approx(2.0 * raw[0], rel=1e-7)
        assert known.variance == pytest.approx(4.0 * variance, rel=1e-7)
        assert known.skewness == pytest.approx(third / variance**1.5, rel=1e-6)
    assert BrownianLimit("range", 0.0, 0.0).moments.variance == 0.0


@pytest.mark.parametrize("statistic", [KolmogorovSmirnov, Kuiper])
@pytest.mark.parametrize("n", [60, 500])
def test_moments_of_paths_with_steps(statistic, n):
    """With the steps taken into account, the mean is within a tenth of a standard deviation."""
    p = np.random.default_rng(n).uniform(0.05, 0.95, n)
    predictions = Rows(np.column_stack([1.0 - p, p]))
    form = statistic().given(predictions)
    values = form.of_labels(predictions.sampler(0).draw(0, 20_000))
    known = form.brownian_limit.moments
    unstepped = replace(form.brownian_limit, step=0.0).moments
    error = abs(known.mean - values.mean()) / values.std()
    assert error < 0.1
    assert error < abs(unstepped.mean - values.mean()) / values.std()
    assert np.sqrt(known.variance) == pytest.approx(values.std(), rel=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("m", [2, 3, 10])
def test_evidence_is_the_logarithm_of_a_tail(m):
    """All parts on one scale: at .05, every part alone rejects .03 to .08 of what is drawn."""
    predictions = Rows(dirichlet(500, m, m, 1.0 / m))
    form = Omnibus().given(predictions)
    found = form.evidence(form.values(predictions.sampler(1).draw(0, 1999)))
    shares = (found >= -np.log(0.05)).mean(axis=0)
    assert (shares > 0.03).all()
    assert (shares < 0.08).all()


# ------------------------------------------------------------------ what is looked at


def test_parts_are_the_statistics_they_are_named_after():
    probs = dirichlet(80, 4, 0, 0.4)
    labels = labels_from(probs, np.random.default_rng(0))
    bandwidth = Exponential().fitted(probs).bandwidth
    result = caltest.test(probs, labels, "omnibus", n_resamples=19, rng=0)
    assert [part.name for part in result.parts] == [
        "skce_uq, 0.25 × bandwidth", "skce_uq", "ecd", "kuiper, top_label",
    ]  # fmt: skip
    assert [part.value for part in result.parts] == pytest.approx(
        [
            caltest.estimate(probs, labels, UnbiasedSKCE(Exponential(0.25 * bandwidth))),
            caltest.estimate(probs, labels, "skce_uq"),
            caltest.estimate(probs, labels, "ecd"),
            caltest.estimate(probs, labels, "kuiper", lens=TopLabel()),
        ],
        rel=1e-9,
    )
    assert result.parameters["bandwidth"] == bandwidth
    assert result.parameters["multiples"] == [0.25, 1.0]


def test_of_two_classes_kuiper_is_of_the_probability_itself():
    result = caltest.test(TWO, [0, 1, 1, 0, 1, 0], "omnibus", n_resamples=9, rng=0)
    assert result.parts[-1].name == "kuiper"
    assert result.parts[-1].value == caltest.estimate(TWO, [0, 1, 1, 0, 1, 0], "kuiper")


def test_multiples_are_ones_own():
    result = caltest.test(P6, Y6, Omnibus(multiples=[1 / 16, 4]), n_resamples=9, rng=0)
    assert [part.name for part in result.parts[:2]] == [
        "skce_uq, 0.0625 × bandwidth",
        "skce_uq, 4 × bandwidth",
    ]
    assert Omnibus(multiples=1.0).multiples == (1.0,)


# ------------------------------------------------------------------ the default


def test_the_default_goes_with_the_null():
    assert caltest.test(P6, Y6, n_resamples=9, rng=0).name == "omnibus"
    assert caltest.test(P6, Y6, null="monte_carlo", n_resamples=9, rng=0).name == "omnibus"
    assert caltest.test(P6, Y6, null="moments", rng=0).name == "skce_uq"
    assert caltest.test(P6, Y6, tolerance=0.1, n_resamples=9, rng=0).name == "scan"
    assert caltest.estimate(P6, Y6) == caltest.estimate(P6, Y6, "skce_uq")


def test_other_nulls_are_refused():
    for null in ("moments", "normal", "consistency", "bound"):
        with pytest.raises(InputError, match="possible here: monte_carlo"):
            caltest.test(P6, Y6, "omnibus", null=null)


# ------------------------------------------------------------------ p-values of the parts


def test_adjusted_pvalues_of_the_parts():
    for seed in range(20):
        probs = dirichlet(40, 3, seed)
        labels = labels_from(
            probs**1.5 / (probs**1.5).sum(axis=1, keepdims=True), np.random.default_rng(seed)
        )
        result = caltest.test(probs, labels, n_resamples=99, rng=seed)
        raw = np.array([part.pvalue for part in result.parts])
        adjusted = np.array([part.adjusted for part in result.parts])
        assert (adjusted >= raw).all()
        assert (adjusted <= np.minimum(1.0, 4 * raw + 1e-12) + 0.1).all()
        assert adjusted.min() == pytest.approx(result.pvalue, abs=1e-12)  # of a maximum, the same
        alone = caltest.test(probs, labels, "ecd", n_resamples=99, rng=seed, alternative="two-sided")
        assert abs(alone.pvalue - raw[2]) < 0.15  # two tails there, their evidence here


def test_parts_in_json_and_print():
    result = caltest.test(P6, Y6, n_resamples=19, rng=0)
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert [part["name"] for part in plain["parts"]] == [part.name for part in result.parts]
    assert set(plain["parts"][0]) == {"name", "value", "pvalue", "adjusted"}
    lines = result.summary().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("  components"))
    for line, part in zip(lines[start:], result.parts, strict=False):
        assert f"{part.name} = {part.value:.4g}".replace("-", "−") in line
        assert line.endswith(f"adjusted {part.adjusted:.4g}")
    impossible = caltest.test([[1.0, 0.0], [0.5, 0.5]], [1, 0], n_resamples=19, rng=0)
    found = json.loads(json.dumps(impossible.to_dict(draws=True), allow_nan=False))
    assert found["statistic"] == "inf"
    assert found["parts"][2]["value"] == "inf"
    assert caltest.test(P6, Y6, "ecd", n_resamples=19, rng=0).to_dict()["parts"] == []


# ------------------------------------------------------------------ exactness


@pytest.mark.parametrize("doubt", [1e-14, 1e-10, 1e-6, 1e-4])
@pytest.mark.parametrize("m", [2, 3, 10])
@pytest.mark.parametrize("n", [2, 200])
def test_all_but_certain_labels_are_no_evidence(doubt, m, n):
    """The likeliest labels come true, and are what is drawn: whatever rounding does, p is 1 or near."""
    rng = np.random.default_rng(n)
    share = doubt * rng.uniform(0.5, 1.0, (n, 1)) * rng.dirichlet(np.ones(m - 1), n)
    probs = np.insert(share, 0, 1.0 - share.sum(axis=1), axis=1)
    rolled = np.array([np.roll(row, i % m) for i, row in enumerate(probs)])
    result = caltest.test(rolled, np.arange(n) % m, n_resamples=199, rng=n)
    assert result.pvalue > 1.0 - 1.2 * n * doubt - 0.05
    for part in result.parts:
        assert min(part.pvalue, part.adjusted) > 1.0 - 1.2 * n * doubt - 0.05


@pytest.mark.level
def test_calibrated_data_that_are_nearly_certain():
    """Some rows in doubt among many that are all but certain: p is uniform at most."""
    small = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        doubt = 10.0 ** rng.uniform(-14, -1, 40)
        probs = np.column_stack([1 - doubt, doubt])
        labels = (rng.random(40) < doubt).astype(int)
        small += caltest.test(probs, labels, n_resamples=19, rng=seed).pvalue <= 0.1
    assert small / 300 <= binomial_limits(300, 0.1)[1]


# ------------------------------------------------------------------ hostile input


def test_uniform_predictions_leave_the_ecd_nothing_but_rounding():
    form = ECD().given(Rows(np.full((50, 7), 1 / 7)))
    omnibus = Omnibus().given(Rows(np.full((50, 7), 1 / 7)))
    assert form.table.std() < 1e-15
    assert 0.0 < omnibus.moments_of_parts()[2].variance < 1e-18


@pytest.mark.parametrize("doubt", [1e-12, 1e-16, 1e-22, 1e-100, 1e-200, 1e-300, 5e-324])
@pytest.mark.parametrize("m", [2, 3])
def test_all_but_certain_and_wrong_once(doubt, m):
    """One label that was all but excluded speaks, whatever the others' deviations round to."""
    probs = np.zeros((60, m))
    probs[:, 0], probs[:, 1] = 1.0 - doubt, doubt
    wrong, right = [0] * 59 + [1], [0] * 60
    assert caltest.test(probs, wrong, n_resamples=99, rng=0).pvalue == 0.01
    assert caltest.test(probs, right, n_resamples=99, rng=0).pvalue == 1.0


# ------------------------------------------------------------------ power


def powers(make, statistics, sets=40):
    found = dict.fromkeys(statistics, 0)
    for seed in range(sets):
        data = make(seed)
        for name in statistics:
            result = caltest.test(data.probs, data.labels, name, n_resamples=79, rng=seed)
            found[name] += result.pvalue <= 0.05
    return {name: count / sets for name, count in found.items()}


@pytest.mark.level
def test_power_against_a_local_error():
    found = powers(
        lambda seed: local(500, [0.7] * 3, region=(0.5, 0.75), strength=0.6, rng=seed),
        ("omnibus", "ecd", "kuiper", "skce_uq"),
    )
    best = max(found["ecd"], found["kuiper"], found["skce_uq"])
    assert best > 0.8
    assert found["omnibus"] > 0.85 * best
