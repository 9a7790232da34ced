"""The omnibus: combines several statistics, each on the scale of its tail under H0."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from numbers import Real
from typing import Any, Self, TypeAlias

import numpy as np

from caltest._arguments import OneOf, as_float, changed, options
from caltest._parallel import ALONE, Workers
from caltest._visible import quoted
from caltest.data import Rows
from caltest.exceptions import InputError
from caltest.forms import Combined, Component, FeatureSquares, GriddedDifference, kernel_matrices
from caltest.forms.base import ROUNDING, Moments
from caltest.forms.kernel_matrices import Approximation, chosen
from caltest.forms.low_rank import sharing
from caltest.forms.predictive import drawn_moments
from caltest.kernels import Exponential, fitted
from caltest.kernels.bandwidth import fixed_order
from caltest.laws import Classes, Pools, Survival
from caltest.lenses import Entry, Lens, Pair, Reduction, TopLabel, show
from caltest.pvalues import Alternative
from caltest.sampling import generator
from caltest.statistics.base import Listed, Statistic
from caltest.statistics.classical import ECD, Kuiper
from caltest.statistics.distributions import Bias, EnergyScore, PitAndersonDarling, Spread
from caltest.statistics.skce import UnbiasedSKCE
from caltest.statistics.times import Events, EventSlope, ranks

# ------------------------------------------------------------------ components of numbers

_MOST_PAIRED = 10  # most entries for which all pairs are tested
_Forms: TypeAlias = dict[str, tuple[Any, Alternative]]


def _forms(rows: Rows, *statistics: Statistic, seen: str = "") -> _Forms:
    return {each.name + seen: (each.given(rows), each.alternatives[0]) for each in statistics}


def _by_draws(forms: _Forms, view: Reduction | None = None) -> Iterator[Component]:
    """Yield components whose moments come from draws that do not depend on the outcomes."""
    moments = drawn_moments([form for form, _ in forms.values()])
    for (name, (form, side)), known in zip(forms.items(), moments, strict=True):
        yield Component(name, form, side, view, law=known)


def _of_numbers(rows: Rows) -> Iterator[Component]:
    """Yield bias, spread and pit_ad, the first two by level too, and events of times."""
    law: Any = rows.law
    forms = _forms(rows, Bias(), Spread(), PitAndersonDarling())
    tilts = ranks(law.level())
    if np.ptp(tilts) > 0.0:
        for name in ("bias", "spread"):
            form, side = forms[name]
            forms[f"{name}, by level"] = replace(form, tilts=tilts), side
    if isinstance(law, Survival) and law.follow_up is not None:
        forms |= _forms(rows, Events(), EventSlope())
    return _by_draws(forms)


def _of_vectors(rows: Rows) -> Iterator[Component]:
    """Yield the energy score, three components of every entry, and the bias of pairs."""
    law: Any = rows.law
    for name, (form, side) in _forms(rows, EnergyScore()).items():
        yield Component(name, form, side)
    lenses: list[Lens] = [Entry(name) for name in law.names]
    if law.dimension <= _MOST_PAIRED:
        lenses += [Pair(*names) for names in combinations(law.names, 2)]
    for lens in lenses:
        view, seen = lens.show(rows), f", {lens.label.removesuffix('/distribution')}"
        more = (Spread(), PitAndersonDarling()) if isinstance(lens, Entry) else ()
        yield from _by_draws(_forms(view.rows, Bias(), *more, seen=seen), view)


# ------------------------------------------------------------------ components of classes

_SAMPLE = 1024  # rows used for the moments of low-rank kernels


@dataclass(frozen=True)
class _Part:
    """A statistic through a lens, and its moments under H0 if known in advance."""

    name: str
    statistic: Statistic
    alternative: Alternative = "greater"
    rounding: float = 0.0
    lens: Lens | None = None
    known: Moments | None = None

    def at(self, rows: Rows) -> Component:
        """Return the component for all rows, or for some."""
        view = None if self.lens is None else self.lens.show(rows)
        form = self.statistic.given(rows if view is None else view.rows)
        law: Any = self.known
        if law is None and isinstance(form, FeatureSquares):
            law = partial(_law_of_sample, form)
        return Component(self.name, form, self.alternative, view, self.rounding, law)


def _law_of_sample(form: FeatureSquares, workers: Workers) -> Moments:
    """Return the moments of a mean over pairs, from a sample of rows; row order has no effect."""
    n = len(form.probs)
    rows = np.sort(fixed_order(form.probs)[generator(0).permutation(n)[:_SAMPLE]])
    return _as_of_pairs(form, rows, n, workers)


def _as_of_pairs(form: FeatureSquares, rows: Any, whole: int, workers: Workers) -> Moments:
    """Return moments of a mean over pairs of all rows, from those over pairs of some rows.

    The variance falls as the number of pairs grows. The skewness depends on the ratios of the few
    largest eigenvalues of the weights, and hardly changes.
    """
    probs, features = form.probs[rows], form.features[rows]
    k = len(probs)
    some = replace(form, probs=probs, features=features, scale=1.0 / (k * (k - 1)), whole=None)
    found = some.moments(workers)
    scaling = form.scale / (1.0 / (whole * (whole - 1.0)))  # 1 unless weights differ
    return replace(found, variance=scaling**2 * k * (k - 1) / (whole * (whole - 1)) * found.variance)


def _as_of_all(form: Any, whole: int) -> Moments:
    """Return moments of the form of all rows, from the form of some rows in units of ``whole``."""
    if isinstance(form, FeatureSquares):
        return _as_of_pairs(form, slice(0, _SAMPLE), whole, ALONE)
    found: Moments = form.moments()
    if isinstance(form, GriddedDifference):
        return found
    share = len(form.probs) / whole
    skewness = found.skewness * float(np.sqrt(share))
    return replace(found, variance=found.variance / share, skewness=skewness)


# ------------------------------------------------------------------ omnibus


_KERNEL = OneOf("caltest.kernels:Exponential", "give an exponential one, caltest.kernels.Exponential()")


@options(kernel=_KERNEL)
class Omnibus(Listed, row="omnibus"):
    """The default statistic: four statistics combined, to detect several kinds of error at once.

    No single statistic detects every kind of error well. The components are:

    * "skce_uq" with the exponential kernel at the median distance, for errors of whole classes, and
      at a quarter of it, for local ones;
    * "ecd", two-sided, for over- and underconfidence, and labels predicted with almost no probability;
    * "kuiper" of the top label (for two classes: of class 1), for errors of the confidence that change
      their sign.

    Each component is standardised by its mean, variance and skewness under H0 given the predictions,
    which are known, and converted to the negative logarithm of a tail probability. The statistic is the
    largest of these. ``parts`` of the result has a p-value for each component, adjusted for their
    number by Westfall and Young's step-down maxima over the same draws. A label with predicted
    probability 0 makes the value infinite, as for "ecd".

    For predicted numbers the components are "bias", "spread" and "pit_ad", and bias and spread that
    change with the level: the same scores times the rank of a row's predicted median, from −1 to 1.
    Times with known ends of follow-up add "events" and "event_slope". For members that are vectors they
    are "energy", "bias", "spread" and "pit_ad" of every entry, and for up to ten entries the "bias" of
    every pair (:class:`caltest.lenses.Pair`). Their moments come from draws that do not depend on the
    outcomes.

    Parameters
    ----------
    multiples : sequence of float, default (0.25, 1.0)
        Multiples of the bandwidth at which the kernel statistic is taken; like all options, for classes
        only. Each is a component, and costs as much as "skce_uq". Four times the median finds errors of
        whole classes no better than the median; 1/16 would find very local errors.
    kernel : Exponential, default ``Exponential("median", "tv")``
        The exponential kernel whose bandwidth is multiplied. Default ``Exponential("median", "tv")``,
        see :class:`BiasedSKCE`.
    approximation : {"auto", "nystrom", "fourier"} or None, default "auto"
        As in :class:`BiasedSKCE`, for the kernel statistics. With "auto", kernels have low rank if rows
        are many, and moments come from 1 024 of the rows.

    Raises
    ------
    InputError
        If the multiples are no positive numbers, or the kernel is no exponential one.

    Notes
    -----
    Compared with the best single statistic, the omnibus loses a tenth to three tenths of the power
    where that statistic has a power of 0.7 or 0.8, and a twentieth where it has 0.95. An
    unsuitable single statistic has next to no power. ``validation/omnibus.py`` measures this, and
    compares with Fisher's and Cauchy's combination.

    References
    ----------
    Westfall and Young, "Resampling-based multiple testing", 1993; and those of the parts.

    Examples
    --------
    >>> import caltest
    >>> digits = caltest.datasets.load_digits_predictions("random_forest")
    >>> result = caltest.test(digits.probs, digits.labels, "omnibus", n_resamples=99, rng=0)
    >>> [(part.name, part.adjusted) for part in result.parts][1:3]
    [('skce_uq', 0.01), ('ecd', 0.01)]

    Distributions of numbers that are too narrow:

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> predicted = caltest.predictive.Normal(np.zeros(300), sd=1.0)
    >>> result = caltest.test(predicted, rng.normal(0.0, 1.5, 300), rng=0)
    >>> [(part.name, part.adjusted) for part in result.parts]
    [('bias', 0.292), ('spread', 0.001), ('pit_ad', 0.001)]

    Vectors whose entries go together, where members say that they do not:

    >>> members = caltest.predictive.Members(rng.normal(size=(300, 19, 2)), names=["u", "v"])
    >>> truth = rng.multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]], size=300)
    >>> result = caltest.test(members, truth, rng=0)
    >>> [part.name for part in result.parts if part.adjusted <= 0.05]
    ['bias, pair:u,v']
    """

    multiples: Sequence[float] = (0.25, 1.0)
    kernel: Exponential = field(default_factory=Exponential)
    approximation: Approximation | None = "auto"

    reported = ("kernel", "multiples", "approximation")

    def __post_init__(self) -> None:
        given = (self.multiples,) if isinstance(self.multiples, Real) else self.multiples
        each = [as_float(one) for one in given] if np.iterable(given) else []
        multiples = tuple(one for one in each if one is not None and 0.0 < one < math.inf)
        if not multiples or len(multiples) < len(each):
            do = "give positive numbers, such as (0.25, 1)"
            raise InputError(f"multiples is {quoted(self.multiples)}; {do}.")
        object.__setattr__(self, "multiples", multiples)
        kernel_matrices.check_approximation(self.kernel, self.approximation)

    def fitted(self, predictions: Rows) -> Self:
        """Fit the kernel's bandwidth to the predictions, and choose the approximation.

        For rows in parts, each component statistic is fitted too, with the moments that standardise it.
        """
        if not isinstance(predictions.law, Classes):
            self.check_default(predictions.law)
            return changed(self, _fit=())
        parts, wanted = predictions.part_of is not None, self.approximation
        method = chosen("auto" if parts and wanted is None else wanted, self.kernel, predictions)
        some = kernel_matrices.fitting_rows(predictions)
        kernel = fitted(self.kernel, some.probs, some.weights)
        found = changed(self, kernel=kernel, approximation=method)
        return changed(found, _fit=found._made(predictions)) if parts else found

    @property
    def parameters(self) -> dict[str, Any]:
        """For classes: the kernel, its bandwidth, its multiples, and the approximation, if any."""
        if self._fit == ():
            return {}
        rank = {} if self.approximation is None else {"rank": kernel_matrices.RANK}
        return super().parameters | {"multiples": list(self.multiples)} | rank

    def given(self, predictions: Rows) -> Combined:
        """Return the form for these predictions: every component as a function of the outcomes."""
        if not isinstance(predictions.law, Classes):
            self.fitted(predictions)
            of = _of_vectors if isinstance(predictions.law, Pools) else _of_numbers
            return Combined(tuple(of(predictions)))
        parts = self._fit
        if parts is None:
            known, rows = chosen(self.approximation, self.kernel, predictions), predictions
            if predictions.n_samples > kernel_matrices.HELD_UP_TO and known is not None:
                rows = replace(kernel_matrices.fitting_rows(predictions), part_of=predictions.whole)
            parts = changed(self, approximation=known)._made(rows)
        components = tuple(part.at(predictions) for part in parts)
        pairs = zip(components, sharing([part.form for part in components]), strict=True)
        return Combined(tuple(replace(part, form=form) for part, form in pairs))

    def _of_pairs(self, kernel: Exponential, rows: Rows) -> Iterator[UnbiasedSKCE]:
        """Yield a statistic for every bandwidth; at low rank, all share the narrowest one's features.

        Their sums are then computed once. The extra cost is a product of the features with themselves
        for every class and draw, which pays off if rows outnumber features times classes.
        """
        narrow, n = min(self.multiples), (rows.part_of or rows.whole).rows
        width = float(kernel.bandwidth)
        kernels = {each: replace(kernel, bandwidth=each * width) for each in self.multiples}
        first = UnbiasedSKCE(kernels[narrow], self.approximation)
        shares = rows.n_classes * kernel_matrices.RANK <= n
        shares &= chosen(self.approximation, self.kernel, rows) == "nystrom"
        if shares:
            first = first.fitted(rows)
        other: Any = first.wider if shares else partial(changed, first)
        for multiple in self.multiples:
            yield first if multiple == narrow else other(kernel=kernels[multiple])

    def _made(self, rows: Rows) -> tuple[_Part, ...]:
        """Return the component statistics; if ``rows`` are a sample of more, fitted to this sample."""
        some = kernel_matrices.fitting_rows(rows)
        kernel = fitted(self.kernel, some.probs, some.weights)
        lens = None if rows.n_classes == 2 else TopLabel()
        parts = [
            _Part("skce_uq" if multiple == 1.0 else f"skce_uq, {multiple:g} × bandwidth", statistic)
            for multiple, statistic in zip(self.multiples, self._of_pairs(kernel, rows), strict=True)
        ]
        # If expected and observed surprises cancel, rounding is left.
        parts.append(_Part("ecd", ECD(), "two-sided", ROUNDING))
        parts.append(_Part("kuiper" if lens is None else f"kuiper, {lens.label}", Kuiper(), lens=lens))
        if rows.part_of is None:
            return tuple(parts)
        found = []
        for part in parts:
            view = show(rows, part.lens).rows
            statistic = part.statistic.fitted(view)
            known = _as_of_all(statistic.given(view), rows.part_of.rows)
            found.append(replace(part, statistic=statistic, known=known))
        return tuple(found)
