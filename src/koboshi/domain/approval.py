"""What a person is asked to allow: shown letter by letter, and bound to what will run.

An approval has two sides. The *card* is what the person sees: our words, and between them the
*literal*, which is what will run, with everything that cannot be seen written out. The *seal* is a
hash over all that decides what will happen: the tool, its arguments as they are stored, and what
the tool makes of them here (the folder, the boundary). The seal is stored with the question, and
copied to the call by the yes. A call starts only under the seal that it was approved with, so a
changed configuration, or any fault of ours, cannot make a yes count for something else.
"""

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from koboshi.domain.command import QuestionKind, Ruling
from koboshi.domain.durations import duration
from koboshi.domain.inbox import Words, yes_or_no
from koboshi.domain.phrases import ALWAYS, YES_NO, clock_words, excerpt
from koboshi.domain.text import exactly, unseen_count
from koboshi.domain.transcript import ApprovalSeal, Choice, Question

OPERATOR = "operator"
"""Who answers on the page: the owner, under any name on a platform."""
LITERAL_CHARS_MAX = 100_000
"""More than this is not asked about at all: no person reads it."""
REASON_CHARS_MAX = 500
NAME_CHARS_MAX = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """What a tool wants to be allowed."""

    lead: str
    """Our question, in one line: `May I run this in /work?`"""
    literal: str
    """What will run or be written, exactly."""
    notes: tuple[str, ...] = ()
    """More lines of ours: what it leaves, what it can reach."""
    reason: str = ""
    """Why, in the model's own words."""
    binds: tuple[str, ...] = ()
    """What else decides what happens: the folder, the boundary."""
    may_be_kept: bool = False
    """Whether the person can allow the same for good in this chat."""


def seal_of(tool: str, arguments: str, approval: Approval) -> str:
    """The hash that a yes is bound to. Each part has its length before it, so that no two different
    lists of parts read alike."""
    return _hash("seal", tool, arguments, approval.literal, *approval.binds)


def rule_key_of(tool: str, approval: Approval) -> str:
    """The hash by which a standing rule knows the same thing again; empty where none can be made.
    The model's reason and its time limits do not count: they do not change what runs."""
    if not approval.may_be_kept:
        return ""
    return _hash("rule", tool, approval.literal, *approval.binds)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalCard:
    """A question as it is stored and shown."""

    text: str
    choices: tuple[Choice, ...]
    sealed: ApprovalSeal
    chat_text: str = ""
    """What the chat is told instead, where the text does not fit there whole."""


class Unaskable(StrEnum):
    """Why a person is not asked. The words are for the model."""

    TOO_LONG = (
        "it is too long to be shown whole, so no person is asked. Put it into a file with "
        "`write_file` and run that file"
    )


def card_of(
    tool: str,
    arguments: str,
    approval: Approval,
    *,
    asked_by: str,
    expires_ms: int,
    lasts_ms: int,
    units_max: int | None,
    has_page: bool,
) -> ApprovalCard | Unaskable:
    """The question to a person. `units_max` is what their chat shows in one message, counted in
    UTF-16 code units; None means that there is no limit."""
    shown = exactly(approval.literal)
    if len(shown) > LITERAL_CHARS_MAX:
        return Unaskable.TOO_LONG
    lead = " ".join(exactly(approval.lead).split("\n"))
    until = f"Good until {clock_words(expires_ms)} ({duration(lasts_ms)})."
    below = "\n".join([*_below(approval, asked_by), until])
    text = f"{lead}\n\n{shown}\n\n{below}"
    begin = len(lead) + 2
    is_elsewhere = units_max is not None and _units(text) > units_max
    if is_elsewhere and not has_page:
        return Unaskable.TOO_LONG
    sealed = ApprovalSeal(
        seal=seal_of(tool, arguments, approval),
        rule_key=rule_key_of(tool, approval),
        begin=begin,
        end=begin + len(shown),
        asked_by=asked_by,
        is_elsewhere=is_elsewhere,
    )
    choices = (*YES_NO, ALWAYS) if sealed.rule_key else YES_NO
    chat_text = _elsewhere(lead, len(shown), below) if is_elsewhere else ""
    return ApprovalCard(text=text, choices=choices, sealed=sealed, chat_text=chat_text)


class NotAnAnswer(StrEnum):
    """Why words do not answer the open question."""

    NOT_ALLOWED = "not-allowed"
    FORWARDED = "forwarded"  # another person wrote them, for another purpose
    WORDLESS = "wordless"  # a recording or another file: what it says is not known yet
    TOO_LONG = "too-long-here"  # a yes, where the question could not be shown whole
    NOT_SHOWN = "not-shown-here"  # a yes, where the question has certainly not arrived


def why_no_answer(
    kind: QuestionKind, question: Question, words: Words, *, is_allowed: bool, is_shown: bool
) -> NotAnAnswer | None:
    """Whether words are an answer to a question; None if they are. What the model wants to know may
    be answered by something that is passed on. A yes or no may not."""
    if not is_allowed:
        return NotAnAnswer.NOT_ALLOWED
    if words.is_forwarded and kind is not QuestionKind.ANSWER:
        return NotAnAnswer.FORWARDED
    if words.is_wordless and kind is QuestionKind.APPROVAL:
        return NotAnAnswer.WORDLESS
    if kind is not QuestionKind.APPROVAL or not ruling_in(words, question).is_yes:
        return None
    if question.sealed is not None and question.sealed.is_elsewhere:
        return NotAnAnswer.TOO_LONG
    return None if is_shown else NotAnAnswer.NOT_SHOWN


def ruling_in(words: Words, question: Question) -> Ruling:
    """What words say to an approval. Words other than a yes are a no that the model reads."""
    said = words.choice_id or words.text.strip().casefold().rstrip(".!")
    if said in (ALWAYS.choice_id, ALWAYS.label.casefold()) and ALWAYS in question.choices:
        return Ruling(is_yes=True, keeps=True)
    answer = yes_or_no(words)
    if answer is True:
        return Ruling(is_yes=True)
    return Ruling(is_yes=False, words="" if answer is False else words.text)


def _below(approval: Approval, asked_by: str) -> list[str]:
    lines = [exactly(note) for note in approval.notes]
    if approval.reason.strip():
        words = exactly(excerpt(approval.reason, REASON_CHARS_MAX))
        lines.append(f"Why, in the agent's own words: «{words}»")
    unseen = unseen_count(approval.literal)
    if unseen:
        them = "1 character" if unseen == 1 else f"{unseen} characters"
        lines.append(f"{them} in it cannot be seen and stand there as \\u and their number.")
    if asked_by:
        lines.append(f"Asked by {exactly(excerpt(asked_by, NAME_CHARS_MAX))}.")
    return lines


def _elsewhere(lead: str, chars: int, below: str) -> str:
    return (
        f"{excerpt(lead, 500)}\n\nIt has {chars} characters: too long to approve here. Approve it "
        "on the page, under Questions, or say no and let it be put into a file.\n\n"
        f"{excerpt(below, 1_000)}"
    )


def _units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _hash(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode("utf-8", "surrogatepass")
        digest.update(f"{len(content)}:".encode() + content)
    return digest.hexdigest()
