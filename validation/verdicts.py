"""The audit's verdict: directions and intervals, and the group that is named.

``python -m validation.verdicts directions --repetitions 200``: audits with all defaults of calibrated
models of ten classes in 8 crossed groups, of 60 classes that are overconfident (temperature 0.7; all
classes alike, so that no class's mean is wrong by more than a hair), and of one probability with a
slope and an intercept. Share of audits with a wrong claim of direction (a finding, and an interval on
the wrong side of the true error, for any view or part), of audits in which all intervals hold the true
mean errors, and of audits that say that something is wrong.

``python -m validation.verdicts cells --repetitions 40``: two crossed columns of groups (2 × 5 values),
15 000 rows of one probability, the log-odds of one cell of 1 500 rows shifted by 0.5 or 1, or those of
one value, or of all rows; share of audits that name it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from time import perf_counter
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import caltest
from caltest.auditing import Audit, View
from validation._study import command_line, markdown, write_csv
from validation.audit import rate

LEVEL = 0.05

Array = NDArray[np.float64]


def _softmax(logits: Array) -> Array:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    found: Array = powers / powers.sum(axis=1, keepdims=True)
    return found


def _model(name: str, rng: np.random.Generator) -> tuple[Array, Array, dict[str, Any]]:
    """Return predictions, the true probabilities and groups."""
    if name == "calibrated":
        probs = rng.dirichlet(np.full(10, 0.4), 2000)
        groups = {"site": rng.choice(["a", "b"], 2000), "age": rng.choice(["1", "2", "3", "4"], 2000)}
        return probs, probs, groups
    if name == "overconfident, 60 classes":
        true = rng.dirichlet(np.full(60, 0.1), 4000)
        return _softmax(np.log(np.maximum(true, 1e-12)) / 0.7), true, {}
    logit = rng.normal(-1.0, 1.0, 4000)
    site = rng.choice(["a", "b", "c"], 4000)
    stated, right = 1 / (1 + np.exp(-logit)), 1 / (1 + np.exp(-(0.2 + 0.8 * logit)))
    return np.column_stack([1 - stated, stated]), np.column_stack([1 - right, right]), {"site": site}


def _truth(view: View, probs: Array, true: Array, groups: dict[str, Any]) -> tuple[Array, Array]:
    """Return the stated and true probabilities of a view's event, in its rows."""
    rows = np.ones(len(probs), dtype=bool)
    for each in view.group.conditions if view.group else ():
        rows &= groups[each.column] == each.value
    if view.class_index is not None:
        column = np.full(rows.sum(), view.class_index)
    else:
        column = probs[rows].argmax(axis=1)
    places = np.arange(rows.sum())
    return probs[rows][places, column], true[rows][places, column]


def _judged(audit: Audit, probs: Array, true: Array, groups: dict[str, Any]) -> tuple[bool, bool, bool]:
    """Say whether any claim of direction is wrong, whether all intervals hold, and the verdict."""
    wrong, held = False, True
    for view in audit.views:
        if view.predicted is None:
            continue
        stated, right = _truth(view, probs, true, groups)
        order = np.argsort(stated, kind="stable")
        errors = [(view, float((stated - right).mean()))]
        for of in {part.of for part in view.parts}:
            first = 0
            for part in (part for part in view.parts if part.of == of):
                rows = order[first : first + part.rows]
                errors.append((part, float((stated[rows] - right[rows]).mean())))
                first += part.rows
        for each, error in errors:
            low, high = each.low or 0.0, each.high or 0.0
            held &= low - 1e-9 <= error <= high + 1e-9
            wrong |= audit.rejected and (
                (low > 0.0 and error <= 1e-9) or (high < 0.0 and error >= -1e-9)
            )
    return wrong, held, audit.rejected


def _one(name: str, resamples: int, seed: np.random.SeedSequence) -> tuple[bool, bool, bool]:
    rng = np.random.default_rng(seed)
    probs, true, groups = _model(name, rng)
    labels = (rng.random((len(true), 1)) > true.cumsum(axis=1)[:, :-1]).sum(axis=1)
    with threadpool_limits(1):
        audit = caltest.audit(
            probs, labels, groups=groups or None, n_resamples=resamples, rng=rng, n_jobs=1
        )
    return _judged(audit, probs, true, groups)


MODELS = ("calibrated", "overconfident, 60 classes", "slope and intercept")


def directions(options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """Yield how often words of direction are wrong, and intervals right."""
    for number, name in enumerate(MODELS):
        start = perf_counter()
        seeds = np.random.SeedSequence([options.seed, number]).spawn(options.repetitions)
        tasks = (joblib.delayed(_one)(name, options.resamples, seed) for seed in seeds)
        found = np.array(joblib.Parallel(n_jobs=options.jobs)(tasks))
        print(f"{name}: {perf_counter() - start:.0f} s", flush=True)
        yield {
            "model": name,
            "of": len(found),
            **rate(int(found[:, 0].sum()), len(found), "wrong_direction"),
            **rate(int(found[:, 1].sum()), len(found), "all_intervals_hold"),
            **rate(int(found[:, 2].sum()), len(found), "found"),
        }


CASES = ("cell", "group", "all rows")


def _named(where: str, shift: float, resamples: int, seed: np.random.SeedSequence) -> bool:
    """Plant an error, and say whether the audit names where it is."""
    rng = np.random.default_rng(seed)
    n = 15_000
    sex, age = rng.permutation(n) % 2, rng.permutation(n) % 5
    logit = rng.normal(-1.0, 1.0, n)
    planted = {"cell": (sex == 1) & (age == 4), "group": age == 4, "all rows": sex >= 0}[where]
    true = 1 / (1 + np.exp(-(logit + shift * planted)))
    labels = (rng.random(n) < true).astype(int)
    with threadpool_limits(1):
        audit = caltest.audit(
            1 / (1 + np.exp(-logit)),
            labels,
            groups={"sex": sex, "age": age},
            n_resamples=resamples,
            rng=rng,
            n_jobs=1,
        )
    wanted = {"cell": "sex = 1, age = 4", "group": "age = 4", "all rows": None}[where]
    worst = audit.worst
    return worst is not None and (worst.group.label if worst.group else None) == wanted


def cells(options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """Yield how often the right rows are named."""
    for number, (where, shift) in enumerate((where, shift) for where in CASES for shift in (0.5, 1.0)):
        start = perf_counter()
        seeds = np.random.SeedSequence([options.seed, 50 + number]).spawn(options.repetitions)
        tasks = (joblib.delayed(_named)(where, shift, options.resamples, seed) for seed in seeds)
        found = np.array(joblib.Parallel(n_jobs=options.jobs)(tasks))
        print(f"{where}, {shift}: {perf_counter() - start:.0f} s", flush=True)
        yield {
            "planted": where,
            "log_odds": shift,
            "of": len(found),
            **rate(int(found.sum()), len(found), "named"),
        }


STUDIES = {"directions": directions, "cells": cells}


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    given = command_line(__doc__, seed=20_261_122)
    given.add_argument("study", choices=list(STUDIES))
    given.add_argument("--repetitions", type=int, default=200)
    given.add_argument("--resamples", type=int, default=199)
    return given.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one study; its rows are written as they come."""
    options = parsed(arguments)
    rows: list[dict[str, Any]] = []
    for row in STUDIES[options.study](options):
        rows.append(row)
        write_csv(rows, options.results / f"verdicts_{options.study}.csv")
    print(markdown(rows))


if __name__ == "__main__":
    main()
