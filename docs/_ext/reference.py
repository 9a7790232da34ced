"""Pages of the reference, written from the public names: a name that is added is on its page.

Public are the names in ``caltest.__all__``, and those of its modules: what ``__all__`` lists, or else
what the module itself defines without an underscore. Each is described once, where it is found first.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode

import caltest

PAGES = Path(__file__).resolve().parents[1] / "generated" / "reference"

#: Modules that those need who add a statistic, a null or a lens; `caltest` itself does not name them.
FOR_ADDING = (
    "forms",
    "forms.base",
    "resampling",
    "pvalues",
    "tolerance",
    "kernels.bandwidth",
    "kernels.radial",
    "plots.display",
    "plots.reliability",
    "plots.scales",
    "planning.curve",
)

#: What answers are made of, by the module that defines it.
PARTS = {
    "auditing.views": ("View", "Group", "Part", "Rest", "Check", "Sensitivity", "Skipped"),
    "bounds.result": ("ViewBounds", "SideBound", "Place"),
    "planning.result": ("Simulation",),
    "results": ("Result",),
}

_INDEX = """Reference
=========

Every public name, from its docstring; the examples in them are run by the tests. What ``caltest``
itself has:

.. toctree::
   :maxdepth: 1

   questions
   answers
   pictures

Its modules:

.. toctree::
   :maxdepth: 1

   {modules}

For those who add something:

.. toctree::
   :maxdepth: 1

   {adding}
"""


def public(module: ModuleType) -> list[str]:
    """Return the public names of a module."""
    if hasattr(module, "__all__"):
        return [name for name in module.__all__ if not name.startswith("_")]
    return [name for name, value in vars(module).items() if not name.startswith("_")
            and getattr(value, "__module__", None) == module.__name__]  # fmt: skip


def pages() -> dict[str, tuple[str, str, list[str]]]:
    """Return title, module and names of every page."""
    own = {name: getattr(caltest, name) for name in public(caltest)}
    names = {name: value for name, value in own.items() if not inspect.ismodule(value)}
    functions = [name for name, value in names.items() if not inspect.isclass(value)]
    pictures = [name for name in names if name.endswith("Display")]
    answers = [name for name in names if name not in (*functions, *pictures)]
    found = {
        "questions": ("Questions", "caltest", functions),
        "answers": ("Answers", "caltest", answers),
        "pictures": ("Pictures", "caltest", pictures),
    }
    told = {id(value) for value in names.values()}
    for name in modules():
        module = importlib.import_module(f"caltest.{name}")
        here = [each for each in public(module) if id(getattr(module, each)) not in told]
        told |= {id(getattr(module, each)) for each in here}
        found[name] = (f"caltest.{name}", f"caltest.{name}", here)
    return found


def modules() -> list[str]:
    """Return the public modules, by name, those for adding last."""
    listed = [name for name in public(caltest) if inspect.ismodule(getattr(caltest, name))]
    return [*listed, *FOR_ADDING]


def page(title: str, module: str, names: list[str]) -> str:
    """Return one page: what the module is, a table of its names, and each of them."""
    home = importlib.import_module(module)
    lines = [title, "=" * len(title), ""]
    if module != "caltest":
        lines += [f".. automodule:: {module}", "   :no-members:", ""]
    lines += [f".. currentmodule:: {module}", ""]
    if names:
        lines += [".. autosummary::", "   :nosignatures:", "", *(f"   {name}" for name in names), ""]
    for name in names:
        lines += described(name, getattr(home, name), [getattr(home, each) for each in names])
    if title == "Answers":
        lines += ["Parts of answers", "-" * 16, ""]
        lines += [f".. autoclass:: caltest.{home}.{name}\n   :members:\n"
                  for home, parts in PARTS.items() for name in parts]  # fmt: skip
    return "\n".join(lines)


def described(name: str, value: Any, beside: list[Any]) -> Iterator[str]:
    """Yield the directive of one name; what a base class on the same page tells is left out."""
    if not inspect.isclass(value):
        kind, options = ("function", []) if callable(value) else ("data", ["   :no-value:"])
    else:
        bases = [base for base in value.__mro__[1:] if base in beside]
        again = {each for base in bases for each in vars(base) if not each.startswith("_")}
        kind, options = "class", ["   :members:"]
        if again:
            options.append(f"   :exclude-members: {', '.join(sorted(again))}")
    yield from (f".. auto{kind}:: {name}", *options, "")


def write_pages(app: Sphinx) -> None:
    """Write what has changed."""
    PAGES.mkdir(parents=True, exist_ok=True)
    texts = {name: page(*parts) for name, parts in pages().items()}
    listed = [name for name in modules() if name not in FOR_ADDING]
    texts["index"] = _INDEX.format(modules="\n   ".join(listed), adding="\n   ".join(FOR_ADDING))
    for name, text in texts.items():
        path = PAGES / f"{name}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for path in PAGES.glob("*.rst"):
        if path.stem not in texts:
            path.unlink()


def escape_bars(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Keep |x|, a size, from being read as a name to be substituted."""
    inside = False
    for number, line in enumerate(lines):
        inside = line.lstrip().startswith(">>>") or (inside and bool(line.strip()))
        if not inside:
            parts = line.split("``")
            parts[::2] = [part.replace("|", r"\|") for part in parts[::2]]
            lines[number] = "``".join(parts)


def find_by_last_name(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, contnode: nodes.Element
) -> nodes.Element | None:
    """Resolve a name that docstrings give as their module sees it, if only one thing has it."""
    if node.get("refdomain") != "py":
        return None
    domain = env.domains.python_domain
    wanted = node["reftarget"].removeprefix("~").rpartition(".")[2]
    found = {(entry.docname, entry.node_id) for name, entry in domain.objects.items()
             if name.rpartition(".")[2] == wanted and entry.objtype != "module"}  # fmt: skip
    if len(found) != 1 or "." in node["reftarget"]:
        return None
    ((docname, anchor),) = found
    return make_refnode(app.builder, node["refdoc"], docname, anchor, contnode)


def setup(app: Sphinx) -> dict[str, bool]:
    """Write before the pages are read."""
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", escape_bars, priority=400)
    app.connect("missing-reference", find_by_last_name)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
