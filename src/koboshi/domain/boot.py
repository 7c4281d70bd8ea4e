"""What a boot found and decided, in words."""

from collections.abc import Sequence

from koboshi.domain.durations import duration
from koboshi.domain.ids import TurnId, shown
from koboshi.domain.recovery import Verdict, VerdictKind
from koboshi.domain.worker import Breaker, EndedHow, Worker

TURNS_NAMED_MAX = 20

ENDED_WORDS = {
    EndedHow.STOPPED: "was stopped as asked",
    EndedHow.LEFTOVERS: "was stopped as asked and gave back what it could not finish",
    EndedHow.RESTART: "ended to start again",
    EndedHow.KILLED: "was killed",
    EndedHow.MEMORY: "was killed, probably because memory ran out",
    EndedHow.REBOOTED: "ended with the machine",
    EndedHow.REFUSED: "could not start as it was configured",
}
BREAKER_WORDS = {
    Breaker.HALF: "the gateway keeps dying (3 times or more in 10 minutes), so work that was "
    "interrupted twice without progress is paused for ten quiet minutes, or until /resume; new "
    "messages are answered as usual",
    Breaker.OPEN: "the gateway keeps dying (5 times or more in 10 minutes), so interrupted work is "
    "paused for ten quiet minutes, or until /resume; new messages are answered as usual",
}
"""One sentence each: what is held back, why, and until when."""
_DECIDED = {
    VerdictKind.RESUME: "taken up again",
    VerdictKind.DELIVER: "answered, only to be delivered",
    VerdictKind.STAND: "left as it was",
    VerdictKind.CLEAR: "left for a newer message",
    VerdictKind.ASK_USER: "the person is asked whether to go on",
    VerdictKind.SUSPEND: "set aside",
    VerdictKind.GIVE_UP: "given up with an apology",
}


def boot_report(
    worker: Worker,
    previous: Worker | None,
    decided: Sequence[tuple[TurnId, Verdict]],
    breaker: Breaker,
) -> str:
    """How the last worker ended, what this one found, and what was decided for each turn."""
    sentences = [_before(worker, previous)]
    sentences.append(_decisions(decided) if decided else "nothing was interrupted")
    if breaker is not Breaker.CLOSED:
        sentences.append(BREAKER_WORDS[breaker])
    return " ".join(f"{words[:1].upper()}{words[1:]}." for words in sentences)


def _decisions(decided: Sequence[tuple[TurnId, Verdict]]) -> str:
    """Each verdict with its rule, and the turns that it was given."""
    found: dict[str, list[str]] = {}
    for turn, verdict in decided:
        words = f"{_DECIDED[verdict.kind]} (rule {verdict.rule})"
        found.setdefault(words, []).append(shown("turn", turn))
    return "; ".join(f"{words}: {_named(turns)}" for words, turns in found.items())


def _named(turns: Sequence[str]) -> str:
    more = len(turns) - TURNS_NAMED_MAX
    return ", ".join(turns[:TURNS_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")


def resumed_in(decided: Sequence[tuple[TurnId, Verdict]]) -> int:
    return sum(verdict.kind is VerdictKind.RESUME for _, verdict in decided)


def away_ms(worker: Worker, previous: Worker | None) -> int:
    """How long no gateway served between the two boots."""
    if previous is None or previous.ended_ms is None:
        return 0
    return max(0, worker.started_ms - previous.ended_ms)


def _before(worker: Worker, previous: Worker | None) -> str:
    if previous is None:
        return "the first boot in this home"
    how = ENDED_WORDS[previous.ended_how or EndedHow.KILLED]
    away = duration(away_ms(worker, previous))
    # Of a killed boot only the last sign of life is known, not the moment of its death.
    is_bound = previous.ended_how in (None, EndedHow.KILLED, EndedHow.MEMORY)
    most = "at most " if is_bound else ""
    return f"boot {previous.worker_id} {how}; no gateway served for {most}{away}"
