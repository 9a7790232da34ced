"""Quantile forecasts: their law, the ranges of sums that ties leave, sizes and wrong input."""

from itertools import product

import numpy as np
import pytest
import scipy.stats
from support import binomial_limits, sentence

import caltest
from caltest import InputError
from caltest.data import Rows
from caltest.predictive import Quantiles

LEVELS = [0.01, 0.025, *(np.arange(1, 20) / 20).round(2), 0.975, 0.99]
NAMES = ["pit_ks", "pit_kuiper", "pit_cvm", "pit_ad", "bias", "spread", "coverage", "omnibus"]


def forecasts(kind, seed, n=60):
    rng = np.random.default_rng(seed)
    mean = rng.normal(size=n) if kind == "normal" else rng.uniform(2.0, 4.0, n)
    made = {"normal": scipy.stats.norm, "poisson": scipy.stats.poisson}[kind](mean)
    column = {"normal": scipy.stats.norm, "poisson": scipy.stats.poisson}[kind](mean[:, None])
    return Quantiles(LEVELS, column.ppf(LEVELS)), made.rvs(random_state=rng)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["normal", pytest.param("poisson")])
@pytest.mark.slow
def test_sizes(kind, name):
    sets = 100 if name == "omnibus" else 300
    pvalues = np.array(
        [
            caltest.test(*forecasts(kind, seed), name, n_resamples=19, rng=seed).pvalue
            for seed in range(sets)
        ]
    )
    for level in (0.1, 0.2):
        low, high = binomial_limits(sets, level)
        assert np.mean(pvalues <= level) <= high
        assert kind == "poisson" or np.mean(pvalues <= level) >= low


def test_an_error_is_as_small_as_the_cells_that_outcomes_leave_open_allow():
    law = Quantiles([0.2, 0.5, 0.8], [[1, 1, 2], [0, 1, 1], [0, 2, 3]])
    outcomes, weights = np.array([1.0, 1.0, 2.0]), np.array([1.0, 2.0, 0.5])
    first, last = (law.values < outcomes[:, None]).sum(1), (law.values <= outcomes[:, None]).sum(1)
    cells = np.array([*product(*(range(a, b + 1) for a, b in zip(first, last, strict=True)))])
    scores = weights @ ((cells[..., None] <= np.arange(3)) - law.levels) / weights.sum()
    nearest = np.clip(0.0, scores.min(axis=0), scores.max(axis=0))
    found = caltest.estimate(law, outcomes, "pit_ks", weights=weights)
    assert found == pytest.approx(np.abs(nearest).max())


def audited(levels, seed=0, n=400):
    """An audit of normal quantiles with one outcome in 16 far above."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 1 / 16, 5.0, rng.normal(size=n))
    law = Quantiles(levels, np.tile(scipy.stats.norm.ppf(levels), (n, 1)))
    return caltest.audit(law, y, n_resamples=99, alpha=0.1, rng=0)


@pytest.mark.parametrize(
    ("levels", "intervals", "quantiles"),
    [
        ([0.05, 0.25, 0.5, 0.75, 0.95], (0.5, 0.9), (0.05, 0.5, 0.95)),
        (LEVELS, (0.5, 0.8, 0.95), (0.025, 0.5, 0.975)),
        (np.arange(1, 10) / 10, (0.6, 0.8), (0.1, 0.5, 0.9)),
        ([0.1, 0.4, 0.5, 0.6, 0.9], (0.8,), (0.1, 0.5, 0.9)),
        ([0.5, 0.9], (), (0.5, 0.9)),
        ([0.07, 0.33, 0.61, 0.88], (), (0.07, 0.33, 0.61, 0.88)),
        ([0.3], (), (0.3,)),
    ],
)
def test_an_audit_looks_at_the_stated_levels_that_are_nearest(levels, intervals, quantiles):
    found = audited(levels, n=150)
    seen = dict.fromkeys(view.lens for view in found.views if view.group is None)
    events = [f"interval:{each}" for each in intervals] + [f"quantile:{each}" for each in quantiles]
    assert list(seen) == ["distribution", *events]
    assert not found.skipped


def test_groups_by_level_are_not_said_to_be_of_a_median_that_is_not_stated():
    law = Quantiles([0.07, 0.61], np.arange(300.0)[:, None] + [-1.5, 0.3])
    found = caltest.audit(law, np.arange(300.0), lenses="quantile:0.61", n_resamples=39, rng=0)
    note = " ".join(caltest.report.to_html(found).split())
    assert "Level: the predicted median (or the stated quantile nearest to it)." in note
    assert "Spread" not in note  # one for all rows


def test_an_audit_names_the_stated_quantile_that_outliers_pass():
    assert audited([0.05, 0.25, 0.5, 0.75, 0.95]).headline.startswith(
        "The predicted 95% quantile is too low: about "
    )


def test_lenses_are_of_stated_levels_and_of_outcomes_that_equal_no_quantile():
    law, y = forecasts("normal", 0)
    assert caltest.test(law, y, "citl", lens="quantile:0.5", n_resamples=19, rng=0).n_classes == 2
    view = caltest.lenses.find_lens("interval:0.9").show(Rows(law))
    inside = (y >= law.values[:, 3 - 1]) & (y <= law.values[:, -3])
    assert view.outcomes(law.outcomes(y)[None])[0].tolist() == inside.astype(int).tolist()
    assert view.rows.probs[0] == pytest.approx([0.1, 0.9])
    with pytest.raises(InputError, match="rows the outcome equals the quantile"):
        caltest.test(*forecasts("poisson", 0), "citl", lens="quantile:0.5")
    for lens, message in (("below:2", "needs whole distributions"), ("quantile:.33", "is 0.35")):
        with pytest.raises(InputError, match=message):
            caltest.test(law, y, "citl", lens=lens)


WRONG = {
    "crossing": (lambda: Quantiles([0.1, 0.5], [[1, 2], [2, 1]]), "row 1 .* 2 at the level 0.1 and 1"),
    "nothing in a row": (lambda: Quantiles([0, 0.5], [[1, 2], [1, np.nan]]), "0 and 1 is in row 1"),
    "percent": (lambda: Quantiles([5, 50], [[1, 2]]), "levels holds 5; .* 0.05 for 5%"),
    "K": (lambda: Quantiles([0.1, 0.5], [[1, 2, 3]]), r"values has shape \(1, 3\) for 2 levels"),
    "swapped": (lambda: Quantiles([[1, 2]], [0.1, 0.5]), "look swapped"),
    "transposed": (lambda: Quantiles([0.1, 0.5], [[1, 2, 3], [2, 3, 4]]), "give values.T"),
    "crps": (lambda: caltest.test(*forecasts("normal", 0), "crps"), "these are quantile forecasts"),
    "ecd": (lambda: caltest.test(*forecasts("normal", 0), "ecd"), "these are quantile forecasts"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_answered_in_a_sentence(case):
    sentence(*WRONG[case])


@pytest.mark.slow
def test_counts_of_influenza_hospitalisations_are_those_published(reference):
    """Outcomes at or below, and below, every quantile; inside the 95% interval by horizon."""
    pandas = pytest.importorskip("pandas")
    table = pandas.read_parquet(reference("flusight_quantiles_2023_2025.parquet"))
    rows = table[table.model == "FluSight-ensemble"].reset_index(drop=True)
    names = [name for name in rows.columns if name.startswith("q0")]
    law = Quantiles(None, rows[names])
    first, last = np.divmod(law.outcomes(rows.observation), len(names) + 1)
    at = [names.index(f"q{each}") for each in ("0.01", "0.025", "0.5", "0.975", "0.99")]
    assert [np.count_nonzero(first <= k) for k in at] == [193, 260, 4963, 10475, 10838]
    assert [np.count_nonzero(last <= k) for k in at] == [67, 149, 4767, 10458, 10828]
    audit = caltest.audit(
        law,
        rows.observation,
        lenses="interval:0.95",
        groups={"horizon": rows.horizon},
        n_resamples=99,
        rng=0,
    )
    seen = {v.group.label: v.observed for v in audit.views if v.group and v.group.column == "horizon"}
    assert [round(seen[f"horizon = {k}"], 4) for k in range(4)] == [0.9015, 0.8809, 0.8653, 0.8378]
