"""The evidence of an audit: the same findings in every form, and forms that others can read."""

import csv
import json
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import FILES, MIRRORED, Said, spoil
from tests.support.servers.tiny_source import TinySource

PREMIS = "{http://www.loc.gov/premis/v3}"
ALL = "html,json,csv,bagit,premis"


@pytest.fixture
def museum(source: TinySource, said: Said) -> str:
    assert run(["pull", source.url, "museum"]) == 0
    said.readouterr()
    return "museum"


def evidence(out: str = "out") -> Path:
    (folder,) = Path(out).iterdir()
    return folder


class Page(HTMLParser):
    """The cells of a page, and whatever it would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.loads: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loads += [name for name, _ in attrs if name in {"src", "href"}]
        if tag in {"script", "link", "img"}:
            self.loads.append(tag)
        if tag != "meta":
            self.open.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "td":
            self.cells[-1] += data


def test_evidence_of_a_good_mirror_is_written_in_every_form(museum: str, said: Said) -> None:
    assert run(["audit", museum, "--report", ALL, "--out", "out"]) == 0

    folder = evidence()
    line = said.readouterr().out.splitlines()[-1]
    assert line.startswith(f"Evidence  {folder}/report.html (+ report.json, report.csv, ")
    assert sorted(path.name for path in folder.iterdir()) == [
        "manifest-sha256.txt", "premis.xml", "report.csv", "report.html", "report.json",
    ]  # fmt: skip
    report = json.loads((folder / "report.json").read_text())
    assert (report["in_sync"], report["listed"], report["findings"]) == (True, len(FILES), [])
    assert (folder / "report.csv").read_text() == "kind,uri,path,reason\n"


def test_the_same_findings_stand_in_every_form(museum: str, said: Said) -> None:
    spoil(museum)

    assert run(["audit", museum, "--report", ALL, "--out", "out"]) == 1

    folder = evidence()
    expected = {("missing", "objects/0003.txt"), ("different", "objects/0005.txt")}
    expected.add(("extra", "mine.txt"))
    report = json.loads((folder / "report.json").read_text())
    table = list(csv.DictReader((folder / "report.csv").read_text().splitlines()))
    page = Page((folder / "report.html").read_text())
    assert {(row["kind"], row["path"]) for row in report["findings"]} == expected
    assert {(row["kind"], row["path"]) for row in table} == expected
    assert {f"/{path}" for _, path in expected} <= set(page.cells)
    assert page.loads == []
    assert page.open == []
    assert "<header>" not in (folder / "report.html").read_text(), "a file leads nowhere"
    lines = said.readouterr().out.splitlines()
    assert lines[-3].startswith("Evidence  ")
    assert lines[-2].startswith("  next  ")


def test_the_manifest_names_the_good_copies_and_sha256sum_agrees(museum: str, said: Said) -> None:
    spoil(museum)
    run(["audit", museum, "--report", "bagit", "--out", "out"])
    Path("data").symlink_to(museum)

    manifest = evidence() / "manifest-sha256.txt"
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", manifest], check=True)

    names = [line.partition("  data/")[2] for line in manifest.read_text().splitlines()]
    assert sorted(names) == sorted(set(MIRRORED) - {"objects/0003.txt", "objects/0005.txt"})


def test_premis_has_an_object_and_an_event_for_each_copy(museum: str, said: Said) -> None:
    spoil(museum)
    run(["audit", museum, "--report", "premis", "--out", "out"])

    root = ET.parse(evidence() / "premis.xml").getroot()
    kinds = [child.tag.removeprefix(PREMIS) for child in root]
    assert kinds == ["object"] * len(FILES) + ["event"] * len(FILES) + ["agent"]
    outcomes = {
        event.findtext(f".//{PREMIS}linkingObjectIdentifierValue", "").rpartition("/")[2]:
        event.findtext(f".//{PREMIS}eventOutcome")
        for event in root.iter(f"{PREMIS}event")
    }  # fmt: skip
    failed = sorted(name for name, outcome in outcomes.items() if outcome == "failure")
    assert failed == ["0003.txt", "0005.txt"]
    assert set(outcomes.values()) == {"success", "failure"}
    ids = [element.text for element in root.iter(f"{PREMIS}eventIdentifierValue")]
    assert len(set(ids)) == len(FILES)


def test_names_from_the_source_cannot_break_a_page(source: TinySource, said: Said) -> None:
    source.offer({"/<script>alert(1)</script>&.txt": b"x"})
    run(["pull", source.url, "museum"])
    Path("museum", "<b>mine&").write_text("x")
    run(["audit", "museum", "--report", "html,premis", "--out", "out"])

    page = Page((evidence() / "report.html").read_text())
    ET.parse(evidence() / "premis.xml")

    assert page.loads == []
    assert "/<b>mine&" in page.cells


def test_evidence_is_never_written_over(museum: str, said: Said) -> None:
    for _ in range(3):
        run(["audit", museum, "--report", "json", "--out", "out"])

    assert len(list(Path("out").glob("*/report.json"))) == 3


def test_a_folder_that_cannot_be_written_is_an_error(museum: str, said: Said) -> None:
    Path("out").write_text("a file")

    assert run(["audit", museum, "--report", "json", "--out", "out/below"]) == 8
    assert "cannot write the evidence" in said.readouterr().err


@pytest.mark.parametrize(
    "more",
    [
        ["--report", "html"],
        ["--out", "out"],
        ["--report", "pdf", "--out", "out"],
        ["--report", "premis", "--out", "out", "--method", "stat"],
        ["--report", "bagit", "--out", "out", "--sample", "10%"],
        ["--sample", "12"],
        ["--sample", "10%", "--method", "lists"],
        ["--method", "remote", "--offline"],
    ],
)
def test_what_makes_no_sense_is_said(museum: str, said: Said, more: list[str]) -> None:
    assert run(["audit", museum, *more]) == 2
    assert not Path("out").exists()


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


def test_the_manifest_of_an_audit_can_be_checked_as_the_page_says_it(
    source: TinySource, said: Said
) -> None:
    source.offer({**FILES, "/a%20b?c=%25": b"asked"})
    assert run(["pull", source.url, "museum"]) == 0
    assert run(["audit", "museum", "--report", "bagit", "--out", "out"]) == 0

    manifest = evidence() / "manifest-sha256.txt"
    assert "%25" in manifest.read_text()
    # sha256sum does not know the encoding of BagIt.
    Path("data").symlink_to("museum")
    decoded = manifest.read_text().replace("%25", "%")
    checked = ["sha256sum", "--check", "--strict", "--quiet"]
    subprocess.run(checked, input=decoded, text=True, check=True)
