"""The null "moments" where it is easily too small: few distinct rows, whose counts can be gone through.

``python -m validation.moments_small --jobs 1``

A design is up to four distinct rows of two classes, or two of three, with up to 2000 copies: coins,
rare events, values on a grid, values close together. A statistic is then a function of how many labels
of each class the copies of each row have, and its law under H0 a sum over all outcomes of these counts:
the level of the analytic p-value is known without a draw. Where the null draws labels itself it is
exact, and the design is counted as such. A line of the summary is a statistic and a kind of design:
how many, in how many a curve answers, and the largest level there; ``moments_small_worst.csv`` has the
designs of the largest levels in full. ``skce_ul`` looks at pairs of rows: its designs have one
distinct row, whose pairs are counted.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import product
from math import comb
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.special import gammaln, xlogy

from caltest.data import sample
from caltest.exceptions import InputError
from caltest.forms import Form
from caltest.lenses import find_lens
from caltest.simulation import Simulated
from caltest.statistics import STATISTICS, LinearSKCE
from validation._study import command_line, fixed, markdown, write_csv
from validation.moments import AIMS, PValue, answers, rejected

LIMITS = {0.05: 1.1, 0.01: 1.15}  # of a level to the nominal one
STATISTICS_SMALL = (
    "skce_uq", "skce_b", "jkce", "ckce", "mmce", "ece_squared", "ece_debiased", "hosmer_lemeshow",
    "ecd", "brier", "log_score", "spiegelhalter", "citl", "esce", "skce_ul",
)  # fmt: skip
MOST_OUTCOMES = 6000
KINDS = ("uniform", "confident", "near one half", "rare", "grid")


def compositions(n: int, m: int) -> np.ndarray:
    """Return all ways to share n rows among m classes, (ways, m)."""
    if m == 1:
        return np.array([[n]])
    parts = [(i, compositions(n - i, m - 1)) for i in range(n + 1)]
    return np.concatenate([np.hstack([np.full((len(rest), 1), i), rest]) for i, rest in parts])


def law_of_counts(rows: np.ndarray, counts: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return a label vector for every outcome of the counts of the distinct rows, and their chances."""
    m = rows.shape[1]
    ways = [compositions(int(n), m) for n in counts]
    logs = [
        gammaln(n + 1) - gammaln(way + 1).sum(axis=1) + xlogy(way, row).sum(axis=1)
        for n, way, row in zip(counts, ways, rows, strict=True)
    ]
    vectors = [np.array([np.repeat(np.arange(m), each) for each in way]) for way in ways]
    places = list(product(*(range(len(way)) for way in ways)))
    labels = np.array([np.concatenate([vectors[k][i] for k, i in enumerate(p)]) for p in places])
    chances = np.exp([sum(logs[k][i] for k, i in enumerate(p)) for p in places])
    return labels, chances


def law_of_pairs(row: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the same for pairs of equal rows: how many have labels (a, b), for every a ≤ b."""
    m, n = len(row), pairs.shape[1]
    kinds = [(a, b) for a in range(m) for b in range(a, m)]
    chances = np.array([row[a] * row[b] * (1 if a == b else 2) for a, b in kinds])
    ways = compositions(n, len(kinds))
    labels = np.empty((len(ways), 2 * n), dtype=np.intp)
    for place, way in enumerate(ways):
        of_pairs = np.repeat(np.array(kinds), way, axis=0)
        labels[place, pairs[0]], labels[place, pairs[1]] = of_pairs.T
    logs = gammaln(n + 1) - gammaln(ways + 1).sum(axis=1) + xlogy(ways, chances).sum(axis=1)
    return labels, np.exp(logs)


def levels(
    statistic: str, probs: np.ndarray, labels: np.ndarray, chances: np.ndarray
) -> dict[float, float] | None:
    """Return the level of the analytic null at each nominal one; None where labels are drawn.

    Raises
    ------
    InputError
        If the statistic does not look at such predictions.
    """
    form, predictions = fixed(statistic, Simulated(probs, labels[0], probs))
    lens = find_lens(STATISTICS[statistic].default_lens)
    if lens is not None and probs.shape[1] > 2:
        labels = lens.show(sample(probs, labels[0]).rows).outcomes(labels).astype(np.intp)
    answered, pvalue = answers(statistic, form, predictions, labels[0])
    if answered.endswith("draws"):
        return None
    return _weighed(form, labels, chances, pvalue)


def _weighed(form: Form, labels: np.ndarray, chances: np.ndarray, pvalue: PValue) -> dict[float, float]:
    """Add up the chances of the values that are rejected: those outwards of two, as p-values fall."""
    values = form.of_labels(labels)
    order = np.argsort(values)
    values, chances = values[order], chances[order]
    median, found = int(np.searchsorted(chances.cumsum(), 0.5)), {}
    for level in AIMS:
        above, below = rejected(values, pvalue, level, median)
        found[level] = float(chances[:below].sum() + chances[above:].sum())
    return found


def design(rng: np.random.Generator, pairs: bool) -> tuple[str, np.ndarray, np.ndarray]:
    """Return the kind of a random design, its distinct rows (K, m) and their copies (K,)."""
    m = 2 if rng.random() < 0.75 else 3
    k = 1 if pairs else int(rng.choice([1, 1, 2, 2, 3, 4] if m == 2 else [1, 2]))
    largest = {2: [2000, 70, 20, 10], 3: [100, 8]}[m][k - 1]
    if pairs:
        largest = 140 if m == 2 else 12
    while True:
        copies = np.exp(rng.uniform(np.log(2), np.log(largest), k)).astype(int)
        outcomes = np.prod([comb(int(n) + m - 1, m - 1) for n in copies])
        if outcomes <= MOST_OUTCOMES and copies.sum() >= 5:
            break
    kind = KINDS[rng.integers(len(KINDS))]
    if m == 3:
        concentration = dict(zip(KINDS, (1.0, 0.3, 20.0, 0.5, 5.0), strict=True))[kind]
        rows = rng.dirichlet(np.full(3, concentration), k).clip(0.01)
        return kind, rows / rows.sum(axis=1, keepdims=True), copies
    p = {
        "uniform": rng.random(k),
        "confident": rng.beta(0.3, 0.3, k),
        "near one half": 0.5 + 0.1 * rng.standard_normal(k) * (rng.random() < 0.7),
        "rare": rng.beta(1, 10, k),
        "grid": rng.integers(1, 20, k) / 20,
    }[kind].clip(0.005, 0.995)
    return kind, np.column_stack([1 - p, p]), copies


def study(number: int, seed: int, statistics: Sequence[str]) -> list[dict[str, Any]]:
    """Return the levels of one design, a row a statistic."""
    found = []
    for paired in (False, True):
        chosen = [name for name in statistics if (name == "skce_ul") == paired]
        if not chosen:
            continue
        rng = np.random.default_rng([seed, number, int(paired)])
        kind, rows, copies = design(rng, paired)
        probs = np.repeat(rows, copies, axis=0)
        if paired:
            probs = probs[: 2 * (len(probs) // 2)]
            labels, chances = law_of_pairs(rows[0], LinearSKCE()._pairs(probs))
        else:
            labels, chances = law_of_counts(rows, copies)
        for name in chosen:
            try:
                reached = levels(name, probs, labels, chances)
            except InputError:
                continue  # of two classes only
            found.append(
                {
                    "design": number,
                    "kind": kind,
                    "statistic": name,
                    "rows": len(probs),
                    "copies": " ".join(map(str, copies)),
                    "predictions": " ".join(f"{p:.4g}" for p in rows[:, 1:].ravel()),
                    "answered_by": "draws" if reached is None else "a curve",
                    **{f"level_{a:g}": "" if reached is None else reached[a] for a in AIMS},
                }
            )
    return found


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    given = command_line(__doc__)
    given.add_argument("--designs", type=int, default=2000)
    given.add_argument("--seed", type=int, default=11)
    given.add_argument("--statistics", nargs="+", choices=STATISTICS_SMALL, default=STATISTICS_SMALL)
    return given.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study, write the CSV and print how often a level lies above its limit."""
    options = parsed(arguments)
    tasks = (
        delayed(study)(number, options.seed, options.statistics) for number in range(options.designs)
    )
    rows = [row for found in Parallel(n_jobs=options.jobs)(tasks) for row in found]
    lines, worst = summed(rows)
    write_csv(lines, options.results / "moments_small.csv")
    write_csv(worst, options.results / "moments_small_worst.csv")
    print(markdown(lines))


def summed(rows: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return a line a statistic and kind: designs, those a curve answers, largest levels; the worst.

    The designs with the largest levels come in full.
    """
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["statistic"], row["kind"]), []).append(row)
    lines, worst = [], dict[tuple[str, int], dict[str, Any]]()
    for (name, kind), mine in sorted(groups.items(), key=_place):
        curves = [row for row in mine if row["answered_by"] == "a curve"]
        line = {"statistic": name, "kind": kind, "designs": len(mine), "curve": len(curves)}
        line["distinct_rows"] = max(len(row["copies"].split()) for row in mine)
        for level in AIMS:
            column = f"level_{level:g}"
            top = max(curves, key=lambda row: row[column], default=None)
            line[column] = f"{top[column]:.9g}" if top else ""
            if limit := LIMITS.get(level):
                line[f"above {limit:g} × {level:g}"] = sum(r[column] > limit * level for r in curves)
            if top:
                worst[name, top["design"]] = top
        lines.append(line)
    return lines, list(worst.values())


def _place(group: tuple[tuple[str, str], Any]) -> tuple[int, int]:
    (name, kind), _ = group
    return STATISTICS_SMALL.index(name), KINDS.index(kind)


if __name__ == "__main__":
    main()
