"""What must be true of what is seen from outside: what arrived at the platform, what the model was
shown, what ran in the world. The rows only say what belongs to what."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise

from koboshi.domain.outbox import SAID_THERE
from koboshi.domain.transcript import Message, Note
from koboshi.domain.worker import HALF_BOOTS
from tests.harness.rows import Row, Rows
from tests.sim.crowd import Circle, Update
from tests.sim.effects import Asked
from tests.sim.life import Setting
from tests.sim.platform import Attempt, SimPlatform
from tests.sim.plots import Plot
from tests.sim.violations import Violated, Violation

MESSAGE = re.compile(r"\bm\d+\b")
"""The name of a message, which is in its words and in all that is done about it."""
NOT_OWED_LONG = ("progress:", "drain:")
"""Causes of words that are true only for a while."""
CAUSES = (
    *("step", "failure", "verdict", "expired", "declined", "refused", "command", "report"),
    *("progress", "drain", "pairing", "paired", "file", "retry", "restarted"),
)
"""What deliveries are for. Any other cause tells that something was not said."""
ENDED_EARLY = {"cut", "dropped", "interrupted", "cleared", "declined", "expired"}
"""How turns end whose words need not be said any more."""
UNSENT = {"stopped by the person": "/stop", "resumed by the person": "/resume"}
"""Why words are not sent any more, and what the person has said: the rest of an answer (issue 12,
B15), and a question that they did not wait for."""
LONG_AGO_S = 3_600.0 + 60.0
"""Longer than what counts as fresh."""
MOMENT_S = 1.0
"""A right that was taken is felt everywhere after so long."""
OUTAGE_S_MAX = 300.0
"""An outage of the model that must be ridden out."""
PROMPT_S = 20.0
"""A delivery on a channel that works is tried within this time, whatever others do."""
SOON_S, EVER_S = 20.0, 150.0
"""A message in a chat where nothing goes on comes to the model so soon, while others only wait for
their commands; and in any case before others have long ended."""
REPORT = "[koboshi] Background process "


def entries_of(rows: Rows, update: Update) -> list[Row]:
    """What is stored of something that a person did."""
    place = {"source": update.channel, "account": update.account}
    return rows.of("inbox", external_id=update.external_id, **place)


def it_comes_to_rest(setting: Setting) -> None:
    """Nothing waits longer than the longest pause that anything has."""
    if not setting.unrest:
        return
    number = "A5" if setting.history.counts["clock jumps"] else ""
    raise Violated(f"it never comes to rest: {setting.unrest}", number)


def what_is_owed_arrives(setting: Setting, rows: Rows) -> None:
    """A1: it arrived where it belongs, or the platform refused it for good, or its turn was ended,
    or the chat was told that something did not come."""
    platform = setting.platform
    turns = {turn["turn_id"]: turn for turn in rows.turns}
    routes = {row["session_id"]: row for row in rows.sessions}
    arrived = defaultdict(list)
    for seen in platform.seen:
        arrived[seen.delivery_id].append(seen)
    for row in rows.outbox:
        session = routes[row["session_id"]]
        for seen in arrived[row["delivery_id"]]:
            is_here = seen.chat in (session["chat"], *_olds_of(platform, session["chat"]))
            is_right = is_here and seen.thread == session["thread"]
            assert is_right, f"{seen} belongs to {session}"
        if arrived[row["delivery_id"]] or row["cause"].startswith(NOT_OWED_LONG):
            continue
        if row["state"] == "rejected":
            assert row["delivery_id"] in platform.refused, f"{_named(row)} was never refused"
            continue
        turn = turns.get(row["turn_id"])
        if turn is not None and turn["event"] in ENDED_EARLY:
            continue
        if row["reason"] in UNSENT and _has_said(platform, session, UNSENT[row["reason"]]):
            continue
        if row["reason"] == SAID_THERE and len(rows.of("outbox", cause=row["cause"])) > 1:
            continue  # the chat that this one moved to has it
        if _is_told(platform, rows, row):
            continue
        tries = platform.tried[row["delivery_id"]]
        words = f"{_named(row)} never arrived: {row['reason']} after {tries} tries"
        if "expired" in row["reason"] and setting.history.counts["clock jumps"]:
            raise Violated(words, "A5")
        raise Violated(words, "A1" if row["attempts"] > 1 else "")


def _named(row: Row) -> str:
    return f"d{row['delivery_id']} ({row['cause']}, part {row['part']} of {row['parts']})"


def _olds_of(platform: SimPlatform, chat: str) -> list[str]:
    return [old for old, new in platform.moved.items() if new == chat]


def _is_told(platform: SimPlatform, rows: Rows, lost: Row) -> bool:
    """Whether the chat saw words that are there to say that this one did not come."""
    routes = {row["session_id"]: row["chat"] for row in rows.sessions}
    causes = {row["delivery_id"]: row["cause"].partition(":")[0] for row in rows.outbox}
    chat, named = routes[lost["session_id"]], re.compile(rf"\bd{lost['delivery_id']}\b")
    return any(
        seen.chat in (chat, *_olds_of(platform, chat))
        and causes[seen.delivery_id] not in CAUSES
        and named.search(seen.text)
        for seen in platform.seen
    )


def unknown_outcomes_are_looked_for(setting: Setting, rows: Rows) -> None:
    """A1: where the platform can tell what arrived, it is asked before each repeat."""
    platform = setting.platform
    if not platform.abilities.finds_sent or platform.abilities.idempotent_send:
        return
    tries: dict[int, list[Attempt]] = defaultdict(list)
    for attempt in platform.attempts:
        tries[attempt.delivery_id].append(attempt)
    for delivery_id, mine in tries.items():
        for before, _ in pairwise(mine):
            is_unknown = before.heard in ("", "Unsure")
            if is_unknown and not before.is_looked_for:
                raise Violated(f"d{delivery_id} was repeated, and it was not looked for")


def turns_stand_apart(setting: Setting, rows: Rows) -> None:
    """A2: in what the model is shown, something of ours or of the model stands between messages of
    different turns."""
    for asked in setting.effects.asked:
        for before, after in pairwise(asked.steps):
            both = isinstance(before.body, Message) and isinstance(after.body, Message)
            if both and before.turn_id != after.turn_id:
                words = f"t{asked.turn_id} was shown {_text(before.body)!r} and"
                raise Violated(f"{words} {_text(after.body)!r} as one", "A2")


def _text(body: object) -> str:
    return body.text[:40] if isinstance(body, Message) else ""


def nothing_runs_for_strangers(setting: Setting, rows: Rows) -> None:
    """A3: nothing is asked of the model and nothing is done for a person who is not allowed."""
    authors = {key: update for update in setting.platform.updates for key in _keys_of(update)}
    for at_s, what, keys in _worked_for(setting):
        for update in [authors[key] for key in keys if key in authors]:
            number = _why_not(setting, update, at_s)
            if number is not None:
                words = f"{what} for {update.sender} ({update.text[:20]!r}), who is not allowed"
                raise Violated(words, number)


def no_one_waits_for_the_banned(setting: Setting, rows: Rows) -> None:
    """A3: the message of a person who is allowed is not held up by a person who is not. Told at the
    end of a life in which nothing else was in the way but what the boot breaker holds."""
    authors = {update.key: update.sender for update in setting.platform.updates}
    held = _held_by_the_breaker(setting, rows)
    for entry in rows.of("inbox", kind="message", state="waiting"):
        sender = authors.get(entry["external_id"], "")
        turn = held.get(entry["session_id"])
        is_excused = turn is not None and not _is_written_since(turn, entry)
        if sender and setting.circle.is_allowed(sender) and not is_excused:
            words = f"{entry['external_id']} of {sender} waits behind a person who is not allowed"
            setting.kept_waiting.append(Violation(words, "A3"))


def _held_by_the_breaker(setting: Setting, rows: Rows) -> dict[int, Row]:
    """By session, the turns that the boot breaker may leave as they were found: their worker is
    gone, or they were to be taken up again; several boots have found turns of dead workers; and all
    whose messages are in them are allowed."""
    unclean = [worker for worker in rows.of("workers") if worker["found_dead"]]
    if not setting.policy.has_breaker or len(unclean) < HALF_BOOTS:
        return {}
    newest = max(worker["worker_id"] for worker in rows.of("workers"))
    left = [turn for turn in rows.of("turns", state="running") if turn["worker_id"] != newest]
    left += [turn for turn in rows.of("turns", state="queued") if turn["epoch"]]
    return {
        turn["session_id"]: turn
        for turn in left
        if all(
            setting.circle.is_allowed(entry["sender"])
            for entry in rows.of("inbox", turn_id=turn["turn_id"], kind="message")
        )
    }


def _is_written_since(turn: Row, entry: Row) -> bool:
    """Whether a boot accepted the message that came after the death of the turn: it opens a turn
    of its own, and the breaker is no reason to wait."""
    is_newer = entry["entry_id"] > turn["newest_entry"]
    is_of_its_worker = entry["accepted_by"] in (None, turn["worker_id"])
    return is_newer and (turn["state"] == "queued" or not is_of_its_worker)


def _why_not(setting: Setting, update: Update, at_s: float) -> str | None:
    """The number of the promise that is broken if something is done now; None if it is kept."""
    circle: Circle = setting.circle
    if not circle.was_ever(update.sender, at_s):
        return ""
    if not circle.is_always(update.sender, False, at_s - MOMENT_S, at_s):
        return None
    others = [
        other
        for other in setting.platform.updates
        if other.place == update.place and other.sender != update.sender and other.at_s <= at_s
    ]
    return "A3" if others else ""


def _worked_for(setting: Setting) -> Iterator[tuple[float, str, set[str]]]:
    """What was done, when, and for which messages."""
    for asked in setting.effects.asked:
        bodies = [step.body for step in asked.own]
        texts = [body.text for body in bodies if isinstance(body, Message)]
        keys = {key for text in texts for key in MESSAGE.findall(text)}
        yield asked.at_s, f"t{asked.turn_id} went to the model", keys
    for done in setting.effects.done:
        yield done.at_s, f"{done.tool} ran", set(MESSAGE.findall(done.key))


def _keys_of(update: Update) -> list[str]:
    return MESSAGE.findall(update.text)


def _has_said(platform: SimPlatform, session: Row, command: str) -> bool:
    """Whether a person of the chat has said the command."""
    chats = (session["chat"], *_olds_of(platform, session["chat"]))
    said = [each for each in platform.updates if each.text.startswith(command)]
    return any(each.chat in chats and each.thread == session["thread"] for each in said)


def nothing_stale_goes_on(setting: Setting, rows: Rows) -> None:
    """A turn that lay idle for longer than what is fresh goes on only after its chat was heard
    from again."""
    if setting.policy.fresh_ms <= 0:
        return
    places = _places_of_turns(setting, rows)
    worked: dict[int, list[Asked]] = defaultdict(list)
    for asked in setting.effects.asked:
        worked[asked.turn_id].append(asked)
    for turn_id, mine in worked.items():
        for before, after in pairwise(mine):
            idle_s = min(after.at_s - before.at_s, (after.wall_ms - before.wall_ms) / 1000)
            # Between two lives no clock tells a downtime from a clock that was set.
            if any(before.at_s < at_s < after.at_s for at_s in setting.set_while_down):
                continue
            if idle_s > LONG_AGO_S and not _is_heard_from(
                setting, places[turn_id], before.at_s, after.at_s
            ):
                raise Violated(
                    f"t{turn_id} went on after {idle_s:.0f} s, and no question was asked"
                )


def _places_of_turns(setting: Setting, rows: Rows) -> dict[int, set[tuple[str, str, str]]]:
    """Where each turn is, by all names that its chat had."""
    sessions = {row["session_id"]: row for row in rows.sessions}
    found: dict[int, set[tuple[str, str, str]]] = {}
    for turn in rows.turns:
        row = sessions[turn["session_id"]]
        chats = (row["chat"], *_olds_of(setting.platform, row["chat"]))
        found[turn["turn_id"]] = {(row["channel"], chat, row["thread"]) for chat in chats}
    return found


def _is_heard_from(
    setting: Setting, places: set[tuple[str, str, str]], from_s: float, to_s: float
) -> bool:
    acknowledged = setting.platform.acknowledged
    return any(
        update.place in places
        and update.at_s <= to_s
        and acknowledged.get(update.key, to_s) >= from_s
        for update in setting.platform.updates
    )


def deaths_are_counted(setting: Setting, rows: Rows) -> None:
    """What kills its gateway is tried a few times, and a few more whenever a person wants it."""
    for key, deaths in setting.effects.killed.items():
        (update,) = [each for each in setting.platform.updates if key in _keys_of(each)]
        wills = [
            other
            for other in setting.platform.updates
            if other.place == update.place and not _keys_of(other)
        ]
        allowed = setting.policy.deaths_max * (1 + len(wills))
        assert deaths <= allowed, f"{key} killed the gateway {deaths} times"


def only_the_living_generation_is_heard(setting: Setting, rows: Rows) -> None:
    """The model hears no report of what was started before a cut."""
    generations = {turn["turn_id"]: turn["generation"] for turn in rows.turns}
    born: dict[str, set[int]] = defaultdict(set)
    for entry in rows.of("inbox", kind="message"):
        for key in MESSAGE.findall(entry["body"]):
            born[key].add(entry["generation"])
    for asked in setting.effects.asked:
        for step in asked.own:
            if isinstance(step.body, Note) and step.body.text.startswith(REPORT):
                for key in MESSAGE.findall(step.body.text):
                    is_ours = generations[asked.turn_id] in born[key]
                    assert is_ours, f"t{asked.turn_id} heard of {key}, which is of before a cut"


def outages_are_ridden_out(setting: Setting, rows: Rows) -> None:
    """B13: a model that is away for minutes fails no turn."""
    spans = setting.weather.model_down
    if not spans or max(end for _, end in spans) - min(begin for begin, _ in spans) > OUTAGE_S_MAX:
        return
    for turn in rows.of("turns", event="erred"):
        asked = [step["body"] for step in rows.of("steps", turn_id=turn["turn_id"], kind="message")]
        if not any(word in words for words in asked for word in ("refuse", "empty")):
            raise Violated(f"t{turn['turn_id']} failed: {turn['reason']}", "B13")


def no_one_waits_for_a_place(setting: Setting, rows: Rows) -> None:
    """B10: turns that only wait for a command hold no place, and a turn that has ended holds
    none."""
    if setting.weather.plot is not Plot.SIDE:
        return
    first: dict[str, float] = {}
    for asked in setting.effects.asked:
        texts = [step.body.text for step in asked.own if isinstance(step.body, Message)]
        for key in (key for text in texts for key in MESSAGE.findall(text)):
            first.setdefault(key, asked.at_s)
    waited: dict[str, float] = {}
    for update in setting.platform.updates:
        received_ms = entries_of(rows, update)[0]["received_ms"]
        begun_s = (received_ms - setting.wall_ms) / 1000
        for key in _keys_of(update):
            ends = [end for begin, end in setting.lives if begin <= begun_s <= end]
            until_s = min([first.get(key, setting.now_s), *ends])
            waited[key] = until_s - begun_s
    longest = max(waited, key=lambda key: waited[key], default="")
    if longest and waited[longest] > SOON_S:
        number = "B10" if waited[longest] < EVER_S else ""
        raise Violated(f"{longest} waited {waited[longest]:.0f} s for a place", number)


def channels_do_not_wait_for_each_other(setting: Setting, rows: Rows) -> None:
    """B9: a delivery on a channel that works is tried soon, while another one hangs."""
    if not setting.weather.hangs:
        return
    last_s = setting.weather.hangs[0][1]
    delayed = Counter(_late(setting, rows, last_s))
    if delayed:
        raise Violated(f"waited for the other channel: {dict(delayed)}", "B9")


def _late(setting: Setting, rows: Rows, last_s: float) -> Iterator[str]:
    sessions = {row["session_id"]: row["channel"] for row in rows.sessions}
    hanging = max(setting.channels)
    first: dict[int, float] = {}
    for attempt in setting.platform.attempts:
        first.setdefault(attempt.delivery_id, attempt.at_s)
    for row in rows.outbox:
        owed_s = (row["created_ms"] - setting.wall_ms) / 1000
        tried_s = first.get(row["delivery_id"])
        if sessions[row["session_id"]] == hanging or tried_s is None or owed_s > last_s:
            continue
        is_first = row["part"] == 1 and not _waits_behind(rows, row, owed_s)
        if is_first and tried_s - owed_s > PROMPT_S and _is_one_life(setting, owed_s, tried_s):
            yield f"d{row['delivery_id']}"


def _waits_behind(rows: Rows, row: Row, owed_s: float) -> bool:
    """Whether something older was owed to the same session at that moment."""
    mine = rows.of("outbox", session_id=row["session_id"])
    return any(
        other["delivery_id"] < row["delivery_id"] and other["settled_ms"] > row["created_ms"]
        for other in mine
    )


def _is_one_life(setting: Setting, from_s: float, to_s: float) -> bool:
    return any(begin <= from_s and to_s <= end for begin, end in setting.lives)


SEEN_FROM_OUTSIDE: tuple[Callable[[Setting, Rows], None], ...] = (
    unknown_outcomes_are_looked_for,
    turns_stand_apart,
    nothing_runs_for_strangers,
    nothing_stale_goes_on,
    deaths_are_counted,
    only_the_living_generation_is_heard,
    outages_are_ridden_out,
    channels_do_not_wait_for_each_other,
    no_one_waits_for_a_place,
)
