"""Dataclasses whose methods are written when they are first needed.

The standard library writes and compiles six methods for each frozen class when its module is
imported, needed or not: a quarter of the time of a pull that finds nothing new. These are the same
classes to type checkers, to ``dataclasses.replace``, ``asdict`` and ``fields``, and to ``match``;
each of their methods is written when it is first asked for.
"""

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from dataclasses import dataclass as _standard
from typing import TYPE_CHECKING, Any, Final, NoReturn

_TOLD: Final = ("__match_args__", "__dataclass_fields__", "__dataclass_params__")


def _made_later(
    *, slots: bool, frozen: bool = False, kw_only: bool = False, eq: bool = True
) -> Callable[[type], type]:
    """Return what makes a class a dataclass with slots; the words are those of ``dataclasses``."""
    assert slots, "what has no slots is made by the standard library"

    def make(cls: type) -> type:
        annotations = vars(cls).get("__annotations__", {})
        inherited = {slot for base in cls.__mro__[1:] for slot in vars(base).get("__slots__", ())}
        body = {k: v for k, v in vars(cls).items() if k not in {"__dict__", "__weakref__"}}
        told = {name: body.pop(name) for name in annotations if name in body}
        body["__slots__"] = tuple(name for name in annotations if name not in inherited)
        written = _Written({"__annotations__": annotations, **told}, kw_only=kw_only)
        later = ["__init__", "__repr__", *_TOLD, *(["__eq__"] if eq else [])]
        if frozen:
            body |= _FROZEN
            later += ["__hash__"] if eq else []
        body |= {name: _Later(name, written) for name in later if name not in vars(cls)}
        body["__qualname__"] = cls.__qualname__
        written.cls = type(cls)(cls.__name__, cls.__bases__, body)
        return written.cls

    return make


class _Later:
    """Stands for an attribute of a class until somebody asks for it.

    Args:
        name: The attribute.
        written: What writes it.
    """

    __slots__ = ("_name", "_written")

    def __init__(self, name: str, written: "_Written") -> None:
        self._name = name
        self._written = written

    def __get__(self, instance: object, owner: type) -> Any:
        self._written.write(self._name)
        return getattr(owner if instance is None else instance, self._name)


class _Written:
    """Writes what was left for later of one class.

    Args:
        told: Annotations and defaults, as they stand in the class.
        kw_only: Whether its fields are given by name only.
    """

    def __init__(self, told: dict[str, Any], *, kw_only: bool) -> None:
        self.cls: type = object
        self._told = told
        self._kw_only = kw_only
        self._plain: Any = None

    def write(self, name: str) -> None:
        """Give the class an attribute. Twice, by two threads at once, is as good as once."""
        if self._plain is None:
            self._plain = self._without_methods()
        if name in _TOLD:
            value = getattr(self._plain, name)
        else:
            source, scope = _WRITERS[name](self.cls, fields(self._plain))
            value = _compiled(self.cls, name, source, scope)
        setattr(self.cls, name, value)

    def _without_methods(self) -> type:
        """Return a dataclass of the same fields, for what the standard library tells of them."""
        bases = tuple(base for base in self.cls.__bases__ if hasattr(base, _TOLD[1]))
        plain = type(self.cls.__name__, bases, {**self._told, "__doc__": "Fields."})
        return _standard(init=False, repr=False, eq=False, kw_only=self._kw_only)(plain)


_Fields = tuple[Field[Any], ...]


class _Unset:
    """Stands in a signature where a new thing is made for each object."""

    def __repr__(self) -> str:
        return "<factory>"


_UNSET: Final = _Unset()


def _compiled(cls: type, name: str, source: str, scope: dict[str, Any]) -> Any:
    exec(source, scope)  # noqa: S102 - it holds names of fields only
    made = scope[name]
    made.__module__, made.__qualname__ = cls.__module__, f"{cls.__qualname__}.{name}"
    return made


def _initialiser(cls: Any, every: _Fields) -> tuple[str, dict[str, Any]]:
    """Write ``__init__``; it sets the slots directly, so it serves frozen classes too."""
    scope: dict[str, Any] = {"_unset": _UNSET, "__name__": cls.__module__}
    takes = ["self"]
    body = []
    for field in sorted(every, key=lambda field: bool(field.kw_only)):
        name, value, default = field.name, field.name, ""
        scope[f"_set_{name}"] = getattr(cls, name).__set__
        scope[f"_type_{name}"] = field.type
        if field.default_factory is not MISSING:
            scope[f"_make_{name}"] = field.default_factory
            value, default = f"_make_{name}() if {name} is _unset else {name}", "=_unset"
        elif field.default is not MISSING:
            scope[f"_default_{name}"] = field.default
            default = f"=_default_{name}"
        if field.init:
            takes += ["*"] if field.kw_only and "*" not in takes else []
            takes.append(f"{name}: _type_{name}{default}")
        elif default:
            value = f"_make_{name}()" if default == "=_unset" else f"_default_{name}"
        if field.init or default:
            body.append(f" _set_{name}(self, {value})")
    body += [" self.__post_init__()"] if hasattr(cls, "__post_init__") else []
    return f"def __init__({', '.join(takes)}) -> None:\n" + "\n".join(body or [" pass"]), scope


def _representation(_: type, every: _Fields) -> tuple[str, dict[str, Any]]:
    shown = ", ".join(f"{field.name}={{self.{field.name}!r}}" for field in every if field.repr)
    text = f"def __repr__(self):\n return f'{{type(self).__qualname__}}({shown})'"
    return text, {}


def _equality(_: type, every: _Fields) -> tuple[str, dict[str, Any]]:
    text = "def __eq__(self, other):\n"
    text += " if type(self) is not type(other):\n  return NotImplemented\n"
    return f"{text} return {_tuple('self', every)} == {_tuple('other', every)}", {}


def _hashing(_: type, every: _Fields) -> tuple[str, dict[str, Any]]:
    return f"def __hash__(self):\n return hash({_tuple('self', every)})", {}


def _tuple(of: str, every: _Fields) -> str:
    names = [field.name for field in every if field.compare]
    return f"({''.join(f'{of}.{name}, ' for name in names)})"


def _setattr(self: object, name: str, value: object) -> NoReturn:
    del value
    raise FrozenInstanceError(f"cannot assign to field {name!r} of {type(self).__name__}")


def _delattr(self: object, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r} of {type(self).__name__}")


def _getstate(self: Any) -> list[object]:
    return [getattr(self, field.name) for field in fields(self)]


def _setstate(self: Any, state: list[object]) -> None:
    for field, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


_WRITERS: Final = {
    "__init__": _initialiser,
    "__repr__": _representation,
    "__eq__": _equality,
    "__hash__": _hashing,
}
_FROZEN: Final = {
    "__setattr__": _setattr,
    "__delattr__": _delattr,
    "__getstate__": _getstate,
    "__setstate__": _setstate,
}

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - it is given on
else:
    dataclass = _made_later
