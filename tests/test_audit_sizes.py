"""How large: simultaneous intervals, directions, the verdict, the group that explains, sensitivity."""

import math
from dataclasses import replace

import numpy as np
import pytest
from audited import calibrated
from scipy.stats import beta, binom
from support import binomial_limits, some_fast

import caltest
from caltest import InputError, auditing
from caltest.auditing.sizes import Design, Family, binned_error, cut, error_of_mean
from caltest.bounds.intervals import mean_bounds
from caltest.pvalues import evidence_of_draws, reaching
from caltest.text import sizes


@pytest.fixture(autouse=True)
def _without_bounds(monkeypatch):
    """Leave out what is not looked at, and most of the work."""
    monkeypatch.setattr("caltest.auditing.audits.bounds", lambda *_: {})
    monkeypatch.setattr("caltest.auditing.audits.remedies", lambda *_: ())


def drawn(truth, rng):
    return (rng.random(len(truth)) < truth).astype(int)


def even(n):
    """Predictions from .2 to .8, of which every tenth row is alike."""
    return np.tile(np.linspace(0.2, 0.8, 10), n // 10)


def shifted(n, by, seed=1, where=slice(None)):
    """Predictions that are too high by so much in some rows, and labels."""
    stated = even(n)
    truth = stated.copy()
    truth[where] -= by
    return stated, drawn(truth, np.random.default_rng(seed))


# ------------------------------------------------------------------ intervals


@pytest.mark.parametrize("events", [0, 1, 2, 7, 11, 12])
def test_an_interval_by_hand(events):
    """Beyond each end a binomial count is as far with the level of a side; of one event it is a/n."""
    n, family = 12, Family.of(0.05, 4, 10)
    level = 0.8 * 0.05 / (2 * 4)
    assert family.of_view == pytest.approx(level)
    assert family.of_part == pytest.approx(0.2 * 0.05 / (2 * 10))
    low, high = error_of_mean(0.4, n, events, family.of_view)
    least, most = 0.4 - high, 0.4 - low
    if events > 1:
        assert binom.sf(events - 1, n, least) == pytest.approx(level)
    else:
        assert least == pytest.approx(events * level / n)
    if events < n - 1:
        assert binom.cdf(events, n, most) == pytest.approx(level)
    else:
        assert most == pytest.approx(1.0 - (n - events) * level / n)


def test_one_family_of_all_views_and_parts():
    rng = np.random.default_rng(0)
    p = rng.random(1000)
    labels = drawn(p, rng)
    audit = caltest.audit(p, labels, groups=np.arange(1000) % 3, alpha=0.1, n_resamples=99, rng=0)
    sized = [view for view in audit.views if view.event]
    assert [len(view.parts) for view in sized] == [12, 5, 5, 5]
    family = Family.of(0.1, 4 + 3, 27)  # with what every group leaves
    for view in sized:
        rows = slice(None) if view.group is None else np.arange(1000) % 3 == int(view.group.value)
        events = int(labels[rows].sum())
        counts = view.predicted, view.rows, events
        assert (view.low, view.high) == error_of_mean(*counts, family.of_view)
        assert (view.own_low, view.own_high) == error_of_mean(*counts, 0.1)  # at 80%
        for part in view.parts:
            inside = (p[rows] >= part.start) & (p[rows] <= part.end)
            assert inside.sum() == part.rows
            assert part.predicted == pytest.approx(p[rows][inside].mean())
            assert part.observed == labels[rows][inside].mean()
            events = int(labels[rows][inside].sum())
            one = error_of_mean(part.predicted, part.rows, events, family.of_part)
            assert (part.low, part.high) == pytest.approx(one)


def _covers(seed, n, m=None):
    """Whether all intervals of an audit of a wrong model hold the true errors."""
    rng = np.random.default_rng(seed)
    stated = rng.beta(1.0, 3.0, n)
    truth = np.clip(stated**1.3 + 0.1 * rng.standard_normal(n), 0.0, 1.0)
    labels, group = drawn(truth, rng), np.arange(n) % 3
    audit = caltest.audit(stated, labels, groups=group, statistics="ks", n_resamples=19, rng=seed)
    for view in audit.views:
        rows = np.arange(n) if view.group is None else np.flatnonzero(group == int(view.group.value))
        error = stated[rows] - truth[rows]
        if not view.low <= error.mean() <= view.high:
            return False
        for part in view.parts:
            inside = (stated[rows] >= part.start) & (stated[rows] <= part.end)
            if not part.low <= error[inside].mean() <= part.high:
                return False
    return True


@pytest.mark.slow
def test_all_intervals_hold_the_truth():
    assert sum(not _covers(seed, 400) for seed in range(60)) / 60 <= binomial_limits(60, 0.05)[1]


@pytest.mark.level
def test_all_intervals_hold_the_truth_as_often_as_said():
    assert sum(not _covers(seed, 300) for seed in range(250)) / 250 <= binomial_limits(250, 0.05)[1]


def _directions(seed, n=400):
    rng = np.random.default_rng(seed)
    p = rng.beta(2.0, 2.0, n)
    groups = {"a": np.arange(n) % 2, "b": np.arange(n) // 2 % 2}
    audit = caltest.audit(
        p, drawn(p, rng), groups=groups, statistics=("ks", "citl"), n_resamples=39, rng=seed
    )
    told = any(view.direction for view in audit.views)
    assert audit.rejected or audit.worst is None
    return told, told and audit.rejected


@pytest.mark.level
def test_no_direction_of_a_calibrated_model_is_told_more_often_than_said():
    each, both = np.mean([_directions(seed) for seed in range(250)], axis=0)
    assert both <= each <= binomial_limits(250, 0.05)[1]


# ------------------------------------------------------------------ parts


def test_parts_hold_all_rows_and_ties_stay_together():
    rng = np.random.default_rng(0)
    for scores in (
        rng.random(1234),
        np.round(rng.random(1234), 1),
        np.r_[np.zeros(900), rng.random(99)],
    ):
        for whole, kinds in ((True, {10, 2}), (False, {5})):
            found = cut(scores, whole)
            ordered = scores[found.order]
            assert {of for of, _ in found.ends} <= kinds
            for of, ends in found.ends:
                assert ends[-1] == len(scores)
                assert 2 <= len(ends) <= of
                assert all(ordered[end - 1] < ordered[end] for end in ends[:-1])
    (_, tenths), (_, halves) = cut(rng.random(1000), True).ends
    assert tenths.tolist() == list(range(100, 1001, 100))
    assert halves.tolist() == [500, 1000]
    assert cut(np.r_[np.zeros(900), np.linspace(0.1, 0.9, 99)], True).ends[0][1].tolist() == [900, 999]


@pytest.mark.parametrize(
    ("n", "whole", "kinds"),
    [(100, True, [10, 2]), (99, True, [2]), (19, True, []), (50, False, [5]), (49, False, [])],
)
def test_few_rows_have_fewer_parts(n, whole, kinds):
    assert [of for of, _ in cut(np.linspace(0.0, 1.0, n), whole).ends] == kinds


@pytest.mark.parametrize("values", [7, 10**9])
def test_intervals_of_parts_at_once_are_those_of_each(values):
    rng = np.random.default_rng(0)
    p, y = rng.integers(0, values, 300) / values, rng.integers(0, 2, 300)
    where, design = cut(p, True), Design(np.ones(300))
    for _, cuts in where.ends:
        starts = np.append(0, cuts[:-1])
        found = design.of_parts(p[where.order], y[where.order], where.order, starts, 0.01)
        parts = np.split(where.order, starts[1:])
        assert np.allclose(found, [design.at(r).interval(p[r], y[r], 0.01) for r in parts], 0, 1e-14)


def test_equal_predictions_have_no_parts():
    assert cut(np.full(500, 0.3), True).ends == ()
    audit = caltest.audit(np.full(500, 0.3), [0, 1, 0, 0, 0] * 100, n_resamples=99, rng=0)
    assert audit.views[0].parts == ()
    assert audit.views[0].binned_error is None


def test_the_binned_error_is_inside_its_interval():
    for by in (0.0, 0.1):
        audit = caltest.audit(*shifted(3000, by), groups=["a", "b"] * 1500, n_resamples=99, rng=0)
        for view in audit.views:
            low, estimate, high = view.binned_error
            finest = [part for part in view.parts if part.of == (5 if view.group else 10)]
            rows = np.array([part.rows for part in finest])
            assert estimate == pytest.approx(rows @ [abs(p.error) for p in finest] / rows.sum())
            assert 0.0 <= low <= min(estimate, by) <= max(estimate, by) <= high
            assert (low, estimate, high) == binned_error(view.parts)
    assert low > 0.0
    assert binned_error(()) is None


# ------------------------------------------------------------------ the verdict


VERDICTS = [
    (300, 0.0, {}, "not found"),
    (300, 0.0, {"materiality": 0.02}, "undecided"),
    (20_000, 0.0, {"materiality": 0.1}, "within"),
    (20_000, 0.0, {"materiality_ratio": 2.0}, "within"),
    (20_000, 0.02, {"materiality": 0.1}, "within"),
    (20_000, 0.02, {"materiality_ratio": 2.0}, "within"),
    (3000, 0.1, {"materiality": 0.02}, "material"),
    (3000, 0.1, {"materiality_ratio": 1.1}, "material"),
    (3000, -0.1, {"materiality_ratio": 1.1}, "material"),
    (3000, 0.1, {"materiality": 0.1}, "undecided"),
    (3000, 0.1, {"materiality_ratio": 1.25}, "material"),
    (3000, 0.1, {"materiality_ratio": 2.5}, "within"),
    (3000, 0.1, {}, "found"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("n", "by", "limit", "verdict"), VERDICTS)
def test_the_verdicts(n, by, limit, verdict):
    audit = caltest.audit(*shifted(n, by), statistics=("ks", "citl"), n_resamples=99, rng=0, **limit)
    assert audit.verdict == verdict
    assert audit.rejected == (by != 0.0)
    assert any(each.place == "beyond" for each in audit.story.named) == (verdict == "material")
    assert audit.views[0].inside == ((verdict == "within") if limit else None)
    if verdict != "material":
        assert bool(audit.unsettled) == (verdict == "undecided")
    assert audit.headline in " ".join(str(audit).split())


def test_limits_that_are_touched():
    """What reaches a limit is inside it; what begins at it is not proved to be beyond."""

    def place(low, high, predicted=0.5, points=None, ratio=None):
        return auditing.Limit.of(points, ratio).place(predicted, low, high)

    for sign in (1, -1):
        ends = {"near": 0.125, "at": 0.25, "over": 0.2500001, "far": 0.5}

        def one(least, most, sign=sign, ends=ends, **limit):
            return place(*sorted((sign * ends[least], sign * ends[most])), **limit)

        assert one("near", "at", points=0.25) == "inside"
        assert one("near", "over", points=0.25) == "across"
        assert one("at", "far", points=0.25) == "across"
        assert one("over", "far", points=0.25) == "beyond"
    assert place(-0.5, 0.25, ratio=2.0) == "inside"  # true rates from 1/4 to 1
    assert place(-0.5, 0.2500001, ratio=2.0) == "across"
    assert place(0.25, 0.3, ratio=2.0) == "across"
    assert place(0.2500001, 0.3, ratio=2.0) == "beyond"
    assert place(-0.5, -0.25, 0.25, ratio=2.0) == "across"  # from 1/2 to 3/4
    assert place(-0.5, -0.2500001, 0.25, ratio=2.0) == "beyond"


@pytest.mark.slow
def test_of_two_limits_the_wider_counts():
    """Either way by itself: low predictions by points, high ones by their ratio."""
    both = auditing.Limit.of(0.02, 1.25)
    assert both.allowed(0.01) == pytest.approx((-0.01, 0.03))
    assert both.allowed(0.5) == pytest.approx((0.4, 0.625))
    assert both.allowed(0.09) == pytest.approx((0.07, 0.1125))
    assert auditing.Limit.of(0.02, None).allowed(0.5) == pytest.approx((0.48, 0.52))
    assert auditing.Limit.of(None, 1.25).allowed(0.01) == pytest.approx((0.008, 0.0125))
    groups = np.where(np.arange(20_000) < 10_000, "rare", "common")
    p = np.where(groups == "rare", 0.01, 0.5)
    labels = drawn(p, np.random.default_rng(3))
    limits = {"points": {"materiality": 0.006}, "ratio": {"materiality_ratio": 1.1}}
    limits["both"] = limits["points"] | limits["ratio"]
    settled = {}
    for name, limit in limits.items():
        audit = caltest.audit(p, labels, groups=groups, n_resamples=99, rng=0, **limit)
        settled[name] = {str(view.group.value): view.inside for view in audit.views if view.group}
    assert settled["points"] == {"rare": True, "common": False}
    assert settled["ratio"] == {"rare": False, "common": True}
    assert settled["both"] == {"rare": True, "common": True}
    assert audit.verdict == "within"


@pytest.mark.level
@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_every_view_and_what_groups_leave_pass_their_own_two_tests(alpha):
    """Clopper and Pearson's limits with ``alpha`` a side, as if each were alone."""
    p, labels = shifted(4000, 0.02, where=np.arange(4000) % 4 == 0)
    groups = {"g": np.arange(4000) % 4, "h": np.arange(4000) // 200}
    for limit in (0.06, 0.045):
        audit = caltest.audit(
            p, labels, groups=groups, materiality=limit, alpha=alpha, n_resamples=199, rng=0
        )
        wholes = *audit.views, *audit.rests
        assert audit.rests
        for each in wholes:
            events = round(each.rows * each.observed)
            lower = beta.ppf(alpha, events, each.rows - events + 1)
            upper = beta.ppf(1.0 - alpha, events + 1, each.rows - events)
            inside = each.predicted - upper >= -limit and each.predicted - lower <= limit
            assert each.inside == inside
            assert (each in audit.unsettled) == (not inside)
        assert all(each.place != "beyond" for each in audit.story.named)
        assert audit.verdict == ("undecided" if audit.unsettled else "within")
    # Of each alone the interval is shorter than of all together.
    wholes = [(audit.limit.place(x.predicted, x.low, x.high), x.inside) for x in wholes]
    assert ("across", True) in wholes


def test_no_part_has_to_be_within_but_none_may_lie_beyond():
    """All means are within 5 points: parts may be too uncertain, but not shown to be further off."""
    quiet = caltest.audit(*shifted(6000, 0.0), materiality=0.05, n_resamples=99, rng=0)
    assert "across" in [quiet.limit.place(x.predicted, x.low, x.high) for x in quiet.views[0].parts]
    assert (quiet.verdict, quiet.unsettled) == ("within", ())
    stated = even(6000)
    truth = stated + np.where(stated > 0.5, 0.15, -0.15)
    found = caltest.audit(
        stated, drawn(truth, np.random.default_rng(1)), materiality=0.05, n_resamples=99, rng=0
    )
    assert found.views[0].inside
    assert found.unsettled == ()
    beyond = [each for each in found.story.named if each.place == "beyond"]
    assert {each.kind for each in beyond} == {"part"}
    assert {each.of.key for each in beyond} == {found.views[0].key}
    assert found.verdict == "material"


def test_what_lies_beyond_though_no_error_is_found_is_undecided_and_named():
    """A test of one view at its level may find what the joint test does not: then nothing is proved."""
    audit = caltest.audit(
        *shifted(3000, 0.1), groups=["a", "b"] * 1500, materiality=0.02, n_resamples=99, rng=0
    )
    assert (audit.verdict, audit.fails()) == ("material", True)
    weak = replace(
        audit,
        pvalue=0.06,
        checks=tuple(replace(each, adjusted=0.06, found=False) for each in audit.checks),
    )
    assert weak.story.mark(weak.views[0]).place == "may be beyond"
    assert (weak.verdict, weak.fails(), weak.fails("undecided")) == ("undecided", False, True)
    assert "the error of all rows may be beyond your limit." in " ".join(weak.headline.split())


def test_nothing_with_an_event_settles_nothing():
    """Of whole vectors of three classes there is no mean."""
    audit = caltest.audit(
        *calibrated(300, 3, 0), lenses="canonical", materiality=0.5, n_resamples=99, rng=0
    )
    assert (audit.story.marks, audit.unsettled, audit.rows_needed) == ({}, (), None)
    assert audit.verdict == "undecided"
    assert "no view has a single probability" in audit.headline


@pytest.mark.level
@pytest.mark.parametrize("kind", ["rows", "weights", "clusters", "sampled"])
def test_an_error_at_the_limit_is_called_within_with_probability_alpha_at_most(kind):
    """One of four groups lies just beyond the limit; the others are well inside."""
    n, limit, within, options, sets = 2000, 0.12, 0, {}, 100 if kind == "rows" else 30
    group, stated = np.arange(n) // 10 % 4, even(n)
    rng = np.random.default_rng(5)
    for seed in range(sets):
        truth = stated - np.where(group == 0, limit + 1e-9, 0.0)
        labels = drawn(truth, rng)
        if kind == "weights":
            options = {"weights": rng.uniform(0.5, 1.5, n)}
        if kind == "clusters":
            options = {"clusters": np.arange(n) // 8}
        rows = np.arange(n)
        if kind == "sampled":
            rows = rows[rng.random(n) < np.where(labels == 1, 1.0, 0.5)]
            options = {"sampling_rates": {0: 0.5, 1: 1.0}}
        audit = caltest.audit(
            stated[rows], labels[rows], groups=group[rows], statistics="citl", alpha=0.2,
            materiality=limit, n_resamples=39, rng=seed, **options,
        )  # fmt: skip
        within += audit.verdict == "within"
    assert within <= binom.ppf(0.9999, sets, 0.2)
    if kind == "rows":
        assert within >= binom.ppf(0.0001, 100, 0.15)  # nearly as many as allowed


@pytest.mark.slow
@pytest.mark.parametrize("groups", [None, 5])
def test_as_many_rows_as_asked_are_within_in_four_of_five(groups):
    """All are predicted .3, so that events are binomial; views that share rows settle together."""

    def audit_of(n, seed):
        p, cells = np.full(n, 0.3), None if groups is None else np.arange(n) % groups
        options = {"statistics": "citl", "materiality": 0.04, "n_resamples": 39, "rng": seed}
        return caltest.audit(p, drawn(p, np.random.default_rng(seed)), groups=cells, **options)

    asked = audit_of(500, 0)
    assert asked.verdict == "undecided"
    assert all(each.rows_needed > each.rows for each in asked.unsettled)
    within = sum(audit_of(asked.rows_needed, seed).verdict == "within" for seed in range(1, 41))
    low, high = binomial_limits(40, 0.8)
    assert low <= within / 40 <= (high if groups is None else 1.0)


@pytest.mark.slow
def test_rows_needed_are_those_of_the_group_that_needs_most():
    p = even(4000)
    group = np.where(np.arange(4000) < 200, "small", "large")
    audit = caltest.audit(
        p, drawn(p, np.random.default_rng(1)), groups=group, materiality=0.04, n_resamples=99, rng=0
    )
    whole, large, small = sorted(audit.views, key=lambda view: -view.rows)
    assert (whole.inside, large.inside, small.inside) == (True, True, False)
    assert (whole.rows_needed, large.rows_needed) == (None, None)
    assert audit.unsettled[0] == small
    alone = math.ceil(small.rows_needed / small.rows * 4000)
    assert alone < audit.rows_needed < 1.5 * alone  # all together
    assert audit.to_dict()["rows_needed"] == audit.rows_needed
    # A limit that is settled, none at all, or one that no number of rows would meet.
    for limit in ({"materiality": 0.4}, {}):
        settled = caltest.audit(
            p, drawn(p, np.random.default_rng(1)), groups=group, n_resamples=99, rng=0, **limit
        )
        assert (settled.unsettled, settled.rows_needed) == ((), None)
    never = replace(small, rows_needed=None)
    views = tuple(never if view is small else view for view in audit.views)
    assert replace(audit, views=views).rows_needed is None


def test_an_error_close_to_the_limit_needs_no_more_rows_than_there_are():
    audit = caltest.audit(*shifted(20_000, 0.02), materiality=0.02, n_resamples=99, rng=0)
    (view,) = audit.unsettled
    assert view.rows_needed < view.rows
    assert audit.rows_needed is None
    text = " ".join(str(audit).split())
    assert "The error of all rows is not shown to be within your limit; as estimated, it is " in text
    assert sizes.settled(audit, view) == "close to the limit"
    assert replace(audit, pvalue=0.5).headline == (
        "No error was found, but the error of all rows is close to your limit."
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["weights", "clusters", "sampled"])
def test_weights_clusters_and_sampled_rows_are_inside_by_their_own_bounds(kind):
    p, labels = shifted(4000, 0.0)
    rows = np.arange(4000)
    options = {"weights": np.random.default_rng(0).uniform(0.5, 2.0, 4000)}
    given = {}
    if kind == "clusters":
        options = {"clusters": rows // 400}  # few: no interval of t
    if kind == "sampled":
        rates = {0: 0.5, 1: 1.0}
        rows = rows[np.random.default_rng(0).random(4000) < np.where(labels == 1, 1.0, 0.5)]
        options = {"sampling_rates": rates}
    if kind == "weights":
        given = options
    settled = []
    for limit in np.geomspace(0.01, 0.6, 12):
        audit = caltest.audit(
            p[rows], labels[rows], materiality=float(limit), statistics="citl", n_resamples=39, rng=0,
            **options,
        )  # fmt: skip
        settled.append(audit.views[0].inside)
        if settled[-1]:
            break
    assert settled.count(True) == 1
    assert len(settled) > 1
    (view,) = audit.views
    assert audit.verdict == "within"
    assert view.exact
    plain = mean_bounds(np.array([4000.0]), np.array([float(labels.sum())]), 0.05)
    widths = view.predicted - plain[0][0], plain[1][0] - view.predicted
    assert limit > max(map(abs, widths))  # wider than of as many plain rows
    assert not given or audit.effective_n < 4000


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ({"materiality": 1.5}, "materiality is 1.5; give a difference of probabilities"),
        ({"materiality": 0.0}, "materiality is 0.0; give a difference of probabilities"),
        ({"materiality_ratio": 0.8}, "materiality_ratio is 0.8; give a ratio above 1"),
        ({"intersections": 4}, "intersections is 4; give 3 at most"),
    ],
)
def test_wrong_limits(limit, message):
    with pytest.raises(InputError, match=message):
        caltest.audit(*shifted(100, 0.0), n_resamples=99, **limit)


def test_a_limit_above_the_rate_is_warned_of():
    rng = np.random.default_rng(0)
    risk = rng.beta(1, 99, 2000)
    audit = caltest.audit(risk, drawn(risk, rng), materiality=0.05, n_resamples=99, rng=0)
    assert "a ratio alone, such as materiality_ratio=1.25" in " ".join(str(audit).split())


# ------------------------------------------------------------------ the group that explains


SEX = np.array(["F", "M"])[np.arange(4000) // 10 % 2]
AGE = np.array(["old", "young"])[np.arange(4000) // 20 % 2]
EXPLAINED = [
    ((SEX == "F") & (AGE == "old"), auditing.Group.of(sex="F", age="old")),
    (SEX == "F", auditing.Group.of(sex="F")),
    (AGE == "young", auditing.Group.of(age="young")),
    (slice(None), None),
]


@pytest.mark.slow
@pytest.mark.parametrize(("where", "group"), EXPLAINED)
@pytest.mark.parametrize("by", some_fast([0.15, -0.15], -0.15))
def test_the_smallest_group_that_explains_the_error(where, group, by):
    audit = caltest.audit(
        *shifted(4000, by, where=where), groups={"sex": SEX, "age": AGE}, n_resamples=199, rng=1
    )
    assert audit.worst.group == group
    assert audit.worst.direction == ("over" if by > 0 else "under")
    assert audit.to_dict()["worst"] == audit.views.index(audit.worst)


# ------------------------------------------------------------------ rests


@pytest.mark.slow
def test_rests_are_of_the_rows_that_a_group_leaves():
    p, labels = shifted(4000, 0.15, where=SEX == "F")
    audit = caltest.audit(p, labels, groups={"sex": SEX, "age": AGE}, n_resamples=199, rng=1)
    column = {"sex": SEX, "age": AGE}

    def inside(group):
        conditions = () if group is None else group.conditions
        return np.all([np.ones(4000, bool), *(column[c.column] == c.value for c in conditions)], axis=0)

    assert [rest.parent for rest in audit.rests if len(rest.group.conditions) == 1] == [None] * 4
    assert len(audit.rests) == 4 + 2 * 4
    for rest in audit.rests:
        left = inside(rest.parent) & ~inside(rest.group)
        assert rest.parent in rest.group.parents()
        assert rest.rows == left.sum()
        assert rest.predicted == pytest.approx(p[left].mean())
        assert rest.observed == pytest.approx(labels[left].mean())
        assert rest.found == (rest.adjusted_pvalue <= 0.05)
        wrong = (left & (SEX == "F")).mean() > 0.2
        assert rest.found == (abs(rest.error) > 0.05) == wrong


def test_rests_are_mean_checks_of_their_rows_on_the_same_draws():
    """What one of two groups leaves is the other, whose own check of the mean says the same."""
    probs, labels = calibrated(400, 2, 0)
    groups = {"a": ["x", "y"] * 200, "b": ["u"] * 150 + ["v"] * 250}
    options = {"statistics": "citl", "n_resamples": 99, "alpha": 0.9, "rng": 7}
    audit = caltest.audit(probs, labels, groups=groups, lenses="canonical", **options)
    checks = {frozenset(each.view.conditions): each.adjusted for each in audit.checks}
    turned = {"x": "y", "y": "x", "u": "v", "v": "u"}
    assert len(audit.rests) == 4 + 2 * 4
    for rest in audit.rests:
        kept = rest.parent.conditions if rest.parent else ()
        (own,) = set(rest.group.conditions) - set(kept)
        other = frozenset((*kept, replace(own, value=turned[own.value])))
        assert rest.adjusted_pvalue == checks[other]


def test_what_leaves_nothing_has_no_rest():
    """A group whose parent has no more rows, or none that are uncertain."""
    p = np.r_[np.full(60, 0.5), np.full(60, 1.0)]
    labels = [0, 1] * 30 + [1] * 60
    audit = caltest.audit(p, labels, groups=["a"] * 60 + ["b"] * 60, n_resamples=99, rng=0)
    assert audit.rests == ()


@pytest.mark.parametrize(("min_rows", "rests"), [(30, 2), (31, 0)])
def test_what_a_group_leaves_needs_as_many_rows_as_a_group(min_rows, rests):
    """One group has all rows but 30; these are neither a group nor what another leaves."""
    groups = ["a"] * 370 + ["b"] * 30
    audit = caltest.audit(
        *shifted(400, 0.0), groups=groups, min_rows=min_rows, materiality=0.3, n_resamples=99, rng=0
    )
    assert len(audit.rests) == rests
    assert len(audit.views) == 1 + (2 if rests else 1)
    assert audit.verdict == "within"


# ------------------------------------------------------------------ what would have been found


@pytest.mark.level
@pytest.mark.parametrize("sign", [1, -1])
def test_an_error_as_large_as_told_is_found_in_four_of_five(sign):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.3, 0.7, 500)
    options = {"groups": np.arange(500) % 4, "statistics": ("ks", "citl"), "n_resamples": 999}
    audit = caltest.audit(p, drawn(p, rng), rng=0, **options)
    assert not audit.rejected
    told = audit.sensitivity
    found = 0
    for seed in range(80):
        labels = drawn(p - sign * told.error, np.random.default_rng(seed + 1))
        again = caltest.audit(p, labels, rng=seed, **options)
        view = again.views[told.view]
        found += any(check.view is view and check.statistic == "citl" for check in again.found)
    assert found / 80 == pytest.approx(told.power, abs=0.15)


@pytest.mark.slow
def test_what_nothing_could_find():
    certain = np.tile([0.0, 1.0], 100)
    audit = caltest.audit(certain, certain.astype(int), n_resamples=99, rng=0)
    assert audit.sensitivity.error is None
    data = shifted(500, 0.0)
    for options in ({"statistics": "ks"}, {"correction": "holm"}, {"tolerance": 0.5}):
        assert caltest.audit(*data, n_resamples=399, rng=0, **options).sensitivity is None
    assert caltest.audit(*shifted(500, 0.3), n_resamples=99, rng=0).sensitivity is None
    one, many = (caltest.audit(*shifted(n, 0.0), n_resamples=199, rng=0) for n in (500, 5000))
    assert one.sensitivity.error > 2.0 * many.sensitivity.error


@pytest.mark.parametrize("alternative", ["greater", "less", "two-sided"])
@pytest.mark.parametrize("shape", [0.7, 4.0, None])
def test_what_reaches_a_threshold_has_the_evidence(alternative, shape):
    rng = np.random.default_rng(0)
    values = rng.normal(size=2000) if shape is None else rng.gamma(shape, size=2000)
    evidence = evidence_of_draws(values[:, None], [alternative])[:, 0]
    for threshold in (0.5, 1.0, 3.0, 5.0):
        low, high = reaching(values, threshold, alternative)
        beyond = (values <= low) | (values >= high)
        assert not (evidence[~beyond] >= threshold + 1e-6).any()
        # Of those beyond, ranks may lower the evidence by a little: where the curve does not fit.
        assert (evidence[beyond] > 0.8 * threshold - 0.1).all()
        assert {"greater": low == -np.inf, "less": high == np.inf}.get(alternative, True)
    assert reaching(np.ones(100), 3.0, alternative) == (-np.inf, np.inf)


def test_an_impossible_label_is_no_mean_error():
    """Means are within a wide limit, and that is all that is claimed; calibration is rejected."""
    rng = np.random.default_rng(0)
    p = rng.random(400)
    labels = (rng.random(400) < p).astype(int)
    p[0], labels[0] = 0.0, 1
    audit = caltest.audit(p, labels, materiality=0.9, n_resamples=199, rng=0)
    assert audit.at_most < 0.9
    assert audit.impossible
    assert (audit.rejected, audit.verdict) == (True, "within")
    assert (audit.fails(), audit.fails("undecided"), audit.fails("found")) == (False, False, True)
    assert "gave probability 0 to the observed label" in " ".join(str(audit).split())
