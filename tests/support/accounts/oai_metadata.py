"""Items of a repository, and what their metadata is in the formats of real ones."""

import hashlib
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

FORMATS: Final = {
    "oai_dc": "http://www.openarchives.org/OAI/2.0/oai_dc/",
    "mods": "http://www.loc.gov/mods/v3",
    "mets": "http://www.loc.gov/METS/",
    "ore": "http://www.w3.org/2005/Atom",
    "xoai": "http://www.lyncode.com/xoai",
}


@dataclass(frozen=True, kw_only=True)
class Bitstream:
    name: str
    body: bytes
    bundle: str = "ORIGINAL"
    media_type: str = "application/pdf"
    status: int = 200
    embargo: str = ""
    links: str = ""
    """``Link`` of the answers with it."""


@dataclass(frozen=True, kw_only=True)
class Item:
    local: str
    title: str = "A title"
    sets: tuple[str, ...] = ("col_10673_2",)
    bitstreams: tuple[Bitstream, ...] = ()
    rights: str = ""
    raw: str = ""
    """Put into the metadata as it is, well-formed or not."""
    mentions: bool = True
    """Whether Dublin Core has the addresses of the files."""


def address(url: str, local: str, bitstream: Bitstream) -> str:
    return f"{url}/bitstream/{quote(local)}/{quote(bitstream.name)}"


def metadata(prefix: str, item: Item, url: str) -> str:
    make = {"oai_dc": _oai_dc, "mods": _mods, "mets": _mets, "ore": _ore, "xoai": _xoai}
    return make[prefix](item, url)


def _oai_dc(item: Item, url: str) -> str:
    files = "".join(
        f"<dc:identifier>{escape(address(url, item.local, bitstream))}</dc:identifier>"
        for bitstream in item.bitstreams
        if item.mentions
    )
    rights = f"<dc:rights>{escape(item.rights)}</dc:rights>" if item.rights else ""
    return (
        f'<oai_dc:dc xmlns:oai_dc="{FORMATS["oai_dc"]}" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/" '
        f'xsi:schemaLocation="{FORMATS["oai_dc"]} http://x.example/oai_dc.xsd">'
        f"<dc:title>{escape(item.title)}</dc:title>"
        f"<dc:identifier>https://hdl.example/{escape(item.local)}</dc:identifier>"
        f"{files}{rights}{item.raw}</oai_dc:dc>"
    )


def _mods(item: Item, url: str) -> str:
    return (
        f'<mods xmlns="{FORMATS["mods"]}"><titleInfo><title>{escape(item.title)}</title>'
        "</titleInfo></mods>"
    )


def _mets(item: Item, url: str) -> str:
    groups = "".join(
        f"<fileGrp USE={quoteattr(bitstream.bundle)}>"
        f"<file MIMETYPE={quoteattr(bitstream.media_type)} "
        f'SIZE="{len(bitstream.body)}" CHECKSUM="{hashlib.md5(bitstream.body).hexdigest()}" '
        f'CHECKSUMTYPE="MD5"><FLocat LOCTYPE="URL" xlink:href='
        f"{quoteattr(address(url, item.local, bitstream))}/></file></fileGrp>"
        for bitstream in item.bitstreams
    )
    return (
        f'<mets xmlns="{FORMATS["mets"]}" xmlns:xlink="http://www.w3.org/1999/xlink">'
        f"<fileSec>{groups}</fileSec></mets>"
    )


def _ore(item: Item, url: str) -> str:
    links = "".join(
        '<atom:link rel="http://www.openarchives.org/ore/terms/aggregates" '
        f"href={quoteattr(address(url, item.local, bitstream))} "
        f"type={quoteattr(bitstream.media_type)} "
        f'length="{len(bitstream.body)}"/>'
        for bitstream in item.bitstreams
    )
    told = "".join(
        f"<rdf:Description rdf:about={quoteattr(address(url, item.local, bitstream))}>"
        f"<dcterms:description>{bitstream.bundle}</dcterms:description></rdf:Description>"
        for bitstream in item.bitstreams
    )
    return (
        f'<atom:entry xmlns:atom="{FORMATS["ore"]}">{links}'
        '<oreatom:triples xmlns:oreatom="http://www.openarchives.org/ore/atom/" '
        'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
        f'xmlns:dcterms="http://purl.org/dc/terms/">{told}</oreatom:triples></atom:entry>'
    )


def _xoai(item: Item, url: str) -> str:
    def named(name: str, inner: str) -> str:
        return f"<element name={quoteattr(name)}>{inner}</element>"

    def said(name: str, value: str) -> str:
        return f"<field name={quoteattr(name)}>{escape(value)}</field>"

    bundles = "".join(
        named(
            "bundle",
            said("name", bitstream.bundle)
            + named(
                "bitstreams",
                named(
                    "bitstream",
                    said("name", bitstream.name)
                    + said("format", bitstream.media_type)
                    + said("size", str(len(bitstream.body)))
                    + said("url", address(url, item.local, bitstream))
                    + said("checksum", hashlib.md5(bitstream.body).hexdigest())
                    + said("checksumAlgorithm", "MD5")
                    + (said("embargo", bitstream.embargo) if bitstream.embargo else ""),
                ),
            ),
        )
        for bitstream in item.bitstreams
    )
    status = named("access-status", said("value", item.rights)) if item.rights else ""
    return (
        f'<metadata xmlns="{FORMATS["xoai"]}">'
        f"{named('dc', named('title', named('none', said('value', item.title))))}"
        f"{named('bundles', bundles)}{named('others', status)}</metadata>"
    )
