"""Scenes of publishing: what is remembered, refused, packed, notified; and catalogues."""

import os
from pathlib import Path

from tests.cli.scenes import Scene, scene
from tests.support.documents.written import written
from tests.support.servers.listening import Listener

URL = "--url https://museum.example"
PUBLIC = Path("public")
LISTS = PUBLIC / "resourcesync"
OLD = (1_700_000_000, 1_700_000_000)  # long enough ago to be trusted unread


def locations(path: Path) -> str:
    return " ".join(line.partition("<")[0] for line in path.read_text().split("<loc>")[1:])


def put(name: str, text: str) -> None:
    path = PUBLIC / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, OLD)


@scene
def publish_remembers(at: Scene) -> None:
    put("secret.key", "s3cret")
    options = "--exclude *.key -o hash=sha-256 -o hash=md5 -o max_entries=5 --out public/lists"
    at.run(f"resourcesync publish public {URL} {options}")
    put("objects/0099.txt", "99")
    at.run("resourcesync publish public")
    at.run("resourcesync publish public --url ''")
    at.run("resourcesync publish public --url https://new.example/ --dumps all")
    at.run("resourcesync publish public --url https://other.example/")
    at.run("resourcesync publish public --out elsewhere")
    at.run("resourcesync publish public")
    at.note(locations(Path("elsewhere/resourcesync/resourcelist.xml")))
    texts = [path.read_text() for path in Path("elsewhere/resourcesync").glob("resourcelist-*")]
    at.note(f"digests: {[''.join(texts).count(name) for name in ('md5:', 'sha-256:')]}")
    at.note(" ".join(locations(path) for path in sorted(Path("elsewhere").rglob("*list-*.xml"))))


@scene
def publish_refuses(at: Scene) -> None:
    for url in (
        *("museum.example", "ftp://museum.example/", "https://m/?a=b", "https://"),
        *("https://user@museum.example/", "https://müseum.example/", "https://museum.example/<a>/"),
        *("https://museum.example/a/../b/", "https://museum.example:65536/"),
    ):
        at.refuse(f"publish public --url {url}")
    at.refuse(f"publish public {URL} --update --rebase", f"publish public {URL} --watch -n")
    at.refuse(f"publish public {URL} --initialise --update", f"publish public {URL} --link none")
    for option in ("dialect=0.9", "dialect=2.0", "rotate=soon"):
        at.refuse(f"publish public {URL} -o {option}")
    at.refuse(f"publish public {URL} --dumps all --watch", f"publish public {URL} --dumps all -n")
    at.refuse(f"publish ndjson:- --out documents {URL} --dumps all")
    Path("empty").mkdir()
    at.refuse("publish empty", f"publish empty {URL}")
    at.note(f"written: {[path.name for path in [*PUBLIC.iterdir(), *Path('empty').iterdir()]]}")


@scene
def publish_a_sitemap_and_robots(at: Scene) -> None:
    put("sitemap.xml", "<!-- the operator's own -->")
    at.run(f"resourcesync publish public {URL} --sitemap -o robots=true -o max_entries=5")
    at.note((PUBLIC / "robots.txt").read_text().splitlines()[-1])
    for path in sorted(PUBLIC.glob("resourcesync-sitemap*")):
        at.note(f"{path.name}: {locations(path)}")
    at.run("resourcesync publish public --json")


@scene
def publish_sets_of_a_site(at: Scene) -> None:
    description = Path("www/.well-known/resourcesync")
    for place in (Path("www/files/a.txt"), Path("www/texts/b.txt"), description):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("<urlset/>")
    for name in ("files", "texts"):
        at.refuse(f"publish www/{name} --url https://h.example/{name}/ -o site=www")
        at.note(f"{description.read_text()} {Path('www', name, 'resourcesync').exists()}")
    description.unlink()
    for name in ("files", "texts"):
        at.silently(f"resourcesync publish www/{name} --url https://h.example/{name}/ -o site=www")
    at.refuse("publish www/files --url https://h.example/x/files/")
    for name in ("files", "texts"):
        at.silently(f"resourcesync publish www/{name} --url https://new.example/{name}/")
        at.note(locations(description))
    both = f"publish public {URL} -o site=public --out public/lists --state"
    at.silently(f"resourcesync {both} one")
    at.refuse(f"{both} two --initialise")


@scene
def publish_dumps(at: Scene) -> None:
    at.run(f"resourcesync publish public {URL} --dumps resources -o max_package=40")
    at.run("resourcesync publish public --dumps resources --json")
    put("objects/0000.txt", "altered\n")
    at.run("resourcesync publish public --dumps all")
    at.note(" ".join(sorted(path.suffix for path in LISTS.iterdir())))


@scene
def publish_all(at: Scene) -> None:
    Path("prints").mkdir()
    Path("prints/a.txt").write_text("a")
    museum = '[source.museum]\npath = "public"\nurl = "https://museum.example/"\nrotate = "1d"\n'
    prints = '[source.prints]\npath = "prints"\nurl = "https://prints.example/"\nout = "lists"\n'
    at.configure(museum + prints)
    PUBLIC.rename("gone")
    at.run("resourcesync publish --all --json")
    Path("gone").rename(PUBLIC)
    at.run("resourcesync publish --all")
    at.run("resourcesync publish museum")
    lines = '[source.lines]\npath = "ndjson:lines"\nurl = "https://lines.example/"\nout = "out"\n'
    at.configure(museum + lines)
    at.run("resourcesync publish --all -n")
    at.run("resourcesync publish lines -n")
    Path("museum").mkdir()
    Path("museum/a.txt").write_text("a")
    at.run("resourcesync publish museum")
    for old, new in (
        ('path = "public"\n', ""),
        ("rotate", "rotat"),
        ('"1d"', '"soon"'),
        ('path = "prints"', 'path = "catalogue:"'),
        ('path = "prints"', 'path = "printss"'),
        ("https://museum.example/", "127.0.0.1:8391"),
    ):
        at.configure((museum + prints).replace(old, new))
        at.run("resourcesync config check")
        at.run("resourcesync publish --all -q")


@scene
def publish_and_notify(at: Scene) -> None:
    at.refuse("publish public --notify-only")
    for other in ("--update", "--dry-run", "--watch", "--all"):
        at.refuse(f"publish public --notify-only {other}")
    with Listener() as hub:
        at.silently(f"resourcesync publish public {URL} --hub {hub.origin} -o notify=true")
        put("new.txt", "new")
        at.run("resourcesync publish public")
        at.run("resourcesync publish public --notify-only")
        hub.answer = lambda _: (503, b"")
        put("newer.txt", "newer")
        at.run("resourcesync publish public")
        at.run("resourcesync publish public --notify-only -q")
        at.run("resourcesync publish public --notify-only --json")
        hub.answer = lambda _: (204, b"")
        at.run("resourcesync publish public --notify-only --json")
        dead = "--hub http://127.0.0.1:9/ -o notify=false"
        at.silently(f"resourcesync publish public --hub {hub.origin} {dead}")
        put("newest.txt", "newest")
        at.silently("resourcesync publish public")
        at.run("resourcesync publish public --notify-only -q")
    at.silently("resourcesync publish public --hub ''")
    at.run("resourcesync publish public --notify-only")


@scene
def serve_refuses(at: Scene) -> None:
    at.refuse("serve public", "serve nothere")
    at.silently(f"resourcesync publish public {URL}")
    description = PUBLIC / ".well-known/resourcesync"
    for text in ("<html/>", written('<rs:md capability="description"/>')):
        description.write_text(text)
        at.refuse("serve public")
    description.unlink()
    description.mkdir()
    at.refuse("serve public")


@scene
def catalogue_with_lines_that_cannot_be_recorded(at: Scene) -> None:
    base = "https://h.example/"
    lines = Path("all.ndjson")
    lines.write_text(f'{{"uri":"{base}a"}}\n')
    at.silently("resourcesync catalogue import c.db all.ndjson")
    for action, line in (
        ("post", f'{{"uri":"{base}"}}'),
        ("import", f'{{"uri":"{base}","change":"created"}}'),
        ("post", '{"uri":"a","change":"created"}'),
        ("post", '{"uri":"http://u@h/","change":"deleted"}'),
        ("import", '{"uri":"https://h/a b"}'),
        ("import", f'{{"uri":"{base}new"}}\n{{"uri":"{base}bad","length":-1}}'),
        ("post", "{]"),
        ("import", ""),
    ):
        lines.write_text(line)
        at.refuse(f"catalogue {action} c.db all.ndjson")
    at.silently(f"resourcesync publish public --url {base}")
    own = "public/.resourcesync/catalogue.db"
    lines.write_text(f'{{"uri":"{base}x","change":"created"}}\n')
    at.refuse(f"catalogue post {own} all.ndjson", f"publish catalogue:{own} --url {base} --out out")
    at.run("resourcesync catalogue export c.db")
    lines.write_text("")
    at.run("resourcesync catalogue import c.db all.ndjson --add")
    at.run("resourcesync catalogue import c.db all.ndjson --allow-empty")
    at.refuse("catalogue post c.db all.ndjson --allow-empty")
