"""Progress and colours suit the place where they are shown."""

import io

from resourcesync.cli.terminal import (
    BarProgress,
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_gives_the_terminal_back() -> None:
    stream = Terminal()
    bar = BarProgress(stream=stream)

    bar.pause()
    bar.show({"done": 37, "total": 48, "bytes_done": 2_400_000, "bytes_total": 3_100_000})
    bar.pause()
    bar.show({"done": 48, "total": 48})
    bar.show({"done": 48})
    bar.close()
    bar.close()

    said = stream.getvalue()
    assert "37 / 48   2.4 MB / 3.1 MB" in said
    assert said.count("\x1b[?25l") == said.count("\x1b[?25h") == 2
