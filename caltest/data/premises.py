"""The premises of exactness, checked against the data.

Outcomes are compared with draws of independent rows. So rows must be independent given their
predictions, weights and groups must be known before the outcome, and the model must not have seen the
rows. If the data refute one of these with certainty, the input is refused; if they only cast doubt on
it, the result gets a :class:`Premise`.

*Members that rows share*: with one set of residuals around every forecast, or one climatology, the
pools of all rows together reveal the outcome. *Functions of the outcome*: if every weight, or group,
occurs with one class only, the predictions give the probability of this. *Rows used to fit*: a
recalibration makes sums of errors exactly 0, which hardly ever happens for new rows. *Copies*: the
labels of two independent rows with the same predictions g differ with probability 1 − |g|². If the
labels of many such pairs hardly ever differ, the rows are one row several times, or the labels were
used to fit the model. Labels that differ as often as they should prove nothing about dependence; but if
most rows share predictions of full precision with a few others, the user is asked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, gammainc, gammaincinv, gammaln, logsumexp, ndtri

from caltest._sums import Mask, Places, tail_of_sum
from caltest._visible import shown_column
from caltest.data.rows import Rows, Sample
from caltest.exceptions import Argument, InputError, Premise
from caltest.laws import Classes, Law, Members, Point, Pool, Pools, Predictive, Quantiles
from caltest.laws.classes import Array

NO_CHANCE = 1e-6  #: Events less probable than this under H0 are not chance.
_MANY = 1000  # different values
_MOST_LOOKED_AT = 20_000  # rows whose members are compared, and rows of draws


def premises_of(sample: Sample, pvalue: float | None = None) -> tuple[Premise, ...]:
    """Return doubts that the data cast on independent rows that were not used to fit.

    Errors of rows that were used to fit are small. If a single test has found an error, such rows are
    not searched for; if it has not, the fit of a slope alone is not, because it takes longer than some
    tests.
    """
    seen = _used_to_fit(sample, pvalue is None) if pvalue is None or pvalue > 0.05 else ()
    return (*sample.premises, *sample.rows.doubts, *seen, *copied_rows(sample))


def _precision(values: Array) -> float:
    """Return half a unit of the last decimal of numbers, a bound of their rounding errors."""
    some = values.ravel()[:: max(1, values.size // _MOST_LOOKED_AT)]
    if np.abs(some).max(initial=0.0) > 1e15:  # these have no decimals
        return float(np.abs(some).max()) * 2.0**-50
    for digits in range(1, 7):
        near = np.round(some, digits)
        if near.any() and np.abs(some - near).max() < 1e-3 * 10.0**-digits:
            return 0.5 * 10.0**-digits
    single = bool((some == some.astype(np.float32)).all())
    return float(np.abs(some).max(initial=0.0)) * (2.0**-24 if single else 2.0**-50)


# ------------------------------------------------------------------ members that rows share

_FEWEST_ROWS = 20
_SHARED = 0.2  # share of these rows
_MOST_STEPS = 100.0  # steps of a grid on which members match by chance


def shared_members(law: Law) -> tuple[Premise, ...]:
    """Refuse rows that share one set of members, up to location and scale; raise a doubt if some match.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> centre, residuals = rng.normal(size=(50, 1)), rng.normal(size=9)
    >>> shared_members(Members(centre + rng.normal(size=(50, 9))))
    ()
    >>> shared_members(Members(centre + residuals))
    Traceback (most recent call last):
    caltest.exceptions.InputError: the members of 100% of the rows are one set of values, moved and
    ...
    """
    every: list[Any] = [law.values] if isinstance(law, Members) else []
    if isinstance(law, Pool | Pools):  # the whole pool too: a climatology may leave out each year
        every = [law.pool, *([] if law.members is None else [law.members])]
    some = (values[:: -(-len(values) // _MOST_LOOKED_AT)] for values in every)
    entries: Any = (each for x in some for each in np.moveaxis(x.reshape(*x.shape[:2], -1), 2, 0))
    counted = ((each, (~np.isnan(each)).sum(axis=1)) for each in entries)  # some may be missing
    entries = ((e, x, n == k, k) for e, (x, n) in enumerate(counted) for k in np.unique(n))
    found: Any = defaultdict(lambda: np.zeros(2))
    for entry, values, here, known in entries:
        members = np.sort(values[here], axis=1)[:, :known]
        largest = np.abs(members).max(axis=1, keepdims=True)
        unit = np.where(largest > 0.0, largest, 1.0)  # so that squares do not overflow
        ordered = np.sort(members / unit, axis=1)
        gaps = np.diff(ordered, axis=1)
        least = np.where(gaps > 0.0, gaps, np.inf).min(axis=1, initial=np.inf)[:, None]
        with np.errstate(over="ignore", invalid="ignore"):
            steps = gaps / least
            even = (np.abs(steps - np.round(steps)) < 1e-3).all(axis=1)
        on_grid = even & (steps.sum(axis=1) <= _MOST_STEPS)
        on_grid |= (members == np.round(members)).all(axis=1)
        on_grid |= np.ptp(members, axis=1) <= 2.0 * _MOST_STEPS * _precision(members)
        off, different = _precision(members) / unit[:, 0], np.count_nonzero(gaps, axis=1) + 1
        # Two members always match after scaling, and on an even grid more do.
        telling = (different >= 3) & ~on_grid
        one = _alike(ordered[telling], off[telling])[0]
        telling = different >= 10
        found[entry] += here.mean() * np.array([one, _alike(ordered[telling], off[telling])[1]])
    one, others = np.max([np.zeros(2), *found.values()], axis=0).tolist()
    laws = Argument("predictive.Quantiles, predictive.Distribution", shell="--quantiles, --mean, --sd")
    if one > _SHARED:
        raise InputError(
            f"the members of {one:.0%} of the rows are one set of values, moved and scaled, so that "
            "rows are not independent given their members; draw members anew for every row, or give "
            f"the distribution that these are from ({laws})."
        )
    if others <= _SHARED:
        return ()
    seen = (
        f"The members of {others:.0%} of the rows are those of other rows, moved and scaled. If they "
        "are one set of residuals, or one climatology, rows are not independent given these"
    )
    do = f"give the distribution that they are from ({laws})"
    return (Premise("independent rows", seen, do, withholds=True),)


def _alike(members: Array, off: Array) -> tuple[float, float]:
    """Return the shares of rows with one pattern of members, and with the pattern of another row.

    A pattern is what remains of sorted members (n, k) without their mean, spread and sign. ``off`` is
    half a unit of their last decimal.
    """
    if (n := len(members)) < _FEWEST_ROWS:
        return 0.0, 0.0
    sd = members.std(axis=1, keepdims=True)
    z = (members - members.mean(axis=1, keepdims=True)) / sd
    z = np.where((z * z * z).sum(axis=1, keepdims=True) < -1e-9, -z[:, ::-1], z)
    within = np.minimum(1e-6 + 2.0 * off / sd[:, 0], 1e-3)
    along = z @ np.random.default_rng(0).normal(size=z.shape[1])
    order = np.argsort(along)
    count = int(_SHARED * n) + 1
    first = int(np.argmin(along[order[count - 1 :]] - along[order[: n - count + 1]]))
    middle = order[first + count // 2]
    most = np.mean(np.abs(z - z[middle]).max(axis=1) <= within + within[middle])
    z, within = z[order], within[order]
    near = np.abs(np.diff(z, axis=0)).max(axis=1) <= within[1:] + within[:-1]
    return float(most), float(np.mean(np.append(near, False) | np.append(False, near)))


# ------------------------------------------------------------------ functions of the outcome


def chance_of_function(codes: Places, law: Law, outcomes: Any) -> float:
    """Return the probability that codes are a function of the outcome by chance; 1 if they are not one.

    For classes: each class has one code, or each code one class, or each class a range of codes. For
    numbers: codes change a few times along the outcomes. If the predicted class was right in every row,
    such codes may be a function of the prediction as well, and the probability is 1.
    """
    if not isinstance(law, Classes):
        return _chance_of_steps(codes, law, outcomes)
    probs, (n, m), n_codes = law.probs, law.probs.shape, int(codes.max()) + 1
    if n_codes == 1 or len(np.unique(outcomes)) == 1 or (law.top == outcomes).all():
        return 1.0
    every = np.arange(n)
    pairs = np.unique(outcomes * n_codes + codes)  # classes and codes that occur together
    seen, code = np.divmod(pairs, n_codes)
    chance = 0.0
    with np.errstate(divide="ignore"):
        logs = np.log(probs)
        if len(np.unique(seen)) == len(pairs):  # a class that does not occur could have any code
            code_of = np.full(m, -1)
            code_of[seen] = code
            fits = (code_of == codes[:, None]) | (code_of < 0)
            chance = float(np.log((probs * fits).sum(axis=1)).sum()) + len(pairs) * np.log(n_codes)
    if len(np.unique(code)) == len(pairs):
        order = np.lexsort((outcomes, codes))
        new = np.flatnonzero(np.diff(codes[order], prepend=-1))
        chance = min(chance, float(logsumexp(np.add.reduceat(logs[order], new), axis=1).sum()))
        changes = int(np.count_nonzero(np.diff(outcomes[order])))
        if changes + 1 == len(np.unique(seen)):
            chance = min(chance, float(logs[every, outcomes].sum()) + _orders(n, changes, m))
    return float(np.exp(min(chance, 0.0)))


def targets(law: Law, outcomes: Any) -> dict[str, tuple[Law, Any]]:
    """Return outcomes that weights and groups must not be functions of, with their laws, by name."""

    def event(p: Array, came: Mask) -> tuple[Law, Any]:
        return Classes(np.column_stack([1.0 - p, p])), came.astype(np.intp)

    if law.seen is not None:  # whether there was an event, with equal probability in every row
        came = ~np.signbit(law.seen)
        return {"whether the event was seen": event(np.full(len(came), came.mean()), came)}
    if not isinstance(law, Classes):
        return {"the outcome": (law, outcomes)}
    right = event(law.probs.max(axis=1), law.top == outcomes)
    return {"the outcome": (law, outcomes), "whether the top class was right": right}


def functions_of_outcome(
    codes: Mapping[str, tuple[Places, Places]], sample: Sample, what: str, left: str
) -> dict[str, Premise]:
    """Return a premise for each column that is a function of the outcome, by name.

    ``codes`` are those of each column, for classes and, with fewer values, for numbers; ``what`` is the
    argument that they were passed as, and ``left`` the consequence.
    """
    known, found = targets(sample.rows.law, sample.labels), dict[str, Premise]()
    for name, (fine, coarse) in codes.items():
        for of, (law, outcomes) in known.items():
            own = fine if isinstance(law, Classes) else coarse
            if isinstance(law, Classes) and own.max() >= _MANY:  # ranges could be classes
                changes = np.count_nonzero(np.diff(outcomes[np.argsort(own)]))
                if changes >= law.probs.shape[1]:
                    continue
            if name not in found and chance_of_function(own, law, outcomes) <= NO_CHANCE:
                column = shown_column(name)
                seen = f"Column {column!r} of {what} is a function of {of}; {left}"
                do = f"leave {column!r} out, since {what} must be known before the outcome"
                found[name] = Premise(f"{what} known before the outcome", seen, do, withholds=True)
    return found


def _orders(n: int, changes: int, kinds: int) -> float:
    """Return the logarithm of the number of functions of n ordered rows with so many changes."""
    cuts = gammaln(n) - gammaln(changes + 1.0) - gammaln(n - changes)
    return float(cuts + (changes + 1.0) * np.log(kinds))


def _chance_of_steps(codes: Places, law: Law, outcomes: Any) -> float:
    """Return the probability that codes are a step function of the outcomes, with few steps."""
    if not isinstance(law, Predictive) or law.dimension is not None or law.levels is not None:
        return 1.0
    if isinstance(law, Point):  # no probability is stated
        return 1.0
    order = np.lexsort((codes, outcomes))
    first = np.flatnonzero(np.diff(codes[order], prepend=-1))
    ordered = outcomes[order]
    if not 1 < len(first) <= 20 or (ordered[first[1:]] == ordered[first[1:] - 1]).any():
        return 1.0
    ends = [law.cdf(np.full(len(codes), ordered[k]))[0] for k in first[1:]]
    ends = [np.zeros(len(codes)), *ends, np.ones(len(codes))]
    fits = np.zeros(len(codes))
    for k, of in enumerate(codes[order[first]]):
        fits += np.where(codes == of, ends[k + 1] - ends[k], 0.0)
    with np.errstate(divide="ignore"):
        chance = float(np.log(fits.clip(0.0, 1.0)).sum())
    chance += _orders(len(codes), len(first) - 1, int(codes.max()) + 1)
    return float(np.exp(min(chance, 0.0)))


def check_weights(rows: Rows, outcomes: Any) -> None:
    """Raise if weights are a function of the outcome, unless that may be chance.

    Examples
    --------
    >>> from caltest.data import sample
    >>> labels = np.arange(40) % 2
    >>> try:
    ...     sample(np.full(40, 0.4), labels, weights=np.where(labels == 1, 5.0, 1.0))
    ... except InputError as error:
    ...     print(str(error).partition(":")[0])
    the weights are a function of the outcome
    """
    law, weights = rows.law, rows.weights
    if rows.are_alike or law.seen is not None:
        return
    if weights.min() == 0.0:
        counting = np.flatnonzero(weights)
        law, weights, outcomes = law.take(counting), weights[counting], outcomes[counting]
    codes = np.unique(weights, return_inverse=True)[1].reshape(-1)
    if all(chance_of_function(codes, *each) > NO_CHANCE for each in targets(law, outcomes).values()):
        return
    how = (
        "they change a few times along the outcomes; give weights that were known before the outcome, "
        "or leave {weights} out."
        if law.n_classes is None
        else "they say which class was observed, or whether the top class was right; leave {weights} "
        "out, and if rows were kept by their class, give the share that was kept, {rates}."
    )
    text, rates = f"the weights are a function of the outcome: {how}", Argument("sampling_rates", ...)
    raise InputError(text, weights=Argument("weights", ...), rates=rates)


# ------------------------------------------------------------------ rows used to fit

_MOST_CLASSES = 20  # tested one by one
_MOST_BLOCKS = 2000
_DRAWS = 9_999
_NEARLY = 1e-4  # chance of sums so close to 0 that withholding "within" costs less than saying it


def _used_to_fit(sample: Sample, slope: bool) -> tuple[Premise, ...]:
    """Return a doubt if sums of errors are closer to 0 than those of new rows."""
    law, rows = sample.rows.law, sample.rows
    if law.seen is not None or not rows.are_alike:
        return ()
    seen = ""
    if isinstance(law, Classes):
        if _own_rates(law, sample.labels) <= _NEARLY:
            seen = "The rows with one prediction have exactly the predicted rate, again and again"
        elif _as_if_fitted(sample, slope):
            seen = "Errors add up to almost exactly 0, as a fit makes them"
    elif isinstance(law, Quantiles):
        if _exact_counts(law, sample.labels):
            seen = "Nearly as many outcomes lie below each quantile as its level says"
    elif _too_even(law, sample.labels):
        seen = "The outcomes fit their distributions better than chance would have it"
    seen = f"{seen}: these rows look as if they were used to fit or to recalibrate the model"
    do = "give rows that the model has not seen"
    return () if seen.startswith(":") else (Premise("unseen rows", seen, do, withholds=True),)


def _own_rates(law: Classes, labels: Places) -> float:
    """Return the probability that so many blocks of equal predictions have exactly the stated rate."""
    probs, top, (n, m) = law.probs, law.top, law.probs.shape
    events = [(probs[:, k], labels == k) for k in ([1] if m == 2 else range(min(m, _MOST_CLASSES)))]
    events += [(probs[np.arange(n), top], labels == top)] if m > 2 else []
    least_chance = 1.0
    for p, came in events:
        some = p[:: max(1, n // 1000)]
        if len(np.unique(some)) > 0.9 * len(some):
            continue  # hardly any are equal
        levels, codes, rows = np.unique(p, return_inverse=True, return_counts=True)
        off, counts = _precision(levels), np.bincount(codes.reshape(-1), came)
        least, most = np.ceil(rows * (levels - off) - 1e-9), np.floor(rows * (levels + off) + 1e-9)
        could = np.flatnonzero((levels > 0.0) & (levels < 1.0) & (most >= least))
        could = could[np.argsort(-rows[could], kind="stable")[:_MOST_BLOCKS]]
        size, stated, counts = rows[could], levels[could], counts[could]
        least, most = least[could], most[could]
        chance = bdtr(most, size, stated)
        chance -= np.where(least > 0.0, bdtr(np.maximum(least - 1.0, 0.0), size, stated), 0.0)
        hits = int(((counts >= least) & (counts <= most)).sum())
        masses = np.column_stack([1.0 - chance, chance]).clip(0.0, 1.0)
        least_chance = min(least_chance, tail_of_sum(masses, hits) * len(events))
    return least_chance


def _as_if_fitted(sample: Sample, slope: bool) -> bool:
    """Return whether errors sum to nearly 0: by class, along the log probabilities, or both.

    Fitting an intercept per class, one slope, or both makes these sums 0. Under H0 they are nearly
    normal, with a covariance that follows from the predictions; draws confirm such improbable values.
    """
    probs = sample.rows.probs
    n, m = probs.shape
    if m > _MOST_CLASSES or len(np.unique(probs[:_MOST_LOOKED_AT, 1])) < 50:
        return False
    totals = probs.sum(axis=0)
    far = 2.0 * gammaincinv(0.5 * m, _NEARLY) * (totals - np.einsum("ik,ik->k", probs, probs))
    if not slope and ((np.bincount(sample.labels, minlength=m) - totals) ** 2 > far).any():
        return False
    logs = np.log(probs.clip(1e-300, 1.0))
    entropy = (probs * logs).sum(axis=1, keepdims=True)
    scaled = probs * (logs - entropy)
    covariance = np.empty((m, m))
    covariance[:-1, :-1] = (np.diag(totals) - probs.T @ probs)[1:, 1:]
    covariance[-1, :-1] = covariance[:-1, -1] = scaled.sum(axis=0)[1:]
    covariance[-1, -1] = (scaled * (logs - entropy)).sum()
    expected = np.append(totals[1:], entropy.sum())

    def chances(labels: NDArray[Any]) -> Array:
        """Return how often sums are as close to 0 as those of vectors of labels (B, n), (3, B)."""
        counts = [(labels == k).sum(axis=1) for k in range(1, m)]
        sums = np.column_stack([*counts, logs[np.arange(n), labels].sum(axis=1)]) - expected
        found = []
        for some in (slice(0, m - 1), slice(m - 1, m), slice(0, m)):
            own = sums[:, some]
            solved = np.linalg.lstsq(covariance[some, some], own.T)[0].T
            found.append(gammainc(0.5 * own.shape[1], 0.5 * (own * solved).sum(axis=1)))
        return np.asarray(found)

    by_class, *others = chances(sample.labels[None])[:, 0].tolist()
    least, near = min(others), 1 + int(np.argmin(others))
    # Predictions that are rounded, or are shares, may sum to whole numbers by chance.
    if by_class <= _NEARLY and _precision(probs) < 1e-7:
        return True
    if least > _NEARLY or n > _MOST_LOOKED_AT:  # many rows have no atoms that matter
        return bool(least <= _NEARLY)
    sampler, step = sample.rows.sampler(0), 64
    drawn = (sampler.draw(start, min(start + step, _DRAWS)) for start in range(0, _DRAWS, step))
    return not any((chances(labels)[near] <= least).any() for labels in drawn)


def _exact_counts(law: Quantiles, cells: Places) -> bool:
    """Return whether the cells between quantiles hold their exact shares of the outcomes, or nearly.

    Half an outcome is added to the error of a cell, since counts are integers.
    """
    first, last = np.divmod(cells, len(law.levels) + 1)
    expected = len(cells) * np.diff(law.levels, prepend=0.0, append=1.0)
    if (first != last).any() or expected.min() < 1.0:
        return False
    off = np.abs(np.bincount(first, minlength=len(expected)) - expected) + 0.5
    return bool(gammainc(0.5 * len(law.levels), 0.5 * (off**2 / expected).sum()) <= _NEARLY)


def _too_even(law: Law, outcomes: Any) -> bool:
    """Return whether outcomes fit their distributions better than could happen by chance.

    It is judged by the mean error, which a regression with an intercept makes 0; by the largest
    distance of the distribution function of their PITs from uniform (its law is a theta function for
    small distances); and by mean and mean square of their normal scores.
    """
    n = len(outcomes)
    if not isinstance(law, Predictive) or isinstance(law, Pool | Pools):
        return False
    if law.dimension is not None or n < _FEWEST_ROWS:
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        with suppress(InputError):  # they state none
            mean, variance = law.mean_and_variance()
            sums = np.square((outcomes - mean).sum()) / variance.sum()
            full = _precision(mean) <= 1e-6 * float(np.std(mean))
            if full and gammainc(0.5, 0.5 * sums) <= NO_CHANCE:
                return True
        try:
            below, at = law.cdf(outcomes)
        except InputError:
            return False
    if (at - below).max() > 1e-6:
        return False
    places, steps = np.sort(at), np.arange(1, n + 1) / n
    largest = float(max((steps - places).max(), (places - steps).max() + 1.0 / n)) * n**0.5
    even = (2.0 * np.pi) ** 0.5 / largest * np.exp(-(np.pi**2) / (8.0 * largest**2))
    z = ndtri(places.clip(1e-300, 1.0 - 1e-16))
    moments = float(z.sum()) ** 2 / n + float((z * z - 1.0).sum()) ** 2 / (2.0 * n)
    return bool(min(even, float(gammainc(1.0, 0.5 * moments))) <= NO_CHANCE)


# ------------------------------------------------------------------ copies


def copied_rows(sample: Sample) -> tuple[Premise, ...]:
    """Return a doubt if rows look like copies, or like repeated measurements.

    Rows in clusters are not checked: they are known to belong together. Nor are numbers.

    Examples
    --------
    >>> from caltest.data import sample
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(200)
    >>> labels = (rng.random(200) < p).astype(int)
    >>> copied_rows(sample(p, labels))
    ()
    >>> copied_rows(sample(np.tile(p, 2), np.tile(labels, 2)))[0].seen.partition(":")[0]
    'Rows look like copies of each other'
    """
    if sample.rows.clusters is not None or sample.rows.n_classes is None:
        return ()
    probs, labels, n = sample.rows.probs, sample.labels, len(sample.labels)
    weights = np.random.default_rng(0).random(probs.shape[1:])  # sums differ unless rows are equal
    keys = sum((w * probs[:, k] for k, w in enumerate(weights)), np.zeros(n))
    if (np.diff(np.sort(keys)) > 0.0).all():
        return ()
    _, first, codes, sizes = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    tied = sizes > 1
    cells, counts = np.unique(codes * probs.shape[1] + labels, return_counts=True)
    kinds = np.bincount(cells // probs.shape[1])[tied]
    predictions, sizes, again = probs[first[tied]], sizes[tied], int(sizes[tied].sum())
    pairs, agreeing = (0.5 * each * (each - 1.0) for each in (sizes, counts))
    expected = float(pairs @ (1.0 - np.einsum("ik,ik->i", predictions, predictions)))
    seen, copies = float(pairs.sum() - agreeing.sum()), False
    if expected >= 20.0 and seen <= 0.01 * expected:  # pairs
        largest = np.argsort(-sizes, kind="stable")[:_MOST_BLOCKS]
        pure = (predictions[largest] ** sizes[largest, None]).sum(axis=1).clip(0.0, 1.0)
        hits = int((kinds[largest] == 1).sum())
        copies = tail_of_sum(np.column_stack([1.0 - pure, pure]), hits) <= NO_CHANCE
    if copies:
        told = (
            "Rows look like copies of each other: of the pairs of rows with the same predictions about "
            f"{expected:,.0f} should have different labels, and {seen:,.0f} have"
        )
        do = f"leave copies out, or say which rows belong together ({Argument('clusters', ...)})"
        do += "; if the labels were used to fit the model, test it on other rows"
        return (Premise("independent rows", told, do, withholds=True),)
    few = again <= 16 * len(predictions)  # one patient's rows, not a tree's leaf
    if 2 * again < n or not few or not _of_full_precision(predictions, n):
        return ()
    told = (
        f"{again:,} of {n:,} rows share their predictions, to the last digit, with others. If "
        "these are repeated measurements (of a patient, a user, a day), p-values take them for more "
        "evidence than they are"
    )
    return (Premise("independent rows", told, f"say which belong together ({Argument('clusters')})"),)


def _of_full_precision(predictions: Array, n_samples: int) -> bool:
    """Return whether most predictions are neither rounded, given n rows, nor shares of few votes."""
    values = predictions[:: -(-len(predictions) // 256)].max(axis=1)
    parts = np.arange(1, 1001)  # shares of so many votes, or of three decimals
    away = np.abs(values[:, None] * parts - np.round(values[:, None] * parts)) / parts
    if np.mean(away.min(axis=1) > 3.1e-8) <= 0.5:  # the precision of float32
        return False
    for digits in range(1, 10):
        step = 10.0**-digits
        alike = max(1e-5 * step, 3.1e-8 if digits < 7 else 0.0)
        if np.mean(np.abs(values - np.round(values, digits)) < alike) > 0.5:
            # More than a tenth of all numbers in such a range: rows share some by chance.
            spread = 2.0 * float(np.subtract(*np.quantile(values, (0.75, 0.25))))
            return n_samples * step < 0.1 * spread
    return True
