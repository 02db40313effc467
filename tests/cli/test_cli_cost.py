"""``explore --cost``: what mirrors cost a Source, from its documents and from options."""

import json
from pathlib import Path

import pytest

from resourcesync.adapters.system import SystemClock
from resourcesync.app.publishing.trees import publish_tree
from resourcesync.cli.main import run
from resourcesync.source.dumps.dump_publication import DumpRequest
from resourcesync.source.publication_options import PublishRequest
from tests.support.commands.command_line import Said, rows
from tests.support.servers.tiny_source import Answer, TinySource

CHANGES = [f"2026-01-01T{hour:02d}:00:00Z" for hour in range(1, 13)]


def published(root: Path, files: int) -> Path:
    """Publish some files of 100 bytes, with a dump."""
    root.mkdir()
    for number in range(files):
        (root / f"{number:03d}.txt").write_bytes(b"%100d" % number)
    asked = PublishRequest(dumps=DumpRequest())
    publish_tree(root, {"url": "https://museum.example/"}, clock=SystemClock(), asked=asked)
    return root


def put_changes(source: TinySource) -> None:
    """Offer a closed Change List of twelve changes within half a day."""
    pointers = [source.pointer(f"/{name}.xml", name) for name in ("resourcelist", "changelist")]
    source.put_document("/capabilitylist.xml", '<rs:md capability="capabilitylist"/>', pointers)
    source.put_document(
        "/changelist.xml",
        '<rs:md capability="changelist" from="2026-01-01T00:00:00Z" until="2026-01-01T12:00:00Z"/>',
        [
            f"<url><loc>{source.url}/objects/0000.txt</loc>"
            f'<rs:md change="updated" datetime="{at}"/></url>'
            for at in CHANGES
        ],
    )


def test_the_inputs_are_those_of_the_lists(tmp_path: Path, said: Said) -> None:
    tree = published(tmp_path / "public", 40)

    assert run(["explore", str(tree), "--cost", "--json"]) == 0

    (found,) = [row for row in rows(said) if row["type"] == "cost"]
    inputs, costs = found["inputs"], {cost["mode"]: cost for cost in found["modes"]}
    assert (inputs["resources"], inputs["mean_size"], inputs["dumps"]) == (40, 100, True)
    assert inputs["uri_length"] == len("https://museum.example/000.txt")
    assert set(costs) == {"change-lists", "dumps", "resource-lists", "push", "sitemap"}
    # robots.txt, description, three lists, the dump, and the package with its manifest
    assert costs["change-lists"]["first_requests"] == costs["dumps"]["first_requests"] == 8
    assert costs["resource-lists"]["first_requests"] == 45
    assert costs["sitemap"]["first_requests"] == 43
    assert found["recommended"]["poll"] == 86_400


def test_changes_a_day_and_the_age_of_closed_lists_are_those_of_the_change_lists(
    source: TinySource, said: Said
) -> None:
    put_changes(source)

    assert run(["explore", source.url, "--cost", "--json"]) == 0

    (found,) = [row for row in rows(said) if row["type"] == "cost"]
    assert found["inputs"]["changes_per_day"] == 24
    assert found["inputs"]["rotate"] == 12 * 3_600


def test_options_replace_what_the_documents_show(source: TinySource, said: Said) -> None:
    put_changes(source)
    words = ["--changes", "100", "--resources", "1000000", "--mean-size", "2k", "--poll", "15m"]

    assert run(["explore", source.url, "--cost", "--json", *words, "--publish-every", "30m"]) == 0

    (found,) = [row for row in rows(said) if row["type"] == "cost"]
    inputs = found["inputs"]
    assert (inputs["changes_per_day"], inputs["resources"]) == (100, 1_000_000)
    assert (inputs["mean_size"], inputs["poll"], inputs["publish"]) == (2_000, 900, 1_800)


def test_a_source_that_does_not_exist_yet_is_estimated_from_options_alone(said: Said) -> None:
    words = ["--resources", "2400000", "--changes", "1800", "--mirrors", "12"]

    assert run(["explore", "--cost", *words, "--poll", "1d", "--mean-size", "12k"]) == 0

    out = said.readouterr().out
    lines = out.splitlines()
    assert lines[0] == (
        "Source    2,400,000 resources of 12.0 kB, 1,800 changes a day, without dumps; polled"
        " each 1d"
    )
    assert lines[1].split() == [
        *("FOLLOWED", "BY", "FIRST", "COPY", "BYTES", "TIME"),
        *("EACH", "DAY", "BYTES", "PEAK", "DELAY"),
    ]
    assert [line[:13].strip() for line in lines[2:7]] == [
        *("Change Lists", "dumps", "Resource List", "push, Change", "plain sitemap")
    ]
    assert "2,400,053" in lines[2]
    assert any(line.startswith("Together  12 mirrors") for line in lines)
    assert any("a Resource Dump: a first copy needs few requests" in line for line in lines)
    assert sum(line.startswith("Publish") for line in lines) == 6
    assert sum(line.startswith("Follow") for line in lines[2:]) == 2
    assert "Assumed" not in out


def test_rare_changes_are_not_shown_as_none(said: Said) -> None:
    assert run(["explore", "--cost", "--resources", "500", "--changes", "0.25"]) == 0

    assert "500 resources of 10.0 kB, 0.25 changes a day" in said.readouterr().out


def test_what_is_assumed_is_named(said: Said) -> None:
    assert run(["explore", "--cost", "--resources", "500"]) == 0

    out = said.readouterr().out
    assert (
        "Assumed   bytes of a resource, changes a day, poll, mirrors; options replace them" in out
    )
    assert "no Resource Dump" in out
    assert "no Change Dump" in out
    assert "without a hub" in out


def test_a_small_busy_source_needs_no_change_lists(said: Said) -> None:
    assert run(["explore", "--cost", "--resources", "10", "--changes", "100000"]) == 0

    out = said.readouterr().out
    assert "a new Resource List, since the changes of a poll are as large" in out
    assert "gzip saves little" in out


def test_a_document_that_fails_is_shown_and_the_exit_code_says_so(
    source: TinySource, said: Said
) -> None:
    put_changes(source)
    source.answers["/changelist.xml"] = Answer(status=500)

    assert run(["explore", source.url, "--cost", "--retries", "0"]) == 3

    out = said.readouterr().out
    assert "/changelist.xml" in out
    assert "12 resources of" in out


def test_a_source_without_a_resource_list_needs_the_number_of_its_resources(
    source: TinySource, said: Said
) -> None:
    pointers = [source.pointer("/changelist.xml", "changelist")]
    put_changes(source)
    source.put_document("/capabilitylist.xml", '<rs:md capability="capabilitylist"/>', pointers)

    assert run(["explore", source.url, "--cost"]) == 2
    assert "give --resources" in said.readouterr().err
    assert run(["explore", source.url, "--cost", "--resources", "9", "--json"]) == 0
    assert json.loads(said.readouterr().out.splitlines()[1])["inputs"]["resources"] == 9


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "name a SOURCE; only --cost with --resources needs none"),
        (["--cost"], "name a SOURCE; only --cost with --resources needs none"),
        (["https://museum.example", "--poll", "1h"], "--poll needs --cost"),
        (["https://museum.example", "--changes", "9"], "--changes needs --cost"),
        (["--cost", "--resources", "9", "--poll", "0s"], "more than 0"),
    ],
)
def test_options_without_effect_are_refused(words: list[str], reason: str, said: Said) -> None:
    assert run(["explore", *words]) == 2
    assert reason in said.readouterr().err
