"""The verdict "within": how often it is false at the boundary, and how often true where it should be.

``python -m validation.within level --repetitions 20000``: designs in which the mean error of one view,
or of all, is exactly the limit; the share of data sets whose views are all shown inside it, by the rule
itself (every view's own limits at α = .05), and of ``--audits`` whole audits of each design, those that
differ from the rule. At most α where intervals are exact.

``python -m validation.within power --repetitions 2000``: calibrated models of 5, 25 and 100 groups with
300 to 10 000 rows each, limit 2 points, rate 10%: the share declared within, beside the rows that
``rows_needed`` asks for.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import caltest
from caltest.auditing import Audit
from caltest.auditing.limits import Goal, Limit, Wanted, rows_needed
from caltest.auditing.sizes import Design
from caltest.bounds.intervals import mean_bounds
from caltest.data import sample
from validation._study import command_line, markdown, write_csv
from validation.audit import rate

ALPHA = 0.05
Array = NDArray[np.float64]
Labels = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Case:
    """Predictions, a way to draw labels, and how an audit is asked."""

    probs: Array
    draw: Callable[[np.random.Generator], Labels]
    options: dict[str, Any]
    groups: dict[str, Labels] = field(default_factory=dict)


def _independent(q: Array) -> Callable[[np.random.Generator], Labels]:
    return lambda rng: (rng.random(len(q)) < q).astype(np.intp)


def _one(n: int, p: float, q: float, **options: Any) -> Case:
    return Case(np.full(n, p), _independent(np.full(n, q)), options)


def _spread(n: int, error: float, rate_: float = 0.3, **options: Any) -> Case:
    """Predictions that differ, and true probabilities that differ more, around a mean error."""
    rng = np.random.default_rng(n)
    p = rng.beta(2.0, 2.0 * (1.0 - rate_) / rate_, n)
    q = np.clip(p + rng.choice([-0.1, 0.1], n), 0.0, 1.0)
    for _ in range(50):  # until the mean is right, despite the ends
        q = np.clip(q + (p.mean() - error - q.mean()), 0.0, 1.0)
    return Case(p, _independent(q), options)


def _groups(
    count: int, rows: int, p: float, wrong: Sequence[int], error: float, **options: Any
) -> Case:
    which = np.repeat(np.arange(count), rows)
    q = np.where(np.isin(which, wrong), p - error, p)
    return Case(np.full(count * rows, p), _independent(q), options, {"group": which})


def _crossed(wrong: Callable[[Labels, Labels], Any], error: float, **options: Any) -> Case:
    """Two columns of 2 and 4 values, 1 500 rows a cell, rate 20%."""
    a, b = np.divmod(np.repeat(np.arange(8), 1500), 4)
    q = 0.2 - error * wrong(a, b)
    return Case(np.full(len(a), 0.2), _independent(q), options, {"a": a, "b": b})


def _weighted(weights: Array, p: float, error: float) -> Case:
    """Heavy rows alone are wrong, so that the weighted mean is wrong by the limit."""
    heavy = weights > 3.0 * np.median(weights)
    by = error * weights.sum() / weights[heavy].sum()
    q = np.where(heavy, np.clip(p - by, 0.0, 1.0), p)
    limit = float(weights @ (p - q)) / float(weights.sum())
    options = {"weights": weights, "materiality": limit}
    return Case(np.full(len(weights), p), _independent(q), options)


def _clusters(count: int, rows: int, p: float, error: float, share: float) -> Case:
    """Rows of a cluster have one outcome with probability ``share``, else each its own."""
    codes = np.repeat(np.arange(count), rows)

    def draw(rng: np.random.Generator) -> Labels:
        common, own = rng.random(count)[codes], rng.random(len(codes))
        uniform = np.where((rng.random(count) < share)[codes], common, own)
        return (uniform < p - error).astype(np.intp)

    return Case(np.full(len(codes), p), draw, {"clusters": codes, "materiality": abs(error)})


def _sampled(n: int, kept: float, error: float) -> Case:
    """Rows without the event were kept at a rate: rows and labels are drawn from those kept."""
    rng = np.random.default_rng(1)
    p = rng.beta(0.5, 15.0, 12 * n)
    q = np.clip(p + error, 0.0, 1.0)  # of the population
    chance = q + (1.0 - q) * kept
    taken = rng.random(len(p)) < chance
    p, q = p[taken], (q / chance)[taken]
    weight = 1.0 / chance[taken]
    limit = abs(float((weight * (p - q * chance[taken])).sum() / weight.sum()))
    rates = {"sampling_rates": {0: kept}, "materiality": limit}
    return Case(p, _independent(q), rates)


def _classes(error: float) -> Case:
    """Three classes, 4 000 rows; class 2 is claimed too often, class 0 too rarely."""
    probs = np.tile([0.5, 0.3, 0.2], (4000, 1))
    true = np.array([0.5 + error, 0.3, 0.2 - error])

    def draw(rng: np.random.Generator) -> Labels:
        return np.searchsorted(true.cumsum()[:2], rng.random(4000), side="right")

    return Case(probs, draw, {"materiality": error})


POINTS = {"materiality": 0.02}
LOGNORMAL = np.exp(1.0 * np.random.default_rng(0).normal(size=10_000))
DESIGNS: dict[str, tuple[bool, Case]] = {
    "one view, 10%, too high": (True, _one(4000, 0.10, 0.08, **POINTS)),
    "one view, 50%, too low": (True, _one(4000, 0.50, 0.52, **POINTS)),
    "one view, 300 rows": (True, _one(300, 0.10, 0.05, materiality=0.05)),
    "predictions and truths that differ": (True, _spread(4000, 0.02, **POINTS)),
    "truths that differ, too low": (True, _spread(4000, -0.02, **POINTS)),
    "5 groups, one wrong": (True, _groups(5, 3000, 0.1, [2], 0.02, **POINTS)),
    "20 groups, one wrong": (True, _groups(20, 4000, 0.1, [7], 0.02, **POINTS)),
    "20 groups, all wrong": (True, _groups(20, 2000, 0.1, range(20), 0.02, **POINTS)),
    "crossed, one cell wrong": (True, _crossed(lambda a, b: (a == 0) & (b == 1), 0.02, **POINTS)),
    "crossed, one column wrong": (True, _crossed(lambda a, b: a == 1, 0.02, **POINTS)),
    "crossed, what a cell leaves is wrong": (
        True,
        _crossed(lambda a, b: (a == 1) & (b != 0), 0.02, **POINTS),
    ),
    "rare events in points": (True, _one(2000, 0.001, 0.021, **POINTS)),
    "ratio, too low": (True, _one(20_000, 0.010, 0.0125, materiality_ratio=1.25)),
    "ratio, too high": (True, _one(20_000, 0.050, 0.040, materiality_ratio=1.25)),
    "both limits, the ratio is wider": (
        True,
        _one(20_000, 0.10, 0.125, materiality=0.005, materiality_ratio=1.25),
    ),
    "lognormal weights": (True, _weighted(LOGNORMAL, 0.2, 0.05)),
    "50 rows of weight 60": (True, _weighted(np.r_[np.ones(3000), np.full(50, 60.0)], 0.5, 0.2)),
    "negatives kept at 10%": (True, _sampled(2000, 0.1, 0.01)),
    "60 clusters of 40": (True, _clusters(60, 40, 0.5, 0.25, 1.0)),
    "200 clusters of 10": (False, _clusters(200, 10, 0.3, 0.05, 0.5)),
    "three classes": (True, _classes(0.02)),
}


@dataclass(frozen=True, eq=False)
class Rule:
    """The rule itself, apart from audits: who has to be inside, and by which limits."""

    limit: Limit
    design: Design
    wholes: list[tuple[NDArray[np.intp], Array, int | None]]  # rows, predictions, class
    inside: list[NDArray[np.bool_]]  # of plain rows, by the number of events

    @classmethod
    def of(cls, case: Case, audit: Audit) -> Rule:
        """Take the views of one audit and what their groups leave."""
        rows = sample(case.probs, case.draw(np.random.default_rng(0)), **_of_rows(case)).rows
        everyone = np.arange(rows.n_samples)

        def places(group: Any) -> NDArray[np.intp]:
            here = np.ones(rows.n_samples, dtype=bool)
            for each in group.conditions if group else ():
                here &= case.groups[each.column].astype(str) == each.value
            return everyone[here]

        views = [view for view in audit.views if view.event is not None]
        found = []
        for view in views:
            column = 1 if rows.n_classes == 2 else view.class_index
            of = rows.probs.max(axis=1) if column is None else rows.probs[:, column]
            found.append((places(view.group), of[places(view.group)], column))
        for rest in audit.rests:
            left = np.setdiff1d(places(rest.parent), places(rest.group))
            found.append((left, rows.probs[left, 1], 1))
        limit = Limit.of(audit.materiality, audit.materiality_ratio)
        design, inside = Design.of(rows, case.options.get("sampling_rates")), []
        for of_rows, predicted, _ in found if design.plain else ():
            n, mean = len(of_rows), float(predicted.mean())
            least, most = limit.allowed(mean)
            low, high = mean_bounds(np.full(n + 1, float(n)), np.arange(n + 1.0), ALPHA)
            inside.append((low >= least) & (high <= most))
        return cls(limit, design, found, inside)

    def within(self, labels: Labels, argmax: NDArray[np.intp]) -> bool:
        """Say whether the limits of all views are inside."""
        for k, (places, predicted, column) in enumerate(self.wholes):
            events = labels[places] == (argmax[places] if column is None else column)
            if self.inside:
                if not self.inside[k][np.count_nonzero(events)]:
                    return False
                continue
            design, seen = self.design.at(places), events.astype(np.intp)
            by_t = design.by_t(predicted, ALPHA)
            mean, _, low, high = design.interval(predicted, seen, ALPHA, by_t)
            if self.limit.place(mean, low, high) != "inside":
                return False
        return True


def _of_rows(case: Case) -> dict[str, Any]:
    return {k: v for k, v in case.options.items() if k in ("weights", "clusters", "sampling_rates")}


def _audited(case: Case, labels: Labels, seed: int) -> Audit:
    with threadpool_limits(1):
        return caltest.audit(
            case.probs,
            labels,
            groups={name: values.astype(str) for name, values in case.groups.items()} or None,
            **case.options,
            n_resamples=99 if case.groups else 39,
            alpha=ALPHA,
            rng=seed,
        )


def _part(name: str, rule: Rule, seeds: Sequence[Any], audits: int) -> tuple[int, int, int]:
    """Count, of some data sets, those within by the rule, audits that say so, and that differ."""
    case = DESIGNS[name][1]
    argmax = np.zeros(0, np.intp) if case.probs.ndim == 1 else case.probs.argmax(axis=1)
    within = said = differ = 0
    for k, seed in enumerate(seeds):
        labels = case.draw(np.random.default_rng(seed))
        found = rule.within(labels, argmax)
        within += found
        if k < audits:
            audit = _audited(case, labels, k)
            inside = all(each.inside for each in (*audit.views, *audit.rests) if each.low is not None)
            differ += inside != found
            said += audit.verdict == "within"
    return within, said, differ


def level(options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """Yield how often designs at the boundary are declared within."""
    for number, (name, (exact, _)) in enumerate(list(DESIGNS.items())[: options.designs]):
        start = perf_counter()
        seeds = np.random.SeedSequence([options.seed, number]).spawn(options.repetitions)
        case = DESIGNS[name][1]
        rule = Rule.of(case, _audited(case, case.draw(np.random.default_rng(0)), 0))
        jobs = max(options.jobs, 1) * 4
        parts = [seeds[k::jobs] for k in range(jobs)]
        audits = -(-options.audits // jobs)
        tasks = (joblib.delayed(_part)(name, rule, part, audits) for part in parts)
        found = np.array(joblib.Parallel(n_jobs=options.jobs)(tasks)).sum(axis=0)
        print(f"{name}: {perf_counter() - start:.0f} s", flush=True)
        yield {
            "design": name,
            "guarantee": "exact" if exact else "about",
            "of": options.repetitions,
            **rate(int(found[0]), options.repetitions, "within"),
            "audits": audits * jobs,
            "audits_within": int(found[1]),
            "audits_that_differ": int(found[2]),
        }


def power(options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """Yield how often calibrated models are declared within, by the rule on counts."""
    limit, p = Limit.of(0.02, None), 0.1
    for views in (5, 25, 100):
        (needed, *_) = rows_needed([Wanted(p, 1.0, False)], Goal(limit, ALPHA, 0.8 ** (1.0 / views)))
        for rows in (300, 1000, 2000, 3000, 4000, 5000, 7000, 10_000, needed):
            events = np.arange(rows + 1.0)
            low, high = mean_bounds(np.full(rows + 1, float(rows)), events, ALPHA)
            least, most = limit.allowed(p)
            inside = (low >= least) & (high <= most)
            rng = np.random.default_rng([options.seed, views, rows or 0])
            drawn = rng.binomial(rows or 0, p, (options.repetitions, views))
            found = int(inside[drawn].all(axis=1).sum())
            yield {
                "groups": views,
                "rows": rows,
                "rows_needed": needed,
                "of": options.repetitions,
                **rate(found, options.repetitions, "within"),
            }


STUDIES = {"level": level, "power": power}


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    given = command_line(__doc__, seed=20_261_123)
    given.add_argument("study", choices=list(STUDIES))
    given.add_argument("--repetitions", type=int, default=20_000)
    given.add_argument("--audits", type=int, default=100)
    given.add_argument("--designs", type=int, default=len(DESIGNS), help="the first so many of them")
    return given.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one study; its rows are written as they come."""
    options = parsed(arguments)
    rows: list[dict[str, Any]] = []
    for row in STUDIES[options.study](options):
        rows.append(row)
        write_csv(rows, options.results / f"within_{options.study}.csv")
    print(markdown(rows))


if __name__ == "__main__":
    main()
