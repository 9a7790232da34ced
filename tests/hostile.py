"""Names that no one should use, and what must not come of them."""

import unicodedata

#: By what is wrong with them.
NAMES = {
    "hidden": "\x1b[2J\x1b]0;title\x07 abc\u202egnp\u2069 ca\u200bt\ufeff\U000e0041",
    "commands": "x\n::error::gone\r\n::set-env name=PATH::y",
    "command at the start": "::error::gone",
    "old command": "##[error]gone ##vso[task.complete]",
    "formula of a picture": r"$\frac$ and \$ $x_$ {",
    "no glyph": "中文 🙂 \U0010fffd",
    "very long": "long " * 3000,
    "very long without blanks": "a" * 20_000,
    "markup": "=1+1 </style><script>x</script> `|` & ]]>",
}
#: That no UTF-8 file can hold.
HALF = {"half a character": "a\ud800\udc80b"}

_DIRECTIONS = "\u200b\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"


def assert_fit(text, longest=700, log=True):
    """Nothing in a text moves a cursor, turns the writing, commands a runner or fills the screen."""
    text.encode("utf-8")
    for number, line in enumerate(text.split("\n")):
        hidden = [c for c in line if unicodedata.category(c) in ("Cc", "Cs") or c in _DIRECTIONS]
        assert not hidden, (number, hidden, line[:300])
        assert not (log and line.lstrip().startswith("::")), line[:300]
        assert not (log and ("##[" in line or "##vso[" in line)), line[:300]
        assert len(line) <= longest, (number, len(line), line[:300])
