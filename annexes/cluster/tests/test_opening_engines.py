"""An engine is named by an address; what is wrong with it is told before anything is done."""

import sys

import pytest

from resourcesync.errors import ConfigurationError, EngineError
from resourcesync_cluster.engines import dask as dask_engine
from resourcesync_cluster.engines.executors import open_engine
from tests.support.commands.run import free_port


def refused(address: str, workers: int | None = None) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught, open_engine(address, workers):
        raise AssertionError("it was opened")
    return caught.value


@pytest.mark.parametrize("address", ["", "ray://head:1", "tcp://127.0.0.1:8786", "Processes"])
def test_an_engine_that_nobody_brings_is_refused_with_those_that_there_are(address: str) -> None:
    error = refused(address)

    assert "there is no engine" in error.message
    for form in ("processes:N", "dask://HOST:PORT", "spark:local[2]"):
        assert form in error.hint


@pytest.mark.parametrize(
    ("address", "workers", "reason"),
    [
        *((f"processes:{number}", None, "number of processes") for number in ("0", "x", "1025")),
        ("processes:٣", None, "number of processes"),
        ("processes", 0, "at least 1"),
        ("dask:", None, "names no scheduler"),
        ("dask://", None, "names no scheduler"),
    ],
)
def test_an_address_that_names_no_engine_of_its_kind_is_refused(
    address: str, workers: int | None, reason: str
) -> None:
    assert reason in refused(address, workers).message


@pytest.mark.parametrize(
    ("address", "module", "extra"),
    [("dask://127.0.0.1:1", "distributed", "dask"), ("spark:local[2]", "pyspark", "spark")],
)
def test_what_is_not_installed_is_told_with_the_command_that_installs_it(
    address: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    assert refused(address).hint == f"pip install 'resourcesync-cluster[{extra}]'"


def test_a_scheduler_that_does_not_answer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_engine, "PATIENCE", 0.3)
    with (
        pytest.raises(EngineError, match=r"no Dask scheduler answers at tcp://127") as caught,
        open_engine(f"dask://127.0.0.1:{free_port()}"),
    ):
        raise AssertionError("it was opened")

    assert caught.value.hint == "start one: dask scheduler"
