"""`compare`: check that models predict the same rows, and measure them side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from caltest._arguments import OneOf, Whole, anything, arguments
from caltest._sums import Array
from caltest._visible import as_text, quoted
from caltest.alignment import check_rows, column_names, in_order_of
from caltest.auditing.groups import known_before, notes_on, read_groups
from caltest.auditing.options import INTERSECTIONS, lenses_of_times
from caltest.auditing.sizes import Design
from caltest.auditing.views import Group
from caltest.comparison.errors import ModelDifference, ModelError, sizes_of
from caltest.data import Sample, sample
from caltest.data.containers import listed
from caltest.data.labels import rates_by_class, says_no
from caltest.data.rows import without_zeros
from caltest.data.sample import sample_of_law
from caltest.exceptions import InputError, Row
from caltest.laws import Predictive, Survival
from caltest.laws.base import finite_table
from caltest.laws.sets import refuse_sets
from caltest.lenses import Lens, Until, find_lens, lens_of, show
from caltest.results import Result
from caltest.statistics import StatisticLike, find_statistic
from caltest.story import Finding, Step, Story
from caltest.testing import value_of

_FEWEST_ROWS = 4  # or clusters; with fewer, no interval of a difference is informative
_GROUP = "give a group of errors, such as errors[-1].group"


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Result):
    """How far off models are, in percentage points, which of them differ, and a statistic for each.

    Point forecasts are compared by the loss that is consistent for what they state (Gneiting 2011);
    mean errors stand beside it, in units of the outcome.

    Attributes
    ----------
    errors : tuple of ModelError
        How far off each model is, on all rows and then in every group: :class:`.ModelError`;
        ``pandas.DataFrame(found.errors)`` is a table of them. All intervals of mean and absolute errors
        are exact and correct together, with this confidence. With weights or clusters they are those of
        an audit; intervals of absolute errors are then much wider.
    gaps : tuple of ModelDifference
        How much further off each model is than each one after it: :class:`.ModelDifference`. They are t
        intervals over rows or clusters, about right, those of one kind together; those of absolute
        errors are wider by what chance may add to such errors.
    probability, event : str
        Which probability ``errors`` are about: label of the lens ("canonical" for class 1 of two
        classes), and what was predicted, as a clause. It is that of ``lens`` if that shows one; else
        class 1 for two classes, and the top class for more.
    names : tuple of str
        The K models, as given.
    values : array of shape (K,)
        The statistic on all rows, read-only, in the order of ``names``; empty without one.
    statistic : str or None
        Registered name of the statistic, or the name of the function.
    measures : str
        What it measures, in words.
    confidence : float
        Confidence of all intervals.
    n_samples : int
        As in :class:`caltest.CalibrationResult`.
    lens : str or None
        As in :class:`caltest.CalibrationResult`.
    warnings : tuple of str
        As in :class:`caltest.CalibrationResult`.
    n_classes : int or None
        Classes of the predictions, whatever the lens shows; None for numbers.
    n_clusters : int or None
        Number of clusters; None where rows are independent.
    functional : str or None
        For point forecasts, what they state, such as "mean" or "quantile:0.9"; else None.
    sampling_rates : dict of class to float, or None
        By class, the share of its rows that was kept, if rows were sampled by their label; errors
        are then those among the rows kept. Else None.

    Examples
    --------
    >>> import caltest
    >>> sure = caltest.simulation.tempered(n_samples=300, temperature=0.4, rng=0)
    >>> models = {"sure": sure.probs, "true": sure.truth}
    >>> found = caltest.compare(models, sure.labels, "skce_uq")
    >>> found.nearest, found.values.round(4).tolist()
    (['true', 'sure'], [0.0013, -0.0002])
    >>> found.event, [round(each.absolute[1], 2) for each in found.errors]
    ('the top class is right', [0.14, 0.06])
    """

    errors: tuple[ModelError, ...]
    gaps: tuple[ModelDifference, ...]
    probability: str
    event: str
    names: tuple[str, ...]
    values: Array
    statistic: str | None
    measures: str
    confidence: float
    n_samples: int
    n_classes: int | None
    lens: str | None
    warnings: tuple[str, ...] = ()
    n_clusters: int | None = None
    sampling_rates: dict[Any, float] | None = None
    functional: str | None = None

    @property
    def measure(self) -> str:
        """The error that orders models: "absolute", or for point forecasts their loss."""
        return self.loss if self.functional else "absolute"

    @property
    def nearest(self) -> list[str]:
        """Model names by ``measure`` on all rows, smallest first; ties in the order given."""
        wholes = self.errors[: len(self.names)]
        sizes = {x.model: getattr(x, self.loss) if self.functional else x.absolute[1] for x in wholes}
        return sorted(self.names, key=sizes.__getitem__)

    @arguments(first=anything, second=anything, group=OneOf("caltest.auditing:Group", _GROUP))
    def gap(self, first: str, second: str, group: Group | None = None) -> ModelDifference:
        """Return how much further off a model is than another, in whichever order they were given.

        Parameters
        ----------
        first, second : str
            Names of two models.
        group : Group, optional
            A group of ``errors``. Default None: all rows.

        Returns
        -------
        ModelDifference
            Of ``first`` less ``second``.

        Raises
        ------
        InputError
            If these were not compared on these rows.
        """
        pair = {each for each in (first, second) if isinstance(each, str)}
        for each in self.gaps:
            if each.group == group and {each.model, each.other} == pair:
                return each if each.model == first else each.turned
        raise InputError(f"no models {quoted(first)} and {quoted(second)} were compared there.")

    @property
    def loss(self) -> str:
        """The score that is compared too: "log_loss", "crps", "squared" or "brier"."""
        losses = ("log_loss", "crps", "squared", "brier")
        return next(loss for loss in losses if getattr(self.errors[0], loss) is not None)

    @cached_property
    def story(self) -> Story:
        """The story of the comparison: nearest model, gaps to others, errors of each, and next steps.

        The verdict is "better" if all other models are further off, "some" if some are, or "alike". The
        subject is a difference from the nearest model ("worse" or "alike"), and so are the first of the
        ``others``; then come cases in which another model is nearer ("turned"), and for each model its
        largest proved error, wherever it is ("error"; "unproved" if none is proved).
        """
        nearest, *further = self.nearest
        both = [each for gap in self.gaps for each in (gap, gap.turned)]
        differences = [self.gap(name, nearest) for name in further]
        worse = [x for x in both if getattr(x, self.measure)[0] > 0.0]
        gaps = [Finding("worse" if x in worse else "alike", x) for x in differences]
        gaps.sort(key=lambda each: each.kind != "worse")
        kinds = [gaps[0].kind, gaps[-1].kind]
        turned = [each for each in worse if each.model == nearest]
        errors = {name: self._worst(name) for name in self.nearest}
        steps = [Step("use" if "worse" in kinds else "either", {"model": nearest})]
        least = min(self.errors[: len(self.names)], key=lambda each: getattr(each, self.loss)).model
        beside = nearest if least != nearest else further[0]
        predicts = least != nearest or "worse" not in kinds  # not said by the first step
        if predicts and getattr(gap := self.gap(beside, least), self.loss)[0] > 0.0:
            steps.append(Step("weigh" if least != nearest else "predicts", {"gap": gap}))
        alike = [nearest, *(each.of.model for each in gaps if each.kind == "alike")]
        wrong = [name for name in alike if errors[name].kind == "error"]
        steps.append(Step("correct", {"models": wrong}) if wrong else Step("audit"))
        return Story(
            {"worse": "better", "alike": "some" if "worse" in kinds else "alike"}[kinds[-1]],
            found="error" in [each.kind for each in errors.values()],
            subject=gaps[0],
            others=(*gaps[1:], *(Finding("turned", each) for each in turned), *errors.values()),
            steps=tuple(steps),
        )

    def _worst(self, model: str) -> Finding:
        """Return the mean error of a model with the largest proof, or else the clearest one."""
        own = (each for each in self.errors if each.model == model)
        worst = max(own, key=lambda x: (x.proved, abs(x.error) / max(x.high - x.low, 1e-300)))
        return Finding("error" if worst.side else "unproved", worst, side=worst.side)


# ------------------------------------------------------------------ inputs


def wholes_of(
    models: Mapping[str, Any],
    labels: object,
    lens: str | Lens | None,
    default: str | None,
    counting: Any,
) -> tuple[dict[str, Sample], Lens | None]:
    """Check each model's input and that all predict the same rows; find a lens that fits all."""
    if not isinstance(models, Mapping):
        do = "give predictions by name, as in {'a': probs_a, 'b': probs_b}"
        raise InputError(f"models is of type {type(models).__name__}; {do}.")
    if len(models) < 2 or len({as_text(name) for name in models} - {None}) < len(models):
        raise InputError(f"models has the names {listed(models)}; give at least two different ones.")
    find_lens(lens)  # a wrong name is not a model's fault
    given = {str(key): probs for key, probs in models.items()}
    wholes: dict[str, Sample] = {}
    check_rows({**given, "labels": labels})
    for name, probs in given.items():
        with _about_model(name):
            law = sample_of_law(probs, labels, **counting)
            if law and isinstance(law.rows.law, Survival) and not Design.of(law.rows, None).plain:
                found = "times are compared where rows are independent and count alike"
                raise InputError(f"{found}; leave weights and clusters out, or audit each model.")
            wholes[name] = without_zeros(law or sample(probs, labels, **counting))
            if counting.get("sampling_rates") and (classes := wholes[name].rows.classes):
                rates = rates_by_class(counting["sampling_rates"], len(classes), classes)
                counting = {**counting, "sampling_rates": {classes[k]: rates[k] for k in rates}}
            refuse_sets(wholes[name].rows.law, "models are compared by errors of both sides")
            stated, of_first = (x.rows.law for x in (wholes[name], next(iter(wholes.values()))))
            if isinstance(stated, Predictive) != isinstance(of_first, Predictive):
                found = f"these are {stated.about}, and those of the first model {of_first.about}"
                raise InputError(f"{found}; give models of one kind.")
            if isinstance(stated, Predictive) and stated.dimension is not None:
                do = "give numbers, an entry at a time"
                raise InputError(f"these are about vectors of {stated.dimension} entries; {do}.")
            if stated.functional != of_first.functional:
                these, those = (each.functional or "distributions" for each in (stated, of_first))
                do = "give point forecasts of one functional, or distributions for all"
                raise InputError(f"these state {these}, and those of the first model {those}; {do}.")
            if stated.functional and lens:
                raise InputError("point forecasts are compared as they stand; leave the lens out.")
    (reference, first), *others = wholes.items()
    pairs = [each.rows.classes for each in wholes.values() if each.rows.n_classes == 2]
    for pair in filter(None, dict.fromkeys(pairs)):
        for name, probs in given.items():
            if len(column := column_names(probs)) == 1 and says_no(column[0], pair[0], pair[1]):
                in_order_of(pair, column, name, "another model")
    alone = np.arange(len(first.labels))  # each row by itself
    for name, other in others:
        for what, alike in (("weights", "counted alike"), ("clusters", "in the same clusters")):
            own, known = (getattr(each.rows, what) for each in (other, first))
            if not np.array_equal(alone if own is None else own, alone if known is None else known):
                found = f"models {quoted(reference)} and {quoted(name)} have different {what} of rows"
                raise InputError(f"{found}; give the same rows, {alike}.")
        wholes[name] = aligned(reference, first, name, other)
        if first.rows.n_classes is None:
            continue
        differ = first.labels != wholes[name].labels
        if differ.any():  # one label vector means different classes in other orders
            columns, others_of = (each.rows.classes or () for each in (other, first))
            raise InputError(
                f"model {quoted(name)}: the columns are {listed(columns, 4)}, those of model "
                f"{quoted(reference)} {listed(others_of, 4)}, so that the label of "
                f"{Row(int(differ.argmax()))} is not the same class for both; order the columns alike, "
                "or give labels as class names."
            )
    return wholes, lens_of(first.rows, lens, default)


def aligned(reference: str, first: Sample, name: str, other: Sample) -> Sample:
    """Return a sample with its classes in the first one's order, if names reveal it.

    Raise unless both have the same number of rows, and the same classes.
    """
    known, own = first.rows, other.rows
    if known.n_classes is None:
        if own.n_samples != known.n_samples:
            do = "give the same rows"
            raise InputError(f"{reference} has {known.n_samples} rows, {name} {own.n_samples}; {do}.")
        return other
    if known.probs.shape != own.probs.shape:
        its = f"{own.n_samples} of {own.n_classes}; give the same rows and classes"
        have = f"{reference} has {known.n_samples} rows of {known.n_classes} classes"
        raise InputError(f"{have}, {name} {its}.")
    if known.classes is None or own.classes is None:
        return other
    order = in_order_of(known.classes, own.classes, name, f"those of {reference} are called")
    return Sample(own.shown_as(own.probs[:, order], known.classes), np.argsort(order)[other.labels])


@contextmanager
def _about_model(name: str) -> Iterator[None]:
    """Make an error name the model, keeping its facts."""
    try:
        yield
    except InputError as error:
        raise InputError("model {model}: {error}", model=quoted(name), error=error.phrase) from error


# ------------------------------------------------------------------ compare


@arguments(intersections=Whole(1))
def compare(
    models: Mapping[str, Any],
    labels: object,
    statistic: StatisticLike | None = None,
    *,
    lens: str | Lens | None = None,
    groups: object = None,
    intersections: int = INTERSECTIONS,
    class_names: Sequence[str | int] | None = None,
    confidence: float = 0.95,
    weights: object = None,
    clusters: object = None,
    sampling_rates: Mapping[Any, float] | None = None,
    logits: bool = False,
) -> Comparison:
    """Compare models: how far off each is, in percentage points, and which of them differ.

    Parameters
    ----------
    models : dict of str to predictions
        At least two models' predictions of the same n ≥ 4 rows, by name; each (n, m), or (n,)
        probabilities of class 1, in any form that :func:`caltest.test` takes; or distributions of
        numbers, or times until an event, see Notes.
    labels : array of shape (n,), or (time, event)
        Observed classes, or numbers, (n,), or ``(time, event)``, as in :func:`caltest.test`; the same
        for all models.
    statistic : str, Statistic or callable, optional
        As in :func:`caltest.test`: its value for each model stands beside the errors; "ckce" was made
        for comparisons. Default None: no statistic.
    lens : str or Lens, optional
        As in :func:`caltest.test`. Default: the statistic's own. Errors in points are about its
        probability if it shows a single one; else about class 1 of two classes, or the top class. For
        numbers they are about how often outcomes lie in the central 80% interval; for times, about the
        risk until a horizon such as "until:365", by default the later one of :func:`caltest.audit`.
    groups : data frame, dict of columns, or one column, optional
        Columns that group the rows, as :func:`caltest.audit` takes them: errors in points are
        also found in every group of 50 rows or more. Default None: no groups.
    intersections : int, default 2
        How many columns are crossed at once, as in :func:`caltest.audit`; with 1, none are.
    class_names : sequence of str or int, optional
        Names of the classes, in the order of the columns, as in :func:`caltest.test`.
    confidence : float, default 0.95
        Confidence of all intervals.
    weights : array of shape (n,), optional
        How much each row counts, as in :func:`caltest.test`. Default None: all rows have equal weight.
    clusters : array of shape (n,), optional
        Which rows belong together, as in :func:`caltest.test`: rows with the same entry may depend on
        each other in any way. At least four clusters are needed. Default None: rows are independent.
    sampling_rates : dict of class to float, optional
        If rows were sampled by their label: for each class, the share of its rows that was kept,
        as in :func:`caltest.test`. Every model's predictions are transformed to what they mean
        among the rows kept, and models are compared there. Default None: rows were not sampled by
        label.
    logits : bool, default False
        Whether all models' predictions are logits, as in :func:`caltest.test`.

    Returns
    -------
    Comparison
        Frozen; ``print`` it, look at ``.errors`` and ``.gap(model, other)``, or call ``.plot()``,
        ``.to_dict()``.

    Raises
    ------
    InputError
        If one of the models is not a set of predictions of these rows (the message names it), or
        an option cannot be used.

    Notes
    -----
    *Errors in points* are predicted less observed: on average, where errors of opposite sign cancel,
    and in absolute value over tenths of the model's own predictions (in a group, fifths), where they do
    not. The intervals are exact, for any number of rows: Clopper and Pearson's, for mean absolute
    errors those of every choice of signs. With weights or clusters they are Chernoff bounds, as in an
    audit. All of them are correct together. Differences between two models have paired t intervals,
    over rows or clusters, which are about right, those of one kind together; the difference of two
    mean errors of the same event is known.

    *Numbers.* Errors in points are those of coverage, over tenths of the rows by the model's own
    predicted level (the median), or by the probability of "below:c" and "above:c". The CRPS, with
    paired intervals, replaces log loss and Brier score. The mean error in the outcome's units is an
    estimate, with a t interval of its own. Quantile forecasts are compared at levels that all of them
    state; no numbers can be drawn from them, so intervals of their differences do not allow for
    outcomes that did not happen.

    *Point forecasts* (:class:`caltest.predictive.Point`), all of the same functional, are compared by
    the loss that is consistent for it: squared error for means, absolute error for medians, twice the
    pinball loss for quantiles, and for expectiles the asymmetric squared error 2 |1{y ≤ x} − τ| (x −
    y)². The model with the smallest loss comes first. Mean errors stand beside it: for quantiles, of
    the rate of outcomes at or below, with exact intervals; else in units of the outcome, with intervals
    that are exact if both ends of outcomes are known, and about right if not.

    *Times.* The question is whether the event comes by a horizon. The observed risk is Kaplan and
    Meier's within tenths of the model's own predicted risk, and inside these within similar parts, so
    that censoring may depend on the prediction; its limits are about right. Rows must be independent
    and count alike. The score is Brier's at the horizon.

    *The statistic* is the value that :func:`caltest.estimate` gives, bias included; it is not tested.

    References
    ----------
    Moskvichev and Sejdinovic 2025 ("ckce"). Gneiting, "Making and evaluating point forecasts", JASA
    106 (2011).

    Examples
    --------
    >>> import caltest
    >>> from caltest.datasets import load_digits_predictions
    >>> digits = [load_digits_predictions(name) for name in ("naive_bayes", "platt_svm")]
    >>> models = {each.model: each.probs for each in digits}
    >>> comparison = caltest.compare(models, digits[0].labels, "skce_uq")
    >>> comparison.nearest
    ['platt_svm', 'naive_bayes']
    >>> {each.model: round(each.absolute[1], 2) for each in comparison.errors}
    {'naive_bayes': 0.15, 'platt_svm': 0.07}
    """
    measure: Any = None if statistic is None else find_statistic(statistic)
    counting = {"weights": weights, "clusters": clusters, "sampling_rates": sampling_rates}
    counting |= {"class_names": class_names, "logits": logits}
    usual = measure.default_lens if measure else None
    wholes, found_lens = wholes_of(models, labels, lens, usual, counting)
    first = next(iter(wholes.values()))
    rows = first.rows
    count = None if rows.clusters is None else len(np.unique(rows.clusters))
    units, what = (rows.n_samples, "rows") if count is None else (count, "clusters")
    if units < _FEWEST_ROWS:
        what += "" if rows.are_alike else " that count"
        raise InputError(f"there are {units} {what}; a comparison needs {_FEWEST_ROWS} at least.")
    outcomes, through = None, found_lens
    if isinstance(rows.law, Survival):
        found_lens = through or find_lens(lenses_of_times(rows.law)[-1])
        if not isinstance(found_lens, Until) or found_lens.cause:
            raise InputError("times are compared at a horizon; give a lens such as 'until:365'.")
        through = None
    elif isinstance(rows.law, Predictive):
        outcomes = finite_table("the outcomes", labels).reshape(-1)
        outcomes = outcomes if rows.places is None else outcomes[rows.places]
    given: Any = labels
    n_given = rows.n_samples if rows.places is None else len(given)  # rows of weight 0 are left out
    beside = {str(name): own for name, own in models.items()}
    beside |= {"labels": labels, "weights": weights, "clusters": clusters}
    groupings, afterwards = known_before(read_groups(groups, n_given, rows.places, **beside), first)
    doubts = (*afterwards, *(x for each in groupings for x in each.doubts), *first.rows.doubts)
    points, left_out = sizes_of(wholes, found_lens, groupings, intersections, confidence, outcomes)
    values = []
    for name, whole in wholes.items() if measure else ():
        with _about_model(name):
            values.append(value_of(measure, show(whole.rows, through).sample(whole.labels)))
    said = []
    for note in dict.fromkeys(note for whole in wholes.values() for note in whole.rows.notes):
        whose = [name for name, whole in wholes.items() if note in whole.rows.notes]
        said.append(note if len(whose) == len(wholes) else f"{', '.join(whose)}: {note}")
    if not rows.are_alike:
        said.insert(0, f"Rows have weights: effective n = {rows.effective:,.0f} of {rows.n_samples:,}.")
    statistic, measures = (measure.name, measure.measures) if measure else (None, "")
    points |= {"statistic": statistic, "measures": measures, "confidence": float(confidence)}
    points |= {"n_samples": rows.n_samples, "n_classes": rows.n_classes, "n_clusters": count}
    points |= {"lens": found_lens.label if found_lens else None, "names": tuple(wholes)}
    points["functional"] = rows.law.functional
    rates = None if sampling_rates is None else dict(sampling_rates)
    every = (*said, *map(str, (*doubts, *first.premises)), *notes_on(groupings), *left_out)
    return Comparison(**points, values=np.array(values), warnings=every, sampling_rates=rates)
