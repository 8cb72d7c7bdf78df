"""How the documentation is built: `make docs`."""

from __future__ import annotations

from importlib.metadata import version as installed_version

project = "Sfumato"
author = "The Sfumato developers"
project_copyright = "The Sfumato developers, Apache License 2.0"
release = version = installed_version("sfumato")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 3

default_role = "code"  # docstrings put names between single backticks
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True  # attributes are described once, in the class's own text
napoleon_custom_sections = ["Edge cases"]

html_theme = "furo"
html_title = "Sfumato"
html_show_sphinx = False
