#!/bin/sh
# har2warc writes the local time of a HAR as UTC: the offset of startedDateTime is dropped.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet har2warc==1.0.4 warcio==1.8.1
cat >one.har <<'HAR'
{"log": {"version": "1.2", "creator": {"name": "hand", "version": "1"},
 "pages": [{"id": "p", "title": "p", "startedDateTime": "2024-01-03T00:30:00.000+09:00", "pageTimings": {}}],
 "entries": [{"pageref": "p", "startedDateTime": "2024-01-03T00:30:00.000+09:00", "time": 1,
  "request": {"method": "GET", "url": "http://site.invalid/", "httpVersion": "HTTP/1.1", "cookies": [],
   "headers": [], "queryString": [], "headersSize": -1, "bodySize": 0},
  "response": {"status": 200, "statusText": "OK", "httpVersion": "HTTP/1.1", "cookies": [],
   "headers": [{"name": "Content-Type", "value": "text/plain"}],
   "content": {"size": 4, "mimeType": "text/plain", "text": "page"},
   "redirectURL": "", "headersSize": -1, "bodySize": 4},
  "cache": {}, "timings": {"send": 0, "wait": 1, "receive": 0}}]}}
HAR
env/bin/har2warc one.har one.warc.gz >said 2>&1
seen=$(gzip -dc one.warc.gz | tr -d '\r' | grep -a -A 6 '^WARC-Type: response' | grep -a '^WARC-Date')
echo "har2warc 1.0.4: 2024-01-03T00:30:00.000+09:00 is $seen"
test "$seen" = "WARC-Date: 2024-01-03T00:30:00Z"
