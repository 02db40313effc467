"""Scenes of questions: why, status and changes, and what is refused."""

import os
import shutil
from pathlib import Path

from resourcesync.adapters.mirror.locked_folder import MirrorFolder
from resourcesync.adapters.system import SystemClock
from resourcesync.app.mirror import Mirror
from resourcesync.app.mirror_home import pause
from tests.cli.scenes import Scene, scene
from tests.support.commands.command_line import LATER
from tests.support.commands.settings_file import AUTH
from tests.support.servers.tiny_source import Answer, dead_address

ONE = "/objects/0001.txt"
FEW = [f"/objects/000{number}.txt" for number in (1, 2, 3)]
THREE = " ".join(f"--include {name}" for name in FEW)
OWN = Path("museum/.resourcesync")


def corrupt(path: Path) -> None:
    stat = path.stat()
    path.write_bytes(path.read_bytes().swapcase())
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


@scene
def why(at: Scene) -> None:
    at.pulled()
    at.offer({ONE: b"newer\n", "/new.txt": b"new\n"})
    at.run(f"resourcesync why museum {ONE}")
    at.run("resourcesync why museum /new.txt")
    at.source.asked.clear()
    at.run(f"resourcesync why museum {ONE} --offline")
    at.requests()
    at.run("resourcesync why museum /never.txt")
    at.run("resourcesync why museum /never.txt --offline")
    at.run("resourcesync why museum https://elsewhere.example/a")
    Path("museum/notes.txt").write_text("mine")
    at.run("resourcesync why museum notes.txt")
    at.run("resourcesync why museum museum/notes.txt")
    at.source.answers.clear()
    at.run("resourcesync why museum /objects/0002.txt")
    at.run("resourcesync why museum /never.txt")
    for kind in ("config", "storage", "missing", "unreadable-file", "robots-line"):
        at.run(f"resourcesync why {kind}")


@scene
def why_of_what_went(at: Scene) -> None:
    at.pulled("--exclude objects/0003*")
    at.run("resourcesync why museum objects/0003.txt")
    at.offer({ONE: None})
    at.silently("resourcesync pull museum --max-delete 0")
    at.run(f"resourcesync why museum {ONE}")
    at.silently("resourcesync pull museum --max-delete 1")
    at.run(f"resourcesync why museum {ONE}")


@scene
def status_1(at: Scene) -> None:
    at.pulled()
    at.run("resourcesync status museum --check --max-lag 1h")
    at.run("resourcesync status museum --check --max-lag 0s")
    at.run("resourcesync status museum --check --max-lag 0s -q")
    at.configure('[mirror.museum]\nsource = "URL"\ndest = "museum"\nmax_quiet = "30d"\n')
    at.run("resourcesync status museum")
    at.run("resourcesync status museum --check")
    at.run("resourcesync status museum --check --max-quiet 5000w")
    at.offer({"/new.txt": b"new"})
    at.source.put("/new.txt", b"newer")
    for _ in range(5):
        at.silently("resourcesync pull museum")
    at.run("resourcesync status museum")
    at.source.asked.clear()
    at.silently("resourcesync pull museum")
    at.requests()
    at.run(f"resourcesync why museum {at.source.url}/new.txt --offline")


@scene
def status_after_each_kind_of_failure(at: Scene) -> None:
    at.pulled()
    for answer in (*(Answer(status=code) for code in (502, 503, 403)), Answer(body=b"<urlset>")):
        at.source.answers.update(dict.fromkeys(at.source.answers, answer))
        at.silently("resourcesync pull museum -qq -o retries=0")
        at.run("resourcesync status museum")


@scene
def status_in_short(at: Scene) -> None:
    table = '[mirror.{0}]\nsource = "URL"\ndest = "{0}"\nretries = 0\n'
    at.configure("".join(map(table.format, ("good", "failing", "late"))) + "max_lag = 0\n")
    at.silently("resourcesync pull --all -qq")
    at.source.answers.clear()
    at.silently("resourcesync pull failing -qq")
    pause(Path("good"), is_paused=True)
    at.run("resourcesync status --check")
    at.run("resourcesync status --check -q")
    at.run("resourcesync status good --check -q")


@scene
def doctor_1(at: Scene) -> None:
    Path("file").write_text("in the way")
    at.run("resourcesync doctor file/museum --json")
    with dead_address() as address:
        at.run(f"resourcesync doctor {address} --json")
    at.configure(f'[mirror.museum]\nsource = "URL"\ndest = "museum"\nauth = "key"\n{AUTH}')
    at.source.answers, at.source.respond = {}, lambda _: Answer(status=403)
    at.run(f"resourcesync doctor {at.source.url}")
    at.source.asked.clear()
    at.run("resourcesync doctor museum")  # the secret is not there, nor needed
    at.requests()
    at.run("resourcesync doctor --plugins --json -q")
    at.refuse("doctor")


@scene
def status_of_a_pull_that_was_stopped(at: Scene) -> None:
    at.source.offer({f"/{number:02}.bin": bytes([number]) * 50_000 for number in range(12)})
    at.silently(f"resourcesync pull {at.source.url} museum -o max_bytes=200k --jobs 1")
    at.run("resourcesync status museum --check")
    at.run("resourcesync status museum --json")
    at.run("resourcesync audit museum --offline")
    with MirrorFolder(Path("museum"), SystemClock()):
        at.run("resourcesync status museum --check")
        at.run("resourcesync pull museum")
    at.run("resourcesync pull museum -q")
    at.run("resourcesync status museum --check")
    with MirrorFolder(Path("museum"), SystemClock()):
        at.run("resourcesync status museum --check")
    at.source.answers.clear()
    at.silently("resourcesync pull museum -o retries=0")
    with MirrorFolder(Path("museum"), SystemClock()):
        at.run("resourcesync status museum --check")


@scene
def status_of_sources(at: Scene) -> None:
    table = '[source.{0}]\npath = "{0}"\nurl = "https://{0}.example/"\n'
    for name in ("quiet", "dead", "failing", "new", "gone"):
        Path(name).mkdir()
        Path(name, "a.txt").write_text(name)
    at.configure("".join(map(table.format, ("quiet", "dead", "failing", "new", "gone"))))
    for name in ("dead", "failing", "gone", "quiet"):
        at.silently(f"resourcesync publish {name} -o rebase_every=1d")
    at.silently("resourcesync publish quiet")
    Path("failing/a.txt").unlink()
    at.silently("resourcesync publish failing")
    Path("gone").rename("away")
    at.run("resourcesync status")
    at.run("resourcesync status quiet failing --json")
    at.run("resourcesync status --check --max-lag 0s dead quiet")
    at.run("resourcesync status catalogue:quiet/.resourcesync/catalogue.db --check --max-lag 1h")
    shutil.rmtree("dead/.resourcesync")  # its documents stay
    at.run("resourcesync status dead --check")
    at.run("resourcesync publish ./dead")
    at.configure(table.format("failing") + "allow_empty = true\n")
    at.silently("resourcesync publish failing")
    at.run("resourcesync status --check")
    at.configure(table.format("failing") + 'max_lag = "0s"\n[mirror.quiet]\nsource = "URL"\n')
    at.run("resourcesync status failing --check -q")


@scene
def quiet(at: Scene) -> None:
    at.configure('[mirror.museum]\nsource = "URL"\ndest = "museum"\n')
    for words in ("pull museum", "pull --all", "audit museum", "repair museum", "status --check"):
        at.run(f"resourcesync {words} -q")
    missing = {f"/new/{number:02}.txt": b"%d" % number for number in range(12)}
    at.offer(missing)
    for name in missing:
        del at.source.answers[name]
    at.run("resourcesync pull museum -q --jobs 1")
    at.run("resourcesync pull museum -qq")
    at.source.answers.clear()
    at.run("resourcesync pull --all -q")


@scene
def changes(at: Scene) -> None:
    follow = "resourcesync changes museum --consumer rag"
    at.pulled(THREE)
    at.run(follow)
    at.run(f"{follow} --ack")
    at.run(f"{follow} --ack")
    at.offer({ONE: b"another\n", "/objects/0002.txt": None}, at=LATER)
    at.silently("resourcesync pull museum --max-delete 1")
    at.run(f"{follow} --ack --json")
    at.run(follow)
    third = next(change for change in Mirror(None, "museum").changes() if change.number == 3)
    for form in ("", " --csv", " --paths0", " --deleted-paths0"):
        at.run(f"resourcesync changes museum --since {third.position}{form}")
    at.run("resourcesync changes museum --since -1h")
    at.run("resourcesync changes museum --since 2999-01-01")
    at.run("resourcesync changes museum --since 999.1")
    cursor = OWN / "consumers/rag.json"
    for text in ('{"acknowledged": 9000, "time": 1}', "{", "[]", '{"acknowledged": 1}'):
        cursor.write_text(text)
        at.run(follow)
    cursor.write_text('{"acknowledged": 9000, "time": 1}')
    at.run(f"{follow} --ack --restart")
    at.run(follow)


@scene
def mistakes_2(at: Scene) -> None:
    at.pulled()
    Path("file.txt").write_text("")
    Path("folder").mkdir()
    Path("published/.resourcesync").mkdir(parents=True)
    at.source.asked.clear()
    at.refuse("pull --all", "pull --all x", "pull http://h/ a b", "pull museum.example here")
    at.refuse("pull 127.0.0.1:8090 here", "pull ./folder ./here", "pull published copy")
    at.refuse("pull ./a http://h/", "pull file.txt", "pull http://h/ --auth x")
    at.refuse("pull x --config none.toml", "pull museum there", "pull ftp://h/ new")
    at.refuse("pull http://user:pw@h/ new", "pull http://h/../x new", "pull http://other/ museum")
    at.refuse(
        f"watch {at.source.url}",
        "audit museum --sample 12",
        "audit museum --sample 10% --method lists",
    )
    at.refuse("audit museum --method remote --offline", "list nowhere", "list museum --csv --json")
    at.refuse("changes museum --ack", "changes museum --restart", "changes museum --csv --paths0")
    at.refuse("changes museum --consumer rag --since 3", "changes museum --since 'some day'")
    at.refuse("changes museum --since 3", "changes museum --since 2026")
    at.refuse("changes museum --consumer c --ack -q", "changes museum --consumer c --ack --paths0")
    at.refuse("changes museum --consumer ../rag", "repair museum --from-audit nobody")
    at.requests()
    at.files("here")
    at.note(f"consumers: {(OWN / 'consumers').exists()}")


@scene
def mistakes_with_folders_of_mirrors(at: Scene) -> None:
    Path("link").symlink_to("copies/museum")
    table = '[mirror.{}]\nsource = "URL"\ndest = "{}"\n'
    others = table.format("museum", "copies/museum") + table.format("three", "copies3")
    for dest in ("copies/museum", "copies/x/../museum/", "link", "copies", "copies/museum/a/b"):
        at.configure(table.format("two", dest) + others)
        at.source.asked.clear()
        at.refuse("pull museum", "pull two", "audit museum", "status two", "config check")
        at.requests()
        at.run("resourcesync pull --all -q")
        at.note(f"made: {Path('copies').exists()} {Path('copies3').exists()}")


@scene
def mistakes_with_secrets(at: Scene) -> None:
    at.configure(AUTH)
    at.refuse(f"validate {at.source.url} http://127.0.0.1:1/ --auth key")
    for proxy in (
        *("http://me:s3cret@127.0.0.1:3128", "http://s3cret@127.0.0.1:3128", "ftp://s3cret:3128"),
        *("http://s3cret", "http://s3cret:65536", "http://s3cret:3128/path"),
        *("socks5://s3cret:1080", "s3cret", ""),
    ):
        at.refuse(f"pull {at.source.url} here -o 'proxy={proxy}'")
    museum = '[mirror.museum]\nsource = "URL"\ndest = "copies"\n'
    for line in (
        *('proxy = "http://me:s3cret@127.0.0.1:3128"', 'proxy = "s3cret"', "proxy = 3128"),
        *('proxy_auth = "none"', 'ca_file = ""', 'ca_file = "~no-such-user-at-all/a"'),
    ):
        at.configure(f"{museum}{line}\n")
        at.refuse("config check", "config show", "pull museum")
    door = '[auth.door]\ntype = "basic"\npassword = {{ command = ["echo", "s3cret"] }}\n'
    door += 'username = "{}"\n'
    for user in ("me:s3cret", "me\\u0000", "me\\n", ""):
        at.configure(door.format(user))
        at.refuse(f"pull {at.source.url} here -o proxy={at.source.url} -o proxy_auth=door")
    at.requests()


@scene
def mistakes_in_the_configuration(at: Scene) -> None:
    museum = '[mirror.museum]\nsource = "URL"\ndest = "copies"\n'
    at.source.asked.clear()
    for line in (
        *('jobs = "64"', 'trash = "30"', "[mirror.museum.audit]", 'auth = "arxiv"'),
        *('set = ["a"]\nall_sets = true', 'header = ["Authorization: Bearer s3cret"]'),
        "max_dlete = 5",
    ):
        at.configure(f"{museum}{line}\n")
        at.refuse("pull museum")
    for text in (
        *("[mirors.a]\n", "[defaults]\nevrey = '5m'\n"),
        *("[defaults]\nauth = 'x'\n[auth.x]\ntype = 'bearer'\n", "defaults = 5\n"),
        *("[mirror.a]\ndest = 'a'\n", "[mirror.a]\nsource = 'h'\ndest = 'a'\n"),
        *("[mirror.a]\nsource = 'https://h/'\ndest = 'zz://b'\n", "mirror = [\n"),
    ):
        at.configure(text)
        at.refuse("pull a")
    at.requests()


@scene
def config_of_services_2(at: Scene) -> None:
    source = '[source."{}"]\npath = "pages"\nurl = "https://pages.example/"\n'
    at.refuse("config systemd", "config cron", "config nginx")
    for text in ("[defaults]\n", source.format("pages").replace('path = "pages"\n', "")):
        at.configure(text)
        at.refuse("config systemd", "config cron", "config nginx")
    for name in ("a b", "-x", "a#", "ü", "%i", "a: b"):
        at.configure(source.format(name))
        at.refuse("config systemd")
    at.configure('[mirror.a]\nsource = "https://a.example/"\ndest = "a\\nUser=root"\n')
    at.refuse("config systemd")


@scene
def config_nginx_2(at: Scene) -> None:
    table = '[source.museum]\npath = "{}"\nurl = "https://museum.example{}"\n{}\n'
    for tree, path, more in (
        ("not published", "", ""),
        ("a$b", "", ""),
        ("a", "", "versions = true"),
        ("b", "", 'hub = ["https://museum.example/hub"]'),
        ("c", "", 'out = "lists"'),
        ("d", "/data/", ""),
    ):
        shutil.copytree("public", tree)
        at.configure(table.format(tree, path, more))
        if tree != "not published":
            at.silently("resourcesync publish museum")
        at.refuse("config nginx")


@scene
def config_init(at: Scene) -> None:
    at.run("resourcesync config init")
    at.run("resourcesync config check")
    at.configure(
        '[auth.key]\ntype = "bearer"\ntoken = { env = "HOME" }\n'
        '[auth.two]\ntype = "bearer"\ntoken = { file = "resourcesync.toml" }\n'
    )
    at.run("resourcesync config check")


@scene
def mistyped_words(at: Scene) -> None:
    at.refuse("pul", "pull --incude x", "--vresion", "serve d --port 8000", "serve d --host h")
    at.refuse("version", "-V", "sync", "check x", "init", "frobnicate", "--nonsense", "pull")
    at.refuse("pull --delet never http://h/", "pull http://[/", "pull http://h/ -o max_size=big")
    at.refuse("pull http://h/ --since tomorrow", "pull http://h/ -o header=nothing", "audit")
    at.refuse("audit m --combined - --json", "status --max-lag 1h", "publish")
    at.refuse("serve --bind 8080", "serve --bind h:99999", "pull --mode sideways http://h/ --json")


NO_SETTINGS = (
    'cron = "61 2 * * *"',
    'cron = "5 2 * * * Nowhere/Here"',
    'cron = ""',
    'cron = "5 2 * * *"\nevery = "5m"',
    'every = "0.5s"',
    'every = "0"',
    'audit_sample = "15"',
    'every = "5m"\naudit_sample = "0%"',
    'on_change_limit = "0"',
    'every = "5m"\non_change = "sh"',
    '[log]\nfile = "nowhere/here.log"',
    '[log]\nfile = ""',
    '[log]\nlevel = "all"',
    '[log]\nfil = "x"',
)


@scene
def config_check(at: Scene) -> None:
    mirror = '[mirror.museum]\nsource = "https://museum.example/"\ndest = "museum"\n'
    at.configure(f"{mirror}trash = '7d'\nauth = 'key'\n[auth.key]\ntype = 'bearer'\ntokn = 1\n")
    at.refuse("config init")
    with Path("resourcesync.toml").open("a") as file:
        file.write(
            "token = { env = 'NO_SUCH_TOKEN' }\n"
            "[mirror.a]\njbs = 1\nretries = true\n"
            "[mirror.b]\nsource = 'https://h/'\ndest = './museum'\n"
            "[mirror.'c/d']\n"
            "[auth.two]\ntype = 'basic'\nusername = 'me'\npassword = 's3cret'\n"
            "[auth.three]\ntype = 'bearer'\ntoken = { command = 'x' }\n"
        )
    at.run("resourcesync config check")
    at.run("resourcesync config check --json")
    at.run("resourcesync config show")
    at.configure(
        '[auth.a]\ntype = "bearer"\ntoken = { command = ["touch", "asked"] }\n'
        '[auth.b]\ntype = "bearer"\ntoken = { file = "/nowhere" }\n'
        '[auth.c]\ntype = "netrc"\nfile = "/nowhere"\n'
        '[auth.d]\ntype = "header"\nname = "X-Key"\nvalue = { credential = "k" }\n'
    )
    at.run("resourcesync config check")
    at.note(f"asked: {Path('asked').exists()}")
    for line in NO_SETTINGS:
        at.configure(f"{mirror}{line}\n")
        at.refuse("config check", "watch")
