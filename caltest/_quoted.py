"""Values of the user's, quoted in messages: short, whatever they are."""

from __future__ import annotations

#: Characters of a quoted value: enough to recognise it, and to leave room for the sentence.
MOST = 60


def quoted(value: object, most: int = MOST) -> str:
    """Write a value as in Python, its end left out if it is long.

    Examples
    --------
    >>> quoted("cat"), quoted(0.5), quoted("9" * 2000, 12), quoted(10**5000)
    ("'cat'", '0.5', "'999999999999…' (2000 characters)", 'a number of thousands of digits')
    """
    if isinstance(value, str) and len(value) > most:
        return f"{value[:most]!r}"[:-1] + f"…' ({len(value)} characters)"
    try:
        text = repr(value)
    except ValueError:  # Python writes no number of more than 4300 digits
        return "a number of thousands of digits"
    return text if len(text) <= most + 2 or isinstance(value, str) else f"{text[:most]}…"
