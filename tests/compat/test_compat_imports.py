"""Our names of resync are where programs import them from, and nothing else loads them."""

import importlib
import inspect
import logging
import subprocess
import sys
from pathlib import Path

import pytest

import resourcesync.compat.resync as package
from resourcesync.compat.resync import errors
from resourcesync.errors import ConfigurationError, ResourceSyncError

USED = {
    "resync": ("CapabilityList", "Resource", "ResourceList"),
    "resync.capability_list": ("CapabilityList",),
    "resync.change_dump": ("ChangeDump",),
    "resync.change_dump_manifest": ("ChangeDumpManifest",),
    "resync.change_list": ("ChangeList",),
    "resync.client": ("Client",),
    "resync.client_utils": ("ClientFatalError", "init_logging"),
    "resync.list_base_with_index": ("ListBaseWithIndex",),
    "resync.mapper": ("MapperError",),
    "resync.resource": ("Resource",),
    "resync.resource_dump": ("ResourceDump",),
    "resync.resource_dump_manifest": ("ResourceDumpManifest",),
    "resync.resource_list": ("ResourceList", "ResourceListDupeError"),
    "resync.resource_list_builder": ("ResourceListBuilder",),
    "resync.sitemap": ("Sitemap",),
    "resync.source_description": ("SourceDescription",),
    "resync.url_or_file_open": ("url_or_file_open",),
    "resync.w3c_datetime": ("str_to_datetime",),
}
"""What WEKO3 and openBIS import, by the module they import it from."""


def in_a_process(code: str, cwd: Path) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", code], check=False, cwd=cwd, capture_output=True, text=True
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout.strip()


@pytest.mark.parametrize("module", USED)
def test_each_name_is_where_programs_import_it_from(module: str) -> None:
    found = importlib.import_module(module.replace("resync", package.__name__, 1))

    assert [name for name in USED[module] if not hasattr(found, name)] == []


def test_the_package_has_all_names_for_type_checkers() -> None:
    # A module in resync, too.
    names = {name for names in USED.values() for name in names} - {"url_or_file_open"}

    assert names <= set(package.__all__)
    assert list(package.__all__) == sorted(set(package.__all__))
    assert [name for name in package.__all__ if not callable(getattr(package, name))] == []


def test_after_install_a_program_is_left_as_it_is(tmp_path: Path) -> None:
    imports = "\n".join(f"from {module} import {', '.join(USED[module])}" for module in USED)
    code = (
        "import resourcesync.compat.resync as ours\nours.install()\nours.install()\n"
        f"{imports}\nimport resync.archives\nprint(Client.__module__, resync is ours)"
    )

    assert in_a_process(code, tmp_path) == "resourcesync.compat.resync.client True"


def test_install_refuses_to_hide_the_real_one(tmp_path: Path) -> None:
    (tmp_path / "resync.py").write_text("")
    code = (
        "import sys; sys.path.insert(0, '.')\nimport resync\n"
        "from resourcesync.compat.resync import install\n"
        "from resourcesync.errors import ConfigurationError\n"
        "try:\n    install()\nexcept ConfigurationError as error:\n    print(error)"
    )

    assert in_a_process(code, tmp_path) == "resync is imported already"
    assert issubclass(ConfigurationError, ResourceSyncError)


def test_nothing_else_loads_it(tmp_path: Path) -> None:
    code = (
        "import sys, pkgutil, resourcesync, resourcesync.app.mirror, resourcesync.cli.main\n"
        "from resourcesync import *\nfrom resourcesync.cli.main import run\n"
        "print([name for name in sys.modules if name.startswith('resourcesync.compat')])"
    )

    assert in_a_process(code, tmp_path) == "[]"


def test_every_error_is_in_both_trees() -> None:
    found = [
        value
        for _, value in inspect.getmembers(errors, inspect.isclass)
        if value.__module__ == errors.__name__
    ]

    assert len(found) > 8
    assert [value for value in found if not issubclass(value, ResourceSyncError)] == []
    assert issubclass(errors.DocumentAccessError, OSError)
    assert issubclass(errors.ResourceListDupeError, errors.ResourceSetDupeError)


def test_logging_shows_what_is_done(capfd: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("resync")
    before, level = list(logger.handlers), logger.level
    try:
        package.init_logging(verbose=True, to_file=False)
        logging.getLogger("resync.client").info("created: a -> b")
        logging.getLogger("resync.client").debug("Event: …")
    finally:
        logger.handlers[:] = before
        logger.setLevel(level)

    assert capfd.readouterr().err == "created: a -> b\n"
