"""How sure an audit is: what its p-value is the probability of, and which error is controlled."""

from __future__ import annotations

from dataclasses import dataclass

from caltest.auditing.result import Audit
from caltest.pvalues import CORRECTIONS
from caltest.text.numbers import confidence_text, counted, points, pvalue


@dataclass(frozen=True)
class Fact:
    """A term, what it is here, and what that means."""

    term: str
    value: str
    note: str


def facts(audit: Audit) -> tuple[Fact, ...]:
    """Return the p-value, what is controlled, why it is exact, and what was looked at."""
    return (_pvalue(audit), _controlled(audit), _exact(audit), _looked_at(audit))


def claim(audit: Audit) -> str:
    """Return the hypothesis as a clause, after "if"."""
    if audit.tolerance:
        return f"no probability looked at were wrong by more than {points(audit.tolerance)}"
    return f"the model were calibrated{' in every group' if audit.groups else ''}"


def _pvalue(audit: Audit) -> Fact:
    note = f"{'At or below' if audit.rejected else 'Above'} alpha = {audit.alpha:g}"
    if audit.pvalue <= (1.0 + 1e-9) / (audit.n_resamples + 1):
        note += f"; the smallest that {counted(audit.n_resamples, 'draw')} can show"
    if audit.rejected and audit.impossible:
        note += "; a label of probability 0 came true"
    return Fact("p-value of the whole", pvalue(audit.pvalue, audit.alpha), f"{note}.")


def _controlled(audit: Audit) -> Fact:
    n, chance = counted(len(audit.checks), "check"), confidence_text(audit.alpha)
    condition = _condition(audit)
    proviso = f" That is proved {condition} only." if condition else ""
    if audit.correction.startswith("fdr"):
        note = f"Of what is found by {n}, a share of at most {chance} is false on average.{proviso}"
        return Fact("Controlled", "false discovery rate", note)
    note = f"If {claim(audit)}, the chance of any finding among {n} would be at most {chance}.{proviso}"
    return Fact("Controlled", "family-wise error", note)


def _condition(audit: Audit) -> str | None:
    """Return of which tests a correction is valid; None if it is however they depend on each other."""
    told = CORRECTIONS.get(audit.correction, "").partition(", ")[2]
    return told if told.startswith("of ") else None


def _exact(audit: Audit) -> Fact:
    exact = audit.correction == "westfall_young" and audit.tolerance is None
    model = "the model" if audit.tolerance is None else "the worst model within the tolerance"
    note = (
        f"By {counted(audit.n_resamples, 'draw')} of the labels from {model}: for any number of rows, "
        "if they are independent and not training data"
    )
    if _condition(audit):
        each = "Each check by itself is valid; all together are if they depend as “Controlled” says"
        return Fact("Guarantee", "conditional", f"{note}. {each}.")
    return Fact("Guarantee", "exact" if exact else "valid", f"{note}.")


def _looked_at(audit: Audit) -> Fact:
    rows = f"{counted(audit.n_samples, 'prediction')} of {counted(audit.n_classes, 'class', 'classes')}"
    skipped = f"; {len(audit.skipped):,} skipped" if audit.skipped else ""
    note = f"{counted(len(audit.views), 'view')} of {rows}{skipped}."
    return Fact("Looked at", counted(len(audit.checks), "check"), note)


def findings_counted(audit: Audit) -> str:
    """Return how many checks there are, and how many found an error."""
    found = len(audit.found)
    right = "calibrated" if audit.tolerance is None else "within the tolerance"
    return (
        f"A check is one hypothesis: that what is looked at is {right}, by one statistic. "
        f"Of {counted(len(audit.checks), 'check')}, {found:,} found an error: the adjusted p-value "
        f"is at or below alpha = {audit.alpha:g}."
    )
