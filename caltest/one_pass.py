"""A test of rows that are not held: they are read once, where they are stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from caltest._parallel import Workers
from caltest._sums import Array
from caltest.blocks import Read, adds_up, signed_columns_of_blocks, subsample_of, table_of_blocks
from caltest.data import Rows, Sample
from caltest.data.diagnose import impossible_rows
from caltest.files import Stored
from caltest.forms import Combined
from caltest.laws import Classes
from caltest.lenses import Lens, through
from caltest.nulls import Null, Question, answer_of, check_alternative
from caltest.nulls.base import Trial
from caltest.nulls.clusters import Confirmation, answer_of_signs, names_and_sides
from caltest.resampling import columns_of
from caltest.sampling import ROWS
from caltest.statistics import AllRowsNeededError, Statistic

How: TypeAlias = tuple[int, int, Workers]
"""How many draws are made, of which seed, and who makes them."""


def _seen(
    stored: Stored, lens: str | Lens | None, default: str | None, first: int, last: int
) -> Iterator[Sample]:
    """Read blocks of rows, parts of the whole, and show them through the lens."""
    for each in stored.samples(first, last):
        part = Sample(replace(each.rows, part_of=stored.extent), each.labels)
        yield through(part, lens, default)[0]


def in_one_pass(
    measure: Statistic, null: Null, stored: Stored, lens: Lens | None, alternative: str | None, how: How
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Test rows that are read in one pass, by draws of labels or of signs of clusters: for `result_of`.

    Raises
    ------
    AllRowsNeededError
        If the statistic cannot.
    """
    side, (n_resamples, seed, workers) = check_alternative(measure, null, alternative), how
    samples = partial(_seen, stored, lens, measure.default_lens)
    block = next(stored.samples(0, 1))
    first, label = through(block, lens, measure.default_lens)
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
    seconds = form.seconds(n_resamples) * stored.n_samples / first.rows.n_samples
    fitted.announce(seconds, stored.n_samples, workers, null.name)
    read = Read(samples, stored.n_samples, stored.grain, seed, fitted.given)
    count = stored.clusters
    trial = Trial(first.rows, first.labels, *how)
    question = trial.question(fitted, form, side)
    parameters = dict(fitted.parameters)
    if not stored.extent.are_alike:
        parameters["effective_n"] = stored.extent.effective
    if count is not None:
        parameters["clusters"] = count
        columns, found = signed_columns_of_blocks(read, count, stored.share_between, workers)
        confirm = partial(_confirmed, samples, question, stored.n_samples)
        answer = answer_of_signs(question, columns, count, confirm, found.rounding)
    else:
        values, found = table_of_blocks(read, n_resamples, workers)
        if isinstance(form, Combined):
            form = form.with_rounding(found.rounding).standardised(workers)
        answer = answer_of(form, values, side, workers, float(found.rounding[0]))
    broken = impossible_rows(found.impossible, stored.n_samples)
    notes = (*found.notes, *block.rows.law.remarks(block.labels), *broken, *fitted.notes)
    stated = {"n_samples": stored.n_samples, "lens": label, "parameters": parameters}
    return (question, null, answer, notes), stated


def _confirmed(
    samples: Callable[[int, int], Iterator[Sample]], question: Question, n_samples: int, by_signs: Array
) -> Confirmation:
    """Say how many clusters of stored rows carry a statistic: what the lens shows of all is held."""
    parts = list(samples(0, -(-n_samples // ROWS)))
    rows = Rows.joined([each.rows for each in parts])
    labels = np.concatenate([each.labels for each in parts])
    asked = replace(question, rows=rows, labels=labels)
    columns = columns_of(question.statistic.given(rows))
    return Confirmation.of(asked, names_and_sides(asked), columns, by_signs)
