"""What users read is plain English: pages, public docstrings, messages, printed results and reports.

A table of expressions that read as translated, each with what to write instead. Linters of prose look
for other faults and know nothing of these.
"""

import ast
import re
from pathlib import Path

import pytest
from pages import ROOT

#: A pattern, in lower or upper case, and what to write instead.
INSTEAD = {
    r"c[ao]mes? true": "observed",
    r"(?:told|tells?|telling)(?: \w+)? apart": "distinguished; right on average, wrong for some",
    r"(?:is|are|was|were|be|been) told(?! to)|told (?:of|by|in|with|as)": "reported, identified",
    r"mend(?:s|ed|ing)?": "fix",
    r"timid(?:ly)?": "underconfident, not extreme enough",
    r"glimpses?": "subsample",
    r"parcels?": "task",
    r"h[au]ngs? on": "depends on",
    r"believes? (?:the one|in)": "picks",
    r"(?:nothing|something|nothing else) is said": "unless stated",
    r"claim(?:s|ed|ing)?(?: \w+){0,4} too (?:much|little|surely|often|seldom)": "is too high, too low",
    r"said too (?:much|little|often|seldom)": "predicted too high, too low",
    r"(?:looked|gone|go|goes) through(?! a lens)": "searched, checked",
    r"at (?:the|that|this) risk": "with that false-alarm rate",
    r"too sure(?:ly)?|(?:not sure|surely) enough": "overconfident, underconfident",
    r"nothing is known|speaks? of|spoken of|knows? nothing of|is written of": "about",
    r"call(?:s|ed)? (?:it )?impossible": "gave probability 0",
    r"errs?": "is wrong",
    r"least risk": "lowest risk",
    r"hard(?:est)? to tell": "least favourable",
    r"(?:rows?|all|they) count(?:s)? alike": "have equal weight",
    r"what is (?:stated|said|meant)|as (?:they are|it is) meant": "the stated probability",
    r"the more so": "especially",
    r"(?:does|do) not go with|goes? with every": "cannot be combined with; works with",
    r"which is no (?!longer)|(?<!there.)is no (?:path|list|number|name|file|plain|class|column)": (
        "is not a"
    ),
    r"stretch(?:es)? of": "range of",
    r"the doors?|by the same door": "input checks",
    r"(?:probabilit(?:y|ies)|rows?|seeds?|sets?|fits?|bins?|lines?|one) an? "
    r"(?:class|row|case|cell|size|bin|draw|patient|day|file|leaf)": "per",
    r"in the place of": "instead of",
    r"as one says|so to speak|as it were": "(leave out)",
    r"in some (?:\w+, )*(?:group|class|tenth|fifth)s?,? (?:of a group )?or \w+": "too small to judge",
    r"with these rows in them": "partly because of these",
    r"shown to exceed|larger ones cannot be ruled out": "could be above …; not proved",
    r"shown to be wrong by itself": "each alone has too few rows to tell",
    r"neither reaches zero": "both boxes lie above zero: too high",
    r"band of chance": "predicted too often, too rarely",
    r"draws that reverse": "none of 999 simulations gave evidence this strong",
    r"(?:it|\w+) ranked first in": "no difference shown",
    r"sure that all": "all correct together, 95% confidence",
    r"the scale and the sign": "flip the sign",
    r"the one or the other": "leave out this; keep that",
    r"still calls? a model|holds? together": "all correct together",
}

#: Pages and modules that still offend. It only shrinks: one without offences fails the test.
PENDING: set[str] = set()

_PATTERNS = {
    re.compile(rf"\b(?:{each})\b".replace(" ", r"\s+"), re.IGNORECASE): instead
    for each, instead in INSTEAD.items()
}
_HIDDEN = re.compile(r"```.*?```|`[^`\n]*`|\{[a-z:]+\}|\]\([^)]*\)|^:::.*?$", re.DOTALL | re.MULTILINE)


def of_page(text):
    """Return the prose of Markdown: nothing of code, of the targets of links, of directives."""
    yield 1, _HIDDEN.sub(lambda found: "\n" * found[0].count("\n") or "·", text)


def of_template(text):
    """Return the sentences of a template."""
    yield 1, re.sub(r"<[^>\n]*>|\{[{%#].*?[}%#]\}", " ", text)


def of_module(text):
    """Return the public docstrings of a module, and its strings that are sentences or parts of one."""
    tree = ast.parse(text)
    documented: set[int] = set()

    def visit(node, public):
        name = getattr(node, "name", None) or ""
        public = public and (not name.startswith("_") or name.startswith("__"))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            docstring = node.body[0].value  # type: ignore[attr-defined]
            documented.add(id(docstring))
            if public:
                yield docstring.lineno, re.sub(r"`[^`\n]*`", "·", docstring.value)
        if isinstance(node, ast.JoinedStr):
            parts = (e.value if isinstance(e, ast.Constant) else "…" for e in node.values)
            yield node.lineno, "".join(map(str, parts))
            return
        text = node.value if isinstance(node, ast.Constant) and id(node) not in documented else None
        if isinstance(text, str) and " " in text:
            yield node.lineno, text  # type: ignore[attr-defined]
        for child in ast.iter_child_nodes(node):
            yield from visit(child, public)

    yield from visit(tree, True)


def of_example(text):
    """Return the prose of an example of the gallery: docstring, strings and comments."""
    yield from of_module(text)
    yield from ((k, each) for k, each in enumerate(text.splitlines(), 1) if each.startswith("#"))


def faults(lines):
    """Return what is found: the line, the expression, and what to write instead."""
    return [
        f"{start + text.count(chr(10), 0, found.start())}: “{' '.join(found[0].split())}”: {instead}"
        for start, text in lines
        for pattern, instead in _PATTERNS.items()
        for found in pattern.finditer(text)
    ]


def sources():
    """Return all that users read, by its path."""
    readers = (
        ("README.md", of_page), ("CHANGELOG.md", of_page), ("docs/**/*.md", of_page),
        ("docs/examples/*.py", of_example), ("caltest/**/*.py", of_module),
        ("caltest/*/templates/*.j2", of_template),
    )  # fmt: skip
    return {
        path.relative_to(ROOT).as_posix(): read(path.read_text(encoding="utf-8"))
        for pattern, read in readers
        for path in sorted(Path(ROOT).glob(pattern))
        if "_build" not in path.parts
    }


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (of_page, "# Title\n\nIn 30 rows it says 70%, and 80% came true.\n"),
        (of_template, "<p>{{ a }}</p>\n\n<p>{{ share }} came true</p>\n"),
        (of_module, 'x = 1\n\nraise ValueError(f"{x} rows came " "true")\n'),
        (of_module, 'def f(x):\n    """Return it.\n\n    What came true."""\n'),
        (of_example, "x = 1\n\n# In 80% of the rows it came true.\n"),
    ],
)
def test_a_planted_sentence_is_found(read, text):
    (found,) = faults(read(text))
    assert found.endswith("“came true”: observed")
    assert found.startswith(("3: ", "4: "))


def test_code_and_private_docstrings_are_not_prose():
    assert not faults(
        of_page("`came true`\n\n```python\ncame = true  # came true\n```\n[a](mend.md)\n")
    )
    assert not faults(of_module('def _f():\n    """What came true."""\n'))


@pytest.mark.slow
def test_what_users_read_is_plain_english():
    found = {path: faults(lines) for path, lines in sources().items()}
    assert len(found) > 140
    listed = [f"{path}:{each}" for path, own in found.items() if path not in PENDING for each in own]
    assert not listed, "\n".join(listed)
    assert not [path for path in PENDING if not found[path]], "take these out of PENDING"
