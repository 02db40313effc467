#!/bin/sh
# fastapi-sitemap gives every page the day of the start as its date.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet fastapi-sitemap==1.0.4 fastapi==0.115.12 httpx==0.28.1
env/bin/python - <<'PROGRAM'
import datetime, re
from fastapi import FastAPI
from fastapi.testclient import TestClient
from fastapi_sitemap import SiteMap

app = FastAPI()
app.add_api_route("/a", lambda: 1)
app.add_api_route("/b", lambda: 2)
SiteMap(app=app, base_url="https://site.invalid").attach()
text = TestClient(app).get("/sitemap.xml").text
days = re.findall("<lastmod>([^<]*)", text)
print("fastapi-sitemap 1.0.4:", *days)
today = {datetime.date.today().isoformat(), datetime.datetime.now(datetime.UTC).date().isoformat()}
assert len(days) >= 2 and set(days) <= today
PROGRAM
