"""Tests of rows that are too many to hold: read from where they are stored, a block at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from caltest._parallel import Workers, single_threaded_blas
from caltest._tail import Alternative
from caltest.data import Predictions, Sample, glimpse, impossible_rows
from caltest.files import Stored
from caltest.files.stored import BlockCheck
from caltest.lenses import Lens, find_lens, seen
from caltest.named import check_alternative
from caltest.nulls import MonteCarlo, Null, answer_by_blocks
from caltest.results import CalibrationResult
from caltest.statistics import Statistic
from caltest.statistics._low_rank import HELD_UP_TO


@dataclass(frozen=True)
class _Seen:
    """Checks a block, and shows it through a lens."""

    checked: BlockCheck
    lens: str | Lens | None
    default: str | None

    def __call__(self, number: int, block: Any) -> Sample:
        return seen(self.checked(number, block), self.lens, self.default)[0]


@dataclass(frozen=True, eq=False)
class _View:
    """Stored rows as a lens shows them."""

    stored: Stored
    lens: str | Lens | None
    default: str | None

    @property
    def n_samples(self) -> int:
        return self.stored.n_samples

    def tasks(self) -> Any:
        return self.stored.tasks()

    @property
    def checked(self) -> _Seen:
        return _Seen(self.stored.checked, self.lens, self.default)

    def glimpse(self) -> Predictions:
        """Go through all rows once, and return a few of them."""
        parts = (self.checked(*task).predictions.probs for task in self.tasks())
        return glimpse(parts)


def goes_through(stored: Stored, null: Null) -> bool:
    """Say whether rows are read in one pass, if the statistic can: if they are many."""
    return stored.n_samples > HELD_UP_TO and isinstance(null, MonteCarlo) and null.stop_after is None


def stored_result(
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
    view = _View(stored, lens, measure.default_lens)
    first = stored.checked(*next(iter(view.tasks())))
    lens_label = seen(first, lens, measure.default_lens)[1]
    with single_threaded_blas():
        partwise = measure.in_parts(stored.n_samples, view.glimpse)
        found = answer_by_blocks(partwise, view, side, n_resamples, seed, workers)
    answer, fitted = found.answer, partwise.statistic
    return CalibrationResult(
        statistic=found.value,
        pvalue=answer.pvalue,
        name=fitted.name,
        null=null.name,
        guarantee=null.guarantee,
        alternative=side,
        n_samples=stored.n_samples,
        n_classes=found.n_classes,
        lens=lens_label,
        parameters=fitted.parameters,
        n_resamples=answer.n_resamples,
        exceedances=answer.exceedances,
        pvalue_interval=answer.pvalue_interval,
        null_distribution=answer.null_distribution,
        warnings=(
            *found.notes,
            *impossible_rows(found.impossible, stored.n_samples),
            *fitted.notes,
            *answer.notes,
        ),
        seed=seed,
        measures=fitted.measures,
        parts=answer.parts,
    )
