"""The gate of an audit with a limit: which models it stops, by default and by every other choice.

Six jobs, each with a right model and a wrong one, and two limits: one clearly below the largest mean
error of the wrong model, one just above it. Predictions and groups of a job are the same in all data
sets, outcomes are drawn anew. Counted are verdicts, what the gate stops, and what must not be:
``found_beyond`` are audits that found an error whose joint interval leaves 0 and whose estimate is
beyond the limit, by the audit's own table, and ``passed`` those of them that the default gate lets
pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

import caltest
from caltest.predictive import Members, Quantiles, Survival
from validation._cells import Options, Part, counted

SEED = 20_261_128
ALPHA = 0.05
RESAMPLES = 199
Array = NDArray[Any]
VERDICTS = ("material", "likely", "undecided", "within")


@dataclass(frozen=True)
class Job:
    """What is predicted, how outcomes are drawn of a wrong model or a right one, and two limits.

    ``planted`` is the largest mean error of any view of the wrong model, in units of probability.
    """

    predicted: Any
    draw: Callable[[np.random.Generator, bool], Any]
    planted: float
    limits: tuple[float, float]
    options: dict[str, Any] = field(default_factory=dict)


def _bank() -> Job:
    """60 000 customers, rate 10%; predictions are 7 points too low in one cell of region x product."""
    rng = np.random.default_rng(1)
    n = 60_000
    p = rng.beta(2.0, 18.0, n)
    region = rng.choice(["north", "south", "east", "west"], n, p=[0.3, 0.2, 0.2, 0.3])
    product = rng.choice(["account", "loan", "leasing"], n, p=[0.65, 0.3, 0.05])
    cell = (region == "west") & (product == "leasing")

    def draw(rng: np.random.Generator, wrong: bool) -> Array:
        return (rng.random(n) < p + 0.07 * (wrong * cell)).astype(int)

    options = {"groups": {"region": region, "product": product}, "statistics": "citl"}
    return Job(p, draw, 0.07, (0.04, 0.075), options)


def _ensemble() -> Job:
    """2 000 ensembles of 19 members, which at the longest of four lead times are too narrow."""
    rng = np.random.default_rng(2)
    n = 2_000
    lead = np.repeat(["24 h", "48 h", "96 h", "240 h"], n // 4)
    center = rng.normal(size=n)
    members = center[:, None] + rng.normal(size=(n, 19))

    def draw(rng: np.random.Generator, wrong: bool) -> Array:
        return center + np.where(wrong & (lead == "240 h"), 1.7, 1.0) * rng.normal(size=n)

    ends = np.sort(members, axis=1)[:, [1, 17]] - center[:, None]  # of the 80% interval
    covered = np.diff(norm.cdf(ends[lead == "240 h"] / 1.7), axis=1).mean()
    return Job(Members(members), draw, 0.8 - covered, (0.1, 0.24), {"groups": {"lead": lead}})


def _hub() -> Job:
    """Quantile forecasts of 100 weeks, two locations, four horizons; one location's are too narrow."""
    rng = np.random.default_rng(3)
    weeks, levels = 100, np.array([0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975])
    week = np.repeat(np.arange(weeks), 8)
    location = np.tile(np.repeat(["A", "B"], 4), weeks)
    center = 10.0 + rng.normal(size=8 * weeks)
    quantiles = Quantiles(levels, center[:, None] + norm.ppf(levels))

    def draw(rng: np.random.Generator, wrong: bool) -> Array:
        noise = np.sqrt(0.3) * rng.normal(size=weeks)[week] + np.sqrt(0.7) * rng.normal(size=len(week))
        return center + np.where(wrong & (location == "B"), 1.7, 1.0) * noise

    planted = 0.8 - (2.0 * norm.cdf(norm.ppf(0.9) / 1.7) - 1.0)
    options = {"groups": {"location": location}, "clusters": week, "lenses": ["interval:0.8"]}
    return Job(quantiles, draw, planted, (0.12, 0.26), options)


def _survival() -> Job:
    """1 500 patients of five sites, of which one has more than twice the hazard that is predicted."""
    rng = np.random.default_rng(4)
    n, times = 1_500, np.arange(1.0, 11.0)
    site = rng.choice(["A", "B", "C", "D", "E"], n, p=[0.3, 0.25, 0.2, 0.15, 0.1])
    rate = 0.08 * np.exp(0.5 * rng.normal(size=n))
    curves = Survival(survival=np.exp(-rate[:, None] * times), times=times)

    def draw(rng: np.random.Generator, wrong: bool) -> tuple[Array, Array]:
        happens = rng.exponential(1.0 / (rate * np.where(wrong & (site == "E"), 2.2, 1.0)))
        ends = rng.exponential(20.0, n)
        return np.minimum(happens, ends), happens <= ends

    at_risk = -5.0 * rate[site == "E"]
    planted = float((np.exp(at_risk) - np.exp(2.2 * at_risk)).mean())
    return Job(curves, draw, planted, (0.1, 0.25), {"groups": {"site": site}, "lenses": ["until:5"]})


def _subjects() -> Job:
    """Confidence of a language model in 3 000 answers; it is 15 points too high in one subject."""
    rng = np.random.default_rng(5)
    n = 3_000
    p = rng.beta(6.0, 2.0, n) * 0.8 + 0.18
    subject = np.array([f"subject {k}" for k in rng.integers(1, 11, n)])

    def draw(rng: np.random.Generator, wrong: bool) -> Array:
        return (rng.random(n) < p - 0.15 * (wrong & (subject == "subject 7"))).astype(int)

    return Job(p, draw, 0.15, (0.1, 0.155), {"groups": {"subject": subject}})


def _classes() -> Job:
    """4 000 rows of 100 classes; one of them is predicted 4 points too often."""
    rng = np.random.default_rng(6)
    n, m = 4_000, 100
    p = rng.dirichlet(np.r_[10.0, np.full(m - 1, 90.0 / (m - 1))], n)
    truth = p.copy()
    truth[:, 0] *= 1.0 - 0.04 / p[:, 0].mean()
    truth[:, 1:] *= ((1.0 - truth[:, 0]) / (1.0 - p[:, 0]))[:, None]

    def draw(rng: np.random.Generator, wrong: bool) -> Array:
        of = truth if wrong else p
        return (rng.random((n, 1)) > of.cumsum(axis=1)[:, :-1]).sum(axis=1)

    return Job(p, draw, 0.04, (0.02, 0.043), {"lenses": "classwise", "statistics": "citl"})


JOBS: dict[str, Callable[[], Job]] = {
    "bank, one cell": _bank,
    "ensemble, one lead time": _ensemble,
    "hub, one location": _hub,
    "survival, one site": _survival,
    "language model, one subject": _subjects,
    "100 classes, one of them": _classes,
}
_made = cache(lambda name: JOBS[name]())  # in every process once


def audited(name: str, wrong: bool, limit: float | None, seed: np.random.SeedSequence) -> caltest.Audit:
    """Audit one data set of a job."""
    job, (outcomes, draws) = _made(name), seed.spawn(2)
    drawn = job.draw(np.random.default_rng(outcomes), wrong)
    options = {"n_resamples": RESAMPLES, "alpha": ALPHA, "rng": draws, "materiality": limit}
    return caltest.audit(job.predicted, drawn, **options, **job.options)


def _counts(name: str, wrong: bool, limit: float, seed: np.random.SeedSequence) -> dict[str, bool]:
    """Return what happens in one data set; of the gate's rule, by the numbers of the audit's table."""
    audit = audited(name, wrong, limit, seed)
    directed = [view for view in audit.views if view.low is not None and not view.low <= 0 <= view.high]
    beyond = audit.pvalue <= ALPHA and any(abs(view.error) > limit for view in directed)
    return {
        "found": audit.pvalue <= ALPHA,
        **{verdict: audit.verdict == verdict for verdict in VERDICTS},
        "stopped": audit.fails(),
        "stopped_by_material": audit.fails("material"),
        "found_beyond": beyond,
        "passed": beyond and not audit.fails(),
    }


def _parts() -> Iterator[Part]:
    number = 0
    for name in JOBS:
        job = _made(name)
        for wrong in (False, True):
            for which, limit in zip(("below", "just above"), job.limits, strict=True):
                model, planted = ("wrong", job.planted) if wrong else ("right", 0.0)
                error = {"model": model, "largest": round(float(planted), 4)}
                design = {"job": name, **error, "limit": limit, "limit_is": which}
                yield number, design, partial(_counts, name, wrong, limit)
                number += 1


def run(options: Options) -> None:
    """Count verdicts and what is stopped."""
    counted("gates", _parts(), options, SEED, datasets=50)
