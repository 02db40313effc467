"""What is said where a target, an option or a file is not what it ought to be."""

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import Said
from tests.support.rules.judged import OPEN, UP, write
from tests.support.servers.tiny_source import STAMP, TinySource

WHOLE = (
    OPEN
    + UP
    + '<rs:md capability="resourcelist" at="2026-01-01T00:00:00Z"/>\n'
    + "<url><loc>http://h.example/a</loc></url>\n</urlset>\n"
)


@pytest.mark.parametrize("kept", [-3, 0])
def test_a_file_that_is_cut_short_is_unusable_and_not_unreachable(kept: int, said: Said) -> None:
    target = write("cut.xml", WHOLE[:-3] if kept else "")

    assert run(["explore", target]) == 5

    captured = said.readouterr()
    assert captured.err.startswith("error[xml-cut-short]: The document stops before its end\n")
    assert "  fix    the file on this machine is truncated: get a complete copy" in captured.err
    assert captured.out == ""


def test_a_document_that_comes_whole_and_is_cut_is_unusable(source: TinySource, said: Said) -> None:
    source.put("/list.xml", WHOLE[:-3].encode(), "application/xml")

    assert run(["explore", f"{source.url}/list.xml"]) == 5
    told = said.readouterr().err
    assert "this machine" not in told
    assert "  got    a complete HTTP response: the Source's own document" in told
    assert "  kept   nothing was changed" in told
    assert "  fix    report it to the Source; check its lists: resourcesync validate" in told


def test_a_package_that_comes_whole_and_is_cut_is_unusable(source: TinySource, said: Said) -> None:
    source.put("/p.zip", b"PK\x03\x04abc", "application/zip")
    pointer = f"<url><loc>{source.url}/p.zip</loc></url>"
    source.put_document("/dump.xml", f'<rs:md capability="resourcedump" at="{STAMP}"/>', [pointer])

    assert run(["pull", f"{source.url}/dump.xml", "museum"]) == 5

    told = said.readouterr().err
    assert "error[package-truncated]: " in told
    assert "the Source's own package is truncated" in told
    assert "  fix    report it to the Source; " in told
