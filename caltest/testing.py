"""`test` and `estimate`: from predictions and labels to an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from caltest import nulls
from caltest._arguments import arguments
from caltest._parallel import Workers, single_threaded_blas
from caltest._visible import attempt
from caltest.blocks import Read, adds_up, signed_columns_of_blocks, subsample_of, table_of_blocks
from caltest.data import Rows, Sample
from caltest.data.diagnose import impossible_labels, impossible_rows
from caltest.data.features import READ_WHOLE, refuse_tolerance
from caltest.data.premises import functions_of_outcome, premises_of
from caltest.data.rows import Extent, as_order, described, in_time, without_zeros
from caltest.data.sample import whole_sample
from caltest.exceptions import Argument, InputError, Premise
from caltest.files.batches import Stored, scan_arrays
from caltest.forms import Binned, Combined, Form, HasSigns, LabelFunction, Side
from caltest.forms.kernel_matrices import HELD_UP_TO
from caltest.laws import Classes, Covered, Point, Predictive, Quantiles, Sets
from caltest.lenses import Lens, event, find_lens, seen_through, show, through
from caltest.nulls.base import Trial
from caltest.nulls.clusters import Confirmation, answer_of_signs, names_and_sides
from caltest.nulls.times import beside_events
from caltest.pvalues import Alternative
from caltest.resampling import columns_of, signed_columns
from caltest.results import CalibrationResult, result_of
from caltest.sampling import ROWS, Rng, seed_of
from caltest.statistics import AllRowsNeededError, Statistic, StatisticLike, find_statistic
from caltest.statistics.order import EventsAfter, OfHits, OfOrder
from caltest.tolerance import RoundedView, check_possible, claim, rounded_view, sided_answer


@arguments(order=as_order)
def test(
    probs: object,
    labels: object = None,
    statistic: StatisticLike | None = None,
    *,
    null: str | nulls.Null | None = None,
    lens: str | Lens | None = None,
    class_names: Sequence[str | int] | None = None,
    alternative: Alternative | Side | None = None,
    tolerance: float | None = None,
    rounding: float | None = None,
    weights: object = None,
    clusters: object = None,
    sampling_rates: Mapping[Any, float] | None = None,
    features: object = None,
    order: object = None,
    logits: bool = False,
    n_resamples: int | None = None,
    rng: Rng = None,
    n_jobs: int | None = None,
    progress: bool = False,
) -> CalibrationResult:
    """Test whether a model is calibrated: do its probabilities match what is observed?

    Parameters
    ----------
    probs : array of shape (n,) or (n, m), data frame, or predictive distribution
        Predicted probabilities: one column per class, in rows that sum to 1, or the probability of
        class 1 alone (:func:`caltest.data.sample`). For other outcomes an object of
        :mod:`caltest.predictive`. Or a file opened by :func:`caltest.files.scan`, labels included.
    labels : array of shape (n,) or (n, d), or (time, event)
        Observed classes: integers 0..m−1, or names. For distributions, the outcomes.
    statistic : str, Statistic or callable, optional
        What to measure: a name or an object of :mod:`caltest.statistics`, or a function
        ``f(probs, labels) -> float`` that is large where calibration is bad. A function gets an exact
        p-value too, unless it depends on an order of rows that tells about the labels. It must be
        deterministic.

        Default None: "omnibus", a combined test of several kinds of error, with a p-value for each in
        ``parts``. With a tolerance "scan" ("max_bin", "citl" and "esce" are possible too); with
        features "feature_scan"; for point forecasts of a mean "point_bias"; for sets "citl"; with a
        null that is neither exact nor for clusters "skce_uq".
    null : str or Null, optional
        How to compute the p-value: a name or an object of :mod:`caltest.nulls`. Default None:
        "monte_carlo", exact for every statistic and number of rows. With clusters: "cluster_signs"
        (default), "one_per_cluster" or "comonotone".
    lens : str or Lens, optional
        Which view to test: "top_label", "class:3", "top:5", "sorted" or an object of
        :mod:`caltest.lenses`. For numbers, an event: "below:30", "above:30", "quantile:0.9",
        "interval:0.9" or "pit:10"; for times, "until:365". Default None: the full prediction.
    class_names : sequence of str or int, optional
        Names of the classes, in the order of the columns, such as ``classes_`` of a scikit-learn
        model. Default None: the column names of ``probs``, if any.
    alternative : {"greater", "less", "two-sided", "over", "under"}, optional
        Which values count as evidence. Default None: the statistic's own. With a tolerance: "over"
        (predictions too high), "under" (too low) or "two-sided" (default). "over" and "under" alone
        imply a tolerance of 0.
    tolerance : float, optional
        Test whether the model is wrong by more than this anywhere: 0.02 for two percentage points. It
        applies to one probability: of several classes to the top one, unless a lens chooses another.
    rounding : float, optional
        The step to which probabilities were rounded: with 0.05, a predicted 70% means 67.5% to 72.5%.
    weights : array of shape (n,), optional
        How much each row counts. Weights must not depend on the labels; for rows sampled by class use
        ``sampling_rates``. The exact null stays exact. A function of yours gets them third.
    clusters : array of shape (n,), optional
        Which rows belong together, such as patients, users or days: rows with the same entry may
        depend on each other in any way. The default null is right for many clusters; where few carry
        the statistic, a more careful p-value is taken and the result says so. Default None: rows
        are independent.
    sampling_rates : dict of class to float, optional
        If rows were sampled by their label: for each class, the share of its rows that was kept, 1
        for classes left out. Exact if the rates were fixed beforehand.
    features : data frame, dict of columns, array of shape (n, d), or one column, optional
        Columns that describe the rows and were known before the outcome, for statistics that search
        them: numbers, dates, truth values or names. Refused with a tolerance or rounding. Default
        None: those of ``probs``, if it was read with some.
    order : array of shape (n,), or True, optional
        For "runs", "decay" and "autocorrelation": numbers or dates by which rows are sorted, each
        different, or True for rows as they stand. The hypothesis is then that every forecast is right
        given *all* earlier outcomes and forecasts. Default None: the order of rows says nothing.
    logits : bool, default False
        Whether ``probs`` holds logits instead of probabilities.
    n_resamples : int, optional
        Number of simulated label sets. Default None: 999, for p-values down to 0.001; 99 for
        :class:`caltest.statistics.Learned`, which fits a model to each.
    rng : int, SeedSequence or Generator, optional
        The same ``rng`` gives the same numbers for every ``n_jobs`` and joblib backend.
    n_jobs : int, optional
        Number of workers, as in joblib: None is one, −1 all cores.
    progress : bool, default False
        Show a progress bar in a terminal during long work.

    Returns
    -------
    CalibrationResult
        Frozen; ``print`` it, or call ``.rejects(alpha)``, ``.to_dict()``, ``.summary()``, ``.plot()``.

    Raises
    ------
    InputError
        If the input cannot be read, or the null cannot be used with the statistic. The message says
        what to do.

    See Also
    --------
    caltest.audit : The same question for every class and group, with sizes of errors.
    caltest.estimate : The value of a statistic alone.

    Notes
    -----
    Guides: the exact p-value (:doc:`/theory/exact`), :doc:`/clusters`, :doc:`/weights`,
    :doc:`/sampling`, tolerance (:doc:`/theory/bounds`), rounding (:doc:`/sizes`), :doc:`/scale`.

    Examples
    --------
    >>> import caltest
    >>> digits = caltest.datasets.load_digits_predictions("naive_bayes")
    >>> result = caltest.test(digits.probs, digits.labels, rng=0)
    >>> result.pvalue, result.guarantee, result.rejects(0.05)
    (0.001, 'exact', True)

    Is the confidence in the top class more than ten points too high anywhere?

    >>> caltest.test(digits.probs, digits.labels, tolerance=0.1, alternative="over", rng=0).pvalue
    0.001

    A statistic of your own: how far the model is off where it is least sure.

    >>> import numpy as np
    >>> def unsure(probs, labels):
    ...     rows = probs.max(axis=1) < 0.9
    ...     return abs(probs.max(axis=1)[rows].mean() - (probs.argmax(axis=1) == labels)[rows].mean())
    >>> caltest.test(digits.probs, digits.labels, unsure, rng=0).pvalue
    0.001
    """
    tolerant = not (tolerance is rounding is None) or alternative in ("over", "under")
    has_own = isinstance(probs, Rows | Stored) and probs.clusters is not None
    clustered = clusters is not None or has_own
    chosen = nulls.ClusterSigns() if clustered and null is None else nulls.find_null(null)
    _check_possible(chosen, clustered, tolerant, sampling_rates)
    exact = isinstance(chosen, nulls.MonteCarlo)
    usual = "scan" if tolerant else "omnibus" if exact or chosen.of_clusters else "skce_uq"
    searched = features is not None or (isinstance(probs, Rows) and probs.features is not None)
    usual = "feature_scan" if searched and not tolerant else usual
    law: Any = attempt(lambda: getattr(probs, "law", probs))
    usual = "citl" if isinstance(law, Sets) else usual
    usual = "point_bias" if isinstance(law, Point) and not law.of_quantile and not searched else usual
    seed, workers = seed_of(rng), Workers(n_jobs, progress)
    measure = find_statistic(usual if statistic is None else statistic).shuffled(seed)
    draws = measure.usual_resamples if n_resamples is None else n_resamples
    looked = find_lens(lens)
    own: dict[str, Any] = {"clusters": clusters, "class_names": class_names, "features": features}
    own["order"] = order
    if order is not None and not isinstance(measure, OfOrder):
        text = "{order} is what 'runs', 'decay' and 'autocorrelation' look at; give one as {statistic}."
        raise InputError(text, order=Argument("order"), statistic=Argument("statistic"))
    stored = _stored(probs, labels, logits, own)
    with single_threaded_blas():
        if stored is not None:
            exact = exact or isinstance(chosen, nulls.ClusterSigns)
            as_drawn = exact and weights is sampling_rates is None and not tolerant
            if as_drawn and stored.n_samples > HELD_UP_TO:
                with suppress(AllRowsNeededError):
                    how = draws, seed, workers
                    return _in_one_pass(measure, chosen, stored, looked, alternative, how)
            read = stored.load(rounding=rounding)
            probs, labels, logits = read.rows, read.labels, False
        own |= {"weights": weights, "sampling_rates": sampling_rates, "logits": logits}
        given = _given(probs, labels, looked, measure, **own, rounding=rounding)
        law = given.whole.rows.law
        if isinstance(law, Covered) and (tolerant or not (exact or law.of.beta is None)):
            do = f"leave null and tolerance out, or give {Argument('caltest.audit')} a limit"
            raise InputError(f"sets claim 'at least', which is tested by draws; {do}.")
        trial = Trial(given.view.rows, given.view.labels, draws, seed, workers)
        if tolerant:
            refuse_tolerance(given.whole.rows.features)
            return _tolerated(measure, chosen, trial, given, tolerance, alternative)
        return _answered(measure, chosen, trial, given, alternative, (null is None, statistic is None))


test.__test__ = False  # type: ignore[attr-defined]  # so that pytest does not collect it


@arguments()
def estimate(
    probs: object,
    labels: object,
    statistic: StatisticLike = "skce_uq",
    *,
    lens: str | Lens | None = None,
    class_names: Sequence[str | int] | None = None,
    weights: object = None,
    clusters: object = None,
    sampling_rates: Mapping[Any, float] | None = None,
    logits: bool = False,
    n_jobs: int | None = None,
) -> float:
    """Return the value of a statistic, without a p-value.

    Parameters
    ----------
    probs : array of shape (n,) or (n, m), data frame, or predictive distribution
        As in :func:`test`.
    labels : array of shape (n,) or (n, d), or (time, event)
        As in :func:`test`.
    statistic : str, Statistic or callable, default "skce_uq"
        What to measure, as in :func:`test`.
    lens : str or Lens, optional
        As in :func:`test`.
    class_names : sequence of str or int, optional
        As in :func:`test`.
    weights : array of shape (n,), optional
        As in :func:`test`.
    sampling_rates : dict of class to float, optional
        As in :func:`test`.
    logits : bool, default False
        As in :func:`test`.
    n_jobs : int, optional
        As in :func:`test`.
    clusters : array of shape (n,), optional
        As in :func:`test`. Means over pairs of rows are then taken over pairs from different
        clusters.

    Returns
    -------
    float
        The value. On its own it does not tell good from bad: :func:`test` compares it with the
        values that a calibrated model would give.

    Raises
    ------
    InputError
        If the input is not a set of predictions and labels; the message says what to do.

    Examples
    --------
    >>> import caltest
    >>> probs = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]
    >>> round(caltest.estimate(probs, [0, 1, 0, 0], "skce_b"), 6)
    0.14084
    """
    measure = find_statistic(statistic)
    own: dict[str, Any] = {"clusters": clusters, "class_names": class_names, "weights": weights}
    own |= {"sampling_rates": sampling_rates, "logits": logits}
    return value_of(measure, _given(probs, labels, find_lens(lens), measure, **own).view, n_jobs)


def beside_estimate(probs: object, labels: object, statistic: str, **how: Any) -> tuple[Any, ...]:
    """Return the fitted statistic, its expectation under calibration, premises in doubt, and notes."""
    given = _given(probs, labels, find_lens(how.pop("lens")), find_statistic(statistic), **how)
    fitted = find_statistic(statistic).fitted(given.view.rows)
    form = fitted.given(given.view.rows)
    expected = nulls.of_calibrated(fitted, form, given.view)
    return fitted, expected, premises_of(given.whole, 1.0), _notes(given, fitted, form)


def value_of(measure: Statistic, view: Sample, n_jobs: int | None = None) -> float:
    """Return the value of a statistic; for rows in clusters, over pairs from different clusters."""
    rows, observed = view.rows, view.labels
    check_law(measure, rows)
    measure.sides(rows.law)
    if rows.law.seen is not None and measure.of_seen:
        observed = rows.law.seen
    with single_threaded_blas():
        fitted = measure.fitted(rows)
        form = fitted.given(rows)
        if rows.clusters is not None:
            if isinstance(form, Combined):
                do = f"take {Argument('caltest.test')}, or estimate one of its parts"
                raise InputError(f"with clusters {measure.name!r} is standardised by its draws; {do}.")
            if isinstance(form, HasSigns):
                ((_, signed),) = signed_columns(columns_of(form), observed, rows.clusters, rows.weights)
                return signed.observed  # type: ignore[no-any-return]
        return nulls.observed_value(fitted, form, observed, fitted.by(Workers(n_jobs), rows.n_samples))


# ------------------------------------------------------------------ the input


class _Given(NamedTuple):
    """The input, seen through a lens.

    Attributes
    ----------
    whole
        The rows with positive weight, before any lens.
    view
        The rows and labels through the lens.
    lens
        Label of the lens.
    completions
        For censored times, labels from further imputations, drawn on demand.
    rounded
        The probability as stated, if it was rounded.
    rates
        Sampling rates by label, if rows were sampled so.
    """

    whole: Sample
    view: Sample
    lens: str | None
    completions: Iterable[NDArray[Any]] = ()
    rounded: RoundedView | None = None
    rates: Mapping[Any, float] | None = None

    def stated(self, answer: nulls.Answer, **more: Any) -> dict[str, Any]:
        """Return facts about the rows, with ``more``, for a result."""
        # Without draws, the answer is found sooner than doubts about its premises, which are then
        # postponed.
        waits = answer.n_resamples is None and self.whole.rows.n_classes == 2
        premises = partial(self.premises, answer) if waits else self.premises(answer)
        return {"premises": premises, "n_samples": self.view.rows.n_samples, "lens": self.lens, **more}

    def premises(self, answer: nulls.Answer) -> tuple[Premise, ...]:
        """Return premises of the answer that the rows put in doubt."""
        with single_threaded_blas():
            premises, features = premises_of(self.whole, answer.pvalue), self.whole.rows.features
        if answer.guarantee == "exact":  # an answer by bets assumes nothing about outcomes
            premises = tuple(each for each in premises if each not in self.whole.rows.law.doubts)
        if features is not None:
            codes = {each.name: each.codes() for each in features.columns}
            said = "so that anything could be found"
            premises += (*functions_of_outcome(codes, self.whole, "features", said).values(),)
        return premises


def _stored(probs: object, labels: object, logits: bool, own: Mapping[str, object]) -> Stored | None:
    """Return rows to be read in place: an opened file, or memory-mapped arrays; else None."""
    if isinstance(probs, Stored):
        for name, value in {**own, "labels": labels, "logits": logits or None}.items():
            if value is not None:
                do = f"say there what columns are, as in caltest.files.scan(path, {name}=…)"
                do = do if name not in ("features", "order") else READ_WHOLE
                raise InputError(f"{probs.name} was opened already; leave {name} out, and {do}.")
        return probs
    if labels is None:
        raise InputError("there are no labels; give the observed classes, second.")
    mapped = isinstance(probs, np.memmap) and isinstance(labels, np.ndarray)
    plain = all(each is None for each in own.values())
    return scan_arrays(probs, labels, logits) if mapped and plain else None


def _given(probs: object, labels: object, lens: Lens | None, measure: Statistic, **own: Any) -> _Given:
    """Check the input and apply the lens, or the statistic's default lens.

    Rounded probabilities have no default lens.
    """
    features, order = own.pop("features", None), own.pop("order", None)
    whole = whole_sample(probs, labels, **own)
    n_given, whole = whole.rows.n_samples, without_zeros(whole)
    rows = described(whole.rows, features, n_given, probs=probs, labels=labels, **own)
    rows = in_time(rows, order, n_given, probs=probs, labels=labels)
    levels: Any = getattr(rows.law, "levels", None)
    if lens is None and isinstance(measure, OfHits) and levels is not None:
        lens = find_lens(f"quantile:{min(levels, key=lambda x: round(min(x, 1.0 - x), 9)):.9g}")
    whole = whole if rows is whole.rows else replace(whole, rows=rows)
    if own.get("rounding") is not None:
        rounded = rounded_view(whole, lens, own["rounding"])
        return _Given(whole, rounded.view, None if lens is None else lens.label, rounded=rounded)
    of_numbers = rows.n_classes is None and isinstance(rows.law, measure.laws)
    shown = show(rows, lens, None if of_numbers else measure.default_lens)
    shown = shown.strict if isinstance(measure, OfHits) and shown.rows.n_classes == 2 else shown
    view = whole if shown.rows is rows else shown.sample(whole.labels)
    opened = view.labels if shown.see_open is None else shown.opened.sample(whole.labels).labels
    if opened is not view.labels and (tied := np.count_nonzero(opened != view.labels)):
        raise InputError(
            f"in {tied:,} of {len(view.labels):,} rows the outcome equals the quantile that the lens "
            "looks at, so that the event is open; leave the lens out and use 'bias', 'spread' or "
            "'coverage', which allow for that."
        )
    completed = (shown.outcomes(each[None])[0] for each in whole.rows.law.completed_anew())
    return _Given(whole, view, shown.label, completed, rates=own.get("sampling_rates"))


def _counted(
    rows: Rows | Extent, clusters: int | None = None, rates: Mapping[Any, float] | None = None
) -> dict[str, Any]:
    """Return parameters on weights: sampling rates, and the effective numbers of rows and clusters."""
    found: dict[str, Any] = {} if rates is None else {"sampling_rates": dict(rates)}
    found |= {} if rows.are_alike else {"effective_n": rows.effective}
    return found if clusters is None else found | {"clusters": clusters}


def check_law(measure: Statistic, rows: Rows) -> None:
    """Raise unless the statistic is defined for such predictions."""
    law = rows.law
    quantiles = isinstance(law, Quantiles)
    if isinstance(law, measure.laws) and (measure.of_quantiles or not quantiles):
        return
    wanted = " or ".join(each.about for each in measure.laws)
    instead = law.instead
    of_numbers = isinstance(law, Predictive) and law.dimension is None and not isinstance(law, Point)
    if quantiles or (Classes in measure.laws and of_numbers):
        instead = "give a lens such as 'quantile:0.5', or a statistic of numbers such as 'pit_ad'"
    raise InputError(f"{measure.name!r} is for {wanted}, and these are {law.about}; {instead}.")


# ------------------------------------------------------------------ answers


def _answered(
    measure: Statistic, null: nulls.Null, trial: Trial, given: _Given, wanted: Any, free: Sequence[bool]
) -> CalibrationResult:
    """Test calibration; ``free`` says whether null and statistic are the defaults."""
    rows, completions = trial.rows, given.completions
    seen = rows.law.seen
    check_law(measure, rows)
    fitted = measure.fitted(rows)
    form = fitted.given(rows)
    if seen is not None and free[0] and nulls.EventSigns.fits(form):
        null = nulls.EventSigns()
    if free[0] and nulls.PointErrors.fits(form):
        null = nulls.PointErrors()
    if free[0] and isinstance(form, EventsAfter):
        null = nulls.NormalApproximation()
    if not null.fits(form):
        weighted = "" if rows.are_alike else " of rows with weights"
        found = f"the null {null.name!r} needs {null.requires}, which {fitted.name!r}{weighted} is not"
        do = f"possible here: {', '.join(nulls.possible_nulls(form, null.of_clusters))}"
        raise InputError(f"{found}; {do}.")
    exact = isinstance(null, nulls.MonteCarlo)
    if seen is not None and fitted.of_seen and not exact:
        trial, completions = replace(trial, labels=seen), ()
    workers = fitted.by(trial.workers, rows.n_samples, null.name)
    side = nulls.check_alternative(fitted, null, wanted, rows.law)
    drawn = trial.labels, trial.n_resamples, trial.seed, workers
    question = nulls.Question(rows, *drawn, fitted, form, side, measure, tuple(completions))
    answer = null.answer_completed(question)
    if free[1] and seen is not None:
        answer = beside_events(question, answer)
    if isinstance(form, LabelFunction) and not (exact or rows.clusters is not None):
        form.check_unmoved(question.labels, question.observed)
    count = None if rows.clusters is None else len(np.unique(rows.clusters))
    parameters = {**fitted.parameters, **_counted(rows, count, given.rates)}
    stated = given.stated(answer, parameters=parameters)
    if order := form.in_words(question.labels, answer.pvalue <= CalibrationResult.alpha):
        stated |= {"order": order, "claim": "every forecast is right given all earlier outcomes"}
    if isinstance(rows.law, Covered):
        stated |= {"lens": "coverage", "claim": "coverage is at least the level of the sets"}
    if isinstance(rows.law, Point):
        stated |= {"claim": f"the {rows.law.functional} of outcomes is as forecast"}
    return result_of(question, null, answer, _notes(given, fitted, form), **stated)


def _notes(given: _Given, fitted: Statistic, form: Form) -> tuple[str, ...]:
    """Return notes on the rows and on the statistic."""
    rows = given.view.rows
    unlikely = impossible_labels(given.view, what=seen_through(given.lens, rows))
    return (*rows.notes, *unlikely, *_bins_of_vectors(form, given.lens), *fitted.notes)


def _tolerated(
    measure: Statistic, null: nulls.Null, trial: Trial, given: _Given, within: float | None, wanted: Any
) -> CalibrationResult:
    """Test whether the model is wrong by more than a tolerance, or than rounding explains."""
    rows, impossible = trial.rows, tuple[str, ...]()
    if not isinstance(rows.law, Classes):
        do = "give a lens, such as 'quantile:0.5' or 'below:10', or leave it out"
        do = f"give {Argument('caltest.audit')} a limit instead" if rows.law.functional else do
        found = "a tolerance is about probabilities of an event, and the predictions are of numbers"
        raise InputError(f"{found}; {do}.")
    error = 0.0 if within is None else within
    stated: dict[str, Any] = {}
    if given.rounded is not None:
        error = min(error + given.rounded.tolerance, 1.0)
        stated = {"rounding": given.rounded.step, "summed": given.rounded.n_summed}
    sides = check_possible(measure, null, wanted)
    question, answer, side = sided_answer(measure, null, trial, error, sides)
    if error == 0.0:  # beyond a tolerance, a label of probability 0 proves no error
        what = seen_through(given.lens, rows)
        impossible = impossible_labels(given.view, {"over": 0, "under": 1}.get(sides), what)
    options = {**question.statistic.parameters, "tolerance": error, **stated, "side": side}
    claimed = {"alternative": sides, "claim": claim(event(given.lens, rows), sides, error)}
    claimed |= given.stated(answer, parameters={**options, **_counted(rows)})
    return result_of(question, null, answer, (*rows.notes, *impossible, *measure.notes), **claimed)


# ------------------------------------------------------------------ possible combinations


def _check_possible(null: nulls.Null, clustered: bool, tolerant: bool, sampling_rates: object) -> None:
    """Raise unless the null and a tolerance, if given, are possible for these rows."""
    if sampling_rates is not None and tolerant:
        raise InputError(
            "a tolerance is about probabilities of all rows, and {argument} makes them those of the "
            "rows kept; leave one of them out.",
            argument="sampling_rates",
        )
    if clustered and tolerant:
        raise InputError(
            "tolerances, and what rounding explains, are tested for independent rows only; for rows in "
            f"clusters use {Argument('caltest.audit')}, which tests means, or leave out tolerance and "
            "rounding: errors are then found that rounding may explain."
        )
    if clustered and not null.of_clusters:
        found = f"the null {null.name!r} needs independent rows, and clusters are given"
        do = "leave the null out, or give 'cluster_signs' or 'one_per_cluster'"
        raise InputError(f"{found}; {do}.")
    if null.of_clusters and not clustered:
        do = "give {option}, with the name or number of a cluster for every row"
        text = f"the null {null.name!r} is for rows in clusters; {do}."
        raise InputError(text, option=Argument("clusters", ...))


def _bins_of_vectors(form: Form, lens: str | None) -> tuple[str, ...]:
    """Return a note if a binned statistic is not the one usually reported for a network."""
    if lens is not None or not isinstance(form, Binned) or 2 in (form.probs.shape[1], form.cells.ndim):
        return ()
    return (
        f"Bins are cells of the full probability vector, {form.n_cells} for {len(form.probs)} rows; "
        "what is usually printed of a network looks at the top class only, the lens 'top_label'.",
    )


# ------------------------------------------------------------------ rows read in one pass


def _seen(
    stored: Stored, lens: str | Lens | None, default: str | None, first: int, last: int
) -> Iterator[Sample]:
    """Read blocks of rows, as parts of the whole, and show them through the lens."""
    for each in stored.samples(first, last):
        yield through(Sample(replace(each.rows, part_of=stored.extent), each.labels), lens, default)[0]


def _in_one_pass(
    measure: Statistic, null: nulls.Null, stored: Stored, lens: Lens | None, wanted: Any, how: Any
) -> CalibrationResult:
    """Test rows that are read once, where they are stored, with draws of labels or of cluster signs.

    Raises
    ------
    AllRowsNeededError
        If the statistic cannot.
    """
    n_resamples, seed, workers = how
    samples = partial(_seen, stored, lens, measure.default_lens)
    block = next(stored.samples(0, 1))
    first, label = through(block, lens, measure.default_lens)
    side = nulls.check_alternative(measure, null, wanted, first.rows.law)
    if not isinstance(first.rows.law, Classes):
        raise AllRowsNeededError(f"{measure.name!r} of numbers needs all rows at once.")
    head = replace(first.rows, part_of=stored.extent)
    if not measure.of_parts or type(measure).fitted is Statistic.fitted:  # nothing is fitted
        fitted = measure.fitted(head)
    else:
        some = subsample_of(samples, stored.n_samples, stored.grain, workers)
        fitted = measure.fitted(replace(some, part_of=stored.extent))
    form = fitted.given(head)
    if not adds_up(columns_of(form)):
        raise AllRowsNeededError(f"{measure.name!r} needs all rows at once.")
    workers = fitted.by(workers, stored.n_samples, null.name)
    read = Read(samples, stored.n_samples, stored.grain, seed, fitted.given)
    count = stored.clusters
    question = Trial(first.rows, first.labels, n_resamples, seed, workers).question(fitted, form, side)
    parameters = {**fitted.parameters, **_counted(stored.extent, count)}
    if count is not None:
        columns, found = signed_columns_of_blocks(read, count, stored.share_between, workers)
        confirm = partial(_confirmed, samples, question, stored.n_samples)
        answer = answer_of_signs(question, columns, count, confirm, found.rounding)
    else:
        values, found = table_of_blocks(read, n_resamples, workers)
        if isinstance(form, Combined):
            form = form.with_rounding(found.rounding).standardised(workers)
        answer = nulls.answer_of(form, values, side, workers, float(found.rounding[0]))
    broken = impossible_rows(found.impossible, stored.n_samples)
    notes = (*found.notes, *block.rows.law.remarks(block.labels), *broken, *fitted.notes)
    stated = {"n_samples": stored.n_samples, "lens": label, "parameters": parameters}
    return result_of(question, null, answer, notes, **stated)


def _confirmed(
    samples: Callable[..., Iterator[Sample]], question: nulls.Question, n_samples: int, by_signs: Any
) -> Confirmation:
    """Return how many clusters of stored rows carry a statistic; all rows through the lens are held."""
    parts = list(samples(0, -(-n_samples // ROWS)))
    rows = Rows.joined([each.rows for each in parts])
    asked = replace(question, rows=rows, labels=np.concatenate([each.labels for each in parts]))
    columns = columns_of(question.statistic.given(rows))
    return Confirmation.of(asked, names_and_sides(asked), columns, by_signs)
