#!/bin/sh
# flask-sitemap lists the address of the sitemap itself as a page.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet flask-sitemap==0.4.0 flask==3.0.3
env/bin/python - <<'PROGRAM'
from flask import Flask
from flask_sitemap import Sitemap

app = Flask("site")
app.config["SITEMAP_INCLUDE_RULES_WITHOUT_PARAMS"] = True
app.config["SERVER_NAME"] = "site.invalid"
Sitemap(app=app)
app.add_url_rule("/page", "page", lambda: "page")
text = app.test_client().get("/sitemap.xml").get_data(as_text=True)
print("flask-sitemap 0.4.0 lists:", *[line.strip() for line in text.splitlines() if "<loc>" in line])
assert "/sitemap.xml</loc>" in text
PROGRAM
