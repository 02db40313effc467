"""A client of a Source in thirty lines, with one mistake if one is named.

``naive_client.py URL FOLDER [MISTAKE]``
"""

import hashlib
import sys
from pathlib import Path
from threading import Event
from urllib.error import HTTPError
from urllib.parse import unquote
from urllib.request import urlopen
from xml.etree import ElementTree as ET

URL, FOLDER, MISTAKE = sys.argv[1], Path(sys.argv[2]), (sys.argv[3:] or [""])[0]
SITEMAP = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
RS = "{http://www.openarchives.org/rs/terms/}"


def fetched(uri: str) -> bytes:
    """Return the content of a resource."""
    with urlopen(uri, timeout=10) as response:
        return bytes(response.read())


def main() -> int:
    """Make the copies; return the exit code."""
    if MISTAKE == "lazy":
        return 0
    if MISTAKE == "endless":
        Event().wait(60)
    code, names = 0, set()
    listed = ET.fromstring(fetched(f"{URL}resourcesync/resourcelist.xml"))
    for entry in listed.iter(f"{SITEMAP}url"):
        uri = entry.findtext(f"{SITEMAP}loc") or ""
        described = entry.find(f"{RS}md")
        name = unquote(uri.removeprefix(URL))
        path = FOLDER / name
        if MISTAKE != "escaping" and not path.resolve().is_relative_to(FOLDER.resolve()):
            code = 3
            continue
        try:
            content = fetched(uri)
        except HTTPError:
            code = 3
            continue
        digest = described.get("hash", "") if described is not None else ""
        if digest and f"sha-256:{hashlib.sha256(content).hexdigest()}" != digest:
            code = 3
            if MISTAKE != "trusting":
                continue
        names.add(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    for path in [path for path in FOLDER.rglob("*") if path.is_file()]:
        if path.relative_to(FOLDER).as_posix() not in names and MISTAKE != "hoarding":
            path.unlink()
    return 5 if MISTAKE == "gloomy" else 0 if MISTAKE == "cheerful" else code


sys.exit(main())
