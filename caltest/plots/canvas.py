"""How marks, axes and words look on the axes of matplotlib: styles, legends, and text that has room."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any, Literal

import numpy as np

from caltest._visible import escaped, shown
from caltest.data import Rows
from caltest.lenses import ClassWise, Lens, TopK, TopLabel
from caltest.lenses import event as event_of
from caltest.pictures import BAD, DIAGONAL, GRID, LINEAR, OK, Array, Limits, Mark, Scale, zoomed

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
_BELOW, _LINE = 0.28, 0.19  # inches: of tick labels between axes and a legend below them, of a line

_SINGLE: dict[str, Any] = {"linestyle": "none", "zorder": 5}
#: How marks of a class of style look. As in reports: a filled diamond is shown to be wrong, a hollow
#: circle is not.
STYLES: dict[str, dict[str, Any]] = {
    OK: {**_SINGLE, "marker": "o", "color": "white", "markeredgecolor": BLUE, "markeredgewidth": 1.6},
    BAD: {**_SINGLE, "marker": "D", "color": VERMILION, "markeredgewidth": 0.6},
    "diag": {**DASHED, "zorder": 3},
    "zero": {**DASHED, "zorder": 1},
    "line": {"color": BLUE, "linewidth": 1.6, "zorder": 3},
    "thin": {"color": FAINT, "linewidth": 0.9, "zorder": 3},
    "curve": {"color": BLUE, "linewidth": 2.0, "zorder": 4},
    "band": {"color": WIDE_BAND, "linewidth": 0.0, "zorder": 1},
    "point band": {"color": NARROW_BAND, "zorder": 2},
    "rows": {"color": FAINT, "linewidth": 0.0},
    "limit": {"color": FAINT, "linewidth": 1.3, "linestyle": ":", "zorder": 4},
    "between": {"color": NARROW_BAND, "alpha": 0.5, "linewidth": 0, "zorder": 0},
    "error": {"color": BLUE, "zorder": 2},
    "value": {"marker": "|", "color": BLACK, "markersize": 13, "markeredgewidth": 1.8, "zorder": 3},
    "hollow": {"marker": "o", "markerfacecolor": "white", "markeredgecolor": FAINT, "zorder": 4},
    "found": {"color": VERMILION, "linewidth": 1.8, "zorder": 1},
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


def fitted(ax: Any, text: str) -> str:
    """Break the lines of a small text where axes end."""
    return wrapped(text, inches(ax)[0], small=True)


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


def fit(axes: Sequence[Any], key: str) -> None:
    """Make text of narrow axes small, in lines that fit, with a short key in place of a legend."""
    narrow = [ax for ax in axes if is_narrow(ax)]
    for ax in narrow:
        ax.tick_params(labelsize="small")
        if key and ax.get_legend():
            ax.get_legend().remove()
            ax.set_xlabel(f"{ax.get_xlabel()}\n{key}".strip())
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
        how = {**STYLES[style], **({"label": label} if label else {}), **look}
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
        elif kind == "rows":
            ax.bar(x[:-1], y, np.diff(x), align="edge", **how)
        elif kind == "area":
            ax.fill_between(x, y, end, **how)


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
        faint: dict[str, Any] = (
            {"linewidth": 0.5, "alpha": 0.6} if grid == "both" else {"linewidth": 0.6}
        )
        ax.grid(axis=grid, color=PALE, zorder=0, **faint)
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


def scale_above(ax: Any, places: Any, labels: Sequence[str], length: float) -> Any:
    """Write other numbers along the top of axes; return these axes."""
    top = ax.secondary_xaxis("top")
    top.set_xticks(places, labels)
    top.tick_params(labelsize="small", length=length, pad=1)
    top.spines["top"].set_visible(False)
    return top


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


def short(number: float) -> str:
    """Write a count in at most four characters or so: 87, 9.4k, 99k, 1.2M."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if number >= 0.9995 * size:
            digits = f"{number / size:.1f}" if number < 9.95 * size else f"{number / size:.0f}"
            return digits.removesuffix(".0") + letter
    return f"{number:.0f}"
