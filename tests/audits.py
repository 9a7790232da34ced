"""Audits made by hand, for the tests of reports: of any size, with names of any kind."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

import caltest
from caltest.auditing import (
    Audit,
    Check,
    Condition,
    Group,
    Part,
    Reliability,
    Rest,
    Sensitivity,
    Skipped,
    View,
)

DRAWS = 199
MEASURES = {
    "skce_uq": "squared kernel calibration error",
    "ecd": "entropic calibration difference",
    "citl": "calibration in the large, observed less predicted, standardised",
}

HOSTILE = (
    "<script>alert('x')</script>",
    "\"quoted\" & 'quoted'",
    "a|b `c` *d* [e](http://f) @g #1",
    "two\nlines\r\nand\ta tab",
    "nul\x00 bell\x07 escape\x1b[31m",
    "👩‍👩‍👧‍👦🏳️‍🌈 emoji",
    "עברית العربية",
    "\u202eright to left\u2066",
    "]]> --> {{ 7 * 7 }} {% raw %}",
    "lone \ud800 surrogate \uffff",
    "x" * 3000,
    "very long words " * 100,
    "",
    " ",
)


def reliability(rows, shift, seed, bins=8, top=1.0):
    """Bins of a model whose predictions are ``shift`` too high."""
    rng = np.random.default_rng(seed)
    predicted = np.sort(rng.uniform(0.3 * top, top, bins))
    observed = np.clip(predicted - shift + rng.normal(0.0, 0.01, bins), 0.0, 1.0)
    half = 2.7 * np.sqrt(predicted * (1.0 - predicted) * bins / rows)
    return Reliability(
        tuple(predicted.tolist()),
        tuple(observed.tolist()),
        (rows // bins,) * bins,
        tuple(np.maximum(predicted - half, 0.0).tolist()),
        tuple(np.minimum(predicted + half, 1.0).tolist()),
    )


def interval(predicted, observed, rows, deviations=3.5):
    """Ends of the error: about that of a family of a hundred intervals."""
    half = deviations * (observed * (1.0 - observed) / rows) ** 0.5 + 1.0 / rows
    return predicted - min(observed + half, 1.0), predicted - max(observed - half, 0.0)


def parts(drawn, rows, of):
    """Parts of a view whose bins these are, laid end to end."""
    places = np.linspace(0, len(drawn.predicted) - 1, of)
    predicted, observed = (
        np.interp(places, np.arange(len(drawn.predicted)), each).tolist()
        for each in (drawn.predicted, drawn.observed)
    )
    ends = [0.0, *((one + other) / 2 for one, other in pairwise(predicted)), 1.0]
    return tuple(
        Part(of, k, rows // of, p, o, *interval(p, o, rows // of), ends[k], ends[k + 1])
        for k, (p, o) in enumerate(zip(predicted, observed, strict=True))
    )


def view(lens, event, group, rows, shift, seed):
    """A view whose predictions are ``shift`` too high."""
    if event is None:
        return View(lens, None, group, rows, shape="over" if shift > 0 else None)
    drawn = reliability(rows, shift, seed)
    predicted, observed = float(np.mean(drawn.predicted)), float(np.mean(drawn.observed))
    low, high = interval(predicted, observed, rows)
    bound = max(abs(shift) - 0.04, 0.0)
    cut = [each for of in ((5,) if group else (10, 2)) for each in parts(drawn, rows, of)]
    return View(
        lens,
        event,
        group,
        rows,
        predicted=predicted,
        observed=observed,
        low=low,
        high=high,
        direction="over" if low > 0.0 else "under" if high < 0.0 else None,
        at_least_over=bound if shift > 0 else 0.0,
        at_least_under=bound if shift < 0 else 0.0,
        class_index=int(lens[6:]) if lens.startswith("class:") else None,
        parts=tuple(cut),
        binned_error=(bound, abs(shift), abs(shift) + 0.04),
        reliability=drawn,
    )


def check(of, statistic, adjusted, alpha, tolerance=None):
    """A hypothesis with this adjusted p-value."""
    return Check(
        view=of,
        statistic=statistic,
        measures=MEASURES[statistic],
        value=4.2 * (1.0 - adjusted) ** 8,
        expected=None if tolerance else (0.0, 1.25),
        pvalue=adjusted / 2.0,
        pvalue_interval=(adjusted / 3.0, adjusted),
        adjusted=adjusted,
        found=adjusted <= alpha,
    )


def audit(names=("cat", "dog", "bird"), groups=("north", "south", "west"), wrong=True, **changes):
    """An audit of these classes, in these groups; the last class and the last group are wrong.

    ``changes`` are fields of the audit, given otherwise.
    """
    shift = 0.12 if wrong else 0.0
    views = [view("canonical", None, None, 3000, shift, 0)]
    views.append(view("top_label", "the top class is right", None, 3000, shift / 2, 1))
    for k, name in enumerate(names):
        error = -shift if k == len(names) - 1 else 0.004
        views.append(view(f"class:{k}", f"the label is {name!r}", None, 3000, error, 2 + k))
    for k, name in enumerate(groups):
        error = shift if k == len(groups) - 1 else -0.003
        of = Group((Condition("region", name),))
        views.append(view("canonical", None, of, 900 + k, error, 50 + k))
        views.append(view("top_label", "the top class is right", of, 900 + k, error, 100 + k))
    checks = []
    for k, each in enumerate(views):
        far = abs(each.error) > 0.05 if each.event else wrong and each.group is None
        adjusted = [
            0.005 if far else 0.2 + 0.79 * ((7 * k + number) % 23) / 23
            for number in range(len(MEASURES))
        ]
        views[k] = replace(each, adjusted_pvalue=min(adjusted[: 3 if each.event else 2]))
        for statistic, p in zip(MEASURES, adjusted, strict=True):
            if each.event or statistic != "citl":
                checks.append(check(views[k], statistic, p, 0.05, changes.get("tolerance")))
    checks.sort(key=lambda one: one.adjusted)
    whole = next(each for each in views if each.event)
    rests = [
        Rest(
            lens=each.lens,
            group=each.group,
            parent=None,
            rows=whole.rows - each.rows,
            predicted=whole.predicted,
            observed=whole.observed,
            adjusted_pvalue=0.4,
            found=False,
        )
        for each in views
        if each.group and each.event
    ]
    made = Audit(
        pvalue=checks[0].adjusted,
        alpha=0.05,
        materiality=None,
        materiality_ratio=None,
        checks=tuple(checks),
        views=tuple(views),
        rests=tuple(rests),
        skipped=(Skipped("region = east", 7, "it has fewer than 20 rows"),),
        tolerance=None,
        rounding=None,
        correction="westfall_young",
        confidence=0.95,
        n_samples=3000,
        n_classes=len(names),
        classes=tuple(names),
        event=names[1] if len(names) == 2 else None,
        lenses=("canonical", "top_label", "classwise"),
        groups=("region",),
        n_resamples=DRAWS,
        seed=1,
        statistic=17.25 if wrong else 3.1,
        null_distribution=np.random.default_rng(0).gamma(4.0, 0.9, DRAWS),
        call=f"caltest.audit(probs, labels, groups=frame[['region']], n_resamples={DRAWS}, rng=1)",
        warnings=("2 rows were given twice.",),
        sensitivity=None if wrong else Sensitivity(1, 0.021, 0.8),
    )
    return replace(made, **changes)


def real(model, **options):
    """An audit of real predictions, in groups of which one is too small."""
    digits = caltest.datasets.load_digits_predictions(model)
    rows = np.arange(600)
    sites = np.array(["north", "south", "small"])[np.where(rows < 20, 2, rows % 2)]
    found = {"groups": {"site": sites}, "lenses": ("canonical", "top_label"), "rng": 1, **options}
    return caltest.audit(digits.probs[rows], digits.labels[rows], **found)
