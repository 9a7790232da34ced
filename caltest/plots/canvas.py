"""The base of all displays, and the look of marks, axes and words in matplotlib.

A new display is a class with `_size` (or `_grid` if it needs several axes) for its figure, and
`_pictures` for the marks of its result.
"""

from __future__ import annotations

import io
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from caltest._arguments import OneOf, arguments, check_variable
from caltest._visible import shown
from caltest.auditing.views import View
from caltest.data import Rows
from caltest.exceptions import InputError
from caltest.files.writing import write_whole
from caltest.lenses import Lens
from caltest.lenses import event as event_of
from caltest.pictures import BAD, LINEAR, OK, Mark, Picture
from caltest.text.vocabulary import capital, lens_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Distinguishable by lightness and shape too: in grey and with colour blindness. Okabe–Ito palette.
BLUE, VERMILION, GREEN, PURPLE, BLACK = "#0072B2", "#D55E00", "#009E73", "#AA4499", "#222222"
WIDE_BAND, NARROW_BAND, PALE, FAINT = "#DADADA", "#A3A3A3", "#C4C4C4", "#777777"
DASHED: dict[str, Any] = {"color": BLACK, "linewidth": 0.9, "linestyle": (0, (4, 3))}
SMALL: dict[str, Any] = {"fontsize": "small", "frameon": False}  # for a legend

NAME, CLAUSE = 28, 60  # characters of a name, and of a clause that contains one
_LETTER = 0.068  # inches per letter of a title
_WIDTHS = {"intervals": 2.0, "bars": 2.0, "own": 5.0, "joint": 1.2, "labels": 2.4}  # of lines, by style
_FOOT = 0.14  # share of the height of axes for bars of rows

#: The look of each style. As in reports, a filled diamond is proved wrong and a hollow circle is not.
STYLES: dict[str, dict[str, Any]] = {
    OK: {"marker": "o", "color": "white", "markeredgecolor": BLUE, "markeredgewidth": 1.6},
    BAD: {"marker": "D", "color": VERMILION, "markeredgecolor": "white"},
    "diag": {**DASHED, "zorder": 3},
    "zero": {**DASHED, "zorder": 1},
    "line": {"color": BLUE, "linewidth": 1.6, "zorder": 3},
    "thin": {"color": FAINT, "linewidth": 0.9, "zorder": 3},
    "band": {"color": WIDE_BAND, "linewidth": 0.8, "zorder": 1},
    "band band": {"color": WIDE_BAND, "linewidth": 7.0, "zorder": 1},
    "point band": {"color": NARROW_BAND, "linewidth": 0.8, "zorder": 2},
    "band point band": {"color": NARROW_BAND, "linewidth": 7.0, "zorder": 2},
    "bar": {"color": PALE, "linewidth": 0.0, "zorder": 1},
    "bar bad": {"color": VERMILION, "alpha": 0.65, "linewidth": 0.0, "zorder": 1},
    "over": {"color": BLUE, "alpha": 0.2, "linewidth": 0.0, "zorder": 2},
    "axis": {"color": FAINT, "linewidth": 0.9, "zorder": 2},
    "threshold": DASHED,
    "limit": {"color": BLACK, "linewidth": 0.9, "linestyle": (0, (2, 2)), "zorder": 1},
    "level": {"color": FAINT, "linewidth": 1.3, "linestyle": (0, (1, 2))},
    "error": {"color": BLUE, "linewidth": 5.0, "zorder": 2},
    "value": {"marker": "|", "color": BLACK, "markersize": 13, "markeredgewidth": 1.8},
    "hollow": {"marker": "o", "markerfacecolor": "white", "markeredgecolor": FAINT, "zorder": 4},
    "found": {"color": VERMILION, "linewidth": 1.8, "zorder": 1},
    "wanted": {**DASHED, "color": VERMILION},
    "intervals calibrated": {"color": FAINT, "zorder": 3},
    "points calibrated": {"marker": "D", "markerfacecolor": "white", "markeredgecolor": FAINT},
    **{
        f"{kind} {side}": {"color": colour, **look}
        for side, colour in (("too high", VERMILION), ("too low", BLUE))
        for kind, look in (
            ("area", {"alpha": 0.13, "linewidth": 0.0, "zorder": 0}),
            ("line", {"linewidth": 3.5, "solid_capstyle": "butt", "zorder": 5}),
            ("points", {"marker": "D", "markeredgecolor": BLACK, "markersize": 6.5, "zorder": 6}),
        )
    },
    **{
        f"{style} {side}": {"color": colour, "linewidth": width, "zorder": 2}
        for side, colour in ((OK, BLUE), (BAD, VERMILION))
        for style, width in _WIDTHS.items()
    },
    **{
        f"{style} {side}": {"color": colour, "linewidth": width, "alpha": alpha, "zorder": 1}
        for side, colour in ((OK, BLUE), (BAD, VERMILION))
        for style, width, alpha in (("half", 0.0, 0.15), ("halfmean", 1.2, 1.0))
    },
}
# For models that share a diagram: colour, marker and line.
_LINES: Any = "-", (0, (5, 1.5)), "-.", ":"
for _k, (_colour, _marker, _dashes) in enumerate(
    zip((BLUE, VERMILION, GREEN, PURPLE), "os^D", _LINES, strict=True)
):
    STYLES |= {
        f"intervals model {_k}": {"color": _colour, "linewidth": 5.0, "alpha": 0.22, "zorder": 1},
        f"area model {_k}": {"color": _colour, "linewidth": 0.8, "alpha": 0.22, "zorder": 1},
        f"rows model {_k}": {"color": _colour, "alpha": 0.35, "zorder": 1},
        f"line model {_k}": {"color": _colour, "linestyle": _dashes, "linewidth": 1.3, "zorder": 3},
        **{
            f"points model {_k} {side}": {
                "marker": _marker, "color": fill, "markersize": 5.5,
                "markeredgecolor": _colour, "markeredgewidth": 1.4,
            }
            for side, fill in ((OK, "white"), (BAD, _colour))
        },
    }  # fmt: skip


def _draw_mark(ax: Any, mark: Mark) -> None:
    """Draw marks in the look of their style."""
    kind, style, x, y, end, label = mark
    own = STYLES.get(f"{kind} {style}") or STYLES.get(style, {})
    how = {**own, **({"label": label} if label else {})}
    if kind == "grid":
        ax.grid(color=PALE, zorder=0, linewidth=0.5, alpha=0.6)
    elif kind == "text":
        side = "right" if end[0] < 0 else "left" if end[0] else "center"
        shift = {"xytext": (0.75 * end[0], -0.75 * end[1]), "textcoords": "offset points"}
        ax.annotate(lettering(label), (x, y), xycoords="axes fraction", ha=side, size="small", **shift)
    elif kind == "line":
        ax.plot(x, y, **how)
    elif kind == "points" and len(x):  # empty unclipped marks would reserve room in a corner
        ax.plot(x, y, **{"linestyle": "none", "zorder": 5, "clip_on": False, **how})
    elif kind in ("intervals", "band"):
        ax.vlines(x, y, end, **how)
        for ends in (y, end) if kind == "band" else ():  # a band of no height is shown by its ends
            looks = {"color": how["color"], "zorder": how["zorder"], "markersize": how["linewidth"]}
            ax.plot(x, ends, "_", **looks)
    elif kind == "bars":
        ax.hlines(y, x, end, **how)
    elif kind == "columns":
        ax.bar(x[:-1], y, np.diff(x), align="edge", **how)
    elif kind == "rows" and len(x):  # at the foot of the axes
        high = np.asarray(y) / np.diff(ax.xaxis.get_transform().transform(np.asarray(x, float)))
        foot = {"align": "edge", "transform": ax.get_xaxis_transform(), **own}
        ax.bar(x[:-1], _FOOT * high / high.max(), np.diff(x), **foot)
    elif kind == "area":
        ax.fill_between(x, y, end, **how)


def show(ax: Any, picture: Picture, *title: str, columns: int = 1) -> None:
    """Draw a picture: its axes and their labels, its marks, and the lines of its title.

    Labels of marks are put in a legend below, in ``columns`` columns.
    """
    for axis, own in ((ax.xaxis, picture.x), (ax.yaxis, picture.y)):
        if own.scale is not LINEAR:
            axis._set_axes_scale("function", functions=(own.scale.forward, own.scale.inverse))
        labels = ["\n".join(lettering(x, CLAUSE) for x in label.split("\n")) for _, label in own.marks]
        axis.set_ticks([value for value, _ in own.marks], labels)
    y, foot = picture.y, _FOOT * any(mark.kind == "rows" and len(mark.x) for mark in picture.marks)
    low, high = y.scale.forward(np.array([y.low, y.high]))
    ax.set(xlim=(picture.x.low, picture.x.high), xlabel=picture.of_x, ylabel=picture.of_y)
    ax.set_ylim(float(y.scale.inverse(low - 1.3 * foot / (1.0 - 1.3 * foot) * (high - low))), y.high)
    ax.set_axisbelow(True)  # the grid
    ax.spines[["top", "right"]].set_visible(False)
    for mark in picture.marks:
        if mark.kind == "text":  # above bars of rows
            _draw_mark(ax, mark._replace(y=max(mark.y, 1.3 * foot)))
            continue
        ends = picture.x if mark.kind == "bars" else y
        inside = {  # values beyond are drawn at the end
            "x": np.clip(mark.x, picture.x.low, picture.x.high),
            "y": np.clip(mark.y, y.low, y.high),
            "end": np.clip(mark.end, ends.low, ends.high),
        }
        _draw_mark(ax, mark if mark.kind == "rows" else mark._replace(**inside))
    above = [mark.end[1] for mark in picture.marks if mark.kind == "text" and mark.y == 1.0]
    width = ax.get_window_extent().width / ax.figure.dpi
    fitted = [textwrap.fill(line, max(int(width / _LETTER), 12)) for line in title]
    ax.set_title("\n".join(fitted), loc="left", size="medium", pad=6.0 - min([0.0, *above]))
    named = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))  # each label once
    if columns and named:
        from matplotlib.transforms import ScaledTranslation

        depth = 0.47 + 0.19 * ax.get_xlabel().count("\n")  # inches, for tick labels and the axis label
        below = ax.transAxes + ScaledTranslation(0.0, -depth, ax.figure.dpi_scale_trans)
        place = {"loc": "upper left", "bbox_to_anchor": (-0.02, 0.0), "bbox_transform": below}
        look = {"ncols": columns, "columnspacing": 1.2, "borderaxespad": 0.0, **SMALL}
        ax.legend(named.values(), named, **place, **look)


# ------------------------------------------------------------------ letters


def event_labels(rows: Rows, lens: Lens | None, kept: bool = False) -> tuple[str, str, str]:
    """Return the texts for a probability seen through a lens: title, predicted label, observed label.

    ``kept``: rows were sampled by label, and everything refers to the rows kept.
    """
    label, among = lens.label if lens else "canonical", " among the rows kept" if kept else ""
    event = event_of(label, rows)
    name = lens_name(View(label, event, None, rows.n_samples)).removeprefix("the ")
    name = name.removeprefix("probability that the label is ")  # as for the top 5
    title = capital(event if lens is not None and lens.of_numbers else name)
    of = f"predicted probability that {event}{among}", f"share in which {event}{among}"
    return f"{title}{', rows kept' if kept else ''}", *of


def lettering(text: str, most: int = NAME) -> str:
    r"""Return a text from the data as matplotlib should draw it: visible and short.

    matplotlib reads text between two dollar signs as a formula, and fails if it is not one.

    Examples
    --------
    >>> print(lettering("cat"), lettering(r"$\frac$"), lettering("a\nb"), lettering("long_" * 9, 10))
    cat \$\frac\$ a\nb long_…ong_
    """
    return shown(text, most).replace("$", r"\$")


# ------------------------------------------------------------------ displays


@dataclass(frozen=True, eq=False)
class Display(ABC):
    """Base class of plots: the data shown and, once drawn, the figure and its axes.

    Attributes
    ----------
    axes_ : tuple of matplotlib Axes
        The axes that are drawn in; none before :meth:`plot`.

    Examples
    --------
    >>> import caltest, matplotlib.pyplot as plt
    >>> display = caltest.ReliabilityDisplay.from_predictions([0.2, 0.7, 0.9], [0, 1, 1], rng=0)
    >>> isinstance(display, caltest.plots.Display), display.ax_ is display.axes_[0]
    (True, True)
    >>> plt.close(display.figure_)
    """

    _figure: Figure | None = field(default=None, init=False, repr=False)
    axes_: tuple[Axes, ...] = field(default=(), init=False, repr=False)

    @property
    def figure_(self) -> Figure:
        """The figure; raises InputError before :meth:`plot`."""
        if self._figure is None:
            raise InputError("nothing is drawn yet; call .plot() first.")
        return self._figure

    @property
    def ax_(self) -> Axes:
        """The first of the axes; raises InputError before :meth:`plot`."""
        return self.axes_[0] if self.axes_ else self.figure_.axes[0]

    @arguments()
    def plot(self, ax: Axes | Sequence[Axes] | None = None) -> Self:
        """Draw the plot, or draw it again.

        Parameters
        ----------
        ax : matplotlib Axes, or sequence of them, optional
            Axes to draw in, as many as there are parts. Give their figure a layout that makes room for
            labels, such as "constrained". Default: a new figure.

        Returns
        -------
        Display
            Itself, with ``figure_`` and ``axes_`` of this picture.

        Raises
        ------
        InputError
            If ``ax`` are too few or too many.
        """
        grid = {"mosaic": [[0]], **self._grid()}
        count = len({each for row in grid["mosaic"] for each in row} - {"."})
        if ax is None:
            import matplotlib.pyplot as plt

            found: Any = plt.subplot_mosaic(**grid, layout="constrained")[1]
            drawn = [found[place] for place in range(count)]
        else:
            drawn = np.ravel(np.asarray(ax, dtype=object)).tolist()
            if len(drawn) != count:
                raise InputError(f"there are {len(drawn)} axes; give {count}{self._parts}.")
        self._draw(drawn, new=ax is None)
        object.__setattr__(self, "_figure", drawn[0].figure)
        object.__setattr__(self, "axes_", tuple(drawn))
        return self

    @arguments()
    def save(self, path: str | Path) -> None:
        """Write the picture to a file, whole or not at all; it is drawn first if it has not been.

        Parameters
        ----------
        path : path
            File to write: ``.png``, ``.pdf`` or ``.svg``.

        Raises
        ------
        InputError
            If the suffix is another one, or the file cannot be written.
        """
        target, picture = Path(path), io.BytesIO()
        if target.suffix.lower() not in (".png", ".pdf", ".svg"):
            do = "give a file that ends in .png, .pdf or .svg"
            raise InputError(f"path is {shown(str(path))}; {do}.")
        check_variable("SOURCE_DATE_EPOCH")
        figure: Any = self._figure or self.plot().figure_
        try:
            figure.savefig(picture, format=target.suffix[1:].lower(), dpi=150)
        except OSError as error:  # for instance of a font file
            raise InputError(f"the picture {target} cannot be written: {error.strerror}.") from error
        write_whole({target: picture.getvalue()})

    _parts: ClassVar[str] = ""  # purpose of the axes, after their number
    _size: ClassVar[tuple[float, float]] = 6.4, 4.8  # inches, for a figure with a single plot
    _columns: ClassVar[int] = 1  # of the legend

    def _grid(self) -> dict[str, Any]:
        """Return arguments of `plt.subplot_mosaic` for a new figure; axes are numbered from 0."""
        return {"figsize": self._size}

    @abstractmethod
    def _pictures(self) -> Sequence[tuple[Any, ...]]:
        """Return the picture and the title lines for each of the axes."""

    def _draw(self, axes: list[Any], *, new: bool) -> None:
        """Draw in these axes; ``new``: in a figure of our own."""
        for ax, drawn in zip(axes, self._pictures(), strict=True):
            show(ax, *drawn, columns=self._columns)


@dataclass(frozen=True, eq=False)
class ResultDisplay(Display):
    """A picture of a result of this package."""

    result: Any
    #: Classes of results that it shows, as for ``OneOf``, and advice for other objects.
    shows: ClassVar[tuple[str, str]]

    def __post_init__(self) -> None:
        OneOf(*self.shows)("result", self.result)

    @classmethod
    @arguments()
    def from_result(
        cls, result: Any, *, ax: Axes | Sequence[Axes] | None = None, **options: Any
    ) -> Self:
        """Draw a result.

        Parameters
        ----------
        result : result of caltest
            What to draw.
        ax : matplotlib Axes, or sequence of them, optional
            As in :meth:`~caltest.plots.Display.plot`.
        **options : any
            Other arguments of the display, by name.

        Returns
        -------
        Display
            Drawn.
        """
        return cls(result, **options).plot(ax)
