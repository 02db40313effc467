"""``watch`` tells what keeps notifications from coming."""

import os
import signal
import threading
import time
from pathlib import Path

from resourcesync.cli.main import run
from tests.support.command_line import MIRRORED, Said, rows
from tests.support.settings_file import museum, put
from tests.support.tiny_source import TinySource


def test_push_without_a_callback_is_warned_of_and_the_mirror_is_polled(
    source: TinySource, said: Said
) -> None:
    put(museum(source, 'every = "1s"\npush = true\n'))

    def stop() -> None:
        until = time.monotonic() + 20
        while len(list(Path("copies/museum").rglob("*.txt"))) < len(MIRRORED):
            if time.monotonic() > until:
                break
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=stop)
    thread.start()
    assert run(["watch", "--json"]) == 0
    thread.join()

    lines = rows(said)
    [warning] = [it for it in lines if it["type"] == "warning"]
    assert warning["code"] == "config"
    assert warning["message"] == "`push = true` of museum does nothing: `watch` has no callback"
    assert warning["mirror"] == "museum"
    assert any(it["type"] == "watch" for it in lines)
