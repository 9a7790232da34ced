"""Pictures that the commands draw beside what they write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from caltest.exceptions import InputError

_PICTURES = (".png", ".pdf", ".svg")

Plot = Annotated[
    Path | None,
    typer.Option("--plot", metavar="FILE", help="Draw it too: .png, .pdf or .svg.", show_default=False),
]


def check_picture(path: Path | None) -> None:
    """Raise, before anything is computed, if no picture could be written there."""
    if path is None:
        return
    if path.suffix.lower() not in _PICTURES:
        *some, last = _PICTURES
        raise InputError(
            f"--plot is {path}; give a file name that ends in {', '.join(some)} or {last}."
        )
    is_new = not path.exists()
    try:
        path.open("ab").close()
        if is_new:
            path.unlink()
    except OSError as error:
        raise InputError(
            f"--plot is {path}, which cannot be written: {error.strerror}; give another file."
        ) from None


def draw(path: Path | None, display: Callable[[], Any]) -> str | None:
    """Write the picture of a display; return what went wrong, for results are to be written first."""
    if path is None:
        return None
    import matplotlib as mpl

    mpl.use("Agg")  # no screen is needed
    import matplotlib.pyplot as plt

    figure = display().figure_
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        return f"the picture {path} cannot be written: {error.strerror}."
    finally:
        plt.close(figure)
    return None
