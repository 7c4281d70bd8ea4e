"""Voice messages are billed like every other call: reserved before, settled after."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from koboshi.domain.budget import BudgetLimits, BudgetUnit, OverBudget
from koboshi.domain.price import Price
from koboshi.ports.transcriber import NotTranscribed, Transcript
from koboshi.runtime import dictation
from koboshi.runtime.billing import Billing
from koboshi.runtime.dictation import Dictation
from tests.harness.homes import Home, OpenHome
from tests.harness.spending import spent

MINUTE = b"OggS" + bytes(119_996)
"""Reckoned as a minute, which counts 1,000 tokens."""
BUSY = NotTranscribed("it answered 503", may_work_later=True, is_free=True)
SLOW = NotTranscribed("it did not answer in time", may_work_later=True)


@dataclass
class Service:
    answers: Sequence[Transcript | NotTranscribed]
    seen: list[tuple[int, int]] = field(default_factory=list)
    """What was used and reserved whenever it was asked."""
    home: Home | None = None

    async def transcribe(self, _name: str, _content: bytes) -> Transcript:
        assert self.home is not None
        self.seen.append(await spent(self.home))
        answer = self.answers[len(self.seen) - 1]
        if isinstance(answer, NotTranscribed):
            raise answer
        return answer


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dictation, "PAUSE_SECONDS", 0)


@pytest.fixture
async def home(open_home: OpenHome) -> Home:
    made = await open_home()
    limits = BudgetLimits(unit=BudgetUnit.TOKENS, day=2_500)
    await made.reopen(crash=False, world=replace(made.world, budget=limits))
    return made


def dictating(home: Home, service: Service, minute_price: float | None = None) -> Dictation:
    service.home = home
    billing = Billing(
        budget=home.store.budget,
        unit=BudgetUnit.TOKENS,
        price_of=lambda _: None,
        unpriced=Price(input=10, output=10),
        reply_tokens=100,
    )
    return Dictation(
        transcriber=service, model="voice:w", billing=billing, minute_price=minute_price
    )


@pytest.mark.parametrize(
    "answers, paid",
    [
        ([Transcript(words="hello")], 1_000),
        ([Transcript(words="hello", seconds=30)], 500),
        ([Transcript(words="hello", tokens=70)], 70),
        ([BUSY, Transcript(words="hello", seconds=30)], 500),
        ([SLOW, Transcript(words="hello", seconds=30)], 1_500),
    ],
    ids=["untold", "seconds", "tokens", "busy is free", "slow may have cost all"],
)
async def test_each_try_reserves_and_its_answer_settles(
    home: Home, answers: list[Transcript | NotTranscribed], paid: int
) -> None:
    claim = await home.work_on()
    service = Service(answers)

    heard = await dictating(home, service).written(claim, "a.ogg", MINUTE)

    assert heard.words == "hello"
    assert heard.seconds is not None, "it is reckoned where it is not told"
    assert [reserved for _, reserved in service.seen] == [1_000] * len(answers)
    assert await spent(home) == (paid, 0)


async def test_a_transcription_lost_in_a_crash_counts_as_spent(home: Home) -> None:
    claim = await home.work_on()

    class Dies(Service):
        async def transcribe(self, _name: str, _content: bytes) -> Transcript:
            assert self.home is not None
            await self.home.reopen(crash=True)
            raise RuntimeError("the old life is over")

    with pytest.raises(RuntimeError, match="the store is closed"):
        await dictating(home, Dies([])).written(claim, "a.ogg", MINUTE)
    assert await spent(home) == (0, 1_000)
    again = Service([Transcript(words="hello", seconds=6)])
    await dictating(home, again).written(claim, "a.ogg", MINUTE)
    assert again.seen == [(1_000, 1_000)]
    assert await spent(home) == (1_100, 0)


async def test_a_service_is_not_asked_beyond_the_limit(home: Home) -> None:
    claim = await home.work_on()
    service = Service([Transcript(words="hello")] * 4)
    speaker = dictating(home, service)
    for _ in range(3):  # the third passes the limit by one reply
        await speaker.written(claim, "a.ogg", MINUTE)

    with pytest.raises(OverBudget):
        await speaker.written(claim, "a.ogg", MINUTE)
    assert len(service.seen) == 3
    assert await spent(home) == (3_000, 0)


async def test_a_service_of_ones_own_is_not_counted(home: Home) -> None:
    claim = await home.work_on()
    service = Service([Transcript(words="hello")])
    await dictating(home, service, minute_price=0.0).written(claim, "a.ogg", MINUTE)

    assert await spent(home) == (0, 0)
