"""Ours minus the published numbers of Widmann et al. 2019, in standard errors, point by point.

Run by ``python -m validation widmann`` on what is done so far. Published are means of estimates and
test errors at five levels, of 10⁴ data sets each. z divides the difference by its standard error, that
of both simulations. Where a method has a convention of its own in the published code (see
``validation.widmann``), z is computed for ours and for theirs on the same data sets: beyond 4 for ours
and not for theirs, the convention explains the difference; beyond 4 for both, nothing here does, and
the cause says "unexplained". π = 0 does not depend on β, and the rows published for either β have the
same numbers: one of them is compared.

The designs of one line of the summary are independent of each other, so that its sd of z should be 1.
The lines of estimates are not: they come from the same data sets, and lean the same way. The
correlation of two estimators is 0.7 on average (their own included), so that under agreement the mean
over all z of estimates of D designs has a standard deviation of about 0.85/√D, whatever the number of
estimators: 0.19 for twenty designs.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

import caltest
from caltest.kernels import Exponential
from caltest.plots.canvas import BLACK, BLUE, NARROW_BAND
from caltest.statistics import UnbiasedSKCE
from validation._cells import Options, Row, Table, seeds
from validation._study import REFERENCE, markdown, save, write_csv
from validation.widmann import MODELS, SEED, Design, tables

PUBLISHED = 10_000
FAR = 4.0
NUMBERS = ("mean_estimate", "true_or_mean_uq", "error")  # what is published, not what it is of

#: Published test: ours, its version in their convention, and what that convention is.
TESTS = {
    "ECE_uniform": ("C_uniform", "C_uniform share", "p = b/B, not (1 + b)/(B + 1)"),
    "ECE_dynamic": ("C_dynamic", "C_dynamic share", "p = b/B, not (1 + b)/(B + 1)"),
    "SKCEb_median_distribution_free": ("D_b median", None, ""),
    "SKCEuq_median_distribution_free": ("D_uq median", "D_uq median square", "t² for negative t too"),
    "SKCEul_median_distribution_free": ("D_ul median", "D_ul median square", "t² for negative t too"),
    "SKCEuq_median_asymptotic": ("A_uq median", "A_uq median share", "p = b/B, not (1 + b)/(B + 1)"),
    "SKCEul_median_asymptotic": ("A_ul median", "A_ul median ddof0", "ddof = 0, not 1"),
}


def read(name: str) -> list[Row]:
    """Read a published table."""
    with (REFERENCE / name).open(newline="") as file:
        return list(csv.DictReader(file))


def once(rows: Iterable[Row]) -> list[Row]:
    """Return the numbers of π = 0 once, though they are published for either β.

    Raises
    ------
    ValueError
        If the two differ.
    """
    kept: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        what = {k: v for k, v in row.items() if k not in NUMBERS} | where(row)
        first = kept.setdefault(tuple(what.values()), row)
        if any(first[name] != row[name] for name in NUMBERS if name in row):
            raise ValueError(f"two numbers are published for {what}: {first} and {row}")
    return list(kept.values())


def where(published: Row) -> Row:
    """Return the columns of our design."""
    pi = float(published["pi"])
    beta = "any" if pi == 0.0 else published["beta"]
    return {"alpha": float(published["alpha"]), "beta": beta, "m": published["m"], "pi": pi}


def of_estimates(estimates: Table) -> list[Row]:
    """Compare the means."""
    rows = []
    for published in once(read("widmann2019_mean_estimates.csv")):
        theirs, name = float(published["mean_estimate"]), published["estimator"]
        known = estimates.where(**where(published), estimator=name, seed=SEED)
        if not known:
            continue
        ours, n = float(known[0]["mean"]), int(known[0]["datasets"])
        error = np.sqrt(float(known[0]["variance"]) * (1.0 / n + 1.0 / PUBLISHED))
        z = _ratio(ours - theirs, error)
        rows.append(_row("estimate", name, published, "", theirs, ours, n, error, z, z, ""))
    return rows


def of_errors(errors: Table) -> list[Row]:
    """Compare the test errors."""
    rows = []
    for published in once(read("widmann2019_test_errors.csv")):
        ours_name, their_name, convention = TESTS[published["test"]]
        level = f"p<={float(published['level']):g}"
        found = []
        for name in (ours_name, their_name or ours_name):
            known = errors.where(**where(published), method=name, seed=SEED)
            if not known:
                break
            n = int(known[0]["datasets"])
            rejected = int(known[0][level]) / n
            error = rejected if published["kind"] == "typeI" else 1.0 - rejected
            found.append((error, *_compared(error, float(published["error"]), n), n))
        if len(found) == 2:
            (ours, z, error, n), (_, z_theirs, _, _) = found
            numbers = (float(published["error"]), ours, n, error, z, z_theirs, convention)
            rows.append(_row("error", published["test"], published, published["level"], *numbers))
    return rows


def _compared(ours: float, theirs: float, n: int) -> tuple[float, float]:
    """Return z of two proportions, and its standard error."""
    pooled = (n * ours + PUBLISHED * theirs) / (n + PUBLISHED)
    error = float(np.sqrt(pooled * (1.0 - pooled) * (1.0 / n + 1.0 / PUBLISHED)))
    return _ratio(ours - theirs, error), error


def _ratio(difference: float, error: float) -> float:
    """Return z; 0 if both numbers are certain and equal."""
    return float(difference / error) if error > 1e-12 else (0.0 if abs(difference) < 1e-9 else np.inf)


def _row(  # one call a published number
    kind: str,
    name: str,
    published: Row,
    level: str,
    theirs: float,
    ours: float,
    n: int,
    error: float,
    z: float,
    z_theirs: float,
    convention: str,
) -> Row:
    cause = ""
    if abs(z) > FAR:
        cause = convention if convention and abs(z_theirs) <= FAR else "unexplained"
    return {
        "kind": kind,
        "name": name,
        **{key: published[key] for key in ("alpha", "beta", "m", "pi")},
        "level": level,
        "published": f"{theirs:.6g}",
        "ours": f"{ours:.6g}",
        "datasets": n,
        "standard_error": f"{error:.2g}",
        "z": round(z, 2),
        "z_their_convention": round(z_theirs, 2),
        "cause": cause,
    }


def summary(rows: list[Row]) -> list[Row]:
    """Sum up the z of every method: a mean of 0 and a standard deviation of 1 is agreement."""
    found = []
    for kind, name in dict.fromkeys((row["kind"], row["name"]) for row in rows):
        mine = [row for row in rows if (row["kind"], row["name"]) == (kind, name)]
        certain = [row for row in mine if float(row["standard_error"]) == 0.0]
        z = np.array([row["z"] for row in mine if row not in certain])
        counts = [row["datasets"] for row in mine]
        found.append(
            {
                "kind": kind,
                "name": name,
                "points": len(mine),
                "both_certain": len(certain),
                "datasets": f"{min(counts)}-{max(counts)}",
                "mean_z": round(float(z.mean()), 2) if len(z) else "",
                "sd_z": round(float(z.std()), 2) if len(z) else "",
                "largest": round(float(np.abs(z).max()), 2) if len(z) else "",
                "beyond_4": int(np.count_nonzero(np.abs(z) > FAR)),
                "beyond_4_their_convention": sum(abs(r["z_their_convention"]) > FAR for r in mine),
            }
        )
    return found


def conventions(errors: Table, count: int) -> list[Row]:
    """Return how much each convention of the published code moves the published numbers.

    Of tests: the largest change of an error over the designs that are published in numbers and all
    levels, on the same data sets. Of the bandwidth: the median over pairs i < j, our default, in place
    of that with the zero diagonal: the mean change of SKCE_uq over ``count`` data sets, in standard
    errors of a published mean.
    """
    rows = []
    for test, (ours, theirs, convention) in TESTS.items():
        changes = []
        for known in errors.where(method=ours, seed=SEED, alpha=0.1):
            if int(known["m"]) > 10:
                continue
            cell = {key: known[key] for key in ("group", "alpha", "beta", "m", "pi")}
            other = errors.get(**cell, method=theirs, seed=SEED)
            if other is not None:
                n = int(known["datasets"])
                changes += [(int(other[k]) - int(known[k])) / n for k in known if k.startswith("p<=")]
        if changes:
            largest = max(changes, key=abs)
            rows.append(
                _convention(test, convention, "largest change of a rate", largest, len(changes))
            )
    for name, design in MODELS.items():
        found = np.array([_both_medians(design, s) for s in seeds(SEED, (99,), 0, count)])
        error = found[:, 0].std() / np.sqrt(PUBLISHED)
        change = float((found[:, 0] - found[:, 1]).mean() / error)
        what = "mean change of SKCE_uq in published standard errors"
        rows.append(_convention(name, "median with the zero diagonal", what, change, count))
    return rows


def _convention(name: str, convention: str, what: str, value: float, of: int) -> Row:
    return {"of": name, "convention": convention, "what": what, "value": f"{value:.4f}", "from": of}


def _both_medians(design: Design, seed: np.random.SeedSequence) -> tuple[float, float]:
    drawn = design.draw(seed)
    theirs, ours = (
        caltest.estimate(drawn.probs, drawn.labels, UnbiasedSKCE(Exponential(rule)))
        for rule in ("median_full", "median")
    )
    return theirs, ours


def draw(rows: list[Row], path: Path) -> None:
    """Draw the histograms of z over the normal density."""
    figure, axes = plt.subplots(1, 3, figsize=(11.5, 3.9), sharex=True, layout="constrained")
    panels = (
        ("estimate", "z", "means of estimates"),
        ("error", "z", "test errors, ours"),
        ("error", "z_their_convention", "test errors, in their conventions"),
    )
    x = np.linspace(-6.0, 6.0, 241)
    for ax, (kind, column, title) in zip(axes, panels, strict=True):
        mine = [row for row in rows if row["kind"] == kind and float(row["standard_error"]) > 0.0]
        z = np.array([float(row[column]) for row in mine])
        certain = sum(row["kind"] == kind for row in rows) - len(mine)
        ax.hist(np.clip(z, -6.0, 6.0), bins=np.arange(-6.0, 6.01, 0.5), color=BLUE, alpha=0.75)
        ax.plot(x, 0.5 * len(z) * norm.pdf(x), color=BLACK, linewidth=1.4)
        for end in (-FAR, FAR):
            ax.axvline(end, color=NARROW_BAND, linewidth=1.0, linestyle=(0, (4, 3)))
        ax.set_title(f"{len(z)} {title}", loc="left", size="medium")
        ax.set_xlabel("(ours − published) / standard error")
        note = f"mean {z.mean():.2f}, sd {z.std():.2f}\nbeyond 4: {np.count_nonzero(np.abs(z) > FAR)}"
        note += f"\n{certain} more: both 0 or 1" if certain else ""
        ax.text(0.02, 0.97, note, transform=ax.transAxes, va="top", size="small")
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("published numbers")
    save(figure, path)


def run(options: Options) -> None:
    """Compare what there is; write the tables and the picture."""
    if not REFERENCE.is_dir():
        print("without the reference data there is nothing to compare with", flush=True)
        return
    estimates, errors = tables(options)
    rows: list[Any] = of_estimates(estimates) + of_errors(errors)
    write_csv(rows, options.results / "widmann_compared.csv")
    moved = conventions(errors, 3 if options.quick else 100)
    write_csv(moved, options.results / "widmann_conventions.csv")
    print(markdown(moved), flush=True)
    table = summary(rows)
    write_csv(table, options.results / "widmann_agreement.csv")
    print(markdown(table), flush=True)
    if {row["kind"] for row in rows} == {"estimate", "error"}:
        draw(rows, options.results / "widmann_compared.png")
    for row in rows:
        if row["cause"]:
            print(f"beyond {FAR:g}: {row}", flush=True)
