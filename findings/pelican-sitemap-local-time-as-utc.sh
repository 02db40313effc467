#!/bin/sh
# pelican-sitemap writes the local time of the build, with the offset of the site's TIMEZONE: a wrong moment.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet pelican[markdown]==4.10.2 pelican-sitemap==1.2.2
mkdir content
printf 'Title: One\nDate: 2024-01-02 10:00\n\ntext\n' >content/one.md
cat >conf.py <<'PROGRAM'
SITEURL = "https://site.invalid"
PATH = "content"
TIMEZONE = "UTC"
PLUGINS = ["pelican.plugins.sitemap"]
SITEMAP = {"format": "xml"}
PROGRAM
export TZ=Etc/GMT-9
env/bin/pelican --quiet content -s conf.py -o out
shown=$(grep -A1 '<loc>https://site.invalid/</loc>\|<loc>https://site.invalid/index.html</loc>\|authors.html' out/sitemap.xml | grep -o '<lastmod>[^<]*' | head -n 1)
echo "pelican-sitemap 1.2.2: $shown, built at $(date -u +%H:%M) UTC, $(date +%H:%M) local"
grep -q "T$(date +%H):.*[-+]00:00" out/sitemap.xml
