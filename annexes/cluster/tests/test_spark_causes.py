"""What Spark says of a failure in two hundred lines is told in one, and its silence too."""

import threading
from collections.abc import Callable

import pytest

from resourcesync.errors import EngineError
from resourcesync_cluster.engines.executors import check_version
from resourcesync_cluster.engines.spark import SparkExecutor, cause_of

HEAD = """\
An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 failed 1 times
"""
JAVA = "\tat org.apache.spark.rdd.RDD.iterator(RDD.scala:338)\n" * 100


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (
            HEAD + JAVA + "Traceback (most recent call last):\n  raise EngineError(x)\n"
            "resourcesync.errors.EngineError: ValueError: no such thing\n\n" + JAVA,
            "ValueError: no such thing",
        ),
        (
            HEAD + JAVA + "ModuleNotFoundError: No module named 'resourcesync'\n" + JAVA,
            "ModuleNotFoundError: No module named 'resourcesync'",
        ),
        (
            HEAD
            + JAVA
            + "Caused by: org.apache.spark.SparkException: Python worker exited\n"
            + JAVA
            + "Caused by: java.io.EOFException\n"
            + JAVA,
            "Python worker exited",
        ),
        (HEAD + JAVA, "Job aborted due to stage failure: Task 0 failed 1 times"),
        ("Answer from Java side is empty", "Answer from Java side is empty"),
        ("", "no cause"),
        ("x" * 2_000, "x" * 500),
    ],
)
def test_the_cause_is_told_in_one_line(text: str, cause: str) -> None:
    assert cause_of(text) == cause


class Busy:
    """A context of Spark's, as far as we use it, whose workers do the work of others."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()

    def setJobGroup(self, group: str, name: str, *, interruptOnCancel: bool) -> None:  # noqa: N803
        pass

    def cancelJobGroup(self, group: str) -> None:
        self.cancelled.set()

    def parallelize(self, items: list[object], parts: int) -> "Busy":
        return self

    def map(self, function: Callable[[object], object]) -> "Busy":
        return self

    def collect(self) -> list[object]:
        self.cancelled.wait()
        raise RuntimeError("it was cancelled")


def test_a_cluster_that_begins_nothing_is_given_up() -> None:
    executor = SparkExecutor(Busy())
    with pytest.raises(EngineError, match=r"no Spark worker started the task within 0.05 s"):
        check_version(executor, "Spark", 0.05)
    executor.shutdown()
