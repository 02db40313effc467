#!/bin/sh
# mdbook-sitemap-generator makes httpss:// of a domain that is given with https://, and lists each page as "urls", which is no element of sitemaps.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
cargo install --quiet --locked --debug --root env mdbook-sitemap-generator@0.2.0 2>/dev/null
mkdir src
echo '- [Page](page.md)' >src/SUMMARY.md
echo '# Page' >src/page.md
env/bin/mdbook-sitemap-generator --domain https://site.invalid >sitemap.xml
echo "mdbook-sitemap-generator 0.2.0: $(grep -o '<urls><loc>[^<]*page[^<]*' sitemap.xml)"
grep -q '<urls><loc>httpss://site.invalid/page.html<' sitemap.xml
! grep -q '<url>' sitemap.xml
