"""The error that a wrong input raises."""


class InputError(ValueError):
    """An input that cannot be used.

    Its message says, in one sentence, what was found, where, and what to do. The command line prints
    it and exits with status 2.
    """
