#!/bin/sh
# The sitemap plugin of Eleventy gives each page the time its source was created: an edit keeps the date.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init --yes >/dev/null
npm install --silent --no-audit --no-fund @11ty/eleventy@3.1.8 @quasibit/eleventy-plugin-sitemap@2.2.0
mkdir src
printf -- '---\npermalink: /sitemap.xml\neleventyExcludeFromCollections: true\n---\n{%% sitemap collections.all %%}\n' >src/map.njk
echo first >src/page.md
cat >.eleventy.js <<'PROGRAM'
const sitemap = require("@quasibit/eleventy-plugin-sitemap");
module.exports = (config) => {
  config.addPlugin(sitemap, { sitemap: { hostname: "https://site.invalid" } });
  return { dir: { input: "src", output: "out" } };
};
PROGRAM
npx eleventy --quiet
before=$(grep -o '<lastmod>[^<]*' out/sitemap.xml)
sleep 2
echo second >>src/page.md
npx eleventy --quiet
after=$(grep -o '<lastmod>[^<]*' out/sitemap.xml)
grep -q second out/page/index.html
echo "@quasibit/eleventy-plugin-sitemap 2.2.0: $before before the edit, $after after it"
test -n "$before"
test "$before" = "$after"
