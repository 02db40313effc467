"""A configuration file in the current folder, for tests of the command line."""

from pathlib import Path

from tests.support.servers.tiny_source import TinySource

AUTH = '[auth.key]\ntype = "bearer"\ntoken = { env = "THE_TOKEN" }\n'


def put(text: str, path: str = "resourcesync.toml") -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, "utf-8")


def museum(source: TinySource, more: str = "") -> str:
    return f'[mirror.museum]\nsource = "{source.url}"\ndest = "copies/museum"\n{more}\n'


def tokens(source: TinySource) -> set[str]:
    return {asked.headers.get("Authorization", "") for asked in source.asked}
