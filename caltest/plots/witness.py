"""Where a model is wrong: the places found, and which classes are over- and under-predicted there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest._arguments import OneOf, arguments
from caltest.plots import canvas
from caltest.plots.display import ResultDisplay
from caltest.text.numbers import percents
from caltest.text.summaries import centre_text, extent, row_text

if TYPE_CHECKING:
    from caltest.localisation import Witness

_MOST_CLASSES = 12
_LEAST_SCALE, _MOST_SCALE = 3.0, 8.0  # |z| at which the colours end
_DARK = 0.72  # of the scale; text is white above
_LONGEST_NAME = 14
_FULL = "percentages", "numbers", "stars"  # what cells hold, from much to little


@arguments(result=OneOf("caltest.localisation:Witness", "give what caltest.witness returns"))
@dataclass(frozen=True, eq=False)
class WitnessDisplay(ResultDisplay):
    """Plot a witness as a heat map: which classes are wrong, near which predictions.

    Make it with ``from_result``.

    There is one row per place found, strongest evidence on top, and one column per class; with
    more than twelve classes, only for classes with a significant error, the strongest twelve at
    most. Colour and number are z: above 0 (blue) the class was observed more often than predicted,
    below 0 (vermilion) less often. Significant errors are bold, with a star and the percentages
    predicted and observed; if cells are too small, without the percentages, or with the star
    alone. If nothing is significant, the plot says so.

    Parameters
    ----------
    result
        What :func:`caltest.witness` returned.

    Examples
    --------
    >>> import caltest, matplotlib.pyplot as plt
    >>> digits = caltest.datasets.load_digits_predictions("naive_bayes")
    >>> found = caltest.witness(digits.probs, digits.labels, n_resamples=99, rng=0)
    >>> display = caltest.WitnessDisplay.from_result(found)
    >>> len(display.ax_.get_yticks()) == len(found.identified)
    True
    >>> plt.close(display.figure_)
    """

    result: Witness

    def _classes(self) -> list[int]:
        """Return the classes shown, in the order of the columns."""
        w, told = self.result, list(self.result.identified)
        if w.n_classes <= _MOST_CLASSES or not told:
            return list(range(w.n_classes if told else 0))
        size = np.where(w.pvalues[told] <= w.level, np.abs(w.standardised[told]), 0.0)
        largest = size.max(axis=0, initial=0.0)
        named = np.argsort(-largest, kind="stable")[: min(_MOST_CLASSES, np.count_nonzero(largest))]
        return sorted(int(c) for c in named)

    def _grid(self) -> dict[str, Any]:
        width = max(6.4, 3.2 + 0.82 * len(self._classes()))
        return {"figsize": (width, 1.9 + 0.62 * max(len(self.result.identified), 2))}

    def _draw(self, axes: list[Any], *, new: bool) -> None:
        from matplotlib.colors import LinearSegmentedColormap

        (ax,), w, places, classes = axes, self.result, list(self.result.identified), self._classes()
        if not places:
            ax.set_axis_off()
            nothing = (
                f"Nothing stands out at {w.n_places:,} places:\nno class is significant at level "
                f"{w.level:.3g}\n(smallest adjusted p = {w.pvalue:.3g})"
            )
            size = "small" if canvas.is_narrow(ax) else "medium"
            ax.text(0.5, 0.5, nothing, ha="center", va="center", transform=ax.transAxes, size=size)
            return
        narrow, z = canvas.is_narrow(ax), w.standardised[np.ix_(places, classes)]
        largest = float(np.abs(z).max())
        scale = min(max(largest, _LEAST_SCALE), _MOST_SCALE)
        colours = LinearSegmentedColormap.from_list(
            "errors", [canvas.VERMILION, "#FFFFFF", canvas.BLUE]
        )
        image = ax.imshow(z, cmap=colours, vmin=-scale, vmax=scale, aspect="auto")
        labels = []
        for place in places:
            reach = extent(float(w.weights[place]), w.n_samples)
            reach = reach if reach.endswith("rows") else "most rows"  # in the little room there is
            centre = canvas.lettering(centre_text(w, place, 2), canvas.CLAUSE)
            if len(centre) > 2 * _LONGEST_NAME:
                centre = centre.replace(", ", ",\n")
            row = row_text(w, place)
            labels.append(row if narrow else f"{centre}\n{row}, {reach}")
        canvas.heat_map_axes(ax, [canvas.lettering(w.names[c], _LONGEST_NAME) for c in classes], labels)
        size = "small" if narrow else "medium"
        ax.tick_params(labelsize=size)
        if narrow or len(classes) > 5:
            ax.tick_params(axis="x", labelrotation=90 if narrow else 30)
        bar = ax.figure.colorbar(image, ax=ax, extend="both" if largest > scale else "neither")
        bar.ax.tick_params(labelsize=size)
        meaning = "z-score: − observed less\n+ observed more"
        if not narrow:
            meaning = canvas.wrapped(
                "z-score: − observed less often than predicted, + more often", canvas.inches(ax)[1]
            )
        bar.set_label(meaning, size=size)
        bar.outline.set_visible(False)
        shown = "" if len(classes) == w.n_classes else f", {len(classes)} of {w.n_classes} classes"
        what = f"Near which predictions which classes are wrong{shown}"
        canvas.heading(ax, what, size=size)
        for full in _FULL:  # as much in all cells as all have room for
            cells = []
            for (i, j), value in np.ndenumerate(z):
                entry = places[i], classes[j]
                claimed = bool(w.pvalues[entry] <= w.level)
                text = ("*" if claimed else "") if full == "stars" else _number(float(value), claimed)
                if claimed and full == "percentages":
                    ends = percents(float(w.predicted[entry]), float(w.observed[entry]))
                    text += "\n" + "→".join(each.rstrip("%") for each in ends)
                dark = bool(abs(value) > _DARK * scale)
                cells.append(canvas.write_cell(ax, i, j, text, dark=dark, bold=claimed, size="small"))
            how = "" if full == "stars" else "signed numbers: z-scores; "
            how += f"* significant at {w.level:.3g} for all together"
            lines = what, how + (": % predicted → % observed" if full == "percentages" else "")
            canvas.lay_out(ax.figure)
            room = canvas.room_above(ax)
            canvas.heading(ax, *(canvas.wrapped(line, room, small=narrow) for line in lines), size=size)
            canvas.lay_out(ax.figure)
            box = ax.get_window_extent()
            sizes = [cell.get_window_extent() for cell in cells if cell.get_text()]
            wide, high = max(each.width for each in sizes), max(each.height for each in sizes)
            if full == "stars" or (wide * len(classes) < box.width and high * len(places) < box.height):
                break
            for cell in cells:
                cell.remove()


def _number(z: float, claimed: bool) -> str:
    text = "0.0" if abs(z) < 0.05 else f"{z:+.1f}".replace("-", "−")
    return f"{text}*" if claimed else text
