"""How the pages are built: ``sphinx-build -W -n docs docs/_build/html``."""

import inspect
import tomllib
from pathlib import Path

from sphinx.application import Sphinx

import resourcesync
import resourcesync.documents

_project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))

project = "resourcesync"
author = "The resourcesync authors"
copyright = "The resourcesync authors, Apache-2.0"
release = version = _project["project"]["version"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "separated"
napoleon_use_ivar = True
napoleon_use_rtype = False
myst_heading_anchors = 3
smartquotes_action = "qe"  # not dashes: --json is an option
exclude_patterns = ["_build", "adr"]
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_search_scorer = str(Path(__file__).parent / "search_scores.js")
html_title = f"resourcesync {release}"
html_show_sphinx = False
html_copy_source = False

# A thing that is exported by another name is told by that name, not as an alias of a private one.
for _package in (resourcesync, resourcesync.documents):
    for _name in _package.__all__:
        _it = getattr(_package, _name)
        if inspect.isclass(_it) or inspect.isfunction(_it):
            _it.__name__ = _it.__qualname__ = _name

# What the theme leaves out for readers that hear a page, or use no mouse.
_SPOKEN = {
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="All pages">',
    '<aside class="toc-drawer': '<aside aria-label="On this page" class="toc-drawer',
    'class="caption" role="heading"': 'class="caption" role="heading" aria-level="2"',
    '<div class="table-wrapper': '<div tabindex="0" class="table-wrapper',
    '<th class="head"></th>': "<td></td>",
    '<th class="head"><p></p></th>': "<td></td>",
    '<div id="search-results"></div>': '<h1>Search</h1><div id="search-results"></div>',
}


def _complete_pages(app: Sphinx, error: Exception | None) -> None:
    for page in () if error else Path(app.outdir).rglob("*.html"):
        text = page.read_text("utf-8")
        for given, complete in _SPOKEN.items():
            text = text.replace(given, complete)
        page.write_text(text, "utf-8")


def setup(app: Sphinx) -> None:
    """Connect what is ours to the build."""
    app.connect("build-finished", _complete_pages)
