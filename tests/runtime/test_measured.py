"""What is timed and counted where it happens; what was asked for happens as without it."""

from collections.abc import Mapping, Sequence

import pytest

from koboshi.domain.errors import ModelBusy, ModelOverfull, ModelRefused
from koboshi.domain.ids import ChannelName, EntryId, SessionId, TurnId
from koboshi.domain.inbox import EntryState
from koboshi.domain.outbox import Delivery, Later, Near, SendOutcome, Sent, Unsure
from koboshi.domain.route import Route
from koboshi.ports.channel import NO_WATERMARKS, Abilities, Accept, Inbound, Receipt
from koboshi.ports.model import ModelReply, OnText, Request
from koboshi.runtime.heartbeat import THAW_SECONDS, SuspendDetector
from koboshi.runtime.measured import MeasuredChannel, MeasuredModel
from koboshi.runtime.meter import Meter, labelled
from tests.channels.fakes import FakeClock
from tests.channels.telegram_rig import owed
from tests.harness.quiet_channel import QuietChannel

TELEGRAM = ChannelName("telegram:main")
ARRIVED = Sent(platform_id="1")
PLACE = Route(channel=TELEGRAM, chat="7")


class Platform(QuietChannel):
    """A platform on which everything takes two seconds."""

    def __init__(self, clock: FakeClock, outcome: SendOutcome = ARRIVED) -> None:
        self.clock = clock
        self.outcome = outcome

    @property
    def name(self) -> ChannelName:
        return TELEGRAM

    @property
    def abilities(self) -> Abilities:
        return Abilities()

    async def receive(self, cursor: str | None, accept: Accept) -> None:
        await accept([])
        await accept([], "1")

    async def send(self, delivery: Delivery) -> SendOutcome:
        self.clock.passed_s += 2
        return self.outcome

    async def find(self, delivery: Delivery, near: Near) -> SendOutcome | None:
        return self.outcome


def times(meter: Meter, name: str) -> dict[tuple[tuple[str, str], ...], tuple[int, float]]:
    return {labels: (each.count, each.seconds) for labels, each in meter.times[name].items()}


@pytest.mark.parametrize(
    "outcome, is_labelled, counted",
    [
        (Sent(platform_id="1"), False, {}),
        (Sent(platform_id="1"), True, {"labelled": 1}),
        (Unsure(reason="no answer"), False, {"open": 1}),
        (Later(wait_ms=3_000), False, {}),
    ],
)
async def test_a_send_is_timed_by_how_it_went(
    outcome: SendOutcome, is_labelled: bool, counted: dict[str, int]
) -> None:
    clock, meter = FakeClock(), Meter()
    channel = MeasuredChannel(Platform(clock, outcome), meter, clock)

    assert await channel.send(owed(PLACE, may_be_duplicate=is_labelled)) is outcome

    labels = labelled(platform="telegram", outcome=type(outcome).__name__.lower())
    assert times(meter, "koboshi_send_duration_seconds") == {labels: (1, 2.0)}
    found = meter.counts["koboshi_outbox_ambiguous_total"]
    assert {dict(labels)["resolution"]: count for labels, count in found.items()} == counted
    waited = sum(meter.counts["koboshi_rate_limited_seconds_total"].values())
    assert waited == (3 if isinstance(outcome, Later) else 0)


@pytest.mark.parametrize(
    "outcome, resolution", [(Sent(platform_id="1"), "arrived"), (Later(wait_ms=0), "absent")]
)
async def test_what_is_found_out_of_a_send_is_counted(
    outcome: SendOutcome, resolution: str
) -> None:
    clock, meter = FakeClock(), Meter()
    channel = MeasuredChannel(Platform(clock, outcome), meter, clock)

    assert await channel.find(owed(PLACE), Near(before=(), known=(), is_alone=True)) is outcome

    labels = labelled(platform="telegram", resolution=resolution)
    assert meter.counts["koboshi_outbox_ambiguous_total"] == {labels: 1}


async def test_accepting_is_timed_and_repeats_and_reconnections_are_counted() -> None:
    clock, meter = FakeClock(), Meter()
    channel = MeasuredChannel(Platform(clock), meter, clock)

    async def accept(
        batch: Sequence[Inbound],
        cursor: str | None = None,
        watermarks: Mapping[str, str] = NO_WATERMARKS,
    ) -> tuple[Receipt, ...]:
        clock.passed_s += 1
        first = Receipt(entry_id=EntryId(1), state=EntryState.ATTACHED, is_duplicate=False)
        again = Receipt(entry_id=EntryId(1), state=EntryState.ATTACHED, is_duplicate=True)
        return (first, again)

    await channel.receive(None, accept)
    await channel.receive(None, accept)

    here = labelled(platform="telegram")
    assert times(meter, "koboshi_accept_duration_seconds") == {here: (2, 2.0)}
    assert meter.counts["koboshi_inbox_duplicates_total"] == {here: 2}
    assert meter.counts["koboshi_adapter_reconnects_total"] == {here: 1}


class Thinker:
    """A model that answers, or fails as it is told to, after a second."""

    def __init__(self, clock: FakeClock, error: Exception | None) -> None:
        self.clock = clock
        self.error = error

    async def respond(self, request: Request, on_text: OnText | None = None) -> ModelReply:
        self.clock.passed_s += 1
        if self.error is not None:
            raise self.error
        return ModelReply(text="hello", tokens_in=70, tokens_out=2)


class Unusual(ModelBusy):
    """Of a foreign plug-in."""


@pytest.mark.parametrize(
    "error, outcome",
    [
        (None, "ok"),
        (Unusual("later"), "busy"),
        (ModelOverfull("too long"), "overfull"),
        (ModelRefused("no"), "refused"),
        (RuntimeError("bug"), "ended"),
    ],
)
async def test_a_request_to_the_model_is_timed_by_how_it_went(
    error: Exception | None, outcome: str
) -> None:
    clock, meter = FakeClock(), Meter()
    thinker = Thinker(clock, error)
    model = MeasuredModel(model=thinker, meter=meter, clock=clock, name="openai:small")
    request = Request(session_id=SessionId(1), turn_id=TurnId(1), system="", steps=(), tools=())

    if error is None:
        assert (await model.respond(request)).text == "hello"
    else:
        with pytest.raises(type(error)):
            await model.respond(request)

    about = {"provider": "openai", "model": "small"}
    labels = labelled(outcome=outcome, **about)
    assert times(meter, "koboshi_llm_request_duration_seconds") == {labels: (1, 1.0)}
    tokens = {labelled(direction="in", **about): 70, labelled(direction="out", **about): 2}
    assert meter.counts["koboshi_llm_tokens_total"] == (tokens if error is None else {})


class Sleeper:
    """A machine whose own clock stands still while it sleeps."""

    def __init__(self) -> None:
        self.wall_s, self.own_s = 1_000.0, 50.0

    def now_ms(self) -> int:
        return int(self.wall_s * 1000)

    def monotonic(self) -> float:
        return self.own_s


def test_a_machine_that_slept_is_noticed_once() -> None:
    machine, thaws = Sleeper(), SuspendDetector()
    for awake_s, asleep_s, count in ((5, 0, 0), (5, THAW_SECONDS + 1, 1), (5, 0, 1), (5, -60, 1)):
        machine.wall_s += awake_s + asleep_s
        machine.own_s += awake_s
        thaws.look(machine)
        assert thaws.count == count
