#!/bin/sh
# FastWARC says that a right digest is wrong if it bears the registered name of its algorithm, sha-256; warcio passes it.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet fastwarc==2.0.0 warcio==1.8.1
env/bin/python - <<'PROGRAM'
import io
from hashlib import sha256

import fastwarc
import warcio

RECORD = (
    "WARC/1.1\r\nWARC-Type: resource\r\nWARC-Date: 2024-01-02T03:04:05Z\r\n"
    "WARC-Record-ID: <urn:uuid:1d4c1e0e-8a5c-4b4e-9d3c-0f6f5f3b2a10>\r\n"
    "WARC-Target-URI: http://site.invalid/\r\nContent-Type: text/plain\r\n"
    "WARC-Block-Digest: {}:{}\r\nContent-Length: 4\r\n\r\npage\r\n\r\n"
)
seen = {}
for name in ("sha256", "sha-256"):
    data = RECORD.format(name, sha256(b"page").hexdigest()).encode()
    fast = [
        record.verify_block_digest()
        for record in fastwarc.ArchiveIterator(io.BytesIO(data), parse_http=False)
    ]
    for record in warcio.ArchiveIterator(io.BytesIO(data), check_digests=True):
        record.content_stream().read()
        seen[name] = (*fast, record.digest_checker.passed)
    print(f"{name}: FastWARC 2.0.0 {seen[name][0]}, warcio 1.8.1 {seen[name][1]}")
raise SystemExit(0 if seen == {"sha256": (True, True), "sha-256": (False, True)} else 1)
PROGRAM
