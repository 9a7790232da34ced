"""Where a model errs: the places told, and which classes are over- and under-predicted there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from caltest._arguments import OneOf, arguments
from caltest.localisation import Witness
from caltest.plots.lettering import CLAUSE, lettering
from caltest.plots.style import BLACK, BLUE, VERMILION
from caltest.text.localisation import centre_text, extent, row_text
from caltest.text.numbers import percents

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_CLASSES = 12
_LEAST_SCALE, _MOST_SCALE = 3.0, 8.0  # |z| at which the colours end
_DARK = 0.72  # of the scale; text is white above
_LONGEST_NAME = 14


@arguments(witness=OneOf("caltest.localisation:Witness", "give what caltest.witness returns"))
@dataclass(frozen=True, eq=False)
class WitnessDisplay:
    """The places told and their classes, as a heat map. Make it with `from_witness`.

    Attributes
    ----------
    witness
        What is shown.
    figure_, ax_
        The picture: the figure, and its axes; None before :meth:`plot`.

    Examples
    --------
    >>> import caltest, matplotlib.pyplot as plt
    >>> sure = caltest.simulation.tempered(n_samples=300, temperature=0.4, rng=0)
    >>> found = caltest.witness(sure.probs, sure.labels, n_resamples=99, rng=0)
    >>> display = caltest.WitnessDisplay.from_witness(found)
    >>> display.witness is found, len(display.ax_.get_yticks()) == len(found.told)
    (True, True)
    >>> plt.close(display.figure_)
    """

    witness: Witness
    figure_: Figure | None = field(default=None, init=False, repr=False)
    ax_: Axes | None = field(default=None, init=False, repr=False)

    @classmethod
    @arguments()
    def from_witness(cls, witness: Witness, *, ax: Axes | None = None) -> WitnessDisplay:
        """Draw a witness.

        Parameters
        ----------
        witness
            Of :func:`caltest.witness`.
        ax
            Axes to draw in. Default: a new figure.

        Returns
        -------
        WitnessDisplay
            Drawn: a row for every place told, most telling on top, and a column for every class; of
            more than twelve classes, for those with a claim, the most telling twelve at most. Colour
            and number are z: above 0 (blue) the class came true more often than said, below
            0 (vermilion) less often. Claims are bold, with a star and the percentages said and come
            true. If there are no claims, the picture says so.

        Examples
        --------
        >>> import caltest, matplotlib.pyplot as plt
        >>> digits = caltest.datasets.load_digits_predictions("naive_bayes")
        >>> found = caltest.witness(digits.probs, digits.labels, n_resamples=99, rng=0)
        >>> display = caltest.WitnessDisplay.from_witness(found)
        >>> len(display.ax_.get_yticks()) == len(found.told)
        True
        >>> plt.close(display.figure_)
        """
        return cls(witness).plot(ax)

    @arguments()
    def plot(self, ax: Axes | None = None) -> WitnessDisplay:
        """Draw the heat map.

        Parameters
        ----------
        ax
            As in :meth:`from_witness`.

        Returns
        -------
        WitnessDisplay
            Itself, with ``figure_`` and ``ax_`` set.
        """
        classes = _classes(self.witness) if self.witness.told else []
        axes: Any = _new_axes(len(self.witness.told), len(classes)) if ax is None else ax
        if self.witness.told:
            _draw(axes, self.witness, classes)
        else:
            _draw_nothing(axes, self.witness)
        object.__setattr__(self, "figure_", axes.figure)
        object.__setattr__(self, "ax_", axes)
        return self


def _classes(w: Witness) -> list[int]:
    """Return the classes shown, in the order of the columns."""
    if w.n_classes <= MOST_CLASSES:
        return list(range(w.n_classes))
    told = list(w.told)
    size = np.where(w.pvalues[told] <= w.level, np.abs(w.standardised[told]), 0.0)
    largest = size.max(axis=0, initial=0.0)
    named = np.argsort(-largest, kind="stable")[: min(MOST_CLASSES, np.count_nonzero(largest))]
    return sorted(int(c) for c in named)


def _new_axes(n_places: int, n_classes: int) -> Any:
    import matplotlib.pyplot as plt

    size = (max(6.4, 3.2 + 0.82 * n_classes), 1.9 + 0.62 * max(n_places, 2))
    return plt.subplots(figsize=size, layout="constrained")[1]


def _draw(ax: Any, w: Witness, classes: list[int]) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    places = list(w.told)
    z = w.standardised[np.ix_(places, classes)]
    largest = float(np.abs(z).max())
    scale = min(max(largest, _LEAST_SCALE), _MOST_SCALE)
    colours = LinearSegmentedColormap.from_list("errors", [VERMILION, "#FFFFFF", BLUE])
    image = ax.imshow(z, cmap=colours, vmin=-scale, vmax=scale, aspect="auto")
    for i, j in np.ndindex(z.shape):
        _draw_cell(ax, w, (i, j), (places[i], classes[j]), scale)
    names = [lettering(w.names[c], _LONGEST_NAME) for c in classes]
    ax.set_xticks(range(len(classes)), names)
    if len(classes) > 5:
        ax.tick_params(axis="x", labelrotation=30)
    ax.set_yticks(range(len(places)), [_label(w, place) for place in places])
    ax.tick_params(length=0)
    for side in ("top", "right", "bottom", "left"):
        ax.spines[side].set_visible(False)
    bar = ax.figure.colorbar(image, ax=ax, extend="both" if largest > scale else "neither")
    bar.set_label("z:  − less often than said,  + more")
    bar.outline.set_visible(False)
    shown = "" if len(classes) == w.n_classes else f", {len(classes)} of {w.n_classes} classes"
    ax.set_title(
        f"Near which predictions which classes are wrong{shown}\n"
        f"* significant at {w.level:.3g} for all together: % said → % came true",
        loc="left",
        size="medium",
    )


def _draw_cell(
    ax: Any, w: Witness, where: tuple[int, int], entry: tuple[int, int], scale: float
) -> None:
    z, claimed = float(w.standardised[entry]), w.pvalues[entry] <= w.level
    text = "0.0" if abs(z) < 0.05 else f"{z:+.1f}".replace("-", "−")
    if claimed:
        said, true = percents(float(w.stated[entry]), float(w.shares[entry]))
        text = f"{text}*\n{said.rstrip('%')}→{true.rstrip('%')}"
    ax.text(
        *(where[1], where[0], text),
        ha="center",
        va="center",
        size="small",
        color="white" if abs(z) > _DARK * scale else BLACK,
        weight="bold" if claimed else "normal",
    )


def _label(w: Witness, place: int) -> str:
    reach = extent(float(w.weights[place]), w.n_samples)
    reach = reach if reach.endswith("rows") else "most rows"  # in the little room there is
    return f"{_wrapped(lettering(centre_text(w, place, 2), CLAUSE))}\n{row_text(w, place)}, {reach}"


def _wrapped(text: str) -> str:
    return text if len(text) <= 2 * _LONGEST_NAME else text.replace(", ", ",\n")


def _draw_nothing(ax: Any, w: Witness) -> None:
    ax.set_axis_off()
    ax.text(
        0.5,
        0.5,
        f"Nothing stands out at {w.n_places:,} places:\n"
        f"no class is significant at level {w.level:.3g}\n(smallest adjusted p = {w.pvalue:.3g})",
        ha="center",
        va="center",
        transform=ax.transAxes,
    )
