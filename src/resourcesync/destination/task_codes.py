"""Codes of tasks: why a resource is not in the mirror as it is listed. They are stored."""

from typing import Final

DAMAGED: Final = "damaged"
"""Value of ``Pending.code``: an audit found that the file is not as installed."""

STALE: Final = "stale"
"""Value of ``Pending.code``: an audit was served other bytes than the copy has."""

STALE_REASON: Final = "the Source serves other bytes than the copy has"

RESTORED: Final = "restored"
"""Value of ``Pending.code``: an unlisted copy was restored by hand."""

CONTRADICTING: Final = "contradicting"
"""Value of ``Pending.code``: bytes that are not as listed are kept (``verify`` is lenient)."""

OLD_ANSWER: Final = "old-answer"
"""Value of ``Pending.code``: the Source answers as only a change says that seems to be older."""

OLD_ANSWER_REASON: Final = (
    "the Source answers as a change says that is dated before its Resource List, or that an earlier"
    " pull acted on (an old copy of a server?): the copy is as the Resource List has it, and stays"
)

LOCAL_CHANGE: Final = "local-change"
"""Error code: a file is not as installed."""

EDITED: Final = "edited"
"""Value of ``Pending.code``: a file to be deleted was changed locally, and is kept."""

EDITED_REASON: Final = "to be deleted, but changed locally since it was fetched"

NOT_TRIED: Final = "not fetched yet"
"""Reason of a task that no run has tried."""

ABSENT_CODES: Final = ("missing",)
"""Values of ``Pending.code``: the server does not have the resource (404, 410)."""

REDIRECTED: Final = "redirect"
"""Error code: a redirect that is not followed."""

SKIPPED_CODES: Final = ("robots", REDIRECTED)
"""Values of ``Pending.code``: excluded by robots.txt, or redirected to another site."""

UNAVAILABLE_CODES: Final = (*ABSENT_CODES, *SKIPPED_CODES)
"""Values of ``Pending.code``: listed but not served, which may be accepted."""

MISMATCH_CODES: Final = ("hash-mismatch", "length-mismatch")
"""Values of ``Pending.code``: the Source serves other bytes than are listed."""
