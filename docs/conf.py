"""Sphinx: the site is Markdown by hand, an API reference from docstrings, and generated pages."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from docs.tools import generate  # noqa: E402
from featurestep import __version__  # noqa: E402

generate.write_all()

project = "featurestep"
author = "The featurestep authors"
copyright = author
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # MathJax among the built files: formulas need no network
    "sphinx_design",
]
source_suffix = {".md": "markdown"}
exclude_patterns = [
    "tools",
    "api-examples.md",
    "validity-map.md",
    "generated/records.md",
]  # its sections are shown in the reference
nitpicky = False
default_role = "literal"  # docstrings quote code with single backticks

myst_enable_extensions = ["dollarmath", "amsmath", "attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 4
myst_dmath_double_inline = True
suppress_warnings = ["myst.header"]  # README-like pages begin at their own level

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "mixed"
python_use_unqualified_type_names = True
add_module_names = False

html_theme = "furo"
html_title = f"featurestep {__version__}"
html_theme_options = {"navigation_with_keys": True}
html_static_path: list[str] = []
html_show_sphinx = False


def setup(app):
    """Docstrings are prose with a few habits that reStructuredText reads differently."""
    app.connect("autodoc-process-docstring", generate.plain_docstring)
