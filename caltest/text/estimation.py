"""An estimation of squared calibration errors in plain language."""

from __future__ import annotations

from caltest._visible import CLAUSE, shown
from caltest.estimation.result import FunctionRisk, SquaredErrorEstimate
from caltest.text.numbers import page, through, without_rounding

_CLEAR = 2.0  # standard errors
_FEW_ROWS = 30
_ZERO = "none (h = 0)"
_WHAT = {True: "root mean square of P(event | p) − p", False: "root mean square of ‖P(Y | g) − g‖"}


def summary(found: SquaredErrorEstimate) -> str:
    """Return what was estimated, the table of functions, which was picked, and the p-value."""
    best = found.recommended
    classes = through(found.lens) or f" of {found.n_classes} classes"
    rows = [
        ("data", f"{found.n_samples:,} predictions{classes}"),
        (
            "rows",
            f"{found.n_tuning:,} in {found.n_folds} folds to fit and tune, {found.n_test:,} to "
            "estimate",
        ),
        ("error", f"{found.root:.4g}  ({_WHAT[found.n_classes == 2]})"),
        ("squared", _with_error(found.estimate, best.standard_error)),
        ("by", f"{_name(best)}, {best.is_a}; {_option(best)}"),
    ]
    if test := found.test:
        how = f"tuning, choice and estimate repeated on {test.n_resamples:,} simulated label sets"
        if test.name == "held_out_agreement":
            how = (
                f"the labels of the {found.n_test:,} test rows against the errors learned from the "
                f"other rows, {test.n_resamples:,} simulated label sets"
            )
        rows.append(("p-value", f"{test.pvalue:.4g}  (exact: {how})"))
    names = [_name(each) for each in found.functions]
    width = max(len(_ZERO), *map(len, names))
    table = [f"  {'function':<{width}}  {'best option':<22}  {'√risk × 100':<17}  squared error"]
    for name, each in zip(names, found.functions, strict=True):
        risk = _root(each.risk, each.risk_error)
        error = _with_error(each.estimate, each.standard_error)
        table.append(f"  {name:<{width}}  {_option(each):<22}  {risk:<17}  {error}")
    risks = found.zero_risks
    zero = _root(float(risks.mean()), float(risks.std(ddof=1) / len(risks) ** 0.5))
    table.append(f"  {_ZERO:<{width}}  {'':<22}  {zero:<17}  0")
    meaning = (
        "The ± of the squared error is a standard error, from a jackknife over the folds and from the "
        f"{found.n_test:,} test rows. It ignores the choice of options, so it may be too small."
    )
    if found.n_test < _FEW_ROWS:
        meaning += f" There are only {found.n_test} test rows: do not rely on the estimate."
    if found.estimate < 0.0:
        meaning += " An estimate below 0 means that no error was found; its root is set to 0."
    texts = [table, _how_clear(found), meaning]
    p = f"p = {found.test.pvalue:.3g}, " if found.test else ""
    size = f"The calibration error is about {found.root:.2g} ({_WHAT[found.n_classes == 2]})"
    if found.estimate < 0.0:
        size = "No calibration error was found: the estimate of its square is below 0"
    headline = f"{size}, by {_name(best)}."
    brief = f"{_name(best)}: {found.root:.3g}, {p}n = {found.n_samples:,}"
    title = "Squared calibration error"
    return page(title, rows, *texts, notes=found.warnings, headline=headline, brief=brief)


def _name(function: FunctionRisk) -> str:
    return shown(function.label, CLAUSE)


def _root(risk: float, error: float) -> str:
    """Write 100 times the root of a mean risk, by which functions are ranked, and its error."""
    root = risk**0.5
    return f"{100 * root:.3f} ± {50 * error / root if root > 0.0 else 0.0:.3f}"


def _option(function: FunctionRisk) -> str:
    return f"{function.tuned} {function.value:.3g}"


def _with_error(value: float, error: float) -> str:
    return f"{without_rounding(value):.5g} ± {without_rounding(error):.2g}"


def _how_clear(found: SquaredErrorEstimate) -> str:
    """Say how far the others are from the best, and how far h = 0, which calls the model calibrated."""
    best = found.recommended
    gap, error = found.gap()
    zero = "Assuming no error at all (h = 0) has"
    clear = "A p-value is the more powerful way to see whether there is an error."
    if gap < 0.0:
        zero += f" an even lower risk. {clear}"
    elif gap > _CLEAR * error:
        zero += f" a risk higher by {gap:.2g} ± {error:.2g}."
    else:
        zero += f" a risk higher by {gap:.2g} ± {error:.2g}, which is not significant. {clear}"
    text = f"{_name(best)} has the lowest held-out risk"
    twins = (best.name, best.value)
    others = [each for each in found.functions[1:] if (each.name, each.value) != twins]
    if not others:
        return f"{text}. {zero}"
    gap, error = found.gap(others[0])
    if gap == 0.0:
        return f"{text}, and others have the same. {zero}"
    text += (
        f". The runner-up, {_name(others[0])}, has a risk higher by {gap:.2g} ± {error:.2g} (standard "
        "error over the folds). "
    )
    gaps = [(_name(each), *found.gap(each)) for each in others]
    near = [name for name, gap, error in gaps if not gap > _CLEAR * error]
    if near:
        names = near[0] if len(near) == 1 else f"{', '.join(near[:-1])} and {near[-1]}"
        verb = "lies" if len(near) == 1 else "lie"
        text += f"The choice is not clear-cut: {names} {verb} within {_CLEAR:g} standard errors. "
    else:
        text += f"All others are more than {_CLEAR:g} standard errors worse. "
    return text + zero
