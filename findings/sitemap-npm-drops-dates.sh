#!/bin/sh
# sitemap (npm) gives a page without its date when that has fractions of a second in other than three digits.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init --yes >/dev/null
npm install --silent --no-audit --no-fund sitemap@9.0.1
cat >read.mjs <<'PROGRAM'
import { Readable } from "node:stream";
import { XMLToSitemapItemStream } from "sitemap";

const head = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">';
let kept = "";
for (const fraction of ["", ".1", ".123", ".123456"]) {
  const date = `2024-01-02T03:04:05${fraction}Z`;
  const page = `<url><loc>https://site.invalid/a</loc><lastmod>${date}</lastmod></url>`;
  const list = Readable.from([`${head}${page}</urlset>`]);
  for await (const item of list.pipe(new XMLToSitemapItemStream({ logger: false }))) {
    console.log(`sitemap 9.0.1 reads ${date} as ${item.lastmod}`);
    kept += item.lastmod === undefined ? "-" : "+";
  }
}
process.exit(kept === "+-+-" ? 0 : 1);
PROGRAM
node read.mjs
