"""Answers of OAI-PMH providers: what is read of them, of broken ones too."""

from io import BytesIO
from typing import Final
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resourcesync.errors import (
    DocumentError,
    DocumentLimitError,
    MalformedDocumentError,
    NotAListError,
    TruncatedDocumentError,
)
from resourcesync_oai.documents.records import ListToken, MetadataFormat, OaiRecord
from resourcesync_oai.documents.responses import OaiResponse
from resourcesync_oai.documents.scanner import ResponseLimits

XSI: Final = "http://www.w3.org/2001/XMLSchema-instance"
AROUND: Final = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    f'<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/" xmlns:xsi="{XSI}">'
    "<responseDate>2026-01-31T12:00:00Z</responseDate>"
    '<request verb="ListRecords">https://repo.example/oai</request>%s</OAI-PMH>\n'
)
MARC: Final = '<record xmlns="http://www.loc.gov/MARC21/slim"><leader>%s</leader></record>'


def record(number: int, metadata: str) -> str:
    return (
        f"<record><header><identifier>oai:r:{number}</identifier>"
        f"<datestamp>2026-01-{number + 1:02}</datestamp><setSpec>a</setSpec><setSpec>b:c</setSpec>"
        f"</header><metadata>{metadata}</metadata></record>"
    )


def page(*records: str, token: str = "") -> bytes:
    tail = f'<resumptionToken completeListSize="7" cursor="0">{token}</resumptionToken>'
    listed = f"<ListRecords>{''.join(records)}{tail if token else ''}</ListRecords>"
    return (AROUND % listed).encode("utf-8", "surrogateescape")


def read(content: bytes, **limits: int) -> tuple[list[OaiRecord], OaiResponse]:
    answer = OaiResponse(
        BytesIO(content), uri="https://repo.example/oai", limits=ResponseLimits(**limits)
    )
    return list(answer.records()), answer


def identifiers(records: list[OaiRecord]) -> list[str]:
    return [record.header.identifier if record.header else "" for record in records]


def test_a_page_of_records_is_read() -> None:
    deleted = (
        '<record><header status="deleted"><identifier>oai:r:9</identifier>'
        "<datestamp>2026-01-09</datestamp></header></record>"
    )
    records, answer = read(page(record(0, MARC % "x"), deleted, token="a b&amp;c"))

    first, last = (record.header for record in records)
    assert first is not None
    assert last is not None
    assert (first.identifier, first.datestamp, first.sets) == (
        "oai:r:0",
        "2026-01-01",
        ("a", "b:c"),
    )
    assert (first.is_deleted, last.is_deleted) == (False, True)
    assert records[0].metadata.decode() == (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<record xmlns="http://www.loc.gov/MARC21/slim" xmlns:xsi="{XSI}">'
        "<leader>x</leader></record>\n"
    )
    assert (records[1].metadata, records[1].problem) == (b"", "")
    assert answer.token == ListToken(value="a b&c", size=7)
    assert (answer.verb, answer.response_date) == ("ListRecords", "2026-01-31T12:00:00Z")


@pytest.mark.parametrize(
    "bad", ["\x0b", "\udcff", "&nbsp;", "</dc>", "<a", "]]>", "&", "<a b=c/>", "<![CDATA[ x"]
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_record_that_is_no_xml_costs_that_record_alone(bad: str, place: int) -> None:
    texts = ["<dc>x</dc>", MARC % "y", "<dc>z</dc>"]
    texts[place] = f"<dc>{bad}</dc>"
    records, answer = read(page(*(record(at, name) for at, name in enumerate(texts)), token="more"))

    assert identifiers(records) == ["oai:r:0", "oai:r:1", "oai:r:2"]
    assert [bool(record.problem) for record in records] == [at == place for at in range(3)]
    assert [bool(record.metadata) for record in records] == [at != place for at in range(3)]
    assert answer.token == ListToken(value="more", size=7)
    assert answer.response_date == "2026-01-31T12:00:00Z"


def test_a_record_that_may_hide_in_a_broken_one_is_told_without_a_name() -> None:
    hidden = record(2, "<dc/>").replace("<record>", '<record id="x">')
    records, _ = read(page(record(0, "<dc/>"), record(1, "&oops;") + hidden, record(3, "<dc/>")))

    assert identifiers(records) == ["oai:r:0", "oai:r:1", "", "oai:r:3"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("<identifier>oai:r:1</identifier>", ""), "identifier"),
        (("<metadata><dc/></metadata>", ""), "no metadata"),
        (("<dc/>", "<dc/><dc/>"), "more than one"),
        (("<dc/>", f"<dc>{'x' * 2_000}</dc>"), "longer"),
    ],
)
def test_a_record_that_lacks_something_is_told_as_unusable(
    change: tuple[str, str], problem: str
) -> None:
    records, _ = read(
        page(record(0, "<dc/>"), record(1, "<dc/>").replace(*change), record(2, "<dc/>")),
        record=1_000,
    )

    assert [bool(record.problem) for record in records] == [False, True, False]
    assert problem in records[1].problem
    assert not records[1].metadata


@settings(max_examples=50)
@given(
    texts=st.lists(
        st.sampled_from(["<dc>é</dc>", MARC % "m", "<dc/>", "<dc>&amp;</dc>"]),
        min_size=1,
        max_size=6,
    ),
    bad=st.integers(0, 5),
    cut=st.floats(0, 0.999),
)
def test_what_is_cut_short_is_never_taken_for_the_whole(
    texts: list[str], bad: int, cut: float
) -> None:
    if bad < len(texts):
        texts[bad] = "<dc>\x02</dc>"
    whole = page(*(record(at, name) for at, name in enumerate(texts)))
    content = whole[: int(len(whole.rstrip()) * cut)]

    with pytest.raises((TruncatedDocumentError, MalformedDocumentError)):
        read(content)


@settings(max_examples=40)
@given(
    texts=st.lists(
        st.sampled_from(["<dc>é</dc>", MARC % "m", "<dc/>", "<dc>&#13;\n</dc>"]),
        min_size=1,
        max_size=6,
    )
)
def test_records_are_the_same_beside_a_broken_one(texts: list[str]) -> None:
    told = [record(at, name) for at, name in enumerate(texts)]
    sound, _ = read(page(*told))
    beside, _ = read(page(record(20, "\x03"), *told))

    assert beside[1:] == sound


def test_formats_sets_and_identity_are_read() -> None:
    formats = (
        "<ListMetadataFormats><metadataFormat><metadataPrefix>mods</metadataPrefix>"
        "<schema>s.xsd</schema><metadataNamespace>urn:mods</metadataNamespace></metadataFormat>"
        "</ListMetadataFormats>"
    )
    sets = "<ListSets><set><setSpec>a</setSpec><setName>A</setName></set></ListSets>"
    identify = (
        "<Identify><repositoryName>R</repositoryName><granularity>YYYY-MM-DD</granularity>"
        "<earliestDatestamp>2001</earliestDatestamp><deletedRecord>no</deletedRecord>"
        '<description><i:oai-identifier xmlns:i="http://www.openarchives.org/OAI/2.0/oai-identifier">'
        "<i:repositoryIdentifier>r.example</i:repositoryIdentifier></i:oai-identifier>"
        "</description></Identify>"
    )
    assert read((AROUND % formats).encode())[1].formats == (
        MetadataFormat(prefix="mods", namespace="urn:mods", schema="s.xsd"),
    )
    assert read((AROUND % sets).encode())[1].sets == ("a",)
    identity = read((AROUND % identify).encode())[1].identity
    assert (identity.name, identity.granularity, identity.namespace) == (
        "R",
        "YYYY-MM-DD",
        "r.example",
    )
    assert (identity.earliest, identity.deletions) == ("2001", "no")


@pytest.mark.parametrize(
    ("before", "after"), [(b"\n \n", b""), (b"", b"<b>Warning</b>: x"), (b"\xef\xbb\xbf", b"\n\n")]
)
def test_what_a_careless_program_writes_around_the_answer_is_passed_over(
    before: bytes, after: bytes
) -> None:
    records, _ = read(before + page(record(0, "<dc/>")) + after)

    assert identifiers(records) == ["oai:r:0"]


@pytest.mark.parametrize(
    ("content", "kind", "code"),
    [
        (b"<html><body/></html>", NotAListError, "not-oai"),
        (b"<html><br></html>", NotAListError, "not-oai"),
        (b"<!doctype html><title>Down</title><p>Back soon", NotAListError, "not-oai"),
        (b"<rss/>", NotAListError, "not-oai"),
        (b'<!DOCTYPE x [<!ENTITY a "b">]><OAI-PMH/>', MalformedDocumentError, "xml-dtd"),
        (
            b'<?xml version="1.0" encoding="latin1"?><OAI-PMH/>',
            MalformedDocumentError,
            "xml-encoding",
        ),
        (b"", TruncatedDocumentError, "xml-cut-short"),
        (b"<OAI-PMH><ListSets></OAI-PMH>", MalformedDocumentError, "xml"),
    ],
)
def test_what_is_no_answer_is_refused(content: bytes, kind: type[DocumentError], code: str) -> None:
    with pytest.raises(kind) as caught:
        read(content)

    assert caught.value.code == code


def test_what_costs_too_much_is_refused() -> None:
    whole = page(*(record(at, "<dc/>") for at in range(3)))
    for limits in ({"bytes": 300}, {"entries": 2}):
        with pytest.raises(DocumentLimitError):
            read(whole, **limits)
    with pytest.raises(DocumentLimitError):
        read(page(record(0, "<a>" * 300 + "</a>" * 300)))
    with pytest.raises(DocumentLimitError):
        read(page(record(0, f"<dc a='{'x' * 200_000}'/>")))


@pytest.mark.parametrize(
    "metadata",
    [
        '<dc xmlns=""><x:a xmlns:x="urn:x">1</x:a><b>2</b></dc>',
        '<q:dc xmlns:q="urn:q"><a xmlns="urn:a" q:b="&gt;&quot;&#13;"/>&#233;</q:dc>',
        '<q:dc xmlns:q="urn:q"><part/></q:dc>',
        "<a:dc xmlns:a='urn:a' xmlns:b='urn:a' a:x='1'><b:c/></a:dc>",
    ],
)
def test_metadata_alone_means_what_it_means_inside_the_answer(metadata: str) -> None:
    [oai_record], _ = read(page(record(0, f"<!-- c -->{metadata}<?p i?>")))
    inside = ET.fromstring(page(record(0, metadata)))

    found = inside.find(".//{*}metadata/*")

    assert found is not None
    alone = ET.fromstring(oai_record.metadata)
    assert ET.tostring(alone) == ET.tostring(found)


def test_bytes_that_are_anything_are_refused_with_an_error_of_ours() -> None:
    whole = page(*(record(at, MARC % "x") for at in range(3)))
    for at in range(0, len(whole), 31):
        for octet in (0, 60, 255):
            spoilt = whole[:at] + bytes([octet]) + whole[at + 1 :]
            try:
                records, _ = read(spoilt)
            except DocumentError:
                continue
            assert len(records) >= 2
