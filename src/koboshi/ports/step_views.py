"""The steps of a turn as people are shown them."""

from dataclasses import dataclass

from koboshi.domain.transcript import Call


@dataclass(frozen=True, slots=True, kw_only=True)
class CallView:
    call_id: str
    tool: str
    effect: str
    approved_by: str | None
    started_ms: int | None
    finished_ms: int | None
    skipped_ms: int | None
    outcome: str | None
    exit_code: int | None = None
    """Of a command that was waited for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepView:
    """A step as people are shown it; long texts are cut."""

    seq: int
    kind: str
    cause: str
    text: str
    at_ms: int
    call_id: str | None = None
    """The call that it is the result of."""
    status: str | None = None
    calls: tuple[Call, ...] = ()
    """What a reply proposes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentWords:
    """What a foreign agent told beside its steps: a plan, a thought, or words that came when the
    turn was over."""

    kind: str
    text: str
    at_ms: int
