#!/bin/sh
# sphinx-sitemap lists only the pages that the last build wrote: after an edit, unchanged pages are no longer in the sitemap.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet sphinx==8.2.3 sphinx-sitemap==2.9.0
mkdir docs
printf 'Index\n=====\n\n.. toctree::\n\n   stays\n   changes\n' >docs/index.rst
printf 'Stays\n=====\n' >docs/stays.rst
printf 'Changes\n=======\n' >docs/changes.rst
printf 'extensions = ["sphinx_sitemap"]\nhtml_baseurl = "https://site.invalid/"\nsitemap_url_scheme = "{link}"\n' >docs/conf.py
env/bin/sphinx-build -q -b html docs out
grep -q '<loc>https://site.invalid/stays.html' out/sitemap.xml
sleep 1
printf '\nnew text\n' >>docs/changes.rst
env/bin/sphinx-build -q -b html docs out
echo "sphinx-sitemap 2.9.0 lists after an edit: $(grep -o '<loc>[^<]*' out/sitemap.xml | tr '\n' ' ')"
test -e out/stays.html
grep -q '<loc>https://site.invalid/changes.html' out/sitemap.xml
! grep -q 'stays.html' out/sitemap.xml
