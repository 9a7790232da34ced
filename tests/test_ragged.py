"""Rows that do not state the same: missing members and quantiles, infinite quantiles, supports."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from support import binomial_limits, command

import caltest
from caltest import InputError
from caltest.files import read
from caltest.predictive import Members, Quantiles

LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]


def ensemble(seed, rows=80, most=20, scale=1.0, digits=None, least=2):
    """Members of which some are missing, anywhere in their rows, and outcomes."""
    rng = np.random.default_rng(seed)
    centre = rng.normal(size=(rows, 1))
    values, outcomes = centre + scale * rng.normal(size=(rows, most)), rng.normal(centre[:, 0])
    if digits is not None:
        values, outcomes = values.round(digits), outcomes.round(digits)
    missing = np.arange(most) >= rng.integers(least, most + 1, (rows, 1))
    return np.where(rng.permuted(missing, axis=1), np.nan, values), outcomes


def forecasts(seed, rows=200, sd=1.0, count=False):
    """Quantiles of which a third are missing, but never the median, and outcomes."""
    rng = np.random.default_rng(seed)
    mean = rng.uniform(1.0, 20.0, rows)
    law = scipy.stats.poisson(mean[:, None]) if count else scipy.stats.norm(mean[:, None], sd)
    values, outcomes = law.ppf(LEVELS), rng.poisson(mean) if count else rng.normal(mean)
    missing = rng.random(values.shape) < 1 / 3
    missing[:, 2] = False
    return np.where(missing, np.nan, values), outcomes


# ------------------------------------------------------------------ members


@pytest.mark.parametrize("name", ["bias", "spread", "crps", "dawid_sebastiani"])
def test_a_mean_over_rows_is_that_of_rows_with_as_many_members(name):
    values, outcomes = ensemble(1, most=6)
    counts = (~np.isnan(values)).sum(axis=1)
    parts = []
    for count in np.unique(counts):
        rows = counts == count
        own = values[rows][~np.isnan(values[rows])].reshape(-1, count)
        parts.append(rows.sum() * caltest.estimate(Members(own), outcomes[rows], name))
    found = caltest.estimate(Members(values), outcomes, name)
    assert found == pytest.approx(sum(parts) / len(values), abs=1e-12)


@pytest.mark.parametrize("name", ["omnibus", "skce_uq", "uce"])
def test_where_a_member_is_missing_does_not_matter(name):
    values, outcomes = ensemble(2, rows=40)
    apart = np.random.default_rng(0).permuted(values, axis=1)
    wide = np.column_stack([np.full(len(values), np.nan), values])
    one, *others = (
        caltest.test(Members(each), outcomes, name, n_resamples=19, rng=0)
        for each in (values, apart, wide)
    )
    assert all(each.statistic == pytest.approx(one.statistic, rel=1e-12) for each in others)
    assert "Rows have 2 to 20 members" in one.warnings[0]


@pytest.mark.slow
def test_too_narrow_members_are_found_and_sized():
    values, outcomes = ensemble(3, rows=400, scale=0.5)
    how = {"lenses": "interval:.8", "n_resamples": 39, "rng": 0}
    found = caltest.audit(Members(values), outcomes, **how)
    view = found.views[0]
    sizes = (~np.isnan(values)).sum(axis=1) + 1
    sizes = sizes[sizes >= 10]  # with fewer the widest interval is all that there is
    stated = 1.0 - 2.0 * np.floor(0.1 * sizes + 1e-9) / sizes
    assert view.rows == len(sizes)
    assert found.rejected
    assert view.error == pytest.approx(stated.mean() - view.observed)
    assert f"Of 400 rows {view.rows} state interval:0.8." in found.warnings


def halves(n, least, most, shift=0.0):
    """Calibrated members, but that half of the rows have few, which may be too high, and outcomes."""
    rng = np.random.default_rng(0)
    centre = rng.normal(size=(n, 1))
    values, few = centre + rng.normal(size=(n, most)), np.arange(n) % 2 == 0
    values[few] += shift
    values[few, least:] = np.nan
    return values, rng.normal(centre[:, 0]), few


def test_errors_are_those_of_members_row_by_row():
    values, outcomes, few = halves(200, 1, 29, 1.0)
    how = {"groups": {"few": few}, "n_resamples": 39, "rng": 0, "statistics": "citl", "min_rows": 100}
    found = caltest.audit(Members(values), outcomes, lenses=["quantile:.5", "below:0"], **how)
    half = {v.lens: v for v in found.views if v.group is None}
    assert half["quantile:0.5"].predicted == pytest.approx(0.5)
    below = np.nanmean(np.where(np.isnan(values), np.nan, values < 0), axis=1)
    assert half["below:0"].predicted == pytest.approx(below.mean())
    assert half["below:0"].observed == pytest.approx((outcomes < 0).mean())
    for view in (v for v in found.views if v.group and v.group.column == "few"):
        rows = few if view.group.value == "True" else ~few
        stated = below[rows].mean() if view.lens == "below:0" else 0.5
        assert view.predicted == pytest.approx(stated)
    error = np.nanmean(values, axis=1).mean() - outcomes.mean()
    both = caltest.compare({"a": Members(values), "b": Members(values[:, :1])}, outcomes)
    assert both.errors[0].units.predicted - outcomes.mean() == pytest.approx(error)


def test_intervals_are_looked_at_in_rows_that_state_them():
    values, outcomes, few = halves(200, 3, 19)
    how = {"groups": {"few": few}, "n_resamples": 39, "rng": 0, "min_rows": 100}
    found = caltest.audit(Members(values), outcomes, **how)
    views = {(v.lens, v.group and v.group.value): v for v in found.views}
    assert views["interval:0.8", None].rows == 100
    assert ("interval:0.8", "True") not in views
    assert views["interval:0.8", None].predicted == pytest.approx(0.8)
    with pytest.raises(InputError, match=r"no row states .*interval:0\.95"):
        caltest.test(Members(values), outcomes, lens="interval:0.95")


def test_one_member_has_no_spread():
    values, outcomes, few = halves(600, 1, 9)
    how = {"n_resamples": 39, "rng": 0, "statistics": "bias", "lenses": "distribution"}
    spread = caltest.audit(Members(values), outcomes, **how).units.spread
    alone = caltest.audit(Members(values[~few]), outcomes[~few], **how).units.spread
    assert spread == pytest.approx(alone, rel=0.01)


@pytest.mark.level
@pytest.mark.parametrize("digits", [None, 0])
def test_levels_of_members(digits):
    _, high = binomial_limits(300, 0.05)
    names = ("omnibus", "bias", "spread", "crps", "skce_uq")
    found = []
    for seed in range(300):
        values, outcomes = ensemble(seed, rows=60, digits=digits)
        own = [
            caltest.test(Members(values), outcomes, name, n_resamples=39, rng=seed).pvalue <= 0.05
            for name in names
        ]
        lenses = ["distribution", "interval:.5", "quantile:.5"]
        how = {"lenses": lenses, "n_resamples": 39, "rng": seed}
        found.append([*own, caltest.audit(Members(values), outcomes, **how).rejected])
    assert (np.mean(found, axis=0) <= high).all(), np.mean(found, axis=0)


def test_a_few_rows_that_share_their_members_are_few_of_all_rows():
    values, outcomes, _ = halves(200, 8, 9)
    values[:8], values[:30, 7:] = values[0], np.nan
    assert caltest.test(Members(values), outcomes, "bias", n_resamples=19, rng=0).pvalue > 0.05
    values = np.where(np.isnan(values), np.nan, outcomes[:, None] + np.arange(9) ** 1.7)
    with pytest.raises(InputError, match="members of 100% of the rows are one set"):
        caltest.test(Members(values), outcomes)


# ------------------------------------------------------------------ quantiles


def test_an_outcome_leaves_open_the_cells_between_the_quantiles_that_are_stated():
    law = Quantiles([0.1, 0.3, 0.5, 0.9], [[1.0, np.nan, 3.0, np.nan]] * 5)
    first, last = np.divmod(law.outcomes([0.0, 1.0, 2.0, 3.0, 4.0]), 5)
    assert (first.tolist(), last.tolist()) == ([0, 0, 1, 1, 3], [0, 2, 2, 4, 4])


def test_views_have_the_rows_that_state_them():
    values, outcomes = forecasts(1)
    groups = {"half": np.repeat(["a", "b"], 100)}
    how = {"groups": groups, "min_rows": 20, "n_resamples": 39, "rng": 0}
    found = caltest.audit(Quantiles(LEVELS, values), outcomes, lenses="quantile:.25", **how)
    for view in found.views:
        rows = ~np.isnan(values[:, 1])
        if view.group is not None and view.group.column == "half":
            rows &= groups["half"] == view.group.value
        elif view.group is not None:
            continue
        assert view.rows == rows.sum()
        assert view.observed == pytest.approx(np.mean(outcomes[rows] <= values[rows, 1]))
    stated = ~np.isnan(values[:, 1])
    assert f"Of 200 rows {stated.sum()} state quantile:0.25." in found.warnings
    one = caltest.test(Quantiles(LEVELS, values), outcomes, "citl", lens="quantile:.25", rng=0)
    alone = Quantiles([0.25], values[stated, 1:2])
    other = caltest.test(alone, outcomes[stated], "citl", lens="quantile:.25", rng=0)
    assert (one.n_samples, one.statistic, one.pvalue) == (stated.sum(), other.statistic, other.pvalue)
    few = caltest.audit(Quantiles(LEVELS, values), outcomes, **{**how, "min_rows": 150})
    assert any("rows state it" in each.reason for each in few.skipped)


@pytest.mark.slow
def test_influenza_forecasts_of_which_half_are_cut_to_three_quantiles(reference):
    table = pd.read_parquet(reference("flusight_quantiles_2023_2025.parquet"))
    table = table.dropna(subset="observation")[::6]
    names = [name for name in table if name.startswith("q0")]
    levels = [float(name[1:]) for name in names]
    values = np.maximum.accumulate(table[names].to_numpy(float), axis=1)
    outcomes = table["observation"].to_numpy(float)
    kept = [levels.index(each) for each in (0.025, 0.5, 0.975)]
    cut, half = values.copy(), np.arange(len(values)) % 2 == 0
    cut[np.ix_(half, np.setdiff1d(np.arange(len(levels)), kept))] = np.nan
    how = {"n_resamples": 99, "rng": 0}
    found = caltest.audit(Quantiles(levels, cut), outcomes, **how)
    three = Quantiles([levels[k] for k in kept], values[:, kept])
    lenses = ["interval:0.95", "quantile:0.5", "quantile:0.025", "quantile:0.975"]
    of_all = caltest.audit(three, outcomes, lenses=lenses, **how)
    of_half = caltest.audit(Quantiles(levels, values[~half]), outcomes[~half], **how)

    def every(audit):
        """Views of all rows and of groups that do not depend on which rows there are."""
        views = {v.lens: (v.rows, v.predicted, v.observed) for v in audit.views if v.group is None}
        checks = (c for c in audit.checks if c.view.group is None)
        return views, {(c.view.lens, c.statistic): c.value for c in checks}

    (views, values_found), (views_all, values_all) = every(found), every(of_all)
    views_half, values_half = every(of_half)
    for lens in lenses:
        assert views[lens] == pytest.approx(views_all[lens])
        assert values_found[lens, "citl"] == pytest.approx(values_all[lens, "citl"])
    for lens in ("interval:0.5", "interval:0.8"):
        assert views[lens] == pytest.approx(views_half[lens])
        assert values_found[lens, "citl"] == pytest.approx(values_half[lens, "citl"])
    assert views["distribution"][0] == len(outcomes)
    assert found.rejected


@pytest.mark.slow
def test_too_narrow_quantiles_are_found():
    values, outcomes = forecasts(4, 400, sd=0.5)
    found = caltest.test(Quantiles(LEVELS, values), outcomes, "pit_ks", n_resamples=99, rng=0)
    assert found.pvalue == 0.01
    audited = caltest.audit(Quantiles(LEVELS, values), outcomes, n_resamples=99, rng=0)
    assert audited.rejected
    assert "90% interval is too narrow" in audited.headline


@pytest.mark.level
@pytest.mark.parametrize("count", [False, True])
def test_levels_of_quantiles(count):
    _, high = binomial_limits(300, 0.05)
    found = []
    for seed in range(300):
        values, outcomes = forecasts(seed, 150, count=count)
        law, how = Quantiles(LEVELS, values), {"n_resamples": 39, "rng": seed}
        own = [
            caltest.test(law, outcomes, name, **how).pvalue <= 0.05
            for name in ("omnibus", "bias", "spread", "pit_ks")
        ]
        found.append([*own, caltest.audit(law, outcomes, min_rows=30, **how).rejected])
    assert (np.mean(found, axis=0) <= high).all(), np.mean(found, axis=0)


# ------------------------------------------------------------------ supports and infinite ends


def test_levels_0_and_1_state_where_outcomes_are_possible():
    values, outcomes = forecasts(5)
    low, high = np.full(200, -np.inf), np.full(200, np.inf)
    stated = Quantiles([0, *LEVELS, 1], np.column_stack([low, values, high]))
    plain = caltest.test(Quantiles(LEVELS, values), outcomes, n_resamples=19, rng=0)
    assert stated.levels.tolist() == LEVELS
    assert caltest.test(stated, outcomes, n_resamples=19, rng=0).statistic == plain.statistic
    low[7], high[9] = outcomes[7], outcomes[9] - 1e-9  # an end belongs to what is possible
    values[[7, 9]] = outcomes[[7, 9], None]
    values[9] -= 1.0
    stated = Quantiles([0, *LEVELS, 1], np.column_stack([low, values, high]))
    found = caltest.audit(stated, outcomes, lenses="quantile:.5", n_resamples=39, rng=0)
    assert (found.impossible, found.pvalue) == (1, 1 / 40)
    noted = caltest.test(stated, outcomes, n_resamples=19, rng=0).warnings
    assert any(
        "In 1 of 200 rows (counting from 0: 9) the outcome had probability 0" in x for x in noted
    )


def test_an_outcome_outside_of_its_support_is_found_by_all_that_judge():
    values, outcomes = forecasts(5, 40)
    values[~np.isfinite(values)] = 8.0
    values.sort(axis=1)
    high = np.full(40, np.inf)
    high[1] = values[1].max()
    outcomes[1] = high[1] + 1.0
    law = Quantiles([*LEVELS, 1], np.column_stack([values, high]))
    for name in ("omnibus", "pit_ks"):
        assert caltest.test(law, outcomes, name, n_resamples=19, rng=0).pvalue == 1 / 20
    monitor = caltest.Monitor()
    assert not monitor.update(Quantiles([*LEVELS, 1], law.given[:1]), outcomes[:1]).alarm
    assert monitor.update(Quantiles([*LEVELS, 1], law.given[1:]), outcomes[1:]).alarm
    assert monitor.state.alarm_row == 2
    both = caltest.compare({"a": law, "b": Quantiles(LEVELS, values)}, outcomes)
    assert any("a: In 1 of 40 rows (counting from 0: 1) the outcome had" in x for x in both.warnings)


def test_ends_may_be_infinite():
    values, outcomes = forecasts(6)
    values[::2, 0], values[::4, 4] = -np.inf, np.inf
    found = caltest.audit(Quantiles(LEVELS, values), outcomes, n_resamples=39, rng=0)
    view = next(x for x in found.views if x.lens == "quantile:0.05")
    rows = ~np.isnan(values[:, 0])
    assert view.observed == pytest.approx(np.mean(outcomes[rows] <= values[rows, 0]))


def test_rows_that_all_are_in_one_group_are_looked_at_once():
    values, outcomes = forecasts(5, 120)
    values = np.sort(np.where(np.isnan(values), 8.0, values), axis=1)
    values[60:, [0, 1, 3, 4]] = np.nan
    groups = {"half": np.repeat(["all", "few"], 60)}
    found = caltest.audit(
        Quantiles(LEVELS, values), outcomes, groups=groups, lenses="interval:.9", n_resamples=39, rng=0
    )
    assert [v.group for v in found.views if v.rows == 60] == [None]
    other = Quantiles([0.25, 0.75], np.where(np.arange(120)[:, None] % 2, [0, np.nan], [np.nan, 1]))
    with pytest.raises(InputError, match="no level is stated in every row"):
        caltest.compare({"a": other, "b": other}, outcomes)


# ------------------------------------------------------------------ files


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_empty_cells_of_files_are_missing(suffix, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save = {"csv": "to_csv", "parquet": "to_parquet", "jsonl": "to_json"}[suffix]
    how = {"orient": "records", "lines": True} if suffix == "jsonl" else {"index": False}
    (quantiles, y), (members, truth) = forecasts(7), ensemble(7)
    table = pd.DataFrame(quantiles, columns=[f"q{level}" for level in LEVELS]).assign(y=y)
    getattr(table, save)(f"q.{suffix}", **how)
    table = pd.DataFrame(members, columns=[f"run{k}" for k in range(20)]).assign(y=truth)
    getattr(table, save)(f"m.{suffix}", **how)
    for name, law, outcomes, option, given in (
        ("q", Quantiles(LEVELS, quantiles), y, "--quantiles", "q*"),
        ("m", Members(members), truth, "--members", "run"),
    ):
        expected = caltest.test(law, outcomes, n_resamples=19, rng=1)
        stated = ["--label", "y", option, given, "--seed", 1, "--resamples", 19, "--json"]
        found = json.loads(command("test", f"{name}.{suffix}", *stated).stdout)
        assert found["statistic"] == pytest.approx(expected.statistic, rel=1e-6)
        assert found["n_samples"] == len(outcomes)


@pytest.mark.slow
def test_tasks_of_a_hub_may_differ(tmp_path):
    rows, truth, rng = [], [], np.random.default_rng(8)
    for place, levels in (("a", [0.25, 0.5, 0.75]), ("b", [0.5]), ("c", [0.1, 0.5])):
        for week in range(3):
            task = {"location": place, "horizon": week}
            truth.append({**task, "observation": rng.normal()})
            rows += [
                {**task, "output_type": "quantile", "output_type_id": each, "value": each + week}
                for each in levels
            ]
            rows += [
                {**task, "output_type": "sample", "output_type_id": k, "value": rng.normal()}
                for k in range(2 + len(levels))
            ]
    pd.DataFrame(rows).to_csv(tmp_path / "hub.csv", index=False)
    pd.DataFrame(truth).to_csv(tmp_path / "truth.csv", index=False)
    of = {"truth": tmp_path / "truth.csv", "where": {"output_type": "quantile"}}
    law = read(tmp_path / "hub.csv", **of).rows.law
    assert law.levels.tolist() == [0.1, 0.25, 0.5, 0.75]
    assert (~np.isnan(law.values)).sum(axis=0).tolist() == [3, 3, 9, 3]
    law = read(tmp_path / "hub.csv", **{**of, "where": {"output_type": "sample"}}).rows.law
    assert (~np.isnan(law.values)).sum(axis=1).tolist() == [5, 5, 5, 3, 3, 3, 4, 4, 4]


def test_a_missing_value_of_pandas_is_missing():
    table = pd.DataFrame({"0.1": [1, None, 3], "0.9": [2, 4, None]}).convert_dtypes()
    expected = [[1.0, 2.0], [np.nan, 4.0], [3.0, np.nan]]
    np.testing.assert_array_equal(Quantiles(None, table).values, expected)
    np.testing.assert_array_equal(Members(table).values, expected)
    np.testing.assert_array_equal(Quantiles(None, table.astype(object)).values, expected)
    with pytest.raises(InputError, match="rows of one length, with NaN where one is missing"):
        Members([[1.0], [1.0, 2.0]])
