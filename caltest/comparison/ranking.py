"""`compare`: models checked alike, measured, and ranked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import stdtrit

from caltest._arguments import arguments
from caltest._parallel import Workers, single_threaded_blas
from caltest._sampling import Rng, child_seed, seed_of
from caltest._tiles import Array
from caltest._visible import as_text, quoted
from caltest.comparison.equality import (
    FEWEST_ROWS,
    LABEL_DRAWS,
    N_RESAMPLES,
    Kind,
    ModelStatistic,
    Resampling,
    StandardErrors,
    about_model,
    checked_value,
    equality,
    orders,
    standard_errors,
)
from caltest.comparison.result import Comparison
from caltest.data import Sample, check_index, sample, without_zeros
from caltest.data.clusters import refuse_clusters
from caltest.data.containers import listed
from caltest.data.labels import without_prefix
from caltest.exceptions import InputError, Row
from caltest.forms import HasGram
from caltest.lenses import Labels, Lens, find_lens, lens_of
from caltest.named import StatisticLike, find_statistic
from caltest.predictive import recognised
from caltest.pvalues import adjusted, check_correction
from caltest.statistics import CKCE, Statistic

# ------------------------------------------------------------------ inputs


def wholes_of(
    models: Mapping[str, Any],
    labels: object,
    lens: str | Lens | None,
    default: str | None,
    weights: object = None,
) -> tuple[dict[str, Sample], Lens | None]:
    """Check every model's input, and that all are of the same rows; find the lens, which fits all."""
    if not isinstance(models, Mapping):
        raise InputError(
            f"models is of type {type(models).__name__}; give predictions by name, as in "
            "{'a': probs_a, 'b': probs_b}."
        )
    if not models:
        raise InputError("there are no models; give two different ones at least.")
    names = {as_text(name) for name in models} - {None}
    if len(models) < 2 or len(names) < len(models):
        raise InputError(f"models has the names {listed(models)}; give two different ones at least.")
    find_lens(lens)  # a wrong name is no model's fault
    given = {str(key): probs for key, probs in models.items()}
    wholes: dict[str, Sample] = {}
    for name, probs in given.items():
        with about_model(name):
            if recognised(probs) is not None:
                raise InputError("these are distributions of numbers; give probabilities of classes.")
            whole = sample(probs, labels, weights=weights)
            refuse_clusters(whole.rows.clusters, "a comparison")
            wholes[name], _ = without_zeros(whole)
    (reference, first), *others = wholes.items()
    if len(first.labels) < FEWEST_ROWS:
        raise InputError(
            f"there are {len(first.labels)} rows; a comparison needs {FEWEST_ROWS} at least."
        )
    for name, other in others:
        check_index(given[reference], given[name], reference, name)
        ones = np.ones(1)
        own, known = (ones if one.rows.weights is None else one.rows.weights for one in (other, first))
        if not np.array_equal(own, known):
            raise InputError(
                f"models {quoted(reference)} and {quoted(name)} have different weights of rows; give "
                "the same rows, counted alike."
            )
        wholes[name] = aligned(reference, first, name, other)
        differ = first.labels != wholes[name].labels
        if differ.any():  # one vector of labels means other classes in another order of columns
            columns, others_of = (each.rows.classes or () for each in (other, first))
            raise InputError(
                f"model {quoted(name)}: the columns are {listed(columns, 4)}, those of model "
                f"{quoted(reference)} {listed(others_of, 4)}, so that the label of "
                f"{Row(int(differ.argmax()))} is not the same class for both; order the columns alike, "
                "or give labels as class names."
            )
    return wholes, lens_of(first.rows, lens, default)


def aligned(reference: str, first: Sample, name: str, other: Sample) -> Sample:
    """Return a sample of the same rows and classes, ordered as the first one's where names tell."""
    known, own = first.rows, other.rows
    if known.probs.shape != own.probs.shape:
        raise InputError(
            f"{reference} has {known.n_samples} rows of {known.n_classes} classes, {name} "
            f"{own.n_samples} of {own.n_classes}; give the same rows and classes."
        )
    if known.classes is None or own.classes is None:
        return other
    names, others = (list(without_prefix(each)[0]) for each in (known.classes, own.classes))
    if set(names) != set(others):
        raise InputError(
            f"the classes of {reference} are {listed(names, 4)}, those of {name} {listed(others, 4)}; "
            "name the columns alike."
        )
    order = [others.index(each) for each in names]
    ordered = own.shown_as(own.probs[:, order], known.classes)
    return Sample(ordered, np.argsort(order)[other.labels])


# ------------------------------------------------------------------ ranking

# At level .05 "ecd" rejects .012 of equal and opposite errors with 35 rows, .024 with 50, .032 with 70.
_FEW_ROWS = 50


@arguments(n_resamples=N_RESAMPLES)
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
    weights: object = None,
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
        For the number of pairs: a name of ``caltest.pvalues.CORRECTIONS``, or None. Default
        "holm": valid however the tests depend on each other.
    weights
        What every row counts, as in :func:`caltest.test`; subsamples draw rows with their weights, and
        standard errors come from these. Default None: all rows count alike.
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
    *Ranking*: by the value on all rows, its bias included. Statistics with a sign ("ecd", "citl",
    "esce", …) rank by their size. Options that are rules (a bandwidth, CKCE's λ and method) are fitted
    to each model's predictions once, on all rows, and kept in the resamples. Bins are made anew.

    *p-values and intervals* are approximate, by t. A difference counts only as far as it exceeds what
    the statistic is on average for calibrated models of these predictions (``if_calibrated``); for one
    without bias take "jkce" or "skce_uq". "Many looks" in the documentation says how standard errors
    are found.

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
    if measure.growth is None:
        raise InputError(
            f"{measure.name!r} grows with the rows by no fixed power, so that subsamples do not tell "
            "its error on all rows; compare by a calibration error such as 'ckce' or 'ece'."
        )
    check_correction(correction)
    wholes, found_lens = wholes_of(models, labels, lens, measure.default_lens, weights)
    effective = next(iter(wholes.values())).rows.effective
    n = len(next(iter(wholes.values())).labels)
    plan = Resampling.checked(resampling, size, n_resamples, n, seed_of(rng))
    workers = Workers(n_jobs, progress)
    with single_threaded_blas():
        label_seed = child_seed(plan.seed, 0, 0)  # apart from those of the resamples
        labels_drawn = np.concatenate(
            [each.rows.sampler(label_seed).draw(0, LABEL_DRAWS) for each in wholes.values()]
        )
        candidates = [
            _candidate(name, measure, whole, found_lens, labels_drawn, workers)
            for name, whole in wholes.items()
        ]
        drawn = plan.values(candidates, workers)
        tiles = [each.gram for each in candidates if each.gram is not None]
        if tiles:
            errors = standard_errors(tiles, n, workers)
        else:
            errors = plan.standard_errors(drawn, n, measure.growth)
            finite = np.isfinite([each.value for each in candidates])
            both = finite[:, None] & finite
            errors = StandardErrors(
                np.where(finite, errors.values, np.inf),
                np.where(both, errors.differences, np.inf),
                np.where(both, errors.sums, np.inf),
            )
    signed = measure.alternatives[0] == "two-sided"
    values = np.array([each.value for each in candidates])
    keys = np.abs(values) if signed else values
    resolution = max(each.resolution for each in candidates)
    order = [int(i) for i in np.argsort(keys, kind="stable")]
    # Degrees of freedom of the errors: the variance of a variance is 2/(n − 1) times its square if what
    # varies is normal; that of the resamples adds to it.
    degrees = 1.0 / (1.0 / max(effective - 1.0, 1.0) + (0.0 if tiles else 1.0 / (plan.n_resamples - 1)))
    # The mean size of each model if it is calibrated; U-statistics have no bias.
    own = [np.zeros(1) if each.gram else each.drawn[number] for number, each in enumerate(candidates)]
    biases = np.array([np.mean(np.abs(each) if signed else each) for each in own])
    differences, difference_errors, pvalues = equality(
        candidates, biases, errors, degrees, signed, resolution
    )
    upper, adjusted_pvalues = np.triu_indices(len(pvalues), 1), np.ones_like(pvalues)
    adjusted_pvalues[upper] = adjusted_pvalues.T[upper] = adjusted(pvalues[upper], correction)
    known = np.isfinite(errors.values)  # an interval is all numbers where the error is unknown
    reach = float(stdtrit(degrees, 0.5 + 0.5 * confidence)) * np.where(known, errors.values, np.inf)
    centre = np.where(known, values, 0.0)
    names = tuple(each.name for each in candidates)
    return Comparison(
        names=names,
        ranking=tuple(names[i] for i in order),
        values=values,
        if_calibrated=biases,
        standard_errors=errors.values,
        intervals=np.column_stack([centre - reach, centre + reach]),
        **orders(np.abs(drawn) if signed else drawn, order, resolution, confidence),
        differences=differences,
        difference_errors=difference_errors,
        pvalues=pvalues,
        adjusted_pvalues=adjusted_pvalues,
        statistic=measure.name,
        measures=measure.measures + ("; ranked by size, whatever the sign" if signed else ""),
        signed=signed,
        errors_from="u_statistic" if tiles else plan.kind,
        confidence=float(confidence),
        correction=correction,
        n_samples=n,
        n_classes=candidates[0].view.rows.n_classes,
        lens=found_lens.label if found_lens else None,
        parameters={each.name: each.measure.parameters for each in candidates},
        resampling=plan.kind,
        n_resamples=plan.n_resamples,
        size=plan.size,
        seed=plan.seed,
        warnings=_notes(candidates, n, differences, difference_errors),
    )


def _candidate(
    name: str,
    measure: Statistic,
    whole: Sample,
    lens: Lens | None,
    labels_drawn: Labels,
    workers: Workers,
) -> ModelStatistic:
    """See a model through the lens, and compute its value: of the labels, and of all those drawn."""
    with about_model(name):
        view = lens.view(whole) if lens else whole
        if isinstance(measure, CKCE) and measure.groups is not None:
            raise InputError(
                "groups belong to fixed rows, which a comparison draws anew; leave them out."
            )
        fitted = measure.fitted(view.rows)
        form = fitted.given(view.rows)
        value = checked_value(fitted, form.value(view.labels, workers))
        seen = lens.reducer(whole.rows)(labels_drawn) if lens else labels_drawn
        drawn = form.of_labels(seen, workers).reshape(-1, LABEL_DRAWS)
    gram = form.gram(view.labels) if isinstance(form, HasGram) else None
    return ModelStatistic(name, fitted, view, value, drawn, gram, form.resolution)


def _notes(
    candidates: Sequence[ModelStatistic], n: int, differences: Array, errors: Array
) -> tuple[str, ...]:
    """Collect what the input and the statistic have to say, and which pairs could not be tested."""
    notes: dict[str, list[str]] = {}
    rows = candidates[0].view.rows
    if rows.weights is not None:
        effective = f"effective n = {rows.effective:,.0f} of {n:,}"
        notes[f"Rows have weights: {effective}."] = [each.name for each in candidates]
    for each in candidates:
        own = [*each.view.rows.notes, *each.measure.notes]
        if not np.isfinite(each.value):
            own.append(
                "The value is infinite, as it is where a label came true that was called impossible. "
                "Its standard error is unknown, and it is not tested against the others."
            )
        for note in own:
            notes.setdefault(note, []).append(each.name)
    everyone = len(candidates)
    found = [
        note if len(names) == everyone else f"{', '.join(names)}: {note}"
        for note, names in notes.items()
    ]
    if n < _FEW_ROWS:
        found.append(
            f"{n} rows are few: p-values of a comparison are approximate and cautious, and only large "
            "differences are found."
        )
    for i, j in combinations(range(everyone), 2):
        if differences[i, j] != 0.0 and errors[i, j] == 0.0:
            pair = f"{candidates[i].name} and {candidates[j].name}"
            found.append(f"{pair} differ without any variation over the rows: that cannot be tested.")
    return tuple(found)
