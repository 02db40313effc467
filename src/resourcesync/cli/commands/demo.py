"""``resourcesync demo``: publish, mirror, change and audit real files on this machine."""

import os
import shutil
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from resourcesync import app
from resourcesync.cli import options
from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.options import SectionedCommand, option
from resourcesync.cli.output import QUIET, CommandOutcome, Job, Screen, TextLine
from resourcesync.errors import ConfigurationError, StorageError
from resourcesync.model.formatting import counted, counts, duration, size

if TYPE_CHECKING:
    from resourcesync.destination.audits.reports import AuditReport
    from resourcesync.destination.reports import RunReport

_SKIPPED: Final = frozenset({"__pycache__", "site-packages", "dist-packages"})
_TIMED: Final = frozenset({"changed", "pulled", "audited"})
"""Steps that take no time, or whose text has it."""
_TOUCHED: Final = 5
"""Most files that are updated, and most files that are deleted."""
_NEW: Final = {
    "resourcesync-demo/new.txt": b"a new file in a new folder\n",
    "resourcesync-demo/a blank, an ampersand & p\u0159\u00edpona.html": b"<p>new</p>\n",
    "resourcesync-demo/empty": b"",
}


@click.command("demo", cls=SectionedCommand)
@click.argument(
    "source",
    metavar="[DIR]",
    required=False,
    type=click.Path(file_okay=False, exists=True, path_type=Path),
)
@option(
    "--keep",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Work in this new folder, and leave the tree and the mirror there.",
)
@options.output_options
def command(source: Path | None, keep: Path | None, **_: Any) -> Job:
    """Publish, mirror, change and audit a real tree on this machine.

    DIR is copied first, and never changed; by default it is Python's own standard library. The
    copy is published, served on a free port of 127.0.0.1, pulled into a mirror, changed, published
    and pulled again. Then an audit reads every copy. Exit 0 means that the mirror is in sync. All
    files of the demo are removed at the end.
    """

    def work(screen: Screen) -> CommandOutcome:
        with _folder(keep) as folder:
            return _Demo(screen, folder, kept=keep is not None).run(
                source or Path(sysconfig.get_path("stdlib"))
            )

    return Job(work=work, render=_render, subject="demo")


def _render(event: str, fields: Mapping[str, object]) -> Iterator[TextLine]:
    if event == "step":
        seconds = "" if fields["step"] in _TIMED else f"  {duration(float(str(fields['seconds'])))}"
        yield TextLine(f"{fields['text']}{seconds}", str(fields["step"]).capitalize())
    elif event == "item" and fields.get("status") in {"error", "impossible"}:
        yield TextLine(f"{fields.get('uri')}   {fields.get('reason')}", "!")


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        if keep.exists() and any(keep.iterdir()):
            raise ConfigurationError(f"{keep} is not empty", hint="name a new folder to --keep")
        keep.mkdir(parents=True, exist_ok=True)
        yield keep.absolute()
        return
    name = f"resourcesync-demo-{app.system.new_run_id(app.system.SystemClock())}"
    folder = Path(tempfile.gettempdir()) / name
    try:
        # Made inside the try block, so that a signal after it still removes the folder.
        folder.mkdir(mode=0o700)
        yield folder
    finally:
        try:
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            # A signal may have interrupted the removal; a second signal is not raised.
            shutil.rmtree(folder, ignore_errors=True)


class _Demo:
    def __init__(self, screen: Screen, folder: Path, *, kept: bool) -> None:
        self._screen, self._clock, self._keeps_files = screen, screen.clock, kept
        self._tree, self._mirror = folder / "tree", folder / "mirror"
        self._began = self._last = self._clock.monotonic()

    def run(self, source: Path) -> CommandOutcome:
        self._copy(source)
        late = app.applications.LateApplication()
        with app.applications.ServerThread(late) as server:
            self._publish(late, server.uri)
            self._pull(server.uri)
            changed = _change_tree(self._tree)
            self._step("changed", f"{counts(changed)} in the tree", **changed)
            self._publish(late, server.uri)
            pulled = self._pull(None)
            audited = self._audit()
        return self._conclude(audited, is_good=audited.in_sync and pulled.failed == 0)

    def _conclude(self, audited: "AuditReport", *, is_good: bool) -> CommandOutcome:
        left = "all files of the demo were removed"
        if self._keeps_files:
            left = f"tree and mirror are in {self._tree.parent}"
        said = "as the Source lists them" if is_good else "not as the Source lists them"
        seconds = duration(self._clock.monotonic() - self._began)
        text = f"{counted(audited.listed, 'file')} {said}; {left}  {seconds}"
        line = TextLine(text, "In sync" if is_good else "Not in sync", QUIET)
        code = ExitCode.OK if is_good else ExitCode.FINDINGS
        fields = {"files": audited.listed, "equal": is_good}
        return CommandOutcome(exit=code, closing=(line,), fields=fields)

    def _step(self, step: str, text: str, **figures: object) -> None:
        seconds = self._clock.monotonic() - self._last
        self._last += seconds
        self._screen.report("step", {"step": step, "text": text, "seconds": seconds, **figures})

    def _copy(self, source: Path) -> None:
        try:
            files, copied = _copy_tree(source, self._tree)
        except OSError as error:
            raise StorageError(
                f"cannot copy {source}: {error.strerror}",
                hint="correct its permissions, or name another folder",
            ) from error
        if not files:
            raise ConfigurationError(
                f"there is no file in {source}", hint="name a folder with files"
            )
        text = f"{counted(files, 'file')}, {size(copied)} of {source}"
        self._step("copied", text, files=files, bytes=copied)

    def _publish(self, late: "app.applications.LateApplication", base: str) -> None:
        publisher = app.publisher.Publisher(self._tree, url=base)
        done = publisher.publish()
        late.application = publisher.application()
        changed = {"created": done.created, "updated": done.updated, "deleted": done.deleted}
        what = counted(done.resources, "resource") if done.first else counts(changed)
        text = f"{what} at {base}, {counted(len(done.written), 'document')} written"
        self._step("published", text, resources=done.resources, **changed)

    def _pull(self, source: str | None) -> "RunReport":
        from resourcesync.cli.render.pull import conclude  # noqa: PLC0415 - help stays quick

        # The demo's server is on this machine.
        pulled = app.mirror.Mirror(source, self._mirror, proxy="").pull(on_event=self._report)
        ended = conclude(pulled, "the mirror", first=source is not None, plan={})
        line = ended.closing[0]
        text = f"{pulled.mode.value}: {line.label.lower()}, {line.text}"
        self._step("pulled", text, **ended.fields)
        return pulled

    def _report(self, event: "app.mirror.Event") -> None:
        if event.kind != "item" or event.fields.get("status") != "ok":
            self._screen.report(event.kind, event.fields)

    def _audit(self) -> "AuditReport":
        from resourcesync.cli.render.audit import conclude  # noqa: PLC0415 - help stays quick

        audited = app.mirror.Mirror(None, self._mirror, proxy="").audit(on_event=self._report)
        ended = conclude(audited, self._mirror)
        line = ended.closing[0]
        self._step("audited", f"{line.label.lower()}, {line.text}", **ended.fields)
        return audited


def _copy_tree(source: Path, target: Path) -> tuple[int, int]:
    files = copied = 0
    for folder, folders, names in os.walk(source):
        folders[:] = sorted(set(folders) - _SKIPPED)
        copied_folder = target / Path(folder).relative_to(source)
        copied_folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            original = Path(folder) / name
            if original.is_file() and not original.is_symlink():
                shutil.copy2(original, copied_folder / name)
                files += 1
                copied += original.stat().st_size
    return files, copied


def _change_tree(tree: Path) -> dict[str, int]:
    present = sorted(
        path
        for path in tree.rglob("*")
        if path.is_file() and not _is_ours_or_hidden(path.relative_to(tree))
    )
    some = min(_TOUCHED, len(present) // 3)
    for path in present[:some]:
        path.chmod(0o600)
        with path.open("ab") as stream:
            stream.write(b"\n# changed by resourcesync demo\n")
    for path in present[len(present) - some :]:
        path.unlink()
    for name, content in _NEW.items():
        new = tree / name
        new.parent.mkdir(parents=True, exist_ok=True)
        new.write_bytes(content)
    return {"created": len(_NEW), "updated": some, "deleted": some}


def _is_ours_or_hidden(path: Path) -> bool:
    hidden = any(part.startswith(".") for part in path.parts) or path.name.endswith("~")
    return hidden or path.parts[0] == "resourcesync"
