"""The ASGI application that serves a Source: its resources and its documents. Read-only.

The names below are public; the modules are not. Each is imported when it is first used;
``__init__.pyi`` declares them for type checkers.
"""

from resourcesync import export_lazily as _lazily

_HOMES = {"create_app": "app.serving.asgi", "create_operations_app": "app.serving.asgi"}

__all__ = sorted(_HOMES)  # noqa: PLE0605
__getattr__, __dir__ = _lazily(__name__, _HOMES)
