"""The order of rows: hits that follow hits, and PITs that follow PITs, by hand; levels and power."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from support import binomial_limits, command

import caltest
from caltest import InputError
from caltest.predictive import Distribution, Normal, Point, Quantiles

T = 250
DAYS = pd.date_range("2023-01-30", periods=T)
HITS = np.isin(np.arange(T), [20, 21, 22, 30, 90, 91, 200])
RETURNS = np.where(HITS, -3.0, 0.1)
AT_RISK = Quantiles([0.01], np.full((T, 1), -2.3))


def tried(predicted, outcomes, statistic="runs", **how):
    return caltest.test(predicted, outcomes, statistic, **{"order": True, "rng": 0} | how)


def persistent(rng, first, after):
    """Hits whose chance depends on whether there was one before."""
    found = [False]
    for chance in rng.random(T):
        found.append(chance < (after if found[-1] else first))
    return np.array(found[1:])


# ------------------------------------------------------------------ values, and what order is


def test_values_by_hand():
    places = np.flatnonzero(HITS)
    gaps = (places[:, None] - places)[np.tril_indices(len(places), -1)]
    runs, decay = tried(AT_RISK, RETURNS), tried(AT_RISK, RETURNS, "decay")
    assert (runs.statistic, runs.pvalue, runs.guarantee) == (3, 0.001, "exact")
    assert decay.statistic == pytest.approx((0.9**gaps).sum())
    found = "Hits follow hits: 3 came right after another, and 0.17 in random order"
    assert runs.order == f"{found} (7 hits in 250 rows, 2.5 predicted)."
    assert found in " ".join(runs.summary().split())
    many = tried(AT_RISK, np.where(np.arange(T) % 9, 0.1, -3.0), "decay")
    assert (many.pvalue, many.order[:45]) == (0.001, "No more hits follow hits than so many must: Σ")


def test_autocorrelations_by_hand():
    x, z = np.random.default_rng(0).normal(size=T), []
    for values in (stats.norm.cdf(x), np.abs(stats.norm.cdf(x) - 0.5)):
        c = values - values.mean()
        z.append([c[k:] @ c[:-k] / (c @ c) * T / np.sqrt(T - k) for k in range(1, 6)])
    expected = max(*np.abs(z[0]), abs(sum(z[1])) / np.sqrt(5))
    assert tried(Normal(np.zeros(T), 1.0), x, "autocorrelation").statistic == pytest.approx(expected)


@pytest.mark.parametrize("column", [DAYS, DAYS.strftime("%Y-%m-%d"), np.arange(T) - 7.5])
def test_a_column_sorts_the_rows(column):
    places = np.random.default_rng(1).permutation(T)
    found = tried(AT_RISK, RETURNS[places], "decay", order=[column[k] for k in places], n_resamples=9)
    assert found.statistic == pytest.approx(tried(AT_RISK, RETURNS, "decay").statistic)
    with pytest.raises(InputError, match="indexes of labels and order differ"):
        tried(AT_RISK, pd.Series(RETURNS), order=pd.Series(column[places], index=places))


def test_a_column_ranks_as_it_is():
    autumn = pd.date_range("2024-10-27", periods=T, freq="h", tz="Europe/Berlin")
    whole, expected = 10**17 + np.arange(T), tried(AT_RISK, RETURNS).statistic
    for column in (whole, whole.tolist(), whole.astype("M8[ns]"), [x.to_pydatetime() for x in autumn]):
        assert tried(AT_RISK, RETURNS, order=column, n_resamples=9).statistic == expected
    assert tried(AT_RISK, RETURNS, order=np.True_, n_resamples=9).statistic == expected


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_outcome_that_equals_the_outermost_quantile_is_no_hit(sign):
    values = np.sort(sign * np.array([-2.3, 0.0]))
    at_risk = Quantiles([0.01, 0.5] if sign > 0 else [0.5, 0.99], np.tile(values, (T, 1)))
    found = tried(at_risk, sign * np.where(np.arange(T) == 91, -2.3, RETURNS), n_resamples=9)
    assert (found.statistic, found.lens) == (2, f"quantile:{0.01 if sign > 0 else 0.99}")


# ------------------------------------------------------------------ what is refused

VARIED = np.linspace(0.2, 0.6, T)
EVENTS = (np.random.default_rng(3).random(T) < VARIED).astype(int)
WRONG = {
    "none are drawn; give null='normal'": {"null": "monte_carlo"},
    "of one chance, and these vary; use 'runs'": {"statistic": "decay"},
    "order is what 'runs', 'decay' and 'autocorrelation' look at": {"statistic": "ecd"},
    "looks at the order of rows; give caltest.test an order": {"order": False},
    "every row, and row 1 .* is inf": {"order": [0, np.inf, *range(2, T)]},
    "^order has 3 entries": {"order": [1, 2, 3]},
    "order is the same in row 0 .* and another": {"order": [0, 0, *range(1, T - 1)]},
    "and row 0 .* is 'May'": {"order": ["May", *range(1, T)]},
    "clusters, weights or censored times": {"clusters": np.arange(T) // 5},
}


@pytest.mark.parametrize("found", WRONG)
def test_what_has_no_order_is_refused(found):
    with pytest.raises(InputError, match=found):
        tried(VARIED, EVENTS, **WRONG[found])


def test_nothing_is_drawn_where_chances_vary():
    assert tried(VARIED, EVENTS).guarantee == "asymptotic"
    for how in ({}, {"statistics": "runs"}):
        with pytest.raises(InputError, match=r"of no use here|none are drawn"):
            caltest.audit(VARIED, EVENTS, order=True, rng=0, n_resamples=99, **how)
    with pytest.raises(InputError, match="have atoms"):
        tried(Distribution(stats.poisson(1.0 + VARIED)), EVENTS, "autocorrelation")


def test_few_events_after_events_reject_nothing():
    rare, one = np.full(50, 1e-6) * (1 + np.arange(50) % 2), (np.arange(50) == 20).astype(int)
    for y in (one, 0 * one):
        assert tried(rare, y).pvalue == 1.0
    two = one + np.roll(one, 1)
    assert tried(rare, two).pvalue == pytest.approx(rare[[21, 22]].sum(), rel=1e-3)
    for after, p in ((1.0, 1.0), (0.0, 0.0)):
        found = tried(np.where(np.append(0, two[:-1]), after, 0.3), two)
        assert np.isfinite(found.statistic)
        assert (found.pvalue > 0.1) == (p > 0)
    assert "After 2 events another came 1 time, where" in tried(rare, two).order
    with pytest.raises(InputError, match="possible here: normal"):
        tried(rare, one, null="consistency")


def test_the_sentence_follows_the_pvalue():
    few = tried(AT_RISK, np.where(np.isin(np.arange(T), [5, 9]), -3.0, 0.1))
    assert few.order[:36] == "Hits are not shown to follow hits: 0"
    assert "1 hit in 1 row, 0.01 predicted" in tried(AT_RISK.take([0]), RETURNS[20:21]).order
    assert tried(Normal([0.0], 1.0), [0.3], "autocorrelation").pvalue == 1.0
    both = tried(Quantiles([0.1, 0.9], np.tile([-2.0, 2.0], (T, 1))), RETURNS, n_resamples=9)
    assert both.lens == "quantile:0.1"


# ------------------------------------------------------------------ audits


def test_within_is_not_said_of_rows_that_depend_on_each_other():
    hits = np.convolve(np.arange(2000) % 200 == 0, np.ones(10))[:2000] > 0
    at_risk = Quantiles([0.05], np.full((2000, 1), -2.0))
    how = {"materiality": 0.05, "lenses": "quantile:0.05", "rng": 0, "n_resamples": 99}
    found = caltest.audit(at_risk, np.where(hits, -3.0, 0.1), order=True, **how)
    assert (found.verdict, [each.name for each in found.withheld]) == (
        "undecided",
        ["independent rows"],
    )
    assert "Hits follow hits" in " ".join(found.summary().split())
    assert found.fails("undecided")


def test_every_group_is_a_series():
    hits = np.concatenate([np.arange(T) % 60 < 3, np.arange(T) % 20 == 7])
    at_risk, desks = Quantiles([0.05], np.full((2 * T, 1), -2.0)), np.repeat(["A", "B"], T)
    how = {"groups": {"desk": desks}, "order": [*DAYS, *DAYS], "rng": 0, "n_resamples": 199}
    found = caltest.audit(at_risk, np.where(hits, -3.0, 0.1), **how)
    ours = [each.view.group.value for each in found.checks if each.statistic in ("runs", "decay")]
    assert sorted(ours) == ["A", "A", "B", "B"]
    said = "The predicted 5% quantile is not right given earlier outcomes where desk is A. Hits follow"
    assert found.headline.startswith(said)
    assert "order=order" in found.call
    assert "every forecast is right given all earlier outcomes" in " ".join(found.summary().split())


def test_an_audit_says_which_rows_share_a_place():
    how = {"order": [2, *range(1, T)], "n_resamples": 99, "rng": 0}
    skipped = caltest.audit(AT_RISK, RETURNS, groups={"desk": np.arange(T) % 2}, **how).skipped
    (tie,) = {each.reason for each in skipped if "order" in each.what}
    assert tie == "order is the same in row 0 (counting from 0) and another"
    for law, said in ((AT_RISK, f"as {re.escape(tie)}"), (Point(np.zeros(T)), "with means, sets")):
        with pytest.raises(InputError, match=said):
            caltest.audit(law, RETURNS, **how)


@pytest.mark.slow
def test_the_command_line(tmp_path):
    table = pd.DataFrame({"day": DAYS, "low": -2.3, "loss": RETURNS}).sample(frac=1.0, random_state=0)
    table.to_csv(path := tmp_path / "a.csv", index=False)
    how = [path, "--label", "loss", "--quantiles", "low=0.01", "--order", "day", "--seed", "0"]
    for name in (["test", *how, "--statistic", "runs"], ["audit", *how, "--resamples", "199"]):
        assert "Hits follow hits:" in " ".join(command(*name).stdout.split())


# ------------------------------------------------------------------ levels and power


def garch(rng, hits):
    """Forecasts that depend on all earlier outcomes, and outcomes from these."""
    mean, sd, y = np.zeros(T), np.ones(T), np.zeros(T)
    for t in range(T):
        mean[t] = 0.5 * y[t - 1]
        sd[t] = np.sqrt(0.2 + 0.3 * (y[t - 1] - mean[t - 1]) ** 2 + 0.4 * sd[t - 1] ** 2)
        y[t] = rng.normal(mean[t], sd[t])
    return Quantiles([hits], stats.norm.ppf(hits, mean, sd)[:, None]) if hits else Normal(mean, sd), y


def given_yesterday(rng, hits):
    """Events of chance .4, or .6 the day after one."""
    y = persistent(rng, 0.4, 0.6)
    return np.where(np.append(False, y[:-1]), 0.6, 0.4), y.astype(int)


@pytest.mark.level
@pytest.mark.parametrize("statistic", ["runs 0.01", "runs 0.05", "decay 0.05", "autocorrelation 0", ""])
def test_levels_where_forecasts_depend_on_outcomes(statistic):
    rng, (name, hits) = np.random.default_rng(5), (statistic or "runs 0").split()
    drawn = [(garch if statistic else given_yesterday)(rng, float(hits)) for _ in range(400)]
    found = np.mean([tried(*each, name, n_resamples=99, rng=rng).pvalue <= 0.05 for each in drawn])
    assert found <= binomial_limits(400, 0.05 if statistic else 0.06)[1]


@pytest.mark.level
def test_hits_that_cluster_are_found():
    rng = np.random.default_rng(7)
    drawn = [np.where(persistent(rng, 0.02, 0.15), -3.0, 0.0) for _ in range(200)]
    found = np.mean([tried(AT_RISK, y, n_resamples=99, rng=rng).pvalue <= 0.05 for y in drawn])
    assert found >= binomial_limits(200, 0.5)[0]
