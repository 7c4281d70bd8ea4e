"""What a boot found and decided, in words."""

from collections import Counter
from collections.abc import Sequence

from koboshi.domain.durations import duration
from koboshi.domain.ids import TurnId, shown
from koboshi.domain.recovery import Verdict, VerdictKind
from koboshi.domain.worker import Breaker, EndedHow, Worker

TURNS_NAMED_MAX = 20

_ENDED = {
    EndedHow.STOPPED: "was stopped as asked",
    EndedHow.LEFTOVERS: "was stopped as asked and gave back what it could not finish",
    EndedHow.RESTART: "ended to start again",
    EndedHow.KILLED: "was killed",
    EndedHow.MEMORY: "was killed, it seems for want of memory",
    EndedHow.REBOOTED: "ended with the machine",
}
BREAKER_WORDS = {
    Breaker.HALF: "it dies again and again while it works: turns that died twice in a row without "
    "getting further are not resumed until ten minutes have been quiet, or by /resume",
    Breaker.OPEN: "it dies again and again while it works: nothing is resumed until ten minutes "
    "have been quiet, or by /resume; new messages are served as ever",
}


def boot_report(
    worker: Worker,
    previous: Worker | None,
    decided: Sequence[tuple[TurnId, Verdict]],
    breaker: Breaker,
) -> str:
    """How the last worker ended, what this one found, and what was decided for each turn."""
    sentences = [_before(worker, previous)]
    if decided:
        counts = Counter(f"{verdict.kind} by {verdict.rule}" for _, verdict in decided)
        sentences.append("; ".join(f"{count} {words}" for words, count in counts.most_common()))
        named = [f"{shown('turn', turn)} {verdict.rule}" for turn, verdict in decided]
        more = len(named) - TURNS_NAMED_MAX
        sentences.append(", ".join(named[:TURNS_NAMED_MAX]) + (f" and {more} more" * (more > 0)))
    else:
        sentences.append("nothing was interrupted")
    if breaker is not Breaker.CLOSED:
        sentences.append(BREAKER_WORDS[breaker])
    return ". ".join(sentences) + "."


def resumed_in(decided: Sequence[tuple[TurnId, Verdict]]) -> int:
    return sum(verdict.kind is VerdictKind.RESUME for _, verdict in decided)


def away_ms(worker: Worker, previous: Worker | None) -> int:
    """How long nobody served."""
    if previous is None or previous.ended_ms is None:
        return 0
    return max(0, worker.started_ms - previous.ended_ms)


def _before(worker: Worker, previous: Worker | None) -> str:
    if previous is None:
        return "the first boot in this home"
    how = _ENDED[previous.ended_how or EndedHow.KILLED]
    away = duration(away_ms(worker, previous))
    return f"boot {previous.worker_id} {how}; nobody served for {away}"
