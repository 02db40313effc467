#!/bin/sh
# LlamaIndex's SitemapReader gives no page of a sitemap index, and no error.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv env
env/bin/pip install --quiet llama-index-readers-web==0.5.0
env/bin/python -W ignore - <<'PROGRAM'
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from llama_index.readers.web import SitemapReader

SimpleHTTPRequestHandler.log_message = lambda *_: None
server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory="."))
threading.Thread(target=server.serve_forever, daemon=True).start()
base = f"http://127.0.0.1:{server.server_address[1]}"
space = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
Path("page.html").write_text("page")
Path("part.xml").write_text(f"<urlset {space}><url><loc>{base}/page.html</loc></url></urlset>")
Path("index.xml").write_text(
    f"<sitemapindex {space}><sitemap><loc>{base}/part.xml</loc></sitemap></sitemapindex>"
)
part, index = (len(SitemapReader().load_data(f"{base}/{name}.xml")) for name in ("part", "index"))
print(f"SitemapReader 0.5.0 gives {part} page of the sitemap, {index} of its index")
raise SystemExit(0 if (part, index) == (1, 0) else 1)
PROGRAM
