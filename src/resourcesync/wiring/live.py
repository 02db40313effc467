"""A simulated Source in real time, from a scenario or a configuration of the resync-simulator."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from starlette.types import Receive, Scope, Send

from resourcesync.errors import ConfigurationError
from resourcesync.model.vocabulary import ChangeKind, Dialect
from resourcesync.ports import Clock
from resourcesync.server.running import ServerThread
from resourcesync.simulator.live import LiveAnswer, LiveSettings, LiveSource
from resourcesync.wiring import scenarios

_KINDS: Final = {
    "create": ChangeKind.CREATED,
    "update": ChangeKind.UPDATED,
    "delete": ChangeKind.DELETED,
}
_MOST_BYTES: Final = 1 << 20
_SLOWEST: Final = 86_400.0


class LiveApplication:
    """Answers for a live Source (ASGI).

    Args:
        clock: Time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.source: LiveSource | None = None
        """Set before the first request."""

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """Answer GET and HEAD."""
        if scope["type"] != "http":
            return
        answer = self._answer(scope)
        headers = [(name.encode(), value.encode()) for name, value in answer.headers]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        body = b"" if scope["method"] == "HEAD" else answer.body
        await send({"type": "http.response.body", "body": body})

    def _answer(self, scope: Scope) -> LiveAnswer:
        if scope["method"] not in {"GET", "HEAD"}:
            return LiveAnswer(405, "text/plain; charset=utf-8", b"only GET and HEAD\n")
        assert self.source is not None
        path = unquote(scope["path"]).removeprefix("/").rstrip("/")
        return self.source.answer(path, self._clock.now())


def serve_live(
    settings: LiveSettings, *, host: str, port: int, seed: int, clock: Clock
) -> "AbstractContextManager[str]":
    """Serve a live Source while the ``with`` block runs; it gives the address of its root.

    Args:
        settings: How it behaves.
        host: The address to listen on.
        port: The port; 0 takes a free one.
        seed: Of all that is left to chance.
        clock: Time.

    Raises:
        ConfigurationError: The address cannot be listened on.
    """
    return _Serving(settings, host, port, seed, clock)


class _Serving:
    def __init__(
        self, settings: LiveSettings, host: str, port: int, seed: int, clock: Clock
    ) -> None:
        self._settings = settings
        self._seed = seed
        self._clock = clock
        self._application = LiveApplication(clock)
        self._server = ServerThread(self._application, host=host, port=port)

    def __enter__(self) -> str:
        self._server.__enter__()
        uri = self._server.uri
        now = self._clock.now()
        self._application.source = LiveSource(self._settings, uri, self._seed, now)
        return uri

    def __exit__(self, *how: object) -> None:
        self._server.__exit__(*how)  # type: ignore[arg-type]  # as `with` hands them over


def live_settings(path: Path) -> LiveSettings:
    """Read how a live Source behaves: a configuration of the resync-simulator, or a scenario.

    Raises:
        ConfigurationError: It cannot be read, or has a mistake.
    """
    if path.suffix in {".yaml", ".yml"}:
        return _from_yaml(path)
    return settings_of(scenarios.read(path))


def settings_of(written: Mapping[str, Any]) -> LiveSettings:
    """Return how a live Source behaves that does as a scenario says; bursts are left out.

    Raises:
        ConfigurationError: The scenario has a mistake.
    """
    scenario = scenarios.scenario_of(dict(written))
    of = scenario.origin
    shares = {
        ChangeKind.CREATED: of.create,
        ChangeKind.UPDATED: of.update,
        ChangeKind.DELETED: of.delete,
    }
    most = max(shares.values())
    kinds = tuple(kind for kind, share in shares.items() for _ in range(round(10 * share / most)))
    delay = 1 / of.per_second if of.per_second else _SLOWEST
    return LiveSettings(
        number_of_resources=of.resources,
        change_delay=delay,
        event_types=kinds,
        average_payload=2 * of.sizes.median,
    )


def _from_yaml(path: Path) -> LiveSettings:
    try:
        import yaml  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"{path} is YAML, and a package that reads it is not installed",
            hint="pip install 'resourcesync[simulate]'",
        ) from error
    try:
        with path.open("rb") as stream:
            written = yaml.safe_load(stream.read(_MOST_BYTES))
    except OSError as error:
        raise ConfigurationError(f"cannot read {path}: {error.strerror}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigurationError(f"{path} is no YAML: {error}"[:500]) from error
    try:
        return _understood(written)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ConfigurationError(
            f"{path} is no configuration of the resync-simulator",
            evidence=(("got", f"{type(error).__name__}: {error}"[:300]),),
        ) from error


def _understood(written: Mapping[str, Any]) -> LiveSettings:
    source = written["source"]
    lists = written.get("resource_list_builder") or {}
    changes = written.get("changememory") or {}
    usual = LiveSettings()
    found = LiveSettings(
        name=str(source.get("name", usual.name)),
        number_of_resources=int(source.get("number_of_resources", usual.number_of_resources)),
        change_delay=float(source.get("change_delay", usual.change_delay)),
        event_types=tuple(_KINDS[it] for it in source.get("event_types", _KINDS)),
        average_payload=int(source.get("average_payload", usual.average_payload)),
        max_events=int(source.get("max_events", usual.max_events)),
        max_changes=int(changes.get("max_changes", usual.max_changes)),
        resource_list=str(lists.get("uri_path", usual.resource_list)).strip("/"),
        change_list=str(changes.get("uri_path", usual.change_list)).strip("/"),
        dialect=Dialect.V1_1,
    )
    if not (found.change_delay > 0 and found.event_types and found.max_changes > 0):
        raise ValueError("change_delay, event_types and max_changes must say something")
    if found.number_of_resources < 0 or found.average_payload < 0:
        raise ValueError("there is no negative number of resources or bytes")
    return found
