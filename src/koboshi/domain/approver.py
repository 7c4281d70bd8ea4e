"""Who may answer an approval: the one place that decides it."""

from enum import StrEnum

APPROVAL_NEEDS_PERSON = "approval-needs-person"
"""Why an answer to an approval was not taken."""


class SentBy(StrEnum):
    PERSON = "person"  # on a platform, in a browser that was let in, or at the terminal
    PROGRAM = "program"  # with a bearer token, which an agent may have found


def may_answer_approval(sent_by: SentBy) -> bool:
    """Whether an answer that came this way counts: a yes, a no and any other words alike."""
    return sent_by is SentBy.PERSON
