"""`sbc`: simulation-based calibration, an audit of posterior draws against the true parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from scipy.special import ndtri, stdtrit

from caltest._arguments import OneOf, arguments, has
from caltest._arguments import names as names_given
from caltest._visible import quoted, visible
from caltest.alignment import check_rows, in_order_of, is_xarray
from caltest.auditing.audits import audit
from caltest.auditing.result import Audit
from caltest.auditing.story import POSTERIOR
from caltest.auditing.views import Check
from caltest.exceptions import InputError
from caltest.laws import Members
from caltest.laws.base import finite_table
from caltest.laws.classes import Array
from caltest.laws.members import halves
from caltest.lenses import within
from caltest.story import Direction

#: A function of parameters by name, (N,) or (L, N); or its values at the parameters and at their draws.
Quantity: TypeAlias = "Callable[[Mapping[str, Array]], Any] | tuple[Any, Any]"

_DEPENDENT = 0.1  # autocorrelation of neighbouring draws above which it is reported
_CLEARLY = 4.0  # standard errors
_FEWEST_DRAWS = 6  # with fewer, their spread is unknown
_POINTS = 400  # points in a picture
_SURE = 0.975  # on either side

Estimate: TypeAlias = tuple[float, float, float]


@dataclass(frozen=True)
class PosteriorSize:
    """Estimated differences between posterior draws and true values, for one parameter or a pair.

    Attributes
    ----------
    names
        Name of the parameter or quantity, or of two.
    found, adjusted
        Whether a check of it found an error, and its smallest adjusted p-value.
    shift
        For one parameter: mean of the draws minus true value, in standard deviations of the posterior,
        with 95% limits: (low, estimate, high).
    factor
        For one parameter: factor for the spread of its draws; above 1 they are too narrow. None for
        fewer than six draws.
    stated
        For two parameters: their mean correlation among the draws of a simulation.
    observed
        For two parameters: correlation of true values minus means of draws, each in standard deviations
        of its posterior.
    points
        For two parameters: these residuals, (n, 2), for at most 400 simulations.
    """

    names: tuple[str, ...]
    found: bool
    adjusted: float
    shift: Estimate | None = None
    factor: Estimate | None = None
    stated: float | None = None
    observed: Estimate | None = None
    points: Array | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of_one(cls, one: tuple[Array, Array], **known: Any) -> PosteriorSize:
        """Estimate from true values (N,) and draws (L, N)."""
        size, r = len(one[1]), residuals(*one)
        n, half = len(r), float(stdtrit(max(len(r) - 1, 1), _SURE))
        if n < 2:
            return cls(**known)
        mean, reach = float(r.mean()), half * float(r.std(ddof=1)) / n**0.5
        factor: Any = None
        if size >= _FEWEST_DRAWS:  # minus the sampling variance of mean and variance of L normal draws
            squares = (r - mean) ** 2 * (size - 3) / (size - 1) - 1.0 / size
            middle, width = float(squares.mean()), half * float(squares.std(ddof=1)) / n**0.5
            factor = tuple(max(each, 0.0) ** 0.5 for each in (middle - width, middle, middle + width))
        return cls(shift=(-mean - reach, -mean, -mean + reach), factor=factor, **known)

    @classmethod
    def of_two(cls, *pair: tuple[Array, Array], **known: Any) -> PosteriorSize:
        """Estimate from true values (N,) and draws (L, N) of two parameters."""
        centred = [draws - draws.mean(axis=0) for _, draws in pair]
        spreads = [np.sqrt((each**2).sum(axis=0)) for each in centred]
        some = (spreads[0] > 0.0) & (spreads[1] > 0.0)
        both = np.stack([residuals(truth[some], draws[:, some]) for truth, draws in pair])
        if both.shape[1] < 4:
            return cls(**known)
        products: Array = (centred[0] * centred[1]).sum(axis=0)[some] / (spreads[0] * spreads[1])[some]
        stated = float(products.mean())
        size, covariances = len(centred[0]), np.asarray(np.cov(both))
        # Subtract the sampling covariance of the means of L draws, which correlate as the draws do.
        variances = np.diag(covariances) * (size - 3) / (size - 1) - 1.0 / size
        if size < _FEWEST_DRAWS or variances.min() <= 0.0:
            return cls(stated=stated, **known)
        spread = float(np.sqrt(covariances[0, 0] * covariances[1, 1]))
        half = float(ndtri(_SURE)) / (both.shape[1] - 3) ** 0.5
        ends = np.arctanh(covariances[0, 1] / spread * (1.0 - 1e-12)) + np.array([-half, 0.0, half])
        kept = (size - 2.5 - 0.5 * stated**2) / (size - 1)  # for a product, as for squares above
        open_ = (np.tanh(ends) * spread * kept - stated / size) / np.sqrt(variances.prod())
        seen: Any = tuple(np.clip(open_, -1.0, 1.0).tolist())
        return cls(stated=stated, observed=seen, points=both.T[:_POINTS], **known)

    @property
    def way(self) -> Direction | None:
        """Direction of the draws' bias: too high ("over") or too low; None if not clear."""
        return self._side(self.shift, 0.0)

    @property
    def spread(self) -> Direction | None:
        """Direction of the draws' spread: too narrow ("over": overconfident), too wide, or unclear."""
        return self._side(self.factor, 1.0)

    def _side(self, of: Estimate | None, right: float) -> Direction | None:
        clear = self.found and of is not None and not of[0] <= right <= of[2]
        return None if not clear or of is None else "over" if of[1] > right else "under"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, without the points."""
        return {name: value for name, value in vars(self).items() if name != "points"}


def residuals(truth: Array, draws: Array) -> Array:
    """Return true values minus means of draws, in standard deviations of the draws, if these vary."""
    spread = draws.std(axis=0, ddof=1) if len(draws) > 1 else np.zeros(len(truth))
    return np.asarray((truth - draws.mean(axis=0))[spread > 0.0] / spread[spread > 0.0])


_BY_NAME = OneOf("collections.abc:Mapping", "give a dict of functions, or of pairs of arrays, by name")


@arguments(names=names_given, quantities=_BY_NAME)
def sbc(
    parameters: object,
    draws: object,
    *,
    quantities: Mapping[str, Quantity] | None = None,
    names: Sequence[str] | None = None,
    **options: Any,
) -> Audit:
    """Check a posterior: parameters from the prior, data simulated by them, draws from each posterior.

    If the computation is right, a parameter and the draws given its data are exchangeable. Given all
    L + 1 values of a simulation each is the parameter with equal chance, all entries at once: so all
    parameters and quantities share one place, and the answer over them is exact whatever their
    dependence.

    Parameters
    ----------
    parameters : array of shape (N, D) or (N,), data frame, or dict of columns
        (N, D) parameters of N simulations; (N,) of one; or a data frame or dict of columns by name.
    draws : array of shape (L, N, D) or (L, N), or dict of arrays of shape (L, N)
        (L, N, D) draws of the posterior of each simulation; (L, N) of one parameter; or a dict of
        (L, N) by name. Draws of a Markov chain have to be thinned until they hardly depend on each
        other; if neighbours do, a warning says by how much.
    quantities : dict of name to function or pair of arrays, optional
        More to check, by name: a function that takes parameters by name, (N,) and (L, N), and returns
        as many numbers; or what it would return of both, a pair of (N,) and (L, N), such as the log
        likelihood of each simulation's data, which finds errors that parameters alone do not.
    names : sequence of str, optional
        Names of the D parameters. Default None: those of the columns, else "0", "1", ….
    **options : any
        Of :func:`caltest.audit`: ``groups``, ``materiality``, ``alpha``, ``n_resamples``, ``rng``, ….

    Returns
    -------
    Audit
        Every parameter and quantity ("entry:mu/distribution": biased, too narrow, too wide), coverage
        of its intervals, every two of them together ("pair:mu,tau", of up to 20 entries), and all at
        once (energy score, ranks of vectors). ``posterior`` has the size of each, for simulations
        without weights and clusters: shift, factor of spread, correlation.

    Raises
    ------
    InputError
        If shapes do not fit, or a quantity returns something else.

    References
    ----------
    Cook, Gelman, Rubin, "Validation of software for Bayesian models using posterior quantiles", JCGS 15
    (2006); Talts, Betancourt, Simpson, Vehtari, Gelman, "Validating Bayesian inference algorithms with
    simulation-based calibration", 2018; Modrák et al., "Simulation-based calibration checking for
    Bayesian computation: the choice of test quantities shapes sensitivity", Bayesian Analysis 2023.

    Examples
    --------
    >>> import numpy as np, caltest
    >>> rng = np.random.default_rng(0)
    >>> mu = rng.normal(size=400)
    >>> data = rng.normal(mu, 1.0)
    >>> draws = rng.normal(data / 2, 0.4, size=(50, 400))  # the standard deviation is 0.71 in truth
    >>> found = caltest.sbc({"mu": mu}, {"mu": draws}, rng=0)
    >>> found.headline
    'The predicted 80% interval of mu is too narrow: about 55% of true values lie in it.'
    """
    truth, known = _columns("parameters", parameters)
    drawn, own = _columns("draws", draws)
    turned = {n: x.T for n, x in draws.items() if has(x, "T")} if isinstance(draws, Mapping) else None
    check_rows({"parameters": parameters, "draws": turned})
    if known and own:
        drawn = drawn[..., in_order_of(known, own, "draws", "parameters are called")]
    called = known or own
    if names is None:
        names = called or tuple(map(str, range(truth.shape[-1] if truth.ndim else 0)))
    elif called:
        order = in_order_of([*map(str, names)], called, "their table", "names holds")
        truth, drawn = truth[..., order] if known else truth, drawn[..., order]
    if truth.ndim != 2 or drawn.shape[1:] != truth.shape or len(names) != truth.shape[1]:
        shapes = f"parameters has shape {truth.shape}, draws {drawn.shape}, and there are {len(names)}"
        raise InputError(f"{shapes} names; give (N, D) parameters, (L, N, D) draws, and D names.")
    every = [str(name) for name in (*names, *(quantities or {}))]
    if twice := next((name for name in every if every.count(name) > 1), None):
        named_twice = f"{quoted(twice)} is the name of two parameters or quantities"
        raise InputError(f"{named_twice}; give each a name of its own.")
    entries = {str(name): (truth[:, k], drawn[:, :, k]) for k, name in enumerate(names)}
    for name, quantity in (quantities or {}).items():
        entries[str(name)] = _quantity(name, quantity, entries, truth, drawn, parameters)
    values = np.moveaxis(drawn, 0, 1)
    if quantities:
        values = np.stack([each.T for _, each in entries.values()], axis=2)
    members = Members(values, names=list(entries))
    members.given = {"parameters": parameters}
    found = audit(members, np.stack([each for each, _ in entries.values()], axis=1), **options)
    call = found.call.replace("caltest.audit(predicted, outcomes", "caltest.sbc(parameters, draws")
    more = (note for name, (_, each) in entries.items() if (note := _dependence(name, each)))
    size = () if found.effective_n or found.clusters else _sizes(found, entries)
    return replace(found, about=POSTERIOR, call=call, warnings=(*found.warnings, *more), posterior=size)


def _sizes(found: Audit, entries: Mapping[str, tuple[Array, Array]]) -> tuple[PosteriorSize, ...]:
    """Return the size of the error for each parameter and pair, strongest evidence first."""
    checks: dict[tuple[str, ...], list[Check]] = {}
    for check in found.checks:
        lens = check.view.lens
        of = (within(lens)[0],) if lens.startswith("entry:") else halves(lens.removeprefix("pair:"))
        if check.view.group is None and set(of) <= set(entries):
            checks.setdefault(of, []).append(check)
    sized = []
    for names, own in checks.items():
        known: Any = {"names": names, "found": any(each.found for each in own)}
        known["adjusted"] = min(each.adjusted for each in own)
        sized_by: Any = PosteriorSize.of_one if len(names) == 1 else PosteriorSize.of_two
        sized.append(sized_by(*map(entries.get, names), **known))
    return tuple(sorted(sized, key=lambda each: (each.adjusted, -len(each.names))))


def _columns(what: str, given: Any) -> tuple[Array, tuple[str, ...]]:
    """Return an array with parameters on the last axis, and their names."""
    labels: list[Any] = [*given] if isinstance(given, Mapping) else []
    if not isinstance(given, Mapping) and has(given, "columns"):
        labels = [*getattr(given, "column_names", given.columns)]
    columns = {str(name): given[name] for name in labels}
    several = (each for each in (given, *columns.values()) if is_xarray(each) and len(each.dims) > 1)
    if (odd := next(several, None)) is not None:
        do = "give .values, along (draws, simulations, parameters), or (simulations, parameters)"
        raise InputError(f"{what} has the dimensions {', '.join(map(quoted, odd.dims))}; {do}.")
    if labels or isinstance(given, Mapping):
        if len(columns) < len(labels):
            raise InputError(f"{what} has two columns of one name; give each a name of its own.")
        each = [finite_table(f"{name!r} of {what}", own) for name, own in columns.items()]
        if not each or len({one.shape for one in each}) > 1:
            shapes = ", ".join(f"{name} {one.shape}" for name, one in zip(columns, each, strict=True))
            shapes = shapes or "of none"
            raise InputError(f"the columns of {what} have shapes {shapes}; give equal ones.")
        return np.stack(each, axis=-1), tuple(columns)
    array = finite_table(what, given)
    return (array[..., None] if array.ndim == (2 if what == "draws" else 1) else array), ()


def _quantity(
    name: object, quantity: Any, entries: Any, truth: Array, drawn: Array, parameters: object
) -> tuple[Array, Array]:
    """Return the values of a quantity at the parameters and at their draws."""
    if callable(quantity):
        named = list(entries)[: truth.shape[1]]
        pair = [quantity({each: entries[each][k] for each in named}) for k in (0, 1)]
    else:
        pair = list(quantity) if isinstance(quantity, tuple | list) else []
    what = f"quantity {quoted(name)}"
    check_rows({"parameters": parameters, what: (*pair[:1],)})
    both = [finite_table(f"the {what}", each) for each in pair]
    if (shapes := [each.shape for each in both]) != [truth.shape[:1], drawn.shape[:2]]:
        do = f"give {truth.shape[:1]} numbers at the parameters and {drawn.shape[:2]} at their draws"
        raise InputError(f"the {what} has shapes {shapes}; {do}.")
    return both[0], both[1]


def _dependence(name: str, draws: Array) -> str:
    """Return a warning if neighbouring draws (L, N) of a simulation depend on each other."""
    size, n = draws.shape
    centred = draws - draws.mean(axis=0)
    squares = (centred**2).sum(axis=0)
    some = squares > 0.0
    if size < 3 or not some.any():
        return ""
    each = (centred[1:] * centred[:-1]).sum(axis=0)[some] / squares[some]
    lag = float(each.mean()) + 1.0 / size  # for independent draws the first term is −1/L
    if lag < max(_DEPENDENT, _CLEARLY / (size * n) ** 0.5):
        return ""
    return (
        f"Neighbouring draws of {visible(name)} depend on each other (autocorrelation {lag:.2f}), so "
        "that they are not exchangeable with the parameter, and a right posterior looks wrong: keep "
        f"about every {int(np.ceil((1.0 + lag) / max(1.0 - lag, 1.0 / size)))}th draw of the chain."
    )
