"""The text format of Prometheus, as far as figures of mirrors need it."""

from collections.abc import Iterator


def head(name: str, what: str) -> Iterator[str]:
    """Yield the lines that tell Prometheus what a figure is."""
    yield f"# HELP {name} {what}"
    yield f"# TYPE {name} gauge"


def label(mirror: str) -> str:
    """Return the label that names a mirror."""
    text = mirror.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'mirror="{text.encode("utf-8", "backslashreplace").decode()}"'
