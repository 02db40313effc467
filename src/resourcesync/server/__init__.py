"""The ASGI application that serves a Source: its resources and its documents. Read-only.

The names below are public; the modules are not. Each is fetched from its home when it is first
used; what type checkers see stands in ``__init__.pyi``.
"""

from resourcesync.lazy_exports import export_lazily as _lazily

_HOMES = {
    "create_app": "api.serving",
    "create_operations_app": "api.serving",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605
__getattr__, __dir__ = _lazily(__name__, _HOMES)
