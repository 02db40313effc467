"""Runs a target on many inputs and says what went wrong, each fault with its smallest input."""

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final, Protocol

from fuzz.mutation import mutate
from fuzz.randomness import chance, probably

SLOW: Final = 1.0
"""Seconds that one input may take at most."""
_MAX_FINDINGS: Final = 20
_MINIMISE_SECONDS: Final = 5.0
_POOL: Final = 200
_CHECKED_TWICE: Final = 16  # one input in so many is run again, to see whether it says the same


class Target(Protocol):
    """Something that reads what others wrote.

    ``roughness`` is the part of its inputs that is changed at random: little where nearly all
    changes give an error at once.
    """

    name: str
    roughness: float
    seeds: tuple[bytes, ...]

    def make(self, random: Random) -> bytes:
        """Return an input that is right in most of its parts."""
        ...

    def run(self, data: bytes) -> str:
        """Read an input and return what it said; the documented errors are an answer as well."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One fault."""

    what: str
    data: bytes


@dataclass(slots=True, eq=False)
class Outcome:
    """How a campaign went."""

    count: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    answers: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def inputs(target: Target, seed: int | str) -> Iterator[bytes]:
    """Yield the inputs of a campaign without end; the same seed gives the same inputs.

    First the seeds as they are. Then one in three is new and the others come from the pool: the
    seeds and some of what was made. Most are then changed, as the target's roughness says.
    """
    yield from target.seeds
    pool = list(target.seeds)
    number = 0
    while True:
        random = chance(target.name, seed, number)
        number += 1
        if probably(random, 3):
            data = target.make(random)
            pool.append(data)
            if len(pool) > len(target.seeds) + _POOL:
                pool.pop(len(target.seeds))
        else:
            data = random.choice(pool)
        yield mutate(random, data, pool) if random.random() < target.roughness else data


def campaign(
    target: Target, *, count: int, seed: int | str = 1, seconds: float = float("inf")
) -> Outcome:
    """Run a target on so many inputs, or for so long."""
    outcome = Outcome()
    seen: set[str] = set()
    begin = time.perf_counter()
    for data in inputs(target, seed):
        if outcome.count >= count or time.perf_counter() - begin > seconds:
            break
        fault = _try(target, data, outcome)
        outcome.count += 1
        if fault and fault not in seen and len(seen) < _MAX_FINDINGS:
            seen.add(fault)
            outcome.findings.append(Finding(what=fault, data=minimise(target, data, fault)))
    outcome.seconds = time.perf_counter() - begin
    return outcome


def _try(target: Target, data: bytes, outcome: Outcome) -> str:
    begin = time.thread_time()  # not what others on this machine took
    answer, fault = _answer(target, data)
    spent = time.thread_time() - begin
    outcome.slowest = max(outcome.slowest, spent)
    kind = answer.partition(" ")[0]
    outcome.answers[kind] = outcome.answers.get(kind, 0) + 1
    if not fault and spent > SLOW:
        return "too slow"
    if not fault and hashlib.blake2b(data).digest()[0] % _CHECKED_TWICE == 0:
        return "" if _answer(target, data) == (answer, "") else "not the same twice"
    return fault


def _answer(target: Target, data: bytes) -> tuple[str, str]:
    """Return what the target said, and what went wrong."""
    try:
        return target.run(data), ""
    except Exception as error:  # noqa: BLE001 - any exception that arrives here is the finding
        return "fault", f"{type(error).__name__} at {_place(error)}"


def _place(error: BaseException) -> str:
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    if frame is None:
        return "nowhere"
    name = frame.tb_frame.f_code.co_filename.rsplit("/", 1)[-1]
    return f"{name}:{frame.tb_lineno}"


def fault_of(target: Target, data: bytes) -> str:
    """Return what goes wrong with one input; nothing when all is well."""
    begin = time.thread_time()
    answer, fault = _answer(target, data)
    if not fault and time.thread_time() - begin > SLOW:
        return "too slow"
    if not fault and _answer(target, data) != (answer, ""):
        return "not the same twice"
    return fault


def minimise(target: Target, data: bytes, fault: str) -> bytes:
    """Return a small input with the same fault: pieces are left out as long as it stays."""
    return smallest(data, lambda smaller: fault_of(target, smaller) == fault)


def smallest(data: bytes, shows: Callable[[bytes], bool]) -> bytes:
    """Leave out ever smaller pieces of the input as long as it still shows what it shows."""
    until = time.perf_counter() + _MINIMISE_SECONDS
    size = len(data) // 2
    while size:
        at = 0
        while at < len(data) and time.perf_counter() < until:
            smaller = data[:at] + data[at + size :]
            if shows(smaller):
                data = smaller
            else:
                at += size
        size //= 2
    return data


def told(name: str, outcome: Outcome) -> Sequence[str]:
    """Return the lines that say how a campaign went."""
    rate = outcome.count / max(outcome.seconds, 1e-9)
    answers = ", ".join(f"{kind} {n:,}" for kind, n in sorted(outcome.answers.items()))
    figures = (
        f"{name}: {outcome.count:,} inputs in {outcome.seconds:.1f} s ({rate:,.0f} a second),"
        f" slowest {outcome.slowest * 1000:.0f} ms, {len(outcome.findings)} findings"
    )
    faults = (f"  {finding.what}: {finding.data!r}" for finding in outcome.findings)
    return [figures, f"  answers: {answers}", *faults]
