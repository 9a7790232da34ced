"""Audits made by hand, for the tests of reports: of any size, with names of any kind."""

from dataclasses import replace

import numpy as np
from scipy.special import ndtr

import caltest
from caltest import auditing
from caltest.auditing.diagrams import histogram
from caltest.auditing.limits import Goal, Wanted, rows_needed
from caltest.auditing.sizes import Design, Family, binned_error, cut, error_of_mean
from caltest.bounds.intervals import mean_bounds

DRAWS = 199
MEASURES = {"citl": "mean error", "ks": "cumulative difference"}

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


def group(*pairs):
    """The rows where columns have values: (column, value), …"""
    return auditing.Group(tuple(auditing.Condition(column, value) for column, value in pairs))


def data(rows, error, seed, low=0.2, high=0.9):
    """Predictions, and labels of a model whose mean is wrong by so much, to the row."""
    rng = np.random.default_rng(seed)
    scores = np.sort(rng.uniform(low, high, rows))
    cumulated = np.cumsum(np.clip(scores - error, 0.0, 1.0)) + rng.uniform()
    return scores, np.diff(np.floor(cumulated), prepend=0.0).astype(np.int64)


def view(lens, event, of, scores, labels, family, place=None):
    """A view of such predictions and labels, with its intervals and pictures."""
    if event is None:
        return auditing.View(lens, None, of, len(scores))
    counts = len(scores), int(labels.sum()), family.of_view
    low, high = error_of_mean(float(scores.mean()), *counts)
    parts = family.parts(
        scores, labels, cut(scores, of is None), Design(np.ones(len(scores))), auditing.Limit()
    )
    bins = np.array_split(np.arange(len(scores)), 8)
    predicted = np.array([scores[rows].mean() for rows in bins])
    observed = np.array([labels[rows].mean() for rows in bins])
    half = 2.7 * np.sqrt(predicted * (1.0 - predicted) * 8 / len(scores))
    lows, highs = np.maximum(predicted - half, 0.0), np.minimum(predicted + half, 1.0)
    drawn = [each.tolist() for each in (predicted, observed, lows, highs)]
    return auditing.View(
        lens,
        event,
        of,
        len(scores),
        predicted=float(scores.mean()),
        observed=float(labels.mean()),
        low=low,
        high=high,
        direction="over" if low > 0.0 else "under" if high < 0.0 else None,
        at_least_over=max(low, 0.0),
        at_least_under=max(-high, 0.0),
        class_index=place,
        parts=parts,
        binned_error=binned_error(parts),
        reliability=auditing.Reliability(
            tuple(drawn[0]), tuple(drawn[1]), tuple(map(len, bins)), tuple(drawn[2]), tuple(drawn[3])
        ),
        histogram=histogram(scores),
    )


def chance(view, factor):
    """An adjusted p-value by the normal law, for as many checks."""
    if view.error is None:
        return 0.9
    deviation = np.sqrt(view.predicted * (1.0 - view.predicted) / view.rows)
    p = factor * 2.0 * float(ndtr(-abs(view.error) / deviation))
    return min(max(p, 1.0 / (1 + DRAWS)), 0.99)


def settled(wholes, alpha, materiality=None, materiality_ratio=None, **_):
    """The same views, or what groups leave, with their own intervals, held against a limit."""
    limit, found = auditing.Limit.of(materiality, materiality_ratio), []
    for each in wholes:
        own, needed = {}, None
        if each.predicted is not None:
            events = np.array([float(round(each.rows * each.observed))])
            ends = mean_bounds(np.array([float(each.rows)]), events, alpha)
            errors = (each.predicted - float(end[0]) for end in reversed(ends))
            low, high = errors
            inside = limit.place(each.predicted, low, high) == "inside" if limit else None
            own = {"own_low": low, "own_high": high, "inside": inside}
            if inside is False:
                wanted = [Wanted(each.predicted, 1.0, False)]
                (needed,) = rows_needed(wanted, Goal(limit, alpha, 0.8 ** (1.0 / len(wholes))))
        found.append(replace(each, rows_needed=needed, **own))
    return tuple(found)


def limited(audit, **limit):
    """The same audit with another limit."""
    views = settled(audit.views, audit.alpha, **limit)
    by_key = {each.key: each for each in views}
    checks = tuple(replace(each, view=by_key[each.view.key]) for each in audit.checks)
    rests = settled(audit.rests, audit.alpha, **limit)
    whole = {"materiality": None, "materiality_ratio": None} | limit
    return replace(audit, views=views, checks=checks, rests=rests, **whole)


def made(views, **changes):
    """An audit of these views, each checked by two statistics."""
    alpha = changes.get("alpha", 0.05)
    views = settled(views, **{"alpha": alpha} | changes)
    factor = 2.0 * len(views)
    views = tuple(replace(each, adjusted_pvalue=chance(each, factor)) for each in views)
    checks = [
        auditing.Check(
            view=each,
            statistic=statistic,
            measures=MEASURES[statistic],
            value=4.2 * (1.0 - each.adjusted_pvalue) ** 8,
            expected=None if changes.get("tolerance") else (0.0, 1.25),
            pvalue=each.adjusted_pvalue / 2.0,
            pvalue_interval=(each.adjusted_pvalue / 3.0, each.adjusted_pvalue),
            adjusted=each.adjusted_pvalue,
            found=each.adjusted_pvalue <= alpha,
        )
        for each in views
        for statistic in ("citl", "ks")
    ]
    checks.sort(key=lambda check: check.adjusted)
    wrong = checks[0].found
    settings = {
        "pvalue": checks[0].adjusted, "alpha": alpha, "materiality": None, "materiality_ratio": None,
        "checks": tuple(checks), "views": views, "rests": (),
        "skipped": (auditing.Skipped("region = east", 7, "it has fewer than 20 rows"),),
        "tolerance": None, "rounding": None, "correction": "westfall_young",
        "confidence": 1.0 - alpha, "n_samples": views[0].rows, "n_classes": 2,
        "classes": ("no", "yes"), "event": None, "lenses": ("canonical",), "groups": (),
        "n_resamples": DRAWS, "seed": 1, "statistic": 17.25 if wrong else 3.1,
        "null_distribution": np.random.default_rng(0).gamma(4.0, 0.9, DRAWS),
        "call": f"caltest.audit(probs, labels, n_resamples={DRAWS}, rng=1)",
        "warnings": ("2 rows were given twice.",),
    }  # fmt: skip
    rests = settled(changes.pop("rests", ()), **{"alpha": alpha} | changes)
    return auditing.Audit(**(settings | {"rests": rests} | changes))


def audit(names=("cat", "dog", "bird"), groups=("north", "south", "west"), wrong=True, **changes):
    """An audit of these classes, in these groups; the last class and the last group are wrong."""
    error = 0.12 if wrong else 0.0
    family = Family.of(0.05, 1 + len(names) + len(groups), 12 + 12 * len(names) + 5 * len(groups))
    right = "the top class is right"

    def of(lens, event, rows, place, wrong_by, *pairs):
        values = data(rows, wrong_by, place)
        index = place - 2 if lens.startswith("class:") else None
        return view(lens, event, group(*pairs) if pairs else None, *values, family, index)

    views = [auditing.View("canonical", None, None, 3000), of("top_label", right, 3000, 1, error / 2)]
    for k, name in enumerate(names):
        by = -error if k == len(names) - 1 else 0.001
        views.append(of(f"class:{k}", f"the label is {name!r}", 3000, 2 + k, by))
    for k, name in enumerate(groups):
        by = error if k == len(groups) - 1 else -0.001
        views.append(auditing.View("canonical", None, group(("region", name)), 900 + k))
        views.append(of("top_label", right, 900 + k, 100 + k, by, ("region", name)))
    settings = {
        "n_classes": len(names),
        "classes": tuple(names),
        "lenses": ("canonical", "top_label", "classwise"),
        "groups": ("region",),
    }
    return made(views, **(settings | changes))


def binary(error=-0.08, rows=8000, columns=("sex", "age"), **changes):
    """An audit of a risk in two columns of groups, whose crossing F and old is wrong by ``error``."""
    scores, _ = data(rows, 0.0, 7, 0.05, 0.45)
    scores = np.random.default_rng(3).permutation(scores)
    sex = np.arange(rows) % 2
    age = np.arange(rows) // 2 % 2
    labels = np.empty(rows, dtype=np.int64)
    for a in (0, 1):
        for b in (0, 1):
            where = np.flatnonzero((sex == a) & (age == b))
            where = where[np.argsort(scores[where])]
            wanted = np.clip(scores[where] - (error if a == b == 1 else 0.0), 0.0, 1.0)
            labels[where] = np.diff(np.floor(np.cumsum(wanted) + 0.5), prepend=0.0)
    values = {0: (sex, ("M", "F")), 1: (age, ("young", "old"))}
    cells = [((), np.ones(rows, bool))]
    cells += [
        (((columns[c], name),), values[c][0] == k)
        for c in values
        for k, name in enumerate(values[c][1])
    ]
    cells += [
        (((columns[0], one), (columns[1], other)), (sex == a) & (age == b))
        for a, one in enumerate(values[0][1])
        for b, other in enumerate(values[1][1])
    ]
    family = Family.of(0.05, 9, 52)
    event = f"the label is {changes.get('event', 'class 1')!r}"
    views = [
        view("canonical", event, group(*pairs) if pairs else None, scores[of], labels[of], family, 1)
        for pairs, of in cells
    ]
    masks = {each.group: of for each, (_, of) in zip(views, cells, strict=True)}
    rests = []
    for each in views:
        for parent in each.group.parents() if each.group else ():
            left = masks[parent] & ~masks[each.group]
            means = float(scores[left].mean()), float(labels[left].mean())
            counts = int(left.sum()), round(means[1] * left.sum()), family.of_view
            ends = error_of_mean(means[0], *counts)
            names = ("predicted", "observed", "low", "high")
            sized = dict(zip(names, (*means, *ends), strict=True))
            rest = auditing.Rest(each.lens, each.group, parent, int(left.sum()), False, **sized)
            p = chance(rest, 40.0)
            rests.append(replace(rest, adjusted_pvalue=p, found=p <= 0.05))
    settings = {"groups": columns, "rests": tuple(rests)}
    if error == 0.0:
        settings["sensitivity"] = auditing.Sensitivity(0, 0.017, 0.8)
    return made(views, **(settings | changes))


def slope(rows=100_000, bend=0.012, **changes):
    """An audit of two classes without groups: right on average, wrong in either half."""
    scores, _ = data(rows, 0.0, 5, 0.02, 0.98)
    wanted = scores - bend * np.sign(0.5 - scores)
    labels = np.diff(np.floor(np.cumsum(wanted) + 0.5), prepend=0.0).astype(np.int64)
    whole = view("canonical", "the label is 'churn'", None, scores, labels, Family.of(0.05, 1, 12), 1)
    found = made((whole,), event="churn", **changes)
    strong = replace(found.checks[1], adjusted=0.005, found=True)
    return replace(found, **({"checks": (strong, found.checks[0]), "pvalue": 0.005} | changes))


def rare(rows=100_000, ratio=1.5, **changes):
    """An audit of an event in 1% of the rows, whose risk is stated so many times too high."""
    scores = np.sort(np.exp(np.random.default_rng(2).normal(-5.0, 1.0, rows)).clip(0.0, 0.5))
    labels = np.diff(np.floor(np.cumsum(scores / ratio) + 0.5), prepend=0.0).astype(np.int64)
    whole = view("canonical", "the label is 'fraud'", None, scores, labels, Family.of(0.05, 1, 12), 1)
    return made((whole,), event="fraud", **changes)


def path(of, band):
    """The same view with a cumulative difference."""
    return replace(
        of, cumulative=auditing.Cumulative((0.25, 0.5, 1.0), (0.3, 0.5, 0.9), (0.01, 0.03, 0.0), band)
    )


def real(model, **options):
    """An audit of real predictions, in groups of which one is too small."""
    digits = caltest.datasets.load_digits_predictions(model)
    rows = np.arange(600)
    sites = np.array(["north", "south", "small"])[np.where(rows < 20, 2, rows % 2)]
    found = {"groups": {"site": sites}, "lenses": ("canonical", "top_label"), "rng": 1, **options}
    return caltest.audit(digits.probs[rows], digits.labels[rows], **found)
