#!/bin/sh
# Sickle and oaipmh-scythe end with a ValueError if a busy repository says with a date when to come back; seconds are obeyed.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet sickle==0.7.0 oaipmh-scythe==0.16.0
env/bin/python -W ignore - 2>/dev/null <<'PROGRAM'
import threading
import time
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, HTTPServer

from oaipmh_scythe import Scythe
from sickle import Sickle

LIST = b"""<?xml version="1.0" encoding="UTF-8"?>
<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><responseDate>2024-01-02T00:00:00Z</responseDate>
<request verb="ListIdentifiers">http://127.0.0.1/</request><ListIdentifiers><header>
<identifier>oai:site.invalid:1</identifier><datestamp>2024-01-02</datestamp>
</header></ListIdentifiers></OAI-PMH>"""
waits = []


class Repository(BaseHTTPRequestHandler):
    def do_GET(self):
        wait = waits.pop() if waits else None
        self.send_response(503 if wait else 200)
        if wait:
            self.send_header("Retry-After", wait)
        self.send_header("Content-Type", "text/xml; charset=utf-8")
        self.end_headers()
        self.wfile.write(b"" if wait else LIST)

    def log_message(self, *_):
        pass


def sickle():
    return list(Sickle(base, max_retries=2).ListIdentifiers(metadataPrefix="oai_dc"))


def scythe():
    with Scythe(base, max_retries=2) as client:
        return list(client.list_identifiers(metadata_prefix="oai_dc"))


server = HTTPServer(("127.0.0.1", 0), Repository)
base = f"http://127.0.0.1:{server.server_port}/oai"
threading.Thread(target=server.serve_forever, daemon=True).start()
seen = []
for client, version in ((sickle, "Sickle 0.7.0"), (scythe, "oaipmh-scythe 0.16.0")):
    for wait in ("1", formatdate(time.time() + 1, usegmt=True)):
        waits[:] = [wait]
        try:
            seen.append(f"{len(client())} header")
        except ValueError as error:
            seen.append(type(error).__name__)
        print(f"{version}, Retry-After: {wait}: {seen[-1]}")
raise SystemExit(0 if seen == ["1 header", "ValueError"] * 2 else 1)
PROGRAM
