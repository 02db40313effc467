"""The campaign that builds producers again finds what is not as recorded; here, of a script."""

import re
from pathlib import Path

import msgspec
from docs.producers_text import Producer, recorded

from campaigns.producers import RECIPES, Recipe, differences, measure

_PAGE = "<url><loc>@BASE@/{0}</loc><lastmod>$(date -r {0} +%FT%TZ -u)</lastmod></url>"
_BUILD = f"""
mkdir -p out
cp a b out
cat >out/sitemap.xml <<END
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
{_PAGE.format("a")}{_PAGE.format("b")}{_PAGE.format("c")}
</urlset>
END
"""


def test_what_is_not_as_recorded_is_found(tmp_path: Path) -> None:
    files = dict.fromkeys("abc", "text")
    script = Recipe(name="script", files=files, build=_BUILD, served="out", edit="b", page="/b")
    seen = measure(script, tmp_path)
    right = Producer(name="script", version="1", pages=3, here=2, again=3, moves="page")
    assert differences(right, seen) == []
    assert len(differences(right, seen._replace(wrong=["b"]))) == 1
    for field in ("pages", "here", "again", "moves"):
        wrong = msgspec.structs.replace(right, **{field: "another"})
        assert [text.split(": ")[1] for text in differences(wrong, seen)] == [field]


def test_each_recipe_installs_the_version_that_is_recorded() -> None:
    records = {row.name: re.findall(r"\d[\w.-]*", row.version) for row in recorded()}
    for recipe in RECIPES:
        items = (*recipe.pip, *recipe.npm, *recipe.cargo)
        pinned = [re.split("==|@", item)[-1] for item in items]
        pinned += [re.findall(r"=(?:\d+:)?([\w.]+)", item)[0] for item in recipe.apt]
        assert pinned[: len(records[recipe.name])] == records[recipe.name], recipe.name
