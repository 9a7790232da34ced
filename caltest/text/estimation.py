"""An estimation of squared calibration errors in plain language."""

from __future__ import annotations

from caltest._visible import CLAUSE, shown
from caltest.estimation.base import Array
from caltest.estimation.result import FunctionRisk, SquaredErrorEstimate
from caltest.text.numbers import page, paragraph, table

_CLEAR = 2.0  # standard errors
_FEW_ROWS = 30
_ZERO = "none (h = 0)"
_WHAT = {True: "root mean square of P(event | p) − p", False: "root mean square of ‖P(Y | g) − g‖"}


def summary(found: SquaredErrorEstimate) -> str:
    """Return what was estimated, the table of functions, which to believe, and the p-value."""
    view = f", seen through the lens {shown(found.lens)}" if found.lens else ""
    rows = [
        ("estimated", f"on {found.n_samples} predictions of {found.n_classes} classes{view}"),
        (
            "rows",
            f"{found.n_tuning} in {found.n_folds} folds to fit and tune, {found.n_test} to estimate on",
        ),
        ("error", f"{found.root:.4g}  ({_WHAT[found.n_classes == 2]})"),
        ("squared", _with_error(found.estimate, found.recommended.standard_error)),
        ("by", f"{_name(found.recommended)}, {found.recommended.is_a}; {_option(found.recommended)}"),
    ]
    if found.test:
        rows.append(("p-value", _pvalue(found)))
    lines = ["Squared calibration error", *table(rows), "", *_table(found)]
    for text in (_how_clear(found), _meaning(found), *(f"Note: {each}" for each in found.warnings)):
        lines += ["", *paragraph(text)]
    return page(lines)


def _table(found: SquaredErrorEstimate) -> list[str]:
    names = [_name(each) for each in found.functions]
    width = max(len(_ZERO), *map(len, names))
    lines = [f"  {'function':<{width}}  {'best option':<22}  {'√risk × 100':<17}  squared error"]
    for name, each in zip(names, found.functions, strict=True):
        risk = _root(each.risk, each.risk_error)
        error = _with_error(each.estimate, each.standard_error)
        lines.append(f"  {name:<{width}}  {_option(each):<22}  {risk:<17}  {error}")
    zero = _root(float(found.zero_risks.mean()), _standard_error(found.zero_risks))
    lines.append(f"  {_ZERO:<{width}}  {'':<22}  {zero:<17}  0")
    return lines


def _name(function: FunctionRisk) -> str:
    return shown(function.label, CLAUSE)


def _root(risk: float, error: float) -> str:
    """Write 100 times the root of a mean risk, by which functions are ranked, and its error."""
    root = risk**0.5
    return f"{100 * root:.3f} ± {50 * error / root if root > 0.0 else 0.0:.3f}"


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
    best = found.recommended
    twins = (best.name, best.value)
    others = [each for each in found.functions[1:] if (each.name, each.value) != twins]
    text = f"{_name(best)} has the least risk on rows it was not fitted to"
    if not others:
        return f"{text}. {_against_zero(found)}"
    gap, error = found.gap(others[0])
    if gap == 0.0:
        return f"{text}, and others have the same: there is nothing to choose. {_against_zero(found)}"
    text += (
        f". The next, {_name(others[0])}, has a risk {gap:.2g} ± {error:.2g} larger (± standard error "
        "over the folds). "
    )
    near = [_name(each) for each in others if not _is_clear(*found.gap(each))]
    if near:
        verb = "lies" if len(near) == 1 else "lie"
        text += f"The choice is not clear: {_and(near)} {verb} within {_CLEAR:g} standard errors. "
    else:
        text += f"All others are more than {_CLEAR:g} standard errors worse. "
    return text + _against_zero(found)


def _against_zero(found: SquaredErrorEstimate) -> str:
    """Compare with h = 0, which calls the model calibrated."""
    gap, error = found.gap()
    pvalue = "whether there is an error, a p-value tells with more power."
    if gap < 0.0:
        return f"Calling the model calibrated (h = 0) has a smaller risk still; {pvalue}"
    text = f"Calling the model calibrated (h = 0) has a risk {gap:.2g} ± {error:.2g} larger"
    return f"{text}." if _is_clear(gap, error) else f"{text}, which is not clear; {pvalue}"


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _is_clear(gap: float, error: float) -> bool:
    return gap > _CLEAR * error


def _meaning(found: SquaredErrorEstimate) -> str:
    what = (
        "The errors after ± of the squared error are standard errors, by a jackknife over the folds "
        f"and from the {found.n_test} test rows; what the choice of options adds is not in them, so "
        "they may be too small."
    )
    if found.n_test < _FEW_ROWS:
        what += f" The test part has {found.n_test} rows only: do not rely on the estimate."
    if found.estimate < 0.0:
        what += " An estimate below 0 says that no error was found; the root is taken to be 0."
    return what


def _standard_error(values: Array) -> float:
    return float(values.std(ddof=1) / len(values) ** 0.5)
