"""What metadata says of the files of an item, what is chosen of it, and where it is put."""

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resourcesync.errors import ConfigurationError, DocumentError
from resourcesync.model.digests import Digest
from resourcesync_oai.documents.item_metadata import ItemMetadata, MetadataFile, parse_item_metadata
from resourcesync_oai.metadata_files import file_name, path_of
from resourcesync_oai.options import OaiOptions, parse_options
from tests.support.accounts import oai_metadata
from tests.support.accounts.oai_metadata import Bitstream, Item

BODY = b"a thesis"
THESIS = Bitstream(name="my thesis é.pdf", body=BODY)
LICENCE = Bitstream(name="license.txt", body=b"yes", bundle="LICENSE", media_type="text/plain")
ITEM = Item(local="10673/5", bitstreams=(THESIS, LICENCE), rights="embargo")


def metadata(prefix: str, item: Item = ITEM) -> bytes:
    text = oai_metadata.metadata(prefix, item, "https://repo.example")
    xsi = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
    return text.replace(" ", f" {xsi} ", 1).encode()


@pytest.mark.parametrize("prefix", ["mets", "ore", "xoai"])
def test_files_that_metadata_lists_are_found(prefix: str) -> None:
    thesis, licence = parse_item_metadata(metadata(prefix)).files

    assert thesis.uri == "https://repo.example/bitstream/10673/5/my%20thesis%20%C3%A9.pdf"
    assert (thesis.bundle, thesis.length, thesis.media_type) == ("ORIGINAL", 8, "application/pdf")
    assert (licence.bundle, licence.is_listed) == ("LICENSE", True)
    md5 = Digest("md5", hashlib.md5(BODY, usedforsecurity=False).hexdigest())
    assert thesis.digests == (() if prefix == "ore" else (md5,))


def test_the_policies_of_a_file_say_when_everybody_may_read_it() -> None:
    def file(*policies: str, before: str = "") -> MetadataFile:
        rows = "".join(f'<element name="resourcePolicy">{policy}</element>' for policy in policies)
        text = (
            '<metadata xmlns="http://www.lyncode.com/xoai"><element name="bundles">'
            '<element name="bundle"><element name="bitstreams"><element name="bitstream">'
            f'<field name="url">https://repo.example/a</field>{before}'
            f'<element name="resourcePolicies">{rows}</element>'
            "</element></element></element></element></metadata>"
        )
        return parse_item_metadata(text.encode()).files[0]

    def policy(group: str, action: str = "READ", **days: str) -> str:
        fields = {"group": group, "action": action}
        fields |= {f"{name}-date": day for name, day in days.items()}
        return "".join(f'<field name="{name}">{value}</field>' for name, value in fields.items())

    everybody, staff = policy("Anonymous"), policy("Administrator")
    until = policy("Anonymous", end="2026-02-01")
    since = policy("Anonymous", start="2026-02-01")
    assert file(everybody, staff, since).is_public_on("2026-01-31")
    assert not file().is_public_on("2026-01-31")
    assert not file(staff).is_public_on("2026-01-31")
    assert not file(policy("Anonymous", "WRITE")).is_public_on("2026-01-31")
    assert [file(since).is_public_on(f"2026-02-0{day}") for day in (1, 2)] == [True, True]
    assert not file(since, staff).is_public_on("2026-01-31")
    assert [file(until).is_public_on(f"2026-02-0{day}") for day in (1, 2)] == [True, False]
    assert file(until, everybody).is_public_on("2026-02-02")
    embargo = '<field name="embargo">2026-03-01</field>'
    assert not file(everybody, before=embargo).is_public_on("2026-02-02")


def test_what_is_no_address_of_the_web_is_not_found() -> None:
    rows = "".join(
        f"<dc:identifier>{name}</dc:identifier>"
        for name in (
            "10.1/x",
            "urn:isbn:1",
            "file:///etc/passwd",
            "ftp://x/y",
            "http://",
            "https://a b/c",
        )
    )
    text = f'<r xmlns:dc="http://purl.org/dc/elements/1.1/">{rows}</r>'

    assert [file.uri for file in parse_item_metadata(text.encode()).files] == ["https://a%20b/c"]


@pytest.mark.parametrize("text", [b"", b"<a>", b"<!DOCTYPE a><a/>"])
def test_metadata_that_is_no_xml_is_refused(text: bytes) -> None:
    with pytest.raises(DocumentError):
        parse_item_metadata(text)


def chosen(*files: MetadataFile, **values: str) -> list[str]:
    choice = parse_options(
        "oai:https://r.example/oai", {k.replace("_", "-"): v for k, v in values.items()}
    )
    return [file.uri for file in choice.select_files(ItemMetadata(files=files))]


def test_files_are_chosen_by_bundle_and_pattern() -> None:
    thesis = MetadataFile(uri="https://r.example/1/a.pdf", bundle="ORIGINAL")
    text = MetadataFile(uri="https://r.example/1/a.txt", bundle="TEXT")
    plain = MetadataFile(uri="https://r.example/2/b.pdf")
    page = MetadataFile(uri="https://r.example/1", is_listed=False)
    everything = (thesis, text, plain, page)

    assert chosen(*everything) == [thesis.uri, plain.uri]
    assert chosen(*everything, bundles="text") == [text.uri, plain.uri]
    assert chosen(*everything, bundles="*") == [thesis.uri, text.uri, plain.uri]
    assert chosen(*everything, files="*.pdf,*/1") == [thesis.uri, plain.uri, page.uri]


def test_addresses_of_files_can_be_rewritten() -> None:
    pages = [
        MetadataFile(uri=f"https://j.example/article/view/{name}", is_listed=False)
        for name in ("1", "1/2", "1/3")
    ]

    assert chosen(*pages, files="*/view/*/*", rewrite="/view/ => /download/") == [
        "https://j.example/article/download/1/2",
        "https://j.example/article/download/1/3",
    ]
    assert chosen(*pages, files="*/view/*/*", rewrite="/article/*/3=>/file/*/three") == [
        "https://j.example/article/view/1/2",
        "https://j.example/file/view/1/three",
    ]
    assert chosen(*pages, files="*/view/*/*", rewrite="/3=>/2") == [
        "https://j.example/article/view/1/2"
    ]


@pytest.mark.parametrize(
    ("text", "is_restricted"),
    [
        ("info:eu-repo/semantics/restrictedAccess", True),
        ("info:eu-repo/semantics/openAccess", False),
        ("http://purl.org/coar/access_right/c_16ec", True),
        ("https://purl.org/coar/access_right/c_abf2", False),
        ("restricted", True),
        ("This work may be restricted in Utah", False),
    ],
)
def test_who_may_have_the_files_is_told_by_known_words(text: str, is_restricted: bool) -> None:
    choice = OaiOptions(endpoint="https://r.example/oai")

    assert choice.is_restricted(ItemMetadata(rights=("Somebody", text))) is is_restricted


@pytest.mark.parametrize(
    ("address", "values"),
    [
        ("oai:https://r.example/oai", {"prefix": "oai_dc"}),
        ("oai:https://r.example/oai", {"prefixes": " , "}),
        ("oai:https://r.example/oai", {"overlap": "2"}),
        ("oai:https://r.example/oai", {"names": "handles"}),
        ("oai:https://r.example/oai", {"measure": "maybe"}),
        ("oai:https://r.example/oai", {"rewrite": "view"}),
        ("oai:https://r.example/oai", {"rewrite": "=>x"}),
        ("oai:https://r.example/oai", {"changefreq": "seldom"}),
        ("oai:https://r.example/oai", {"rewrite": "view=>*"}),
        ("oai:https://r.example/oai", {"rewrite": "*/view/*=>x"}),
        ("oai:https://r.example/oai", {"collections": "https://r.example/"}),
        ("oai:https://r.example/oai", {"from": "yesterday"}),
        *((address, {}) for address in ("oai:", "oai:repo.example", "oai:ftp://x/")),
        ("oai:https://u:p@x/", {}),
    ],
)
def test_an_address_or_a_value_that_cannot_work_is_refused(
    address: str, values: dict[str, str]
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        parse_options(address, values)

    assert ":p@" not in str(caught.value)


PREFIXES = ("oai_dc", "mods", "a.b")
parts = st.text("/:.~%é aAdx_-oi2EmODS", max_size=12) | st.sampled_from(
    ["oai_dc", "mods.xml", "oai_dc.xml~d", "~-", "", ".", "..", "~id", "x" * 200, "x" * 199 + "y"]
)
identifiers = st.builds(
    lambda begin, rest: begin + "/".join(rest),
    st.sampled_from(["oai:r:", "oai:s:", "", "oai:r"]),
    st.lists(parts, max_size=18),
)
records = st.tuples(identifiers, st.sampled_from(PREFIXES))


@settings(max_examples=40)
@given(told=st.lists(records, min_size=2, max_size=6, unique=True), has_suffix=st.booleans())
def test_every_record_has_a_file_of_its_own(told: list[tuple[str, str]], has_suffix: bool) -> None:
    names = {prefix: file_name(prefix, ".xml" if has_suffix else "") for prefix in PREFIXES}
    taken = frozenset(names.values())
    places = [path_of(identifier, names[prefix], "r", taken) for identifier, prefix in told]

    assert len(set(places)) == len(told)
    folders = {
        "/".join(place.split("/")[:depth])
        for place in places
        for depth in range(1, place.count("/") + 1)
    }
    assert not folders & set(places), "a file stands where another one needs a folder"
    for place in places:
        assert place.startswith("resource/")
        for name in place.split("/"):
            assert 0 < len(name.encode()) <= 255
            assert name.isascii()
            assert not name.startswith(".")
            assert not name.endswith(".")
