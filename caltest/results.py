"""Results: their base class, and the result of a test.

A result holds facts. :mod:`caltest.text` writes its texts and :mod:`caltest.plots` draws its pictures;
:mod:`caltest._printers` calls both when something is shown.
"""

from __future__ import annotations

import html
import math
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from caltest import _printers
from caltest._arguments import arguments, flag, when_asked
from caltest.exceptions import Premise
from caltest.forms import Side
from caltest.lenses import means
from caltest.nulls import Answer, ComponentAnswer, Guarantee, Null, Question
from caltest.pvalues import Alternative
from caltest.story import Finding, Step, Story


def plain(value: Any) -> Any:
    """Return plain data, ready for strict JSON: a number that is not finite becomes a string."""
    if isinstance(value, np.ndarray):
        return [plain(each) for each in value.tolist()]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        if hasattr(value, "to_dict"):
            return value.to_dict()
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, dict):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):  # with names
        return plain(value._asdict())
    return [plain(each) for each in value] if isinstance(value, tuple | list) else value


#: A row of a table in a notebook: a name and a text.
_ROW = (
    '<tr><th scope="row" style="text-align: left; vertical-align: top">{}</th>'
    '<td style="text-align: left">{}</td></tr>'
)


@dataclass(frozen=True, eq=False, repr=False)
class Facts:
    """Frozen data with read-only arrays, convertible to plain data together with derived values."""

    #: Properties included in the plain data, after the fields.
    derived: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    @arguments()
    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for strict JSON: a number that is not finite becomes a string."""
        return self._plain()

    def _plain(self, *without: str) -> dict[str, Any]:
        """Return fields and derived values as plain data, without the named ones."""
        names = [each.name for each in fields(self) if each.name not in without]
        return {name: plain(getattr(self, name)) for name in (*names, *self.derived)}


class PageTable(NamedTuple):
    """A table in a summary: complete on a web page, cut to the available room in text."""

    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    most: int = 10  #: Rows in text.
    where: object = ""  #: Where to find the others.


class Page(str):
    """A summary as text, and its parts for other printers: a web page, a notebook, one line."""

    answer: str  #: The verdict and the headline in one line.
    about: str  #: The kind of result.
    kind: str  #: The code of its verdict, for a mark; "" without one.
    chip: str  #: The verdict in a few words; "" without one.
    why: str  #: An explanation beside the verdict, as a clause.
    headline: str  #: The finding with its size and place, as sentences.
    size: str  #: A line of numbers.
    blocks: tuple[str | PageTable, ...]  #: Tables and paragraphs; table lines begin with blanks.
    steps: tuple[str, ...]  #: Next steps.
    rows: tuple[tuple[str, str], ...]  #: The evidence, as names and texts.
    details: str  #: More evidence, for ``verbose``.
    notes: tuple[str, ...]  #: Premises in doubt, then other notes.
    brief: str  #: The key facts in a few words; "" if there are none.


@dataclass(frozen=True, eq=False, repr=False)
class Result(Facts):
    """Base class of results: facts that print themselves."""

    @arguments(verbose=flag)
    def summary(self, *, verbose: bool = False) -> str:
        """Return the result in plain language: the finding, next steps, and the assumptions behind it.

        Parameters
        ----------
        verbose : bool, default False
            Add details, such as the options of a statistic.
        """
        page = self._page()
        return f"{page}\n\n{page.details}" if verbose and page.details else str(page)

    @arguments()
    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the result, as its display in :mod:`caltest.plots` does.

        Parameters
        ----------
        ax : matplotlib Axes, or sequence of them, optional
            Axes to draw in, as many as the picture has parts. Default: a new figure.
        **options : any
            As in ``from_result`` of the display: ``view=1`` of bounds, for instance.

        Returns
        -------
        Display
            Drawn.

        Raises
        ------
        InputError
            If there is no picture of such a result.
        """
        return _printers.drawn(self, ax, options)

    def _page(self) -> Page:
        """Return the summary with its parts, for other printers."""
        return cast("Page", _printers.written(self, "summary"))

    def _written(self, what: str) -> str:
        """Return the text that :mod:`caltest.text` writes for it."""
        return _printers.written(self, what)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._page().brief})"

    def _repr_html_(self) -> str:
        """Return the finding in bold, and a table of names and values, for notebooks."""
        page = self._page()
        rows = (*page.rows, *(("note", note) for note in page.notes))
        cells = "".join(_ROW.format(*map(html.escape, each)) for each in rows)
        return f"<p><strong>{html.escape(page.answer)}</strong></p><table>{cells}</table>"


@when_asked("premises")
@dataclass(frozen=True, eq=False, repr=False)
class CalibrationResult(Result):
    """The result of a calibration test: statistic, p-value, and how they were obtained.

    Attributes
    ----------
    statistic : float
        Value of the statistic.
    pvalue : float
        The probability of a value at least as extreme if the model is calibrated; in (0, 1].
    name : str
        Registered name of the statistic.
    null : str
        Registered name of the null.
    guarantee : {"exact", "bound", "asymptotic", "approximate"}
        How far the p-value can be trusted: "exact", "bound", "asymptotic" or "approximate".
    alternative : str
        "greater", "less" or "two-sided"; for a test with a tolerance, "over", "under" or "two-sided".
    n_samples : int
        Number of rows.
    n_classes : int or None
        Number of classes, as the lens shows them; None for predicted distributions of numbers.
    lens : str or None
        Label of the lens; None for the full probability vector.
    parameters : dict
        The options used, such as a fitted bandwidth.
    n_resamples : int or None
        Number of simulated label sets; None if the null does not simulate.
    exceedances : int or None
        Number of them at least as extreme as observed; for two-sided tests, on the side with fewer.
        None if the null does not simulate.
    pvalue_interval : tuple of two floats, or None
        95% Clopper–Pearson interval of the p-value that infinitely many resamples would give;
        Monte Carlo only.
    null_distribution : array of shape (B,), or None
        Values of the statistic for the simulated labels, or None.
    warnings : tuple of str
        Sentences a reader should know.
    premises : tuple of Premise
        What the p-value supposes and the data contradict or put in doubt
        (:class:`caltest.exceptions.Premise`).
    event : str or None
        For one probability, or else the confidence in the top class: the event as a clause. None
        otherwise.
    predicted : float or None
        The mean predicted probability of the event.
    observed : float or None
        How often the event was observed.
    alpha : float
        The level at which words say that an error is found.
    seed : int or None
        Integer that, given as ``rng``, reproduces the numbers; None if no random numbers were
        drawn.
    measures : str
        What the statistic measures, in words.
    claim : str or None
        The hypothesis of a test with a tolerance, in words; None for a test of calibration.
    parts : tuple of ComponentAnswer
        For a combined statistic ("omnibus") with the exact null: each part's name, value, own
        p-value, and p-value adjusted for the number of parts. Otherwise empty.
    order : str
        For a statistic of the order of rows: what it found, as a sentence. Otherwise "".

    Examples
    --------
    >>> import caltest
    >>> sure = caltest.simulation.tempered(n_samples=300, temperature=0.4, rng=0)
    >>> found = caltest.test(sure.probs, sure.labels, "ecd", rng=0)
    >>> round(found.statistic, 2), found.pvalue, found.guarantee, found.rejects(0.05)
    (0.69, 0.002, 'exact', True)
    >>> found.null_distribution.shape, found.seed
    ((999,), 0)
    """

    statistic: float
    pvalue: float
    name: str
    null: str
    guarantee: Guarantee
    alternative: Alternative | Side
    n_samples: int
    n_classes: int | None
    lens: str | None = None
    parameters: dict[str, Any] = field(default_factory=dict)
    n_resamples: int | None = None
    exceedances: int | None = None
    pvalue_interval: tuple[float, float] | None = None
    null_distribution: NDArray[np.float64] | Any = None  # Any: most users need not know that it exists
    warnings: tuple[str, ...] = ()
    seed: int | None = None
    measures: str = ""
    claim: str | None = None
    parts: tuple[ComponentAnswer, ...] = ()
    premises: tuple[Premise, ...] = ()
    event: str | None = None
    predicted: float | None = None
    observed: float | None = None
    alpha: float = 0.05
    order: str = ""

    @property
    def story(self) -> Story:
        """The story of the result: verdict, means and next steps."""
        found = self.rejects(self.alpha)
        return Story(
            verdict="found" if found else "not found",
            found=found,
            subject=None if self.predicted is None else Finding("mean", self),
            premises=self.premises,
            steps=(Step("sizes" if found else "limit"),),
        )

    @arguments()
    def rejects(self, alpha: float) -> bool:
        """Return whether calibration is rejected at level ``alpha``, which is in (0, 1)."""
        return self.pvalue <= alpha

    @arguments(draws=flag)
    def to_dict(self, *, draws: bool = False) -> dict[str, Any]:
        """Return plain data, ready for strict JSON: a number that is not finite becomes a string.

        Parameters
        ----------
        draws : bool, default False
            Include the null distribution. Default False: it is long.
        """
        return self._plain(*(() if draws else ("null_distribution",)))


def result_of(
    question: Question, null: Null, answer: Answer, warnings: tuple[str, ...], **stated: Any
) -> CalibrationResult:
    """Assemble a result from the question, the null's answer and facts about the rows."""
    measure, value = question.statistic, answer.statistic
    facts: dict[str, Any] = {"alternative": question.alternative, "n_classes": question.rows.n_classes}
    facts |= stated
    if stated["n_samples"] == question.rows.n_samples:  # else only some of the rows
        facts |= means(question.rows, question.labels, stated.get("lens"))
    return CalibrationResult(
        statistic=float(question.observed if value is None else value),
        pvalue=answer.pvalue,
        name=measure.name,
        null=null.name,
        guarantee=answer.guarantee or null.guarantee_for(question.form),
        n_resamples=answer.n_resamples,
        exceedances=answer.exceedances,
        pvalue_interval=answer.pvalue_interval,
        null_distribution=answer.null_distribution,
        warnings=(*warnings, *answer.notes),
        seed=question.seed if answer.n_resamples is not None else None,
        measures=measure.measures,
        parts=answer.parts,
        **facts,
    )
