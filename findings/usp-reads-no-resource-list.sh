#!/bin/sh
# ultimate-sitemap-parser gives no page of a ResourceSync Resource List, whose rs:md stands before its pages.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet ultimate-sitemap-parser==1.8.1
env/bin/python - <<'PROGRAM'
from usp.tree import sitemap_from_str

LIST = """<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
 xmlns:rs="http://www.openarchives.org/rs/terms/">{}
<url><loc>https://site.invalid/a</loc></url></urlset>"""


def pages(text: str) -> list[str]:
    return [page.url for page in sitemap_from_str(text).all_pages()]


plain = pages(LIST.format(""))
marked = pages(LIST.format('<rs:md capability="resourcelist" at="2024-01-02T00:00:00Z"/>'))
print("ultimate-sitemap-parser 1.8.1: of the sitemap", plain, "of the Resource List", marked)
raise SystemExit(0 if plain and not marked else 1)
PROGRAM
