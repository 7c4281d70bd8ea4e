"""What is wrong with what people saw on the platform. Pure."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from koboshi.torture.errands import LETTER_PARAGRAPHS, ErrandKind
from koboshi.torture.faults import Fault, Violation
from koboshi.torture.platform import Posted, Spot
from koboshi.torture.seen import DeliveryRow, SeenEntry, SeenTurn, TrialSeen, Visit
from koboshi.torture.visitors import is_answer, is_apology

NOT_ALLOWED = "not-allowed"
OUTAGE = "The model provider does not answer"
"""How it is told that the model does not answer for now."""
UNDELIVERED = "could not be delivered: "
"""How it is told that words of the gateway have expired, with their numbers."""


def check_visits(seen: TrialSeen) -> Iterator[Violation]:
    """Each acknowledged message has its answer once, in order, where it was asked, or a told end.
    A copy that says it may be one counts as that."""
    entries = {entry.external_id: entry for entry in seen.remains.entries}
    turns = {turn.turn_id: turn for turn in seen.remains.turns}
    spots: dict[Spot, list[Posted]] = defaultdict(list)
    for each in seen.posted:
        spots[each.spot].append(each)
    lost: dict[int, list[DeliveryRow]] = defaultdict(list)
    for row in seen.remains.deliveries:
        if row.turn_id is not None and row.state == "abandoned" and row.cause.startswith("step:"):
            lost[row.turn_id].append(row)
    asked = {entries[visit.key].entry_id: visit for visit in seen.visits if visit.key in entries}
    # What a person has asked who loses the right waits for it, and others overtake it.
    answered: dict[tuple[Spot, bool], list[tuple[int, int]]] = defaultdict(list)
    for visit in seen.visits:
        entry = entries.get(visit.key)
        if entry is None:
            if visit.update <= seen.acknowledged:
                yield _violation(Fault.LOST, visit, "was acknowledged and is not stored")
            continue
        here = spots[visit.spot]
        yield from _check_place(visit, seen.posted)
        together = seen.remains.joined_with(entry)
        joined = [asked[each] for each in together if each in asked]
        is_told = _is_told_of(lost[entry.turn_id or 0], here)
        yield from _check_end(visit, entry, turns, here, joined, is_told_lost=is_told)
        is_joined = len(together) > 1
        first = next((each.number for each in here if is_answer(visit, each, is_joined)), None)
        if first is not None and together[0] == entry.entry_id:
            answered[visit.spot, visit.is_regular].append((entry.entry_id, first))
    for (spot, _), found in answered.items():
        if any(before[1] >= after[1] for before, after in pairwise(sorted(found))):
            words = f"{spot} was not answered in the order it was asked"
            yield Violation(fault=Fault.DISORDER, words=words)


def _check_place(visit: Visit, posted: Sequence[Posted]) -> Iterator[Violation]:
    others = [each for each in posted if each.spot != visit.spot]
    elsewhere = [each for each in others if is_answer(visit, each, is_joined=True)]
    if elsewhere:
        yield _violation(Fault.WRONG, visit, f"was answered in {elsewhere[0].spot}")


def _check_end(
    visit: Visit,
    entry: SeenEntry,
    turns: Mapping[int, SeenTurn],
    here: Sequence[Posted],
    joined: Sequence[Visit],
    *,
    is_told_lost: bool,
) -> Iterator[Violation]:
    """`joined` is what one turn answers together: what is told of it stands below the newest. An
    answer may expire, if the chat hears so: each wrong clock of a life is a downtime for the next
    one, and many of them make a day."""
    answers = [each for each in here if is_answer(visit, each, len(joined) > 1)]
    apologies = [each for each in here if any(is_apology(other, each) for other in joined)]
    turn = turns.get(entry.turn_id or 0)
    if turn is None:
        if visit.is_regular or entry.reason != NOT_ALLOWED:
            yield _violation(Fault.LOST, visit, f"is {entry.state} ({entry.reason})")
        elif answers:
            yield _violation(Fault.WRONG, visit, "was answered, and the person is not allowed")
        return
    if turn.state == "done" and not answers and not is_told_lost:
        yield _violation(Fault.LOST, visit, f"is done as t{turn.turn_id}, and no answer was seen")
    if turn.state == "failed" and not apologies:
        yield _violation(Fault.LOST, visit, f"failed ({turn.reason}), and no apology was seen")
    # Who loses the right gives way to others who wait in the same chat.
    if turn.state == "stopped" and visit.is_regular:
        yield _violation(
            Fault.LOST, visit, f"was stopped ({turn.reason}), and no stop was asked for"
        )
    outages = [each for each in here if _is_outage(visit, each)]
    outages_max = max(1, sum(other.errand.kind is ErrandKind.OUTAGE for other in joined))
    for found, times_max in ((answers, 1), (apologies, 1), (outages, outages_max)):
        if sum(not each.is_labelled for each in found) > times_max:
            words = f"was told twice, without a label: {found[-1].text[:100]!r}"
            yield _violation(Fault.DOUBLED, visit, words)
    if turn.state == "done" and visit.errand.kind is ErrandKind.LONG and not is_told_lost:
        yield from _check_parts(visit, here)


def _is_told_of(lost: Sequence[DeliveryRow], here: Sequence[Posted]) -> bool:
    """Whether the chat has heard that each of these was not delivered."""
    told = " ".join(each.text for each in here if UNDELIVERED in each.text)
    named = set(re.findall(r"\bd\d+\b", told))
    return bool(lost) and all(f"d{row.delivery_id}" in named for row in lost)


def _is_outage(visit: Visit, seen: Posted) -> bool:
    return seen.text.startswith(OUTAGE) and seen.replies_to == visit.number


def _check_parts(visit: Visit, here: Sequence[Posted]) -> Iterator[Violation]:
    """All paragraphs in their order, copies left out."""
    numbered = re.compile(rf"^{visit.errand.mark} (\d+) ", re.MULTILINE)
    heard: list[int] = []
    for each in here:
        found = [int(number) for number in numbered.findall(each.text)]
        if not each.is_labelled or not set(found) <= set(heard):
            heard += found
    if heard != list(range(LETTER_PARAGRAPHS)):
        yield _violation(Fault.WRONG, visit, f"was answered with the paragraphs {heard}")


def _violation(fault: Fault, visit: Visit, words: str) -> Violation:
    name = f"{visit.errand.kind} {visit.errand.mark} in {visit.spot.chat}/{visit.spot.thread}"
    return Violation(fault=fault, words=f"{name} {words}")
