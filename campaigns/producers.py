"""Producers of sitemaps are built again from recipes, and compared with what is recorded of them.

``campaigns/producers.toml`` has the recipes: pinned packages, the files of a small site, how it is
built. Each site is built, served and pulled into an empty folder; a page is edited, the site built
and pulled again, and into another empty folder: what is seen must be what ``docs/producers.toml``
records. What cannot be installed is missing, not passed. Days as dates move at midnight.
"""

import os
import sys
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from docs.producers_text import Producer, recorded

from campaigns.foreign_clients import ClientError, SetupError, run_program
from campaigns.outcome import Asked, Campaign, Outcome
from resourcesync import discover
from tests.support.commands.run import resourcesync
from tests.support.servers.listening import static

_TOML: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


class Recipe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a site is built; ``@BASE@`` in it is the address from which it is served."""

    name: str
    files: Mapping[str, str]
    build: str
    served: str
    edit: str
    page: str
    pip: tuple[str, ...] = ()
    npm: tuple[str, ...] = ()
    cargo: tuple[str, ...] = ()
    apt: tuple[str, ...] = ()
    entry: str = "/"


RECIPES: Final = msgspec.convert(_TOML["recipe"], list[Recipe])


class Seen(NamedTuple):
    """What was seen; of ``old`` copies, ``wrong`` are those whose date moved or that have none."""

    pages: int
    here: int
    again: int
    moves: str
    old: int
    wrong: list[str]


def run(asked: Asked) -> Outcome:
    """Build, pull and compare so many producers as asked."""
    outcome, built = Outcome(), 0
    records = {row.name: row for row in recorded()}
    for number, recipe in enumerate(RECIPES[: asked.size]):
        try:
            seen = measure(recipe, asked.folder / str(number))
        except SetupError as error:
            outcome.add(f"{recipe.name} is missing", str(error)[:200])
            continue
        except (ClientError, OSError) as error:
            outcome.require(None, f"{recipe.name} was not built and pulled: {error}")
        else:
            outcome.add(recipe.name, f"{seen.here} of {seen.pages}, {seen.moves}, {seen.old} old")
            outcome.violations += differences(records[recipe.name], seen)
        built += 1
    outcome.tried = built
    if not built:
        outcome.missing = "no producer can be installed here"
    return outcome


def differences(record: Producer, seen: Seen) -> list[str]:
    """Return what is not as recorded, and what no pull may do."""
    found = [f"a pull left {uri} as it was" for uri in seen.wrong]
    for field in ("pages", "here", "again", "moves"):
        said, now = getattr(record, field), getattr(seen, field)
        if said != now:
            found.append(f"{field}: recorded {said!r}, seen {now!r}")
    return [f"{record.name}: {text}" for text in found]


def _install(recipe: Recipe, folder: Path) -> Mapping[str, str]:
    """Install the packages, those of ``apt`` for the whole machine; return the variables."""
    site, env = folder / "site", folder / "env"
    found = f"{env / 'bin'}:{site / 'node_modules' / '.bin'}:{os.environ['PATH']}"
    variables = {"PATH": found, **_TOML["environment"]}
    commands: list[tuple[list[str | Path], tuple[str, ...]]] = [
        (["apt-get", "install", "-qy", "--no-install-recommends"], recipe.apt),
        (["cargo", "install", "-q", "--locked", "--debug", "--root", env], recipe.cargo),
        ([env / "bin" / "pip", "install", "-q"], recipe.pip),
        (["npm", "install", "--silent", "--no-audit", "--prefix", site], recipe.npm),
    ]
    try:
        if recipe.pip:
            run_program([sys.executable, "-m", "venv", env], cwd=site)
        for command, packages in commands:
            if packages:
                run_program([*command, *packages], cwd=site, **variables)
    except ClientError as error:
        raise SetupError(str(error)) from error
    return variables


def measure(recipe: Recipe, folder: Path) -> Seen:
    """Install a producer, build its site and pull it, and both again after an edit."""
    site, variables = folder / "site", _install(recipe, folder)
    with static(site / recipe.served) as base:
        build = ["sh", "-ec", recipe.build.replace("@BASE@", base)]
        for name, text in recipe.files.items():
            path = site / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.replace("@BASE@", base))
            os.utime(path, (1_700_000_000, 1_700_000_000))  # days before the edit
        run_program(build, cwd=site, **variables)
        listed, before = _pull(folder, base + recipe.entry, "mirror")
        time.sleep(1.1)  # so that a date in seconds is another one
        with (site / recipe.edit).open("a") as file:
            file.write("\nedited\n")
        run_program(build, cwd=site, **variables)
        _, mirror = _pull(folder, base + recipe.entry, "mirror")
        again, after = _pull(folder, base + recipe.entry, "empty")
    page, both = base + recipe.page, listed.keys() & again.keys()
    if before.get(page) == after.get(page):
        raise ClientError(f"no edit of {recipe.page} was seen in {sorted(before)}")
    moved = {uri for uri in both if listed[uri] != again[uri]}
    old = {uri for uri in after if mirror.get(uri) != after[uri]}
    wrong = [uri for uri in sorted(old) if uri in moved or not again[uri]]
    moves = "all" if moved == both else "page" if page in moved else "none"
    return Seen(len(listed), len(before), len(again), moves, len(old), wrong)


def _pull(folder: Path, source: str, copies: str) -> tuple[Mapping[str, object], dict[str, str]]:
    """Pull; return the date of each listed page, and the hash of each copy."""
    pulled = resourcesync("pull", source, copies, "--json", cwd=folder)
    if pulled.code not in (0, 3):  # 3: some pages did not arrive
        raise ClientError(f"pull ended with {pulled.code}: {pulled.said[-300:]}")
    kept = resourcesync("list", copies, "--json", cwd=folder).events("copy")
    dates = {page.uri: page.lastmod for page in discover(source).resources()}
    return dates, {copy["uri"]: copy["hash"] for copy in kept}


CAMPAIGN: Final = Campaign(run=run, size=len(RECIPES), unit="producers", most=len(RECIPES))
