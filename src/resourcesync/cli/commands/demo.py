"""``resourcesync demo``: publish, mirror, change and audit real files on this machine."""

import os
import shutil
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import msgspec

from resourcesync import app
from resourcesync.cli import formatting, options
from resourcesync.cli.exit_codes import ExitCode
from resourcesync.cli.formatting import NORMAL, QUIET, TextLine
from resourcesync.cli.options import SectionedCommand, option
from resourcesync.cli.output import CommandOutcome, Job, OutputOptions, Screen
from resourcesync.errors import ConfigurationError, StorageError

if TYPE_CHECKING:
    from resourcesync.app.mirror import Event
    from resourcesync.app.serving.applications import LateApplication
    from resourcesync.destination.audits.reports import AuditReport
    from resourcesync.destination.reports import RunReport
    from resourcesync.ports import Clock

_SKIPPED: Final = frozenset({"__pycache__", "site-packages", "dist-packages"})
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
def command(output: OutputOptions, source: Path | None, keep: Path | None) -> Job:
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

    return Job(command="demo", output=output, work=work, render=_render, subject="demo")


def _render(event: str, fields: Mapping[str, object]) -> Iterator[TextLine]:
    if event == "step":
        yield TextLine(str(fields["text"]), str(fields["step"]).capitalize(), NORMAL)
    elif event == "item" and fields.get("status") in {"error", "impossible"}:
        yield TextLine(f"{fields.get('uri')}   {fields.get('reason')}", "!")


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    """Create the folder of the demo; remove it at the end, also after an error."""
    if keep is not None:
        if keep.exists() and any(keep.iterdir()):
            raise ConfigurationError(f"{keep} is not empty", hint="name a new folder to --keep")
        keep.mkdir(parents=True, exist_ok=True)
        yield keep.absolute()
        return
    name = f"resourcesync-demo-{app.machine.new_run_id(app.machine.system_clock())}"
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


class _CopiedFiles(msgspec.Struct, frozen=True):
    files: int
    size: int


class _Demo:
    """One demonstration."""

    def __init__(self, screen: Screen, folder: Path, *, kept: bool) -> None:
        self._screen = screen
        self._keeps_files = kept
        self._tree = folder / "tree"
        self._mirror = folder / "mirror"
        self._clock: Clock = app.machine.system_clock()
        self._began = self._clock.monotonic()

    def run(self, source: Path) -> CommandOutcome:
        """Run all steps; return the outcome."""
        self._copy(source)
        late = app.applications.LateApplication()
        with app.applications.ServerThread(late) as server:
            self._publish(late, server.uri)
            self._pull(server.uri)
            self._change()
            self._publish(late, server.uri)
            pulled = self._pull(None)
            audited = self._audit()
        return self._conclude(audited, is_good=audited.in_sync and pulled.failed == 0)

    def _conclude(self, audited: "AuditReport", *, is_good: bool) -> CommandOutcome:
        seconds = formatting.duration(self._clock.monotonic() - self._began)
        left = (
            f"tree and mirror are in {self._tree.parent}"
            if self._keeps_files
            else "all files of the demo were removed"
        )
        said = "as the Source lists them" if is_good else "not as the Source lists them"
        label = "In sync" if is_good else "Not in sync"
        line = TextLine(
            f"{formatting.counted(audited.listed, 'file')} {said}; {left}  {seconds}", label, QUIET
        )
        code = ExitCode.OK if is_good else ExitCode.FINDINGS
        fields = {"files": audited.listed, "equal": is_good}
        return CommandOutcome(exit=code, closing=(line,), fields=fields)

    def _step(self, step: str, text: str, **figures: object) -> None:
        self._screen.report("step", {"step": step, "text": text, **figures})

    def _copy(self, source: Path) -> None:
        started = self._clock.monotonic()
        try:
            copied = _copy_tree(source, self._tree)
        except OSError as error:
            raise StorageError(
                f"cannot copy {source}: {error.strerror}",
                hint="correct its permissions, or name another folder",
            ) from error
        if not copied.files:
            raise ConfigurationError(
                f"there is no file in {source}", hint="name a folder with files"
            )
        seconds = self._clock.monotonic() - started
        self._step(
            "copied",
            f"{formatting.counted(copied.files, 'file')}, {formatting.size(copied.size)}"
            f" of {source}  {formatting.duration(seconds)}",
            files=copied.files,
            bytes=copied.size,
            seconds=seconds,
        )

    def _publish(self, late: "LateApplication", base: str) -> None:
        started, publisher = self._clock.monotonic(), app.publisher.Publisher(self._tree, url=base)
        done = publisher.publish()
        seconds = self._clock.monotonic() - started
        late.application = publisher.application()
        what = formatting.counted(done.resources, "resource")
        if not done.first:
            what = _changes(done.created, done.updated, done.deleted)
        documents = formatting.counted(len(done.written), "document")
        self._step(
            "published",
            f"{what} at {base}, {documents} written  {formatting.duration(seconds)}",
            resources=done.resources,
            created=done.created,
            updated=done.updated,
            deleted=done.deleted,
            seconds=seconds,
        )

    def _pull(self, source: str | None) -> "RunReport":
        from resourcesync.cli.render.pull import conclude  # noqa: PLC0415 - the same

        # The demo's server is on this machine.
        pulled = app.mirror.Mirror(source, self._mirror, proxy="").pull(on_event=self._report)
        ended = conclude(pulled, "the mirror", first=source is not None, plan={})
        self._step(
            "pulled",
            f"{pulled.mode.value}: {ended.closing[0].label.lower()}, {ended.closing[0].text}",
            **ended.fields,
        )
        return pulled

    def _report(self, event: "Event") -> None:
        if event.kind != "item" or event.fields.get("status") != "ok":
            self._screen.report(event.kind, event.fields)

    def _change(self) -> None:
        created, updated, deleted = _change_tree(self._tree)
        self._step(
            "changed",
            f"{_changes(created, updated, deleted)} in the tree",
            created=created,
            updated=updated,
            deleted=deleted,
        )

    def _audit(self) -> "AuditReport":
        from resourcesync.cli.render import audit as render_audit  # noqa: PLC0415 - help stays quick

        audited = app.mirror.Mirror(None, self._mirror, proxy="").audit(on_event=self._report)
        ended = render_audit.conclude(audited, self._mirror)
        self._step(
            "audited",
            f"{ended.closing[0].label.lower()}, {ended.closing[0].text}",
            **render_audit.audit_fields(audited, self._mirror),
        )
        return audited


def _changes(created: int, updated: int, deleted: int) -> str:
    return f"{created} created, {updated} updated, {deleted} deleted"


def _copy_tree(source: Path, target: Path) -> _CopiedFiles:
    """Copy the regular files of a folder, without links, compiled and installed files."""
    files = size = 0
    for folder, folders, names in os.walk(source):
        folders[:] = sorted(set(folders) - _SKIPPED)
        copied_folder = target / Path(folder).relative_to(source)
        copied_folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            original = Path(folder) / name
            if original.is_file() and not original.is_symlink():
                shutil.copy2(original, copied_folder / name)
                files += 1
                size += original.stat().st_size
    return _CopiedFiles(files, size)


def _change_tree(tree: Path) -> tuple[int, int, int]:
    """Create, update and delete some files; return the number of each."""
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
    return len(_NEW), some, some


def _is_ours_or_hidden(path: Path) -> bool:
    hidden = any(part.startswith(".") for part in path.parts) or path.name.endswith("~")
    return hidden or path.parts[0] == "resourcesync"
