#!/bin/sh
# hexo-generator-sitemap lists the page of a tag where no generator or theme builds it.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init --yes >/dev/null
npm install --silent --no-audit --no-fund hexo@8.1.2 hexo-generator-sitemap@3.0.1 hexo-renderer-marked@7.0.1 hexo-renderer-ejs@2.0.0
mkdir -p source/_posts themes/t/layout
printf '{"name":"site","private":true,"hexo":{"version":"8.1.2"},"dependencies":{"hexo":"8.1.2","hexo-generator-sitemap":"3.0.1","hexo-renderer-marked":"7.0.1","hexo-renderer-ejs":"2.0.0"}}' >package.json
printf 'url: https://site.invalid\ntheme: t\nsitemap:\n  path: sitemap.xml\n  tags: true\n  categories: true\n' >_config.yml
echo '<%- page.content %>' >themes/t/layout/post.ejs
printf -- '---\ntitle: one\ndate: 2024-01-02\ntags: [x]\n---\ntext\n' >source/_posts/one.md
npx hexo generate --silent
echo "hexo-generator-sitemap 3.0.1 lists: $(grep -o '<loc>[^<]*' public/sitemap.xml | tr '\n' ' ')"
grep -q '<loc>https://site.invalid/tags/x/' public/sitemap.xml
test ! -e public/tags/x/index.html
