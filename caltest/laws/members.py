"""Members that the outcome claims to be exchangeable with, and the pool of both.

Given the pool of all L + 1 values, the outcome is equally likely to be any of them. An ensemble,
posterior draws or sampled paths claim only this, and it is exact for any L, with ties, for whole
numbers and for vectors. Anything that sorts or weights rows must be symmetric in the pool, or known
independently of the members.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import arguments, choose
from caltest._arguments import names as names_given
from caltest._sums import blocks
from caltest._visible import quoted
from caltest.alignment import column_names, in_order_of, rows_first
from caltest.exceptions import InputError
from caltest.laws.base import OutcomeSampler, Predictive, Shaped, finite_table
from caltest.laws.classes import Array, Outcomes, read_only

_ROWS = 2048  # pools held at a time
_ALIKE = 1e-12  # relative spread up to which values count as equal


@arguments(names=names_given)
class Members(Shaped):
    """Predictions that are members: ensembles, posterior or predictive draws, sampled paths.

    The claim tested is that the outcome is exchangeable with the members of its row: given all L + 1
    values, it is equally likely to be any of them. So p-values are exact for any number of members, for
    whole numbers and ties, and for vectors with any dependence. No density and no bandwidth is needed
    (:class:`Ensemble` claims a smoothed density instead).

    Parameters
    ----------
    values : array of shape (n, L) or (n, L, d)
        L ≥ 1 members per row: numbers, or vectors or paths of d entries. Numbers may be missing (NaN)
        in some rows; everything stays exact if which are missing depends neither on their values nor on
        the outcome.
    names : sequence of str, optional
        Names of the d entries, such as parameters or horizons. Default None: "0", "1", …. A name may
        have a comma inside brackets only, as in "beta[1,2]", because lenses separate two entries by one
        ("pair:mu,tau").

    Raises
    ------
    InputError
        If shapes do not fit, a row has no member, a value of a vector is missing, or names are not one
        for every entry or cannot be used in a lens.

    Notes
    -----
    Draws of a Markov chain that depend on each other are not exchangeable with the outcome: thin them.
    Whole rows must be independent, members and outcome together; otherwise say which rows belong
    together (``clusters``). Members that all rows share, such as one set of residuals around every
    forecast, are refused: give the distribution that they are from (:class:`Quantiles`,
    :class:`Distribution`).

    Groups and weights must not be functions of the members, such as whether their mean is high. The
    claim treats all L + 1 values alike. A function of the L members alone sorts rows by where the
    outcome is missing, and a calibrated ensemble then looks wrong. Functions of the whole pool, members
    and outcome alike, may be used, and so may what was known without either.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> rng = np.random.default_rng(0)
    >>> centre = rng.normal(size=(300, 1))
    >>> members = caltest.predictive.Members(centre + 0.7 * rng.normal(size=(300, 9)))
    >>> caltest.test(members, rng.normal(centre[:, 0]), "spread", rng=0).pvalue  # too narrow
    0.002
    """

    about = "members of ensembles"
    instead = "give the outcomes too, together with which alone members say where these lie"
    _by_row = ("values",)

    def __init__(self, values: object, names: Sequence[str] | None = None) -> None:
        shapes = "(n, L) numbers or (n, L, d) vectors, one row of members for every outcome"
        values = rows_first(values, "members")
        array = finite_table("members", values, shapes, ndim=(2, 3), fine=lambda x: ~np.isinf(x))
        vectors, missing = array.ndim == 3, np.isnan(array).reshape(len(array), -1)
        amiss = missing.any() and (missing.any(axis=1) if vectors else missing.all(axis=1))
        for row in np.flatnonzero(amiss)[:1]:
            found = "vectors among members of {row} have missing entries"
            found += "; give the same number to all rows."
            raise InputError(found if vectors else "{row} has no member; leave it out.", row=int(row))
        own = column_names(values) if vectors else ()
        if names is not None and len(own) == len(names) > 0:
            array = array[..., in_order_of([*map(str, names)], own, "members", "names holds")]
        names = names if names is not None else own or None
        if names is not None and array.ndim == 2:
            found = f"names holds {quoted(list(names))}, which are for the entries of vectors"
            raise InputError(f"{found}, and these members are plain numbers; leave names out.")
        self.values, self.given, self._shape = array, values, array[:, 0].shape
        self.names = self.entries = _names(names, self.dimension)

    @property
    def size(self) -> int:
        """Number of members L; the largest if rows differ."""
        return int(self.values.shape[1])

    def met(self, outcomes: object, weights: Array | None = None) -> tuple[Predictive, Outcomes]:
        """Return the law of outcomes given the pool, and the observed outcomes in it.

        Columns of outcomes that are named like the entries are put in their order.
        """
        checked = self.outcomes(outcomes)
        pool = np.concatenate([self.values, checked[:, None]], axis=1)
        if self.dimension is None:
            pool.sort(axis=1)
            return Pool(pool, self.values, self.given), checked
        order = np.lexsort(np.moveaxis(pool, 2, 0)[::-1], axis=1)
        pool = np.take_along_axis(pool, order[:, :, None], axis=1)
        return Pools(pool, self.values, self.given, self.names), order.argmax(axis=1)


def _names(names: Sequence[str] | None, dimension: int | None) -> tuple[str, ...]:
    count = 1 if dimension is None else dimension
    found = tuple(map(str, range(count) if names is None else names))
    if len(found) != count or len(set(found)) < count:
        do = "give each a name of its own"
        raise InputError(f"names holds {quoted(list(found))} for {count} entries; {do}.")
    for name in found:
        if halves(f"{name},") != (name, "") or re.search(r"/(\w+:[^/]*|distribution)$", name):
            raise InputError(
                f"names holds {quoted(name)}, which the lenses 'entry:NAME/interval:0.9' and "
                "'pair:NAME,NAME' could not tell from what they look at; leave out commas that are not "
                "in brackets, and what reads as a lens."
            )
    return found


def halves(pair: str) -> tuple[str, str]:
    """Return the two names of entries before and after the first comma outside of brackets."""
    depth = 0
    for k, sign in enumerate(pair):
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and depth == 0:
            return pair[:k].strip(), pair[k + 1 :].strip()
    return pair.strip(), ""


class _Exchangeable(Shaped):
    """Code shared by pools of numbers and of vectors."""

    about = "members of ensembles"
    instead = "use 'pit_ad' or 'crps', or caltest.predictive.Ensemble, which claims a smoothed density"

    def __init__(self, pool: Array, members: Any = None, given: Any = None, names: Any = ()) -> None:
        known = ~np.isnan(pool.reshape(*pool.shape[:2], -1)[..., 0])
        counts = np.array([known.shape[1]]) if known.all() else known.sum(axis=1)
        most = int(counts.max(initial=0))
        alike = bool((counts == most).all())
        self.pool = np.ascontiguousarray(pool[:, :most])  #: The order does not reveal the outcome.
        #: Pool sizes N = L + 1 and a mask of the values that are there; NaN is last if rows differ.
        self.counts: Any = most if alike else counts
        self.known: Any = alike or known[:, :most]
        self.members, self.given, self.names = members, given, names
        self._shape = pool[:, 0].shape

    def take(self, rows: Any) -> Self:
        """Return the pools of some rows."""
        return type(self)(self.pool[rows], names=self.names)

    @property
    def size(self) -> int:
        """Pool size N = L + 1; the median if rows differ."""
        return int(np.sort(np.ravel(self.counts))[np.size(self.counts) // 2])

    @property
    def stretch(self) -> Any:
        """(L + 1)/L: factor from deviations in pools, which hold the outcome, to errors of members."""
        return self.counts / (self.counts - 1.0)


class Pool(_Exchangeable):
    """The law of outcomes that are numbers, given their pools: each of N values has probability 1/N.

    N may differ from row to row.
    """

    def cdf(self, outcomes: Array) -> tuple[Array, Array]:
        """Return the shares of the pool below, and at or below, the outcomes."""
        from caltest.loops import rows as _loops

        flat = np.ascontiguousarray(outcomes, dtype=np.float64).reshape(-1, self.n_samples)
        below, at = np.empty(flat.shape), np.empty(flat.shape)
        counts = np.broadcast_to(self.counts, self.n_samples)
        _loops.ranks_in_pools(self.pool, np.ascontiguousarray(counts), flat, below, at)
        return below.reshape(outcomes.shape), at.reshape(outcomes.shape)

    def quantile(self, levels: Array) -> Array:
        """Return the smallest values of the pools that have the levels (…, n) at or below them."""
        places = np.ceil(levels * self.counts - 1e-9).astype(np.intp) - 1
        return np.asarray(self.pool[np.arange(self.n_samples), places.clip(0, self.counts - 1)])

    def central(self, level: float) -> tuple[Array, Array]:
        """Return the ends of central intervals, with equally many values of the pool on each side."""
        aside, rows = np.intp(0.5 * (1.0 - level) * self.counts + 1e-9), np.arange(self.n_samples)
        return self.pool[rows, aside], self.pool[rows, self.counts - 1 - aside]

    def draw(self, rng: np.random.Generator, size: int) -> Array:
        """Return values of the pools, chosen at random."""
        places = rng.integers(self.counts, size=(size, self.n_samples))
        return np.asarray(self.pool[np.arange(self.n_samples), places])

    def mean_and_variance(self) -> tuple[Array, Array]:
        """Return means and variances of the pools."""
        return self.pool.mean(axis=1, where=self.known), self.pool.var(axis=1, where=self.known)

    def expecting(self) -> tuple[Array, Array]:
        """Return the values of the pools, which are equally likely; missing ones have mass 0."""
        masses = np.where(self.known, 1.0 / np.reshape(self.counts, (-1, 1)), 0.0)
        return self._filled.T, np.broadcast_to(masses, self.pool.shape).T

    def remarks(self, outcomes: Array) -> tuple[str, ...]:
        """Return a remark if members are missing, with what is assumed about these."""
        if self.known is True:
            return ()
        found = f"Rows have {self.counts.min() - 1:,} to {self.counts.max() - 1:,} members"
        return (f"{found}: which are missing must not depend on their values, or on the outcome.",)

    def without(self, outcomes: Array) -> Pool:
        """Return pools of the members alone, without the outcomes (n,)."""
        places = (self.pool < outcomes[:, None]).sum(axis=1, keepdims=True)
        width = self.pool.shape[1]
        return Pool(self.pool[np.arange(width) != places].reshape(-1, width - 1))

    def support(self) -> tuple[float, float]:
        """Return the smallest and the largest of all values."""
        return float(self.pool[:, 0].min()), float(np.nanmax(self.pool))

    def points(self) -> Array:
        """Return points (n, N) at Wasserstein distances, W₂² = N⁻¹ Σ_k (x_k − x′_k)².

        If N differs between rows, the distances are approximate.
        """
        most = self.pool.shape[1]
        levels = np.repeat((np.arange(most)[:, None] + 0.5) / most, self.n_samples, axis=1)
        return np.ascontiguousarray(self.quantile(levels).T / np.sqrt(most))

    def characteristic(self, frequencies: Array, origin: float) -> NDArray[np.complex128]:
        """Return the means of exp iω(x − origin) over the pools, (n, K)."""
        known = np.broadcast_to(self.known, self.pool.shape)
        columns = zip((self._filled - origin).T, known.T[:, :, None], strict=True)
        waves = (there * np.exp(1j * np.multiply.outer(each, frequencies)) for each, there in columns)
        return np.asarray(sum(waves) / np.reshape(self.counts, (-1, 1)))

    def crps(self, outcomes: Array) -> Array:
        """Return the fair CRPS of the rest of the pool at its values (Ferro 2014, Equation 8)."""
        return fair_scores(self._distances(outcomes), self._total, self.counts)

    def crps_excess(self, outcomes: Array) -> Array:
        """Return the fair CRPS less its mean over the pool."""
        scale = np.where(self.counts == 2, 2.0, 2.0 * self.counts * (self.counts - 1.0))
        return np.asarray(self.crps(outcomes) - self._total / scale)

    def _distances(self, outcomes: Array) -> Array:
        """Return Σ_k |x_k − y|, (…, n)."""
        flat, values = outcomes.reshape(-1, self.n_samples), self._filled
        found, ones = np.empty(flat.shape), np.ones(values.shape[1])
        for rows in blocks(len(values), _ROWS):
            for own, at in zip(found[:, rows], flat[:, rows], strict=True):
                own[:] = np.abs(values[rows] - at[:, None]) @ ones
        if self.known is not True:
            found -= (len(ones) - self.counts) * np.abs(flat - values[:, 0])
        return found.reshape(outcomes.shape)

    @cached_property
    def _filled(self) -> Array:
        """The pools with missing values replaced by the smallest one of their row, (n, N)."""
        return self.pool if self.known is True else np.where(self.known, self.pool, self.pool[:, :1])

    @cached_property
    def _total(self) -> Array:
        """Σ_jk |x_j − x_k|, (n,), of sorted pools."""
        if self.known is not True:
            return np.asarray((self._distances(self._filled.T) * self.known.T).sum(axis=0))
        return np.asarray(2.0 * self.pool @ (2.0 * np.arange(self.size) - self.size + 1.0))


def fair_scores(distances: Array, total: Array, size: Any) -> Array:
    """Return fair scores of N − 1 values against the last, from sums of its distances and of all."""
    others = size - 1.0
    among = 2.0 * others * np.maximum(others - 1.0, 1.0)  # the numerator is 0 if there is one other
    return np.asarray(distances / others - (total - 2.0 * distances) / among)


class Pools(_Exchangeable):
    """The law of outcomes that are vectors, given their pools; an outcome is a place in its pool."""

    about = "members that are vectors"
    instead = "leave the statistic out, or give a lens of one entry, such as 'entry:0'"

    def met(self, outcomes: object, weights: Array | None = None) -> tuple[Predictive, Outcomes]:
        """Return the law and the outcomes, which are places already."""
        return self, self.observed(np.asarray(outcomes))

    def observed(self, outcomes: Outcomes) -> Outcomes:
        """Return places as whole numbers, read-only."""
        return read_only(outcomes, np.intp)

    def sampler(self, seed: int, first: int = 0) -> OutcomeSampler:
        """Prepare to draw places from ``seed``."""
        return OutcomeSampler(self.draw, self.n_samples, seed)

    def draw(self, rng: np.random.Generator, size: int) -> NDArray[Any]:
        """Return places, (size, n)."""
        kind = np.min_scalar_type(self.size - 1)
        return rng.integers(self.size, size=(size, self.n_samples), dtype=kind)

    def entry(self, name: str) -> Array:
        """Return one entry of all vectors in the pools, (n, N)."""
        choose("entry", name, dict.fromkeys(self.names))
        return np.asarray(self.pool[:, :, self.names.index(name)])

    def of_entry(self, name: str, outcomes: Outcomes) -> tuple[Pool, Array]:
        """Return the law of one entry, and its observed outcomes."""
        values = self.entry(name)
        return Pool(np.sort(values, axis=1)), values[np.arange(len(values)), outcomes]


def standardised(values: Array) -> Array:
    """Return pools (n, N, …) with mean 0 and mean square 1 in every row; 0 where all values agree."""
    largest = np.abs(values).max(axis=1, keepdims=True)
    values = values / np.where(largest > 0.0, largest, 1.0)  # so that squares do not overflow
    centred = values - values.mean(axis=1, keepdims=True)
    scale = np.sqrt((centred**2).mean(axis=1, keepdims=True))
    alike = scale <= _ALIKE
    return np.where(alike, 0.0, centred / np.where(alike, 1.0, scale))
