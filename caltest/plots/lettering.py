"""Names in pictures: every text that comes with the data is made fit to be drawn here.

matplotlib takes what stands between two dollar signs for a formula, and fails where it is none; a
character that the font lacks is an empty box, the same for all; and an endless name leaves no room.
"""

from __future__ import annotations

from functools import cache

from caltest._visible import escaped, shown

NAME, CLAUSE = 28, 60  # characters: of a name by itself, of a clause with one in it


def lettering(text: str, most: int = NAME) -> str:
    r"""Return a text as matplotlib is to draw it: as it is, visible, and not long.

    Examples
    --------
    >>> print(lettering("cat"), lettering(r"$\frac$"), lettering("a\nb"), lettering("long_" * 9, 10))
    cat \$\frac\$ a\nb long_…ong_
    """
    known = _glyphs(*_fonts())
    drawn = "".join(each if ord(each) in known else escaped(each) for each in shown(text, most))
    return shown(drawn, 2 * most).replace("$", r"\$")


def _fonts() -> tuple[str, ...]:
    """Return the files of the fonts that matplotlib would use, in the order in which it does."""
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties, findfont

    found = []
    for family in rcParams["font.family"]:
        try:
            path = findfont(FontProperties(family=[family]), fallback_to_default=False)
        except ValueError:  # it is not installed
            continue
        found.append(str(path))
    return tuple(found) or (str(findfont(FontProperties())),)


@cache
def _glyphs(*fonts: str) -> frozenset[int]:
    from matplotlib.font_manager import get_font

    return frozenset(code for font in fonts for code in get_font(font).get_charmap())
