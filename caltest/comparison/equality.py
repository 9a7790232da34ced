"""Standard errors of statistics, and tests of equal error of two models.

What is drawn again are rows or, where these depend on each other, whole clusters of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr

from caltest._arguments import Whole, choose, positive_integer
from caltest._parallel import ALONE, Workers
from caltest._sums import Array, Tile, blocks, multiply, sum_over_tiles
from caltest._visible import quoted
from caltest.clusters import Clusters
from caltest.data import Rows, Sample
from caltest.exceptions import InputError
from caltest.forms import Combined, Form, HasSigns, Signed, effective_clusters
from caltest.forms.base import Labels
from caltest.laws import Quantiles
from caltest.lenses import Lens, show
from caltest.pvalues import SMALLEST, TIE_TOLERANCE
from caltest.sampling import SignSampler, generator
from caltest.statistics import CKCE, Statistic
from caltest.testing import check_law

# ------------------------------------------------------------------ resampling


Kind: TypeAlias = Literal["subsampling", "bootstrap"]
Places: TypeAlias = NDArray[np.intp]

_RANGE = "give from 2 to 100,000"
N_RESAMPLES = Whole(2, 100_000, _RANGE, _RANGE)
_LARGEST_DEFAULT = 500  # rows, the source's
_FEWEST_DEFAULT = 20  # clusters, however many rows they have
_BATCH = 8  # resamples a task


class ModelStatistic(NamedTuple):
    """One model: what its statistic is on all rows, and what it takes to compute it on others.

    ``measure`` has the options that are rules fitted on all rows; ``view`` is what the lens shows;
    ``drawn`` are values on all rows for labels drawn from every model's predictions, (K, draws);
    ``bias`` is the mean of the value (of its size, if it has a sign) if the model is calibrated;
    ``gram`` is h_ij of a U-statistic of degree two, of rows or of clusters, else None; ``resolution``
    says how far two evaluations of one value may differ, by rounding; ``clusters`` is how many clusters
    carry the statistic in effect, infinite of independent rows.
    """

    name: str
    measure: Statistic
    view: Sample
    value: float
    drawn: Array
    bias: float
    gram: Tile | None
    resolution: float
    clusters: float


def clusters_of(rows: Rows) -> Clusters | None:
    """Return which rows belong together, numbered 0..G−1; None if all are independent."""
    return None if rows.clusters is None else Clusters.of(rows.clusters, rows.weights)


def valued(form: Form, labels: Labels, rows: Rows, workers: Workers) -> tuple[float, Signed | None]:
    """Return a statistic's value; of rows in clusters, also as one of signs: ones were observed.

    Means over pairs of rows are then over pairs of different clusters.
    """
    clusters = clusters_of(rows)
    if clusters is None or not isinstance(form, HasSigns):
        return form.value(labels, workers), None
    signed = form.signed(labels, clusters)
    return signed.observed, signed


def model_statistics(
    wholes: Mapping[str, Sample],
    measure: Statistic,
    lens: Lens | None,
    seed: int,
    workers: Workers,
    draws: Sequence[Any],
) -> list[ModelStatistic]:
    """See models through the lens, and compute their values: of the labels, and of all those drawn.

    Of quantile forecasts cells are drawn, which no other model can look at.
    """
    found, count = [], len(wholes)
    apart = any(isinstance(whole.rows.law, Quantiles) for whole in wholes.values())
    for number, (name, whole) in enumerate(wholes.items()):
        with about_model(name):
            shown = show(whole.rows, lens)
            view = shown.sample(whole.labels)
            if isinstance(measure, CKCE) and measure.groups is not None:
                raise InputError(
                    "groups belong to fixed rows, which a comparison draws anew; leave them out."
                )
            check_law(measure, view.rows)
            fitted = measure.fitted(view.rows)
            form, clusters, effective = fitted.given(view.rows), clusters_of(view.rows), np.inf
            if isinstance(form, Combined):
                form = form.standardised(workers)
            if clusters is not None:
                if not isinstance(form, HasSigns):
                    raise InputError(
                        f"no form of {measure.name!r} is known that is valid for rows in clusters; "
                        "compare by another statistic (any but 'cox', 'ece_sweep', 'mcb_brier', "
                        "'mcb_log' and functions of your own), or keep one row per cluster."
                    )
                effective = effective_clusters(measure.name, form, clusters, view.labels)
            value, signed = valued(form, view.labels, view.rows, workers)
            checked_value(fitted, value)
            drawn = np.full((count, LABEL_DRAWS), np.nan)
            whose = [number] if apart else [*range(count)]
            outcomes = shown.seen(np.concatenate([draws[k] for k in whose]))
            drawn[whose] = form.of_labels(outcomes, workers).reshape(-1, LABEL_DRAWS)
            gram, own = form.gram(view.labels) if form.is_u_statistic else None, drawn[number]
            if gram is not None:  # U-statistics have no bias
                gram = gram if clusters is None else gram_of_clusters(gram, clusters, value)
                own = np.zeros(1)
            elif clusters is not None and signed is not None:
                own = signed.of_labels(SignSampler(clusters.count, seed).draw(0, LABEL_DRAWS))
        own = np.abs(own) if measure.alternatives[0] == "two-sided" else own
        bias = max(float(np.mean(own)), 0.0)  # below 0 by chance
        found.append(
            ModelStatistic(name, fitted, view, value, drawn, bias, gram, form.resolution, effective)
        )
    return found


@dataclass(frozen=True, eq=False)
class Resampling:
    """How rows, or clusters, are drawn: resample b of ``size`` from the seed's stream number b."""

    kind: Kind
    size: int
    n_resamples: int
    seed: int
    clusters: Clusters | None = None

    @classmethod
    def checked(
        cls,
        kind: Kind,
        size: int | None,
        n_resamples: int,
        n: int,
        seed: int,
        clusters: Clusters | None = None,
    ) -> Resampling:
        """Fill in the default size, or raise if the options do not fit n rows, or their clusters."""
        choose("resampling", kind, {"subsampling": True, "bootstrap": True})
        resamples = int(n_resamples)
        count, what = (n, "rows") if clusters is None else (clusters.count, "clusters")
        if kind == "bootstrap":
            if size is not None:
                raise InputError(
                    f"size is for subsampling, a bootstrap draws all {what}; leave it out."
                )
            return cls(kind, count, resamples, seed, clusters)
        usual = _LARGEST_DEFAULT
        if clusters is not None:  # about as many rows
            usual = max(_FEWEST_DEFAULT, -(-_LARGEST_DEFAULT * count // n))
        drawn = min(usual, count // 2) if size is None else positive_integer("size", size)
        if not 2 <= drawn < count:
            raise InputError(
                f"size is {size}; of {count} {what}, a subsample has from 2 to {count - 1}."
            )
        return cls(kind, drawn, resamples, seed, clusters)

    def draw(self, number: int, n: int) -> Places:
        """Return the rows of one resample, in increasing order."""
        stream = generator(self.seed, number)
        count = n if self.clusters is None else self.clusters.count
        while True:
            if self.kind == "bootstrap":
                drawn = np.sort(stream.integers(count, size=count))
            else:
                drawn = np.sort(stream.choice(count, size=self.size, replace=False, shuffle=False))
            if self.clusters is None:
                return drawn
            if drawn[0] != drawn[-1]:  # nothing is known of one cluster alone
                return np.sort(np.concatenate([self._members[cluster] for cluster in drawn]))

    @cached_property
    def _members(self) -> list[Places]:
        """The rows of every cluster."""
        assert self.clusters is not None
        codes = self.clusters.codes
        ends = np.cumsum(np.bincount(codes))[:-1]
        return np.split(np.argsort(codes, kind="stable"), ends)

    def values(self, candidates: Sequence[ModelStatistic], workers: Workers) -> Array:
        """Return the statistic of every model in every resample, (B, K)."""
        sent = tuple(c._replace(gram=None, drawn=np.empty(0)) for c in candidates)
        tasks = [(batch.start, batch.stop) for batch in blocks(self.n_resamples, _BATCH)]
        return np.concatenate(list(workers.map(partial(_evaluate, self, sent), tasks, "resamples")))

    def standard_errors(self, values: Array, n: int, growth: float) -> StandardErrors:
        """Estimate standard errors on n rows, or clusters, from values in resamples, (B, K).

        The variance of a mean of b rows drawn without replacement from n is (1 − b/n) σ²/b, and σ²/n
        is wanted. A statistic that grows as n to the power a is (n/b)ᵃ larger on all rows. Where a
        value is not finite, its errors are infinite.
        """
        share = self.size / n
        factor = 1.0 if self.kind == "bootstrap" else share ** (0.5 - growth) / np.sqrt(1.0 - share)
        with np.errstate(invalid="ignore"):  # inf − inf
            apart = np.array([_spread(values - column[:, None]) for column in values.T])
            together = np.array([_spread(values + column[:, None]) for column in values.T])
        return StandardErrors(factor * _spread(values), factor * apart, factor * together)


def _spread(columns: Array) -> Array:
    """Return standard deviations; infinite where a value is not finite."""
    usable = np.isfinite(columns).all(axis=0)
    known = np.where(usable, columns, 0.0)
    spread = np.std(known - known[0], axis=0, ddof=1)  # exactly 0 where nothing varies
    return np.where(usable, spread, np.inf)


def _evaluate(plan: Resampling, candidates: Sequence[ModelStatistic], start: int, stop: int) -> Array:
    found, kind = [], "subsample" if plan.kind == "subsampling" else "bootstrap sample"
    what = "rows" if plan.clusters is None else "clusters"
    for number in range(start, stop):
        rows = plan.draw(number, len(candidates[0].view.labels))
        for name, measure, view, *_ in candidates:
            with about_model(name, f"on a {kind} of {plan.size} {what}, "):
                some = view.rows.take(rows)
                value, _ = valued(measure.given(some), view.labels[rows], some, ALONE)
                found.append(checked_value(measure, value))
    return np.reshape(found, (stop - start, len(candidates)))


def checked_value(measure: Statistic, value: float) -> float:
    """Return a value that is a number, or raise."""
    if np.isnan(value):
        raise InputError(f"the statistic {measure.name!r} is not a number.")
    if value == -np.inf:
        raise InputError(f"the statistic {measure.name!r} is −∞, which is not a size of an error.")
    return value


@contextmanager
def about_model(name: str, where: str = "") -> Iterator[None]:
    """Let an error name the model, with its own facts in it."""
    try:
        yield
    except InputError as error:
        raise InputError(
            "model {model}: {where}{error}", model=quoted(name), where=where, error=error.phrase
        ) from error


def orders(keys: Array, ranking: Sequence[int], resolution: float, confidence: float) -> dict[str, Any]:
    """Count how often (B, K) keys, small ones best, are ordered in a way: fields of a comparison."""
    below = signs(keys[:, :, None], keys[:, None, :], resolution)  # 1 where i is below j
    resamples = len(keys)
    pairs = 0.5 + 0.5 * below.sum(axis=0, dtype=np.int64) / resamples
    leads = (below >= 0).all(axis=2)
    first = (leads / leads.sum(axis=1, keepdims=True)).mean(axis=0)
    whole = float((below[:, ranking[:-1], ranking[1:]] >= 0).all(axis=1).mean())
    return {
        "first_proportions": first,
        "first_intervals": _wilson(first, resamples, confidence),
        "pair_proportions": pairs,
        "pair_intervals": _wilson(pairs, resamples, confidence),
        "order_proportion": whole,
        "order_interval": tuple(_wilson(np.array(whole), resamples, confidence).tolist()),
    }


def signs(one: Array, other: Array, resolution: float) -> NDArray[np.int8]:
    """Return 1 where ``one`` is smaller, −1 where it is larger, 0 where only rounding differs."""
    size = np.maximum(np.abs(one), np.abs(other))
    finite = np.isfinite(size)
    with np.errstate(invalid="ignore"):  # inf − inf
        near = np.abs(one - other) <= TIE_TOLERANCE * np.where(finite, size, 0.0) + resolution
    return np.where(near | (one == other), 0, np.where(one < other, 1, -1)).astype(np.int8)


def _wilson(proportions: Array, trials: int, confidence: float) -> Array:
    """Return Wilson's intervals of proportions, their ends along a new last axis."""
    from statsmodels.stats.proportion import proportion_confint  # slow to import

    ends = proportion_confint(trials * proportions, trials, 1.0 - confidence, method="wilson")
    return np.clip(np.stack([np.asarray(end, dtype=np.float64) for end in ends], axis=-1), 0.0, 1.0)


# ------------------------------------------------------------------ standard errors


FEWEST_ROWS = 4  # Σ h_ij h_kl over four different rows is needed


class StandardErrors(NamedTuple):
    """Standard errors of K numbers, (K,), and of their differences and sums, (K, K)."""

    values: Array
    differences: Array
    sums: Array


def standard_errors(tiles: Sequence[Tile], n: int, workers: Workers = ALONE) -> StandardErrors:
    """Return the standard errors of U-statistics on the same n rows, in O(K n² (m + K)) time.

    ``tiles`` are h of every statistic, (n, n), n ≥ 4; the diagonal is not used.

    Source: Hoeffding, "A class of statistics with asymptotically normal distribution", Annals of
    Mathematical Statistics 19 (1948).
    """
    off_diagonal = [partial(_off_diagonal, tile) for tile in tiles]
    ones = np.ones((n, 1))
    rows = np.hstack([multiply(tile, ones, workers) for tile in off_diagonal]).T
    squares = sum_over_tiles(partial(_products, off_diagonal), n, workers)
    values = np.array([_error(row, q) for row, q in zip(rows, np.diagonal(squares), strict=True)])
    differences, sums = np.zeros((len(tiles), len(tiles))), np.diag(2.0 * values)
    for a, b in combinations(range(len(tiles)), 2):
        for found, sign in ((differences, -1.0), (sums, 1.0)):
            square = squares[a, a] + squares[b, b] + 2.0 * sign * squares[a, b]
            found[a, b] = found[b, a] = _error(rows[a] + sign * rows[b], max(square, 0.0))
    return StandardErrors(values, differences, sums)


def gram_of_clusters(tile: Tile, clusters: Clusters, value: float) -> Tile:
    """Return h (G, G) of a mean over pairs of rows in different clusters, by pairs of clusters.

    The mean is Σ H_gh / Σ n_g n_h, a ratio if clusters differ in size; its error is that of the mean
    of H_gh − value · n_g n_h, in units of the mean n_g n_h.
    """
    sizes = np.bincount(clusters.codes).astype(np.float64)
    pairs = float(sizes.sum()) ** 2 - float(sizes @ sizes)
    found = clusters.pairs(tile)
    found -= value * sizes[:, None] * sizes
    found *= clusters.count * (clusters.count - 1.0) / pairs
    return partial(_part_of, found)


def _part_of(matrix: Array, rows: slice, columns: slice) -> Array:
    return matrix[rows, columns].copy()


def _off_diagonal(tile: Tile, rows: slice, columns: slice) -> Array:
    block = tile(rows, columns)
    if rows == columns:
        np.fill_diagonal(block, 0.0)
    return block


def _products(tiles: Sequence[Tile], rows: slice, columns: slice) -> Array:
    """Return the (K, K) sums of products of one tile's entries."""
    entries = np.stack([tile(rows, columns).ravel() for tile in tiles])
    return np.asarray(entries @ entries.T)


def _error(row_sums: Array, squares: float) -> float:
    """Return the standard error of a U-statistic from its r_i and Q."""
    n, total = len(row_sums), float(row_sums.sum())
    pairs, chained = n * (n - 1), float(row_sums @ row_sums) - squares  # Σ h_ij h_ik, j ≠ k
    apart = total**2 - 4.0 * chained - 2.0 * squares  # Σ h_ij h_kl, four different rows
    squared_mean = apart / (pairs * (n - 2) * (n - 3))
    first = max(chained / (pairs * (n - 2)) - squared_mean, 0.0)
    second = max(squares / pairs - squared_mean, 0.0)
    return float(np.sqrt((4.0 * (n - 2) * first + 2.0 * second) / pairs))


# ------------------------------------------------------------------ equality
#
# Of errors with a sign, |θ_i| = |θ_j| says that θ_i = θ_j or that θ_i = −θ_j. Both must be rejected
# (an intersection-union test): the p-value is the larger one of those of S_i − S_j and of S_i + S_j.
# The size |S_i| itself is half-normal where θ_i is 0, so that |S_i| − |S_j| has no normal law.
#
# What happens seldom leaves no trace in a standard error that is estimated from the rows, if it did
# not happen. A standard error is therefore at least what it would be if model i were calibrated, and
# if model j were. Rows of predictions that are rare, and absent, leave no trace that could be allowed
# for: where the errors are equal only because of them, no test of the rows can know.
#
# Of rows in clusters, standard errors are those of sums over clusters, which may depend inside in any
# way. Labels drawn row by row bound them from below as before. What a biased statistic is on average if
# the model is calibrated is its mean over the signs of clusters: that has the dependence in it, and
# where the model is wrong it is larger rather than smaller.

#: Draws of labels from the predictions of each model.
LABEL_DRAWS = 200


def equality(
    candidates: Sequence[ModelStatistic],
    errors: StandardErrors,
    degrees: float,
    signed: bool,
    resolution: float,
) -> tuple[Array, Array, Array]:
    """Test every pair, by t with so many degrees of freedom; equal errors have difference 0 and p 1.

    Return the difference of the errors' sizes, its standard error, and a p-value, (K, K) each.

    Without a sign, a model's bias is at most what it is if calibrated: a bin that is far off has none.
    Of equal errors, the difference of i's and j's values therefore lies between −bias j and bias i on
    average, and only what is outside of that interval counts. With a sign there is none if calibrated.
    """
    values = np.array([each.value for each in candidates])
    keys = np.abs(values) if signed else values
    drawn = np.stack([each.drawn for each in candidates])
    tied = signs(keys[:, None], keys, resolution) == 0
    with np.errstate(invalid="ignore"):  # inf − inf
        differences = np.where(tied, 0.0, keys[:, None] - keys)
        apart = np.maximum(errors.differences, _if_calibrated(drawn, -1.0))
        if not signed:
            biases = np.array([each.bias for each in candidates])
            known = np.isfinite(biases)
            reach = np.where(known, biases, 0.0)
            beyond = differences - np.clip(differences, -reach, reach[:, None])
            hidden = tied | ~(known & known[:, None])
            return differences, apart, np.where(hidden, 1.0, _pvalues(beyond, apart, degrees))
        together = np.maximum(errors.sums, _if_calibrated(drawn, 1.0))
        pvalues = np.maximum(
            _pvalues(values[:, None] - values, apart, degrees),
            _pvalues(values[:, None] + values, together, degrees),
        )
    alike = np.signbit(values[:, None]) == np.signbit(values)
    return differences, np.where(alike, apart, together), np.where(tied, 1.0, pvalues)


def _if_calibrated(drawn: Array, sign: float) -> Array:
    """Return the standard deviation of S_i ± S_j, (K, K), if i or j is calibrated, the larger one.

    ``drawn`` is (K, K, draws): model i's value for labels from model k. Labels that another model calls
    impossible can make it infinite; those draws do not count.
    """
    count = len(drawn)
    found = np.zeros((count, count))
    for i in range(count):
        for j in range(i):
            for values in drawn[i, [i, j]] + sign * drawn[j, [i, j]]:
                finite = values[np.isfinite(values)]
                if len(finite) > 1:
                    spread = np.std(finite - finite[0], ddof=1)  # exactly 0 where nothing varies
                    found[i, j] = found[j, i] = max(found[i, j], spread)
    return found


def _pvalues(differences: Array, errors: Array, degrees: float) -> Array:
    """Return two-sided p-values; 1 where the standard error is unknown or nothing varies."""
    usable = np.isfinite(differences) & np.isfinite(errors) & (errors > 0.0)
    t = np.abs(np.where(usable, differences, 0.0)) / np.where(usable, errors, 1.0)
    return np.where(usable, np.clip(2.0 * stdtr(degrees, -t), SMALLEST, 1.0), 1.0)
