"""The HTTP ``Link`` field (RFC 8288): only what discovery needs, in linear time."""

from typing import Final

from resourcesync.discovery.addresses import join

_MAX_LENGTH: Final = 64 * 1024
_MAX_LINKS: Final = 64


def find_target(field: str, relation: str, base: str) -> str | None:
    """Return the target of the first link of this relation, as an absolute URI, or ``None``."""
    return next(iter(find_targets(field, relation, base)), None)


def find_targets(field: str, relation: str, base: str) -> tuple[str, ...]:
    """Return the targets of the links of this relation, as absolute URIs, each once.

    Links with an ``anchor`` speak of another resource and are passed over, as is what no program
    can take for an address.
    """
    found: dict[str, None] = {}
    for target, parameters in _links(field[:_MAX_LENGTH]):
        relations = parameters.get("rel", "").lower().split()
        if relation in relations and "anchor" not in parameters:
            absolute = join(base, target)
            if absolute is not None:
                found.setdefault(absolute)
    return tuple(found)


def _links(field: str) -> list[tuple[str, dict[str, str]]]:
    found: list[tuple[str, dict[str, str]]] = []
    position = 0
    while len(found) < _MAX_LINKS:
        start = field.find("<", position)
        end = field.find(">", start + 1)
        if start < 0 or end < 0:
            break
        parameters, position = _parameters(field, end + 1)
        found.append((field[start + 1 : end].strip(), parameters))
    return found


def _parameters(field: str, position: int) -> tuple[dict[str, str], int]:
    parameters: dict[str, str] = {}
    while position < len(field):
        piece, position, separator = _piece(field, position)
        name, equals, value = piece.partition("=")
        if equals:
            parameters.setdefault(name.strip().lower(), value.strip())
        elif name.strip():
            parameters.setdefault(name.strip().lower(), "")
        if separator == ",":
            break
    return parameters, position


def _piece(field: str, position: int) -> tuple[str, int, str]:
    """Read up to the next ``;`` or ``,`` outside quotes; quotes and backslashes are removed."""
    text: list[str] = []
    quoted = False
    while position < len(field):
        letter = field[position]
        position += 1
        if letter == '"':
            quoted = not quoted
        elif quoted and letter == "\\" and position < len(field):
            text.append(field[position])
            position += 1
        elif not quoted and letter in ";,":
            return "".join(text), position, letter
        else:
            text.append(letter)
    return "".join(text), position, ""
