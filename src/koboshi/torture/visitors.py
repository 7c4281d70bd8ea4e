"""People on the platform: in private, in a group and in its topics, with other manners than those
on the web. They only know what they see there."""

import random
import re
from dataclasses import dataclass, field

from anyio import current_time, sleep

from koboshi.torture.errands import LETTER_PARAGRAPHS, errand_afield
from koboshi.torture.person import OFFER, GatewayPlace, has_waited
from koboshi.torture.platform import GROUP, Platform, Posted, Spot
from koboshi.torture.seen import Visit

REGULARS = 3
"""Those who are always allowed; one more is so only now and then."""
PATIENCE_S = 3.0
PATIENCE_AT_END_S = 1.0
APOLOGIES = ("I could not finish", "I am sorry")
"""How the gateway begins to tell of an end without an answer."""


def spots_of(place: int) -> list[Spot]:
    """Where a person writes: alone with the bot, in the group, in its topics."""
    topics = [Spot(chat=GROUP, thread=thread) for thread in (0, 7, 8)]
    return [Spot(chat=1_000 + place), topics[place % len(topics)]]


@dataclass(slots=True, kw_only=True)
class Visitor:
    number: int
    platform: Platform
    place: GatewayPlace
    dice: random.Random
    is_regular: bool = True
    visits: list[Visit] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)

    @property
    def user(self) -> int:
        return 1_000 + self.number

    async def do_errands(self) -> None:
        """One errand after the other, until it is said that it is enough; then everything that was
        asked for is waited for."""
        while not self.place.is_closing:
            await self._visit(self.dice.choice(spots_of(self.number)))
            await sleep(self.dice.uniform(0, 0.2))
        for visit in self.visits:
            await self._see_through(visit)

    def give_up(self, why: str) -> None:
        """The wait is over."""
        left = [visit.errand.mark for visit in self.visits if not self._has_ended(visit)]
        if left and self.is_regular:
            self.unfinished.append(f"{', '.join(left)}: {why}")

    async def _visit(self, spot: Spot) -> None:
        """Ask for something, and wait for a while."""
        mark = f"v{self.number}x{len(self.visits):05d}"
        errand = errand_afield(self.dice, mark)
        since = len(self.platform.seen_in(spot))
        number, update = self.platform.say(spot, self.user, errand.text)
        visit = Visit(
            spot=spot,
            number=number,
            update=update,
            errand=errand,
            since=since,
            is_regular=self.is_regular,
        )
        self.visits.append(visit)
        begun = current_time()
        while current_time() < begun + PATIENCE_S and not self._has_ended(visit):
            if has_waited(errand, current_time() - begun):
                self.place.recover(errand)
            if self.place.is_closing:
                return
            await self.platform.hears(0.2)

    async def _see_through(self, visit: Visit) -> None:
        """Wait for the end. One who may have been a stranger is not sure to get one."""
        heard_at = current_time()
        self.place.recover(visit.errand)
        while self.is_regular and not self._has_ended(visit):
            await self.platform.hears(0.2)
            if current_time() > heard_at + PATIENCE_AT_END_S:
                heard_at = current_time()
                self.platform.say(visit.spot, self.user, "/resume")

    async def keep_answering(self) -> None:
        """Answer whatever is asked where this person reads, until cancelled."""
        looked_at = dict.fromkeys(spots_of(self.number), 0)
        while True:
            for spot, place in looked_at.items():
                new = self.platform.seen_in(spot)[place:]
                looked_at[spot] += len(new)
                for seen in new:
                    if seen.buttons and (spot, seen.number) not in self.platform.pressed:
                        self.platform.press(seen, self.user, _choice_for(seen))
            await self.platform.hears(1.0)

    def _has_ended(self, visit: Visit) -> bool:
        """Also where one of their later messages has failed: it may have been answered together
        with this one, and else it came behind it."""
        later = self.platform.seen_in(visit.spot)[visit.since :]
        newer = [
            other
            for other in self.visits
            if other.spot == visit.spot and other.number > visit.number
        ]
        return any(
            is_end(visit, seen) or any(is_apology(other, seen) for other in newer) for seen in later
        )


def is_end(visit: Visit, seen: Posted) -> bool:
    """Whether these words are the last that are said of a visit."""
    return is_answer(visit, seen, is_joined=True) or is_apology(visit, seen)


def is_answer(visit: Visit, seen: Posted, is_joined: bool = False) -> bool:
    """Whether these words are its answer, or where it may be answered together with others a whole
    paragraph of them is."""
    errand = visit.errand
    around = (r"(?:\A|.*\n\n)", r"(?:\n\n.*|\Z)") if is_joined else ("", "")
    wanted = f"{around[0]}(?:{errand.answer}){around[1]}"
    if errand.answer and re.fullmatch(wanted, seen.text, re.DOTALL):
        return True
    # The last part of a long one.
    return f"{errand.mark} {LETTER_PARAGRAPHS - 1} " in seen.text


def is_apology(visit: Visit, seen: Posted) -> bool:
    """It names what was asked, or stands below it."""
    is_named = visit.errand.mark in seen.text or seen.replies_to == visit.number
    return seen.text.startswith(APOLOGIES) and is_named


def _choice_for(seen: Posted) -> str:
    """The gateway may go on, and may not do anything twice."""
    wanted = "yes" if seen.text.startswith(OFFER) else "no"
    return next(sends for label, sends in seen.buttons if label.casefold() == wanted)
