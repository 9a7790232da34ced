"""Pages of the API, written from the public names: one page a name, one a module, and an index.

Public are the names in ``caltest.__all__``, and those of its modules: what ``__all__`` lists, or else
what the module, or package, itself defines without an underscore. Each is described once, where it is
found first.
"""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from types import ModuleType
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode

import caltest

DOCS = Path(__file__).resolve().parents[1]
PAGES = DOCS / "generated" / "reference"
_EXAMPLES = [path.read_text(encoding="utf-8") for path in sorted((DOCS / "examples").glob("*.py"))]

#: Modules that those need who add a statistic, a null or a lens; `caltest` itself does not name them.
FOR_ADDING = (
    "laws",
    "forms",
    "forms.base",
    "resampling",
    "pvalues",
    "tolerance",
    "kernels.bandwidth",
    "kernels.base",
    "plots.canvas",
    "plots.panel",
    "pictures",
)

#: What answers are made of, by the module that defines it.
PARTS = {
    "auditing.plan_rows": ("PlannedView",),
    "auditing.estimates": ("InUnits", "Remedy", "UsualNumbers"),
    "auditing.views": (
        *("View", "Group", "Part", "Rest", "Check", "Sensitivity", "Skipped"),
        *("Count", "Curves", "Slice", "ByFeature", "Bin"),
    ),
    "bounds.lower": ("ViewBounds", "SideBound", "Place"),
    "comparison.errors": ("ModelError", "ModelDifference"),
    "exceptions": ("Premise",),
    "laws.sets": ("SetSizes",),
    "monitoring.state": ("Evidence", "Period"),
    "planning.simulate": ("Simulation",),
    "results": ("Result",),
}

#: Titles of the groups of top-level names, with the sentence above their table.
_GROUPS = {
    "Functions": "What to call, with predictions and labels.",
    "Results": "What the functions return. Each prints itself, and has ``to_dict()`` and ``plot()``.",
    "Displays": "Pictures, with ``from_predictions`` or ``from_result``, and ``save``.",
}


def public(module: ModuleType) -> list[str]:
    """Return the public names of a module."""
    if hasattr(module, "__all__"):
        return [name for name in module.__all__ if not name.startswith("_")]
    inside = module.__name__ + ("." if hasattr(module, "__path__") else "")
    own = {name: getattr(value, "__module__", None) or "" for name, value in vars(module).items()}
    return [
        name
        for name, home in own.items()
        if not name.startswith("_") and (home == module.__name__ or home.startswith(inside))
    ]


def groups() -> dict[str, list[str]]:
    """Return the top-level names by the title that they stand under."""
    own = {name: getattr(caltest, name) for name in public(caltest)}
    names = {name: value for name, value in own.items() if not inspect.ismodule(value)}
    functions = [name for name, value in names.items() if not inspect.isclass(value)]
    displays = [name for name in names if name.endswith("Display")]
    others = [name for name in names if name not in (*functions, *displays)]
    return dict(zip(_GROUPS, (functions, others, displays), strict=True))


def modules() -> list[str]:
    """Return the public modules, by name, those for adding last."""
    listed = [name for name in public(caltest) if inspect.ismodule(getattr(caltest, name))]
    return [*listed, *FOR_ADDING]


def members() -> dict[str, list[str]]:
    """Return the names of every module that are not described elsewhere."""
    told = {id(getattr(caltest, name)) for names in groups().values() for name in names}
    found = {}
    for name in modules():
        module = importlib.import_module(f"caltest.{name}")
        found[name] = [each for each in public(module) if id(getattr(module, each)) not in told]
        told |= {id(getattr(module, each)) for each in found[name]}
    return found


def texts() -> dict[str, str]:
    """Return the pages, by the names of their files."""
    every = members()
    found = {f"caltest.{name}": _of_name("caltest", name, [])
             for names in groups().values() for name in names}  # fmt: skip
    for module, names in every.items():
        home = importlib.import_module(f"caltest.{module}")
        beside = [getattr(home, each) for each in names]
        found |= {
            f"caltest.{module}.{each}": _of_name(f"caltest.{module}", each, beside) for each in names
        }
        lines = [
            *_title(f"caltest.{module}"),
            f".. automodule:: caltest.{module}",
            "   :no-members:",
            "",
        ]
        if module == "statistics":
            lines += statistics()
        found[f"caltest.{module}"] = "\n".join([*lines, *_table(f"caltest.{module}", names)])
    for module, names in PARTS.items():
        found |= {f"caltest.{module}.{each}": _of_name(f"caltest.{module}", each, []) for each in names}
    lines = [
        *_title("API"),
        "Every public name, one a page. Examples in them are run by the tests.",
        "",
    ]
    for title, names in groups().items():
        lines += [title, "-" * len(title), "", _GROUPS[title], "", *_table("caltest", names)]
    lines += ["Parts of results", "-" * 16, ""]
    for module, names in PARTS.items():
        lines += _table(f"caltest.{module}", names)
    listed = [name for name in modules() if name not in FOR_ADDING]
    for title, names in (("Modules", listed), ("For those who add something", list(FOR_ADDING))):
        lines += [title, "-" * len(title), "", ".. toctree::", "   :maxdepth: 1", ""]
        lines += [*(f"   caltest.{name}" for name in names), ""]
    return found | {"index": "\n".join(lines)}


def _title(text: str) -> list[str]:
    return [text, "=" * len(text), ""]


def statistics() -> list[str]:
    """Return the table of statistics, by the question that each answers."""
    of = caltest.statistics
    every = {name: of.Listed.of_name[name] for name in of.TABLE}
    lines = []
    for question in dict.fromkeys(each.question for each in every.values()):
        lines += [f".. list-table:: {question}", "   :header-rows: 1", ""]
        rows = [("name", "where", "what is scored", "how it is summed", "source")]
        for name, each in every.items():
            if each.question == question:
                link = f":class:`{name} <caltest.statistics.{each.__name__}>`"
                rows.append((link, each.where, each.what, each.how, each.source))
        for first, *others in rows:
            lines += [f"   * - {first}", *(f"     - {cell}" for cell in others)]
        lines.append("")
    return lines


def _table(module: str, names: list[str]) -> list[str]:
    """Return a table of names with what each is for, and the pages for the sidebar."""
    if not names:
        return []
    table = [f".. currentmodule:: {module}", "", ".. autosummary::", "   :nosignatures:", ""]
    toctree = [".. toctree::", "   :hidden:", "", *(f"   {module}.{name}" for name in names), ""]
    return [*table, *(f"   {name}" for name in names), "", *toctree]


def _of_name(module: str, name: str, beside: list[Any]) -> str:
    """Return the page of one name; what a base class beside it tells is left out."""
    value = getattr(importlib.import_module(module), name)
    lines = [*_title(f"{module}.{name}"), f".. currentmodule:: {module}", ""]
    if not inspect.isclass(value):
        kind, options = ("function", []) if callable(value) else ("data", ["   :no-value:"])
    else:
        bases = [base for base in value.__mro__[1:] if base in beside]
        again = {each for base in bases for each in vars(base) if not each.startswith("_")}
        kind, options = "class", ["   :members:"]
        if again:
            options.append(f"   :exclude-members: {', '.join(sorted(again))}")
    lines += [f".. auto{kind}:: {name}", *options, ""]
    if module == "caltest" and any(f"caltest.{name}" in text for text in _EXAMPLES):
        lines += [".. rubric:: In the gallery", "", f".. minigallery:: caltest.{name}", ""]
    return "\n".join(lines)


def write_pages(app: Sphinx) -> None:
    """Write what has changed."""
    PAGES.mkdir(parents=True, exist_ok=True)
    written = texts()
    for name, text in written.items():
        path = PAGES / f"{name}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for path in PAGES.glob("*.rst"):
        if path.name.removesuffix(".rst") not in written:
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
