"""What Spark says of a failure in two hundred lines is told in one."""

import pytest

from resourcesync.adapters.engines.spark import cause_of

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
