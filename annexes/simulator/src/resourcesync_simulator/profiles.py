"""Scenarios to start with: each is the text of a file that an operator edits."""

from typing import Final

_HEAD: Final = """\
# A scenario of a simulation. Everything follows from the seed.
# {about}
seed = 1
{start}duration = "{duration}"
scale = {scale}  # of the numbers of resources and changes; 1 is the real size

[source]
resources = {resources}
sizes = {{ median = {median}, spread = {spread} }}  # bytes, log-normal
media_types = {types}
{changes}
create = {create}
update = {update}
delete = {delete}

[publish]
strategy = "changes"  # or "lists": a new Resource List each time
every = "{every}"
rotate = "{rotate}"  # close a Change List at this age
rebase = "{rebase}"  # write a new Resource List at this age
keep = "{keep}"  # remove closed Change Lists at this age
push = {push}  # notify Destinations of each publication
dumps = false  # also a Resource Dump and a Change Dump
dump_every = "1d"

[[destination]]
name = "{name}"
every = "{pull}"
dumps = "auto"  # or "never", "always"
jobs = 8
latency = "{latency}"
bandwidth = "10M"  # bytes a second

[faults]  # rates of requests, 0 to 1
lost = 0.0
failed = 0.0
stale = 0.0
# outages = ["2d..5d"]

# Several values with one name, for a sweep: variant=daily-lists,hourly,five-minutes,push
[variant.daily-lists]
publish = {{ strategy = "lists", every = "1d", push = false }}
destination = {{ every = "1d" }}

[variant.hourly]
publish = {{ strategy = "changes", every = "1h", push = false }}
destination = {{ every = "1h" }}

[variant.five-minutes]
publish = {{ strategy = "changes", every = "5m", push = false }}
destination = {{ every = "5m" }}

[variant.push]
publish = {{ strategy = "changes", every = "1m", push = true }}
destination = {{ every = "1h" }}  # even without a notification
"""


def _profile(**values: object) -> str:
    usual: dict[str, object] = {
        "start": "",
        "scale": "1.0",
        "median": 8_000,
        "spread": 1.2,
        "types": '["text/html"]',
        "create": 0.2,
        "update": 0.75,
        "delete": 0.05,
        "rotate": "1d",
        "rebase": "7d",
        "keep": "7d",
        "push": "false",
        "name": "mirror",
        "latency": "0.05s",
    }
    return _HEAD.format(**{**usual, **values})


PROFILES: Final[dict[str, str]] = {
    "museum": _profile(
        about="A museum's collection: changes all day long.",
        duration="7d",
        resources=10_000,
        changes='changes = "20/h"',
        every="1h",
        pull="1h",
    ),
    "arxiv": _profile(
        about="arXiv, as reported in 2013: 2.4 million resources; 1,800 change at 20:00 US Eastern"
        " time,\n# Sunday to Thursday; one Change List a day, half an hour later.",
        start='start = "2026-01-04T01:32:30Z"\n',
        duration="14d",
        scale="0.01",
        resources=2_400_000,
        median=12_000,
        types='["application/pdf", "text/xml"]',
        changes='bursts = [{ at = "20:00", zone = "America/New_York", days = "sun-thu",'
        " changes = 1800 }]",
        create=0.3,
        update=0.69,
        delete=0.01,
        every="1d",
        keep="30d",
        rebase="30d",
        pull="1d",
    ),
    "wikipedia": _profile(
        about="English Wikipedia, as reported in 2013: 4 million articles, 1.4 changes a second;"
        "\n# Change Lists every few minutes.",
        duration="1d",
        scale="0.002",
        resources=4_000_000,
        median=6_000,
        changes='changes = "1.4/s"',
        create=0.02,
        update=0.975,
        delete=0.005,
        every="5m",
        rotate="1h",
        push="true",
        pull="5m",
    ),
    "dbpedia-live": _profile(
        about="DBpedia Live: 3.77 million things, two changes a second, each with a notification.",
        duration="1d",
        scale="0.002",
        resources=3_770_000,
        median=3_000,
        types='["application/n-triples"]',
        changes='changes = "2/s"',
        create=0.05,
        update=0.94,
        delete=0.01,
        every="1m",
        rotate="1h",
        push="true",
        pull="5m",
    ),
}
"""The texts by name. Sizes and rates of all but the museum are those reported in 2013."""
