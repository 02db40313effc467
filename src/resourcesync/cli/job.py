"""What a command line asks for, once it is understood: work that has yet to be done.

Understanding options (click) and doing the work are kept apart, so that there is one place where
errors, signals and crashes become words and an exit code: ``cli.main``.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from resourcesync.cli.output import CommandOutcome, OutputOptions, Screen
from resourcesync.cli.words import TextLine


def render_nothing(event: str, fields: Mapping[str, object]) -> Iterable[TextLine]:
    """Tell of no event: for commands whose closing lines say everything."""
    del event, fields
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One command, ready to be carried out.

    Attributes:
        command: Its name.
        output: How it speaks.
        work: Does it.
        words: Turns its events into text.
        subject: What it works on, such as the mirror's folder: for progress and ``run.start``.
        fields: More for ``run.start``.
        acts: Whether it does something, so that ``-q`` has nothing to say when all is well; what
            only answers a question answers in any case.
        again: The command that goes on after an interruption; empty when that makes no sense.
    """

    command: str
    output: OutputOptions
    work: Callable[[Screen], CommandOutcome]
    render: Callable[[str, Mapping[str, object]], Iterable[TextLine]] = render_nothing
    subject: str = ""
    fields: Mapping[str, object] = field(default_factory=dict)
    acts: bool = False
    resume_command: str = ""
