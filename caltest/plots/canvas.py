"""What all pictures share: the base of displays, and how marks, axes and words look in matplotlib.

A new display is a class whose `_size`, or `_grid` if it needs several axes, says how large its figure
is, and whose `_draw` says which marks of its result lie on the axes.
"""

from __future__ import annotations

import io
import textwrap
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from caltest._arguments import anything, arguments, axes, check_variable
from caltest._visible import escaped, shown
from caltest.data import Rows
from caltest.data.sample import predicted_by
from caltest.exceptions import InputError
from caltest.files.writing import write_whole
from caltest.lenses import ClassWise, Lens, TopK, TopLabel
from caltest.lenses import event as event_of
from caltest.pictures import (
    BAD,
    DIAGONAL,
    GRID,
    LINEAR,
    OK,
    Array,
    Limits,
    Mark,
    Picture,
    Scale,
    zoomed,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Told apart by lightness and shape too: in grey, and without colour vision. Okabe and Ito's palette.
BLUE, VERMILION, GREEN, PURPLE, BLACK = "#0072B2", "#D55E00", "#009E73", "#AA4499", "#222222"
WIDE_BAND, NARROW_BAND, PALE, FAINT = "#DADADA", "#A3A3A3", "#C4C4C4", "#777777"
DASHED: dict[str, Any] = {"color": BLACK, "linewidth": 0.9, "linestyle": (0, (4, 3))}
SMALL: dict[str, Any] = {"fontsize": "small", "frameon": False}  # a legend

AS_PREDICTED = "observed as predicted"  # the diagonal

#: Of several that share axes: how a band looks, and points: the width of one that is a bar.
BAND: dict[str, Any] = {"alpha": 0.22, "zorder": 1}
BAR = 5.0

NAME, CLAUSE = 28, 60  # characters: of a name by itself, of a clause with one in it
_NARROW, _LOW, _LETTER = 4.0, 2.0, 0.08  # inches: axes of less have little text; a letter of that
_FOOT = 0.14  # of the height of axes: bars of rows in them
_BELOW, _LINE = 0.28, 0.19  # inches: of tick labels between axes and a legend below them, of a line

_SINGLE: dict[str, Any] = {"linestyle": "none", "zorder": 5}
#: How marks of a class of style look. As in reports: a filled diamond is shown to be wrong, a hollow
#: circle is not.
STYLES: dict[str, dict[str, Any]] = {
    OK: {**_SINGLE, "marker": "o", "color": "white", "markeredgecolor": BLUE, "markeredgewidth": 1.6},
    BAD: {**_SINGLE, "marker": "D", "color": VERMILION, "markeredgecolor": "white"},
    "diag": {**DASHED, "zorder": 3},
    "zero": {**DASHED, "zorder": 1},
    "line": {"color": BLUE, "linewidth": 1.6, "zorder": 3},
    "thin": {"color": FAINT, "linewidth": 0.9, "zorder": 3},
    "curve": {"color": BLUE, "linewidth": 2.0, "zorder": 4},
    "band": {"color": WIDE_BAND, "linewidth": 0.0, "zorder": 1},
    "point band": {"color": NARROW_BAND, "zorder": 2},
    "bar": {"color": PALE, "linewidth": 0.0, "zorder": 1},
    "bar bad": {"color": VERMILION, "alpha": 0.65, "linewidth": 0.0, "zorder": 1},
    "over": {"color": BLUE, "alpha": 0.2, "linewidth": 0.0, "zorder": 2},
    "axis": {"color": FAINT, "linewidth": 0.9, "zorder": 2},
    "threshold": DASHED,
    "limit": {"color": BLACK, "linewidth": 0.9, "linestyle": (0, (2, 2)), "zorder": 1},
    "between": {"color": NARROW_BAND, "alpha": 0.5, "linewidth": 0, "zorder": 0},
    "error": {"color": BLUE, "zorder": 2},
    "value": {"marker": "|", "color": BLACK, "markersize": 13, "markeredgewidth": 1.8, "zorder": 3},
    "hollow": {"marker": "o", "markerfacecolor": "white", "markeredgecolor": FAINT, "zorder": 4},
    "found": {"color": VERMILION, "linewidth": 1.8, "zorder": 1},
    **{
        f"{style} {side}": {"color": colour, "linewidth": width, "zorder": 2}
        for side, colour in ((OK, BLUE), (BAD, VERMILION))
        for style, width in (("intervals", 2.0), ("own", 5.0), ("joint", 1.2), ("labels", 2.4))
    },
    **{
        f"{style} {side}": {"color": colour, "linewidth": width, "alpha": alpha, "zorder": 1}
        for side, colour in ((OK, BLUE), (BAD, VERMILION))
        for style, width, alpha in (("half", 0.0, 0.15), ("halfmean", 1.2, 1.0))
    },
}


def inches(ax: Any) -> tuple[float, float]:
    """Return the width and the height of axes."""
    box = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    return float(box.width), float(box.height)


def is_narrow(ax: Any) -> bool:
    """Say whether axes are too narrow for sentences."""
    return inches(ax)[0] < _NARROW


def wrapped(text: str, width: float, *, small: bool = False) -> str:
    """Break the lines of a text that are longer than so many inches."""
    letters = max(int(width / (0.85 * _LETTER if small else _LETTER)), 12)
    return "\n".join(textwrap.fill(line, letters, break_long_words=False) for line in text.split("\n"))


def legend_below(ax: Any, columns: int = 1, **entries: Any) -> None:
    """Put a legend below axes, where it hides nothing.

    Where a figure has no layout, and so makes no room for it, it is within axes that are high enough.
    """
    from matplotlib.transforms import ScaledTranslation

    if ax.figure.get_layout_engine() is None and inches(ax)[1] > _LOW:
        ax.legend(loc="best", framealpha=0.7, fontsize="small", **entries)
        return
    depth = _BELOW + _LINE * (1 + ax.get_xlabel().count("\n"))
    down = ScaledTranslation(0.0, -depth, ax.figure.dpi_scale_trans)
    place = {"loc": "upper left", "bbox_to_anchor": (-0.02, 0.0), "bbox_transform": ax.transAxes + down}
    ax.legend(**place, ncols=columns, columnspacing=1.2, borderaxespad=0.0, **SMALL, **entries)


def fit(axes: Sequence[Any]) -> None:
    """Make text of narrow axes small, in lines that fit, without a legend."""
    narrow = [ax for ax in axes if is_narrow(ax)]
    for ax in narrow:
        ax.tick_params(labelsize="small")
        if ax.get_legend():
            ax.get_legend().remove()
    if narrow:
        with warnings.catch_warnings():  # what has no room is found when the picture is rendered
            warnings.simplefilter("ignore")
            narrow[0].figure.draw_without_rendering()
    for ax in narrow:
        width, height = inches(ax)
        for text in (ax.xaxis.label, ax.yaxis.label, ax.title, ax._left_title):
            room = height if text is ax.yaxis.label else width
            text.set(text=wrapped(text.get_text(), room, small=True), fontsize="small")


def draw(ax: Any, *marks: Mark, **look: Any) -> None:
    """Draw marks as their class of style looks, but for what ``look`` says."""
    for kind, style, x, y, end, label in marks:
        if kind == "grid":
            tidy(ax, "both")
            continue
        if kind == "text":
            side = "right" if end[0] < 0 else "left" if end[0] else "center"
            where = {
                "xytext": (0.75 * end[0], -0.75 * end[1]),
                "textcoords": "offset points",
                "ha": side,
            }
            ax.annotate(lettering(label), (x, y), xycoords="axes fraction", size="small", **where)
            continue
        own = STYLES[style] if kind != "intervals" else STYLES.get(f"{kind} {style}", STYLES[style])
        how = {**own, **({"label": label} if label else {}), **look}
        if kind == "line":
            ax.plot(x, y, **how)
        elif kind == "points" and len(x):  # none, not clipped, would have room reserved in a corner
            ax.plot(x, y, **{"linestyle": "none", "zorder": 5, **how})
        elif kind in ("intervals", "band"):
            ax.vlines(x, y, end, **how)
            for ends in (y, end) if kind == "band" else ():  # a band of no height is seen by its ends
                looks = {"color": how["color"], "zorder": how["zorder"], "markersize": how["linewidth"]}
                ax.plot(x, ends, "_", **looks)
        elif kind == "bars":
            ax.hlines(y, x, end, **how)
        elif kind == "columns":
            ax.bar(x[:-1], y, np.diff(x), align="edge", **how)
        elif kind == "rows" and len(x):  # at the foot of the axes
            high = np.asarray(y) / np.diff(ax.xaxis.get_transform().transform(np.asarray(x, float)))
            foot = {"align": "edge", "transform": ax.get_xaxis_transform(), **STYLES[style]}
            ax.bar(x[:-1], _FOOT * high / high.max(), np.diff(x), **foot)
        elif kind == "area":
            ax.fill_between(x, y, end, **how)


def show(ax: Any, picture: Picture, *title: str) -> None:
    """Draw a picture: its axes, what they are, and its marks, with lines of a title above."""
    for axis, own in ((ax.xaxis, picture.x), (ax.yaxis, picture.y)):
        if own.scale is not LINEAR:
            axis._set_axes_scale("function", functions=(own.scale.forward, own.scale.inverse))
        labels = [lettering(label, CLAUSE) for _, label in own.marks]
        axis.set_ticks([value for value, _ in own.marks], labels)
    y, foot = picture.y, _FOOT * any(mark.kind == "rows" and len(mark.x) for mark in picture.marks)
    low, high = y.scale.forward(np.array([y.low, y.high]))
    ax.set(xlim=(picture.x.low, picture.x.high), xlabel=picture.of_x, ylabel=picture.of_y)
    ax.set_ylim(float(y.scale.inverse(low - 1.3 * foot / (1.0 - 1.3 * foot) * (high - low))), y.high)
    tidy(ax)
    for mark in picture.marks:
        if mark.kind == "text":  # above bars of rows
            draw(ax, mark._replace(y=max(mark.y, 1.3 * foot)))
            continue
        ends = picture.x if mark.kind == "bars" else y
        inside = {  # what lies beyond is at the end
            "x": np.clip(mark.x, picture.x.low, picture.x.high),
            "y": np.clip(mark.y, y.low, y.high),
            "end": np.clip(mark.end, ends.low, ends.high),
        }
        draw(ax, mark if mark.kind == "rows" else mark._replace(**inside))
    above = [mark.end[1] for mark in picture.marks if mark.kind == "text" and mark.y == 1.0]
    heading(ax, *(wrapped(line, inches(ax)[0]) for line in title), pad=6.0 - min([0.0, *above]))


def entry(style: str, label: str, **look: Any) -> Any:
    """Return what a legend shows of marks of a style, which look as :func:`draw` draws them."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    how = {**STYLES[style], **look}
    if "band" in style:
        return Patch(color=how["color"], label=label)
    return Line2D([], [], label=label, **how)


def of_one(ax: Any, points: Sequence[Mark], colour: str, marker: str) -> dict[str, Any]:
    """Draw marks of one of several curves, filled where shown to be wrong; return their form."""
    form: dict[str, Any] = {"marker": marker, "markersize": 5.5, "markerfacecolor": "white"}
    edge = {"markeredgecolor": colour, "markeredgewidth": 1.4, "clip_on": False}
    for each in points[::-1]:
        draw(ax, each, **{**form, **edge, "markerfacecolor": colour if each.style == BAD else "white"})
    return form


def filled(label: str) -> Any:
    """Return what a legend says of filled marks."""
    return entry(OK, label, color=BLACK, markeredgecolor=BLACK, markeredgewidth=1.0)


def tidy(ax: Any, grid: Literal["both", "x", "y"] | None = None) -> None:
    """Draw a grid behind everything, and no frame above and on the right."""
    if grid:
        width, alpha = (0.5, 0.6) if grid == "both" else (0.6, 1.0)
        ax.grid(axis=grid, color=PALE, zorder=0, linewidth=width, alpha=alpha)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def heading(ax: Any, *lines: str, **style: Any) -> None:
    """Write what is seen above axes."""
    ax.set_title("\n".join(lines), loc="left", **{"size": "medium", **style})


def rows_of(count: int, columns: int) -> list[list[Any]]:
    """Return a mosaic of so many axes in so many columns."""
    places = np.arange(-(-count // columns) * columns).reshape(-1, columns).tolist()
    return [[each if each < count else "." for each in row] for row in places]


def ranked_rows(ax: Any, names: Sequence[str], room: float, powers: tuple[int, int]) -> None:
    """Give each name a line of its own, the first on top; numbers below are few."""
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.margins(x=room)
    ax.ticklabel_format(axis="x", style="sci", scilimits=powers, useMathText=True)
    ax.locator_params(axis="x", nbins=5)
    tidy(ax, "x")


def reliability_axes(
    ax: Any, scale: Scale, points: Array, rest: Array, heights: Array, *, few: bool, label: str = ""
) -> tuple[Limits, Limits]:
    """Make axes those of a reliability diagram, with its diagonal, zoomed to what is shown on them."""
    limits = zoomed(scale, points, rest, heights)
    for axis, ends in zip((ax.xaxis, ax.yaxis), limits, strict=True):
        if scale is not LINEAR:
            axis._set_axes_scale("function", functions=(scale.forward, scale.inverse))
        marks = scale.marks(ends, 2 if few else 5)
        axis.set_ticks(list(marks), list(marks.values()))
    ax.set(xlim=limits[0], ylim=limits[1])
    draw(ax, DIAGONAL._replace(label=label), GRID)
    return limits


# ------------------------------------------------------------------ letters


def event_labels(rows: Rows, lens: Lens | None, kept: bool = False) -> tuple[str, str, str]:
    """Return which probability a lens shows: a title, and what is predicted and observed of it.

    ``kept`` says that rows were sampled by their label, and all is among those that were kept.
    """
    if isinstance(lens, TopLabel):
        title, event, observed = "Top class", "that the top class is right", "that was right"
    elif isinstance(lens, TopK):
        inside = f"the label among the top {lens.k}"
        title, event, observed = f"Top {lens.k}", f"of {inside}", f"with {inside}"
    elif lens is not None and lens.of_numbers:
        of = event_of(lens.label, rows)
        title, event, observed = of[:1].upper() + of[1:], f"that {of}", f"in which {of}"
    else:
        name = rows.classes[1] if rows.classes else "class 1"
        if not name.startswith("class ") and isinstance(lens, ClassWise | None):
            name = f"class {name}"
        title, event, observed = name[:1].upper() + name[1:], f"of {name}", f"in {name}"
    shown, among = (f"{title}, rows kept", " among the rows kept") if kept else (title, "")
    return shown, f"predicted probability {event}{among}", f"share {observed}{among}"


def lettering(text: str, most: int = NAME) -> str:
    r"""Return a text that comes with the data as matplotlib is to draw it: visible, and not long.

    matplotlib takes what stands between two dollar signs for a formula, and fails where it is none; a
    character that the font lacks is an empty box, the same for all.

    Examples
    --------
    >>> print(lettering("cat"), lettering(r"$\frac$"), lettering("a\nb"), lettering("long_" * 9, 10))
    cat \$\frac\$ a\nb long_…ong_
    """
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties, findfont

    fonts = []
    for family in rcParams["font.family"]:  # those that it would use, in the order in which it does
        try:
            fonts.append(str(findfont(FontProperties(family=[family]), fallback_to_default=False)))
        except ValueError:  # it is not installed
            continue
    known = _glyphs(tuple(fonts) or (str(findfont(FontProperties())),))
    drawn = "".join(each if ord(each) in known else escaped(each) for each in shown(text, most))
    return shown(drawn, 2 * most).replace("$", r"\$")


@cache
def _glyphs(fonts: tuple[str, ...]) -> frozenset[int]:
    from matplotlib.font_manager import get_font

    return frozenset(code for font in fonts for code in get_font(font).get_charmap())


# ------------------------------------------------------------------ displays

_SUFFIXES = (".png", ".pdf", ".svg")


@dataclass(frozen=True, eq=False)
class Display(ABC):
    """Base class of plots: what is shown and, once drawn, the figure and its axes.

    Attributes
    ----------
    axes_
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
        """The figure; there is none, which raises InputError, before :meth:`plot`."""
        if self._figure is None:
            raise InputError("nothing is drawn yet; call .plot() first.")
        return self._figure

    @property
    def ax_(self) -> Axes:
        """The first of the axes; as the figure, there is none before :meth:`plot`."""
        return self.axes_[0] if self.axes_ else self.figure_.axes[0]

    @arguments(ax=axes)
    def plot(self, ax: Axes | Sequence[Axes] | None = None) -> Self:
        """Draw the plot, or draw it again.

        Parameters
        ----------
        ax
            Axes to draw in, as many as there are parts; narrow ones have less text, small, and no
            legend. Give their figure a layout that makes room for labels, such as "constrained".
            Default: a new figure.

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
        if ax is not None:
            fit(drawn)
        object.__setattr__(self, "_figure", drawn[0].figure)
        object.__setattr__(self, "axes_", tuple(drawn))
        return self

    @arguments()
    def save(self, path: str | Path) -> None:
        """Write the picture to a file, whole or not at all; it is drawn first if it has not been.

        Parameters
        ----------
        path
            File to write: ``.png``, ``.pdf`` or ``.svg``.

        Raises
        ------
        InputError
            If the suffix is another one, or the file cannot be written.
        """
        target, picture = Path(path), io.BytesIO()
        if target.suffix.lower() not in _SUFFIXES:
            raise InputError(
                f"path is {shown(str(path))}; give a file that ends in .png, .pdf or .svg."
            )
        check_variable("SOURCE_DATE_EPOCH")
        figure: Any = self._figure or self.plot().figure_
        try:
            figure.savefig(picture, format=target.suffix[1:].lower(), dpi=150)
        except OSError as error:  # of a font's file, for instance
            raise InputError(f"the picture {target} cannot be written: {error.strerror}.") from error
        write_whole({target: picture.getvalue()})

    _parts: ClassVar[str] = ""  # what axes are needed for, after their number
    _size: ClassVar[tuple[float, float]] = 6.4, 4.8  # inches, of a figure with one of them

    def _grid(self) -> dict[str, Any]:
        """Return the axes of a new figure, as `plt.subplot_mosaic` takes them, numbered from 0."""
        return {"figsize": self._size}

    @abstractmethod
    def _draw(self, axes: list[Any], *, new: bool) -> None:
        """Draw in these axes, of a new figure of one's own or not."""


@dataclass(frozen=True, eq=False)
class PredictionsDisplay(Display):
    """A picture of predictions and labels, or of a fitted classifier on rows held out."""

    @classmethod
    @abstractmethod
    def from_predictions(cls, *args: Any, **kwargs: Any) -> Self:
        """Compute and draw the picture of predictions and labels."""

    @classmethod
    @arguments(model=anything)
    def from_estimator(cls, model: Any, X: object, y: object, **options: Any) -> Self:
        """Compute and draw the picture of a fitted classifier, on rows held out.

        Parameters
        ----------
        model
            Fitted, with ``predict_proba`` and, as in scikit-learn, ``classes_``: a pipeline, a search
            or a calibrated classifier too, and those of XGBoost and LightGBM. Several by name, as in
            ``{"before": model, "after": calibrated}``, where ``from_predictions`` takes several.
        X
            The rows, as the model takes them.
        y
            Their labels, (n,): values of ``classes_``, to which they are matched. Of a model without
            ``classes_``, columns counted from 0.
        **options
            As in ``from_predictions``.

        Returns
        -------
        Display
            Drawn.

        Raises
        ------
        InputError
            If the model is not fitted or gives no probabilities, a label is none of its classes, or as
            ``from_predictions``.

        Examples
        --------
        >>> import caltest, matplotlib.pyplot as plt
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.naive_bayes import GaussianNB
        >>> iris = load_iris()
        >>> X, y = iris.data, iris.target_names[iris.target]
        >>> model = GaussianNB().fit(X[::2], y[::2])
        >>> display = caltest.ReliabilityDisplay.from_estimator(model, X[1::2], y[1::2], rng=0)
        >>> display.panels[0].result.n_samples
        75
        >>> plt.close(display.figure_)
        """
        if not isinstance(model, Mapping):
            return cls.from_predictions(*predicted_by(model, X, y), **options)
        found = {name: predicted_by(each, X, y) for name, each in model.items()}
        labels = next((labels for _, labels in found.values()), y)
        probs = {name: probs for name, (probs, _) in found.items()}
        return cls.from_predictions(probs, labels, **options)


@dataclass(frozen=True, eq=False)
class ResultDisplay(Display):
    """A picture of a result of this package."""

    result: Any

    @classmethod
    @arguments(ax=axes)
    def from_result(
        cls, result: Any, *, ax: Axes | Sequence[Axes] | None = None, **options: Any
    ) -> Self:
        """Draw a result.

        Parameters
        ----------
        result
            What is shown.
        ax
            As in :meth:`~caltest.plots.Display.plot`.
        **options
            What else the display takes besides its result, by name.

        Returns
        -------
        Display
            Drawn.
        """
        return cls(result, **options).plot(ax)
