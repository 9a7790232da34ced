"""An estimation of squared calibration errors in plain language."""

from __future__ import annotations

from caltest._visible import CLAUSE, shown
from caltest.estimation.estimate import FunctionRisk, SquaredErrorEstimate
from caltest.text.numbers import without_rounding
from caltest.text.pages import written

_CLEAR = 2.0  # standard errors
_ZERO = "none (h = 0)"


def summary(found: SquaredErrorEstimate) -> str:
    """Return what was estimated, the table of functions, which was picked, and the p-value."""
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
    best = found.recommended
    twins = (best.name, best.value)
    others = [each for each in found.functions[1:] if (each.name, each.value) != twins]
    gaps = [(_name(each), *found.gap(each)) for each in others]
    return written(
        "estimation",
        found.warnings,
        e=found,
        table=table,
        others=others,
        second=gaps[0][1:] if gaps else None,
        near=[name for name, gap, error in gaps if not gap > _CLEAR * error],
        clear=_CLEAR,
        named=_name,
        option=_option,
        with_error=_with_error,
    )


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
