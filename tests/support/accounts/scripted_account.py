"""An account in memory, as a plug-in: its address names one of the systems that a test made."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pytest

from resourcesync.app import plugins
from resourcesync.model.entries import Resource
from resourcesync.ports.accounts import AccountOptions, ChangeBatch
from tests.support.accounts.distributions import install
from tests.support.accounts.telling import TellingAccount, TellingSystem

SCHEME: Final = "told"
_SYSTEMS: dict[str, "ScriptedSystem"] = {}


class ScriptedSystem(TellingSystem):
    def __init__(self) -> None:
        super().__init__()
        self.tells_all = True  # whether all can be asked
        self.has_log = True  # whether it has changes to follow
        self.is_endless = False  # whether changes never rest, whoever asks
        self.asked: list[str] = []  # what was asked of it, in order
        self.options: AccountOptions | None = None  # what it was opened with last
        self.on_lot: Callable[[], None] = lambda: None  # called before each lot of changes
        self.fails: Exception | None = None
        """What is raised in place of an answer, if anything is."""
        self.lots: Iterable[ChangeBatch] = ()
        """What is told in place of the log, if there is anything."""


class ScriptedAccount(TellingAccount):
    def __init__(self, system: ScriptedSystem) -> None:
        super().__init__(system)
        self.system: ScriptedSystem = system

    @property
    def can_list_resources(self) -> bool:  # type: ignore[override]
        return self.system.tells_all

    def position(self) -> str:
        self.system.asked.append("position")
        if self.system.fails is not None:
            raise self.system.fails
        return super().position() if self.system.has_log else ""

    def resources(self) -> Iterator[Resource]:
        self.system.asked.append("resources")
        return super().resources()

    def changes(self, after: str, wait: float) -> Iterator[ChangeBatch]:
        self.system.asked.append(f"changes {after}, {wait:g} s")
        if self.system.lots:
            yield from self.system.lots
            return
        while True:
            for lot in super().changes(after, wait):
                self.system.on_lot()
                yield lot
                after = lot.position
            if not self.system.is_endless:
                return
            self.system.on_lot()


@contextmanager
def open_account(options: AccountOptions) -> Iterator[ScriptedAccount]:
    system = _SYSTEMS[options.address]
    system.options = options
    yield ScriptedAccount(system)
    system.asked.append("closed")


@contextmanager
def scripted(monkeypatch: pytest.MonkeyPatch, *names: str) -> Iterator[list[ScriptedSystem]]:
    systems = [ScriptedSystem() for _ in names]
    _SYSTEMS.update(
        {f"{SCHEME}:{name}": system for name, system in zip(names, systems, strict=True)}
    )
    offered = {plugins.ACCOUNTS: {SCHEME: f"{__name__}:open_account"}}
    with TemporaryDirectory() as site, monkeypatch.context() as installed:
        installed.syspath_prepend(install(Path(site), "scripted_account", offered, ""))
        yield systems
    for name in names:
        del _SYSTEMS[f"{SCHEME}:{name}"]
