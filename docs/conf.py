"""How the documentation is built: `make docs`."""

from __future__ import annotations

from importlib.metadata import version as installed_version

project = "Sfumato"
author = "The Sfumato developers"
project_copyright = "The Sfumato developers, Apache License 2.0"
release = version = installed_version("sfumato")

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode", "sphinx-mathjax-offline"]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}
exclude_patterns = ["_build", "jupyter_execute"]
myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 4
nb_execution_mode = "force"  # tutorials are run when the pages are built; an error in one fails the build
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_execution_timeout = 180
nb_mime_priority_overrides = [("html", "text/html", 10)]

default_role = "code"  # docstrings put names between single backticks
autodoc_mock_imports = ["torch"]  # the signatures of what trains networks need no torch
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True  # attributes are described once, in the class's own text
napoleon_use_rtype = False  # results are described in words; their types stand in the signature
napoleon_custom_sections = ["Edge cases"]

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_title = "Sfumato"
html_show_sphinx = False
html_extra_path = ["../src/sfumato/publish/schemas"]  # JSON Schemas, beside the pages

_NOTES = ("Privacy:", "Edge cases:", "Reference:")


def plain_notes(app, what, name, obj, options, lines):  # noqa: ANN001, ANN201
    """Give the house's one-line notes a paragraph each, and keep the bars of formulas."""
    tidied: list[str] = []
    in_note = False
    for line in lines:
        if line.startswith(_NOTES):
            in_note = True
            tidied.append("")
        elif not line.strip():
            in_note = False
        text = line.strip() if in_note else line
        is_formula = text.startswith("    ") and "`" not in text
        tidied.append(text.replace("|", r"\|") if is_formula else text)
    if what == "property" and tidied:  # napoleon would take what is before a colon for the type
        tidied[0] = tidied[0].replace(": ", " – ")
    lines[:] = tidied


def setup(app):  # noqa: ANN001, ANN201
    """Tidy docstrings before napoleon reads them."""
    app.connect("autodoc-process-docstring", plain_notes, priority=400)
