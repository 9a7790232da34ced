"""`test` and `estimate`: from predictions and labels to an answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import numpy as np

from caltest._arguments import arguments
from caltest._parallel import Workers, single_threaded_blas
from caltest._sampling import Rng, seed_of
from caltest._work import Work, announce, together
from caltest.data import (
    Rows,
    Sample,
    impossible_labels,
    impossible_rows,
)
from caltest.exceptions import Argument, InputError
from caltest.files import Stored
from caltest.forms import Binned, Combined, Form, HasSigns, LabelFunction, Side
from caltest.inputs import Looked, looked_at, stored_in
from caltest.lenses import Lens, event, find_lens, seen
from caltest.named import (
    StatisticLike,
    check_alternative,
    find_null,
    find_statistic,
    possible_nulls,
)
from caltest.nulls import (
    Answer,
    ClusterSigns,
    Guarantee,
    MonteCarlo,
    Null,
    Question,
    answer_of,
    observed_value,
)
from caltest.predictive import Predictive, PredictiveSample
from caltest.pvalues import Alternative
from caltest.resampling import (
    Column,
    adds_up,
    columns_of,
    glimpse_of,
    signed_columns,
    table_of_blocks,
)
from caltest.results import CalibrationResult
from caltest.statistics import AllRowsNeededError, Partwise, Statistic
from caltest.statistics.skce import HELD_UP_TO
from caltest.text.numbers import counted
from caltest.tolerance import (
    ToleranceAlternative,
    check_possible,
    claim,
    impossible_on,
    sided_answer,
)


class _Default(str):
    """A name that nobody gave: what it stands for depends on what is asked, see `_default`."""


_DEFAULT = _Default("omnibus")


@arguments()
def test(
    probs: object,
    labels: object = None,
    statistic: StatisticLike = _DEFAULT,
    *,
    null: str | Null | None = None,
    lens: str | Lens | None = None,
    alternative: Alternative | Side | None = None,
    tolerance: float | None = None,
    rounding: float | None = None,
    weights: object = None,
    clusters: object = None,
    sampling_rates: Mapping[Any, float] | None = None,
    n_resamples: int = 999,
    rng: Rng = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> CalibrationResult:
    """Test whether the probabilities mean what they say.

    Parameters
    ----------
    probs
        (n, m) rows on the simplex, or (n,) probabilities of class 1: arrays, lists, data frames,
        CPU tensors (see :func:`caltest.data.sample`). Or predicted distributions of numbers, see
        :mod:`caltest.predictive`. Or a file that :func:`caltest.files.scan` opened, which holds the
        labels too; such a file, or a memory-mapped array, is read in one pass where rows are many.
    labels
        (n,) integers 0..m−1, or class names where ``probs`` has column names. For distributions,
        the outcomes, (n,) or (n, d).
    statistic
        A name (``caltest.statistics.STATISTICS`` lists them), an object of
        :mod:`caltest.statistics`, or a function ``f(probs, labels) -> float``, large where
        calibration is bad, which gets an exact p-value too if it depends on the order of the rows only
        where that tells nothing about the labels. One that gives the same labels another value in
        the end (it remembers, or draws random numbers) is refused.
        Default "omnibus": several ways to err at once, whose ``parts`` have p-values of their own in
        the result. It goes with the exact null; with another null the default is "skce_uq", which
        sees every kind of miscalibration too, given enough rows, but some kinds only weakly. With a
        tolerance, "scan" (default), "max_bin", "citl" or "esce".
    null
        A name (``caltest.nulls.NULLS`` lists them) or an object of :mod:`caltest.nulls`. Default
        "monte_carlo": exact for every statistic and sample size. With clusters, "cluster_signs"
        (default) or "one_per_cluster".
    lens
        "top_label", "class:3", "top:5", "sorted" or an object of :mod:`caltest.lenses`. Default
        None: the full probability vector.
    alternative
        "greater", "less" or "two-sided". Default: the statistic's own. With a tolerance, "over"
        (claims too much), "under" (claims too little) or "two-sided" (default); "over" and "under"
        without one are with a tolerance of 0.
    tolerance
        Test whether the model is wrong by more than this anywhere, not whether it is wrong: a
        difference of probabilities from 0 to below 1, 0.02 for two points. Default None: the test of
        calibration. It is about one probability: more than two classes are seen through the lens
        "top_label" unless another is asked for. See Notes.
    rounding
        The step in which probabilities were stated: 0.05 for 0%, 5%, …, 100%. A stated 70% then stands
        for 67.5 to 72.5%, and rows need sum to 1 only as rounding allows. It is about one probability:
        more than two classes need a lens. Default None: what is stated is meant. See Notes.
    weights
        What every row counts, (n,): survey weights, or importance weights where the population is
        another one. Numbers that are not negative, fixed by anything but the labels (never by how rows
        of a class were sampled). Default None: all rows count alike. See Notes.
    clusters
        A column of n names or numbers, in any container: rows of equal entries (several a patient, a
        user, a day) may depend on each other in any way. Default None: rows are independent. See Notes.
    sampling_rates
        By class (its name, or its column), the share of its rows that were kept: {0: 0.01} if one row
        of class 0 in a hundred was, and all others. Default None: rows were not sampled by their label.
        See Notes.
    n_resamples
        Number of resamples, where the null draws any. Default 999: p-values down to 0.001.
    rng
        None, an integer, a SeedSequence or a Generator (SPEC 7). The same ``rng`` gives the same
        numbers for every ``n_jobs`` and every joblib backend.
    n_jobs
        Workers, as in joblib: None is one, −1 all cores.
    progress
        Show a bar on standard error during long work, if that is a terminal.

    Notes
    -----
    The default looks at all pairs of rows up to 5 000 rows (of more than 16 classes, while n² m is at
    most 4e8). For more rows its kernels are of low rank, and its cost grows as n. That is exact too,
    and the result says so. Of two classes it takes one pass over the rows, however many. "skce_uq" by
    name looks at all pairs always; what will take more than a minute says so before it starts. Files
    of any length are read in one pass: :func:`caltest.files.scan`.

    *Tolerance ε*: the hypothesis is that nowhere P(event) < p − ε ("over"), or > p + ε ("under"). Of
    all models within it, max(p − ε, 0) or min(p + ε, 1) gives a statistic that moves one way in every
    label its largest values, and the p-value is that of this one model: valid in every finite sample,
    for all of them (:mod:`caltest.tolerance`). "two-sided" doubles the smaller of both p-values. A
    p-value need not grow with ε; for the largest ε that is refuted take
    :func:`caltest.miscalibration_bounds`.

    *Weights*: means over rows become those in which rows count as their weights say, bins of equal
    mass hold equal weight, a pair of rows counts the product of both, and bandwidths are medians of
    pairs as they count. Labels are drawn and weights kept, so the exact null is exact. Weights that
    are all equal change nothing. ``parameters["effective_n"]`` is (Σ w)²/Σ w²: as noisy as so many
    rows that count alike. The nulls "bound", "bootstrap", "wild_bootstrap" and "spectral" count rows
    and are refused, as is "chi2" of "cox". A function of your own takes the weights third,
    ``f(probs, labels, weights)``.
    *Clusters*: labels drawn row by row would take rows that repeat each other for new evidence. The
    default null then draws signs for whole clusters (:class:`caltest.nulls.ClusterSigns`), right as the
    number of clusters grows; "one_per_cluster" is exact, and weak. Means over pairs of rows are taken
    over pairs of different clusters.

    *Sampling rates*: where a row of class k is kept with a known probability s_k, independently,
    P(Y = k) among the rows kept is g_k s_k / Σ_l g_l s_l. Predictions are transformed like this, and
    all that follows is about them: the top class is theirs. It is exact if rates are fixed beforehand,
    and approximate where numbers of rows are, as in case–control studies. Weights 1/s_k would know the
    labels.

    *Rounding r*: a stated value is within r/2 of what was meant, and the sum of k values (the top 5, a
    set of classes) within k r/2. That is a tolerance; one that is given besides is added to it.

    Returns
    -------
    CalibrationResult
        Frozen; ``print`` it, or call ``.rejects(alpha)``, ``.to_dict()``, ``.summary()``.

    Raises
    ------
    InputError
        A ValueError. If the input is no set of predictions and labels, or the null does not fit
        the statistic; the message says what to do.

    Examples
    --------
    >>> import caltest
    >>> digits = caltest.datasets.load_digits_predictions("naive_bayes")
    >>> result = caltest.test(digits.probs, digits.labels, rng=0)
    >>> result.pvalue, result.guarantee, result.rejects(0.05)
    (0.001, 'exact', True)

    Is the top class claimed more than ten points too surely, anywhere?

    >>> caltest.test(digits.probs, digits.labels, tolerance=0.1, alternative="over", rng=0).pvalue
    0.001
    """
    tolerant = not (tolerance is rounding is None) or alternative in ("over", "under")
    clustered = clusters is not None or (isinstance(probs, Rows) and probs.clusters is not None)
    chosen = ClusterSigns() if clustered and null is None else find_null(null)
    _check_clusters(chosen, clustered, tolerant)
    measure = find_statistic(_default(chosen, tolerant) if statistic is _DEFAULT else statistic)
    draws = int(n_resamples)
    seed, workers = seed_of(rng), Workers(n_jobs, progress)
    measure = measure.shuffled(seed)
    if sampling_rates is not None and tolerant:
        raise InputError(
            "a tolerance is about probabilities of all rows, and {argument} makes them those of the "
            "rows kept; leave one of them out.",
            argument="sampling_rates",
        )
    if clusters is not None and isinstance(probs, Stored):
        raise InputError(
            "clusters go with rows in memory; read the file with caltest.files.read, and give the "
            ".rows and .labels of what that returns."
        )
    stored = None if clustered else stored_in(probs, labels)
    if stored is not None:
        exact = isinstance(chosen, MonteCarlo) and chosen.stop_after is None
        exact = exact and weights is None and sampling_rates is None
        if exact and not tolerant and stored.n_samples > HELD_UP_TO:  # in one pass, if it can
            with suppress(AllRowsNeededError):
                return _of_stored(measure, chosen, stored, lens, alternative, draws, seed, workers)
        read = stored.load(rounding=rounding)
        probs, labels = read.rows, read.labels
    counting = {"weights": weights, "clusters": clusters, "sampling_rates": sampling_rates}
    looked = looked_at(probs, labels, lens, measure.default_lens, rounding, counting)
    view, lens_label, rounded, places = looked.view, looked.lens, looked.rounded, looked.places
    if places is not None:
        measure = measure.at(places)
    with single_threaded_blas():
        if tolerant:
            if isinstance(view, PredictiveSample):
                asked = "a tolerance" if rounding is None else "rounding"
                raise InputError(
                    f"{asked} is about probabilities of classes, and the predictions are "
                    "distributions of numbers; leave it out."
                )
            error = 0.0 if tolerance is None else float(tolerance)
            stated: dict[str, Any] = {}
            if rounded is not None:
                error = min(error + rounded.tolerance, 1.0)
                stated = {"rounding": rounding, "summed": rounded.n_summed}
            sides = check_possible(measure, chosen, alternative)
            sided = sided_answer(measure, chosen, view, error, sides, draws, seed, workers)
            return _result(
                sided.statistic,
                chosen,
                sided.answer,
                value=sided.value,
                guarantee=chosen.guarantee_for(sided.form),
                alternative=sides,
                n_samples=looked.n_samples,
                n_classes=view.rows.n_classes,
                lens=lens_label,
                seed=seed,
                warnings=(
                    *view.rows.notes,
                    *impossible_on(view, sides, error, places),
                    *looked.copies,
                    *measure.notes,
                ),
                parameters={
                    **sided.statistic.parameters,
                    "tolerance": error,
                    **stated,
                    "side": sided.side,
                    **looked.parameters,
                },
                claim=claim(event(lens_label, view.rows), sides, error),
            )
        unfitted, (measure, form) = measure, _fixed(measure, view.rows)
        _check_fit(measure, chosen, form, looked)
        work = form.work(chosen.label_vectors(draws))
        _announce(measure, work, view.rows.n_samples, workers, chosen)
        question = Question(
            statistic=measure,
            asked=unfitted,
            form=form,
            rows=view.rows,
            labels=view.labels,
            alternative=check_alternative(measure, chosen, cast("Alternative | None", alternative)),
            n_resamples=draws,
            seed=seed,
            workers=workers,
        )
        answer = chosen.answer(question)
        value = question.observed if answer.statistic is None else answer.statistic
        if isinstance(form, LabelFunction) and not (clustered or isinstance(chosen, MonteCarlo)):
            form.check_unmoved(view.labels, value)
        return _result(
            measure,
            chosen,
            answer,
            value=value,
            guarantee=chosen.guarantee_for(form),
            alternative=question.alternative,
            n_samples=looked.n_samples,
            n_classes=view.rows.n_classes,
            lens=lens_label,
            seed=seed,
            warnings=(
                *view.rows.notes,
                *impossible_labels(view, places=places),
                *looked.copies,
                *_usual(form, view, lens_label),
                *measure.notes,
            ),
            parameters={
                **measure.parameters,
                **({} if sampling_rates is None else {"sampling_rates": dict(sampling_rates)}),
                **looked.parameters,
            },
        )


test.__test__ = False  # type: ignore[attr-defined]  # pytest is not to collect it


@arguments()
def estimate(
    probs: object,
    labels: object,
    statistic: StatisticLike = "skce_uq",
    *,
    lens: str | Lens | None = None,
    weights: object = None,
    clusters: object = None,
    sampling_rates: Mapping[Any, float] | None = None,
    n_jobs: int | None = None,
) -> float:
    """Return the value of a statistic, without a p-value.

    Parameters
    ----------
    probs, labels, statistic, lens, weights, sampling_rates, n_jobs
        As in :func:`test`.
    clusters
        As in :func:`test`: means over pairs of rows are then over pairs of different clusters.

    Returns
    -------
    float
        The value: on its own it has no unit and no scale that tells good from bad.

    Raises
    ------
    InputError
        If the input is no set of predictions and labels; the message says what to do.

    Examples
    --------
    >>> import caltest
    >>> probs = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]
    >>> round(caltest.estimate(probs, [0, 1, 0, 0], "skce_b"), 6)
    0.14084
    """
    measure = find_statistic(statistic)
    counting = {"weights": weights, "clusters": clusters, "sampling_rates": sampling_rates}
    looked = looked_at(probs, labels, lens, measure.default_lens, counting=counting)
    view = looked.view
    if looked.places is not None:
        measure = measure.at(looked.places)
    with single_threaded_blas():
        fitted, form = _fixed(measure, view.rows)
        if isinstance(view, Sample) and view.rows.clusters is not None:
            if isinstance(form, Combined):
                raise InputError(
                    f"with clusters {measure.name!r} is standardised by its draws; take "
                    "caltest.test, or estimate one of its parts."
                )
            if isinstance(form, HasSigns):
                columns = columns_of(form), view.labels, view.rows.clusters, view.rows.weights
                ((_, form),) = signed_columns(*columns)
                return form.value(np.ones(int(looked.parameters["clusters"]), dtype=np.int8))
        workers = Workers(n_jobs)
        _announce(fitted, form.work(1), view.rows.n_samples, workers)
        return observed_value(fitted, form, view.labels, workers)


def _result(
    measure: Statistic,
    null: Null,
    answer: Answer,
    *,
    value: float,
    guarantee: Guarantee,
    alternative: Alternative | ToleranceAlternative,
    n_samples: int,
    n_classes: int | None,
    lens: str | None,
    seed: int,
    warnings: tuple[str, ...],
    parameters: Mapping[str, Any] | None = None,
    claim: str | None = None,
) -> CalibrationResult:
    """Put together what was asked and what the null answered."""
    return CalibrationResult(
        statistic=value,
        pvalue=answer.pvalue,
        name=measure.name,
        null=null.name,
        guarantee=guarantee,
        alternative=alternative,
        n_samples=n_samples,
        n_classes=n_classes,
        lens=lens,
        parameters=measure.parameters if parameters is None else dict(parameters),
        n_resamples=answer.n_resamples,
        exceedances=answer.exceedances,
        pvalue_interval=answer.pvalue_interval,
        null_distribution=answer.null_distribution,
        warnings=(*warnings, *answer.notes),
        seed=seed if answer.n_resamples is not None else None,
        measures=measure.measures,
        parts=answer.parts,
        claim=claim,
    )


# ------------------------------------------------------------------ rows that are not held


@dataclass(frozen=True, eq=False)
class _SeenRows:
    """Stored rows as a lens shows them."""

    stored: Stored
    lens: str | Lens | None
    default: str | None

    @property
    def n_samples(self) -> int:
        return self.stored.n_samples

    @property
    def grain(self) -> int:
        return self.stored.grain

    def samples(self, first: int, last: int) -> Iterator[Sample]:
        """Read blocks of rows, and show them through the lens."""
        for each in self.stored.samples(first, last):
            yield seen(each, self.lens, self.default)[0]


def _of_stored(
    measure: Statistic,
    null: Null,
    stored: Stored,
    lens: str | Lens | None,
    alternative: str | None,
    n_resamples: int,
    seed: int,
    workers: Workers,
) -> CalibrationResult:
    """Test rows that are read in one pass.

    Raises
    ------
    AllRowsNeededError
        If the statistic cannot.
    """
    find_lens(lens)
    side = check_alternative(measure, null, cast("Alternative | None", alternative))
    rows = _SeenRows(stored, lens, measure.default_lens)
    first, lens_label = seen(next(stored.samples(0, 1)), lens, measure.default_lens)
    with single_threaded_blas():
        partwise = measure.in_parts(stored.extent, partial(glimpse_of, rows, workers))
        form = partwise.given(first.rows)
        if not adds_up(columns_of(form)):
            raise AllRowsNeededError(f"{measure.name!r} needs all rows at once.")
        work = together([form.work(n_resamples)], stored.n_samples / first.rows.n_samples)
        _announce(partwise.statistic, work, stored.n_samples, workers, null)
        found = table_of_blocks(partial(_columns_of_rows, partwise), rows, n_resamples, seed, workers)
        if isinstance(form, Combined):
            form = form.with_rounding(found.rounding)
        answer = answer_of(form, found.values, side, workers, float(found.rounding[0]))
    return _result(
        partwise.statistic,
        null,
        answer,
        value=cast("float", answer.statistic),
        guarantee=null.guarantee,
        alternative=side,
        n_samples=stored.n_samples,
        n_classes=first.rows.n_classes,
        lens=lens_label,
        seed=seed,
        warnings=(
            *found.notes,
            *impossible_rows(found.impossible, stored.n_samples),
            *partwise.statistic.notes,
        ),
        parameters={
            **partwise.statistic.parameters,
            **({} if stored.extent.are_alike else {"effective_n": stored.extent.effective}),
        },
    )


def _columns_of_rows(partwise: Partwise, rows: Rows) -> tuple[Column, ...]:
    return columns_of(partwise.given(rows))


def _announce(
    measure: Statistic, work: Work, n_samples: int, workers: Workers, null: Null | None = None
) -> None:
    """Say so, before it starts, where a statistic will take long."""
    by = "" if null is None else f", by the null {null.name!r},"
    announce(f"{measure.name!r} of {counted(n_samples, 'row')}{by}", work, workers, measure.faster)


# ------------------------------------------------------------------ what is asked


def _default(null: Null, tolerant: bool) -> str:
    """Return the statistic of a test that names none: one that the null can answer."""
    if tolerant:
        return "scan"
    return "omnibus" if isinstance(null, MonteCarlo) or null.of_clusters else "skce_uq"


def _check_clusters(null: Null, clustered: bool, tolerant: bool) -> None:
    """Raise unless the null is for rows like these: in clusters, or independent."""
    if clustered and tolerant:
        raise InputError(
            "tolerances, and what rounding explains, are tested for independent rows only: no valid "
            "test is known for rows in clusters; leave out the tolerance, or give one row a cluster."
        )
    if clustered and not null.of_clusters:
        raise InputError(
            f"the null {null.name!r} takes rows to be independent, and clusters are given; leave the "
            "null out, or give 'cluster_signs' or 'one_per_cluster'."
        )
    if null.of_clusters and not clustered:
        raise InputError(
            "the null {null!r} is for rows in clusters; give {option}, with the name or number of a "
            "cluster for every row.",
            null=null.name,
            option=Argument("clusters", ...),
        )


def _fixed(measure: Statistic, predictions: Rows | Predictive) -> tuple[Statistic, Form]:
    """Return the statistic with its rules fitted, and as a function of the labels."""
    if isinstance(predictions, Rows):
        fitted = measure.fitted(predictions)
        return fitted, fitted.given(predictions)
    return measure, measure.given_densities(predictions)


def _usual(form: Form, view: Sample | PredictiveSample, lens: str | None) -> tuple[str, ...]:
    """Say so where a binned statistic is not the one that is usually printed of a network."""
    if lens is not None or not isinstance(form, Binned) or form.probs.shape[1] == 2:
        return ()
    return (
        f"Bins are cells of the full probability vector, {form.n_cells} for {form.n_samples} rows; "
        "what is usually printed of a network looks at the top class only, lens='top_label'.",
    )


def _check_fit(measure: Statistic, null: Null, form: Form, looked: Looked) -> None:
    if not null.fits(form):
        weighted = " of rows with weights" if "effective_n" in looked.parameters else ""
        raise InputError(
            f"the null {null.name!r} needs {null.requires}, which {measure.name!r}{weighted} is not; "
            f"possible here: {', '.join(possible_nulls(form, null.of_clusters))}."
        )
