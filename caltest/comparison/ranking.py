"""`compare`: several models on the same rows, ranked by a calibration error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from caltest._parallel import Workers, single_threaded_blas
from caltest._seeds import Rng, seed_of
from caltest._tiles import Array
from caltest.comparison.resampling import (
    GROWTH,
    Candidate,
    Kind,
    Resampling,
    about_model,
    checked_value,
    order_of,
    signs,
)
from caltest.comparison.result import Comparison
from caltest.comparison.u_statistics import FEWEST_ROWS, StandardErrors, standard_errors
from caltest.data import Sample, sample
from caltest.data.containers import listed, row_at
from caltest.data.labels import without_prefix
from caltest.exceptions import InputError
from caltest.forms import HasGram
from caltest.lenses import Lens, find_lens
from caltest.multiplicity import SMALLEST, adjusted, check_correction
from caltest.predictive import recognised
from caltest.statistics import Statistic
from caltest.testing import StatisticLike, find_statistic, viewed


def compare(
    models: Mapping[str, Any],
    labels: object,
    statistic: StatisticLike = "ckce",
    *,
    lens: str | Lens | None = None,
    resampling: Kind = "subsampling",
    n_resamples: int = 500,
    size: int | None = None,
    confidence: float = 0.95,
    correction: str | None = "holm",
    rng: Rng = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> Comparison:
    """Rank models by a calibration error, and say how sure the ranking is.

    Parameters
    ----------
    models
        At least two predictions of the same n ≥ 4 rows by name; each (n, m), or (n,) probabilities of
        class 1, of any kind that :func:`caltest.test` takes.
    labels
        (n,) as in :func:`caltest.test`, one for all models.
    statistic
        As in :func:`caltest.test`. Default "ckce", which was made for comparison: it hangs less than
        others on how a model's predictions are distributed. A function must depend on its two
        arguments alone, and estimate a number that does not grow with n.
    lens
        As in :func:`caltest.test`. Default: the statistic's own.
    resampling
        "subsampling" (default): rows drawn without replacement. "bootstrap": n rows with replacement;
        its duplicated rows bias kernel statistics upward (they pair with themselves) and binned ones
        too (their errors repeat), which can change a ranking.
    n_resamples
        Default 500: a share is known to ± 0.04 at worst, and CKCE of five models on 500 rows takes
        half a minute on two cores. The same rows are drawn for all models.
    size
        Rows of a subsample, below n. Default min(500, n // 2): 500 as in the source; at most half, so
        that subsamples differ.
    confidence
        Of all intervals, and 1 − confidence is the level of the summary. Default 0.95.
    correction
        For the number of pairs: a name of ``caltest.multiplicity.CORRECTIONS``, or None. Default
        "holm": valid however the tests depend on each other.
    rng, n_jobs, progress
        As in :func:`caltest.test`.

    Returns
    -------
    Comparison
        Frozen; ``print`` it, or call ``.table()``, ``.pairs()``, ``.to_dict()``, ``.summary()``.

    Raises
    ------
    InputError
        If a model is no set of predictions of these rows (the message names it), or an option cannot
        be used.

    Notes
    -----
    *Ranking*: by the value on all rows. Statistics with a sign ("ecd", "citl", "esce", …) rank by
    their size. Options that are rules (a bandwidth, CKCE's λ and method) are fitted to each model's
    predictions once, on all rows, and kept in the resamples: so these estimate the same quantity as
    the value does, and are cheap. Bins are part of the statistic and made anew.

    *Standard errors*: of U-statistics ("skce_uq", "jkce") and of their differences, from Hoeffding's
    variance with both terms. So the test of equal error keeps its level if both models are calibrated
    too, where the first term vanishes. The bandwidth's own chance is left out.
    Of other statistics, from the resamples: the standard deviation over subsamples of b rows, times
    √(b/n)/√(1 − b/n). That is right for a smooth statistic of a model that is not calibrated; of a
    calibrated one the error falls faster than 1/√n, so what is stated is too large and the test
    cautious. A statistic that is biased in small samples ("ckce", "skce_b", "ece", …) has a bias of
    its own for every model, and two calibrated models whose predictions are spread differently may be
    told apart by that. Intervals and p-values are normal.

    *Proportions* say how often the ranking holds on so many rows drawn from these; their Wilson
    intervals account for the number of resamples only.

    References
    ----------
    Moskvichev and Sejdinovic 2025, section 5.1 (ranking); Hoeffding 1948 (variance); Politis, Romano,
    Wolf, "Subsampling", 1999.

    Examples
    --------
    >>> import caltest
    >>> from caltest.datasets import load_digits_predictions
    >>> digits = [load_digits_predictions(name) for name in ("naive_bayes", "platt_svm")]
    >>> models = {each.model: each.probs for each in digits}
    >>> comparison = caltest.compare(models, digits[0].labels, "skce_uq", n_resamples=50, rng=0)
    >>> comparison.ranking, comparison.order_proportion
    (('platt_svm', 'naive_bayes'), 1.0)
    >>> bool(comparison.pvalues[0, 1] < 0.001)
    True
    """
    measure = find_statistic(statistic)
    check_correction(correction)
    _check_confidence(confidence)
    views, lens_label = _views(models, labels, lens, measure.default_lens)
    n = len(next(iter(views.values())).labels)
    plan = Resampling.checked(resampling, size, n_resamples, n, seed_of(rng))
    workers = Workers(n_jobs, progress)
    with single_threaded_blas():
        candidates = [_candidate(name, measure, view, workers) for name, view in views.items()]
        drawn = plan.values(candidates, workers)
        errors = _standard_errors(candidates, plan, drawn, workers)
    values = np.array([each.value for each in candidates])
    keys = np.abs(values) if _signed(measure) else values
    resolution = max(each.resolution for each in candidates)
    order = [int(i) for i in np.argsort(keys, kind="stable")]
    held = order_of(np.abs(drawn) if _signed(measure) else drawn, order, resolution, confidence)
    differences, pvalues = _tests(keys, errors.differences, resolution)
    names = tuple(each.name for each in candidates)
    return Comparison(
        names=names,
        ranking=tuple(names[i] for i in order),
        values=values,
        standard_errors=errors.values,
        intervals=_intervals(values, errors.values, confidence),
        first_proportions=held.first,
        first_intervals=held.first_intervals,
        pair_proportions=held.pairs,
        pair_intervals=held.pair_intervals,
        order_proportion=held.whole,
        order_interval=held.whole_interval,
        differences=differences,
        difference_errors=errors.differences,
        pvalues=pvalues,
        adjusted_pvalues=_adjusted(pvalues, correction),
        statistic=measure.name,
        measures=measure.measures + ("; ranked by size, whatever the sign" if _signed(measure) else ""),
        signed=_signed(measure),
        errors_from="u_statistic" if candidates[0].gram else plan.kind,
        confidence=float(confidence),
        correction=correction,
        n_samples=n,
        n_classes=candidates[0].view.predictions.n_classes,
        lens=lens_label,
        parameters={each.name: each.measure.parameters for each in candidates},
        resampling=plan.kind,
        n_resamples=plan.n_resamples,
        size=plan.size,
        seed=plan.seed,
        warnings=_notes(candidates, differences, errors.differences),
    )


# ------------------------------------------------------------------ input


def _check_confidence(confidence: float) -> None:
    if not isinstance(confidence, Real) or not 0.0 < confidence < 1.0:
        raise InputError(f"confidence is {confidence!r}; give one between 0 and 1, such as 0.95.")


def _views(
    models: Mapping[str, Any], labels: object, lens: str | Lens | None, default: str | None
) -> tuple[dict[str, Sample], str | None]:
    """Check every model's input, see it through the lens, and check that all are of the same rows."""
    if not isinstance(models, Mapping):
        raise InputError(
            f"models is of type {type(models).__name__}; give predictions by name, as in "
            "{'a': probs_a, 'b': probs_b}."
        )
    if len(models) < 2 or len({str(name) for name in models}) < len(models):
        raise InputError(f"models has the names {listed(models)}; give two different ones at least.")
    find_lens(lens)  # a wrong name is no model's fault
    wholes: dict[str, Sample] = {}
    views: dict[str, Sample] = {}
    lens_label = None
    for name, probs in models.items():
        with about_model(str(name)):
            if recognised(probs) is not None:
                raise InputError("these are distributions of numbers; give probabilities of classes.")
            whole = wholes[str(name)] = sample(probs, labels)
            view, lens_label = viewed(whole.predictions, whole.labels, lens, default)
            assert isinstance(view, Sample)  # class probabilities stay such through a lens
            views[str(name)] = view
    _check_alike(wholes)
    return views, lens_label


def _check_alike(wholes: dict[str, Sample]) -> None:
    """Raise unless all have as many classes, in the same order where names tell."""
    (reference, first), *others = wholes.items()
    n, m = first.predictions.probs.shape
    if n < FEWEST_ROWS:
        raise InputError(f"there are {n} rows; a comparison needs {FEWEST_ROWS} at least.")
    for name, other in others:
        with about_model(name):
            if other.predictions.n_classes != m:
                raise InputError(
                    f"there are {other.predictions.n_classes} classes, and {m} in model {reference!r}; "
                    "give probabilities of the same classes."
                )
            _check_names(reference, first, other)


def _check_names(reference: str, first: Sample, other: Sample) -> None:
    one, two = first.predictions.classes, other.predictions.classes
    if one is None or two is None:
        return
    known, own = without_prefix(one)[0], without_prefix(two)[0]
    if known == own or set(known) != set(own):
        return
    differ = np.array(known)[first.labels] != np.array(own)[other.labels]
    if differ.any():
        raise InputError(
            f"the columns are {listed(own, 4)}, those of model {reference!r} {listed(known, 4)}, so "
            f"that the label of {row_at(int(differ.argmax()))} is not the same class for both; order "
            "the columns alike, or give labels as class names."
        )


# ------------------------------------------------------------------ numbers


def _signed(measure: Statistic) -> bool:
    return measure.alternatives[0] == "two-sided"


def _candidate(name: str, measure: Statistic, view: Sample, workers: Workers) -> Candidate:
    with about_model(name):
        fitted = measure.fitted(view.predictions)
        form = fitted.given(view.predictions)
        value = checked_value(fitted, form.value(view.labels, workers))
    gram = form.gram(view.labels) if isinstance(form, HasGram) else None
    return Candidate(name, fitted, view, value, gram, form.resolution)


def _standard_errors(
    candidates: Sequence[Candidate], plan: Resampling, drawn: Array, workers: Workers
) -> StandardErrors:
    measure, n = candidates[0].measure, len(candidates[0].view.labels)
    tiles = [each.gram for each in candidates if each.gram is not None]
    if tiles:
        return standard_errors(tiles, n, workers)
    keys = np.abs(drawn) if _signed(measure) else drawn
    errors = plan.standard_errors(drawn, keys, n, GROWTH.get(measure.name, 0.0))
    finite = np.isfinite([each.value for each in candidates])
    both = finite[:, None] & finite
    return StandardErrors(
        np.where(finite, errors.values, np.inf), np.where(both, errors.differences, np.inf)
    )


def _intervals(values: Array, errors: Array, confidence: float) -> Array:
    """Return values ± z errors; all numbers where the error is unknown."""
    known = np.isfinite(errors)
    reach = float(ndtri(0.5 + 0.5 * confidence)) * np.where(known, errors, np.inf)
    centre = np.where(known, values, 0.0)
    return np.column_stack([centre - reach, centre + reach])


def _tests(keys: Array, errors: Array, resolution: float) -> tuple[Array, Array]:
    """Return differences of keys and two-sided normal p-values; equal keys have difference 0, p 1."""
    tied = signs(keys[:, None], keys, resolution) == 0
    with np.errstate(invalid="ignore"):  # inf − inf
        differences = np.where(tied, 0.0, keys[:, None] - keys)
    usable = ~tied & np.isfinite(errors) & (errors > 0.0)
    z = np.abs(differences) / np.where(usable, errors, 1.0)
    return differences, np.where(usable, np.clip(2.0 * ndtr(-z), SMALLEST, 1.0), 1.0)


def _adjusted(pvalues: Array, correction: str | None) -> Array:
    upper = np.triu_indices(len(pvalues), 1)
    found = np.ones_like(pvalues)
    found[upper] = found.T[upper] = adjusted(pvalues[upper], correction)
    return found


def _notes(candidates: Sequence[Candidate], differences: Array, errors: Array) -> tuple[str, ...]:
    """Collect what the input and the statistic have to say, and which pairs could not be tested."""
    notes: dict[str, list[str]] = {}
    for each in candidates:
        own = [*each.view.predictions.notes, *each.measure.notes]
        if not np.isfinite(each.value):
            own.append(
                "The value is infinite: a label came true that was called impossible. Its standard "
                "error is unknown, and it is not tested against the others."
            )
        for note in own:
            notes.setdefault(note, []).append(each.name)
    everyone = len(candidates)
    found = [
        note if len(names) == everyone else f"{', '.join(names)}: {note}"
        for note, names in notes.items()
    ]
    for i, j in combinations(range(everyone), 2):
        if differences[i, j] != 0.0 and errors[i, j] == 0.0:
            pair = f"{candidates[i].name} and {candidates[j].name}"
            found.append(f"{pair} differ without any variation over the rows: that cannot be tested.")
    return tuple(found)
