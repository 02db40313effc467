"""The text of the project's page on a package index: README.md, with absolute links."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

RELATIVE_LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)\s]+)(?=\))")


def absolute_links(text: str, base: str) -> str:
    """Return Markdown whose relative links begin at an address."""
    return RELATIVE_LINK.sub(lambda link: f"{base}/{link[0]}", text)


class ReadmeHook(MetadataHookInterface):
    """Sets `readme`: a package index has none of the files that README.md links to."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the text, with links to the files of this version in the repository."""
        base = f"{metadata['urls']['Source']}/blob/v{metadata['version']}"
        text = Path(self.root, "README.md").read_text("utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute_links(text, base)}
