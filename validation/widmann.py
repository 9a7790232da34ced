"""Estimates and test errors of Widmann et al. 2019: Figures 1 and 2, Appendices J.2.3 and J.2.4.

``python -m validation widmann --full``: data sets of n = 250 rows, g ~ Dir(α), a label of Cat(β) with
probability π and of Cat(g) else, for α = 0.1 and 1, β = e₁ and uniform, π = 0, ½ and 1, and m = 2, 10,
100 and 1000 classes; kernel exp(−TV/ν)·I. π = 0 does not depend on β and is run once.

Methods have the paper's names: D bounds, A asymptotic approximations, C consistency resampling; b, uq
and ul the estimators; "median" (with the zero diagonal, as published) or "mean" the bandwidth. Ours:
"exact" by 199 draws of labels, and "moments", which draws nothing where a curve fits. None fits SKCE_ul
where few unlikely labels decide: with α = 0.1 in nine of ten data sets of two classes and in a few of a
thousand of ten, and always with 100 classes or more; 999 draws answer there, as the package has it. In
the authors' conventions:

* "square": Hoeffding's bound with t² whatever the sign of t (ours is 1 for t ≤ 0);
* "share": resampling p-values b/B (ours (1 + b)/(B + 1));
* "ddof0": the standard deviation of A_ul with ddof = 0 (ours 1).

Methods come in groups, by cost: "closed" forms and the estimates; "exact ECE", exact tests by the ECE;
"exact median" and "exact mean", tests by SKCE_uq that are exact, and by moments, with either bandwidth;
"bootstrap" tests with either; "consistency" resampling. ``--only group=exact`` runs exact lines alone.
A group has its own number of data sets, and the data set of a number is the same in every group, with
the same draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

import caltest
from caltest.binning import MedianVariance, Uniform
from caltest.kernels import Exponential
from caltest.nulls import Bound, NormalApproximation
from caltest.results import CalibrationResult
from caltest.simulation import Simulated
from caltest.statistics import ECE, BiasedSKCE, LinearSKCE, UnbiasedSKCE
from validation._cells import Options, Row, Table, seeds, spread
from validation.generative import mean_tv_dirichlet, mixture

Array = NDArray[np.float64]
Found = dict[str, float]

SEED = 20_190_420
ROWS = 250
DRAWS = 199  # of the exact null and of consistency resampling
BOOTSTRAPS = 1000  # as published
LEVELS = (0.01, 0.02, *np.round(np.arange(0.05, 1.0, 0.05), 2).tolist())
QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
CELL = ("group", "alpha", "beta", "m", "pi")
BINNINGS = {"uniform": Uniform(10), "dynamic": MedianVariance(5)}


@dataclass(frozen=True)
class Design:
    """A generative model."""

    alpha: float
    beta: str
    m: int
    pi: float

    @property
    def published(self) -> bool:
        """Whether test errors are published in numbers."""
        return self.alpha == 0.1 and self.m <= 10

    @property
    def columns(self) -> Row:
        """Its parameters as columns."""
        return {"alpha": self.alpha, "beta": self.beta, "m": self.m, "pi": self.pi}

    def parameters(self) -> tuple[Array, Array]:
        """Return α and β as vectors of m classes."""
        beta = np.eye(self.m)[0] if self.beta == "e1" else np.full(self.m, 1.0 / self.m)
        return np.full(self.m, self.alpha), beta

    def draw(self, seed: np.random.SeedSequence) -> Simulated:
        """Draw a data set."""
        alpha, beta = self.parameters()
        return mixture(ROWS, alpha, pi=self.pi, beta=beta, rng=seed)

    def kernel(self, bandwidth: str) -> Exponential:
        """Return the kernel."""
        return Exponential("median_full") if bandwidth == "median" else Exponential(_mean(self))


@cache
def _mean(design: Design) -> float:
    return float(mean_tv_dirichlet(design.parameters()[0]))


DESIGNS = tuple(
    Design(alpha, beta, m, pi)
    for m in (2, 10, 100, 1000)
    for alpha in (0.1, 1.0)
    for pi in (0.0, 0.5, 1.0)
    for beta in (("any",) if pi == 0.0 else ("uniform", "e1"))
)
MODELS = {
    "M1": Design(0.1, "any", 10, 0.0),
    "M2": Design(0.1, "e1", 10, 0.5),
    "M3": Design(0.1, "uniform", 10, 1.0),
}


# ------------------------------------------------------------------ one data set


def closed(design: Design, seed: np.random.SeedSequence) -> Found:
    """Estimate everything; bounds, normal approximations and moments of SKCE_ul."""
    drawn = design.draw(seed)
    found = {}
    for name, binning in BINNINGS.items():
        estimate = caltest.estimate(drawn.probs, drawn.labels, ECE(binning))
        found[f"estimate ECE_{name}"] = estimate
    (draws,) = seed.spawn(1)
    for bandwidth in ("median", "mean"):
        found |= _closed(drawn, design.kernel(bandwidth), bandwidth, draws)
    return found


def _closed(
    drawn: Simulated, kernel: Exponential, bandwidth: str, draws: np.random.SeedSequence
) -> Found:
    def ask(statistic: Any, null: Any) -> CalibrationResult:
        return caltest.test(drawn.probs, drawn.labels, statistic, null=null, rng=draws)

    b, uq, ul = BiasedSKCE(kernel), UnbiasedSKCE(kernel), LinearSKCE(kernel, pairing="rows")
    bounds = {"b": ask(b, Bound()), "uq": ask(uq, Bound()), "ul": ask(ul, Bound())}
    found = {f"estimate SKCE{key}_{bandwidth}": each.statistic for key, each in bounds.items()}
    found |= {f"D_{key} {bandwidth}": each.pvalue for key, each in bounds.items()}
    for key in ("uq", "ul"):
        found[f"D_{key} {bandwidth} square"] = _squared(bounds[key].statistic)
    found[f"A_ul {bandwidth}"] = ask(ul, NormalApproximation()).pvalue
    found[f"A_ul {bandwidth} ddof0"] = ask(ul, NormalApproximation(ddof=0)).pvalue
    found[f"moments_ul {bandwidth}"] = ask(ul, "moments").pvalue
    return found


def _squared(estimate: float) -> float:
    """Return the published code's bound: t squared whatever its sign, and B = 2."""
    return float(np.exp(-(ROWS // 2) * estimate**2 / 8.0))


def exact(bandwidth: str, design: Design, seed: np.random.SeedSequence) -> Found:
    """Test by SKCE_uq: exact and moments; and SKCE_b by moments."""
    drawn, kernel = design.draw(seed), design.kernel(bandwidth)
    test = partial(caltest.test, drawn.probs, drawn.labels, rng=seed.spawn(1)[0])
    uq = UnbiasedSKCE(kernel)
    return {
        f"exact_uq {bandwidth}": test(uq, null="monte_carlo", n_resamples=DRAWS).pvalue,
        f"moments_uq {bandwidth}": test(uq, null="moments").pvalue,
        f"moments_b {bandwidth}": test(BiasedSKCE(kernel), null="moments").pvalue,
    }


def bootstrap(bandwidth: str, design: Design, seed: np.random.SeedSequence) -> Found:
    """Test by SKCE_uq and the bootstrap."""
    drawn, draws = design.draw(seed), seed.spawn(1)[0]
    uq = UnbiasedSKCE(design.kernel(bandwidth))
    test = partial(caltest.test, null="bootstrap", n_resamples=BOOTSTRAPS, rng=draws)
    found = test(drawn.probs, drawn.labels, uq)
    return {f"A_uq {bandwidth}": found.pvalue, f"A_uq {bandwidth} share": _share(found)}


def by_ece(null: str, design: Design, seed: np.random.SeedSequence) -> Found:
    """Test by the ECE: resampling of labels only, which is exact, or of rows and labels."""
    drawn, draws = design.draw(seed), seed.spawn(1)[0]
    test = partial(caltest.test, null=null, n_resamples=DRAWS, rng=draws)
    tests = {name: test(drawn.probs, drawn.labels, ECE(each)) for name, each in BINNINGS.items()}
    if null == "monte_carlo":
        return {f"exact_{name}": each.pvalue for name, each in tests.items()}
    found = {f"C_{name}": each.pvalue for name, each in tests.items()}
    return found | {f"C_{name} share": _share(each) for name, each in tests.items()}


def _share(result: CalibrationResult) -> float:
    if result.exceedances is None or result.n_resamples is None:
        raise TypeError("a p-value without resamples")
    return result.exceedances / result.n_resamples


@dataclass(frozen=True)
class Group:
    """Methods that are run together, data sets of a full run and of one block of it."""

    run: Callable[[Design, np.random.SeedSequence], Found]
    datasets: int
    block: int


GROUPS = {
    "closed": Group(closed, 10_000, 100),
    "exact ECE": Group(partial(by_ece, "monte_carlo"), 10_000, 100),
    "exact median": Group(partial(exact, "median"), 10_000, 25),
    "exact mean": Group(partial(exact, "mean"), 10_000, 25),
    "bootstrap median": Group(partial(bootstrap, "median"), 10_000, 25),
    "bootstrap mean": Group(partial(bootstrap, "mean"), 10_000, 25),
    "consistency": Group(partial(by_ece, "consistency"), 2000, 10),
}


# ------------------------------------------------------------------ many


@dataclass
class Cell:
    """A group of methods on a design, and how many data sets are done."""

    group: str
    number: int
    design: Design
    done: int

    @property
    def key(self) -> Row:
        """Its columns."""
        return {"group": self.group, **self.design.columns}

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.key.items())


def tables(options: Options) -> tuple[Table, Table]:
    """Open the tables of estimates and of rejections."""
    return (
        Table(options.results / "widmann_estimates.csv", (*CELL, "estimator", "seed")),
        Table(options.results / "widmann_errors.csv", (*CELL, "method", "seed")),
    )


def wanted(cell: Cell, options: Options) -> int:
    """Return how many data sets of a cell are wanted."""
    return options.datasets or (2 if options.quick else GROUPS[cell.group].datasets)


def cells(options: Options, errors: Table) -> Iterator[Cell]:
    """Yield the cells that are asked for and not done."""
    for group in GROUPS:
        for number, design in enumerate(DESIGNS):
            if options.quick and design not in MODELS.values():
                continue
            cell = Cell(group, number, design, 0)
            if options.wants(str(cell)):
                known = errors.where(**cell.key, seed=SEED)
                cell.done = int(known[0]["datasets"]) if known else 0
                if cell.done < wanted(cell, options):
                    yield cell


def run(options: Options) -> None:
    """Run blocks of data sets, that cell first of which the least is done; then draw."""
    estimates, errors = tables(options)
    todo = list(cells(options, errors))
    with joblib.Parallel(n_jobs=options.jobs) as parallel:
        while todo and not options.over:
            cell = min(todo, key=_urgency)
            end = wanted(cell, options)
            last = min(cell.done + GROUPS[cell.group].block, end)
            task = partial(GROUPS[cell.group].run, cell.design)
            found = spread(task, seeds(SEED, (cell.number,), cell.done, last), parallel)
            _add(found, cell, estimates, errors)
            todo = [each for each in todo if each.done < wanted(each, options)]
            print(f"{cell}: {cell.done} of {end}, {options.seconds:.0f} s", flush=True)
    if options.pictures:
        from validation import widmann_compared, widmann_figures

        widmann_compared.run(options)
        widmann_figures.run(options)


def _urgency(cell: Cell) -> float:
    """Return how much is done; of designs with published numbers, five times as much is wanted."""
    share = cell.done / GROUPS[cell.group].datasets
    return share / 5.0 if cell.design.published and share < 1.0 else share


def _add(found: list[Found], cell: Cell, estimates: Table, errors: Table) -> None:
    """Add a block to both tables; that of rejections, which knows how many are done, last."""
    columns = {name: np.array([each[name] for each in found]) for name in found[0]}
    common = {"seed": SEED, "caltest": caltest.__version__}
    rows = [
        _pooled(name.removeprefix("estimate "), values, cell, estimates, common)
        for name, values in columns.items()
        if name.startswith("estimate ")
    ]
    if rows:
        estimates.put(rows)
    done = cell.done
    cell.done += len(found)
    counted = []
    for name, values in columns.items():
        if name.startswith("estimate "):
            continue
        known = errors.get(**cell.key, method=name, seed=SEED)
        before = [int(known[f"p<={level:g}"]) if known and done else 0 for level in LEVELS]
        now = [int(np.count_nonzero(values <= level)) for level in LEVELS]
        counts = {f"p<={x:g}": a + b for x, a, b in zip(LEVELS, before, now, strict=True)}
        counted.append({**cell.key, "method": name, "datasets": cell.done, **common, **counts})
    errors.put(counted)


def _pooled(name: str, values: Array, cell: Cell, table: Table, common: Row) -> Row:
    """Pool mean and variance exactly, quantiles by their mean over the blocks."""
    known = table.get(**cell.key, estimator=name, seed=SEED)
    new = np.array([values.mean(), values.var(), *np.quantile(values, QUANTILES)])
    names = ("mean", "variance", *(f"q{q:g}" for q in QUANTILES))
    n, done = len(values), cell.done
    if known and int(known["datasets"]) > done:  # a run was stopped between the two tables
        return dict(known)
    if known and done:
        old = np.array([float(known[key]) for key in names])
        pooled = (done * old + n * new) / (done + n)
        pooled[1] += done * n / (done + n) ** 2 * (old[0] - new[0]) ** 2
        new = pooled
    numbers = {key: f"{value:.9g}" for key, value in zip(names, new, strict=True)}
    return {**cell.key, "estimator": name, "datasets": done + n, **common, **numbers}
