"""What becomes of a call that was under way when the gateway died. Pure."""

from enum import StrEnum

from koboshi.domain.transcript import Effect


class CallFate(StrEnum):
    """What the gateway does with a call that was under way when it died."""

    RUN_AGAIN = "run-again"
    REATTACH = "reattach"
    UNKNOWN = "unknown"  # the model is told; it is never run again by the gateway


def fate_of(effect: Effect) -> CallFate:
    """Repeating it changes nothing, it can be taken up by its id, or it must not be repeated."""
    match effect:
        case Effect.NONE | Effect.REPEATABLE:
            return CallFate.RUN_AGAIN
        case Effect.RESUMABLE:
            return CallFate.REATTACH
        case Effect.ONCE:
            return CallFate.UNKNOWN
