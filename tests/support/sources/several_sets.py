"""A Source with two sets that share a resource."""

from tests.support.servers.tiny_source import STAMP, TinySource

SETS = {
    "maps": {"/maps/a.txt": b"map a\n", "/shared.txt": b"shared\n"},
    "texts": {"/texts/b.txt": b"text b\n", "/shared.txt": b"shared\n"},
}


def offer(source: TinySource, sets: dict[str, dict[str, bytes]], *, at: str = STAMP) -> None:
    for name, resources in sets.items():
        for target, body in resources.items():
            source.put(target, body)
        entries = [source.entry(target, body) for target, body in resources.items()]
        source.put_document(
            f"/rs/{name}/capabilitylist.xml",
            '<rs:md capability="capabilitylist"/>'
            f'<rs:ln rel="up" href="{source.url}/.well-known/resourcesync"/>',
            [source.pointer(f"/rs/{name}/resourcelist.xml", "resourcelist")],
        )
        source.put_document(
            f"/rs/{name}/resourcelist.xml",
            f'<rs:md capability="resourcelist" at="{at}"/>'
            f'<rs:ln rel="up" href="{source.url}/rs/{name}/capabilitylist.xml"/>',
            entries,
        )
    about = f'<rs:ln rel="describedby" href="{source.url}/about.html"/>'
    source.put_document(
        "/.well-known/resourcesync",
        '<rs:md capability="description"/>',
        [
            source.pointer(f"/rs/{name}/capabilitylist.xml", "capabilitylist").replace(
                "</url>", f"{about}</url>"
            )
            for name in sets
        ],
    )
