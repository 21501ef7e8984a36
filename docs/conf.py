"""Configuration of Sphinx."""

from latecomer import __version__

project = "Latecomer"
author = "The Latecomer authors"
copyright = author
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath"]
autodoc_typehints = "none"
exclude_patterns = ["_build"]
