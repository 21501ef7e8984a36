"""Configuration of Sphinx."""

from latecomer import __version__

project = "Latecomer"
author = "The Latecomer authors"
copyright = author
release = __version__
html_title = "Latecomer"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx-mathjax-offline",  # MathJax from the package: formulas need no network
]
html_theme = "furo"
html_static_path = ["assets"]
html_css_files = ["site.css"]
pygments_dark_style = "github-dark"
html_copy_source = False
html_show_sphinx = False
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath"]
autodoc_typehints = "none"
exclude_patterns = ["_build"]
