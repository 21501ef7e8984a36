"""Configuration of Sphinx."""

from typing import TYPE_CHECKING

from latecomer import __version__

if TYPE_CHECKING:  # the tests collect this file without Sphinx
    from sphinx.application import Sphinx

project = "Latecomer"
author = "The Latecomer authors"
copyright = author
release = __version__
html_title = "Latecomer"
extensions = [
    "myst_nb",  # Markdown, and notebooks that are executed
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
nb_execution_mode = "force"  # every number and picture of a notebook is of this build
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True
autodoc_typehints = "none"
exclude_patterns = ["_build", "jupyter_execute"]


def join_sentence(_app: "Sphinx", what: str, _name: str, _found: object, _options: object, lines: list[str]) -> None:
    """Put "a thing: what it is" together again, which napoleon reads as a type and a description."""
    types = [line for line in lines if line.startswith(":type: ")]
    if what in ("property", "attribute") and types:
        lines.remove(types[0])
        lines[0] = f"{types[0].removeprefix(':type: ')}: {lines[0]}"


def setup(app: "Sphinx") -> None:
    app.connect("autodoc-process-docstring", join_sentence, priority=900)  # after napoleon
