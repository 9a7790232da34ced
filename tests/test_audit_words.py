"""What an audit says does not contradict itself, claims no more than is shown, and stays readable."""

import json
import re
from dataclasses import replace

import audits
import numpy as np
import pytest
import scipy.stats
from audited import LIGHT, calibrated, one_bad_group
from support import binomial_limits, dirichlet, labels_from

import caltest
from caltest import auditing, report
from caltest.auditing import diagrams
from caltest.auditing.story import explains_zeros, finds_mean
from caltest.pvalues import CORRECTIONS
from caltest.text import audit as words
from caltest.text import captions, sizes, vocabulary
from caltest.text.advice import advice


@pytest.fixture(scope="module")
def wrong():
    probs, labels, group = one_bad_group(1500, 3, 3, t=0.3)
    return caltest.audit(probs, labels, groups={"region": group}, n_resamples=99, rng=0)


@pytest.fixture(scope="module")
def right():
    return caltest.audit(*calibrated(200, 3, 11), groups=["a", "b"] * 100, rng=0, n_resamples=199)


# ------------------------------------------------------------------ bounds agree with checks


@pytest.mark.slow
def test_bounds_without_a_finding_are_lowered_to_nothing(monkeypatch):
    """Bounds and checks are different tests: here every bound says something."""
    monkeypatch.setattr(
        "caltest.auditing.audits.bounds", lambda looks, *_: dict.fromkeys(looks, (0.1, 0.2))
    )
    probs, labels, group = one_bad_group(1500, 3, 3, t=0.3)
    audit = caltest.audit(probs, labels, groups=group, n_resamples=99, rng=0)
    found = {check.view.key for check in audit.found}
    bounded = [view for view in audit.views if view.at_least_over is not None]
    assert {view.key in found for view in bounded} == {True, False}
    for view in bounded:
        bounds = view.at_least_over, view.at_least_under
        assert bounds == ((0.1, 0.2) if view.key in found else (0.0, 0.0))
    none = caltest.audit(*calibrated(300, 3, 0), n_resamples=99, rng=0)
    assert not none.rejected
    assert {view.at_least_over for view in none.views} == {None, 0.0}
    assert "at least" not in str(none)


# ------------------------------------------------------------------ bands


@pytest.mark.level
def test_no_diagram_of_a_calibrated_model_shows_a_mark_outside(monkeypatch):
    """All views of one probability are drawn; the chance that any shows a mark outside is alpha."""
    monkeypatch.setattr(
        "caltest.auditing.audits.bounded_looks",
        lambda looks, _: ([look for look in looks if look.event], 0),
    )
    monkeypatch.setattr(
        "caltest.auditing.audits.bounds", lambda looks, *_: dict.fromkeys(looks, (0.0, 0.0))
    )
    repetitions, outside = 120, 0
    for seed in range(repetitions):
        probs = dirichlet(240, 3, seed)
        audit = caltest.audit(
            probs,
            labels_from(probs, np.random.default_rng(seed)),
            groups=np.arange(240) % 4,
            statistics="ecd",
            lenses=("top_label", "classwise"),
            alpha=0.3,
            n_resamples=19,
            rng=seed,
        )
        shown = [view.reliability for view in audit.views]
        assert len(shown) == 4 * 5
        outside += any(
            ((np.array(r.observed) < r.low) | (np.array(r.observed) > r.high)).any() for r in shown
        )
    low, high = binomial_limits(repetitions, 0.3)
    assert 0.2 * low <= outside / repetitions <= high


@pytest.mark.slow
@pytest.mark.parametrize("most", [10**9, 0])
def test_bands_are_of_all_views_that_could_be_drawn(monkeypatch, most):
    """What all bands leave out, drawn or not, adds up to alpha at most."""
    monkeypatch.setattr(diagrams, "_MOST_IN_BANDS", most)
    monkeypatch.setattr(diagrams, "_MOST_PICTURED", 0)
    seen, make = [], diagrams.bands_of

    def heard(looks, always, chosen, level):
        assert len(always) == 8
        bands = make(looks, always, looks, level)
        seen.extend((look.view().rows.probs, band) for look, band in bands.items())
        return make(looks, always, chosen, level)

    monkeypatch.setattr(diagrams, "bands_of", heard)
    probs, labels, group = one_bad_group(600, 3, 3)
    caltest.audit(probs, labels, groups=group, n_resamples=99, rng=0)
    assert len(seen) == 4 * 5
    outside = 0.0
    for pair, band in seen:
        cells = diagrams.bins_of(pair)
        for b, (low, high) in enumerate(zip(band.low, band.high, strict=True)):
            law = np.ones(1)
            for p in pair[cells == b, 1]:
                law = np.convolve(law, [1.0 - p, p])
            share = np.arange(len(law)) / (len(law) - 1)
            outside += law[(share < low) | (share > high)].sum()
    assert outside <= 0.05
    assert outside >= (0.049 if most else 0.01)


# ------------------------------------------------------------------ directions


@pytest.mark.slow
def test_words_follow_the_findings(wrong):
    """A direction is told of a mean whose interval excludes 0, and of a shape that was found."""
    check, alone = wrong.checks[0], {"rests": (), "recalibration": None}
    whole = auditing.View("canonical", None, None, 100)
    kernel = replace(check, view=whole, statistic="skce_uq", found=True)
    quiet = replace(wrong, checks=(kernel,), views=(whole,), **alone)
    assert quiet.worst is None
    assert quiet.headline == (
        "The predicted probabilities are wrong; no single class or group stands out."
    )
    assert not re.search("confident|too (high|low)", " ".join(advice(replace(quiet, remedies=()))))
    shaped = replace(whole, shape="over")
    loud = replace(quiet, checks=(replace(kernel, view=shaped, statistic="ecd"),), views=(shaped,))
    assert loud.headline == ("The model is overconfident: its probabilities are too extreme.")
    assert "by temperature scaling. Tried by cross-fitting" in " ".join(advice(loud))
    means = {"predicted": 0.80, "observed": 0.79, "low": -0.03, "high": 0.05}
    top = auditing.View("top_label", "the top class is right", None, 1000, **means)
    noise = replace(quiet, checks=(replace(check, view=top, statistic="ks", found=True),), views=(top,))
    assert noise.worst is None
    assert noise.headline == (
        "The model's confidence in its top class is wrong for some predictions; on average it may be "
        "right."
    )
    both = replace(noise, checks=(*noise.checks, *loud.checks), views=(top, shaped))
    assert both.headline == loud.headline  # and no numbers below it that are of another view
    assert "Predicted" not in words.size(both)
    assert advice(both)[1] == advice(loud)[1]
    ends = {"low": -0.17, "high": -0.12, "direction": "under", "adjusted_pvalue": 0.01}
    low = replace(top, observed=0.95, **ends)
    told = replace(noise, checks=(replace(noise.checks[0], view=low),), views=(low,))
    assert told.headline == (
        "The model's confidence in its top class is about 15 percentage points too low."
    )
    assert "it takes the mean error of the top class from " in advice(told)[1]


def test_classes_that_are_listed_are_named(wrong):
    """The strongest evidence is the kernel's, and the means of two classes are shown by others."""
    check, alone = wrong.checks[0], {"rests": (), "recalibration": None}
    whole = auditing.View("canonical", None, None, 100, adjusted_pvalue=0.01)
    ends = {"low": -0.17, "high": -0.12, "direction": "under", "adjusted_pvalue": 0.01}
    ends |= {"predicted": 0.3, "observed": 0.45}
    off = [auditing.View(f"class:{k}", f"the label is class {k}", None, 1000, **ends) for k in (1, 2)]
    found = (
        replace(check, view=whole, statistic="skce_uq", found=True),
        *(replace(check, view=each, statistic="ks", found=True) for each in off),
        *(replace(check, view=each, statistic="citl", found=False) for each in off),
    )
    audit = replace(wrong, checks=found, views=(whole, *off), **alone)
    assert audit.worst == off[0]
    assert "Also wrong on average: class 2." in words.size(audit)


def test_small_groups_are_called_too_small():
    probs, labels = calibrated(400, 4, 0)
    audit = caltest.audit(probs, labels, groups=np.arange(400) % 6, n_resamples=99, rng=0)
    assert audit.at_most > 0.1
    text = " ".join(str(audit).split())
    assert " points remain possible in groups, and larger ones in parts of the predictions." in text


def test_names_of_columns_stay_as_they_are_in_rows_of_evidence():
    audit = audits.binary(materiality=0.02)
    assert audit.story.subject.of.group.label == "sex = F, age = old"
    assert [term for term, _ in words.evidence(audit)][1].startswith("sex = F")


def test_all_rows_are_wrong_because_of_a_group():
    text = words.size(audits.binary(materiality=0.02))
    assert re.search(
        r"Over all rows: predicted \S+, observed \S+, between \S+ and \S+ points too low .*? In the "
        r"other rows of the larger groups no average "
        r"was found wrong\. Likely "
        r"beyond your limit: (sex = F|age = old); (sex = F|age = old)\.",
        text,
    )


def test_where_a_group_is_right_and_its_rest_is_not(right):
    """A rest is among the checks, and may be the only one that is found."""
    rest = next(each for each in right.rests if each.lens == "class:1")
    found = replace(rest, adjusted_pvalue=0.04, found=True)
    audit = replace(right, rests=(*right.rests[:2], found), pvalue=0.04)
    column, value = rest.group.column, rest.group.value
    assert (audit.rejected, audit.found, audit.worst, audit.verdict) == (True, (), None, "found")
    assert audit.headline == (
        f"The predicted probability of class 1 is wrong on average where {column} is not {value}."
    )
    assert advice(audit)[1].startswith(
        "For whoever maintains the model: look at the data of these rows"
    )
    both = auditing.Group.of(sex="F", age="old")
    view = replace(audit.views[0], lens="canonical", group=both)
    inner = replace(found, lens="canonical", group=both, parent=auditing.Group.of(sex="F"))
    crossed = replace(audit, rests=(inner,), views=(*audit.views, view))
    assert crossed.headline.endswith(" wrong on average where sex is F and age is not old.")
    small = audits.limited(audit, materiality=0.9)
    assert small.verdict == "within"
    assert small.headline.endswith(" wrong, but on average by less than your limit of 90 points.")
    for each in (audit, crossed, small):
        assert each.headline in " ".join(str(each).split())


def test_what_one_of_two_groups_leaves_is_called_by_the_other(right):
    limited = audits.limited(right, materiality=0.1)
    rest = next(each for each in limited.rests if each.lens == "class:1")
    other = {"a": "b", "b": "a"}[rest.group.value]
    audit = replace(limited, rests=(replace(rest, high=0.9, inside=False),))
    audit = replace(audit, views=tuple(replace(each, inside=True) for each in audit.views))
    assert f"Class 1 where group is {other} is not shown to be within" in words.size(audit)


@pytest.mark.parametrize(
    ("audit", "text"),
    [
        (
            lambda: audits.binary(-0.05, materiality=0.06),
            r"between 2\.\d and 8\.\d points too low .* were observed\. .*"
            r"The error of sex = F, age = old is not shown to be within your limit; as estimated, "
            r"it is 5 points too low\.$",
        ),
        (
            lambda: audits.audit(materiality=0.13),
            r"The error of the top class where region is west is not shown to be within your limit",
        ),
        (
            lambda: audits.rare(ratio=1.1, materiality_ratio=1.12),
            r"The error of all rows is not shown to be within your limit; as estimated, it is ",
        ),
    ],
)
def test_an_undecided_error_comes_with_the_largest_that_cannot_be_ruled_out(audit, text):
    made = audit()
    assert made.verdict == "undecided"
    assert re.search(text, words.size(made))


@pytest.mark.parametrize(
    ("audit", "text"),
    [
        (
            lambda: audits.binary(0.0, materiality=0.02),
            r"^The average errors of all rows, of groups with enough rows, and of the rows "
            r"outside each group are shown to be within 2 points\. If one were larger, we would "
            r"wrongly say this in at most 5% of cases\. "
            r"The largest error, as estimated, is that of "
            r"sex = F, age = old: predicted 24\.93%, observed 24\.95%\. "
            r"Narrower slices have fewer rows and tell less: an error of up to \d\.\d points "
            r"too low in one fifth of sex = F, age = old is not excluded\.$",
        ),
        (
            lambda: audits.slope(materiality=0.05),
            r"^The average error is shown to be within 5 points\. If it were larger, we would wrongly "
            r"say this in at most 5% of cases\. ",
        ),
        (
            lambda: audits.rare(ratio=1.1, materiality_ratio=1.25),
            r"tell less: an error of a factor of up to \d\.\d\d in one tenth of all rows is not "
            r"excluded\.$",
        ),
        (
            lambda: audits.audit(materiality=0.2),
            r"is that of class bird: .*: an error of up to 26\.\d points too high in one fifth of the "
            r"predictions of the top class where region is west is not excluded\.$",
        ),
    ],
)
def test_what_is_shown_to_be_within_comes_with_its_assurance(audit, text):
    made = audit()
    assert made.verdict == "within"
    assert re.search(text, words.size(made))


@pytest.mark.slow
def test_what_has_too_few_rows_is_named_with_what_it_needs():
    """The furthest from it is named, the others are counted; rows in all are what to do."""
    made = audits.binary(0.0, rows=4000, materiality=0.015)
    assert made.verdict == "undecided"
    assert all(each.rows_needed > each.rows for each in made.unsettled)
    few = [
        each for each in made.unsettled if isinstance(each, auditing.View)
    ]  # their rests are others of them
    assert len(few) == 8
    size = words.size(made)
    assert words.chip(made)[1] == "not settled either way"
    rows, needed, more = re.search(
        r"There are ([\d,]+) rows, and about ([\d,]+) rows would .* calibrated\. (\d+) more have", size
    ).groups()
    assert int(more) == len(few) - 1
    times = int(needed.replace(",", "")) / int(rows.replace(",", ""))
    assert times == pytest.approx(made.rows_needed / 4000, rel=0.1)
    many = f"({made.rows_needed / 4000:.0f} times as many, if groups keep their shares; a wider "
    assert many in " ".join(advice(made))


@pytest.fixture(scope="module")
def wards():
    """Rows in clusters; in one ward predictions are 18 points too high, its interval holds 0."""
    rng = np.random.default_rng(0)
    patient, ward = np.repeat(np.arange(240), 8), np.array([0, 0, 0, 1, 1, 2] * 40).repeat(8)
    p = np.clip(rng.beta(4, 6, 1920) + 0.18 * (ward == 2), 0.01, 0.99)
    true = np.clip(p - 0.18 * (ward == 2), 0.01, 0.99)
    shared = np.repeat(rng.random(240), 8)
    labels = (np.where(rng.random(1920) < 0.35, shared, rng.random(1920)) < true).astype(int)
    names = np.array(["A", "B", "C"])[ward]
    return caltest.audit(
        p, labels, groups={"ward": names}, clusters=patient, materiality=0.03, n_resamples=199, rng=0
    )


def test_a_mean_that_is_found_to_be_wrong_is_not_called_right(wards):
    told = wards.story.subject.of
    assert told.group.label == "ward = C"
    assert finds_mean(wards, told)
    assert told.side is None
    assert re.search(r"is wrong on average where ward is C; as estimated, 1\d", wards.headline)
    assert "may be right" not in wards.summary()


def test_what_is_found_does_not_lack_rows(wards):
    assert wards.verdict == "likely"
    assert words.chip(wards)[1] == "estimated to be larger than your limit of 3 points"
    assert "the error is estimated to be beyond your limit" in advice(wards)[0]
    assert "ward = C has" not in words.size(wards)
    assert sizes.settled(wards, wards.story.subject.of) == "beyond as estimated"
    title = captions.slices_title(wards, wards.views, "group")
    assert title == "Class 1 where ward is C: wrong on average, by its own check."


def test_a_class_that_is_called_class_is_not_called_so_twice():
    named = {f"class{k}": f"class{k}" for k in range(3)} | {
        "class_a": "class_a",
        "classic": "class classic",
    }
    for name, shown in named.items():
        view = auditing.View("class:0", f"the label is {name!r}", None, 10)
        assert vocabulary.lens_name(view) == shown


# ------------------------------------------------------------------ impossible labels


def impossible(**options):
    probs, labels = calibrated(400, 4, 0)
    probs, labels = probs.copy(), labels.copy()
    probs[:3] = [0.5, 0.5, 0.0, 0.0]
    labels[:3] = 3
    options = {"lenses": "top_label", "statistics": "ks", "n_resamples": 99, "rng": 0, **options}
    return caltest.audit(probs, labels, **options)


@pytest.mark.parametrize("tolerance", [None, 0.0])
def test_an_impossible_label_rejects_whatever_the_checks_find(tolerance):
    audit = impossible(
        tolerance=tolerance, **({} if tolerance is None else {"statistics": None, "n_resamples": 199})
    )
    assert not audit.found
    assert audit.rejected
    assert audit.pvalue == 1 / (1 + audit.n_resamples)
    assert audit.impossible == 3
    assert (audit.verdict, audit.worst) == ("found", None)
    told = "In 3 of 400 rows the model gave probability 0 to the observed label."
    assert told in " ".join(str(audit).split())
    assert "look at the rows whose observed label had probability 0" in advice(audit)[1]
    assert audit.headline == told
    assert len(advice(audit)) == 3  # what to use, which rows to look at, and to audit again
    json.dumps(audit.to_dict(), allow_nan=False)


def test_with_a_tolerance_above_0_an_impossible_label_is_one_like_any_other():
    audit = impossible(tolerance=0.3, statistics=None, n_resamples=199)
    assert (audit.impossible, audit.rejected) == (0, False)
    assert impossible(statistics="ks").impossible == 3
    assert caltest.audit(*calibrated(100, 3, 0), **LIGHT).impossible == 0


def test_a_group_does_not_explain_labels_of_probability_0_that_others_have_too():
    """The last class is never predicted, in either site: the error is everywhere."""
    rng = np.random.default_rng(701)
    probs = rng.dirichlet([3, 2, 1, 0.5], 1200)
    labels = (rng.random((1200, 1)) > probs.cumsum(1)[:, :-1]).sum(1)
    site = rng.choice(["x", "y"], 1200)

    def audit(zero):
        given = np.where(zero[:, None] & (np.arange(4) == 3), 0.0, probs)
        given /= given.sum(axis=1, keepdims=True)
        return caltest.audit(given, labels, groups={"site": site}, n_resamples=99, rng=1)

    both = audit(np.full(1200, True))
    shown = {each.group.label: each.impossible for each in both.views if each.group}
    assert sum(shown.values()) == both.impossible == both.views[0].impossible == 90
    assert (both.story.subject.of.group, "where site" in both.headline) == (None, False)
    assert "do not rely on these probabilities until they are corrected" in advice(both)[0]
    size = words.size(both)
    assert "In 90 of 1,200 rows the model gave probability 0 to the observed label." in size
    one = next(each for each in both.views if each.group == auditing.Group.of(site="y"))
    # In the other group 37 of 570 rows, 6.5%, are less than an error of 20 points here.
    assert explains_zeros(both, replace(one, low=0.2, high=0.3))
    assert not explains_zeros(both, replace(one, low=0.05, high=0.3))


# ------------------------------------------------------------------ how sure


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_what_is_controlled_carries_its_condition(right, correction):
    made = replace(right, correction=correction)
    controls, _, condition = CORRECTIONS[correction].partition(", ")
    assert f"adjusted by {correction!r}" in words.evidence_note(made)
    text = words.assumes(made)
    found = controls == "false discovery rate"
    rate = (
        "at most 5% of the errors found are"
        if found
        else "false-alarm rate of the verdict is at most 5%"
    )
    assert rate in text
    when = condition.removeprefix("of ").removesuffix(" tests")
    assert (f", if checks are {when}." in text) == condition.startswith("of ")


def test_how_sure_the_default_is(right):
    assert words.evidence_note(right) == (
        "An error is found if p is at most 0.05. Adjusted p-values allow for all checks. From 199 "
        "simulated sets of labels; the smallest possible p is 0.005."
    )
    assert right.n_checks == len(right.checks) + len(right.rests) == 42 + 8
    assert words.assumes(right) == (
        "Assumes independent rows and labels that were not used to fit the model. The false-alarm rate "
        "of the verdict is at most 5% (exact for any number of rows). Intervals are exact: 95% "
        "confidence for all 12 views with intervals and their parts at once."
    )


def test_p_values_are_on_the_side_of_alpha_where_they_are(right):
    assert "p = 0.0504, of" in str(replace(right, pvalue=0.0504))
    assert "p = 0.0496, of" in str(replace(right, pvalue=0.0496, alpha=0.0498))


def test_no_minus_nothing():
    audit = caltest.audit(np.full((60, 2), 0.5), [0, 1] * 30, **LIGHT)
    assert "-0.0" not in re.split(r"[\[\], :{}]+", json.dumps(audit.to_dict(draws=True)))
    assert "-0 " not in str(audit)


# ------------------------------------------------------------------ names


def test_a_long_name_leaves_no_other_out():
    group = auditing.Group((auditing.Condition("column" * 50, "value" * 50),))
    view = auditing.View("class:x", f"the label is {'c' * 300!r}", group, 100)
    name = vocabulary.view_name(view)
    assert len(name) < 100
    assert name.startswith("class “ccccc")
    assert " where columncolumn" in name
    assert " is valuevalue" in name
    for most in (16, 20, 36, 50):
        narrow = vocabulary.narrow_name(view, most)
        assert len(narrow) <= most
        assert ": v" in narrow
    assert vocabulary.narrow_name(replace(view, group=None), 16) == "class “cccccccc…"
    hidden = auditing.Group((auditing.Condition("a\nb", " \u202e"), auditing.Condition("x", "y")))
    shown = vocabulary.view_name(replace(view, event="the label is 'cat'", group=hidden))
    assert shown == "class cat where a\\nb is ' \\u202e' and x is y"


@pytest.mark.slow
def test_tables_are_no_wider_than_a_hundred_columns():
    probs, labels, group = one_bad_group(1200, 3, 3, t=0.2)
    cells = [f"{'a long value of a group ' * 4}{g}" for g in group]
    audit = caltest.audit(
        probs, labels, groups={"a long name of a column": cells}, n_resamples=99, rng=0
    )
    lines = str(audit).splitlines()
    assert max(map(len, lines)) <= 100
    head = next(k for k, text in enumerate(lines) if text.endswith("adjusted p"))
    assert any(" = a long" in text or ": a long" in text for text in lines[head:])


def test_groups_that_differ_by_what_is_hidden_stay_apart():
    cells = ["a\x00", "a\x01", "a", "a b"] * 60
    audit = caltest.audit(*calibrated(240, 3, 0), groups={"g": cells}, **LIGHT)
    groups = {view.group.value for view in audit.views if view.group}
    assert groups == {"a\x00", "a\x01", "a", "a b"}
    assert {vocabulary.group_name(auditing.Group.of(g=value)) for value in groups} == {
        r"g = a\x00",
        r"g = a\x01",
        "g = a",
        "g = a b",
    }


def test_groups_that_are_the_labels_are_warned_of():
    probs, labels = calibrated(240, 3, 0)
    names = np.array(["x", "y", "z"])[labels]
    audit = caltest.audit(probs, labels, groups={"truth": names, "half": names == "x"}, **LIGHT)
    assert [each.seen.partition(" of groups")[0] for each in audit.premises] == [
        "Column 'truth'",
        "Column 'half'",
    ]
    assert "In doubt: Column 'truth'" in str(audit)


# ------------------------------------------------------------------ plain data of changed audits


@pytest.mark.slow
def test_plain_data_of_a_changed_audit(wrong):
    copied = replace(wrong, checks=tuple(replace(c, view=replace(c.view)) for c in wrong.checks))
    assert copied.to_dict() == wrong.to_dict()
    assert str(copied) == str(wrong)


def test_what_cannot_be_ruled_out_counts_what_groups_leave():
    audit = audits.binary(materiality=0.06)
    rest = replace(audit.rests[0], low=-0.37, high=0.01, found=False)
    text = words.size(replace(audit, rests=(replace(rest, inside=False),), pvalue=1.0))
    assert (
        "sex = F is not shown to be within 6 points: an error of up to 37.0 points too low is" in text
    )


def test_parts_of_few_predictions_are_not_called_tenths():
    """Three values, of a third of the rows each: neither tenths nor halves."""
    risk = np.repeat([0.1, 0.5, 0.9], 500)
    labels = (np.arange(1500) % 10 < 10 * risk).astype(int)
    audit = caltest.audit(risk, labels, materiality=0.05, n_resamples=99, rng=0)
    assert "in 500 of all rows, with predictions of " in words.size(audit)
    assert "tenth" not in words.size(audit)
    assert "the half of the rows" not in report.to_html(audit)
    one = audit.views[0]
    told = words._worst_part(one, replace(one.parts[0], low=0.05, high=0.3, start=0.1, end=0.12))
    assert "in the 500 rows with predictions from 10.0% to 12.0%, predicted " in told


def tied(seed, kind):
    """Predictions with ties and zeros, outcomes, and options of an audit."""
    rng = np.random.default_rng(seed)
    n = 300
    rate = np.where(rng.random(n) < 0.5, 0.05, rng.exponential(2.0, n))
    counts, drawn = rng.poisson(rate), rng.poisson(rate[:, None], (n, 5)).astype(float)
    dry = np.where(rng.random((n, 21)) < 0.9, 0.0, rng.exponential(3.0, (n, 21)))
    halves, first = np.arange(n) % 2 * 1.0, (np.arange(n) < 150) * 1.0
    law = caltest.predictive
    return {
        "quantiles": (law.Quantiles([0.1, 0.25, 0.5, 0.75, 0.9], np.sort(drawn)), counts),
        "counts": (law.Distribution(scipy.stats.poisson(rate)), counts),
        "members that are counts": (law.Members(drawn), counts),
        "dry days": (law.Members(dry[:, 1:]), dry[:, 0]),
        "all members equal": (law.Members(np.zeros((n, 20))), np.zeros(n)),
        "one of them wrong": (law.Members(np.zeros((n, 20))), (np.arange(n) == 7) * 1.0),
        "rates of 0 and 1": (halves, halves.astype(int)),
        "a rate of 0": (np.zeros(n), np.zeros(n, int)),
        "a rate of nearly 1": (np.full(n, 1.0 - 1e-12), np.ones(n, int)),
        "a class of 0": (np.tile([0.0, 0.5, 0.5], (n, 1)), 1 + counts % 2),
    }[kind], {
        "alike": {},
        "weights of 0": {"weights": first},
        "clusters": {"clusters": np.arange(n) // 2},
    }  # fmt: skip


NOTHING = re.compile(
    r"(?<![\d.,])(?:0|\d+e-\d+)(?: percentage)? points? (?:more|fewer|too)|\bnan\b|\binf\b"
)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [
        "quantiles", "counts", "members that are counts", "dry days", "all members equal",
        "one of them wrong", "rates of 0 and 1", "a rate of 0", "a rate of nearly 1", "a class of 0",
    ],
)  # fmt: skip
def test_ties_and_zeros_are_told_without_warnings_and_without_0_points_more(kind):
    for seed, way in enumerate(("alike", "weights of 0", "clusters")):
        (predicted, outcomes), ways = tied(seed, kind)
        made = caltest.audit(predicted, outcomes, materiality=0.1, n_resamples=99, rng=0, **ways[way])
        for said in (str(made), report.to_html(made)):
            said = re.sub(r"<(style|script|svg).*?</\1>", "", said, flags=re.DOTALL)
            assert not NOTHING.findall(" ".join(re.sub("<[^>]+>", " ", said).split()))


@pytest.mark.parametrize("members", [False, True])
def test_what_an_interval_holds_by_ties_is_said_beside_it(members):
    """An 80% interval of rare counts holds more than 80%; without ties nothing is said."""
    rng = np.random.default_rng(0)
    rate = rng.lognormal(-0.5, 0.7, 1500)
    law = caltest.predictive.Distribution(scipy.stats.poisson(rate))
    law = caltest.predictive.Members(rng.poisson(rate[:, None], (1500, 50))) if members else law
    outcomes = rng.poisson(rate * rng.gamma(1.0, 1.0, 1500))
    made = caltest.audit(law, outcomes, lenses="interval:0.8", n_resamples=99, rng=0, min_rows=2000)
    (view,) = made.views
    text = " ".join(str(made).split())
    assert view.predicted > view.observed > 0.8
    assert f"outcomes lie in it, and with ties {view.predicted:.1%} should." in text
    assert f"Predicted {view.predicted:.1%} (with ties), observed {view.observed:.1%}:" in text
    assert "With ties: values equal to a quantile, or to the end of an interval, count too." in text
    plain = rng.normal(size=(1500, 51)) if members else None
    law = (
        caltest.predictive.Members(plain[:, 1:]) if members else caltest.predictive.Normal(rate, sd=1.0)
    )
    outcomes = 3.0 * plain[:, 0] if members else rng.normal(rate, 3.0)
    assert "ties" not in str(caltest.audit(law, outcomes, lenses="interval:0.8", n_resamples=99, rng=0))


def test_an_error_of_0_has_no_direction():
    """Of quantiles with ties the observed share lies between two, and may be the predicted one."""
    made = audits.binary(-0.05, materiality=0.06)
    view = made.unsettled[0]
    views = tuple(replace(v, observed=v.predicted + 1e-17) if v is view else v for v in made.views)
    said = words.size(replace(made, views=views))
    assert "is not shown to be within your limit; as estimated, it is 0 points." in said
