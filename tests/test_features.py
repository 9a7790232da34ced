"""The search by features: roots, what is named, how large it is, and its level, by tests and audits."""

import json

import numpy as np
import pandas as pd
import pytest
from pages import ROOT
from scipy import stats
from scipy.optimize import brentq
from support import binomial_limits

import caltest
from caltest import InputError, predictive

N = 1200
RNG = np.random.default_rng(53)
X = pd.DataFrame(
    {
        "age": RNG.integers(18, 90, N),
        "region": RNG.choice(list("NSWE"), N, p=[0.4, 0.3, 0.2, 0.1]),
        "bmi": np.where(RNG.random(N) < 0.1, np.nan, RNG.normal(26, 4, N)),
        "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(RNG.integers(0, 300, N), unit="D"),
    }
)
P = RNG.beta(2, 5, N)
CORNER = ((X["age"] > 60) & (X["region"] == "N")).to_numpy()
WRONG = (RNG.random(N) < np.clip(P + 0.35 * CORNER, 0, 1)).astype(int)
RIGHT = (RNG.random(N) < P).astype(int)
SOME = slice(500)  # time of the ridge grows as the cube of the rows


def root_of(p, count):
    """The signed root of the likelihood ratio of one shift of the log odds, by its definition."""

    def mean(shift):
        return float((p * np.exp(shift) / (1 + p * np.expm1(shift))).sum()) - count

    shift = brentq(mean, -40, 40, xtol=1e-13)
    log = float(np.log1p(p * np.expm1(shift)).sum())
    return np.sign(shift) * np.sqrt(2 * (shift * count - log))


# ------------------------------------------------------------------ the scan


def test_it_is_the_largest_root_of_any_level():
    p, y, region = P, WRONG, X["region"]
    roots = [root_of(p[region == level], int(y[region == level].sum())) for level in "NSWE"]
    found = caltest.test(p, y, "feature_scan", features={"region": region}, rng=0, n_resamples=19)
    assert found.statistic == pytest.approx(np.abs(roots).max(), abs=1e-3)


def test_rare_events_beside_common_ones_are_seen():
    """A binomial with the mean and the variance of such a slice cannot reach its count."""
    p = np.concatenate([np.full(100, 0.99), np.full(1000, 0.001), np.full(1000, 0.3)])
    y = np.concatenate([np.ones(100), np.arange(1000) < 30, np.arange(1000) < 300]).astype(int)
    where = np.repeat(["mixed", "other"], [1100, 1000])
    found = caltest.test(p, y, "feature_scan", features={"where": where}, rng=0, n_resamples=19)
    assert found.statistic == pytest.approx(root_of(p[:1100], 130), rel=0.01)


def test_slices_with_equal_numbers_are_not_one():
    """With one prediction for all rows slices are told apart by their rows."""
    x = RNG.normal(size=(400, 3))
    each = [
        caltest.audit(p, RIGHT[:400], features=x, rng=0, n_resamples=39).n_slices
        for p in (np.full(400, 0.3), P[:400].clip(0.25, 0.35))
    ]
    assert each[0] == each[1] > 100


@pytest.mark.parametrize("statistic", ["feature_scan", "feature_ridge"])
def test_the_order_of_rows_does_not_matter(statistic):
    order = RNG.permutation(500)
    turned = X.iloc[order].reset_index(drop=True)
    one, other = (
        caltest.test(*given, statistic, features=x, rng=0, n_resamples=19).statistic
        for given, x in (((P[SOME], WRONG[SOME]), X[SOME]), ((P[order], WRONG[order]), turned))
    )
    assert one == pytest.approx(other)


def test_cuts_are_round_numbers_near_quantiles():
    x, y = np.random.default_rng(1).uniform(0, 100, (2, 4000))
    wrong = y < 30 + 30 * (x > 75)
    found = caltest.audit(np.full(4000, 0.3), wrong, features={"x": x}, rng=0, n_resamples=99)
    assert [each.name for each in found.by_feature[0].bins[:2]] == ["at most 12", "12 to 24"]
    assert found.slices[0].rule == "x over 74"


@pytest.mark.parametrize("statistic", ["feature_scan", "feature_ridge"])
def test_equal_weights_and_clusters_of_one_row_are_none(statistic):
    plain, weighted = (
        caltest.test(
            P[SOME], WRONG[SOME], statistic, features=X[SOME], rng=0, n_resamples=19, weights=w
        ).pvalue
        for w in (None, np.full(500, 3.0))
    )
    assert plain == weighted


def test_without_features_it_says_so():
    with pytest.raises(InputError, match="there are none; give features"):
        caltest.test(P, WRONG, "feature_scan")


def test_features_that_tell_the_outcome_are_said():
    x = {"after": RIGHT[SOME] * 2.0, "age": X["age"][SOME]}
    given = {"features": x, "rng": 0, "n_resamples": 99}
    (premise,) = caltest.test(P[SOME], RIGHT[SOME], **given).premises
    assert "Column 'after' of features is a function of" in premise.seen
    audited = caltest.audit(P[SOME], RIGHT[SOME], **given)
    assert audited.features == ("age",)
    assert audited.withheld == audited.premises[:1]


def test_columns_without_a_slice_are_said():
    names = {"name": [f"row {k}" for k in range(100)]}
    with pytest.raises(InputError, match="no slice by features has 50 rows"):
        caltest.test(P[:100], WRONG[:100], "feature_scan", features=names)
    found = caltest.audit(P[:100], WRONG[:100], features=names, rng=0, n_resamples=99)
    assert any(each.what == "slices by features" for each in found.skipped)
    assert not found.slices
    assert found.n_slices == 0


# ------------------------------------------------------------------ audits


@pytest.fixture(scope="module")
def audited():
    return caltest.audit(P, WRONG, features=X, materiality=0.1, rng=0, n_resamples=399)


def test_the_planted_slice_leads(audited):
    first = audited.slices[0]
    assert audited.verdict == "material"
    assert first.shown
    assert "region = N" in first.rule
    assert "age over" in first.rule
    rows = (X["region"] == "N") & (X["age"] > int(first.rule.split("age over ")[1].split()[0]))
    assert first.rows == rows.sum()
    assert first.predicted == pytest.approx(P[rows].mean())
    assert first.observed == pytest.approx(WRONG[rows].mean())
    assert first.low <= first.error <= first.high < -0.1
    assert first.adjusted_pvalue == 1 / 400
    assert first.rule.replace(" = ", " is ").split(" and ")[1] in audited.headline


def test_its_interval_is_of_a_fifth_of_alpha_for_all_slices(audited):
    first = audited.slices[0]
    level = 0.2 * 0.05 / (2 * audited.n_slices)
    events = round(first.observed * first.rows)
    most = stats.beta.isf(level, events + 1, first.rows - events)
    assert first.low == pytest.approx(first.predicted - most)


def test_few_are_shown_and_the_rest_listed(audited):
    shown = [each for each in audited.slices if each.shown]
    assert 1 <= len(shown) <= 10 < len(audited.slices)
    assert list(audited.slices[: len(shown)]) == shown
    assert len({each.rule for each in audited.slices}) == len(audited.slices)
    assert json.loads(json.dumps(audited.to_dict()))["slices"][0]["rule"] == audited.slices[0].rule


def test_predicted_and_observed_along_the_features_that_lead(audited):
    assert [each.feature for each in audited.by_feature] == ["age", "region"]
    bins = audited.by_feature[0].bins
    assert sum(each.rows for each in bins) == N
    assert all(each.low <= each.predicted - each.observed <= each.high for each in bins)


def test_a_calibrated_model_has_no_slices():
    found = caltest.audit(P, RIGHT, features=X, materiality=0.1, rng=0, n_resamples=199)
    assert found.slices == ()
    assert found.verdict == "within"
    assert found.features == ("age", "region", "bmi", "day")
    assert {"feature_scan", "feature_ridge"} <= {each.statistic for each in found.checks}


@pytest.mark.slow
def test_groups_are_not_searched_again():
    found = caltest.audit(P, WRONG, features=X, groups=X[["region"]], rng=0, n_resamples=99)
    assert found.features == ("age", "bmi", "day")
    assert not any("region" in each.rule for each in found.slices)
    assert any("region" in text for text in found.warnings)


MEANS = RNG.normal(size=N)
OUTCOMES = MEANS + RNG.normal(size=N) + 1.2 * CORNER
LEVELS = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
TIMES = RNG.exponential(1 / np.exp(0.3 * MEANS) / (1 + 2 * CORNER))
LEFT = RNG.uniform(0, 3, N)
SEEN = np.minimum(TIMES, LEFT), TIMES <= LEFT
AT = np.linspace(0, 4, 41)[1:]
CURVES = np.exp(-np.exp(0.3 * MEANS)[:, None] * AT)
THREE = RNG.dirichlet([2, 2, 2], N)
CLASSES = np.where(CORNER, 0, (THREE.cumsum(axis=1) < RNG.random((N, 1))).sum(axis=1))
ROUNDED = np.round(MEANS[:, None] + stats.norm.ppf(LEVELS), 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("predicted", "outcomes", "lens", "options"),
    [
        (P, WRONG, "canonical", {"weights": RNG.exponential(size=N)}),
        (P, WRONG, "canonical", {"clusters": np.arange(N) // 3}),
        (P, WRONG, "canonical", {"correction": "holm"}),
        (THREE, CLASSES, "class:0", {}),
        (predictive.Normal(MEANS, sd=1.0), OUTCOMES, "quantile:0.5", {}),
        (predictive.Members(MEANS[:, None] + RNG.normal(size=(N, 19))), OUTCOMES, "quantile:0.5", {}),
        (predictive.Quantiles(LEVELS, ROUNDED), OUTCOMES.round(1), "quantile:0.5", {}),
        (predictive.Survival(times=AT, survival=CURVES, follow_up=LEFT), SEEN, "until:", {}),
        (predictive.Survival(times=AT, survival=CURVES), SEEN, "until:", {}),
    ],
    ids=[
        *("weights", "clusters", "holm", "classes", "normal", "members", "quantiles"),
        *("followed", "censored"),
    ],
)
def test_whatever_is_predicted_the_corner_is_named(predicted, outcomes, lens, options):
    found = caltest.audit(predicted, outcomes, features=X, rng=0, n_resamples=399, **options)
    own = [each for each in found.slices if each.lens.startswith(lens)]
    assert "region = N" in own[0].rule
    assert "age over" in own[0].rule
    assert found.pvalue <= 0.05


def test_what_equals_a_quantile_counts_for_the_forecast():
    """Counts of which most are 0: the closed event is seen too often, and the open one never."""
    outcomes = stats.poisson.rvs(0.2, size=N, random_state=0)
    predicted = predictive.Quantiles([0.25, 0.5, 0.75], np.zeros((N, 3)))
    found = caltest.audit(predicted, outcomes, features=X, rng=0, n_resamples=199)
    assert found.pvalue == 1.0 or not found.slices


def test_searches_of_other_packages_are_not_level():
    found = pd.read_csv(ROOT / "validation" / "results" / "features_others.csv")
    calibrated = found[found["case"] == "calibrated"]
    assert (calibrated["mcgrad_rejected"] == calibrated["datasets"]).all()
    assert (calibrated["aif360_subset"] == calibrated["datasets"]).all()


# ------------------------------------------------------------------ level


def _pvalue(seed, statistic, n=400):
    rng = np.random.default_rng([seed, 53])
    x = pd.DataFrame({"a": rng.normal(size=n), "b": rng.choice(list("xyz"), n), "c": rng.poisson(1, n)})
    p = rng.beta(0.5, 5, n)
    y = (rng.random(n) < p).astype(int)
    return caltest.test(p, y, statistic, features=x, rng=seed, n_resamples=39).pvalue


@pytest.mark.level
@pytest.mark.parametrize("statistic", ["feature_scan", "feature_ridge"])
def test_level(statistic):
    found = np.mean([_pvalue(seed, statistic) <= 0.05 for seed in range(400)])
    low, high = binomial_limits(400, 0.05)
    assert low <= found <= high


def _corner(seed):
    """An audit of a model that is wrong in one corner: is a slice named that is right in every row?"""
    rng = np.random.default_rng([seed, 54])
    x = rng.normal(size=(1500, 4))
    p, corner = rng.beta(2, 3, 1500), (x[:, 0] > 0.5) & (x[:, 1] > 0)
    y = (rng.random(1500) < np.clip(p + 0.25 * corner, 0, 1)).astype(int)
    found = caltest.audit(p, y, features=x, rng=seed, n_resamples=99, lenses="canonical")
    rights = []
    for each in found.slices:
        rows = np.ones(1500, bool)
        for one in each.group.conditions:
            own = x[:, int(one.column.split()[-1])]
            over, _, most = one.value.partition(" and at most ")
            rows &= own > float(over) if one.relation == "over" else own <= float(over)
            rows &= own <= float(most) if most else True
        assert rows.sum() == each.rows
        rights.append(not corner[rows].any())
    return bool(found.slices), any(rights)


@pytest.mark.level
def test_innocent_slices_are_hardly_ever_named():
    found = [_corner(seed) for seed in range(30)]
    assert sum(named for named, _ in found) >= 24
    assert sum(innocent for _, innocent in found) <= 30 * binomial_limits(30, 0.05)[1]
