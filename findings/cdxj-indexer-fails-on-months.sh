#!/bin/sh
# cdxj-indexer ends with a TypeError at a record that is dated to the month, as WARC 1.1 allows; a date of a day is read.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet cdxj-indexer==1.5.0 warcio==1.8.1
for date in 2024-01-02 2024-01; do
  printf 'WARC/1.1\r\nWARC-Type: resource\r\nWARC-Date: %s\r\nWARC-Record-ID: <urn:uuid:1d4c1e0e-8a5c-4b4e-9d3c-0f6f5f3b2a10>\r\nWARC-Target-URI: http://site.invalid/\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\npage\r\n\r\n' $date >$date.warc
done
echo "cdxj-indexer 1.5.0, 2024-01-02: $(env/bin/cdxj-indexer 2024-01-02.warc | cut -d ' ' -f 1,2)"
if env/bin/cdxj-indexer 2024-01.warc >lines 2>said; then exit 1; fi
echo "cdxj-indexer 1.5.0, 2024-01: $(tail -n 1 said)"
tail -n 1 said | grep -q '^TypeError'
