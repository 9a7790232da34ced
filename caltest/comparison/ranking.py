"""`compare`: models checked alike, measured, and ranked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from scipy.special import stdtrit

from caltest._arguments import arguments
from caltest._parallel import Workers, single_threaded_blas
from caltest._sums import Array
from caltest._visible import as_text, quoted
from caltest.auditing.groups import known_before, notes_on, read_groups
from caltest.comparison.equality import (
    FEWEST_ROWS,
    LABEL_DRAWS,
    N_RESAMPLES,
    Kind,
    ModelStatistic,
    Resampling,
    about_model,
    clusters_of,
    equality,
    model_statistics,
    orders,
    standard_errors,
)
from caltest.comparison.errors import lens_for, scored_by, sizes_of
from caltest.comparison.result import Comparison
from caltest.data import Rows, Sample, sample
from caltest.data.attributes import effective_number
from caltest.data.containers import check_index, listed
from caltest.data.labels import without_prefix
from caltest.data.rows import without_zeros
from caltest.data.sample import sample_of_law
from caltest.exceptions import InputError, Row
from caltest.forms import FEWEST_CLUSTERS
from caltest.laws import Predictive, Quantiles, Survival, recognised
from caltest.laws.distributions import finite_numbers
from caltest.lenses import Lens, find_lens, lens_of
from caltest.pvalues import adjusted, check_correction
from caltest.sampling import Rng, child_seed, generator, seed_of
from caltest.statistics import StatisticLike, find_statistic

# ------------------------------------------------------------------ inputs


def wholes_of(
    models: Mapping[str, Any],
    labels: object,
    lens: str | Lens | None,
    default: str | None,
    counting: Mapping[str, Any],
    numbers: bool = False,
) -> tuple[dict[str, Sample], Lens | None]:
    """Check every model's input, and that all are of the same rows; find the lens, which fits all."""
    if not isinstance(models, Mapping):
        raise InputError(
            f"models is of type {type(models).__name__}; give predictions by name, as in "
            "{'a': probs_a, 'b': probs_b}."
        )
    if not models:
        raise InputError("there are no models; give at least two.")
    names = {as_text(name) for name in models} - {None}
    if len(models) < 2 or len(names) < len(models):
        raise InputError(f"models has the names {listed(models)}; give at least two different ones.")
    find_lens(lens)  # a wrong name is no model's fault
    given = {str(key): probs for key, probs in models.items()}
    wholes: dict[str, Sample] = {}
    for name, probs in given.items():
        with about_model(name):
            law = sample_of_law(probs, labels, **counting)
            if law is not None and not numbers:
                raise InputError("these are distributions of numbers; give probabilities of classes.")
            if law is not None and isinstance(law.rows.law, Survival):
                raise InputError("times until an event are not compared; audit each of the models.")
            wholes[name] = without_zeros(law or sample(probs, labels, **counting))
            stated, of_first = (x.rows.law for x in (wholes[name], next(iter(wholes.values()))))
            if isinstance(stated, Predictive) != isinstance(of_first, Predictive):
                raise InputError(
                    f"these are {stated.about}, and those of the first model {of_first.about}; give "
                    "models of one kind."
                )
            if isinstance(stated, Predictive) and stated.dimension is not None:
                raise InputError(
                    f"these are about vectors of {stated.dimension} entries; give numbers, an entry at "
                    "a time."
                )
    (reference, first), *others = wholes.items()
    clusters = clusters_of(first.rows)
    units = (len(first.labels), "rows") if clusters is None else (clusters.count, "clusters")
    if units[0] < FEWEST_ROWS:
        that_count = "" if first.rows.are_alike else " that count"
        raise InputError(
            f"there are {units[0]} {units[1]}{that_count}; a comparison needs {FEWEST_ROWS} at least."
        )
    alone = np.arange(len(first.labels))  # every row by itself
    for name, other in others:
        check_index(given[reference], given[name], reference, name)
        for what, alike in (("weights", "counted alike"), ("clusters", "in the same clusters")):
            own, known = (getattr(each.rows, what) for each in (other, first))
            if not np.array_equal(alone if own is None else own, alone if known is None else known):
                raise InputError(
                    f"models {quoted(reference)} and {quoted(name)} have different {what} of rows; "
                    f"give the same rows, {alike}."
                )
        if first.rows.n_classes is None:
            if other.rows.n_samples != first.rows.n_samples:
                raise InputError(
                    f"{reference} has {first.rows.n_samples} rows, {name} {other.rows.n_samples}; give "
                    "the same rows."
                )
            continue
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
    statistic: StatisticLike | None = None,
    *,
    lens: str | Lens | None = None,
    groups: object = None,
    class_names: Sequence[str | int] | None = None,
    resampling: Kind = "subsampling",
    n_resamples: int = 500,
    size: int | None = None,
    confidence: float = 0.95,
    correction: str | None = "holm",
    weights: object = None,
    clusters: object = None,
    sampling_rates: Mapping[Any, float] | None = None,
    logits: bool = False,
    rng: Rng = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> Comparison:
    """Say how far off models are, in points, and which differ; and rank them by a statistic.

    Parameters
    ----------
    models
        At least two models' predictions of the same n ≥ 4 rows, by name; each (n, m), or (n,)
        probabilities of class 1, in any form that :func:`caltest.test` takes; or distributions of
        numbers, see Notes.
    labels
        Observed classes, or numbers, (n,), as in :func:`caltest.test`; the same for all models.
    statistic
        As in :func:`caltest.test`. Default None: "ckce", which was made for comparisons (it depends
        less than others on how a model's predictions are distributed), and "pit_ad" of numbers (of
        a lens, and of quantile forecasts in clusters, "citl"). A function must depend on its two
        arguments alone, and must estimate a number that does not grow with n.
    lens
        As in :func:`caltest.test`. Default: the statistic's own. Errors in points are those of its
        probability if it shows a single one; else of class 1 of two classes, or of the top class; of
        numbers, those of how often outcomes lie in the central 80% interval.
    groups
        Columns that group the rows, as :func:`caltest.audit` takes them: errors in points are
        also found in every group of 50 rows or more. Columns are not crossed. Default None: no groups.
    class_names
        Names of the classes, in the order of the columns, as in :func:`caltest.test`. Default None.
    resampling
        "subsampling" (default): rows are drawn without replacement. "bootstrap": n rows are drawn
        with replacement. Repeated rows then bias kernel statistics upward (they pair with
        themselves), and binned ones too (their errors repeat), which can change the ranking. If
        rows are in clusters, whole clusters are drawn.
    n_resamples
        Default 500: a share is then known to ±0.04 at worst, and the CKCE of five models on 500
        rows takes half a minute on two cores. The same rows are drawn for all models.
    size
        Rows per subsample, fewer than n. Default min(500, n // 2): 500 as in the source, and at
        most half, so that subsamples differ. With clusters, the number of clusters per subsample;
        by default as many as hold about 500 rows, at least 20 and at most half of them.
    confidence
        Of all intervals; 1 − confidence is also the level used in the summary. Default 0.95.
    correction
        How p-values are adjusted for the number of pairs: a name in
        ``caltest.pvalues.CORRECTIONS``, or None. Default "holm": valid whatever the dependence
        between the tests.
    weights
        How much each row counts, as in :func:`caltest.test`. Subsamples draw rows together with
        their weights, and standard errors come from the subsamples. Default None: all rows have
        equal weight.
    clusters
        Which rows belong together, (n,), as in :func:`caltest.test`: rows with the same entry may
        depend on each other in any way. At least four clusters are needed. Default None: rows are
        independent. See Notes.
    sampling_rates
        If rows were sampled by their label: for each class, the share of its rows that was kept,
        as in :func:`caltest.test`. Every model's predictions are transformed to what they mean
        among the rows kept, and models are compared there. Default None: rows were not sampled by
        label.
    logits
        Whether all models' predictions are logits, as in :func:`caltest.test`. Default False.
    rng, n_jobs, progress
        As in :func:`caltest.test`.

    Returns
    -------
    Comparison
        Frozen; ``print`` it, look at ``.errors`` and ``.gap(model, other)``, or call ``.table()``,
        ``.pairs()``, ``.plot()``, ``.to_dict()``.

    Raises
    ------
    InputError
        If one of the models is not a set of predictions of these rows (the message names it), or
        an option cannot be used.

    Notes
    -----
    *Errors in points* are predicted less observed: on average, where errors of opposite sign cancel,
    and in absolute value over tenths of the model's own predictions (of a group, fifths), where they do
    not. The intervals are exact, for any number of rows: Clopper and Pearson's, for mean absolute
    errors those
    of every choice of signs. With weights or clusters they are Chernoff bounds, as in an audit. All of
    them are correct together. Differences between two models have paired t intervals, over rows or
    clusters, which are about right; the difference of two mean errors of the same event is known.

    *Numbers.* Errors in points are of coverage, over tenths of the rows by the model's own predicted
    level (the median), or by the probability of "below:c" and "above:c". In place of log loss and Brier
    score stands the CRPS, with paired intervals. The mean error in the outcome's units is an estimate,
    with a t interval of its own. Quantile forecasts are compared at levels that all of them state;
    of them no numbers can be drawn, so that what did not happen is not allowed for in p-values and
    intervals of differences.

    *Ranking.* Models are ranked by the value on all rows, bias included. Statistics with a sign
    ("ecd", "citl", "esce", …) are ranked by their absolute value. Options that are rules (a
    bandwidth, the λ and method of the CKCE) are fitted to each model's predictions once, on all
    rows, and kept in the resamples; bins are made anew.

    *p-values and intervals* are approximate, and use Student's t. A difference counts only as far
    as it exceeds the possible bias of the larger value: what the statistic is on average for a
    calibrated model with these predictions (``if_calibrated``). "jkce" and "skce_uq" have no such
    bias. "Many looks" in the documentation explains the standard errors.

    *Clusters.* Means over pairs of rows are taken over pairs from different clusters, and standard
    errors are those of sums over clusters. The bias of a statistic for a calibrated model is found
    from random signs of clusters, as in :class:`caltest.nulls.ClusterSigns`. All this is
    approximate, and right as the number of clusters grows. "cox", "mcb_brier", "mcb_log" and your
    own functions cannot be used with clusters.

    *Proportions* show how often the ranking holds in resamples of the given size; their Wilson
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
    >>> {each.model: round(each.absolute[1], 2) for each in comparison.errors}
    {'naive_bayes': 0.15, 'platt_svm': 0.07}
    """
    each = models.values() if isinstance(models, Mapping) else ()
    laws = any(recognised(x.law if isinstance(x, Rows) else x) is not None for x in each)
    usual = ("pit_ad" if lens is None else "citl") if laws else "ckce"
    measure = find_statistic(usual if statistic is None else statistic)
    if measure.growth is None:
        raise InputError(
            f"{measure.name!r} grows with the rows by no fixed power, so that subsamples do not tell "
            "its error on all rows; compare by a calibration error such as 'ckce' or 'ece'."
        )
    check_correction(correction)
    counting = {"weights": weights, "clusters": clusters, "sampling_rates": sampling_rates}
    counting |= {"class_names": class_names, "logits": logits}
    wholes, found_lens = wholes_of(models, labels, lens, measure.default_lens, counting, numbers=True)
    rows = next(iter(wholes.values())).rows
    outcomes = None
    if rows.clusters is not None and found_lens is None and scored_by(wholes):
        if statistic is not None:
            raise InputError(
                f"in clusters no form of {measure.name!r} is valid for quantile forecasts; give a "
                "lens, such as 'quantile:0.5', or leave the statistic out."
            )
        measure, found_lens = find_statistic("citl"), lens_for(None, wholes)
    if laws:
        outcomes = finite_numbers("the outcomes", labels).reshape(-1)
        outcomes = outcomes if rows.places is None else outcomes[rows.places]
    given: Any = labels
    n_given = rows.n_samples if rows.places is None else len(given)  # rows of weight 0 are left out
    probs = next(iter(models.values()))
    columns = read_groups(groups, n_given, rows.places, probs=probs, labels=labels)
    groupings, afterwards = known_before(columns, next(iter(wholes.values())))
    n, together = rows.n_samples, clusters_of(rows)
    units, effective = n, rows.effective
    if together is not None:  # clusters, by their rows as these count
        units = together.count
        effective = effective_number(np.bincount(together.codes, rows.weights).astype(np.float64))
    plan = Resampling.checked(resampling, size, n_resamples, n, seed_of(rng), together)
    workers = Workers(n_jobs, progress)
    with single_threaded_blas():
        label_seed = child_seed(plan.seed, 0, 0)  # apart from those of the resamples
        samplers = [each.rows.sampler(label_seed) for each in wholes.values()]
        measured = partial(model_statistics, wholes, measure, found_lens, label_seed, workers)
        candidates = measured([each.draw(0, LABEL_DRAWS) for each in samplers])
        carrying = min(each.clusters for each in candidates)
        if together is not None and carrying < FEWEST_CLUSTERS:
            # Standard errors are at least those of labels for which the rows of a cluster agree.
            quantiles = generator(label_seed).random((LABEL_DRAWS, units))[:, together.codes]
            laws_of = [whole.rows.law for whole in wholes.values()]
            candidates = measured(
                [
                    law.cells(quantiles)
                    if isinstance(law, Quantiles)
                    else law.quantile(quantiles)
                    if isinstance(law, Predictive)
                    else sampler.at(quantiles)
                    for sampler, law in zip(samplers, laws_of, strict=True)
                ]
            )
            effective = min(effective, carrying)
        drawn = plan.values(candidates, workers)
        values = np.array([each.value for each in candidates])
        tiles = [each.gram for each in candidates if each.gram is not None]
        if tiles:
            errors = standard_errors(tiles, units, workers)
        else:
            usable = np.where(np.isfinite(values), drawn, np.inf)
            errors = plan.standard_errors(usable, units, measure.growth or 0.0)
    signed = measure.alternatives[0] == "two-sided"
    keys = np.abs(values) if signed else values
    resolution = max(each.resolution for each in candidates)
    order = [int(i) for i in np.argsort(keys, kind="stable")]
    # Degrees of freedom of the errors: the variance of a variance is 2/(n − 1) times its square if what
    # varies is normal; that of the resamples adds to it.
    degrees = 1.0 / (1.0 / max(effective - 1.0, 1.0) + (0.0 if tiles else 1.0 / (plan.n_resamples - 1)))
    differences, difference_errors, pvalues = equality(candidates, errors, degrees, signed, resolution)
    upper, adjusted_pvalues = np.triu_indices(len(pvalues), 1), np.ones_like(pvalues)
    adjusted_pvalues[upper] = adjusted_pvalues.T[upper] = adjusted(pvalues[upper], correction)
    known = np.isfinite(errors.values)  # an interval is all numbers where the error is unknown
    reach = float(stdtrit(degrees, 0.5 + 0.5 * confidence)) * np.where(known, errors.values, np.inf)
    centre = np.where(known, values, 0.0)
    names = tuple(each.name for each in candidates)
    points, left_out = sizes_of(wholes, found_lens, groupings, confidence, outcomes)
    return Comparison(
        **points,
        names=names,
        ranking=tuple(names[i] for i in order),
        values=values,
        if_calibrated=np.array([each.bias for each in candidates]),
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
        n_predicted=rows.n_classes,
        lens=found_lens.label if found_lens else None,
        parameters={each.name: each.measure.parameters for each in candidates},
        resampling=plan.kind,
        n_resamples=plan.n_resamples,
        size=plan.size,
        seed=plan.seed,
        warnings=(
            *_notes(candidates, units, carrying, differences, difference_errors),
            *map(str, afterwards),
            *notes_on(groupings),
            *left_out,
        ),
        n_clusters=None if together is None else together.count,
        sampling_rates=None if sampling_rates is None else dict(sampling_rates),
    )


def _notes(
    candidates: Sequence[ModelStatistic], units: int, carrying: float, differences: Array, errors: Array
) -> tuple[str, ...]:
    """Collect what the input and the statistic have to say, and which pairs could not be tested."""
    notes: dict[str, list[str]] = {}
    rows = candidates[0].view.rows
    if not rows.are_alike:
        effective = f"effective n = {rows.effective:,.0f} of {rows.n_samples:,}"
        notes[f"Rows have weights: {effective}."] = [each.name for each in candidates]
    for each in candidates:
        own = [*each.view.rows.notes, *each.measure.notes]
        if not np.isfinite(each.value):
            own.append(
                "The value is infinite, as it is where a label of probability 0 was observed. "
                "Its standard error is unknown, and it is not tested against the others."
            )
        for note in own:
            notes.setdefault(note, []).append(each.name)
    everyone, what = len(candidates), "rows" if rows.clusters is None else "clusters"
    found = [
        note if len(names) == everyone else f"{', '.join(names)}: {note}"
        for note, names in notes.items()
    ]
    if units < _FEW_ROWS:
        found.append(
            f"{units} {what} are few: p-values of a comparison are approximate and cautious, and only "
            "large differences are found."
        )
    if carrying < FEWEST_CLUSTERS:
        found.append(
            f"Few clusters carry the statistic, by the predictions: about {carrying:.0f} of {units:,} "
            "in effect. p-values and intervals allow for that, but they are approximate."
        )
    for i, j in combinations(range(everyone), 2):
        if differences[i, j] != 0.0 and errors[i, j] == 0.0:
            pair = f"{candidates[i].name} and {candidates[j].name}"
            found.append(f"{pair} differ without any variation over the {what}: that cannot be tested.")
    return tuple(found)
