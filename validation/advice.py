"""The advice of an audit: is the remedy that it names the best one, and does it bring what is promised?

``python -m validation.advice --repetitions 100``: ten models whose truth is known. Each is wrong in a
way that one remedy undoes, or in none, or in one that none undoes wholly. On 4 000 rows the remedies
are tried by cross-fitting, as an audit does. Each is then fitted to all of these rows, and its gain in
log loss, and what it leaves in points, are computed on 50 000 fresh rows by their true probabilities.
How often the remedy named is the one planted, how often it is as good as the best (95% of the largest
gain on fresh rows, or within .0005 nats of it), and the promised gain beside the one on fresh rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp
from threadpoolctl import threadpool_limits

from caltest.auditing import Limit
from caltest.auditing.estimates import fit, remedies
from caltest.auditing.plan import Scope
from caltest.data import sample
from validation._study import command_line, markdown, write_csv

Array = NDArray[np.float64]
_ROWS, _FRESH = 4000, 50_000
_AS_GOOD, _NEGLIGIBLE = 0.95, 0.0005


@dataclass(frozen=True)
class Model:
    """Draws stated and true probabilities, (n, m), and who is in a group; what undoes the error."""

    draw: Callable[[np.random.Generator, int], tuple[Array, Array, Any]]
    planted: str | None  # None where nothing is to be done
    in_group: bool = False


def _softmax(scores: Array) -> Array:
    return np.asarray(np.exp(scores - logsumexp(scores, axis=1, keepdims=True)))


def _pair(p: Array) -> Array:
    return np.column_stack([1.0 - p, p])


def _binary(true: Callable[[Array], Array], planted: str | None) -> Model:
    """One probability; its true log-odds are a function of those stated."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Array, Array, Any]:
        logit = rng.normal(-0.8, 1.4, n)
        return _pair(expit(logit)), _pair(expit(true(logit))), None

    return Model(draw, planted)


def _in_a_group(rng: np.random.Generator, n: int) -> tuple[Array, Array, Any]:
    logit, member = rng.normal(-0.8, 1.4, n), rng.random(n) < 0.25
    return _pair(expit(logit)), _pair(expit(logit - 0.8 * member)), member


def _classes(m: int, slope: float, shifts: float, planted: str) -> Model:
    """Classes with scores of their own; true logits are slope × stated ones + a shift a class."""

    def draw(rng: np.random.Generator, n: int) -> tuple[Array, Array, Any]:
        logits = 2.5 * rng.normal(size=(n, m))
        shift = shifts * np.random.default_rng(m).normal(size=m)
        return _softmax(logits), _softmax(slope * logits + shift), None

    return Model(draw, planted)


def _of_each_class(rng: np.random.Generator, n: int) -> tuple[Array, Array, Any]:
    """Draw true logits that are no linear function of the stated ones: large ones are cut."""
    logits = 2.0 * rng.normal(size=(n, 4))
    return _softmax(logits), _softmax(1.5 * np.tanh(logits)), None


MODELS = {
    "calibrated": _binary(lambda logit: logit, None),
    "one probability, intercept": _binary(lambda logit: logit - 0.6, "shift"),
    "one probability, slope": _binary(lambda logit: 0.6 * logit, "temperature"),
    "one probability, both": _binary(lambda logit: 0.6 * logit - 0.8, "temperature and shift"),
    "one probability, a curve": _binary(lambda logit: 1.5 * np.tanh(2.0 * logit), "isotonic"),
    "a quarter of the rows, intercept": Model(_in_a_group, "shift", in_group=True),
    "10 classes, temperature": _classes(10, 0.6, 0.0, "temperature"),
    "10 classes, intercepts": _classes(10, 1.0, 0.7, "shift"),
    "100 classes, temperature": _classes(100, 0.7, 0.0, "temperature"),
    "4 classes, curves": Model(_of_each_class, "temperature"),
}


def _top_error(stated: Array, true: Array, rows: NDArray[np.bool_]) -> float:
    """Return the mean error of class 1 of two, or of the top class."""
    if stated.shape[1] == 2:
        return float((stated - true)[rows, 1].mean())
    top = stated.argmax(axis=1), np.arange(len(stated))
    return float((stated - true)[top[1], top[0]][rows].mean())


def _one(name: str, seed: np.random.SeedSequence) -> dict[str, float]:
    model, rng = MODELS[name], np.random.default_rng(seed)
    stated, true, member = model.draw(rng, _ROWS)
    labels = (rng.random((_ROWS, 1)) > true.cumsum(axis=1)[:, :-1]).sum(axis=1)
    places = None if member is None else np.flatnonzero(member)
    with threadpool_limits(1):
        whole = sample(stated, labels)
        look = Scope(whole.rows, "canonical", "canonical", None).look(None, places)
        shown, limit = {look.key: look}, Limit()
        found = remedies(whole, look, shown, {}, limit, int(rng.integers(2**31)))
        fresh, right, of_group = model.draw(rng, _FRESH)
        inside = np.ones(_FRESH, bool) if of_group is None else of_group
        gains, left = [], []
        for each in found:
            train = member if each.in_group else np.ones(_ROWS, bool)
            changed, where = fresh.copy(), inside if each.in_group else np.ones(_FRESH, bool)
            mend, _ = fit(each.name, stated[train], labels[train], np.ones(int(train.sum())))
            changed[where] = mend(fresh[where])
            gains.append(float((right * np.log(changed / fresh)).sum(axis=1).mean()))
            left.append(_top_error(changed, right, inside))
    chosen = next((k for k, each in enumerate(found) if each.chosen), None)
    if chosen is None:
        return {
            "none": 1.0,
            "as_good": float(max(gains) <= _NEGLIGIBLE),
            "planted": float(not model.planted),
        }
    best, named = max(gains), found[chosen]
    return {
        "none": 0.0,
        "planted": float((named.name, named.in_group) == (model.planted, model.in_group)),
        "as_good": float(gains[chosen] >= min(_AS_GOOD * best, best - _NEGLIGIBLE)),
        "promised": named.gain,
        "fresh": gains[chosen],
        "beyond": float(abs(named.gain - gains[chosen]) > 2.0 * named.gain_se),
        "points": 100.0 * abs(named.before),
        "promised_points": 100.0 * abs(named.after),
        "fresh_points": 100.0 * abs(left[chosen]),
    }


_SHARES = ("none", "planted", "as_good", "beyond")


def advice(options: argparse.Namespace) -> Iterable[dict[str, Any]]:
    """Yield a row a model: shares of data sets, means over those with a remedy; points have no sign."""
    for number, (name, model) in enumerate(list(MODELS.items())[: options.models]):
        seeds = np.random.SeedSequence([options.seed, number]).spawn(options.repetitions)
        tasks = (joblib.delayed(_one)(name, seed) for seed in seeds)
        found = joblib.Parallel(n_jobs=options.jobs)(tasks)
        row: dict[str, Any] = {"model": name, "planted": model.planted or "nothing", "of": len(found)}
        for key in (*_SHARES, "promised", "fresh", "points", "promised_points", "fresh_points"):
            values = [each[key] for each in found if key in each]
            name_of = f"{key}_named" if key == "planted" else key
            row[name_of] = float(np.mean(values)) if values else None
        yield row


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the options."""
    given = command_line(__doc__, seed=20_261_124)
    given.add_argument("--repetitions", type=int, default=100)
    given.add_argument("--models", type=int, default=len(MODELS), help="the first so many of them")
    return given.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the study; its rows are written as they come."""
    options = parsed(arguments)
    rows: list[dict[str, Any]] = []
    for row in advice(options):
        rows.append(row)
        write_csv(rows, options.results / "advice.csv")
    print(markdown(rows))


if __name__ == "__main__":
    main()
