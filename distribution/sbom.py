"""Writes the bill of materials of an installation: CycloneDX 1.6, from the pinned requirements.

``python distribution/sbom.py > resourcesync.cdx.json``. Equal inputs give equal bytes.
"""

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from uuid import NAMESPACE_URL, uuid5

ROOT: Final = Path(__file__).parents[1]
_PIN: Final = re.compile(r"([\w.-]+)==([\w.+!-]+)")
_HASH: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def components(requirements: str) -> Iterator[dict[str, Any]]:
    """Yield each pinned package, with the digests of the files that may be installed."""
    for pin in re.split(r"\n(?=\S)", requirements.strip()):
        found = _PIN.match(pin)
        if found is None:
            continue
        name = re.sub(r"[-_.]+", "-", found[1]).lower()
        address = f"pkg:pypi/{name}@{found[2]}"
        yield {
            "type": "library",
            "bom-ref": address,
            "name": name,
            "version": found[2],
            "purl": address,
            "scope": "optional" if ";" in pin.partition("--hash")[0] else "required",
            "externalReferences": [
                {
                    "type": "distribution",
                    "url": address,
                    "hashes": [{"alg": "SHA-256", "content": digest}],
                }
                for digest in _HASH.findall(pin)
            ],
        }


def bill_of_materials(root: Path) -> dict[str, Any]:
    """Return the bill of materials of a checkout."""
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    requirements = (root / "requirements" / "main.txt").read_text("utf-8")
    found = list(components(requirements))
    address = f"pkg:pypi/{project['name']}@{project['version']}"
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid5(NAMESPACE_URL, address + requirements)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": address,
                "name": project["name"],
                "version": project["version"],
                "purl": address,
                "licenses": [{"license": {"id": project["license"]}}],
            }
        },
        "components": found,
        "dependencies": [{"ref": address, "dependsOn": [item["bom-ref"] for item in found]}],
    }


if __name__ == "__main__":
    json.dump(bill_of_materials(ROOT), sys.stdout, indent=2)
    sys.stdout.write("\n")
