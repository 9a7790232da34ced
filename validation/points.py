"""Point forecasts: level by what is known of outcomes, intervals, power, another package.

``python -m validation points``; a part of it: ``--only points_sizes``, ``--only points_power``, …

*Sizes* (``points_sizes.csv``): forecasts that are right, of many kinds of outcomes. ``known`` is what
the test is told: "nothing", "low" (the lower end), "ends" (both), "symmetric". In how many data sets p
is at most 5% and 1%, by statistic; ``bias_low`` is a test of one side, that forecasts are too low.
``exact`` adds up how many answers are called exact. An empty cell is that of "nothing": signs.

*Premises* (``points_premises.csv``): the same, where outcomes that hardly ever occur carry the mean, so
that right forecasts look too high. Tests without both ends suppose that this is not so.

*Intervals* (``points_intervals.csv``): audits of forecasts that are too high by ``error``. In how many
data sets the audit rejects at 5%, all of its intervals hold at once (``all_hold``, 95%), that of all
rows holds by itself (``own_holds``, 90%: 5% a side), and there is no audit, since too few rows carry
the errors (``refused``; nothing is wrong then).

*Lengths* (``points_lengths.csv``): of the two halves of an interval of 95%, as multiples of that by t
with the true standard deviation, medians over data sets.

*Power* (``points_power.csv``): forecasts that are wrong, by so many ``standard_errors`` of a mean. In
how many data sets p is at most 5%, beside a t test of the mean; "more" is known of symmetry of the
normal law, of the lower end of the gamma law, and of both ends elsewhere.

*Others* (``points_others.csv``): the bias table of model-diagnostics, where it is installed. In how
many data sets its mean equals ours and its p-value that of a t test, it rejects, it rejects any of ten
groups, our test rejects, and our audit by these groups does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student
from scipy.stats import ttest_1samp

import caltest
from caltest.predictive import Point
from caltest.statistics.points import Bets
from validation._cells import Options, Part, Table, counted, seeds
from validation.survival import have

SEED = 20_261_129
ALPHA = 0.05
RESAMPLES = 199
STATISTICS = ("bias", "cumulative", "slope", "kernel")

Array: TypeAlias = NDArray[np.float64]
Rng: TypeAlias = np.random.Generator
Seed: TypeAlias = np.random.SeedSequence

# ------------------------------------------------------------------ designs


@dataclass(frozen=True)
class Case:
    """Forecasts that are right, and outcomes."""

    x: Array
    y: Array
    low: float | None = None
    high: float | None = None
    symmetric: bool = False
    functional: str = "mean"
    clusters: NDArray[np.intp] | None = None
    weights: Array | None = None

    def law(self, known: str, error: float | Array = 0.0) -> Point:
        """Return the forecasts, wrong by an error, and what is known of outcomes."""
        low = None if known in ("nothing", "symmetric") else self.low
        high = self.high if known == "ends" else None
        more: dict[str, Any] = {"low": low, "high": high, "symmetric": known == "symmetric"}
        return Point(self.x + error, self.functional, **more)

    @property
    def rows(self) -> dict[str, Any]:
        """What is said of rows."""
        return {"clusters": self.clusters, "weights": self.weights}


def events(chances: Array, rng: Rng, places: Array | None = None) -> Array:
    """Draw events."""
    return 1.0 * ((rng.random(len(chances)) if places is None else places) < chances)


def normal(n: int, rng: Rng) -> Case:
    """Draw outcomes with normal errors."""
    x = rng.normal(size=n)
    return Case(x, x + rng.normal(size=n), symmetric=True)


def t4(n: int, rng: Rng) -> Case:
    """Draw outcomes with errors of t with 4 degrees of freedom."""
    x = rng.normal(size=n)
    return Case(x, x + rng.standard_t(4, n), symmetric=True)


def unequal(n: int, rng: Rng) -> Case:
    """Draw normal errors, of a scale that grows with the forecast."""
    x = rng.normal(size=n)
    return Case(x, x + np.exp(x) * rng.normal(size=n), symmetric=True)


def gamma(n: int, rng: Rng) -> Case:
    """Draw amounts of a gamma law with shape 2."""
    x = rng.uniform(1.0, 5.0, n)
    return Case(x, x * rng.gamma(2.0, 0.5, n), low=0.0)


def zeros(n: int, rng: Rng) -> Case:
    """Draw amounts, 0 in 80% of the rows."""
    x = rng.uniform(1.0, 5.0, n)
    return Case(x, events(np.full(n, 0.2), rng) * x * rng.gamma(2.0, 2.5, n), low=0.0)


def counts(n: int, rng: Rng) -> Case:
    """Draw counts."""
    x = rng.gamma(2.0, 0.5, n)
    return Case(x, 1.0 * rng.poisson(x), low=0.0)


def exposures(n: int, rng: Rng) -> Case:
    """Draw rates of claims, weighted by exposures that vary 1 000-fold."""
    x, exposure = rng.uniform(0.5, 2.0, n), 10.0 ** rng.uniform(-1.5, 1.5, n)
    return Case(x, rng.poisson(x * exposure) / exposure, low=0.0, weights=exposure)


def shaped_u(n: int, rng: Rng) -> Case:
    """Draw shares near 0 and 1."""
    x = rng.uniform(0.2, 0.8, n)
    return Case(x, rng.beta(0.6 * x, 0.6 * (1.0 - x)), low=0.0, high=1.0)


def two_means(n: int, rng: Rng) -> Case:
    """Draw events of a probability of .6, then .4; all forecasts are .5."""
    y = events(np.where(np.arange(n) < n / 2, 0.6, 0.4), rng)
    return Case(np.full(n, 0.5), y, low=0.0, high=1.0)


def rare(n: int, rng: Rng) -> Case:
    """Draw rare events."""
    x = rng.beta(1.0, 30.0, n)
    return Case(x, events(x, rng), low=0.0, high=1.0)


def at_ends(n: int, rng: Rng) -> Case:
    """Draw shares; half of the forecasts are 0 or 1, and right."""
    x = np.where(rng.random(n) < 0.5, rng.integers(2, size=n), rng.uniform(0.05, 0.95, n))
    inside = x.clip(0.05, 0.95)
    y = np.where(x == inside, rng.beta(2.0 * inside, 2.0 * (1.0 - inside)), x)
    return Case(x, y, low=0.0, high=1.0)


def weighted(n: int, rng: Rng) -> Case:
    """Draw shares near 0 and 1, with weights that vary 1 000-fold."""
    return replace(shaped_u(n, rng), weights=10.0 ** rng.uniform(-1.5, 1.5, n))


def of_five(n: int, rng: Rng) -> Case:
    """Draw clusters of five rows with one error."""
    x, codes = rng.normal(size=n), np.arange(n) // 5
    y = x + rng.normal(size=n)[codes] + 0.3 * rng.normal(size=n)
    return Case(x, y, clusters=codes)


def events_of_five(n: int, rng: Rng) -> Case:
    """Draw events that five rows share."""
    x, codes = rng.uniform(0.1, 0.9, n), np.arange(n) // 5
    return Case(x, events(x, rng, rng.random(n)[codes]), low=0.0, high=1.0, clusters=codes)


def of_all_sizes(n: int, rng: Rng) -> Case:
    """Draw events that clusters share, whose sizes are lognormal."""
    x, sizes = rng.uniform(0.1, 0.9, n), rng.lognormal(0.0, 1.0, n)
    codes = np.searchsorted(np.cumsum(sizes), np.arange(n) * sizes.sum() / (4.0 * n))
    codes[-1] += codes[-1] == codes[0]  # two at least
    return Case(x, events(x, rng, rng.random(n)[codes]), low=0.0, high=1.0, clusters=codes)


def expectile(n: int, rng: Rng) -> Case:
    """Draw uniform outcomes; forecasts are expectiles at .9, √.9 / (√.9 + √.1) of the range."""
    most = rng.uniform(0.2, 1.0, n)
    return Case(0.75 * most, most * rng.random(n), low=0.0, high=1.0, functional="expectile:0.9")


DESIGNS: Mapping[str, Callable[[int, Rng], Case]] = {
    "normal": normal, "t4": t4, "heteroscedastic": unequal, "gamma": gamma, "zero-inflated": zeros,
    "counts": counts, "rates by exposure": exposures, "U-shaped": shaped_u, ".6 then .4": two_means,
    "rare events": rare, "forecasts at the ends": at_ends, "weights": weighted, "clusters": of_five,
    "clusters of events": events_of_five, "clusters of all sizes": of_all_sizes,
    "expectile .9": expectile,
}  # fmt: skip


def tail(n: int, rng: Rng) -> Case:
    """Draw outcomes of 0, and 1 in 10 000 of 100."""
    return Case(np.full(n, 0.01), 100.0 * events(np.full(n, 1e-4), rng), low=0.0)


def lognormal(n: int, rng: Rng) -> Case:
    """Draw lognormal amounts of mean 1, σ = 3."""
    return Case(np.ones(n), rng.lognormal(-4.5, 3.0, n), low=0.0)


def pareto(n: int, rng: Rng) -> Case:
    """Draw amounts of a Pareto law of index 1.2, mean 6."""
    return Case(np.full(n, 6.0), 1.0 + rng.pareto(1.2, n), low=0.0)


PREMISES = {"tail of 1 in 10000": tail, "lognormal, sigma 3": lognormal, "Pareto, index 1.2": pareto}


def known_of(case: Case) -> list[str]:
    """Return what can be known of outcomes."""
    ends = {"low": case.low is not None, "ends": case.high is not None, "symmetric": case.symmetric}
    return ["nothing", *(name for name, known in ends.items() if known)]


# ------------------------------------------------------------------ sizes


#: What a piece of knowledge changes; a cell that is empty is that of "nothing" in the same rows.
CHANGED = {
    "nothing": (*STATISTICS, "bias_low"), "symmetric": (*STATISTICS, "bias_low"),
    "low": ("bias", "bias_low"), "ends": ("bias", "cumulative", "slope", "bias_low"),
}  # fmt: skip


def rejected(make: Callable[[int, Rng], Case], rows: int, known: str, seed: Seed) -> dict[str, Any]:
    """Test forecasts that are right by every statistic."""
    drawn, draws = seed.spawn(2)
    case = make(rows, np.random.default_rng(drawn))
    given: dict[str, Any] = {**case.rows, "n_resamples": RESAMPLES, "rng": draws}
    law, found, exact = case.law(known), {}, 0
    for name in CHANGED[known]:
        side = "less" if name == "bias_low" else None
        test = caltest.test(law, case.y, f"point_{name.split('_')[0]}", **given, alternative=side)
        exact += test.guarantee == "exact"
        found |= {f"{name}_05": test.pvalue <= 0.05, f"{name}_01": test.pvalue <= 0.01}
    return {**found, "exact": exact}


def sizes(designs: Mapping[str, Any], first: int, *rows: int) -> Iterator[Part]:
    """Yield forecasts that are right."""
    for number, (name, make) in enumerate(designs.items()):
        every = product((100, 200, 500, 5000), known_of(make(20, np.random.default_rng(0))))
        for place, (count, known) in enumerate(every):
            if count in rows and not (known == "symmetric" and count > 100):  # signs, as without
                design = {"design": name, "rows": count, "known": known}
                yield first + 20 * number + place, design, partial(rejected, make, count, known)


# ------------------------------------------------------------------ intervals

#: Mean errors, none where forecasts would leave the ends.
ERRORS = {"U-shaped": 0.05, "rare events": 0.02, "weights": 0.05, "clusters of events": -0.05,
          ".6 then .4": 0.0, "forecasts at the ends": 0.0, "clusters of all sizes": 0.0,
          "normal": 0.2, "gamma": -0.2, "clusters": 0.2}  # fmt: skip


def held(name: str, rows: int, known: str, error: float, seed: Seed) -> dict[str, bool]:
    """Audit forecasts that are wrong by an error in every row."""
    drawn, draws = seed.spawn(2)
    case = DESIGNS[name](rows, np.random.default_rng(drawn))
    given: dict[str, Any] = {**case.rows, "n_resamples": RESAMPLES, "rng": draws}
    try:
        audit = caltest.audit(case.law(known, error), case.y, **given)
    except caltest.InputError:
        return {"refused": True, "rejected": False, "all_hold": True, "own_holds": True}
    every = [*audit.views, *(part for view in audit.views for part in view.parts)]
    whole = audit.views[0]
    return {
        "refused": False,
        "rejected": audit.rejected,
        "all_hold": all(each.low <= error <= each.high for each in every),
        "own_holds": bool(whole.own_low <= error <= whole.own_high),
    }


def intervals() -> Iterator[Part]:
    """Yield audits with intervals of mean errors."""
    cell = 2000
    for name, error in ERRORS.items():
        ends = DESIGNS[name](20, np.random.default_rng(0)).high is not None
        for rows, known in ((200, "ends"), (1000, "ends")) if ends else ((1000, "nothing"),):
            cell += 1
            design = {"design": name, "rows": rows, "known": known, "error": error}
            yield cell, design, partial(held, name, rows, known, error)


#: Outcomes between 0 and 1, as they are measured against their mean.
SPREADS: Mapping[str, Callable[[int, Rng], Array]] = {
    "events, one half": lambda n, rng: events(np.full(n, 0.5), rng),
    "events, 1 in 10": lambda n, rng: events(np.full(n, 0.1), rng),
    "events, 1 in 100": lambda n, rng: events(np.full(n, 0.01), rng),
    "uniform": lambda n, rng: rng.random(n),
    "standard deviation 10% of the range": lambda n, rng: rng.normal(0.5, 0.1, n).clip(0.0, 1.0),
    "standard deviation 3% of the range": lambda n, rng: rng.normal(0.5, 0.03, n).clip(0.0, 1.0),
}


def lengths(options: Options, datasets: int = 50) -> None:
    """Write how long intervals of a mean are, by what is between 0 and 1, and rows."""
    table = Table(options.results / "points_lengths.csv", ("outcomes", "rows", "seed"))
    for number, (name, rows) in enumerate(product(SPREADS, (100, 1000, 10_000))):
        what, key = (
            f"points_lengths: {name}, {rows}",
            {"outcomes": name, "rows": rows, "seed": SEED},
        )
        if options.over or not options.wants(what) or table.get(**key):
            continue
        found, count = [], 2 if options.quick else options.datasets or datasets
        deviation = float(SPREADS[name](10**6, np.random.default_rng(SEED)).std())
        for seed in seeds(SEED, (3000 + number,), 0, count):
            y, ones = SPREADS[name](rows, np.random.default_rng(seed)), np.ones(rows)
            half = student.isf(0.025, rows - 1) * deviation / rows**0.5
            below = y.mean() - Bets(y, ones).least_mean(0.0, 0.025)
            above = -Bets(y, ones).least_mean(-1.0, 0.025, -1) - y.mean()
            found.append((below / half, above / half))
        below, above = np.median(found, axis=0)
        known = {"caltest": caltest.__version__, "datasets": count}
        table.put([{**key, **known, "below_by_t": round(below, 3), "above_by_t": round(above, 3)}])
        print(f"{what}: {below:.2f} {above:.2f}, {options.seconds:.0f} s", flush=True)


# ------------------------------------------------------------------ power


def found_in(name: str, rows: int, kind: str, much: float, seed: Seed) -> dict[str, bool]:
    """Test forecasts that are wrong, by what is known of outcomes, and by t."""
    drawn, draws = seed.spawn(2)
    case = DESIGNS[name](rows, np.random.default_rng(drawn))
    apart = (case.x - case.x.mean()) / case.x.std()
    shape = {"too high": np.ones(rows), "too low": -np.ones(rows), "too far apart": apart,
             "waves": np.sin(3.0 * apart) * 2.0**0.5}[kind]  # fmt: skip
    error = much * float(np.std(case.y - case.x)) / rows**0.5 * shape
    low = None if case.low is None else case.low - max(error.max(), 0.0)
    high = None if case.high is None else case.high - min(error.min(), 0.0)
    case, found = replace(case, y=case.y - error, low=low, high=high), {}
    given: dict[str, Any] = {"n_resamples": RESAMPLES, "rng": draws}
    *_, most = known_of(case)
    every = [("nothing", "nothing", each) for each in STATISTICS]
    for known, word, each in (*every, *((most, "more", each) for each in STATISTICS[:3])):
        p = caltest.test(case.law(known), case.y, f"point_{each}", **given).pvalue
        found[f"{each}_{word}_known"] = p <= ALPHA
    return {"t_test": float(ttest_1samp(case.x - case.y, 0.0).pvalue) <= ALPHA, **found}


WRONG = (("too high", 3.0), ("too low", 3.0), ("too high", 5.0), ("too far apart", 5.0), ("waves", 7.0))


def power() -> Iterator[Part]:
    """Yield forecasts that are wrong."""
    cell = 4000
    every = product(("normal", "gamma", "U-shaped", "rare events"), (200, 1000), WRONG)
    for name, rows, (kind, much) in every:
        cell += 1
        design = {"design": name, "rows": rows, "error": kind, "standard_errors": much}
        yield cell, design, partial(found_in, name, rows, kind, much)


# ------------------------------------------------------------------ another package


def theirs(name: str, rows: int, error: float, seed: Seed) -> dict[str, bool]:
    """Compare with the bias table of model-diagnostics 1.5."""
    from model_diagnostics.calibration import compute_bias

    drawn, draws = seed.spawn(2)
    case = {**DESIGNS, **PREMISES}[name](rows, np.random.default_rng(drawn))
    law, given = case.law("nothing", error), {"n_resamples": RESAMPLES, "rng": draws}
    groups = np.arange(rows) % 10
    (row,) = compute_bias(case.y, law.values).to_dicts()
    parts = compute_bias(case.y, law.values, feature=groups.astype(str)).to_dicts()
    t = ttest_1samp(law.values - case.y, 0.0).pvalue if np.ptp(case.y) > 0.0 else row["p_value"]
    ours = caltest.test(law, case.y, "point_bias", **given)
    try:
        audit = caltest.audit(law, case.y, groups={"group": groups}, **given).rejected
    except caltest.InputError:  # few rows carry all errors
        audit = False
    return {
        "mean_equal": bool(np.isclose(row["bias_mean"], ours.statistic, rtol=1e-9, atol=1e-12)),
        "p_equal_t": bool(np.isclose(row["p_value"], t, rtol=1e-6, atol=1e-12)),
        "theirs": row["p_value"] <= ALPHA,
        "theirs_any_group": min(each["p_value"] for each in parts) <= ALPHA,
        "ours": ours.pvalue <= ALPHA,
        "ours_audit": audit,
    }


def others() -> Iterator[Part]:
    """Yield data that both see."""
    cell = 5000
    for name, rows, errors in (
        ("normal", 500, (0.0, 0.15)), ("gamma", 500, (0.0, 0.3)), ("zero-inflated", 500, (0.0,)),
        ("counts", 500, (0.0, 0.15)), *((name, 500, (0.0,)) for name in PREMISES),
    ):  # fmt: skip
        for error in errors:
            cell, design = cell + 1, {"design": name, "rows": rows, "error": error}
            yield cell, design, partial(theirs, name, rows, error)


def run(options: Options) -> None:
    """Count rejections and intervals; another package's where it is installed."""
    for rows, datasets in (((100, 200, 500), 1000), ((5000,), 200)):
        counted("points_sizes", sizes(DESIGNS, 1, *rows), options, SEED, datasets, 200)
        counted("points_premises", sizes(PREMISES, 1001, *rows), options, SEED, datasets, 200)
    counted("points_intervals", intervals(), options, SEED, 1000, 250)
    lengths(options)
    counted("points_power", power(), options, SEED, 200, 100)
    if have("model_diagnostics"):
        counted("points_others", others(), options, SEED, 200, 100)
