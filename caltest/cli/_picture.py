"""Pictures that the commands draw beside what they write."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from caltest._writing import write_whole
from caltest.cli._outputs import check_outputs
from caltest.exceptions import InputError

_PICTURES = (".png", ".pdf", ".svg")

Plot = Annotated[
    Path | None,
    typer.Option("--plot", metavar="FILE", help="Draw it too: .png, .pdf or .svg.", show_default=False),
]


def check_picture(path: Path | None, file: Path | None) -> None:
    """Raise, before anything is computed, if no picture can be written, or in place of the input.

    Parameters
    ----------
    path
        Where to.
    file
        What is read.
    """
    if path is None:
        return
    if path.suffix.lower() not in _PICTURES:  # of what is no plain file too: it names the format
        *some, last = _PICTURES
        raise InputError(
            f"--plot is {path}; give a file name that ends in {', '.join(some)} or {last}."
        )
    check_outputs({"--plot": path}, {"--plot": _PICTURES}, [file])


def draw(path: Path | None, display: Callable[[], Any]) -> InputError | None:
    """Write the picture of a display; return what went wrong, for results are to be written first."""
    if path is None:
        return None
    import matplotlib as mpl

    mpl.use("Agg")  # no screen is needed
    import matplotlib.pyplot as plt

    figure, picture = display().figure_, io.BytesIO()
    try:
        figure.savefig(picture, format=path.suffix[1:].lower(), dpi=150)
        write_whole({path: picture.getvalue()})
    except InputError as error:
        return error
    except OSError as error:  # of a font's file, for instance
        return InputError(f"the picture {path} cannot be written: {error.strerror}.")
    finally:
        plt.close(figure)
    return None
