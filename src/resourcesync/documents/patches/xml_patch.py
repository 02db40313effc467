"""XML Patch (RFC 5261, RFC 7351) on a tree of lxml; needs the extra ``xml``.

An XML text can be written in many ways, and a digest fits only one. So only a version before is
patched that lxml writes again byte for byte; what stands before and after its root stays as it is.

A selector is the part of XPath that RFC 5261 §4.1 takes: a path from the root of element names or
``*``, each with ``[n]`` and ``[@name='value']``. At its end may stand ``@name``, ``text()``,
``comment()`` or ``processing-instruction('target')``. It reads each node once at most. DOCTYPE is
refused, and so there are no entities; nothing is requested from the network.
"""

import re
from copy import deepcopy
from typing import Any, BinaryIO, Final

from lxml import etree

from resourcesync.documents.patches.limits import MAX_BYTES, MAX_OPERATIONS, MAX_READ, read_all
from resourcesync.errors import PatchError

Node = Any
"""A node of lxml, which has no types."""

_ENCODINGS: Final = ("UTF-8", "US-ASCII", "ASCII")
_PROLOG: Final = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s+|<\?.*?\?>|<!--.*?-->)*", re.DOTALL)
_NCNAME: Final = r"[^\W\d][\w.\-·]*"
_NAME: Final = rf"(?:{_NCNAME}:)?{_NCNAME}"
_PREDICATE: Final = rf"\[\s*(?:[1-9][0-9]{{0,8}}|@{_NAME}\s*=\s*(?:'[^']*'|\"[^\"]*\"))\s*\]"
_STEP: Final = re.compile(
    rf"/?(?:(?P<end>@{_NAME}|text\(\s*\)|comment\(\s*\)"
    rf"|processing-instruction\(\s*(?:'{_NCNAME}'|\"{_NCNAME}\")?\s*\))|(?P<name>{_NAME}|\*))"
    rf"(?P<predicates>(?:{_PREDICATE})*)"
)
_ATTRIBUTE: Final = re.compile(rf"@(?:(?P<prefix>{_NCNAME}):)?(?P<local>{_NCNAME})")
_MAX_STEPS: Final = 100
_XML: Final = "http://www.w3.org/XML/1998/namespace"


def apply(previous: BinaryIO, patch: BinaryIO, result: BinaryIO, limit: int) -> None:
    """Write the version that a patch leads to."""
    before = read_all(previous, MAX_BYTES, "the version before")
    operations = _parse(read_all(patch, MAX_BYTES, "the patch"), "the patch")
    root = _parse(before, "the version before")
    prolog, written = _PROLOG.match(before), _write(root)
    assert prolog is not None, "it may be empty"
    start = prolog.end()
    if not before.startswith(written, start):
        raise PatchError("the version before is not written as lxml writes it")
    head, tail = before[:start], before[start + len(written) :]
    read, size = 0, len(before)
    for number, operation in enumerate(operations.iterchildren(etree.Element), 1):
        size += len(etree.tostring(operation))
        read += size
        if number > MAX_OPERATIONS or read > MAX_READ:
            raise PatchError("the XML Patch has too many operations for a document of this size")
        try:
            _operate(root, operation)
        except PatchError as error:
            raise PatchError(f"operation {number} of the XML Patch: {error.message}") from error
    patched = head + _write(root) + tail
    if len(patched) > limit:
        raise PatchError("the patched version is longer than listed")
    result.write(patched)


def _parse(data: bytes, what: str) -> Node:
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, strip_cdata=False
    )
    try:
        root = etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise PatchError(f"{what} is not usable XML: {error}"[:500]) from error
    about = root.getroottree().docinfo
    if about.doctype:
        raise PatchError(f"{what} has a DOCTYPE")
    if about.encoding is not None and about.encoding.upper() not in _ENCODINGS:
        raise PatchError(f"{what} is not in UTF-8")
    return root


def _write(root: Node) -> bytes:
    written: bytes = etree.tostring(root, encoding="utf-8", xml_declaration=False, with_tail=False)
    return written


def _operate(root: Node, operation: Node) -> None:
    selected = _select(root, operation)
    kind = etree.QName(operation).localname
    is_value = isinstance(selected, str)
    if not is_value and kind != "add" and selected.getparent() is None:
        raise PatchError("the root, and what is beside it, stays")
    match kind, is_value:
        case "add", False if operation.get("type"):
            _add_attribute(selected, operation)
        case "add", False:
            _add_content(selected, operation)
        case "replace", False:
            _replace_node(selected, operation)
        case "remove", False:
            _remove_node(selected, operation.get("ws", ""))
        case "replace", True:
            _set_value(selected, _text_of(operation))
        case "remove", True if not operation.get("ws"):
            _set_value(selected, None)
        case _:
            raise PatchError("it cannot be done there")


def _select(root: Node, operation: Node) -> Node:
    path, scope = _path_of(operation)
    try:
        first_two = etree.XPath(f"({path})[position() < 3]", namespaces=scope)
        found = first_two(root.getroottree())
    except etree.XPathError as error:
        raise PatchError(f"its selector is not supported: {error}"[:500]) from error
    if len(found) != 1:
        raise PatchError(
            f"its selector selects {'more than one' if found else 'none'} of the nodes"
        )
    return found[0]


def _path_of(operation: Node) -> tuple[str, dict[str, str]]:
    """Return the path of a selector for XPath, and the namespaces that it uses."""
    text, path, at, steps = operation.get("sel", ""), "", 0, 0
    scope = {prefix: uri for prefix, uri in operation.nsmap.items() if prefix}
    default = max(scope, key=len, default="") + "_"
    has_default = None in operation.nsmap
    found = _STEP.match(text)
    while found is not None and steps < _MAX_STEPS:
        steps, at = steps + 1, found.end()
        is_default = found["name"] not in (None, "*") and ":" not in found["name"] and has_default
        name = f"{default}:{found['name']}" if is_default else found["name"] or found["end"]
        path += f"/{name}{found['predicates']}"
        goes_on = found["name"] and text.startswith("/", at)
        found = _STEP.match(text, at) if goes_on else None
    if at < len(text) or not path:
        raise PatchError(f"the selector {text[:200]!r} is not supported")
    return path, {**scope, default: operation.nsmap[None]} if has_default else scope


def _add_attribute(element: Node, operation: Node) -> None:
    found = _ATTRIBUTE.fullmatch(operation.get("type"))
    if found is None or operation.get("pos") or not isinstance(element.tag, str):
        raise PatchError("only attributes are added to elements by their type")
    name, prefix = found["local"], found["prefix"]
    if prefix is not None:
        uri = _XML if prefix == "xml" else operation.nsmap.get(prefix)
        if uri is None or (prefix != "xml" and uri not in element.nsmap.values()):
            raise PatchError(f"the prefix {prefix!r} is bound to no namespace there")
        name = f"{{{uri}}}{name}"
    if name in element.attrib:
        raise PatchError("the attribute already exists")
    element.set(name, _text_of(operation))


def _add_content(node: Node, operation: Node) -> None:
    where = operation.get("pos", "")
    if where in ("before", "after") and node.getparent() is not None:
        previous = node if where == "after" else node.getprevious()
        _insert(node.getparent(), previous, operation, is_first=where == "after")
    elif where in ("", "prepend") and isinstance(node.tag, str):
        previous = node[-1] if len(node) and not where else None
        _insert(node, previous, operation, is_first=where == "prepend")
    else:
        raise PatchError("nothing can be added there")


def _insert(parent: Node, previous: Node | None, operation: Node, *, is_first: bool) -> None:
    rest = (parent.text if previous is None else previous.tail) or ""
    head, nodes = operation.text or "", [deepcopy(node) for node in operation]
    if is_first and nodes:
        nodes[-1].tail = (nodes[-1].tail or "") + rest
        _set_text(parent, previous, head)
    else:
        _set_text(parent, previous, head + rest if is_first else rest + head)
    at = 0 if previous is None else parent.index(previous) + 1
    for offset, node in enumerate(nodes):
        parent.insert(at + offset, node)


def _replace_node(node: Node, operation: Node) -> None:
    texts = [operation.text, *(child.tail for child in operation)]
    if len(operation) != 1 or any(text and text.strip() for text in texts):
        raise PatchError("one node is replaced by one node")
    new = deepcopy(operation[0])
    new.tail = node.tail
    node.getparent().replace(node, new)


def _remove_node(node: Node, blanks: str) -> None:
    parent, previous = node.getparent(), node.getprevious()
    before = (parent.text if previous is None else previous.tail) or ""
    after = node.tail or ""
    if blanks not in ("", "before", "after", "both"):
        raise PatchError(f"white space cannot be removed {blanks[:200]!r}")
    if blanks in ("before", "both"):
        before = _without_blanks(before)
    if blanks in ("after", "both"):
        after = _without_blanks(after)
    parent.remove(node)
    _set_text(parent, previous, before + after)


def _without_blanks(text: str) -> str:
    if not text or text.strip(" \t\r\n"):
        raise PatchError("there is no white space alone to be removed")
    return ""


def _set_value(value: Node, text: str | None) -> None:
    owner = value.getparent()
    if value.is_attribute and text is None:
        del owner.attrib[value.attrname]
    elif value.is_attribute:
        owner.set(value.attrname, text)
    elif value.is_tail:
        owner.tail = text
    else:
        owner.text = text


def _set_text(parent: Node, previous: Node | None, text: str) -> None:
    if previous is None:
        parent.text = text or None
    else:
        previous.tail = text or None


def _text_of(operation: Node) -> str:
    if len(operation):
        raise PatchError("an attribute and a text take text alone")
    return operation.text or ""
