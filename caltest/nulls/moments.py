"""Analytic p-values: normal, by moments or by saddlepoints; exact for statistics that count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

import numpy as np
from scipy.special import gammainc, gammaincc, ndtr

from caltest._arguments import options
from caltest._parallel import Workers
from caltest._sums import tail_of_sum
from caltest.forms import Binned, Form, HasMoments, LinearSum, Moments, base
from caltest.forms.base import Array, HasCumulantGenerator, HasLeadingSum, HasNormalLimit, LatticeTerms
from caltest.kernels.bandwidth import fixed_order
from caltest.nulls.base import Answer, Guarantee, MonteCarlo, Null, Question, from_sides

# ------------------------------------------------------------------ saddlepoint

#: t -> K(t), K'(t), K''(t)
CumulantGenerator = Callable[[float], tuple[float, float, float]]

_ROUNDS = 100
# Φ(−w − c) with c = log(u/w)/w is used for |c| up to this: in a distribution of few atoms, or at the
# end of any, c is large and the formula is meaningless. Chernoff's bound is valid there.
_TRUSTED = 0.5


def tail(cumulants: CumulantGenerator, x: float) -> float:
    """Return P(T ≥ x), with a relative error that stays small far into the tail.

    Parameters
    ----------
    cumulants
        K and its first two derivatives; NaN or infinite if K is.
    x
        The start of the tail.

    Notes
    -----
    With K'(t) = x, w = sign(t) √(2(tx − K(t))) and u = t √K''(t), the tail is
    Φ(−w − log(u/w)/w): Barndorff-Nielsen, "Inference on full or partial parameters based on the
    standardized signed log likelihood ratio", Biometrika 73 (1986). If that formula is unreliable, or x
    lies at or beyond the end of the distribution, so that no such t exists, Chernoff's bound exp(K(t) −
    tx) is returned.

    Examples
    --------
    >>> standard_normal = lambda t: (t * t / 2, t, 1.0)
    >>> round(tail(standard_normal, 1.959964), 6)
    0.025
    """
    if np.isinf(x):
        return float(np.finfo(float).tiny) if x > 0 else 1.0
    _, mean, variance = cumulants(0.0)
    if variance <= 0.0:
        return 1.0 if x <= mean else float(np.finfo(float).tiny)
    scale = float(np.sqrt(variance))
    z = (x - mean) / scale
    if abs(z) < 1e-3:
        correction = shape(cumulants)[0] / 6.0
        return float(ndtr(-z - correction)) if abs(correction) < _TRUSTED else 1.0
    t = _solve(cumulants, x, z / scale, scale)
    k, slope, curvature = cumulants(t)
    exponent = min(0.0, k - t * x)
    chernoff = float(np.exp(exponent)) if z > 0 else 1.0
    if not (abs(slope - x) <= 1e-6 * scale and curvature > 0.0 and exponent < 0.0):
        return chernoff
    w = float(np.sign(t) * np.sqrt(-2.0 * exponent))
    correction = float(np.log(t * float(np.sqrt(curvature)) / w) / w)
    return float(ndtr(-w - correction)) if abs(correction) < _TRUSTED else chernoff


def shape(cumulants: CumulantGenerator) -> tuple[float, float]:
    """Return skewness and excess kurtosis, by central differences of K''; infinite for a constant."""
    if (variance := cumulants(0.0)[2]) <= 0.0:
        return np.inf, np.inf
    step = 0.01  # in standard deviations of t
    above = cumulants(step / float(np.sqrt(variance)))[2] / variance
    below = cumulants(-step / float(np.sqrt(variance)))[2] / variance
    return float((above - below) / (2.0 * step)), float((above + below - 2.0) / step**2)


def nearly_normal(form: HasNormalLimit, within: float) -> bool:
    """Return whether skewness and excess kurtosis are small, because many outcomes matter.

    Terms of range r at most give a sum with standard deviation σ a skewness of at most r/σ, and an
    excess kurtosis of at most (r/σ)².
    """
    _, _, variance = form.cumulant_generator(0.0)
    if 0.0 < form.reach <= min(within, 1.0) * variance**0.5:
        return True
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return all(abs(value) <= within for value in shape(form.cumulant_generator))


def _solve(cumulants: CumulantGenerator, x: float, start: float, scale: float) -> float:
    """Solve K'(t) = x by Newton's method, kept inside a shrinking bracket."""
    t, (low, high) = start, (0.0, np.inf) if start > 0 else (-np.inf, 0.0)
    for _ in range(_ROUNDS):
        k, slope, curvature = cumulants(t)
        if not np.isfinite([k, slope, curvature]).all():  # too far out
            low, high = (low, t) if t > 0 else (t, high)
            t = 0.5 * t if np.isinf(low) or np.isinf(high) else 0.5 * (low + high)
            continue
        if abs(slope - x) <= 1e-7 * scale or high - low <= 1e-12 * abs(t):
            break
        low, high = (t, high) if slope < x else (low, t)
        step = t - (slope - x) / curvature if curvature > 0 else np.nan
        if low < step < high:
            t = step if abs(step) < 4 * abs(t) else 4 * t
        elif np.isinf(low) or np.isinf(high):
            t *= 4
        else:
            t = 0.5 * (low + high)
    return float(t)


# ------------------------------------------------------------------ lattice
#
# "citl" and "esce" count events. Given the predictions, the count is a sum of independent indicators
# with known probabilities (a Poisson binomial), whose law is a product of polynomials: p-values are
# exact, even for few events and far into the tail.


_MOST_STEPS = 2**18  # of all rows together: a second on one core


def lattice_terms(form: Form) -> LatticeTerms | None:
    """Return a form's independent whole numbers; None without a lattice, or with too many."""
    return form.lattice_terms(_MOST_STEPS) if isinstance(form, LinearSum) else None


def lattice_answer(terms: LatticeTerms, question: Question) -> Answer:
    """Return the exact p-value: both tails include the observed value."""
    start, span, masses = terms
    if not np.isfinite(question.observed):  # an impossible label
        above = question.observed > 0.0
        return from_sides(float(not above), float(above), question)
    count, most = round((question.observed - start) / span), masses.shape[0] * (masses.shape[1] - 1)
    greater = less = 1.0
    if question.alternative != "less":
        greater = tail_of_sum(masses, count)
    if question.alternative != "greater" and greater > 0.0:
        less = tail_of_sum(masses[:, ::-1], most - count)
    return from_sides(greater, less, question)


# ------------------------------------------------------------------ moments
#
# Given the predictions, a linear statistic (and SKCE_ul) is a sum of independent terms with a known
# cumulant generating function: a saddlepoint gives its tail. If it counts (``citl``, ``esce``), its law
# is computed, and the p-value is exact. A quadratic statistic has known mean, variance and (nearly)
# skewness: a Pearson type III (shifted gamma) curve through them gives its tail. No resample is drawn,
# and p-values far below 1/(B + 1) are resolved. If the distribution has few atoms (a handful of
# unlikely labels, few distinct predictions, a kernel so wide that labels are only counted), no curve
# fits it, and labels are drawn instead. Only the predictions decide that, never the labels.

# The thresholds were set by enumerating all counts of random designs with up to four distinct rows, and
# by draws of untied ones (python -m validation nulls --only moments_small).
_SURPRISES = 10.0  # with fewer unlikely labels, the distribution has few atoms
_TIED_SURPRISES = 40.0  # the same if rows share their predictions, as labels are only counted then
_TIED_SUMS = 20.0  # the same for sums, whose atoms lie in one dimension only
_TIED_PAIRS = 60.0  # the same for means over pairs, which each take few values, far apart
_SHARED = 2.0  # mean number of rows with the same predictions above which they are tied
_SAME = 0.002  # relative difference up to which predictions are equal, so that noise unties nothing
_NEAR, _DISTINCT = 0.02, 10.0  # unresolved distance; fewer predictions are tied too
_START = 0.618  # offset of the cells of predictions, so that none starts at a round number
_MANY_SURPRISES = 200.0  # above this, half a step is a small part of a standard deviation
_NEARLY = 0.25  # skewness and excess kurtosis up to which few are enough
_SEVERAL = 1.3  # skewness of a sum of nearly five equal χ²₁; in so many dimensions atoms are dense
_ONE_DIMENSION = 2.5  # skewness above which one dimension carries nine tenths of the variance
_MANY_STEPS = 400.0  # unlikely labels above which the steps of that dimension are small
_GAP = 0.3  # spread about the steps, in steps, above which there are no gaps
_MOST_SKEWED = 2.9  # no weighted sum of centred χ²₁ exceeds √8: larger values come from rare events
_WORTH_A_NOTE = 0.05  # error of a skewness above which a note is added


@options()
class ConditionalMoments(Null):
    """p-value without simulation, from the exact moments of the statistic given the predictions.

    The tail is a saddlepoint approximation or that of a Pearson type III distribution.

    For a statistic that counts events, such as "citl" and "esce" on up to 262 144 rows, the p-value is
    exact.

    Assumption: the shape of the conditional distribution follows from its first moments.

    References
    ----------
    Moments: see ``caltest.forms.moments``; checked by enumeration. Pearson type III for a
    degenerate quadratic form: Gretton et al. 2012 (there with estimated moments). Saddlepoint:
    Barndorff-Nielsen 1986.

    Examples
    --------
    >>> import caltest
    >>> sample = caltest.datasets.load_digits_predictions("naive_bayes")
    >>> caltest.test(sample.probs, sample.labels, null="moments").pvalue < 1e-12
    True
    """

    name = "moments"
    guarantee = "approximate"
    requires = "a linear or quadratic statistic"
    forms = HasMoments, HasCumulantGenerator

    def guarantee_for(self, form: Form) -> Guarantee:
        """Return "exact" if the statistic counts."""
        return "exact" if lattice_terms(form) is not None else self.guarantee

    def answer(self, question: Question) -> Answer:
        """Return the analytic p-value, or the exact one if no curve can be trusted."""
        form = cast("HasMoments | HasCumulantGenerator", question.form)
        if (terms := lattice_terms(form)) is not None:
            return lattice_answer(terms, question)
        if isinstance(form, HasCumulantGenerator):
            return _exact_instead(question) if _few_sums(form) else _saddlepoint(form, question)
        moments = form.moments(question.workers)
        if _few_squares(form, moments, question.workers):
            return _exact_instead(question)
        known = f"known to ± {moments.skewness_error:.2g} only; the exact null has no such error"
        note = f"The skewness {moments.skewness:.3g} of the null distribution is {known}."
        notes = (note,) if moments.skewness_error > _WORTH_A_NOTE else ()
        # Rounding favours the null, on either side.
        greater = pearson3_tail(moments, question.observed - form.resolution)
        less = pearson3_tail(moments.scaled(-1.0), -question.observed - form.resolution)
        return from_sides(greater, less, question, notes)


def _saddlepoint(form: HasCumulantGenerator, question: Question) -> Answer:
    # On a lattice, P(T ≥ x) is the smooth tail half a step before x.
    margin = form.resolution + 0.5 * form.lattice.span
    # A side more than a standard deviation away has less than half of all mass (Cantelli's inequality),
    # so the other side, the larger one, need not be computed.
    _, mean, variance = form.cumulant_generator(0.0)
    z = (question.observed - mean) / np.sqrt(variance) if variance > 0 else 0.0

    def side(sign: float) -> float:
        def cumulants(t: float) -> tuple[float, float, float]:
            k, slope, curvature = form.cumulant_generator(sign * t)
            return k, sign * slope, curvature

        return tail(cumulants, sign * question.observed - margin)

    greater = less = 1.0
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if question.alternative == "greater" or (question.alternative == "two-sided" and z > -1.0):
            greater = side(1.0)
        if question.alternative == "less" or (question.alternative == "two-sided" and z < 1.0):
            less = side(-1.0)
    return from_sides(greater, less, question)


def _few_sums(form: HasCumulantGenerator) -> bool:
    """Return whether a sum of independent terms has too few values for a saddlepoint."""
    if (surprises := form.surprises) < _SURPRISES and not nearly_normal(form, _NEARLY):
        return True
    lattice = form.lattice
    if lattice.span > 0.0 and lattice.spread == 0.0:
        return False  # half a step corrects for this
    if surprises < _MANY_SURPRISES and lattice.spread > 0.0:
        return True
    tied = _TIED_PAIRS if isinstance(form, base.HasTerms) else _TIED_SUMS
    return surprises < tied and _tied(form)


def _few_squares(form: HasMoments, moments: Moments, workers: Workers) -> bool:
    """Return whether a quadratic statistic has too few values for a curve, or too skewed ones."""
    skewness = abs(moments.skewness)
    if moments.surprises < _SURPRISES or skewness > _MOST_SKEWED:
        return True
    if not isinstance(form, HasLeadingSum):
        return False
    if moments.surprises < _TIED_SURPRISES and skewness > _SEVERAL and _tied(form):
        return True
    if moments.surprises >= _MANY_STEPS or skewness < _ONE_DIMENSION:
        return False
    # The square of one sum: P(T ≥ x) jumps where the sum steps, and a curve is half a jump too low.
    lattice = form.leading(workers).lattice
    return lattice.span > 0.0 and lattice.spread < _GAP * lattice.span


def _tied(form: HasCumulantGenerator | HasLeadingSum) -> bool:
    """Return whether many rows have the same terms, or nearly."""
    same = np.log(form.probs.clip(1e-300)) / _SAME
    if isinstance(form, Binned) or _repeats(form.probs, same) >= _SHARED:
        return True
    squared = not isinstance(form, HasCumulantGenerator)
    return squared and len(form.probs) < _DISTINCT * _repeats(form.probs, form.probs / _NEAR)


def _repeats(probs: Array, places: Array) -> float:
    """Return the rows per cell of places: Σ S² / Σ s², with variances of the labels of cells and rows.

    1 if all rows differ; n if all are equal.
    """
    shares = 1.0 - np.einsum("ik,ik->i", probs, probs)
    cells = np.floor(places + _START)
    order = fixed_order(cells)
    new = np.append(True, np.any(cells[order[1:]] != cells[order[:-1]], axis=1))
    sums = np.bincount(np.cumsum(new) - 1, weights=shares[order])
    alone = float(shares @ shares)
    return float(sums @ sums) / alone if alone > 0.0 else 1.0


def _exact_instead(question: Question) -> Answer:
    """Draw labels, because the statistic has so few values that no curve fits."""
    answer = MonteCarlo().answer(question)
    note = (
        "The statistic depends on so few unlikely labels, or takes so few values, that no curve fits "
        "its distribution; labels were drawn instead, as the null 'monte_carlo' does."
    )
    return replace(answer, notes=(*answer.notes, note))


def pearson3_tail(moments: Moments, x: float) -> float:
    """Return P(T ≥ x) of the shifted gamma distribution with these moments.

    Examples
    --------
    >>> round(pearson3_tail(Moments(mean=1.0, variance=1.0, skewness=2.0), 3.0), 6)  # exponential
    0.049787
    """
    if moments.variance <= 0.0:
        return 1.0 if x <= moments.mean + 1e-9 * max(abs(moments.mean), abs(x)) else 0.0
    z = (x - moments.mean) / np.sqrt(moments.variance)
    normal = float(ndtr(-z))
    if abs(moments.skewness) < 1e-4:
        return normal
    k = 4.0 / moments.skewness**2
    position = max(k + 2.0 * z / moments.skewness, 0.0)
    if moments.skewness > 0:
        return float(gammaincc(k, position))
    return max(normal, float(gammainc(k, position)))  # the curve ends; the distribution may go on
