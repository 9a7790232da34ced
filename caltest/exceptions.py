"""The error that a wrong input raises."""


class InputError(ValueError):
    """An input that cannot be used.

    Its message says, in one sentence, what was found, where, and what to do. The command line prints
    it and exits with status 2.

    Examples
    --------
    >>> import caltest
    >>> try:
    ...     caltest.test([0.2, 1.4], [0, 1])
    ... except caltest.InputError as error:
    ...     print(error)
    probs looks like percentages: row 1 (counting from 0) is 1.4, outside [0, 1]; divide by 100.
    """
