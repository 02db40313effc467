#!/bin/sh
# sitemap-ts takes "index.html" for the end of any name: reindex.html is listed as /re.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init --yes >/dev/null
npm install --silent --no-audit --no-fund sitemap-ts@1.10.1
mkdir dist
echo page >dist/index.html
echo page >dist/reindex.html
cat >write.mjs <<'PROGRAM'
import { generateSitemap } from "sitemap-ts";
generateSitemap({ hostname: "https://site.invalid", outDir: "dist" });
PROGRAM
node write.mjs
sleep 1
echo "sitemap-ts 1.10.1 lists: $(grep -o '<loc>[^<]*' dist/sitemap.xml | tr '\n' ' ')"
grep -q '<loc>https://site.invalid/re<' dist/sitemap.xml
