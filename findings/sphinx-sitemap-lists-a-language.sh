#!/bin/sh
# sphinx-sitemap with its one required setting lists each page below /en/, where Sphinx builds none.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet sphinx==8.2.3 sphinx-sitemap==2.9.0
mkdir docs
printf 'Title\n=====\n' >docs/index.rst
printf 'extensions = ["sphinx_sitemap"]\nhtml_baseurl = "https://site.invalid/"\n' >docs/conf.py
env/bin/sphinx-build -q -b html docs out
echo "sphinx-sitemap 2.9.0 lists: $(grep -o '<loc>[^<]*index[^<]*' out/sitemap.xml)"
grep -q '<loc>https://site.invalid/en/index.html' out/sitemap.xml
test ! -e out/en
