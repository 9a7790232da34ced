"""Pages of the API, written from the public names: an index, a page a module, and pages of names.

Public are the names in ``caltest.__all__``, and those of its modules: what ``__all__`` lists, or else
what the module, or package, itself defines without an underscore. Each is described once, where it is
found first: names of ``caltest`` and of the modules in ``ONE_A_PAGE`` on a page of their own, all
others on the page of their module. Where an object draws, the picture that its examples make follows.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import inspect
import io
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode

import caltest
from caltest.plots import Display
from caltest.plots.canvas import ResultDisplay
from caltest.results import Result

DOCS = Path(__file__).resolve().parents[1]
PAGES = DOCS / "generated" / "reference"
_EXAMPLES = [path.read_text(encoding="utf-8") for path in sorted((DOCS / "examples").glob("*.py"))]

#: Modules that those need who add a statistic, a null or a law; `caltest` itself does not name them.
FOR_ADDING = ("laws", "forms", "pvalues")

#: Modules whose names have a page each.
ONE_A_PAGE = ("predictive", "plots", "statistics")

#: Classes whose examples make a picture, besides displays, and functions whose result draws one.
DRAWN = ("Audit", "CalibrationResult", "Comparison", "MonitorState", "audit", "compare", "sbc", "test")
DRAWN += ("miscalibration_bounds", "power", "sample_size")

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


def described() -> dict[str, Any]:
    """Return all that the reference describes, by full name."""
    homes = {"caltest": [name for names in groups().values() for name in names]}
    homes |= {f"caltest.{home}": list(names) for home, names in (members() | PARTS).items()}
    every = [
        (home, importlib.import_module(home), name) for home, names in homes.items() for name in names
    ]
    return {f"{home}.{name}": getattr(module, name) for home, module, name in every}


def classes() -> dict[str, str]:
    """Return where classes are described, by the name that types on parameter lines have."""
    return {
        name.rpartition(".")[2]: name for name, value in described().items() if inspect.isclass(value)
    }


def texts() -> dict[str, str]:
    """Return the pages, by the names of their files."""
    found = {
        f"caltest.{name}": _of_name("caltest", name) for names in groups().values() for name in names
    }
    for module, names in members().items():
        lines = [
            *_title(f"caltest.{module}"),
            f".. automodule:: caltest.{module}",
            "   :no-members:",
            "",
        ]
        if module == "statistics":
            lines += statistics()
        lines += _table(f"caltest.{module}", names, module in ONE_A_PAGE)
        home = importlib.import_module(f"caltest.{module}")
        beside = [getattr(home, each) for each in names]
        if module in ONE_A_PAGE:
            found |= {
                f"caltest.{module}.{each}": _of_name(f"caltest.{module}", each, beside)
                for each in names
            }
        else:
            lines += [line for each in names for line in _entry(f"caltest.{module}", each, beside)]
        found[f"caltest.{module}"] = "\n".join(lines)
    lines = [*_title("Parts of results"), "What attributes of results hold.", ""]
    parts = [f"   ~caltest.{module}.{name}" for module, names in PARTS.items() for name in names]
    lines += [".. autosummary::", "   :nosignatures:", "", *parts, ""]
    for module, names in PARTS.items():
        lines += [f".. currentmodule:: caltest.{module}", ""]
        lines += [line for each in names for line in _entry(f"caltest.{module}", each, [])]
    found["parts"] = "\n".join(lines)
    lines = [*_title("API"), "Every public name. Examples are run by the tests.", ""]
    for title, names in groups().items():
        lines += [title, "-" * len(title), "", _GROUPS[title], "", *_table("caltest", names)]
    listed = [*(f"caltest.{name}" for name in modules() if name not in FOR_ADDING), "parts"]
    added = [f"caltest.{name}" for name in FOR_ADDING]
    for title, pages in (("Modules", listed), ("For those who add something", added)):
        lines += [title, "-" * len(title), "", ".. toctree::", "   :maxdepth: 1", ""]
        lines += [*(f"   {page}" for page in pages), ""]
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


def _table(module: str, names: list[str], paged: bool = True) -> list[str]:
    """Return a table of names with what each is for, and the pages that they have, for the sidebar."""
    if not names:
        return []
    table = [f".. currentmodule:: {module}", "", ".. autosummary::", "   :nosignatures:", ""]
    pages = [f"   {name} <{module}.{name}>" for name in names]
    toctree = [".. toctree::", "   :hidden:", "", *pages, ""] if paged else []
    return [*table, *(f"   {name}" for name in names), "", *toctree]


def _of_name(module: str, name: str, beside: Sequence[Any] = ()) -> str:
    """Return the page of one name."""
    lines = [
        *_title(f"{module}.{name}"),
        f".. currentmodule:: {module}",
        "",
        *_entry(module, name, beside),
    ]
    if module == "caltest" and any(f"caltest.{name}" in text for text in _EXAMPLES):
        lines += [".. rubric:: In the gallery", "", f".. minigallery:: caltest.{name}", ""]
    return "\n".join(lines)


def _entry(module: str, name: str, beside: Sequence[Any]) -> list[str]:
    """Return the entry of one name; what a base class beside it tells is left out."""
    value = getattr(importlib.import_module(module), name)
    if not inspect.isclass(value):
        kind, options = ("function", []) if callable(value) else ("data", ["   :no-value:"])
    else:
        bases = [base for base in value.__mro__[1:] if base in beside]
        again = {each for base in bases for each in vars(base) if not each.startswith("_")}
        kind, options = "class", ["   :members:"]
        if issubclass(value, ResultDisplay):
            options, again = [*options, "   :inherited-members: Display"], {"shows"}
        again |= {*getattr(value, "_fields", ())}  # of a named tuple, which have no words of their own
        if again:
            options.append(f"   :exclude-members: {', '.join(sorted(again))}")
    return [f".. auto{kind}:: {name}", *options, ""]


def picture_of(value: Any) -> Any:
    """Return the figure that the examples of a docstring make: of a display, or of the last result."""
    import matplotlib.pyplot as plt

    scope: dict[str, Any] = {}
    close, plt.close = plt.close, lambda *_: None
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            for example in doctest.DocTestParser().get_examples(inspect.getdoc(value) or ""):
                exec(example.source, scope)
    finally:
        plt.close = close
    made = [each for each in scope.values() if isinstance(each, Display | Result)]
    shown = made[-1] if isinstance(made[-1], Display) else made[-1].plot()
    return shown.figure_


def draw(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Put the picture that its examples make below a docstring, if they make one."""
    last = name.rpartition(".")[2]
    if what in ("class", "function") and (
        last in DRAWN or (last.endswith("Display") and last != "Display")
    ):
        import matplotlib.pyplot as plt

        path = PAGES / "pictures" / f"{last}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        picture_of(obj).savefig(path, dpi=100)
        plt.close("all")
        lines += ["", f".. image:: /generated/reference/pictures/{last}.png"]
        lines += [f"   :alt: What the example of {last} draws", ""]


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


def leave_out(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str, returned: str
) -> tuple[str, str] | None:
    """Leave out the signature of classes that nobody calls: results and their parts."""
    text = inspect.getdoc(obj) or ""
    return ("", "") if "Attributes\n---" in text and "Parameters\n---" not in text else None


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
    app.connect("autodoc-process-signature", leave_out)
    app.connect("autodoc-process-docstring", escape_bars, priority=400)
    app.connect("autodoc-process-docstring", draw, priority=600)
    app.connect("missing-reference", find_by_last_name)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
