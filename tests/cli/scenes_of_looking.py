"""Scenes of looking at Sources: how they are found, explored and judged."""

from tests.cli.scenes import Scene, scene
from tests.support.commands.command_line import FILES
from tests.support.documents.written import written
from tests.support.rules.judged import CHANGES, write
from tests.support.servers.tiny_source import STAMP, TinySource

URL = "--url https://museum.example"


@scene
def pull_of_a_source_that_is_hidden(at: Scene) -> None:
    listed = at.source.answers["/resourcelist.xml"].body
    del at.source.answers["/.well-known/resourcesync"]
    page = b"<!DOCTYPE html><html lang=en><link rel=resourcesync href=capabilitylist.xml><p>Hi"
    at.source.put("/", page, "text/html")
    at.run(f"resourcesync pull {at.source.url} museum -n")
    at.source.put("/", b"<html>", "text/html")
    at.source.put_document("/telepathy.xml", '<rs:md capability="telepathy"/>', [])
    at.source.put("/robots.txt", b"Sitemap: /telepathy.xml\nsitemap : /resourcelist.xml\n")
    at.run(f"resourcesync pull {at.source.url} museum -n")
    at.source.put("/robots.txt", b"Sitemap: /feed/")
    rss = b'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"></rdf:RDF>'
    at.source.put("/feed/", rss)
    at.run(f"resourcesync pull {at.source.url} museum -n")
    at.source.put("/sitemap.xml", listed)
    at.run(f"resourcesync pull {at.source.url} museum -n")
    at.source.put("/feed.xml", b'<rss version="2.0"><channel/></rss>')
    at.source.put("/sitemap.txt", f"{at.source.url}/a.html\n".encode())
    at.source.put("/robots.txt", b"Sitemap: /feed.xml\nSitemap: /sitemap.txt\n")
    at.run(f"resourcesync pull {at.source.url} museum -n")
    at.source.put("/robots.txt", b"Sitemap: /feed.xml\n")
    at.run(f"resourcesync pull {at.source.url} museum -n")
    at.source.put("/page.txt", b"<!doctype html><title>log in</title>", "text/html")
    at.refuse(f"pull {at.source.url}/page.txt museum", f"pull {at.source.url}/no/such/ museum")
    at.files("museum")


@scene
def pull_beside_unknown_capabilities(at: Scene) -> None:
    at.source.put_document("/telepathy.xml", '<rs:md capability="telepathy"/>', [])
    at.source.put("/levitation.xml", b"no document at all")
    entries = [at.source.pointer(f"/{name}.xml", name) for name in ("telepathy", "levitation")]
    entries.append(at.source.pointer("/resourcelist.xml", "resourcelist"))
    entries.append(f"<url><loc>{at.source.url}/telepathy.xml</loc></url>")
    entries.append('<url><loc>http://[</loc><rs:md capability="telekinesis"/></url>')
    at.source.put_document("/capabilitylist.xml", '<rs:md capability="capabilitylist"/>', entries)
    at.source.answers["/sd.xml"] = at.source.answers["/.well-known/resourcesync"]
    parts = [f"<sitemap><loc>{at.source.url}/{n}.xml</loc></sitemap>" for n in ("telepathy", "sd")]
    index = written('<rs:md capability="description"/>', parts, "sitemapindex")
    at.source.put("/.well-known/resourcesync", index.encode())
    at.run(f"resourcesync pull {at.source.url} museum")


@scene
def pull_of_another_origin(at: Scene) -> None:
    with TinySource() as other:
        other.offer(FILES)
        del at.source.answers["/.well-known/resourcesync"]
        at.source.put("/robots.txt", f"Sitemap: {other.url}/resourcelist.xml".encode())
        for words in (f"pull {at.source.url} museum", f"explore {at.source.url}"):
            at.refuse(words)
        at.run(f"resourcesync validate {at.source.url}")
        at.note(f"requests: {len(other.asked)}")
        at.run(f"resourcesync pull {at.source.url} museum --allow-origin {other.url}")
        at.run("resourcesync pull museum")
        at.run(f"resourcesync explore {at.source.url} --allow-origin {other.url}")


def offer_index(at: Scene, *parts: str) -> None:
    entries = "".join(f"<sitemap><loc>{at.source.url}{part}</loc></sitemap>" for part in parts)
    text = (
        '<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
        ' xmlns:rs="http://www.openarchives.org/rs/terms/">'
        f'<rs:md capability="resourcelist" at="2026-01-01T00:00:00Z"/>{entries}</sitemapindex>'
    )
    at.source.put("/resourcelist.xml", text.encode(), "application/xml")


@scene
def explore_3(at: Scene) -> None:
    url = at.source.url
    at.source.asked.clear()
    at.run(f"resourcesync explore {url} --depth 2")
    at.requests()
    pointers = [at.source.pointer(f"/{name}.xml", name) for name in ("resourcelist", "changelist")]
    pointers.append('<url><loc>http://[</loc><rs:md capability="telekinesis"/></url>')
    at.source.put_document("/capabilitylist.xml", '<rs:md capability="capabilitylist"/>', pointers)
    at.source.put_document(
        "/changelist.xml",
        '<rs:md capability="changelist" from="2026-01-01T00:00:00Z"/>',
        [
            f'<url><loc>{url}/{name}</loc><rs:md change="{change}" datetime="{moment}"/></url>'
            for name, change, moment in (
                ("a", "created", "2026-01-01T08:00:00Z"),
                ("a", "updated", "2026-01-01T09:00:00Z"),
                ("b", "deleted", "2026-01-01T11:04:09Z"),
            )
        ],
    )
    del at.source.answers["/resourcelist.xml"]
    at.run(f"resourcesync explore {url}")
    at.run(f"resourcesync validate {url} --live")


@scene
def validate_rules_and_samples(at: Scene) -> None:
    name = write("changelist.xml", CHANGES)
    at.run(f"resourcesync validate {name} --ignore RS101 --ignore CH05,RS9")
    at.run(f"resourcesync validate {name} --select RS1")
    at.run(f"resourcesync validate {name} --select CH05")
    at.refuse(f"validate {name} --select RS4 --ignore RS4", f"validate {name} --select XY")
    at.run(f"resourcesync validate no-such.xml {name} --format github")
    at.silently(f"resourcesync publish public {URL}")
    at.run("resourcesync validate public --max-documents 2")
    at.run("resourcesync validate public")


@scene
def validate_lists_that_list_lists(at: Scene) -> None:
    url = at.source.url
    head = f'<rs:ln rel="up" href="{url}/capabilitylist.xml"/>'
    head += f'<rs:md capability="resourcelist" at="{STAMP}"/>'
    entries = [at.source.entry(target, body) for target, body in FILES.items()]
    for name, some in (("one", entries[:5]), ("two", entries[5:])):
        at.source.put_document(f"/{name}.xml", head, some)
    lists = [
        f'<url><rs:md at="{STAMP}"/><loc>{url}/{name}.xml</loc></url>' for name in ("one", "two")
    ]
    at.source.put_document("/resourcelist.xml", head, lists)
    at.run(f"resourcesync pull {url} museum -q")
    at.files("museum")
    at.run(f"resourcesync validate {url} --live --select RL08")
    inner = at.source.answers["/one.xml"].body
    at.source.offer_entries([at.source.entry("/one.xml", inner)])
    at.run(f"resourcesync validate {url} --sample 5 --select RL08")
