"""The bill of materials names every package that the pinned requirements install."""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def written() -> bytes:
    return subprocess.run(
        [sys.executable, ROOT / "distribution" / "sbom.py"], check=True, capture_output=True
    ).stdout


def test_the_bill_of_materials_has_each_pin_with_its_digests_and_equal_bytes() -> None:
    text = written()
    bill = json.loads(text)
    pins = (ROOT / "requirements" / "main.txt").read_text("utf-8")

    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert {(item["name"], item["version"]) for item in bill["components"]} == set(
        re.findall(r"^([\w.-]+)==([\w.]+)", pins, re.MULTILINE)
    )
    digests = [
        file["hashes"][0] for item in bill["components"] for file in item["externalReferences"]
    ]
    assert len(digests) == pins.count("--hash=sha256:") > 50
    refs = [item["bom-ref"] for item in bill["components"]]
    assert bill["dependencies"][0]["dependsOn"] == refs
    assert written() == text
