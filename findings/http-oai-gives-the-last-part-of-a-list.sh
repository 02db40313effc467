#!/bin/sh
# HTTP::OAI (Perl) follows resumption tokens by itself; the loop of its manual then gives the identifiers of the last part only.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
pinned=libhttp-oai-perl
apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks --no-replaces --no-enhances $pinned |
  grep -E '^(lib[a-z0-9-]*-perl|libxml2)$' | grep -v "^$pinned$" | sort -u >needed
xargs apt-get download -qq $pinned=4.12-1 <needed 2>/dev/null
for package in ./*.deb; do dpkg -x "$package" root; done
PERL5LIB=$(find "$PWD/root" -type d \( -path '*/share/perl5' -o -path '*/perl5/5.*' \) -prune | tr '\n' ':')
LD_LIBRARY_PATH=$(dirname "$(find "$PWD/root" -name 'libxml2.so*' | head -n 1)")
export PERL5LIB LD_LIBRARY_PATH
cat >harvest.pl <<'PROGRAM'
use HTTP::OAI;
my $harvester = HTTP::OAI::Harvester->new(baseURL => $ARGV[0]);
my $response = $harvester->ListIdentifiers(metadataPrefix => 'oai_dc');
die $response->message if $response->is_error;
print "HTTP::OAI $HTTP::OAI::VERSION:";
while (my $id = $response->next) { print " ", $id->identifier }
print "\n";
PROGRAM
cat >serve.py <<'PROGRAM'
import subprocess, threading
from http.server import BaseHTTPRequestHandler, HTTPServer

LIST = """<?xml version="1.0" encoding="UTF-8"?>
<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><responseDate>2024-01-02T00:00:00Z</responseDate>
<request verb="ListIdentifiers">http://127.0.0.1/</request><ListIdentifiers>
<header><identifier>oai:site.invalid:{0}</identifier><datestamp>2024-01-02</datestamp></header>
<resumptionToken>{1}</resumptionToken></ListIdentifiers></OAI-PMH>"""


class Repository(BaseHTTPRequestHandler):
    def do_GET(self):
        part = LIST.format(*(2, "") if "resumptionToken=" in self.path else (1, "more"))
        self.send_response(200)
        self.send_header("Content-Type", "text/xml; charset=utf-8")
        self.end_headers()
        self.wfile.write(part.encode())

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Repository)
threading.Thread(target=server.serve_forever, daemon=True).start()
base = f"http://127.0.0.1:{server.server_port}/oai"
said = subprocess.run(["perl", "harvest.pl", base], capture_output=True, text=True).stdout
print(said, "of oai:site.invalid:1 and oai:site.invalid:2", sep="", end="\n")
raise SystemExit(0 if said == "HTTP::OAI 4.12: oai:site.invalid:2\n" else 1)
PROGRAM
python3 serve.py
