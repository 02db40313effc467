"""Scenes of mirrors: filters, sets, the trash, audits and repairs."""

import json
from pathlib import Path

from resourcesync.adapters.mirror.locked_folder import MirrorFolder
from resourcesync.adapters.system import SystemClock
from tests.cli.scenes import Scene, scene
from tests.support.commands.command_line import FILES, LATER, spoil
from tests.support.commands.run import files_of
from tests.support.servers.tiny_source import Answer, TinySource
from tests.support.sources.several_sets import SETS
from tests.support.sources.several_sets import offer as offer_sets

ONE = "/objects/0001.txt"
FEW = [f"/objects/000{number}.txt" for number in (1, 2, 3)]
THREE = " ".join(f"--include {name}" for name in FEW)
OWN = Path("museum/.resourcesync")
STILL_LATER = "2026-01-03T00:00:00Z"


def offer_sitemap(at: Scene, *targets: str) -> None:
    at.source.answers.clear()
    for target in targets:
        at.source.put(target, FILES[target])
    entries = "".join(f"<url><loc>{at.source.url}{target}</loc></url>" for target in targets)
    text = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</urlset>'
    at.source.put("/sitemap.xml", text.encode(), "application/xml")


@scene
def pull_with_filters(at: Scene) -> None:
    at.run(f"resourcesync pull {at.source.url} museum {THREE}")
    at.run("resourcesync pull museum -o max_size=5MB")
    at.run("resourcesync pull museum --since 2020 --exclude *.pdf")
    at.run("resourcesync pull museum -o max_size= --since '' --exclude ''")
    at.run("resourcesync pull museum --include /objects/0004.txt -n --json")
    at.run("resourcesync pull museum --include /objects/0004.txt")
    at.files("museum")
    at.run("resourcesync pull museum --include ''")
    at.run(f"resourcesync pull {at.source.url} nothing --include /objcets/*")
    at.run("resourcesync pull nothing --include '' -o max_size=0")
    at.files("nothing")


def a_day_later() -> None:
    """Let the folder of mirrors believe that it asked for the sets a day ago."""
    file = OWN / "sets.json"
    known = json.loads(file.read_text())
    known["looked"] -= 86_400_000_000
    file.write_text(json.dumps(known))


@scene
def pull_of_sets(at: Scene) -> None:
    offer_sets(at.source, SETS)
    at.run(f"resourcesync pull {at.source.url} museum")
    at.run(f"resourcesync pull {at.source.url} museum --all-sets")
    at.files("museum")
    Path("museum/maps/maps/a.txt").unlink()
    at.run("resourcesync status museum")
    at.run("resourcesync audit museum")
    at.run(f"resourcesync pull {at.source.url}/ museum -qq")
    at.refuse(f"pull {at.source.url}/other museum")
    offer_sets(at.source, {**SETS, "maps": {"/maps/a.txt": b"map a\n"}}, at=LATER)
    at.run("resourcesync pull museum -q")
    at.files("museum")
    offer_sets(at.source, {**SETS, "texts": {"/texts/b.txt": b"newer\n"}}, at=STILL_LATER)
    at.source.answers["/rs/maps/resourcelist.xml"] = Answer(body=b"<urlset")
    at.run("resourcesync pull museum -q")
    at.files("museum")
    known = json.loads((OWN / "sets.json").read_text())
    for damaged in (
        {**known, "sets": [{"uri": "u", "folder": "../elsewhere"}]},
        {**known, "sets": [{"uri": "u", "folder": ".resourcesync"}]},
        {**known, "sets": [*known["sets"], known["sets"][0]]},
        {**known, "version": 2},
        "?",
    ):
        (OWN / "sets.json").write_text(json.dumps(damaged))
        at.refuse("pull museum", "status museum", "audit museum")


@scene
def pull_of_one_set(at: Scene) -> None:
    url = at.source.url
    offer_sets(at.source, SETS)
    at.run(f"resourcesync pull {url} museum --set texts")
    at.refuse(f"pull {url} museum --set maps", f"pull {url} museum --set nonsense")
    at.refuse("pull museum --set nonsense", f"pull {url} museum --all-sets")
    at.run("resourcesync pull museum --set texts")
    at.run(f"resourcesync pull {url} some --set maps -q")
    at.refuse(f"pull museum --moved {url}")
    offer_sets(at.source, {"maps": {"/maps/a.txt": b"map a\n"}}, at=LATER)
    for name in ("capabilitylist", "resourcelist"):
        del at.source.answers[f"/rs/texts/{name}.xml"]
    at.run("resourcesync pull museum")
    at.run("resourcesync pull museum --mode baseline")
    at.files("museum")


@scene
def pull_of_two_sitemaps(at: Scene) -> None:
    at.source.answers.clear()
    for name in ("news", "pages"):
        at.source.put(f"/{name}.html", name.encode())
        at.source.put(
            f"/{name}.xml",
            '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
            f"<url><loc>{at.source.url}/{name}.html</loc></url></urlset>".encode(),
        )
    at.source.put("/robots.txt", b"Sitemap: /news.xml\nSitemap: /pages.xml\n")
    at.run(f"resourcesync pull {at.source.url} site")
    at.files("site")
    at.run(f"resourcesync pull {at.source.url} sets --all-sets -q")
    at.files("sets")
    at.source.put("/docs/", b"<!doctype html><title>x</title>")
    at.run(f"resourcesync pull {at.source.url}/docs/ docs")
    at.run(f"resourcesync explore {at.source.url}")
    at.run(f"resourcesync validate {at.source.url}/news.xml --profile sitemap")
    at.run(f"resourcesync why {at.source.url}")
    at.run(f"resourcesync why {at.source.url} --json")


@scene
def pull_of_a_sitemap_that_lists_less(at: Scene) -> None:
    offer_sitemap(at, *FEW)
    at.silently(f"resourcesync pull {at.source.url}/sitemap.xml museum")
    offer_sitemap(at, *FEW[1:])
    at.run("resourcesync pull museum -n")
    at.run("resourcesync pull museum")
    at.run("resourcesync status museum")
    for method in ("lists", "stat", "hash"):
        at.run(f"resourcesync audit museum --method {method}")
    at.run("resourcesync audit museum --json")
    at.run("resourcesync repair museum")
    at.run("resourcesync repair museum --delete --max-delete 0")
    at.files("museum")
    at.run("resourcesync repair museum --delete --max-delete 1")
    at.run("resourcesync trash list museum")
    at.run("resourcesync audit museum")


@scene
def pull_3_of_a_file_that_was_edited_here(at: Scene) -> None:
    at.pulled()
    Path(f"museum{ONE}").write_text("my notes")
    at.offer({ONE: None})
    at.run("resourcesync pull museum")
    at.run("resourcesync pull museum --delete never")
    at.run("resourcesync pull museum --delete auto --json")
    at.files("museum")


@scene
def pull_into_what_is_published(at: Scene) -> None:
    at.silently(f"resourcesync publish public --url {at.source.url}")
    before = files_of(Path("public"))
    at.refuse(f"pull {at.source.url} public")
    at.requests()
    at.note(f"as before: {files_of(Path('public')) == before}")
    at.pulled()
    at.silently("resourcesync publish museum --url http://other.example/")
    at.run("resourcesync pull museum")  # a mirror that is published again goes on


@scene
def pull_of_a_source_that_moved(at: Scene) -> None:
    at.pulled()
    with TinySource() as second:
        second.offer(FILES, at=LATER)
        moved = f"--moved {second.url}"
        at.run(f"resourcesync pull {second.url} museum")
        at.run(f"resourcesync pull museum {moved} -n")
        at.run(f"resourcesync pull museum {moved}")
        at.run("resourcesync pull museum")
        at.refuse(f"pull {at.source.url} museum {moved}", f"pull --all {moved}")
        at.note(f"fetched again: {FILES.keys() & {asked.target for asked in second.asked}}")


@scene
def pull_3_of_a_list_that_was_cut(at: Scene) -> None:
    at.pulled()
    at.source.offer(dict(list(FILES.items())[:5]))  # of the same moment
    at.run("resourcesync pull museum --mode baseline")
    at.run("resourcesync audit museum")
    at.run("resourcesync pull museum --mode baseline --json")
    at.run("resourcesync why cut-list")


@scene
def pull_of_a_source_that_was_restored(at: Scene) -> None:
    at.source.offer_changes()
    at.pulled()
    at.source.put("/new.txt", b"new")
    at.source.offer_changes(at.source.change("created", "/new.txt", b"new", at=STILL_LATER))
    at.silently("resourcesync pull museum")
    at.source.offer(FILES, at=LATER)
    at.source.offer_changes()
    at.source.has_clock = True
    for command in (
        "pull museum",
        "pull museum --mode baseline -q",
        "pull museum",
        "status museum",
    ):
        at.run(f"resourcesync {command}")
    del at.source.answers["/new.txt"]
    at.run("resourcesync pull museum --mode baseline")


@scene
def pull_10(at: Scene) -> None:
    at.pulled()
    at.run("resourcesync pull museum --max-duration 0s")
    at.run("resourcesync pull museum --max-duration 0s --json")
    at.files("museum")
    at.run(f"resourcesync pull {at.source.url} new --max-duration 0s")
    at.files("new")


@scene
def trash(at: Scene) -> None:
    at.pulled()
    at.offer({ONE: None, FEW[1]: None})
    at.silently("resourcesync pull museum")
    at.run("resourcesync trash list museum")
    at.run("resourcesync trash list museum 0002* --json")
    at.run("resourcesync trash list museum nowhere*")
    at.run("resourcesync trash restore museum nowhere* -n")
    at.run("resourcesync trash list museum --older-than 1d")
    at.run("resourcesync trash restore museum --all -n")
    at.run("resourcesync trash empty museum 0001* -n")
    at.refuse("trash empty museum", "trash empty museum x --all", "trash restore museum [a-z]")
    at.refuse("trash restore museum nothing*", "trash list elsewhere")
    at.refuse("trash restore elsewhere --all")
    with MirrorFolder(Path("museum"), SystemClock()):
        at.refuse("trash restore museum --all", "trash empty museum --all")
        at.run("resourcesync trash list museum")
    for _ in range(2):
        at.run(f"resourcesync trash restore museum {ONE}")
    at.run("resourcesync audit museum")
    at.run("resourcesync pull museum --delete absent")
    at.run("resourcesync pull museum --mode baseline --delete absent")
    at.files("museum")
    at.run("resourcesync trash empty museum --older-than 1d")
    at.run("resourcesync trash empty museum --all --json")
    at.run("resourcesync trash list museum")


@scene
def trash_3(at: Scene) -> None:
    at.pulled()
    at.offer({ONE: None, FEW[1]: None, FEW[2]: None})
    at.silently("resourcesync pull museum --max-delete 3")
    Path(f"museum{ONE}").write_text("mine")
    next(Path(OWN, "trash").glob("*0002.txt")).write_bytes(b"no  bytes")
    at.run("resourcesync trash restore museum --all")
    at.run("resourcesync trash restore museum --all --json")
    Path(OWN, "trash/0123456789abcdef-x.txt").write_bytes(b"of a later state")
    at.run("resourcesync trash list museum")
    at.run("resourcesync trash empty museum --all")
    at.files("museum")


@scene
def repair(at: Scene) -> None:
    at.pulled()
    spoil("museum")
    at.run("resourcesync repair museum -n -i --delete")
    at.silently("resourcesync audit museum")
    (kept,) = (OWN / "reports").iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(whole[:-9])
    at.run("resourcesync repair museum --from-audit last")
    kept.write_bytes(whole)
    at.run("resourcesync repair museum --from-audit last -i")
    at.run("resourcesync audit museum")
    at.files("museum")


@scene
def pull_of_all_sets_a_day_later(at: Scene) -> None:
    offer_sets(at.source, SETS)
    at.pulled("--all-sets")
    offer_sets(at.source, {**SETS, "films": {"/films/f.txt": b"film\n"}})
    at.run("resourcesync pull museum -q")
    at.files("museum")
    a_day_later()
    at.run("resourcesync pull museum -q")
    at.files("museum")
    offer_sets(at.source, {**SETS, "films": {"/films/f.txt": b"film\n"}, "coins": {"/c": b"c"}})
    at.run(f"resourcesync pull {at.source.url} museum --all-sets -q")
    at.files("museum/coins")
    offer_sets(at.source, {"maps": SETS["maps"]})
    for name in ("capabilitylist", "resourcelist"):
        del at.source.answers[f"/rs/texts/{name}.xml"]
    a_day_later()
    at.run("resourcesync pull museum")
    at.files("museum")


@scene
def pull_of_sets_of_which_nobody_tells(at: Scene) -> None:
    offer_sets(at.source, SETS)
    for name in SETS:
        at.source.answers[f"/rs/{name}/capabilitylist.xml"] = Answer(status=404)
    at.run(f"resourcesync pull {at.source.url} museum --all-sets -q")
    at.files("museum")
    offer_sets(at.source, SETS)
    at.pulled("--all-sets")
    a_day_later()
    at.source.answers["/.well-known/resourcesync"] = Answer(status=410)
    del at.source.answers["/rs/texts/capabilitylist.xml"]
    at.run("resourcesync pull museum")
    at.files("museum")
