"""What all pictures share: the base of displays.

A new display is a class whose `_size`, or `_grid` if it needs several axes, says how large its figure
is, and whose `_draw` says which marks of its result lie on the axes.
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from caltest._arguments import anything, arguments, axes
from caltest._visible import shown
from caltest.data.sample import predicted_by
from caltest.exceptions import InputError
from caltest.files.writing import check_epoch, write_whole
from caltest.plots import canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
            Axes to draw in, as many as there are parts; text is less and smaller in narrow ones. Give
            their figure a layout that makes room for labels, such as "constrained". Default: a new
            figure.

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
            canvas.fit(drawn, self._key())
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
        check_epoch()
        figure: Any = self._figure or self.plot().figure_
        try:
            figure.savefig(picture, format=target.suffix[1:].lower(), dpi=150)
        except OSError as error:  # of a font's file, for instance
            raise InputError(f"the picture {target} cannot be written: {error.strerror}.") from error
        write_whole({target: picture.getvalue()})

    _parts: ClassVar[str] = ""  # what axes are needed for, after their number
    _size: ClassVar[tuple[float, float]] = 6.4, 4.8  # inches, of a figure with one of them

    def _key(self) -> str:
        """Return what colours and lines mean in a few words, for axes without room for a legend."""
        return ""

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
