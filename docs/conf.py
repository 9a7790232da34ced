"""How the site is built: ``sphinx-build -W --keep-going -n docs build/site``."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import matplotlib as mpl
from numpydoc.xref import DEFAULT_LINKS

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_ext"))

from reference import classes  # noqa: E402

from caltest import __version__  # noqa: E402

mpl.use("Agg")

project = "caltest"
author = "the caltest developers"
project_copyright = "2026, the caltest developers"
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "reference",
    "written",
]
exclude_patterns = [
    "_build", "examples", "**/GALLERY_HEADER.rst", "sg_execution_times.rst",
]  # fmt: skip
nitpicky = True
nitpick_ignore = [("py:func", "functools.partial")]

# ------------------------------------------------------------------ Markdown
myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
# GitHub shows the same files, where a link to a folder or a file of the repository leads to it.
myst_url_schemes = {"http": None, "https": None, "mailto": None}

# ------------------------------------------------------------------ the reference
autosummary_generate = False
autodoc_typehints = "none"  # types stand in words on the line of each parameter
autodoc_member_order = "bysource"
python_maximum_signature_line_length = 88
add_module_names = False
numpydoc_show_class_members = False
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"  # of the words of types only classes of the reference are links
DEFAULT_LINKS.clear()  # to the pages of Python and NumPy
numpydoc_xref_aliases = classes()

# ------------------------------------------------------------------ the gallery
sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("caltest",),
    "thumbnail_size": (480, 360),
    "filename_pattern": r"\.py$",
    "download_all_examples": False,
    "capture_repr": ("_repr_html_",),
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1e6,
    "remove_config_comments": True,
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
}

# ------------------------------------------------------------------ the pages
html_theme = "furo"
html_title = "caltest"
html_copy_source = False
html_show_sphinx = False
html_show_search_summary = False  # a page that is read from a disk may not fetch others
html_css_files = ["site.css"]
html_search_scorer = str(DOCS / "_static" / "scorer.js")
html_theme_options = {"navigation_with_keys": True}

# Formulas are set by one file of the site itself: it needs no network, and can be read from a disk.
_mathjax = Path(next(iter(find_spec("sphinx-mathjax-offline").submodule_search_locations)))
html_extra_path = ["llms.txt"]
html_static_path = ["_static", str(_mathjax / "static" / "mathjax" / "tex-svg.js")]
mathjax_path = "tex-svg.js"
