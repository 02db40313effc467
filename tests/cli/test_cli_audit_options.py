"""Audits of a part of the files, of the Source itself, and options that exclude each other."""

from dataclasses import replace
from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import Said
from tests.support.servers.tiny_source import TinySource


@pytest.fixture
def museum(source: TinySource, said: Said) -> str:
    assert run(["pull", source.url, "museum"]) == 0
    said.readouterr()
    return "museum"


@pytest.mark.parametrize(
    "more",
    [
        ["--sample", "12"],
        ["--sample", "10%", "--method", "lists"],
        ["--method", "remote", "--offline"],
    ],
)
def test_what_makes_no_sense_is_said(museum: str, said: Said, more: list[str]) -> None:
    assert run(["audit", museum, *more]) == 2


def test_a_rolling_audit_proves_every_file_in_turn(museum: str, said: Said) -> None:
    command = ["audit", museum, "--sample", "25%", "--oldest-first"]
    Path(museum, "objects/0005.txt").write_bytes(b"objecT 5\n")
    codes = []

    for _ in range(6):
        codes.append(run(command))
        text = said.readouterr().out
        assert "3 of 12 files read" in text or "objects/0005.txt" in text

    assert codes == sorted(codes)  # what is bad stays the first to be looked at
    assert codes[-1] == 1


def test_an_audit_of_the_source_itself_finds_what_it_serves_otherwise(
    source: TinySource, museum: str, said: Said
) -> None:
    changed, gone = "/objects/0001.txt", "/objects/0002.txt"
    source.answers[changed] = replace(source.answers[changed], body=b"objecT 1\n", headers={})
    del source.answers[gone]

    assert run(["audit", museum, "--method", "remote"]) == 1

    text = said.readouterr().out
    assert "* /objects/0001.txt   the Source serves other bytes than the copy has" in text
    assert "! /objects/0002.txt   the Source: " in text
    assert "accuracy 83.3 % (10 of 12)" in text
