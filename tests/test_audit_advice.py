"""What an audit advises follows from its verdict, from what was found, and from what remedies gain."""

import re
from dataclasses import replace

import numpy as np
import pytest
from audited import LIGHT, calibrated
from scipy.special import expit, logit
from support import dirichlet, labels_from

import caltest
from caltest import auditing
from caltest.text.advice import advice

MAINTAINER = "For whoever maintains the model: "
RECALIBRATE = f"{MAINTAINER}recalibrate on held-out rows by "
AGAIN = "Then audit again on new rows, used neither to fit nor to recalibrate the model."
SLOPE, SHIFT = "a slope of the log-odds (temperature scaling)", "an intercept of the log-odds"
BOTH = "a slope and an intercept of the log-odds (Platt scaling)"


@pytest.fixture(autouse=True)
def _without_bounds(monkeypatch):
    """Advice follows from findings: bounds, most of an audit's work, are not looked at."""
    monkeypatch.setattr("caltest.auditing.audits.bounds", lambda *_: {})


def two_classes(n, intercept, slope, beta=(3, 3), seed=0):
    """Predictions whose truth is expit(intercept + slope · logit p), and labels."""
    rng = np.random.default_rng(seed)
    truth = rng.beta(*beta, n)
    return expit((logit(truth) - intercept) / slope), (rng.random(n) < truth).astype(int)


def advised(probs, labels, **options):
    options = {"n_resamples": 99, "rng": 0, **options}
    audit = caltest.audit(probs, labels, **options)
    assert audit.rejected
    return audit, for_maintainers(audit)


def for_maintainers(audit):
    """The one sentence for who maintains the model: what may be used is said before, and what then."""
    use, text, again = advice(audit)
    assert not use.startswith(MAINTAINER)
    assert again == AGAIN
    return text


def chosen(audit):
    (best,) = (each for each in audit.remedies if each.chosen)
    return best


def _sharp(n, power, sizes=None, stated=1.0):
    """Three classes, all too sure alike; then stated so many times too large."""
    truth = dirichlet(n, 3, 0) if sizes is None else np.random.default_rng(0).dirichlet(sizes, n)
    sharp = truth**power * stated
    labels = labels_from(truth, np.random.default_rng(0))
    return sharp / sharp.sum(axis=1, keepdims=True), labels


# ------------------------------------------------------------------ which remedy


TOP = "the top class"
EACH = "an intercept for every class"
PLANTED = {
    "too high": (two_classes, (3000, -0.4, 1.0), "shift", SHIFT, "class 1", "high"),
    "too low": (two_classes, (3000, 0.4, 1.0), "shift", SHIFT, "class 1", "low"),
    "too extreme": (two_classes, (3000, 0.0, 0.6), "temperature", SLOPE, None, None),
    "not extreme enough": (two_classes, (3000, 0.0, 1.7), "temperature", SLOPE, None, None),
    "both": (two_classes, (3000, -0.6, 0.6), "temperature and shift", BOTH, "class 1", "high"),
    "too sure": (_sharp, (3000, 2), "temperature", "temperature scaling", TOP, "high"),
    # Sharp predictions favour the largest class: its mean is too high, and one number fixes it.
    "too sure, unequal": (
        _sharp, (3000, 2, [1.0, 1.0, 3.0]), "temperature", "temperature scaling", TOP, "high",
    ),
    "one class": (_sharp, (3000, 1, None, [1.0, 1.6, 1.0]), "shift", EACH, "class 1", "high"),
    "too sure, and one class": (
        _sharp, (3000, 2, None, [1.0, 2.5, 1.0]), "temperature and shift",
        f"a temperature and {EACH}", TOP, "high",
    ),
}  # fmt: skip


@pytest.mark.level
@pytest.mark.parametrize("planted", PLANTED)
def test_the_remedy_of_the_planted_error_is_named_with_what_it_brings(planted):
    make, values, name, called, which, side = PLANTED[planted]
    data = make(*values, seed=2) if make is two_classes else make(*values)
    audit, text = advised(*data)
    best = chosen(audit)
    assert (best.name, best.in_group) == (name, False)
    assert text.startswith(
        f"{RECALIBRATE}{called}. Tried by cross-fitting inside these rows, it takes "
    )
    gain = f"lowers the log loss by {best.gain:.2g} (standard error {best.gain_se:.1g})."
    assert gain in text
    assert text.endswith("These are estimates, not a test.")
    if which is None:
        assert "the error of tenths of the predictions, on average, from 7 points to 2.7 points" in text
        assert re.search(
            r"2\.7 points \(of a calibrated model it would be about 2\.\d points, by chance\)", text
        )
        assert best.slope == pytest.approx(values[2], rel=0.15)
    else:
        brings = (
            rf"the mean error of {which} from [\d.]+ points too {side} to about 0 "
            r"\(standard error [\d.]+ points\)"
        )
        assert re.search(brings, text)


def test_a_risk_that_is_too_high_is_an_intercept_though_its_entropy_is_too_large():
    """Of rare events: to `ecd` the score is not extreme enough, which temperature would make worse."""
    rng = np.random.default_rng(1)
    risk = rng.beta(2, 60, 8000)
    audit, text = advised(1.4 * risk, (rng.random(8000) < risk).astype(int))
    (entropic,) = (c for c in audit.found if (c.view.lens, c.statistic) == ("canonical", "ecd"))
    assert entropic.value < 0.0
    assert re.search(r" is too high: about 1\.\d times the observed rate\.$", audit.headline)
    assert text.startswith(f"{RECALIBRATE}{SHIFT}. ")


def test_what_no_remedy_gains_is_not_advised():
    """An error that is no line: too high below 1/2, and too high above, at its ends right."""
    rng = np.random.default_rng(3)
    p = rng.uniform(0.02, 0.98, 6000)
    truth = p - 0.1 * np.sin(6.0 * np.pi * p) * np.sin(np.pi * p)
    audit, text = advised(
        p, (rng.random(6000) < truth).astype(int), statistics="kuiper", n_resamples=999
    )
    assert not any(each.clear or each.chosen for each in audit.remedies)
    assert text == (
        f"{MAINTAINER}no usual recalibration clearly lowers the log loss here: look at the data. Tried "
        f"by cross-fitting inside these rows: {SLOPE}, {SHIFT}, {BOTH}, isotonic regression."
    )


def test_isotonic_regression_where_no_line_is():
    rng = np.random.default_rng(4)
    p = rng.uniform(0.02, 0.98, 6000)
    truth = np.clip(p + 0.2 * np.sin(3.0 * np.pi * p), 0.01, 0.99)
    audit, text = advised(p, (rng.random(6000) < truth).astype(int))
    assert chosen(audit).name == "isotonic"
    assert text.startswith(f"{RECALIBRATE}isotonic regression. Tried ")


def test_labels_that_the_scores_separate_or_rank_the_wrong_way_round():
    p = np.linspace(0.2, 0.79, 400)
    audit, text = advised(p, (p > 0.5).astype(int))
    assert audit.recalibration.separated
    assert text.startswith(f"{MAINTAINER}no recalibration can be fitted")
    line = audit.recalibration
    nothing = replace(line, slope=np.nan, slope_se=np.nan, in_the_large=np.nan, in_the_large_se=np.nan)
    assert for_maintainers(replace(audit, recalibration=nothing)) == text
    probs, labels = two_classes(3000, 0.0, 1.0, seed=2)
    _, text = advised(1.0 - probs, labels)
    assert "rank them the wrong way round" in text
    assert "by cross-fitting" not in text


def test_remedies_and_lines_are_fitted_only_where_they_advise():
    right = caltest.audit(*two_classes(300, 0.0, 1.0, seed=1), **LIGHT)
    assert (right.recalibration, right.remedies) == (None, ())
    three = caltest.audit(dirichlet(300, 3, 0), [0] * 300, **LIGHT)
    assert three.rejected
    assert three.recalibration is None
    audit, text = advised(*two_classes(90, -2.0, 1.0, seed=2))  # too few rows to try any
    assert audit.remedies == ()
    assert text == f"{MAINTAINER}recalibrate the model on held-out rows."


def test_an_error_of_one_group_is_corrected_there_alone():
    """An error in a group alone is no reason to recalibrate all rows."""
    wrong, right = two_classes(750, -0.8, 1.0, seed=2), two_classes(2250, 0.0, 1.0, seed=3)
    probs, labels = (np.concatenate(each) for each in zip(wrong, right, strict=True))
    sites = ["a"] * 750 + ["b"] * 1000 + ["c"] * 1250
    audit = caltest.audit(probs, labels, groups={"site": sites}, n_resamples=99, rng=0)
    assert audit.worst.group == auditing.Group.of(site="a")
    assert audit.story.explains
    assert re.search(r" too high overall, and \d+ points too high where site is a\.$", audit.headline)
    use, data, text, again = advice(audit)
    assert "rely on these probabilities, least of all where site is a, until they are" in use
    assert data.startswith(f"{MAINTAINER}look at the data of that group (labels, ")
    assert (chosen(audit).name, chosen(audit).in_group) == ("shift", True)
    assert text.startswith(f"Recalibrate for that group alone on held-out rows by {SHIFT}. Tried ")
    assert re.search(r"class 1 where site is a from 1\d points too high to about 0", text)
    assert again == AGAIN
    # With no clear gain in the group alone it is not named.
    none = tuple(replace(each, chosen=False) for each in audit.remedies)
    assert "that group alone" not in " ".join(advice(replace(audit, remedies=none)))


def test_what_remains_is_told_with_its_side():
    """Two standard errors decide whether what remains is called about 0."""
    audit, _ = advised(*two_classes(1500, -0.4, 1.0, seed=2))
    best = chosen(audit)

    def told(**changes):
        changed = (replace(each, **changes) if each == best else each for each in audit.remedies)
        return for_maintainers(replace(audit, remedies=tuple(changed)))

    assert "to about 0 (standard error 1.0 point)" in told(after=0.0199, after_se=0.01)
    assert "to 2.1 points too high (standard error 1.0 point)" in told(after=0.021, after_se=0.01)
    assert "to 2.1 points too low (standard error 1.0 point)" in told(after=-0.021, after_se=0.01)
    assert "Tried by cross-fitting inside 1,000 of these rows" in for_maintainers(
        replace(audit, remedies=tuple(replace(each, rows=1000) for each in audit.remedies))
    )


# ------------------------------------------------------------------ what may be used


@pytest.mark.slow
def test_what_a_view_s_own_test_shows_outranks_its_parts_and_its_groups():
    """The mean of all rows is shown to be within the limit, that of a group is not: both are said."""
    probs, labels = two_classes(20_000, -0.1, 1.0, seed=2)
    small = np.where(np.arange(20_000) < 60, "small", "large")
    audit = caltest.audit(
        probs, labels, groups={"site": small}, materiality=0.04, n_resamples=99, rng=0
    )
    assert (audit.rejected, audit.verdict) == (True, "undecided")
    assert audit.story.subject.of.inside
    assert [each.group for each in audit.unsettled] == [
        auditing.Group.of(site="small"),
        auditing.Group.of(site="large"),
    ]
    use = advice(audit)[0]
    assert "is not settled" not in " ".join(advice(audit))
    assert "the average error is within your limit of 4 points" in use
    assert f"audit again with about {audit.rows_needed:,} rows" not in use  # rounded up to two figures
    assert re.search(r"audit again with about [\d,]+00 rows in all \([\d.]+ times as many, if ", use)


def test_a_p_value_close_to_the_level_asks_for_more_resamples():
    audit, _ = advised(*two_classes(3000, -0.4, 1.0, seed=2), n_resamples=999)
    close = "p = {} is close to 0.05: another seed could change the verdict. Use more resamples, "
    for p, said in ((0.046, True), (0.053, True), (0.03, False), (0.08, False), (0.001, False)):
        text = " ".join(advice(replace(audit, pvalue=p)))
        assert (close.format(p) + "n_resamples=9999." in text) == said
    signs = replace(audit, pvalue=0.047, n_resamples=1023, clusters=10)  # all of them: no draws
    assert "another seed" not in " ".join(advice(signs))


@pytest.mark.slow
def test_rounding_is_not_advised_where_it_is_refused():
    """Stated confidences in steps of 5%, some of them certain and wrong."""
    rng = np.random.default_rng(0)
    stated = np.round(rng.beta(4, 1, 900) * 20) / 20
    labels = (rng.random(900) < 0.9 * stated).astype(int)
    assert "rounding=" in str(caltest.audit(stated, labels, n_resamples=99, rng=0))
    one_third = caltest.audit(stated, labels, clusters=np.arange(900) // 3, n_resamples=99, rng=0)
    assert one_third.impossible
    assert "rounding=" not in str(one_third)


@pytest.mark.slow
def test_the_verdict_decides_whether_the_probabilities_may_be_used():
    """An error of about 8 points: without a limit, with lower and higher ones, and with a tolerance."""
    data = two_classes(3000, -0.4, 1.0, seed=2)
    own = advised(*data)[0].views[0]
    assert own.low < 0.08 < own.high
    refused = "Do not rely on these probabilities until they are corrected."
    for changes, verdict, first in (
        ({}, "found", "Decide how large an average error matters to you, "),
        ({"materiality": 0.02}, "material", refused),
        ({"materiality": 0.08}, "likely", f"{refused[:-1]}: the error is estimated to be beyond "),
        (
            {"materiality": 0.09},
            "undecided",
            "Whether the error exceeds your limit of 9 points is not ",
        ),
        ({"materiality": 0.5}, "within", "Use the probabilities as they are, where average errors "),
        ({"tolerance": 0.02}, "found", refused),
    ):
        judged = caltest.audit(*data, **({"n_resamples": 99, "rng": 0} | changes))
        assert judged.verdict == verdict
        assert advice(judged)[0].startswith(first)


def test_nothing_found_advises_no_recalibration():
    for data in (calibrated(300, 3, 0), two_classes(300, 0.0, 1.0, seed=1)):
        audit = caltest.audit(*data, n_resamples=99, rng=0)
        assert not audit.rejected
        assert "recalibrate" not in " ".join(advice(audit))
