"""How the pages are built: ``sphinx-build -W docs docs/_build/html``."""

import tomllib
from pathlib import Path

_project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))

project = "resourcesync"
author = "The resourcesync authors"
copyright = "The resourcesync authors, Apache-2.0"
release = version = _project["project"]["version"]

extensions = ["myst_parser"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"resourcesync {release}"
html_show_sphinx = False
html_copy_source = False
