"""The error that a wrong input raises."""

from __future__ import annotations

from caltest._visible import message


class InputError(ValueError):
    """An input that cannot be used.

    Its message says, in one sentence, what was found, where, and what to do. It is one line of visible
    characters, whatever the input holds, and of at most 500: a longer one loses its middle. The command
    line prints it and exits with status 2.

    Parameters
    ----------
    text
        The message.

    Examples
    --------
    >>> import caltest
    >>> try:
    ...     caltest.test([0.2, 1.4], [0, 1])
    ... except caltest.InputError as error:
    ...     print(error)
    probs looks like percentages: row 1 (counting from 0) is 1.4, outside [0, 1]; divide by 100.
    """

    def __init__(self, text: object = "") -> None:
        super().__init__(message(str(text)))
