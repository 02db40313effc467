"""The commands of remedies: what an operator types to do what an error of the library advises."""

import re
import shlex
from collections.abc import Mapping
from typing import Final

from resourcesync.errors import Evidence, Remedy

COMMANDS: Final[Mapping[str, str]] = {
    # a mirror
    "pull-address": "resourcesync pull {value|https://HOST/}",
    "pull-from": "resourcesync pull {value|https://HOST/} {target|DIR}",
    "pull-all-sets": "--all-sets",
    "choose-sets": "--set NAME",
    "choose-set": (
        "resourcesync pull {value|https://HOST/} {target|DIR} --set {choice|NAME}, or"
        " resourcesync pull {value|https://HOST/} {target|DIR} --all-sets"
    ),
    "follow-move": "resourcesync pull {target|MIRROR} --moved {value|https://HOST/}",
    "baseline": "resourcesync pull {target|MIRROR} --mode baseline",
    "exclude": "resourcesync pull {target|MIRROR} --exclude GLOB",
    "allow-origin": "--allow-origin {value|URL}",
    "select": "--include {value|GLOB}",
    "limit-rate": "--rate {value|N/h}",
    "wait-longer": "--timeout {value|10m}",
    "limit-size": "--max-size {value|5M}",
    "map-paths": "--map {value|MAPPER}",
    "ignore-robots": "--robots ignore",
    "state-elsewhere": "--state DIR",
    "audit": "resourcesync audit {target|MIRROR}",
    "audit-offline": "resourcesync audit {target|MIRROR} --offline",
    "empty-trash": "resourcesync trash empty {target|MIRROR} --all",
    "read-all-changes": "resourcesync changes {target|MIRROR} --since start",
    "restart-consumer": ("resourcesync changes {target|MIRROR} --consumer {value|NAME} --restart"),
    # connections and secrets
    "name-authorities": "--ca-file FILE",
    "name-proxy": "--proxy {value|URL}",
    "log-in-to-proxy": "--proxy-auth NAME (with a table [auth.NAME])",
    "name-secret": "--auth NAME",
    "one-secret": "--auth NAME, or --header 'NAME: VALUE'",
    "name-configuration": "--config {value|FILE}",
    # options of another system or of a table
    "set-option": "--with {value|KEY=VALUE}",
    "log-in": "--with user=NAME --with password=env:NAME",
    "log-in-or-key": ("--with user=NAME --with password=env:NAME, or --with api_key=env:NAME"),
    "log-in-or-secret": ("--with user=NAME --with password=env:NAME, or --auth NAME (over http)"),
    "choose-pages": "--with namespace=0,14 --with uri=https://HOST/{wiki}/{title}",
    "choose-resource-set": "--with resource_set=NAME, or --allow-empty",
    "name-table": "--with table=SCHEMA.NAME, or --with query='SELECT …'",
    "name-uri": "--with uri=COLUMN, or --with 'uri=https://HOST/{COLUMN}'",
    "elasticsearch-mapping": "resourcesync config elasticsearch (prints it)",
    "postgres-log": "resourcesync config postgres (prints it)",
    "postgres-reader": "resourcesync config postgres --with reader=ROLE (prints it)",
    # publishing
    "publish": "resourcesync publish {target|DIR} --url {value|https://HOST/}",
    "publish-input": "resourcesync publish {target|INPUT} --out {value|DIR}",
    "publish-again": "resourcesync publish {target|DIR}",
    "publish-into": "resourcesync publish {target|DIR} --url https://HOST/ --out {value|FOLDER}",
    "publish-elsewhere": "--out DIR, or --state DIR",
    "write-elsewhere": "--out DIR",
    "begin-anew": "--out DIR, or --initialise",
    "write-no-robots": "--no-robots",
    "allow-empty": "--allow-empty",
    "rebase": "--rebase",
    "close-change-lists": "--change-lists per-run, or --change-lists archive",
    "choose-version": "--dialect {value|VERSION}",
    "store-versions": "--versions",
    "hash": "--hash {value|ALGORITHM}",
    "name-hub": "resourcesync publish {target|DIR} --hub {value|https://HOST/hub}",
    "notify-hub": "resourcesync publish {target|DIR} --hub {value|https://HOST/hub} --notify",
    "import-catalogue": "resourcesync catalogue import {target|CATALOGUE} {value|FILE}",
    "check-catalogue": "resourcesync catalogue check {target|CATALOGUE}",
    "post-changes": "resourcesync catalogue post {target|CATALOGUE} {value|FILE}",
    # documents, plug-ins and simulations
    "explore": "resourcesync explore {target|URL}",
    "validate": "resourcesync validate {target|URL}",
    "list-plugins": "resourcesync doctor --plugins",
    "fewer-jobs": "--jobs 1",
    "name-base": "--base-uri http://HOST:PORT/",
    "write-profile": "resourcesync simulate init --profile museum",
}
"""The command of each remedy, or an option to add to the same command.

``{target|WORD}`` stands for the target of the remedy, or for WORD if that is unknown; ``value`` and
``choice`` likewise. ``, or`` separates alternatives, and a remark is in round brackets.
"""

_FIELD: Final = re.compile(r"\{(target|value|choice)\|([^}]*)\}")
_OR: Final = ", or "


def with_command(hint: str, remedy: Remedy | None, mirror: str = "") -> str:
    """Return a hint followed by the command or option that does what it advises."""
    template = "" if remedy is None else COMMANDS.get(remedy.name, "")
    if remedy is None or not template:
        return hint
    if "{target|MIRROR}" in template and not remedy.target:
        remedy = remedy._replace(target=mirror)
    command = _fill(template, remedy, "")
    if not hint:
        return command
    return f"{hint} {command}" if hint.endswith("?") else f"{hint}: {command}"


def choice_commands(remedy: Remedy | None) -> Evidence:
    """Return a line for each choice of a remedy, with its command."""
    if remedy is None or not remedy.choices:
        return ()
    lines: list[str] = []
    for template in COMMANDS.get(remedy.name, "").split(_OR):
        choices = remedy.choices if "{choice|" in template else ("",)
        lines += (_fill(template, remedy, choice) for choice in choices)
    return tuple(("run", line) for line in lines if line)


def warning_fields(fields: Mapping[str, object]) -> Mapping[str, object]:
    """Return the fields of a warning, with the command of its remedy in the hint."""
    remedy = fields.get("remedy")
    if not isinstance(remedy, Remedy):
        return fields
    rest = {name: value for name, value in fields.items() if name != "remedy"}
    return {**rest, "hint": with_command(str(fields.get("hint", "")), remedy)}


def _fill(template: str, remedy: Remedy, choice: str) -> str:
    known = {"target": remedy.target, "value": remedy.value, "choice": choice}

    def fill(field: re.Match[str]) -> str:
        text = known[field[1]]
        return shlex.quote(text) if text else field[2]

    return _FIELD.sub(fill, template)
