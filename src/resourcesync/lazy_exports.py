"""Public names that are imported from their modules on first use.

Importing such a package costs nothing; type checkers read its ``__init__.pyi``.
"""

import sys

TYPE_CHECKING = False  # as in ``typing``, which costs more than all of this
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def export_lazily(
    package: str, homes: "Mapping[str, str]"
) -> "tuple[Callable[[str], object], Callable[[], list[str]]]":
    """Return ``__getattr__`` and ``__dir__`` for a package (PEP 562).

    Each name has a home: ``MODULE``, ``MODULE:OTHER_NAME``, or ``MODULE:`` for the module itself.
    """

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home, is_module, own = homes[name].partition(":")
        from importlib import import_module  # noqa: PLC0415 - importing the package costs nothing

        module = import_module(f"resourcesync.{home}")
        value: object = module if is_module and not own else getattr(module, own or name)
        vars(sys.modules[package])[name] = value
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return get, names
