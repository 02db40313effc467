"""A first pull that fails takes away what it made, and nothing else."""

from pathlib import Path

from tests.support.commands.started import command

NOBODY = "http://127.0.0.1:9/"


def test_a_catalogue_a_trash_and_a_quarantine_outlive_a_first_pull_that_fails(
    tmp_path: Path,
) -> None:
    own = tmp_path / "w" / ".resourcesync"
    for name in ("catalogue.db", "trash/deleted", "quarantine/edited"):
        (own / name).parent.mkdir(parents=True, exist_ok=True)
        (own / name).write_text(name)

    for extra in ((), ("-n",)):
        ran = command("pull", NOBODY, str(own.parent), "-o", "retries=0", *extra, home=tmp_path)
        assert ran.returncode == 4

    for name in ("catalogue.db", "trash/deleted", "quarantine/edited"):
        assert (own / name).read_text() == name
    assert not (own / "state.db").exists()
