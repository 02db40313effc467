#!/bin/sh
# trafilatura takes a listed page whose name ends in .xml for a further sitemap: it is no page of its result.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet trafilatura==2.3.1 lxml-html-clean==0.4.6
env/bin/python - <<'PROGRAM'
from trafilatura.sitemaps import SitemapObject

site = "https://site.invalid"
read = SitemapObject(site, "site.invalid", [])
read.current_url = f"{site}/sitemap.xml"
read.content = f"""<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<url><loc>{site}/letter.html</loc></url>
<url><loc>{site}/letter.xml</loc></url>
</urlset>"""
read.process()
print("trafilatura 2.3.1: pages", read.urls, "further sitemaps", read.sitemap_urls)
assert read.urls == [f"{site}/letter.html"]
assert read.sitemap_urls == [f"{site}/letter.xml"]
PROGRAM
