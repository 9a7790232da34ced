"""What an audit warns of beside its findings: its groups, its clusters, its limit."""

from __future__ import annotations

import math
from collections.abc import Sequence

from caltest._numbers import counted, points
from caltest._visible import shown_column
from caltest.exceptions import Row


def cut_column(column: str, different: int, ranges: int) -> str:
    """Say that a column of so many different numbers was cut into ranges."""
    return (
        f"Column {shown_column(column)!r} has {different:,} different numbers, and was cut at its "
        f"own quantiles into {ranges} ranges of about equally many rows; equal numbers stay together."
    )


def no_numbers(column: str, count: int, first: str, row: int, group: str) -> str:
    """Say that some entries of a column that was cut into ranges are no numbers."""
    one = count == 1
    return (
        f"Column {shown_column(column)!r} holds {counted(count, 'entry', 'entries')} that "
        f"{'is no number' if one else 'are no numbers'} ({'' if one else 'the first is '}{first} in "
        f"{Row(row)}), in a group of {'its' if one else 'their'} own, {group!r}."
    )


def like_the_labels(column: str) -> str:
    """Warn of a column that groups rows as the labels do."""
    return (
        f"Column {shown_column(column)!r} of groups groups the rows as the labels do: its p-values, "
        "intervals and diagrams mean nothing, for groups must be known before the labels are; leave it "
        "out."
    )


def like_the_members(column: str, name: str) -> str:
    """Warn of a column of groups, or of weights, that sorts rows by a summary of their members."""
    return (
        f"{column} sorts rows by the {name} of their members: with the outcome left out, that makes "
        "calibrated ensembles look wrong. Leave it out; the groups by predicted level and spread are "
        "of members and outcome together."
    )


def few_clusters(few: int, views: int, needed: int, fewest: float) -> str:
    """Say that in ``few`` of the views few clusters carry the error, by the predictions."""
    return (
        f"In {few:,} of {views:,} views fewer than {needed} clusters count in effect "
        f"(as few as {fewest:.0f}): intervals there hold however the rows of a cluster depend on each "
        "other, and are wide. More clusters, or larger groups, make them narrower."
    )


def few_carry(few: Sequence[bool], draws: int, level: float) -> str:
    """Say in how many checks few clusters carry the statistic, and whether these can be found."""
    n_few, n = sum(few), len(few)
    said = (
        f"In {n_few:,} of {n:,} checks few clusters carry the statistic, judged by the predictions. "
        "Each of their p-values is the larger of two: by random signs of clusters, and by labels for "
        "which all rows of a cluster are surprised together. It is approximate."
    )
    if n_few < n:
        said += " They share the level with the other checks in proportion to their number."
    needed = max(math.ceil(2 * n / (size * level)) for size in (n_few, n - n_few) if size)
    if needed <= draws + 1:
        return said
    return f"{said} With so few draws the smaller share cannot be found: give n_resamples={needed:,}."


def limit_too_large(limit: float, classes: Sequence[str]) -> str:
    """Warn of classes whose mean prediction is within the limit."""
    return (
        f"Your limit of {points(limit)} is larger than the mean prediction of "
        f"{classes[0] if len(classes) == 1 else f'{len(classes)} classes'}, so it says nothing there: "
        "predicting 0 would be within it, too. For rare events give the limit as a ratio alone, for "
        "example materiality_ratio=1.25."
    )
