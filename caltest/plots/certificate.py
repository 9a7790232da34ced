"""How far a model's statements can be from the truth: bands around the diagonal."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from caltest._arguments import OneOf, arguments, choose
from caltest.bounds import Certificate
from caltest.plots.lettering import CLAUSE, lettering
from caltest.plots.style import BLACK, BLUE, FAINT, NARROW_BAND, PALE, VERMILION, WIDE_BAND
from caltest.text.bounds import at_most
from caltest.text.numbers import confidence_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array: TypeAlias = NDArray[np.float64]
Against: TypeAlias = Literal["scores", "rows"]

_AGAINST = dict.fromkeys(("scores", "rows"), True)
_COLOURS = {"over": VERMILION, "under": BLUE}
_LEAST_WIDTH = 0.006  # of a shaded range or a box, so that it can be seen


@arguments(certificate=OneOf("caltest.bounds:Certificate", "give what caltest.certificate returns"))
@dataclass(frozen=True, eq=False)
class CertificateDisplay:
    """The band of a certificate around the diagonal. Make it with :meth:`from_certificate`.

    Attributes
    ----------
    certificate
        What is shown.
    against
        "scores" or "rows".
    figure_, ax_
        The picture: the figure and the axes; None before :meth:`plot`.

    Examples
    --------
    >>> import caltest, matplotlib.pyplot as plt
    >>> sure = caltest.simulation.tempered(n_samples=300, temperature=0.4, rng=0)
    >>> found = caltest.certificate(sure.probs, sure.labels)
    >>> display = caltest.CertificateDisplay.from_certificate(found)
    >>> display.certificate is found, display.against
    (True, 'scores')
    >>> plt.close(display.figure_)
    """

    certificate: Certificate
    against: Against = "scores"
    figure_: Figure | None = field(default=None, init=False, repr=False)
    ax_: Axes | None = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        choose("axis", self.against, _AGAINST)

    @classmethod
    @arguments()
    def from_certificate(
        cls, certificate: Certificate, *, against: Against = "scores", ax: Axes | None = None
    ) -> CertificateDisplay:
        """Draw a certificate.

        Parameters
        ----------
        certificate
            Of :func:`caltest.certificate`.
        against
            "scores" (default): the reliability diagram, the band around its diagonal. "rows": the
            deviation from the diagonal, in points, with the rows side by side in order of their
            scores, which spreads out scores that crowd near 1.
        ax
            Axes to draw in. Default: a new figure.

        Returns
        -------
        CertificateDisplay
            Drawn. The band is grey; the certified distance is the pair of dotted lines; ranges proved
            to be miscalibrated are shaded, and so are those in which isotonic bounds cross. Points are
            shares of events in the bins, hollow diamonds where the band excludes the diagonal; the
            line is the isotonic regression.

        Raises
        ------
        InputError
            If there is no such ``against``.

        Examples
        --------
        >>> import caltest, matplotlib.pyplot as plt
        >>> digits = caltest.datasets.load_digits_predictions("naive_bayes")
        >>> found = caltest.certificate(digits.probs, digits.labels)
        >>> display = caltest.CertificateDisplay.from_certificate(found)
        >>> display.ax_.get_xlabel()
        'predicted probability that the top class is right'
        >>> plt.close(display.figure_)
        """
        return cls(certificate, against).plot(ax)

    @arguments()
    def plot(self, ax: Axes | None = None) -> CertificateDisplay:
        """Draw band, diagonal, distance and ranges.

        Parameters
        ----------
        ax
            As in :meth:`from_certificate`.

        Returns
        -------
        CertificateDisplay
            Itself, with ``figure_`` and ``ax_`` set.
        """
        by_score = self.against == "scores"
        axes: Any = _new_axes(by_score) if ax is None else ax
        (_draw_by_score if by_score else _draw_by_row)(axes, self.certificate)
        _dress(axes, self.certificate, by_score)
        object.__setattr__(self, "figure_", axes.figure)
        object.__setattr__(self, "ax_", axes)
        return self


def _new_axes(square: bool) -> Any:
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(6.2, 7.0) if square else (7.6, 5.2), layout="constrained")[1]


def _draw_by_score(ax: Any, c: Certificate) -> None:
    ends = np.array([0.0, 1.0])
    _draw_centre(ax, ends, ends, c)
    _shade(ax, c, ends, ends, ends, ends)
    if c.method == "bins":
        _draw_boxes(ax, c.starts, c.ends, c.lower, c.upper, _band_label(c))
        _draw_bins(ax, c, c.stated, c.estimates)
        return
    ticks = np.unique(np.r_[c.starts, c.ends])
    lower, upper = c.band(ticks)
    x = np.repeat(ticks, 2)[1:-1]
    if len(ticks) > 1:  # between ticks: the lower bound of the one before, the upper of the next
        _draw_steps(ax, x, np.repeat(lower[:-1], 2), np.repeat(upper[1:], 2), c)
    else:
        ax.vlines(ticks, lower, upper, color=WIDE_BAND, linewidth=9.0, zorder=1, label=_band_label(c))
    marker = "o" if len(c.stated) == 1 else None
    ax.plot(c.stated, c.estimates, color=BLUE, linewidth=1.6, zorder=5, marker=marker, label=_CURVE)


def _draw_by_row(ax: Any, c: Certificate) -> None:
    right = np.cumsum(c.counts) / c.n_samples
    left = np.r_[0.0, right[:-1]]
    table = c.table()
    _draw_centre(ax, np.array([0.0, 1.0]), np.zeros(2), c)
    bins = c.method == "bins"
    # The band of a cell less its scores: whatever the score within the cell.
    low = 100.0 * (table["lower"].to_numpy() - (c.stated if bins else c.ends))
    high = 100.0 * (table["upper"].to_numpy() - (c.stated if bins else c.starts))
    _shade(ax, c, c.starts, left, c.ends, right)
    middle, gap = (left + right) / 2.0, 100.0 * (c.estimates - c.stated)
    if bins:
        _draw_boxes(ax, left, right, low, high, _band_label(c))
        _draw_bins(ax, c, middle, gap)
    else:
        _draw_steps(ax, np.stack([left, right], axis=1).ravel(), low.repeat(2), high.repeat(2), c)
        ax.plot(middle, gap, color=BLUE, linewidth=1.2, zorder=5, label=_CURVE)


_CURVE = "isotonic regression"


def _band_label(c: Certificate) -> str:
    what = "mean probability of each bin" if c.method == "bins" else "probability at every score"
    return f"{what}, {confidence_text(c.confidence)} band"


def _draw_centre(ax: Any, x: Array, y: Array, c: Certificate) -> None:
    """Draw the diagonal, and the certified distance on both sides of it."""
    scale = 1.0 if y[1] > 0.0 else 100.0
    ax.plot(x, y, color=BLACK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=4, label="as stated")
    if c.crossings:
        return
    for sign in (-1.0, 1.0):
        shifted = y + sign * scale * c.distance
        label = f"±{at_most(c.distance)} points" if sign > 0.0 else None
        ax.plot(x, shifted, color=FAINT, linewidth=1.3, linestyle=":", zorder=4, label=label)


def _draw_steps(ax: Any, x: Array, low: Array, high: Array, c: Certificate) -> None:
    ax.fill_between(x, low, high, color=WIDE_BAND, linewidth=0.0, zorder=1, label=_band_label(c))
    for line in (low, high):
        ax.plot(x, line, color=NARROW_BAND, linewidth=1.0, zorder=2)


def _draw_boxes(ax: Any, left: Array, right: Array, low: Array, high: Array, label: str) -> None:
    from matplotlib.collections import PolyCollection

    missing = np.maximum(0.0, _LEAST_WIDTH - (right - left)) / 2.0
    left, right = left - missing, right + missing
    corners = np.stack([left, low, left, high, right, high, right, low], axis=1).reshape(-1, 4, 2)
    boxes = PolyCollection(list(corners), facecolor=WIDE_BAND, edgecolor=NARROW_BAND, linewidth=0.8)
    boxes.set(zorder=1, label=label)
    ax.add_collection(boxes)
    ax.autoscale_view()


def _draw_bins(ax: Any, c: Certificate, x: Array, y: Array) -> None:
    outside = (c.lower > c.stated) | (c.upper < c.stated)
    inside: dict[str, Any] = {"marker": "o", "color": BLUE, "markeredgecolor": BLACK}
    diamond: dict[str, Any] = {"marker": "D", "color": "white", "markeredgecolor": VERMILION}
    looks = (
        (~outside, inside | {"markeredgewidth": 0.6}, "share in the bin"),
        (outside, diamond | {"markeredgewidth": 1.8}, "share in the bin, proved off the diagonal"),
    )
    for chosen, look, label in looks:
        if chosen.any():
            ax.plot(x[chosen], y[chosen], linestyle="none", markersize=6, zorder=5, label=label, **look)


def _shade(
    ax: Any, c: Certificate, low_scores: Array, low_places: Array, scores: Array, places: Array
) -> None:
    """Shade the ranges proved wrong; low and high ends of ranges lie at these places of the axis."""
    ranges: list[tuple[float, float, str]]
    if c.crossings:  # where it is wrong cannot be told then
        ranges = [(each.low, each.high, "crossing") for each in c.crossings]
    else:
        ranges = [(each.low, each.high, each.direction) for each in c.miscalibrated]
    named = set()
    for low, high, kind in ranges:
        start = float(np.interp(low, low_scores, low_places))
        end = float(np.interp(high, scores, places))
        missing = max(0.0, _LEAST_WIDTH - (end - start)) / 2.0
        label = "bounds cross" if kind == "crossing" else f"proved {kind}-confident"
        look = {"color": _COLOURS.get(kind, BLACK), "alpha": 0.13, "linewidth": 0.0, "zorder": 0}
        ax.axvspan(start - missing, end + missing, label=None if kind in named else label, **look)
        named.add(kind)


def _dress(ax: Any, c: Certificate, by_score: bool) -> None:
    event = f"that {lettering(c.event, CLAUSE)}"
    if by_score:
        ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal")
        ax.set_xlabel(f"predicted probability {event}")
        ax.set_ylabel(f"probability {event}")
    else:
        ax.set_xlim(-0.02, 1.02)
        ax.set_xlabel("share of the rows, from the smallest score to the largest")
        ax.set_ylabel(f"probability {event}\nless the predicted one, points")
    ax.grid(color=PALE, linewidth=0.5, alpha=0.6, zorder=0)
    ax.set_axisbelow(True)
    for edge in ("top", "right"):
        ax.spines[edge].set_visible(False)
    if c.crossings:
        claim = "nothing certified: the isotonic bounds cross"
    elif c.method == "bins":
        count = f"{len(c.counts)} bins" if len(c.counts) > 1 else "one bin"
        claim = f"within ±{at_most(c.distance)} points on average over each of {count}"
    else:
        claim = f"within ±{at_most(c.distance)} points at every score seen, if the curve never falls"
    sure = f"n = {c.n_samples:,}, with {confidence_text(c.confidence)} confidence"
    ax.set_title(f"{sure}:\n{claim}", loc="left", size="medium")
    ax.legend(loc="upper left" if by_score else "best", fontsize="small", framealpha=0.9)
