"""What is done to the store, rule by rule, beside a reference of a few lines."""

import os
from collections import Counter
from collections.abc import Callable, Collection, Coroutine
from typing import Any, ClassVar

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from koboshi.domain.command import CommandName
from koboshi.domain.ids import CallId
from koboshi.domain.outbox import Later, Moved, Refused, SendOutcome, Sent, Unsure
from koboshi.domain.phrases import YES_NO
from koboshi.domain.process import Birth, ProcessState
from koboshi.domain.transcript import Effect, Need, Note, Reply, Result, ResultStatus
from koboshi.domain.turn import Claim
from koboshi.domain.watch import WatcherKind, WatcherSpec
from tests.harness.fake_time import DAY_MS, HOUR_MS, SECOND_MS
from tests.harness.homes import SILENT, a_call
from tests.harness.tally import WANTS_ALL
from tests.sim.machine import CHATS, Machine

EXAMPLES, GROUPS, STEPS = (4_000, 80, 50) if WANTS_ALL else (48, 4, 25)
ONE_SEED = os.environ.get("KOBOSHI_SEED", "")
WORDS = st.sampled_from(["hello", "yes", "no"])
CHAT = st.sampled_from(CHATS)
PICK = st.integers(0, 3)
JUMPS = (-HOUR_MS, -60 * SECOND_MS, SECOND_MS, 31 * SECOND_MS, 600 * SECOND_MS, 4 * HOUR_MS)


class StoreMachine(RuleBasedStateMachine):
    """The rules. Whatever is not possible now is passed over."""

    tallied: ClassVar[Counter[str]] = Counter()
    """What all examples came to."""

    def __init__(self) -> None:
        super().__init__()
        self.it = Machine()

    def teardown(self) -> None:
        try:
            self.it.come_to_rest()
            self.tallied.update(self.it.tally)
            self.tallied["examples"] += 1
        finally:
            self.it.close()

    @invariant()
    def everything_is_as_it_must_be(self) -> None:
        self.it.check()

    # ── people ──────────────────────────────────────────────────────────────────────────────────

    @initialize(texts=st.lists(WORDS, min_size=1, max_size=3))
    def a_beginning(self, texts: list[str]) -> None:
        """A person has written in each chat."""
        for chat in CHATS:
            for text in texts:
                self.it.says(chat, text)

    @rule(chat=CHAT, text=WORDS)
    def a_message(self, chat: str, text: str) -> None:
        self.it.says(chat, text)

    @rule(chat=CHAT, text=WORDS)
    def a_message_that_is_held_back(self, chat: str, text: str) -> None:
        """Newer ones may overtake it, and everything else may happen before it comes."""
        self.it.writes(chat, text)

    @precondition(lambda self: self.it.held_back)
    @rule(pick=PICK)
    def a_held_message_comes_late(self, pick: int) -> None:
        chat, key, text = self.it.held_back.pop(pick % len(self.it.held_back))
        self.it.comes(chat, key, text)
        self.it.tally["late messages"] += 1

    @precondition(lambda self: self.it.keys)
    @rule(pick=PICK)
    def the_same_message_again(self, pick: int) -> None:
        chat, key, text = self.it.keys[-1 - pick % len(self.it.keys)]
        before = self.it.look()
        receipt = self.it.do(self.it.home.say(text, chat=self.it.places[chat], key=key))

        assert receipt.is_duplicate
        assert self.it.look() == before, "what came twice did something"

    @rule(chat=CHAT, name=st.sampled_from([CommandName.STOP, CommandName.NEW]))
    def a_cut(self, chat: str, name: CommandName) -> None:
        self.it.chats[chat].is_cut()
        self.it.do(
            self.it.home.command(
                name, chat=self.it.places[chat], key=f"cut-{len(self.it.rows.inbox)}"
            )
        )

    @rule(chat=CHAT, choice=st.sampled_from(["yes", "no", "maybe"]), is_late=st.booleans())
    def a_button(self, chat: str, choice: str, is_late: bool) -> None:
        """Of the open question, or of one that is closed."""
        found = self.it.rows.of("sessions", chat=self.it.places[chat])
        session_id = found[0]["session_id"] if found else 0
        questions = self.it.rows.of("steps", session_id=session_id, kind="question")
        if not questions:
            return
        asked = questions[0 if is_late else -1]
        model = self.it.chats[chat]
        turns = self.it.rows.of("turns", session_id=session_id, question_seq=asked["seq"])
        offered = [each["choice_id"] for each in self.it.rows.body(asked)["choices"]]
        key = f"button-{len(self.it.keys)}"
        if turns and choice in offered:
            model.hears(key, choice, self.it.home.worker.worker_id)
        place, question = self.it.places[chat], asked["seq"]
        self.it.do(self.it.home.say("", chat=place, key=key, question=question, choice=choice))
        self.it.keys.append((chat, key, ""))

    # ── a worker ────────────────────────────────────────────────────────────────────────────────

    @rule()
    def a_claim(self) -> None:
        self.it.claim()

    @rule(pick=PICK, effects=st.lists(st.sampled_from(list(Effect)), min_size=1, max_size=2))
    def a_reply_with_calls(self, pick: int, effects: list[Effect]) -> None:
        held = self.it.claimed(pick)
        if held is None or self.it.open_calls(held[0]):
            return
        calls = [
            a_call(effect=effect, arguments=f'{{"n":{len(self.it.rows.steps)}.{place}}}')
            for place, effect in enumerate(effects)
        ]
        self.it.do(self.it.home.propose(held[0], *calls))

    @rule(pick=PICK, which=PICK)
    def a_call_begins(self, pick: int, which: int) -> None:
        held = self.it.claimed(pick)
        ready = self.it.open_calls(held[0]) if held else []
        fresh = [call for call in ready if not call["started_ms"] and call["need"] == "nobody"]
        if held is not None and fresh:
            self.it.start(held[0], CallId(fresh[which % len(fresh)]["call_id"]))

    @rule(pick=PICK, which=PICK, reads=st.booleans())
    def a_call_ends(self, pick: int, which: int, reads: bool) -> None:
        """Its result may show how processes of its session ended."""
        held = self.it.claimed(pick)
        calls = self.it.open_calls(held[0]) if held else []
        begun = [call for call in calls if call["started_ms"]]
        if held is None or not begun:
            return
        call_id = CallId(begun[which % len(begun)]["call_id"])
        rows = self.it.rows
        session_id = rows.one("turns", turn_id=held[0].turn_id)["session_id"]
        mine = rows.of("processes", session_id=session_id)
        ended = {row["process_id"] for row in mine if row["ended_ms"]}
        shown = [each for each in self.it.processes if each in ended and reads]
        for process_id in shown:
            found = self.it.rows.of("inbox", external_id=f"{process_id}:end")
            told = any(row["state"] in ("attached", "handled") for row in found)
            self.it.read.setdefault(process_id, told)
        result = Result(call_id=call_id, status=ResultStatus.OK, text="fine")
        self.it.do(self.it.home.store.turns.finish_call(held[0], result, shown))

    @rule(pick=PICK, need=st.sampled_from([Need.ANSWER, Need.APPROVAL]))
    def a_question(self, pick: int, need: Need) -> None:
        held = self.it.claimed(pick)
        if held is None or self.it.open_calls(held[0]):
            return
        self.it.do(self.it.home.ask(held[0], need=need, choices=YES_NO))
        held[1].asks(need)

    @rule(pick=PICK, parts=st.integers(1, 3))
    def an_answer(self, pick: int, parts: int) -> None:
        held = self.it.claimed(pick)
        if held is not None:
            self.it.do(self.it.home.answer(held[0], *(["words"] * parts)))
            held[1].closes()

    @rule(pick=PICK, how=st.sampled_from(["fail", "release", "postpone"]))
    def another_way_out(self, pick: int, how: str) -> None:
        held = self.it.claimed(pick)
        if held is None:
            return
        claim, model = held
        turns = self.it.home.store.turns
        if how == "fail":
            self.it.do(turns.fail(claim, "broken"))
            model.closes()
        else:
            work = turns.release(claim) if how == "release" else turns.postpone(claim, 9_000, "x")
            self.it.do(work)
            model.is_judged("queued")

    @rule(pick=PICK)
    def a_process_begins(self, pick: int) -> None:
        held = self.it.claimed(pick)
        if held is None or self.it.open_calls(held[0]):
            return
        claim, home = held[0], self.it.home
        job = a_call(
            "terminal", effect=Effect.RESUMABLE, arguments=f'{{"job":{len(self.it.processes)}}}'
        )
        (call_id,) = self.it.do(home.propose(claim, job))
        if not self.it.start(claim, call_id):
            return
        process = self.it.do(
            home.store.processes.begin(
                claim,
                call_id,
                command="sleep",
                workdir="/",
                is_foreground=False,
                watchers=[WatcherSpec(kind=WatcherKind.EXIT)],
            )
        )
        birth = Birth(boot_id="boot", pid=1, start_ticks=1)
        self.it.do(home.store.processes.born(process.process_id, birth))
        self.it.processes.append(process.process_id)

    @precondition(lambda self: self.it.processes)
    @rule(pick=PICK)
    def a_process_ends(self, pick: int) -> None:
        process_id = self.it.processes[pick % len(self.it.processes)]
        row = self.it.rows.one("processes", process_id=process_id)
        chat = self.it.chat_of(row["session_id"])
        self.it.chats[chat].may_open = True
        ended_ms = self.it.home.clock.now_ms()
        self.it.do(
            self.it.home.store.processes.ended(
                process_id, ProcessState.EXITED, exit_code=0, reason="it exited", ended_ms=ended_ms
            )
        )

    # ── the platform ────────────────────────────────────────────────────────────────────────────

    @rule(chat=CHAT, how=st.sampled_from(["sent", "later", "refused", "unsure", "moved", "held"]))
    def a_delivery(self, chat: str, how: str) -> None:
        taken = self.it.take(chat)
        if taken is None:
            return
        if how == "held":
            self.it.sending.append(taken)
            return
        elsewhere = f"{chat}-{taken.delivery_id}-{taken.attempts}"
        outcomes: dict[str, SendOutcome] = {
            "sent": Sent(platform_id="p"),
            "later": Later(wait_ms=5_000),
            "refused": Refused(reason="no"),
            "unsure": Unsure(),
            "moved": Moved(chat=elsewhere),
        }
        self.it.settle(taken, outcomes[how])
        if how == "moved":
            self.it.places[chat] = elsewhere

    @precondition(lambda self: self.it.sending)
    @rule(how=st.sampled_from([Sent(platform_id="p"), Unsure(), Later(wait_ms=1_000)]))
    def a_send_comes_back(self, how: SendOutcome) -> None:
        self.it.settle(self.it.sending.pop(), how)

    # ── fate ────────────────────────────────────────────────────────────────────────────────────

    @rule()
    def a_crash(self) -> None:
        self.it.crash()

    @rule()
    def another_worker(self) -> None:
        """It begins while the first one works, as if that were dead."""
        self.it.take_over()

    @rule(words=st.sampled_from(["", "hello"]))
    def a_drain(self, words: str) -> None:
        """A person asks the gateway to leave, and a person may write meanwhile."""
        self.it.drain(words)

    @rule()
    def a_rescue(self) -> None:
        self.it.recover()

    @rule(pick=PICK)
    def a_crash_and_everything_after_it(self, pick: int) -> None:
        """In the middle of some work, which is taken up again."""
        self.it.claimed(pick)
        self.it.crash()
        self.it.recover()
        self.it.do(self.it.home.wait_until_due())
        self.it.look()
        self.it.claim()

    @rule(jump=st.sampled_from(JUMPS))
    def the_clock_jumps(self, jump: int) -> None:
        self.it.home.clock.move(jump)
        # The next transaction moves the ages, whatever it does. This one does nothing else.
        self.it.do(self.it.home.accept())

    @rule()
    def a_heartbeat(self) -> None:
        self.it.do(self.it.home.store.workers.beat(self.it.home.worker.worker_id))

    @precondition(lambda self: any(not self.it.is_held(c) for c in self.it.all_claims))
    @rule(pick=PICK, what=st.integers(0, 9))
    def a_write_of_an_old_claim(self, pick: int, what: int) -> None:
        over = [claim for claim in self.it.all_claims if not self.it.is_held(claim)]
        self.it.is_refused(_old_write(self.it, over[-1 - pick % len(over)], what))

    @precondition(lambda self: self.it.old_sending)
    @rule(pick=PICK)
    def a_send_of_an_earlier_worker_comes_back(self, pick: int) -> None:
        """No worker has taken it up since: then what it says is the truth, and the best there is.
        Otherwise it is too late."""
        delivery, worker_id = self.it.old_sending[pick % len(self.it.old_sending)]
        row = self.it.look().one("outbox", delivery_id=delivery.delivery_id)
        settling = self.it.settling(delivery, worker_id, Sent(platform_id="late"))
        if (row["state"], row["worker_id"]) != ("sending", worker_id):
            self.it.is_refused(settling)
            return
        self.it.do(settling)
        after = self.it.look().one("outbox", delivery_id=delivery.delivery_id)
        assert (after["state"], after["platform_id"]) == ("delivered", "late")


def _old_write(it: Machine, claim: Claim, what: int) -> Coroutine[Any, Any, object]:
    turns = it.home.store.turns
    calls = it.rows.of("calls", turn_id=claim.turn_id)
    call_id = CallId(calls[-1]["call_id"] if calls else "0.0")
    result = Result(call_id=call_id, status=ResultStatus.OK, text="late")
    writes: list[Callable[[], Coroutine[Any, Any, object]]] = [
        lambda: turns.append(claim, Reply(text="late"), [a_call()]),
        lambda: turns.note(claim, Note(cause="late", text="[koboshi] late")),
        lambda: turns.start_call(claim, call_id),
        lambda: turns.finish_call(claim, result),
        lambda: turns.ask(claim, call_id, "late?", YES_NO, DAY_MS),
        lambda: turns.answer(claim, Reply(text="late"), ["late"]),
        lambda: turns.fail(claim, "late"),
        lambda: turns.release(claim),
        lambda: turns.postpone(claim, 1_000, "late"),
        lambda: turns.retry_model(claim, SILENT),
    ]
    return writes[what]()


SETTINGS = settings(
    stateful_step_count=STEPS,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=(Phase.generate, Phase.shrink),
)


def run_machine(
    group: int, examples: int, phases: Collection[Phase] = SETTINGS.phases
) -> Counter[str]:
    """So many examples, the same for the same group: what they came to. Raises what the first bad
    one raises."""
    tallied: Counter[str] = Counter()
    chosen = seed(group)(type("StoreMachine", (StoreMachine,), {"tallied": tallied}))
    chosen_settings = settings(SETTINGS, max_examples=examples, phases=phases)
    run_state_machine_as_test(chosen, settings=chosen_settings)
    return tallied
