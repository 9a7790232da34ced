"""Audits made by hand, for the tests of reports: of any size, with names of any kind."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import caltest
from caltest.auditing.result import Audit, Check, Group, Reliability, Skipped, View

DRAWS = 199
MEASURES = {"skce_uq": "squared kernel calibration error", "ecd": "entropic calibration difference"}

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
    """Bins of a model that claims ``shift`` too much."""
    rng = np.random.default_rng(seed)
    says = np.sort(rng.uniform(0.3 * top, top, bins))
    share = np.clip(says - shift + rng.normal(0.0, 0.01, bins), 0.0, 1.0)
    half = 2.7 * np.sqrt(says * (1.0 - says) * bins / rows)
    return Reliability(
        tuple(says.tolist()),
        tuple(share.tolist()),
        (rows // bins,) * bins,
        tuple(np.maximum(says - half, 0.0).tolist()),
        tuple(np.minimum(says + half, 1.0).tolist()),
    )


def view(lens, event, group, rows, shift, seed):
    """A view whose model claims ``shift`` too much."""
    if event is None:
        return View(lens, None, group, rows, direction="over" if shift > 0 else "under")
    drawn = reliability(rows, shift, seed)
    says, share = float(np.mean(drawn.says)), float(np.mean(drawn.share))
    bound = max(abs(shift) - 0.04, 0.0)
    return View(
        lens,
        event,
        group,
        rows,
        says=says,
        share=share,
        direction="over" if says > share else "under",
        over=bound if shift > 0 else 0.0,
        under=bound if shift < 0 else 0.0,
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
    """An audit of these classes, in these groups; the last class and the last group are wrong."""
    shift = 0.12 if wrong else 0.0
    views = [view("canonical", None, None, 3000, shift, 0)]
    views.append(view("top_label", "the top class is right", None, 3000, shift / 2, 1))
    for k, name in enumerate(names):
        error = -shift if k == len(names) - 1 else 0.004
        views.append(view(f"class:{k}", f"the label is {name!r}", None, 3000, error, 2 + k))
    for k, name in enumerate(groups):
        error = shift if k == len(groups) - 1 else -0.003
        of = Group("region", name)
        views.append(view("canonical", None, of, 900 + k, error, 50 + k))
        views.append(view("top_label", "the top class is right", of, 900 + k, error, 100 + k))
    checks = []
    for k, each in enumerate(views):
        far = abs(each.says - each.share) > 0.05 if each.event else wrong and each.group is None
        for number, statistic in enumerate(("skce_uq", "ecd")):
            adjusted = 0.005 if far else 0.2 + 0.79 * ((7 * k + number) % 23) / 23
            checks.append(check(each, statistic, adjusted, 0.05, changes.get("tolerance")))
    checks.sort(key=lambda one: one.adjusted)
    made = Audit(
        pvalue=checks[0].adjusted,
        alpha=0.05,
        checks=tuple(checks),
        views=tuple(views),
        skipped=(Skipped("region = east", 7, "it has fewer than 20 rows"),),
        tolerance=None,
        correction="westfall_young",
        confidence=0.95,
        n_samples=3000,
        n_classes=len(names),
        classes=tuple(names),
        lenses=("canonical", "top_label", "classwise"),
        groups=("region",),
        n_resamples=DRAWS,
        seed=1,
        statistic=17.25 if wrong else 3.1,
        null_distribution=np.random.default_rng(0).gamma(4.0, 0.9, DRAWS),
        call=f"caltest.audit(probs, labels, groups=frame[['region']], n_resamples={DRAWS}, rng=1)",
        warnings=("2 rows were given twice.",),
    )
    return replace(made, **changes)


def real(model, **options):
    """An audit of real predictions, in groups of which one is too small."""
    digits = caltest.datasets.load_digits_predictions(model)
    rows = np.arange(600)
    sites = np.array(["north", "south", "small"])[np.where(rows < 20, 2, rows % 2)]
    found = {"groups": {"site": sites}, "lenses": ("canonical", "top_label"), "rng": 1, **options}
    return caltest.audit(digits.probs[rows], digits.labels[rows], **found)
