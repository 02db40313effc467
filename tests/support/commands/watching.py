"""A ``watch`` in a process of its own, and what its operator sees of it."""

import json
import re
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self
from urllib.request import urlopen

from tests.support.commands.run import Ran, environment, free_port, resourcesync
from tests.support.commands.started import Started

_TIMES = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?Z?|\d\d:\d\d:\d\dZ")
_URI = re.compile(r"https?://127\.0\.0\.1:\d+\S*?(?=[),.]?(\s|$|\)))")


def generalized(text: str) -> str:
    text = _URI.sub("URI", _TIMES.sub("TIME", text))
    return re.sub(r"127\.0\.0\.1:\d+", "HOST:PORT", text)


class AdminPages:
    """What a service shows to its operators, at a port that nobody has yet."""

    def __init__(self) -> None:
        self.bind = f"127.0.0.1:{free_port()}"

    def get(self, path: str = "") -> str:
        with urlopen(f"http://{self.bind}/{path}", timeout=30) as answer:
            return str(answer.read().decode())

    def answers(self) -> bool:
        with suppress(OSError):
            return bool(self.get("livez"))
        return False

    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.get("api/status.json"))
        return found

    def next_pull(self) -> dict[str, Any]:
        with suppress(OSError):
            return dict(next(iter(self.report()["next"]), {}))
        return {}

    def reason(self) -> str:
        return str(self.next_pull().get("reason", ""))

    def metrics(self) -> list[str]:
        return self.get("metrics").splitlines()


class Watching(AdminPages):
    def __init__(
        self, home: Path, program: Path | None = None, *, more: Mapping[str, str] | None = None
    ) -> None:
        super().__init__()
        self._home = home
        self.log = home / "watch.log"
        words = ("watch", "--admin", self.bind, "--log-file", str(self.log))
        env = {**environment(home), **(more or {})}
        self._process = Started(*words, cwd=home, env=env, program=program)

    def __enter__(self) -> Self:
        self._process.__enter__()
        return self

    def __exit__(self, *raised: object) -> None:
        if raised[0] is None:
            self._process.send_signal(signal.SIGTERM)
            assert self._process.wait(20) == 0
        self._process.__exit__(*raised)

    def line(self, text: str) -> str:
        for line in self._process.stdout:
            if "  museum  " in line and text in line:
                return line.rstrip("\n")
        raise AssertionError(f"the service ended before it printed {text!r}")

    def reload(self) -> None:
        self._process.send_signal(signal.SIGHUP)

    def pull_by_hand(self) -> None:
        while resourcesync("pull", "museum", cwd=self._home).code:
            pass

    def status(self) -> Ran:
        while True:
            ran = resourcesync("status", "museum", "--check", cwd=self._home)
            if "museum  syncing" not in ran.stdout:
                return ran

    def reason_to_wait(self) -> str:
        while (reason := self.reason()) in {"", "running"}:
            pass
        return reason
