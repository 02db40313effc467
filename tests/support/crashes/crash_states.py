"""What a disk may hold after a power cut, from the order in which it was written to.

What was synced is there. Of all else each file keeps some of its writes: none, all, the first ones,
all but one, the last one torn, or its new length and zeros; each folder keeps the first of the
changes of its names. Files and folders do so each for itself, except that a name does not leave
one folder for another and get lost on its way: file systems rename at once.
"""

import os
import random
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

_HEADER: Final = struct.Struct("=7q")
_PASSING: Final = "-shm"
"""Ends the names of what SQLite shares among processes: it makes it anew after a power cut."""


class Operation(NamedTuple):
    kind: str  # a letter, see `write_order.c`
    number: int  # the number of the inode
    at: int  # where it was written, or the new length
    moment: int  # the file's time of change afterwards, nanoseconds
    path: str
    other: str
    data: bytes


def operations(log: bytes) -> Iterator[Operation]:
    at = 0
    while at < len(log):
        kind, number, place, moment, *lengths = _HEADER.unpack_from(log, at)
        at += _HEADER.size
        parts = []
        for length in lengths:
            parts.append(log[at : at + length])
            at += length
        path, other, data = parts
        yield Operation(
            chr(kind), number, place, moment, os.fsdecode(path), os.fsdecode(other), data
        )


class Kept(NamedTuple):
    writes: tuple[int, ...] = ()  # which, by their places in its list
    torn: int = -1  # of which of them only the first half; -1 for none
    zeros: bool = False  # whether they are zeros


@dataclass(eq=False)
class File:
    """A file, as it is on the disk for sure, and what was done to it since."""

    number: int
    data: bytes = b""
    moment: int = 0
    loose: list[Operation] = field(default_factory=list)
    _known: dict[Kept, tuple[bytes, int]] = field(default_factory=dict)

    def sync(self) -> None:
        self.data, self.moment = self.content(self.everything())
        self.loose.clear()
        self._known.clear()

    def add(self, operation: Operation) -> None:
        self.loose.append(operation)
        self._known.clear()

    def everything(self) -> Kept:
        return Kept(tuple(range(len(self.loose))))

    def content(self, kept: Kept) -> tuple[bytes, int]:
        found = self._known.get(kept)
        if found is None:
            found = self._known[kept] = self._replay(kept)
        return found

    def _replay(self, kept: Kept) -> tuple[bytes, int]:
        data, moment = bytearray(self.data), self.moment
        for place in kept.writes:
            operation = self.loose[place]
            moment = operation.moment
            if operation.kind == "M":
                continue
            if operation.kind == "T":
                del data[operation.at :]
                data.extend(bytes(operation.at - len(data)))
                continue
            new = bytes(len(operation.data)) if kept.zeros else operation.data
            if place == kept.torn:
                new = new[: len(new) // 2]
            data.extend(bytes(max(0, operation.at - len(data))))
            data[operation.at : operation.at + len(new)] = new
        return bytes(data), moment

    def choices(self) -> list[Kept]:
        whole = self.everything().writes
        found = [Kept(whole[:number]) for number in whole]
        found += [Kept(whole[: n + 1], torn=n) for n in whole if len(self.loose[n].data) > 1]
        found += [Kept(whole[:n] + whole[n + 1 :]) for n in whole[:-1]]
        if any(operation.data for operation in self.loose):
            found.append(Kept(whole, zeros=True))
        return found


@dataclass(eq=False)
class Change:
    """A change of the names of a folder: of one, or of two at once."""

    names: tuple[tuple[str, "Node | None"], ...]  # what each of them is from now on
    # the change of another folder that this one follows
    after: "tuple[Folder, Change] | None" = None


@dataclass(eq=False)
class Folder:
    names: dict[str, "Node"] = field(default_factory=dict)
    loose: list[Change] = field(default_factory=list)

    def sync(self) -> None:
        self.names = self.with_first(len(self.loose))
        self.loose.clear()

    def with_first(self, number: int) -> dict[str, "Node"]:
        names = dict(self.names)
        for change in self.loose[:number]:
            for name, node in change.names:
                names.pop(name, None)
                if node is not None:
                    names[name] = node
        return names


Node = File | Folder
Lost = Mapping[Node, Kept | int]
"""What is lost: what a file keeps, and how many changes a folder does; all others keep all."""
State = dict[str, tuple[File, bytes, int] | None]
"""What is on the disk, by path: a file, its bytes and their time, or ``None`` for a folder."""


class Disk:
    """A part of a disk, what it holds for sure and what it may lose."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self.top = Folder()
        self._open: dict[int, File] = {}
        self._all: dict[Node, None] = {self.top: None}
        for path in sorted(root.rglob("*")):
            if path.name.endswith(_PASSING):
                continue
            info = path.lstat()
            node: Node = Folder()
            if path.is_file():
                node = File(info.st_ino, path.read_bytes(), info.st_mtime_ns)
                self._open[info.st_ino] = node
            folder, name = self._at(str(path))
            folder.names[name] = node
            self._all[node] = None

    def _at(self, path: str) -> tuple[Folder, str]:
        """Return the folder that a path is in, as all who look see it, and its name there."""
        *above, name = path.removeprefix(self._root).strip("/").split("/")
        folder = self.top
        for part in above:
            found = folder.with_first(len(folder.loose))[part]
            assert isinstance(found, Folder)
            folder = found
        return folder, name

    def _find(self, path: str) -> Node | None:
        if path == self._root:
            return self.top
        folder, name = self._at(path)
        return folder.with_first(len(folder.loose)).get(name)

    def do(self, operation: Operation) -> None:
        match operation.kind:
            case "O" | "D":
                self._make(operation)
            case "U":
                folder, name = self._at(operation.path)
                folder.loose.append(Change(((name, None),)))
            case "R":
                self._rename(operation)
            case "S":
                node = self._node(operation)
                if node is not None:
                    node.sync()
            case "A":
                for each in self._all:
                    each.sync()
            case _:
                file = self._open.get(operation.number)
                if file is not None:
                    file.add(operation)

    def _node(self, operation: Operation) -> Node | None:
        return self._find(operation.path) if operation.path else self._open.get(operation.number)

    def _make(self, operation: Operation) -> None:
        if operation.path.endswith(_PASSING):
            self._open.pop(operation.number, None)
            return
        found = self._find(operation.path)
        if found is None:
            found = Folder() if operation.kind == "D" else File(operation.number)
            folder, name = self._at(operation.path)
            folder.loose.append(Change(((name, found),)))
            self._all[found] = None
        if isinstance(found, File):
            self._open[operation.number] = found
            if operation.at:
                found.add(operation._replace(kind="T", at=0))

    def _rename(self, operation: Operation) -> None:
        node = self._find(operation.path)
        assert node is not None, f"{operation.path} is renamed and was never made"
        folder, name = self._at(operation.path)
        other, new = self._at(operation.other)
        if folder is other:
            folder.loose.append(Change(((name, None), (new, node))))
            return
        arrival = Change(((new, node),))
        other.loose.append(arrival)
        folder.loose.append(Change(((name, None),), after=(other, arrival)))

    def loose(self) -> list[Node]:
        return [node for node in self._all if node.loose]

    def state(self, lost: Lost | None = None) -> State:
        return dict(self._walk(self.top, "", self._together(lost or {})))

    def _together(self, lost: Lost) -> Lost:
        """Return what is lost if nothing gets lost on its way between folders."""
        settled, again = dict(lost), True
        while again:
            again = False
            for node in self._all:
                if not isinstance(node, Folder):
                    continue
                for place, change in enumerate(node.loose[: _number(settled, node)]):
                    if change.after is None:
                        continue
                    other, arrival = change.after
                    if arrival in other.loose[_number(settled, other) :]:
                        settled[node], again = place, True
                        break
        return settled

    def _walk(
        self, folder: Folder, prefix: str, lost: Lost
    ) -> Iterator[tuple[str, tuple[File, bytes, int] | None]]:
        for name, node in sorted(folder.with_first(_number(lost, folder)).items()):
            if isinstance(node, Folder):
                yield f"{prefix}{name}", None
                yield from self._walk(node, f"{prefix}{name}/", lost)
            else:
                kept = lost.get(node)
                found = node.content(kept if isinstance(kept, Kept) else node.everything())
                yield f"{prefix}{name}", (node, *found)

    def states(self, luck: random.Random, most: int) -> Iterator[State]:
        loose = self.loose()
        nothing: dict[Node, Kept | int] = {node: _choices(node)[0] for node in loose}
        yield self.state(nothing)
        yield self.state()
        single = [(node, kept) for node in loose for kept in _choices(node)]
        luck.shuffle(single)
        for number, (node, kept) in enumerate(single[: max(1, most // 2)]):
            if number % 3 == 2:
                yield self.state({**nothing, node: kept})
            else:
                yield self.state({node: kept})
        for node in loose:
            yield self.state({item: kept for item, kept in nothing.items() if item is not node})
        for _ in range(most):
            lost: dict[Node, Kept | int] = {}
            for node in loose:
                if luck.random() < 0.6:
                    lost[node] = luck.choice(_choices(node))
            yield self.state(lost)


def _number(lost: Lost, folder: Folder) -> int:
    kept = lost.get(folder)
    return kept if isinstance(kept, int) else len(folder.loose)


def _choices(node: Node) -> list[Kept | int]:
    return [*node.choices()] if isinstance(node, File) else [*range(len(node.loose))]


def name_of(state: State) -> int:
    return hash(tuple((path, item and (item[0].number, *item[1:])) for path, item in state.items()))


def lay_out(state: State, folder: Path) -> dict[int, int]:
    numbers, root = {}, str(folder)
    for path, found in state.items():
        if found is None:
            os.mkdir(f"{root}/{path}")
            continue
        file, data, moment = found
        made = os.open(f"{root}/{path}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            assert os.write(made, data) == len(data)
            os.utime(made, ns=(moment, moment))
            numbers[os.fstat(made).st_ino] = file.number
        finally:
            os.close(made)
    return numbers


def files_of(state: State) -> Iterable[tuple[str, bytes]]:
    return ((path, found[1]) for path, found in state.items() if found is not None)
