"""``validate``: findings with place, clause and mend; whole Sources, samples, packages."""

import hashlib
import re
from pathlib import Path

import pytest

from resourcesync.cli.main import run
from tests.support.commands.command_line import FILES, LATER, Said
from tests.support.rules.judged import OPEN, UP, code, codes, offer, write
from tests.support.servers.tiny_source import Answer, TinySource, dead_address

CHANGES = (
    OPEN
    + UP
    + '<rs:md capability="changelist" from="2026-11-20T00:00:00Z"/>\n'
    + "<url>\n <loc>http://h.example/b</loc>\n"
    + ' <rs:md change="updated" datetime="2026-11-20T11:04:09Z"/>\n</url>\n'
    + "<url>\n <loc>http://h.example/a</loc>\n"
    + ' <rs:md change="updated" datetime="2026-11-20T10:58:00Z"/>\n</url>\n</urlset>\n'
)
GOOD = CHANGES.replace("10:58:00Z", "11:58:00Z")


def test_what_an_author_writes_cannot_fool_the_terminal(said: Said) -> None:
    text = f"{OPEN}{UP}<rs:md capability='x\x9b\u202e'/></urlset>"

    run(["validate", write("list.xml", text)])

    assert not re.search("[\x80-\x9f\u202e]", said.readouterr().out)


# --- Sources ---


def test_an_address_is_one_document_and_live_is_all_of_them(source: TinySource, said: Said) -> None:
    offer(source)

    assert run(["validate", source.url]) == 0
    assert said.readouterr().out == (
        "Checked 1 document, 1 entry: 0 errors, 0 warnings\n"
        "  checked only this document; --live follows its links\n"
    )
    assert run(["validate", source.url, "--live"]) == 0
    assert said.readouterr().out == "Checked 3 documents, 14 entries: 0 errors, 0 warnings\n"
    assert not {asked.target for asked in source.asked} & set(FILES)


def test_documents_that_contradict_each_other_are_found(source: TinySource, said: Said) -> None:
    offer(source)
    source.answers["/resourcelist.xml"] = source.answers["/capabilitylist.xml"]

    assert run(["validate", source.url, "--live"]) == 1

    assert code("G08") in codes(said.readouterr().out)


def test_a_sample_is_fetched_and_held_against_the_list(source: TinySource, said: Said) -> None:
    offer(source)

    assert run(["validate", source.url, "--sample", "100%"]) == 0
    assert "14 entries, 12 of 12 resources: 0 errors" in said.readouterr().out
    assert {asked.target for asked in source.asked} >= set(FILES)

    source.put("/objects/0001.txt", b"objecT 1\n")
    source.put("/objects/0002.txt", b"longer than it was\n")
    del source.answers["/objects/0003.txt"]
    assert run(["validate", source.url, "--sample", "12"]) == 1

    found = codes(said.readouterr().out)
    assert found.count(code("HT02")) == 2  # another length has another hash, too
    assert found.count(code("HT01")) == 2


def test_of_a_resource_that_changed_since_the_last_telling_counts(
    source: TinySource, said: Said
) -> None:
    offer(source)
    source.put("/objects/0001.txt", b"new")
    del source.answers["/objects/0002.txt"]
    digest = hashlib.sha256(b"new").hexdigest()
    changes = [
        f"<url><loc>{source.url}/objects/000{name}.txt</loc>"
        f'<rs:md change="{change}" datetime="{LATER}"{more}/></url>'
        for name, change, more in [
            ("1", "updated", f' hash="sha-256:{digest}" length="3"'),
            ("2", "deleted", ""),
            ("3", "deleted", ""),
        ]
    ]
    up = f'<rs:ln rel="up" href="{source.url}/capabilitylist.xml"/>'
    head = f'{up}<rs:md capability="changelist" from="{LATER}"/>'
    source.put_document("/changelist.xml", head, changes)
    body = source.answers["/capabilitylist.xml"].body.decode()
    more = source.pointer("/changelist.xml", "changelist")
    body = body.replace("</urlset>", f"{more}</urlset>")
    source.put("/capabilitylist.xml", body.encode(), "application/xml")

    run(["validate", source.url, "--sample", "100%", "--select", "HT"])

    assert codes(said.readouterr().out) == [code("HT03")]  # number 3 is still there


def test_a_published_tree_is_judged_where_it_lies(tree: Path, said: Said) -> None:
    run(["publish", str(tree), "--url", "https://museum.example", "-q"])
    said.readouterr()

    assert run(["validate", str(tree)]) == 0

    text = said.readouterr().out
    assert text == "Checked 4 documents, 15 entries: 0 errors, 0 warnings\n"

    path = tree / "resourcesync" / "capabilitylist.xml"
    path.write_text(path.read_text().replace('rel="up"', 'rel="about"'))
    assert run(["validate", str(tree)]) == 1
    assert "public/resourcesync/capabilitylist.xml:" in said.readouterr().out


@pytest.mark.parametrize(
    ("target", "expected"), [("no-such-file.xml", 2), ("http://{}/none.xml", 4)]
)
def test_a_target_that_cannot_be_had_does_not_stop_the_others(
    target: str, expected: int, said: Said
) -> None:
    with dead_address() as dead:
        target = target.format(dead.removeprefix("http://"))

        assert run(["validate", target, write("a.xml", GOOD), "-o", "retries=0"]) == expected

    captured = said.readouterr()
    assert captured.err.startswith("error[")
    assert "Checked 1 document" in captured.out


def test_the_parts_of_a_local_index_know_it_by_its_address(here: Path, said: Said) -> None:
    head = UP + '<rs:md capability="resourcelist" at="2026-01-01T00:00:00Z"/>\n'
    root = OPEN.replace("urlset", "sitemapindex")
    part = "<sitemap><loc>http://h.example/rs/part.xml</loc></sitemap>\n</sitemapindex>"
    write("rs/index.xml", root + head + part)
    index = '<rs:ln rel="index" href="http://h.example/rs/index.xml"/>\n'
    write("rs/part.xml", OPEN + index + head + "</urlset>")

    assert run(["validate", "rs/index.xml", "--live"]) == 0

    assert code("RI05") not in codes(said.readouterr().out)


# --- JSON ---


def test_an_answer_with_an_odd_status_is_no_crash(source: TinySource, said: Said) -> None:
    offer(source)
    for target in FILES:
        source.answers[target] = Answer(status=418)

    assert run(["validate", source.url, "--sample", "3", "-o", "retries=0"]) == 0

    assert codes(said.readouterr().out) == [code("HT01")] * 3


# --- folders ---
