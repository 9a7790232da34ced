"""Sets and intervals that claim to hold the outcome with some probability, and nothing else.

Coverage of a row is an event whose probability is the level, and the claim is "at least": only too
little coverage is evidence against it. Conformal methods promise coverage of all rows together, on
average over calibration sets. Conditional on one such set, the coverage of new rows has a beta law
(Vovk 2012).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from caltest._arguments import Whole, anything, arguments, choose, names, real_array
from caltest._sums import Mask, blocks
from caltest._visible import quoted
from caltest.alignment import as_spelled, column_names
from caltest.exceptions import InputError
from caltest.laws.base import Shaped, finite_table
from caltest.laws.classes import Array, Classes, LabelSampler, Law, Outcomes
from caltest.sampling import DRAWS, ROWS, generator

#: Claims that may be made besides coverage of all rows together.
CLAIMS = {name: name for name in ("size", "class", "groups", "features")}
_APART = 2**32 - 1  # key of the seeds of beta draws, which no block of rows has
_SURE = 1e-9  # levels closer to 0 or 1 than this claim nothing, or everything
_GIVE = "give members as (n, m) of True and False or as lists of classes, or lower and upper ends"
_WRONG = {
    "given": f"sets or intervals are missing, or given twice; {_GIVE}.",
    "shape": f"members has shape {{shape}}; {_GIVE}, of one level: members[:, :, 0], say.",
    "table": "members holds {found} in {row}; give True or 1 for a class in the set, else False or 0.",
    "ends": "{row} has the ends {found}; give the lower end first, and no NaN.",
    "names": "two columns of members have one name ({names}); give every class one column.",
    "list": "{row} of members is {found}; give a list of classes, each once.",
    "no level": "sets state no level; give {argument}, such as 0.9.",
    "level": "level has shape {shape}; give one number, or one for each of {n:,} sets.",
    "rows": "there are {n:,} sets, and outcomes have shape {shape}; give one outcome for every set.",
    "label": "label {found} in {row} is missing, or no column of members ({names}); name its columns, "
    "or give ends of intervals as lower and upper.",
    "thresholds": "{argument} says how many rows set one threshold, or that of each class; give all.",
    "few": "{argument} is {rows:,.0f}, too few for level {level:g}: such sets hold everything.",
}
#: Remark on p-values that allow for the calibration set, while intervals do not.
OF_ONE_SET = "P-values allow for the chance of one calibration set; intervals are of these very sets."


@dataclass(frozen=True)
class SetSizes:
    """Sizes of sets: numbers of classes, or widths of intervals.

    Attributes
    ----------
    mean, median : float
        Mean and median over all rows, with their weights.
    empty, single : float or None
        Shares of the rows whose set has no class, and one; None for intervals.
    """

    mean: float
    median: float
    empty: float | None = None
    single: float | None = None


@arguments(members=anything, level=anything)
class Sets(Shaped):
    """Prediction sets of classes, or intervals of numbers, that claim a coverage probability.

    Pass them to :func:`caltest.audit` with the observed classes or numbers. The claim is that at least
    a share ``level`` of all rows is covered, on average; further claims are made only by name.

    Parameters
    ----------
    members : array of shape (n, m), data frame, or sequence of lists of classes
        Which classes every set has: True and False, or 1 and 0, where the columns of a data frame have
        the names of the classes; or n lists of classes. Or intervals, (n, 2): lower and upper ends. A
        last axis of length 1 is left out, as in MAPIE's sets.
    level : float, or array of shape (n,)
        Probability with which a set claims to hold the outcome: 0.9, or one for every row.
    lower, upper : array of shape (n,), optional
        Ends of intervals, in place of ``members``; infinite ends are numbers too.
    claims : sequence of str, default ()
        What is claimed besides: coverage at least as high where sets have few or many classes ("size"),
        in every observed class ("class", label-conditional), in "groups" and by "features". What is not
        claimed is shown with intervals, and enters neither the p-value nor the verdict. Default ():
        coverage of all rows together.
    calibration_rows : int, or dict of class to int, optional
        Rows by which a split conformal method set its one threshold, with continuous scores. The
        p-value then allows for their randomness: given n of them, the coverage of new rows is a draw
        from Beta(n + 1 − l, l), l = ⌊(1 − level)(n + 1)⌋. A dict by class if each class has its own
        threshold. Default None: the coverage of these very sets is tested.

    Raises
    ------
    InputError
        If shapes do not fit, a level is no probability, or l is 0.

    References
    ----------
    Vovk, "Conditional validity of inductive conformal predictors", 2012; Angelopoulos and Bates,
    "Conformal prediction: a gentle introduction", 2023.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> y = np.arange(400) % 4
    >>> members = np.eye(4, dtype=bool)[np.where(np.arange(400) < 320, y, (y + 1) % 4)]
    >>> found = caltest.audit(caltest.predictive.Sets(members, 0.9), y, rng=0)
    >>> found.verdict, round(found.views[0].observed, 2), found.set_sizes.mean
    ('found', 0.8, 1.0)
    """

    about = "prediction sets"
    _by_row = ("table", "stated", "codes")
    codes: Any = None  #: Place of the observed class of every row among ``names``.
    beta: Any = None  #: Parameters of beta laws of coverage, if calibration rows are stated, (2, K).

    def __init__(
        self,
        members: Any = None,
        level: Any = None,
        *,
        lower: object = None,
        upper: object = None,
        claims: Sequence[str] = (),
        calibration_rows: int | Mapping[Any, int] | None = None,
    ) -> None:
        self.given = lower if members is None else members
        if isinstance(members, tuple) or getattr(members, "ndim", 0) == 1:
            members = list(members)
        if [each is None for each in (members, lower, upper)] not in ([0, 1, 1], [1, 0, 0]):
            raise InputError(_WRONG["given"])
        if level is None:
            raise InputError(_WRONG["no level"], argument="level")
        self.calibration_rows = calibration_rows
        self.names: Any = column_names(members)  #: Names of the classes; None for intervals.
        self.listed = isinstance(members, list) and np.asarray(members[:1]).dtype.kind != "b"
        own = self._of_lists(members) if self.listed else members
        if members is None:
            own = np.column_stack([real_array("lower", lower), real_array("upper", upper)])
        table = real_array("members", own, _GIVE)
        shape, table = table.shape, table[..., 0] if table.shape[2:] == (1,) else table
        if table.ndim != 2 or not table.size or (members is None and table.shape[1] != 2):
            raise InputError(_WRONG["shape"], shape=shape)
        wrong, kind = (table != 0.0) & (table != 1.0), "table"
        if members is None or (table.shape[1] == 2 and wrong.any()):
            wrong, kind, self.names = ~(table[:, :1] <= table[:, 1:]), "ends", None
        elif not self.names:
            self.names = tuple(map(str, range(table.shape[1])))
        if len(set(map(as_spelled, self.names or ()))) < len(self.names or ()):
            raise InputError(_WRONG["names"], names=", ".join(map(str, self.names[:8])))
        for row, column in np.argwhere(wrong)[:1].tolist():
            found = " and ".join(f"{each:g}" for each in table[row, column:][:2])
            raise InputError(_WRONG[kind], row=row, found=found)
        self.table, self._shape = table if kind == "ends" else table == 1.0, table[:, 0].shape
        stated = finite_table("level", level, "a probability such as 0.9", low=_SURE, high=1.0 - _SURE)
        if stated.shape not in ((), self._shape):
            raise InputError(_WRONG["level"], shape=stated.shape, n=len(table))
        self.stated = np.broadcast_to(stated, self._shape)
        self.claims = [choose("claim", each, CLAIMS) for each in names("claims", claims)]

    def _of_lists(self, members: Sequence[Any]) -> Array:
        """Return the table of sets that are lists of classes, and set the names of its columns."""
        place, rows = dict[str, int](), list[list[str]]()
        for row, given in enumerate(members):
            each = given.tolist() if hasattr(given, "tolist") else given
            rows.append([*map(as_spelled, each)] if np.iterable(each) and each != str(each) else [""])
            if len({*rows[-1]} - {""}) < len(rows[-1]):
                raise InputError(_WRONG["list"], row=row, found=quoted(given))
            for name in rows[-1]:
                place.setdefault(name, len(place))
        self.names, table = tuple(place), np.zeros((len(rows), max(len(place), 1)))
        for row, cells in enumerate(rows):
            table[row, [place[name] for name in cells]] = 1.0
        return table

    @property
    def size(self) -> Array:
        """Number of classes of every set, or width of the interval, (n,)."""
        own = self.table[:, 1] - self.table[:, 0] if self.names is None else self.table.sum(axis=1)
        return np.asarray(own, np.float64)

    def met(self, outcomes: Any, weights: Array | None = None) -> tuple[Law, Outcomes]:
        """Return the law of coverage, and which rows are covered."""
        cells = finite_table("outcomes", outcomes) if self.names is None else np.asarray(outcomes)
        if cells.shape != self._shape:
            raise InputError(_WRONG["rows"], n=self.n_samples, shape=cells.shape)
        found = copy(self)
        if self.names is None:
            covered = (self.table[:, 0] <= cells) & (cells <= self.table[:, 1])
        else:
            covered = found._holding(cells)
        if self.calibration_rows is not None:
            found.beta = found._beta(self.calibration_rows)
        chances = np.column_stack([1.0 - self.stated, self.stated])
        return Covered(chances, ("not covered", "covered"), self.given, found), covered.astype(np.intp)

    def _holding(self, cells: Outcomes) -> Mask:
        """Return a mask of the sets that hold their label, and keep the codes of labels."""
        place, labels = {as_spelled(name): k for k, name in enumerate(self.names)}, cells.tolist()
        for row, text in enumerate(map(as_spelled, labels)):
            if not text or (text not in place and not self.listed):
                told = {"found": quoted(labels[row]), "names": ", ".join(self.names[:8])}
                raise InputError(_WRONG["label"], row=row, **told)
            labels[row] = place.setdefault(text, len(place))
        self.names, self.codes = tuple(place), np.array(labels, np.intp)
        known = np.minimum(self.codes, self.table.shape[1] - 1)
        return np.asarray(self.table[np.arange(len(known)), known] & (self.codes == known))

    def _beta(self, given: int | Mapping[Any, int]) -> Array:
        """Return the parameters of the beta laws of coverage, for one calibration set or several."""
        level, counts, wanted = float(self.stated[0]), {"": given}, ("",)
        if isinstance(given, Mapping):
            counts, wanted = {as_spelled(k): each for k, each in given.items()}, self.names
        if np.ptp(self.stated) > 0.0 or wanted is None or not {*wanted} <= {*counts}:
            raise InputError(_WRONG["thresholds"], argument="calibration_rows")
        count, argument = Whole(1, 10**12), "calibration_rows"
        rows = np.array([count(argument, counts[name]) for name in wanted], np.float64)
        left = np.floor((1.0 - level) * (rows + 1.0) + _SURE)
        if left.min() < 1.0:
            raise InputError(_WRONG["few"], argument=argument, rows=rows.min(), level=level)
        return np.stack([rows + 1.0 - left, left])

    def observed(self, outcomes: Outcomes) -> Outcomes:
        """Return outcomes unchanged: sets alone do not define a type of them."""
        return outcomes

    def sizes(self, weights: Array) -> SetSizes:
        """Return the sizes of sets, with weighted rows."""
        size, share, order = self.size, weights / weights.sum(), np.argsort(self.size, kind="stable")
        median = size[order][np.searchsorted(np.cumsum(share[order]), 0.5 - _SURE)]
        own = () if self.names is None else (share[size == k].sum() for k in (0, 1))
        return SetSizes(*map(float, (weights @ size / weights.sum(), median, *own)))


@dataclass(frozen=True, eq=False)
class Covered(Classes):
    """The law of coverage: each row is covered by its set with at least the probability of its level.

    Attributes
    ----------
    of : Sets
        The sets, with the observed classes.
    """

    about = Sets.about
    sides = ("over",)

    of: Any = field(default=None, repr=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return Covered, (self.probs, self.names, None, self.of)

    def take(self, rows: Any) -> Covered:
        """Return the law of some rows."""
        return Covered(self.probs[rows], self.names, None, self.of.take(rows))

    def sampler(self, seed: int, first: int = 0) -> LabelSampler:
        """Prepare to draw coverage: if rows share a calibration set, one beta draw per data set."""
        own = super().sampler(seed, first)
        return own if self.of.beta is None else _SharedSampler(own.cumulative, seed, first, self.of)

    def remarks(self, outcomes: Outcomes) -> tuple[str, ...]:
        """Return a remark on the law tested, if rows are not independent."""
        return () if self.of.beta is None else (OF_ONE_SET,)


def refuse_sets(law: Law, why: str) -> None:
    """Raise if outcomes are coverage of sets, where only one side is claimed."""
    if isinstance(law, Covered):
        raise InputError(f"{why}, and sets claim 'at least'; audit each of them instead.")


@dataclass(frozen=True, eq=False)
class _SharedSampler(LabelSampler):
    """Draws coverage of rows that share a random coverage rate."""

    of: Any = None

    def _fill(self, number: int, start: int, labels: Any) -> None:
        a, b = self.of.beta
        for draws in blocks(len(labels), DRAWS):
            cell, count = (start + draws.start) // DRAWS, draws.stop - draws.start
            rates = generator(self.seed, _APART, cell).beta(a, b, size=(count, len(a)))
            rates = rates[:, self.of.codes[number * ROWS :][:ROWS]] if len(a) > 1 else rates
            uniforms = generator(self.seed, self.first + number, cell).random((count, labels.shape[1]))
            labels[draws] = uniforms < rates
