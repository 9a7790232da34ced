"""An estimation of squared calibration errors in plain language."""

from __future__ import annotations

from caltest._prose import paragraph, row
from caltest.estimation.result import FunctionRisk, SquaredErrorEstimate

_CLEAR = 2.0  # standard errors
_WHAT = {True: "root mean square of P(event | p) − p", False: "root mean square of ‖P(Y | g) − g‖"}


def summary(found: SquaredErrorEstimate) -> str:
    """Return what was estimated, the table of functions, which to believe, and the p-value."""
    view = f", seen through the lens {found.lens}" if found.lens else ""
    rows = [
        ("estimated", f"on {found.n_samples} predictions of {found.n_classes} classes{view}"),
        (
            "rows",
            f"{found.n_tuning} in {found.n_folds} folds to fit and tune, {found.n_test} to estimate on",
        ),
        ("error", f"{found.root:.4g}  ({_WHAT[found.n_classes == 2]})"),
        ("squared", _with_error(found.estimate, found.recommended.estimate_error)),
        ("by", f"{found.recommended.label}, {found.recommended.is_a}; {_option(found.recommended)}"),
    ]
    if found.test:
        rows.append(("p-value", _pvalue(found)))
    lines = ["Squared calibration error", *(row(name, text) for name, text in rows), "", *_table(found)]
    for text in (_how_clear(found), _meaning(found), *(f"Note: {each}" for each in found.warnings)):
        lines += ["", *paragraph(text)]
    return "\n".join(lines)


def _table(found: SquaredErrorEstimate) -> list[str]:
    width = max(len("function"), *(len(each.label) for each in found.functions))
    head = f"  {'function':<{width}}  {'best option':<22}  {'√risk × 100':<17}  squared error"
    lines = [head]
    for each in found.functions:
        risk = _root_risk(each)
        error = _with_error(each.estimate, each.estimate_error)
        lines.append(f"  {each.label:<{width}}  {_option(each):<22}  {risk:<17}  {error}")
    return lines


def _root_risk(function: FunctionRisk) -> str:
    """Write 100 times the root of the mean risk, by which functions are ranked, and its error."""
    root = function.risk**0.5
    error = 0.5 * function.risk_error / root if root > 0.0 else 0.0
    return f"{100 * root:.3f} ± {100 * error:.3f}"


def _option(function: FunctionRisk) -> str:
    return f"{function.tuned} {function.value:.3g}"


def _with_error(value: float, error: float) -> str:
    return f"{value:.5g} ± {error:.2g}"


def _pvalue(found: SquaredErrorEstimate) -> str:
    test = found.test
    assert test is not None
    if test.name == "held_out_agreement":
        return (
            f"{test.pvalue:.4g}  (exact: the labels of the {found.n_test} test rows against the errors "
            f"learned from the others, {test.n_resamples} draws)"
        )
    return (
        f"{test.pvalue:.4g}  (exact: tuning, choice and estimate re-run on {test.n_resamples} drawn "
        "label vectors)"
    )


def _how_clear(found: SquaredErrorEstimate) -> str:
    best, others = found.recommended, found.functions[1:]
    zero, zero_error = found.gap()
    text = f"{best.label} has the least risk on rows it was not fitted to. "
    if others:
        near = [each.label for each in others if not _is_clear(*found.gap(each))]
        gap, error = found.gap(others[0])
        text += (
            f"The next, {others[0].label}, has a risk {gap:.2g} ± {error:.2g} larger (± standard error "
            "over the folds). "
        )
        text += (
            f"The choice is not clear: {_and(near)} {'lies' if len(near) == 1 else 'lie'} within "
            f"{_CLEAR:g} standard errors. "
            if near
            else f"All others are more than {_CLEAR:g} standard errors worse. "
        )
    if _is_clear(zero, zero_error):
        return (
            text
            + f"Calling the model calibrated would have a risk {zero:.2g} ± {zero_error:.2g} larger."
        )
    more = f"{zero:.2g} ± {zero_error:.2g}"
    return text + (
        f"The risk of calling the model calibrated (error 0) is {more} larger, which does not tell the "
        "two apart; whether there is an error is what a p-value tells, with more power."
    )


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _is_clear(gap: float, error: float) -> bool:
    return gap > _CLEAR * error


def _meaning(found: SquaredErrorEstimate) -> str:
    what = (
        "The errors after ± are standard errors over the folds: how far the fold models differ, not "
        f"how far chance in the {found.n_test} test rows may move them "
        f"(± {found.recommended.sampling_error:.2g} for the first)."
    )
    if found.estimate < 0.0:
        what += " An estimate below 0 says that no error was found; the root is taken to be 0."
    return what
