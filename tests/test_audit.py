"""The audit's p-values: by hand, by a plain loop, as distributions; the same however they are made."""

import numpy as np
import pandas as pd
import pytest
from audited import LIGHT, calibrated, one_bad_group
from support import binomial_limits

import caltest
from caltest.auditing.draws import answers
from caltest.data import sample
from caltest.pvalues import adjusted, count, evidence_of_draws, pvalue, step_down
from caltest.simulation import tempered
from caltest.statistics import STATISTICS


def raw(audit):
    """What is said of every hypothesis by itself."""
    return {
        (c.view.lens, c.view.group, c.statistic): (c.value, c.expected, c.pvalue, c.pvalue_interval)
        for c in audit.checks
    }


# ------------------------------------------------------------------ p-values


@pytest.fixture
def without_bounds(monkeypatch):
    """Leave out what is not looked at, and most of the work."""
    monkeypatch.setattr("caltest.auditing.audits.bounds", lambda *_: {})


def test_of_two_classes_too():
    probs, labels = calibrated(150, 2, 1)
    for check in caltest.audit(probs, labels, n_resamples=99, rng=7).checks:
        if check.view.lens == "canonical":
            result = caltest.test(probs, labels, check.statistic, n_resamples=99, rng=7)
            assert check.value == pytest.approx(result.statistic, rel=1e-12)
            assert check.pvalue == result.pvalue
            assert check.view.event == "the label is class 1"


def test_every_value_is_the_statistic_of_its_rows():
    probs, labels = calibrated(240, 3, 2)
    group = np.arange(240) % 3
    audit = caltest.audit(probs, labels, groups=group, n_resamples=99, rng=0)
    assert len(audit.checks) == 56
    for check in audit.checks:
        rows = slice(None) if check.view.group is None else group == int(check.view.group.value)
        lens = None if check.view.lens == "canonical" else check.view.lens
        value = caltest.estimate(probs[rows], labels[rows], check.statistic, lens=lens)
        assert check.value == pytest.approx(value, rel=1e-12)


@pytest.mark.slow
def test_a_plain_loop(without_bounds):
    """Draw, look through each lens at each group and its rest, and rank: nothing shared, no blocks."""
    probs, labels = calibrated(120, 3, 2)
    labels[:40] = probs[:40].argmin(axis=1)
    group = np.arange(120) % 3
    audit = caltest.audit(probs, labels, groups=group, min_rows=20, n_resamples=70, rng=7)
    drawn = sample(probs, labels).rows.sampler(7).draw(0, 70).astype(int)
    columns, sides = [], []

    def ranked(rows, lens, statistic):
        column = [
            caltest.estimate(probs[rows], each[rows], statistic, lens=lens) for each in (labels, *drawn)
        ]
        columns.append(column)
        sides.append(STATISTICS[statistic].alternatives[0])
        return pvalue(count(np.array(column[1:]), column[0], sides[-1]), 70, sides[-1])

    alone = []
    for check in audit.checks:
        rows = slice(None) if check.view.group is None else group == int(check.view.group.value)
        lens = None if check.view.lens == "canonical" else check.view.lens
        alone.append(ranked(rows, lens, check.statistic))
        assert check.pvalue == alone[-1]
    assert len(audit.rests) == 3 * 4
    alone += [ranked(group != int(rest.group.value), rest.lens, "citl") for rest in audit.rests]
    table = evidence_of_draws(np.array(columns).T, sides)
    joint = np.maximum(step_down(table[0], table[1:]), alone)
    found = [c.adjusted for c in audit.checks] + [rest.adjusted_pvalue for rest in audit.rests]
    assert found == pytest.approx(joint.tolist())
    assert audit.null_distribution == pytest.approx(table[1:].max(axis=1), rel=1e-6)
    assert audit.statistic == pytest.approx(table[0].max(), rel=1e-6)


def test_by_hand():
    """Two hypotheses, three draws: the first stands out; the second is beaten by one draw."""
    values = np.vstack([[9.0, 2.0], np.array([[0.0, 1.0], [1.0, 3.0], [0.0, 0.0]])])
    found = answers(values, np.zeros(2), ["greater"] * 2, "westfall_young")
    assert found.pvalues.tolist() == [0.25, 0.5]
    assert found.adjusted.tolist() == [0.25, 0.5]
    assert found.values.tolist() == [9.0, 2.0]
    holm = answers(values, np.zeros(2), ["greater"] * 2, "holm")
    assert holm.adjusted.tolist() == adjusted([0.25, 0.5]).tolist()


def test_what_is_no_number_says_nothing_and_spoils_nothing():
    values = np.random.default_rng(0).normal(size=(40, 3))
    values[0, 0] = 10.0
    values[:, 1] = np.nan
    values[5:9, 2] = np.nan
    found = answers(values, np.zeros(3), ["greater"] * 3, "westfall_young")
    assert found.adjusted[0] == 1 / 40
    assert found.pvalues[1] == found.adjusted[1] == 1.0
    assert np.isnan(found.expected[1]).all()


@pytest.mark.slow
def test_adjusted_is_never_below_alone(without_bounds):
    probs, labels, group = one_bad_group(800, 3, 0)
    for correction in (None, "holm", "fdr_bh"):
        options = {"lenses": "top_label", "statistics": ("ks", "ecd"), "n_resamples": 1999, "rng": 0}
        audit = caltest.audit(probs, labels, groups=group, correction=correction, **options)
        assert audit.n_checks == len(audit.checks) == 10  # without means there are no rests
        assert all(c.adjusted >= c.pvalue for c in audit.checks)
        order = [(c.adjusted, c.pvalue) for c in audit.checks]
        assert order == sorted(order)
        assert audit.pvalue == min(c.adjusted for c in audit.checks)
        assert [c.found for c in audit.checks] == [c.adjusted <= 0.05 for c in audit.checks]
        assert audit.found
        assert all(c.view.group is None or c.view.group.value == "0" for c in audit.found)
        if correction:
            expected = adjusted([c.pvalue for c in audit.checks], correction)
            assert [c.adjusted for c in audit.checks] == expected.tolist()


def test_a_hypothesis_more_leaves_the_others_alone(without_bounds):
    probs, labels = calibrated(300, 3, 4)
    frame = pd.DataFrame({"a": np.arange(300) % 2, "b": np.arange(300) % 3})
    small = raw(caltest.audit(probs, labels, groups=frame[["a"]], statistics=["ecd"], **LIGHT))
    for options in (
        {"groups": frame, "statistics": ["ecd"]},
        {"groups": frame[["a"]], "statistics": ["brier", "skce_uq", "ecd"]},
        {"lenses": ("classwise", "top_label", "canonical")},
        {"correction": "holm", "n_resamples": 999},
    ):
        options = {"groups": frame[["a"]], "statistics": "ecd", **options}
        more = raw(caltest.audit(probs, labels, **{**LIGHT, **options}))
        if "n_resamples" in options:
            assert {key: value[0] for key, value in more.items()} == {k: v[0] for k, v in small.items()}
        else:
            assert {key: more[key] for key in small} == small
            assert len(more) > len(small)


@pytest.mark.slow
def test_the_same_for_every_number_of_workers():
    probs, labels, group = one_bad_group(600, 4, 1)
    one, two = (
        caltest.audit(probs, labels, groups=group, n_resamples=199, rng=5, n_jobs=jobs)
        for jobs in (None, 2)
    )
    assert one.to_dict(draws=True) == two.to_dict(draws=True)


@pytest.mark.slow
def test_batches_change_nothing(monkeypatch, without_bounds):
    probs, labels, group = one_bad_group(600, 4, 1)
    whole = caltest.audit(probs, labels, groups=group, n_resamples=199, rng=5)
    monkeypatch.setattr("caltest.auditing.draws._HELD", 1)
    monkeypatch.setattr("caltest.resampling._BYTES", 1)
    for most in (2**28, 1):  # bytes of drawn labels kept
        monkeypatch.setattr("caltest.resampling._MOST_HELD", most)
        again = caltest.audit(probs, labels, groups=group, n_resamples=199, rng=5)
        assert again.to_dict() == whole.to_dict()


def test_the_same_for_every_order_of_the_columns_and_names_of_rows():
    """Another order of the rows has other draws, and the same values and groups."""
    probs, labels, group = one_bad_group(400, 3, 2)
    order = np.random.default_rng(0).permutation(400)
    one = caltest.audit(probs, labels, groups=group, **LIGHT)
    other = caltest.audit(probs[order], labels[order], groups=group[order], **LIGHT)
    values = {key: value[0] for key, value in raw(one).items()}
    for key, value in raw(other).items():
        assert value[0] == pytest.approx(values[key], rel=1e-9)
    for view, again in zip(one.views, other.views, strict=True):
        assert (view.group, view.rows, view.direction) == (again.group, again.rows, again.direction)


def test_function_statistics_and_those_evaluated_together():
    probs, labels = calibrated(120, 3, 5)
    seen = []

    def gap(probs, labels):
        seen.append(len(labels))
        return abs(probs[:, 1].mean() - (labels == 1).mean())

    class Together(caltest.statistics.ECD):
        def given(self, predictions):
            form = super().given(predictions)
            object.__setattr__(form, "together", True)
            return form

    options = {"groups": ["x", "y"] * 60, "lenses": "canonical", "n_resamples": 99, "rng": 0}
    audit = caltest.audit(probs, labels, statistics=[gap, Together(), "ecd"], **options)
    by_name = {}
    for check in audit.checks:
        by_name.setdefault((check.view.group, check.statistic), []).append((check.value, check.pvalue))
    assert set(seen) == {60, 120}
    assert "gap" in audit.call
    for (_, name), found in by_name.items():
        if name == "ecd":
            assert found[0] == pytest.approx(found[1])
        else:
            assert len(found) == 1


# ------------------------------------------------------------------ what is controlled


def light(probs, labels, group, seed, **options):
    options |= {"statistics": "ecd", "lenses": ("top_label",), "n_resamples": 39, "min_rows": 10}
    return caltest.audit(probs, labels, groups=group, rng=seed, **options)


@pytest.mark.level
def test_family_wise_error(without_bounds):
    """8 groups, calibrated: the chance of any finding is .05."""
    repetitions, n = 200, 240
    group = np.arange(n) % 8
    rejected = 0
    for seed in range(repetitions):
        data = tempered(n, np.ones(3), temperature=1.0, rng=seed)
        rejected += light(data.probs, data.labels, group, seed).rejected
    low, high = binomial_limits(repetitions, 0.05)
    assert low <= rejected / repetitions <= high


@pytest.mark.level
def test_true_groups_beside_a_false_one(without_bounds):
    """Group 0 is wrong and found; the chance that any other one is found stays below .05."""
    repetitions, n = 80, 400
    power = false = 0
    for seed in range(repetitions):
        probs, labels, group = one_bad_group(n, 3, seed, t=0.3)
        audit = light(probs, labels, group, seed)
        names = {check.view.group.value for check in audit.found if check.view.group}
        power += "0" in names
        false += bool(names - {"0"})
    assert power > 0.9 * repetitions
    assert false / repetitions <= binomial_limits(repetitions, 0.05)[1]


# ------------------------------------------------------------------ tolerance


@pytest.mark.slow
def test_with_a_tolerance(without_bounds):
    probs, labels, group = one_bad_group(2000, 3, 3, t=0.3, groups=2)
    options = {"groups": group, "lenses": ("canonical", "top_label"), "n_resamples": 199, "rng": 0}
    audit = caltest.audit(probs, labels, tolerance=0.05, **options)
    assert [(c.statistic, c.expected) for c in audit.checks] == [("scan", None)] * 3
    assert audit.correction == "holm"
    assert audit.null_distribution is None
    assert audit.tolerance == 0.05
    assert {c.view.group.value for c in audit.found if c.view.group} == {"0"}
    assert audit.skipped[0].what == "the lens 'canonical'"
    assert audit.checks[0].adjusted == adjusted([c.pvalue for c in audit.checks])[0]
    options |= {"n_resamples": 599}
    again = caltest.audit(probs, labels, tolerance=0.05, **options)
    options |= {"lenses": ("classwise", "top_label")}
    more = caltest.audit(probs, labels, tolerance=0.05, **options)
    assert {key: raw(more)[key] for key in raw(again)} == raw(again)
    none = caltest.audit(probs, labels, tolerance=0.6, **options)
    assert not none.rejected
    assert "more than 60 points" in " ".join(none.summary().split())


@pytest.mark.level
def test_with_a_tolerance_an_audit_is_cautious(without_bounds):
    """Of models that are wrong by exactly the tolerance in one direction, as docs/audit.md says."""
    rejected = 0
    for seed in range(60):
        rng = np.random.default_rng([7, seed])
        p, group = rng.uniform(0.1, 0.9, 400), rng.integers(0, 4, 400)
        labels = (rng.random(400) < p - 0.05).astype(int)
        audit = caltest.audit(p, labels, groups={"g": group}, tolerance=0.05, rng=seed)
        rejected += audit.rejected
    assert rejected / 60 <= binomial_limits(60, 0.02, 1e-3)[1]


def test_one_column_is_of_the_event_that_its_labels_name():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"risk": rng.random(60), "readmitted": rng.integers(0, 2, 60)})
    options = {"n_resamples": 99, "rng": 0}
    assert caltest.audit(table["risk"], table["readmitted"], **options).event == "readmitted"
    plain = table.rename(columns={"readmitted": "label"})
    assert caltest.audit(plain["risk"], plain["label"], **options).event == "risk"
    assert caltest.audit(plain["risk"], plain["label"].to_numpy(), **options).event == "risk"
