"""Audits of rows that count differently, depend on each other, or were kept by their label."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, chi2, norm, t
from support import some_fast

import caltest
from caltest import InputError
from caltest.auditing.sizes import Design, enough_clusters
from caltest.bounds.intervals import error_bounds

SMALL = {"n_resamples": 99, "rng": 1}


def risk(n, seed, shift=0.0):
    rng = np.random.default_rng(seed)
    logit = rng.normal(-0.5, 1.0, n)
    true = 1 / (1 + np.exp(-(logit + shift)))
    return 1 / (1 + np.exp(-logit)), (rng.random(n) < true).astype(int), rng


def clustered(n_clusters, size, seed, correlation=0.5):
    """Calibrated rows that share a latent cause."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(n_clusters), size)
    p = rng.beta(1.5, 1.5, n_clusters)[cluster] * 0.8 + 0.1
    latent = np.sqrt(correlation) * rng.standard_normal(n_clusters)[cluster]
    latent += np.sqrt(1 - correlation) * rng.standard_normal(len(cluster))
    return p, (norm.cdf(latent) > 1 - p).astype(int), cluster


@pytest.mark.level
def test_few_events_have_a_wide_interval_that_holds():
    """By hand for clusters of one size, which are as many coins; and simulated for others."""
    labels = np.zeros(268, dtype=int)
    labels[0] = 1
    pairs = Design(np.ones(268), np.repeat(np.arange(134), 2))
    predicted, observed, low, high = pairs.interval(np.full(268, 0.02), labels, 1e-3)
    assert (predicted, observed) == (pytest.approx(0.02), 1 / 268)
    assert high == pytest.approx(predicted, abs=1e-6)  # 1 event in 134 leaves nearly none possible
    rate = predicted - low
    distance = observed * np.log(observed / rate)
    distance += (1 - observed) * np.log((1 - observed) / (1 - rate))
    assert np.exp(-134 * distance) == pytest.approx(1e-3, rel=1e-4)
    rng, missed = np.random.default_rng(1), 0
    for _ in range(400):  # whole clusters have the event or not, and large ones twice as often
        size = rng.integers(1, 12, 40)
        of = np.repeat(np.arange(40), size)
        true = (rng.beta(0.5, 20, 40) * np.where(size > 6, 2, 1))[of]
        labels, rows = (rng.random(40)[of] < true) * 1, Design(np.ones(len(of)), of)
        *_, low, high = rows.interval(true, labels, 0.025)
        missed += not low <= 0.0 <= high
    assert missed <= binom.ppf(0.999, 400, 0.05)


@pytest.mark.slow
def test_equal_weights_change_nothing():
    p, y, rng = risk(400, 0)
    groups = {"site": rng.choice(["a", "b"], 400)}
    plain = caltest.audit(p, y, groups=groups, **SMALL)
    assert caltest.audit(p, y, groups=groups, weights=np.full(400, 3.0), **SMALL).to_dict() == (
        plain.to_dict()
    )
    assert plain.exact_intervals
    assert plain.effective_n is None
    assert "weights" not in plain.call
    uneven = caltest.audit(p, y, groups=groups, weights=np.arange(1.0, 401.0), **SMALL)
    assert "weights=weights" in uneven.call
    some = caltest.audit(p, y, groups=groups, weights=np.arange(400) % 2, **SMALL)
    assert "weights=weights" in some.call  # they leave rows out


def ends(sums, whole, level):
    """How far intervals go: by t, or by Poisson counts with the skewness of the sums."""
    n, second, third = len(sums), (sums**2).sum(), (sums**3).sum()
    half = t.ppf(1 - level, n - 1) * np.sqrt(n / (n - 1) * second) / whole
    events = second**3 / third**2
    unit = abs(third) / second / whole * t.ppf(level, n - 1) / norm.ppf(level)
    more = unit * (chi2.ppf(1 - level, 2 * events + 2) / 2 - events)  # Garwood's bounds
    less = unit * (events - chi2.ppf(level, 2 * events) / 2)
    below, above = (more, less) if third < 0 else (less, more)
    return max(half, below), max(half, above)


def test_weighted_means_and_their_interval_by_hand():
    p, y, rng = risk(500, 1)
    w = rng.exponential(size=500)
    audit = caltest.audit(p, y, weights=w, **SMALL)
    (view,) = audit.views
    assert view.predicted == pytest.approx(np.average(p, weights=w))
    assert view.observed == pytest.approx(np.average(y, weights=w))
    assert (view.low, view.high) == pytest.approx(error_bounds(p, y, 0.8 * 0.05 / 2, w))
    assert view.low < 0.0 < view.high
    assert audit.effective_n == pytest.approx(w.sum() ** 2 / (w**2).sum())
    assert audit.exact_intervals
    assert "Intervals are exact" in " ".join(str(audit).split())
    assert view.at_least_over is None
    assert view.reliability is None
    assert caltest.report.to_html(audit)


def test_p_values_with_weights_are_those_of_the_weighted_statistics():
    p, y, rng = risk(300, 2)
    w = rng.exponential(size=300)
    for check in caltest.audit(p, y, weights=w, **SMALL).checks:
        alone = caltest.test(p, y, check.statistic, weights=w, **SMALL)
        assert check.value == pytest.approx(alone.statistic)
        assert check.pvalue == alone.pvalue


def test_what_a_group_leaves_with_weights():
    p, y, rng = risk(600, 3, shift=0.4)
    w, site = rng.exponential(size=600), rng.choice(["a", "b", "c"], 600)
    for rest in caltest.audit(p, y, weights=w, groups={"site": site}, **SMALL).rests:
        rows = site != rest.group.conditions[0].value
        assert rest.predicted == pytest.approx(np.average(p[rows], weights=w[rows]))
        assert rest.observed == pytest.approx(np.average(y[rows], weights=w[rows]))


def test_rows_of_weight_0_are_left_out_with_their_groups():
    p, y, rng = risk(400, 9)
    w, site = rng.exponential(size=400), rng.choice(["a", "b", "c"], 400)
    w[site == "c"] = 0.0
    w[:20] = 0.0
    whole = caltest.audit(p, y, weights=w, groups={"site": site}, **SMALL)
    kept = w > 0
    part = caltest.audit(p[kept], y[kept], weights=w[kept], groups={"site": site[kept]}, **SMALL)
    values = [check.value for check in part.checks]
    assert [check.value for check in whole.checks] == pytest.approx(values)
    assert whole.pvalue == part.pvalue
    assert {view.group.label for view in whole.views if view.group} == {"site = a", "site = b"}


def test_from_twenty_shared_events_on_intervals_are_those_of_sums():
    """Predictions decide: of 250 pairs, 25 are expected to have the event if they share it."""
    p, labels = np.full(500, 0.1), np.zeros(500, dtype=int)
    design = Design(np.ones(500), np.arange(500) // 2)
    for rate, level, by_t in ((0.79, 0.05, False), (1, 0.05, True), (9, 0.0065, True)):
        assert (design.carried(rate * p) >= enough_clusters(level)) is by_t
    assert not any(design.carried(p) >= enough_clusters(level) for level in (0.0063, 0.0004))
    labels[:40] = 1
    wide = np.diff(design.interval(p, labels, 0.025)[2:])
    low, high = design.interval(p, labels, 0.025, by_t=True)[2:]
    sums = 2 * (0.08 - labels[::2])
    below, above = ends(sums, 500.0, 0.025)
    assert below > above == pytest.approx(t.ppf(0.975, 249) * np.sqrt(250 / 249 * sums @ sums) / 500)
    assert (low, high) == pytest.approx((0.02 - below, 0.02 + above))
    assert wide > below + above


@pytest.mark.slow
@pytest.mark.parametrize("flipped", some_fast([False, True], False, mark="level"))
@pytest.mark.parametrize(
    "kind", some_fast(["weights", "pairs", "beside certain rows"], "pairs", mark="level")
)
def test_intervals_of_rare_events_miss_as_rarely_as_said(kind, flipped):
    """With 30 events expected, intervals of t missed several times as often."""
    level, missed = 0.01, 0
    clusters = np.repeat(np.arange(300), 2) if kind == "pairs" else None
    true = np.full(600, 0.05)
    if kind == "beside certain rows":
        true = np.r_[true, np.full(600, 1 - 1e-9)]
    for seed in range(300):
        rng = np.random.default_rng(seed)
        labels = (rng.random(len(true)) < true).astype(int)
        weights = np.ones(len(true))
        if kind == "pairs":
            both = rng.random(300)[clusters] < 0.3
            labels[both] = labels[2 * clusters[both]]
        else:
            weights = rng.uniform(0.8, 1.2, len(true))
        scores = 1 - true if flipped else true
        labels = 1 - labels if flipped else labels
        *_, low, high = Design(weights, clusters).interval(scores, labels, level)
        missed += not low <= 0.0 <= high
    assert missed <= binom.ppf(0.999, 300, 2 * level)


def test_scales_of_weights_do_not_matter_to_intervals():
    rng = np.random.default_rng(0)
    labels, weights = (rng.random(400) < 0.05).astype(int), rng.uniform(1.0, 2.0, 400)
    found = Design(weights).interval(np.full(400, 0.05), labels, 0.01)
    for scale in (1e-100, 1e100):
        scaled = Design(weights * scale).interval(np.full(400, 0.05), labels, 0.01)
        assert scaled == pytest.approx(found)


@pytest.mark.slow
def test_views_of_few_clusters_are_said():
    p, y, cluster = clustered(200, 5, 0)
    parts = np.where(cluster < 12, "few", "many")
    audit = caltest.audit(p, y, clusters=cluster, groups={"part": parts}, **SMALL)
    (note,) = [each for each in audit.warnings if "narrow intervals" in each]
    assert note.startswith("In 1 of 3 views too few clusters count for narrow intervals (")
    assert "of time, shorter blocks" in note
    p, y, cluster = clustered(200, 3, 0)
    quiet = caltest.audit(p, y, clusters=cluster, groups={"odd": cluster % 2}, **SMALL)
    assert not any("narrow intervals" in each for each in quiet.warnings)


@pytest.mark.slow
def test_clusters_are_named_and_checks_are_those_of_signs():
    p, y, cluster = clustered(60, 5, 0)
    names = pd.Series([f"patient {k}" for k in cluster])
    audit = caltest.audit(p, y, clusters=names, groups={"odd": cluster % 2}, **SMALL)
    assert audit.clusters == 60
    assert "60 independent clusters" in str(audit)
    assert {check.statistic for check in audit.checks} == {"skce_uq", "ks", "citl"}
    for check in [check for check in audit.checks if check.view.group is None]:
        alone = caltest.test(p, y, check.statistic, clusters=names, **SMALL)
        assert check.value == pytest.approx(alone.statistic)
    assert audit.n_resamples == 99
    assert caltest.report.to_html(audit)


def test_few_clusters_have_few_signs():
    p, y, cluster = clustered(6, 30, 1)
    assert caltest.audit(p, y, clusters=cluster, alpha=0.1, **SMALL).n_resamples == 63
    with pytest.raises(InputError, match=r"clusters names 6 clusters, too few .* alpha = 0.01; give"):
        caltest.audit(p, y, clusters=cluster, alpha=0.01, **SMALL)


def test_checks_that_few_clusters_carry_are_confirmed():
    """In a group of rare events, often none occurs: all errors then point one way."""
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(200), 10)
    rare = rng.random(200)[cluster] < 0.3
    p = np.where(rare, 0.02, rng.uniform(0.3, 0.7, 2000))
    y = (rng.random(200)[cluster] < p).astype(int)
    y[rare] = 0
    groups = {"kind": np.where(rare, "rare", "usual")}
    audit = caltest.audit(p, y, clusters=cluster, groups=groups, **SMALL)
    (note,) = [each for each in audit.warnings if "few clusters carry the statistic" in each]
    assert "of 11 checks" in note
    assert "They share the level with the other checks" in note
    by_group = {check.view.group.label: check for check in audit.checks if check.view.group}
    assert by_group["kind = rare"].pvalue > 0.05  # by signs alone 0.01
    assert by_group["kind = usual"].pvalue < 1.0


def test_reports_of_few_clusters_agree_with_themselves():
    """By signs nothing is as strong; the p-value is confirmed, and large: no threshold is drawn."""
    cluster = np.repeat(np.arange(50), 10)
    audit = caltest.audit(np.full(500, 0.02), np.zeros(500, int), clusters=cluster, **SMALL)
    page, text = caltest.report.to_html(audit), " ".join(str(audit).split())
    assert audit.verdict == "not found"
    assert "None of 99 simulations gave evidence this strong." in page
    assert "rejects beyond" not in page
    assert "it is no smaller than the p-value of the check alone." in page
    assert ">rows</text>" not in page  # there are no bars of one prediction
    assert "other checks" not in text  # few clusters carry all of them
    assert "in some parts" not in text
    assert "If smaller ones matter, audit again with more clusters." in text
    assert "sign flips of clusters; no p can be smaller than 0.01." in page  # families share the level


def test_what_remains_possible_is_held_against_the_limit_and_needs_clusters():
    options = {"clusters": np.repeat(np.arange(50), 10), "materiality": 0.005, **SMALL}
    audit = caltest.audit(np.full(500, 0.02), np.zeros(500, int), **options)
    text = " ".join(str(audit).split())
    assert audit.at_most <= 0.1
    assert re.search(
        "No error was found. To show the average to be within 0.5 points takes about ", text
    )
    assert re.search(r"with clusters like these it takes about [\d,]+ clusters \([\d,]+ times as", text)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_an_interval_of_t_needs_events_in_many_large_clusters(seed):
    """All are predicted .5, single rows are right, and clusters of 50 have all an event, rarely."""
    rng = np.random.default_rng(seed)
    codes = np.r_[np.arange(300), 300 + np.arange(1500) // 50]
    labels = np.r_[rng.random(300) < 0.5, np.repeat(rng.random(30) < 0.05, 50)].astype(int)
    audit = caltest.audit(
        np.full(1800, 0.5), labels, clusters=codes, materiality=0.38, n_resamples=99, rng=seed
    )
    assert audit.verdict != "material"
    assert audit.views[0].exact
    assert audit.views[0].low <= 0.375 <= audit.views[0].high


def test_events_of_one_cluster_count_once():
    """Ten events of one patient are those of one: the interval is then not that of t."""
    labels = np.repeat([1, 0], [20, 380])
    alone, together = (
        Design(np.ones(400), codes).interval(np.full(400, 0.05), labels, 0.025)
        for codes in (np.arange(400), np.repeat(np.arange(20), 20))
    )
    assert alone[:2] == pytest.approx((0.05, 0.05)) == together[:2]
    assert together[3] - together[2] > 3.0 * (alone[3] - alone[2])


def test_what_has_no_form_for_clusters_is_refused():
    p, y, cluster = clustered(60, 5, 2)
    with pytest.raises(InputError, match="'cox' has no form for rows in clusters"):
        caltest.audit(p, y, clusters=cluster, statistics=["cox"], **SMALL)
    with pytest.raises(InputError, match=r"only means are tested .*; leave out statistics=, or"):
        caltest.audit(p, y, clusters=cluster, tolerance=0.1, statistics="scan", **SMALL)


@pytest.mark.level
def test_dependent_rows_are_rejected_no_more_often_than_alpha():
    """The record has 400 data sets of each of ten more designs (`vouched`)."""
    rejected = held = as_independent = 0
    count = 80
    for seed in range(count):
        p, y, cluster = clustered(60, 8, seed + 100)
        groups = {"across": cluster % 2}
        audit = caltest.audit(p, y, clusters=cluster, groups=groups, n_resamples=99, rng=seed)
        rejected += audit.rejected
        held += all(view.low <= 1e-9 and view.high >= -1e-9 for view in audit.views)
        if seed < 40:
            plain = caltest.audit(
                p, y, groups=groups, n_resamples=99, rng=seed, statistics=["citl", "ks"]
            )
            as_independent += plain.rejected
    assert rejected <= binom.ppf(0.999, count, 0.05)
    assert held >= count * 0.9
    assert as_independent >= 10


@pytest.mark.slow
def test_rows_kept_by_their_label_are_judged_on_the_scale_of_the_population():
    rng = np.random.default_rng(5)
    p = 1 / (1 + np.exp(-rng.normal(-4.0, 1.0, 60_000)))
    y = (rng.random(60_000) < p).astype(int)
    kept = (y == 1) | (rng.random(60_000) < 0.1)
    audit = caltest.audit(p[kept], y[kept], sampling_rates={0: 0.1}, event="fraud", **SMALL)
    assert not audit.rejected
    (view,) = audit.views
    assert view.predicted == pytest.approx(p.mean(), rel=0.05)
    assert view.low < 0 < view.high
    assert all(part.start <= part.predicted <= part.end for part in view.parts)
    assert "whole population" in str(audit)
    assert caltest.audit(p[kept], y[kept], **SMALL).rejected
    wrong = caltest.audit(0.3 * p[kept], y[kept], sampling_rates={0: 0.1}, event="fraud", **SMALL)
    assert wrong.worst.direction == "under"
    assert wrong.worst.observed == pytest.approx(y.mean(), rel=0.05)
    assert wrong.worst.histogram.edges[-1] == pytest.approx(0.3 * p[kept].max())


def test_copied_rows_are_noticed():
    p, y, _ = risk(400, 7)
    audit = caltest.audit(np.tile(p, 3), np.tile(y, 3), **SMALL)
    assert "copies of each other" in audit.premises[0].seen


# ------------------------------------------------------------------ what a few clusters may hide


def constant(sizes, seed, rate=0.5):
    """Rows of one prediction, independent; every third is of another kind."""
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    rng = np.random.default_rng(seed)
    return np.full(len(cluster), rate), (rng.random(len(cluster)) < rate) * 1, cluster


EQUAL, UNEQUAL = np.full(60, 20), np.arange(90) % 10 + 15


@pytest.mark.parametrize(
    ("sizes", "options", "clusters"),
    [
        (EQUAL, {}, 60.0),
        (EQUAL, {"alpha": 0.2}, 60.0),
        (EQUAL, {"alpha": 0.1}, 60.0),
        (UNEQUAL, {}, (UNEQUAL**2.0).sum() ** 2 / (UNEQUAL**4.0).sum()),
        # Weights of 1 and 2: 30 clusters that count 1, 30 that count 4, once squared.
        (EQUAL, {"weights": np.repeat([1.0, 2.0], 600)}, 150.0**2 / (30 * 17)),
        # The group with the fewest clusters counts.
        (np.full(95, 20), {"groups": {"site": np.repeat([1, 2], [1000, 900])}}, 45.0),
        (EQUAL, {"guaranteed": True, "materiality": 0.3}, None),
    ],
    ids=["equal", "alpha .2", "alpha .1", "unequal", "weights", "groups", "guaranteed"],
)
def test_within_in_clusters_says_what_share_of_them_it_leaves_out(sizes, options, clusters):
    """ln(1/alpha) / G by hand, in every form of the result."""
    p, y, cluster = constant(sizes, 3)
    found = caltest.audit(p, y, clusters=cluster, **({"materiality": 0.1} | SMALL | options))
    assert found.verdict == "within"
    assert found.to_dict()["could_miss"] == found.could_miss
    texts = (found.summary(), caltest.report.to_html(found), caltest.report.to_markdown(found))
    texts = [" ".join(text.split()) for text in (*texts, caltest.report.to_junit(found))]
    if clusters is None:
        assert found.could_miss is None
        assert found.exact_intervals
        assert not any("supposes" in text for text in texts)
        assert "in at most 5% of cases" in texts[0]
        return
    share = np.log(1.0 / options.get("alpha", 0.05)) / clusters
    assert found.could_miss == pytest.approx(share)
    assert max(view.could_miss for view in found.views) == found.could_miss
    words = f"no effect is confined to fewer than {np.ceil(1000 * share) / 10:g}% of the clusters"
    assert all(words in text for text in texts)
    assert "we would wrongly say this in about" in texts[0]


def outbreaks(rng, n_clusters=60, size=20):
    """Rows that are right, but of one cluster in 60 all have the event: .9 points too low."""
    cluster = np.repeat(np.arange(n_clusters), size)
    p = rng.uniform(0.35, 0.55, len(cluster))
    hit = (rng.random(n_clusters) < 1.0 / 60.0)[cluster]
    return p, (hit | (rng.random(len(p)) < p)) * 1, cluster


@pytest.mark.level
def test_an_effect_that_did_not_occur_is_guaranteed_not_to_be_called_within():
    """With t it is called so wherever it did not occur: (59/60)^60 = 36%."""
    counts = dict.fromkeys((False, True), 0)
    for seed in range(60):
        p, y, cluster = outbreaks(np.random.default_rng(seed), size=400)
        for guaranteed in counts:
            options = {"materiality": 0.009, "statistics": "citl", "guaranteed": guaranteed}
            found = caltest.audit(p, y, clusters=cluster, n_resamples=99, rng=seed, **options)
            counts[guaranteed] += found.verdict == "within"
    assert counts[True] <= binom.ppf(0.99, 60, 0.05)
    assert counts[False] >= 5


SOUND = ["plain", "weights", "sampled", "groups", "classes", "quantile"]


@pytest.mark.parametrize("kind", some_fast(SOUND, "plain", "weights", "quantile"))
def test_in_clusters_a_guaranteed_finding_has_an_exact_interval(kind):
    """Random signs find a middling and a large error; exact intervals exclude 0 for the large one."""
    rng = np.random.default_rng(5)
    for rate, large in ((0.48, False), (0.9, True)):
        cluster = np.repeat(np.arange(100), 10)
        p, options = np.full(1000, 0.4), {}
        y = (rng.random(1000) < rate) * 1
        if kind == "weights":
            options = {"weights": 1.0 + cluster % 2}
        elif kind == "sampled":
            options = {"sampling_rates": {0: 0.95}}
        elif kind == "groups":
            options = {"groups": {"site": cluster % 2}}
        elif kind == "classes":
            p, options = np.column_stack([0.4 * (1 - p), p, 0.6 * (1 - p)]), {"lenses": "class:1"}
        elif kind == "quantile":
            p, y = norm(np.zeros(1000), 1.0), norm.ppf(rng.random(1000)) - (1.6 if large else 0.3)
            options = {"lenses": "quantile:0.5"}
        loose = caltest.audit(p, y, clusters=cluster, **SMALL, **options)
        exact = caltest.audit(p, y, clusters=cluster, guaranteed=True, **SMALL, **options)
        adjusted = {(each.view.key, each.statistic): each.adjusted for each in loose.checks}
        assert loose.rejected
        assert all(view.exact for view in exact.views)
        assert exact.rejected == large
        assert exact.verdict == ("found" if large else "not found")
        for check in exact.checks:
            same = adjusted[check.view.key, check.statistic]
            assert check.adjusted == (same if check.view.side else 1.0)
        assert exact.pvalue == min(each.adjusted_pvalue for each in (*exact.views, *exact.rests))
        assert "guaranteed=True" in exact.call


@pytest.mark.parametrize("shift", [-0.6, 0.6])
def test_no_shape_is_guaranteed(shift):
    """It rests on an interval of t; p-values of independent rows are exact and stay."""
    rng = np.random.default_rng(1)
    logit = rng.normal(0.0, 1.5, 2000)
    p, y = 1 / (1 + np.exp(-logit)), (rng.random(2000) < 1 / (1 + np.exp(-logit * (1 + shift)))) * 1
    loose, exact = (caltest.audit(p, y, guaranteed=each, **SMALL) for each in (False, True))
    assert loose.views[0].shape == ("over" if shift < 0.0 else "under")
    assert exact.views[0].shape is None
    assert "confident" not in exact.headline
    assert [each.adjusted for each in exact.checks] == [each.adjusted for each in loose.checks]
    assert exact.pvalue == loose.pvalue == 0.01


def test_what_has_no_exact_bound_is_not_guaranteed():
    p, y, cluster = constant(EQUAL, 1)
    for options in ({"tolerance": 0.02}, {"rounding": 0.1}, {"tolerance": 0.02, "rounding": 0.1}):
        with pytest.raises(InputError, match="a tolerance or rounding in clusters; give materiality"):
            caltest.audit(p, y, clusters=cluster, guaranteed=True, **options)
        assert not caltest.audit(p, y, guaranteed=True, **SMALL, **options).rejected
    rng = np.random.default_rng(0)
    time, event = rng.exponential(size=200), rng.random(200) < 0.7
    times = caltest.predictive.Survival(np.tile([0.7, 0.5, 0.2], (200, 1)), [0.4, 0.7, 1.6])
    with pytest.raises(
        InputError,
        match=r"none is known for censored times whose follow-up is not known; give follow_up",
    ):
        caltest.audit(times, (time, event), guaranteed=True)
    with pytest.raises(InputError, match="guaranteed is 1; give True or False"):
        caltest.audit(p, y, guaranteed=1)


def test_other_doors_to_an_audit_take_guaranteed():
    p, y, cluster = constant(EQUAL, 1)
    options = {"clusters": cluster, "guaranteed": True, "n_resamples": 99}
    assert caltest.assert_calibrated(p, y, **options).guaranteed
    rng = np.random.default_rng(0)
    mu = rng.normal(size=300)
    draws = rng.normal(rng.normal(mu, 1.0) / 2, 0.5**0.5, size=(20, 300))
    found = caltest.sbc({"mu": mu}, {"mu": draws}, guaranteed=True, **SMALL)
    assert found.guaranteed
    assert found.to_dict()["guaranteed"] is True
