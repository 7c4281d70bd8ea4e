"""The chat client against a gateway that is killed and comes back, over real sockets."""

import io
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

import pytest
from anyio import create_memory_object_stream, create_task_group, fail_after
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from koboshi.channels.web.limits import WebLimits
from koboshi.cli.chat.link import BACK, CONNECTED, LOST, NOT_OURS, NOT_STORED, ChatLink
from koboshi.cli.chat.talk import Screen, Talk
from koboshi.domain.inbox import EntryState
from koboshi.domain.route import Route
from koboshi.domain.transcript import Choice
from koboshi.ports.channel import NO_WATERMARKS, Inbound, Receipt
from tests.channels.fakes import TOKEN, WEB, FakeGateway, serving, until, web_channel
from tests.channels.proxy import Wire, wire
from tests.harness.polling import WITHIN_S

ROUTE = Route(channel=WEB, chat="room")
YES = Choice(choice_id="yes", label="Yes")


@dataclass
class Person:
    """A person at a terminal."""

    url: str
    is_interactive: bool = True
    token: Callable[[], str | None] = lambda: TOKEN
    out: io.StringIO = field(default_factory=io.StringIO)
    err: io.StringIO = field(default_factory=io.StringIO)
    keyboard: MemoryObjectSendStream[str] = field(init=False)
    code: int | None = None
    _lines: MemoryObjectReceiveStream[str] = field(init=False)

    def __post_init__(self) -> None:
        self.keyboard, self._lines = create_memory_object_stream[str](100)

    def type(self, *lines: str) -> None:
        for line in lines:
            self.keyboard.send_nowait(line)

    @property
    def heard(self) -> list[str]:
        return self.out.getvalue().splitlines()

    @property
    def remarks(self) -> list[str]:
        return self.err.getvalue().splitlines()

    async def talk(self) -> None:
        link = ChatLink(
            url=self.url,
            chat=ROUTE.chat,
            thread=ROUTE.thread,
            start="recent" if self.is_interactive else "now",
            read_token=lambda: self.token(),
            say=self.screen.remark,
            pauses_s=(0.01,),
        )
        talk = Talk(
            link,
            self.screen,
            thread=ROUTE.thread,
            is_interactive=self.is_interactive,
            last_words_s=0.05,
        )
        with self._lines:
            self.code = await talk.run(self._lines)

    @property
    def screen(self) -> Screen:
        return Screen(self.out, self.err)


def has_heard(person: Person, count: int) -> bool:
    return len(person.heard) == count


def answering(gateway: FakeGateway) -> Callable[[Inbound, Receipt], None]:
    """An agent that echoes."""

    def answer(inbound: Inbound, receipt: Receipt) -> None:
        turn = int(receipt.entry_id)
        gateway.turn_is(inbound.route, turn, "running", "queued")
        gateway.say(inbound.route, f"you said {inbound.words.text}", turn=turn)
        gateway.turn_is(inbound.route, turn, "done", "answered")

    return answer


@pytest.fixture
def gateway() -> FakeGateway:
    gateway = FakeGateway()
    gateway.on_message = answering(gateway)
    return gateway


@asynccontextmanager
async def talking(person: Person) -> AsyncIterator[Person]:
    """The person at their terminal, until they leave with Ctrl-D."""
    with fail_after(60):
        async with create_task_group() as tasks:
            tasks.start_soon(person.talk)
            yield person
            person.keyboard.close()


async def test_what_is_typed_is_answered(gateway: FakeGateway) -> None:
    async with serving(web_channel(gateway), gateway.accept) as url, talking(Person(url)) as person:
        person.type("hello", "", "again")
        await until(lambda: len(person.heard) == 2)

    assert person.heard == ["you said hello", "you said again"]
    assert person.remarks == []
    assert person.code == 0


async def test_a_person_who_comes_back_sees_what_was_said(gateway: FakeGateway) -> None:
    gateway.say(ROUTE, "while you were away")
    async with serving(web_channel(gateway), gateway.accept) as url, talking(Person(url)) as person:
        await until(lambda: person.heard)

    assert person.heard == ["while you were away"]


async def test_a_killed_gateway_is_one_line_and_its_return_another(gateway: FakeGateway) -> None:
    """S145, S149, S162: typed while it was down, sent once when it is back; nothing is shown
    twice or missed."""
    async with wire(None) as line, talking(Person(line.url)) as person:
        await until(lambda: person.remarks)
        async with gateway_at(line, gateway):
            person.type("one")
            await until(lambda: person.heard)
        for number in range(2):
            person.type(f"down {number}")
            await until(lambda: line.connections > 5)
            async with gateway_at(line, gateway):
                await until(partial(has_heard, person, number + 2))

    assert person.heard == ["you said one", "you said down 0", "you said down 1"]
    assert person.remarks[0].endswith("start one with: koboshi run")
    assert person.remarks[1:] == [CONNECTED, LOST, BACK, LOST, BACK, LOST]
    assert len(gateway.stored) == 3


async def test_a_message_whose_receipt_was_lost_is_stored_once(gateway: FakeGateway) -> None:
    """S97, S162: the gateway has it, the client does not know; the same key says so."""
    channel = web_channel(gateway)
    async with (
        serving(channel, gateway.accept),
        wire(channel.bound_port) as line,
        talking(Person(line.url)) as person,
    ):
        await until(lambda: line.connections == 1)
        line.limits = [0, 0, 10]
        person.type("hello")
        await until(lambda: line.connections >= 4)
        person.type("next")
        await until(lambda: len(person.heard) == 2)

    assert person.heard == ["you said hello", "you said next"]
    assert [inbound.words.text for _, inbound in gateway.stored.values()] == ["hello", "next"]


async def test_events_cut_anywhere_are_shown_once(gateway: FakeGateway) -> None:
    """S149: the wire breaks within answers, again and again."""
    channel = web_channel(gateway)
    async with serving(channel, gateway.accept), wire(channel.bound_port) as line:
        line.limits = list(range(920, 1_200, 23))
        async with talking(Person(line.url)) as person:
            for number in range(8):
                gateway.say(ROUTE, f"answer {number}")
            await until(lambda: len(person.heard) == 8)

    assert person.heard == [f"answer {number}" for number in range(8)]
    assert (
        person.remarks.count(LOST) == person.remarks.count(BACK) + 1 or person.remarks[-1] == BACK
    )


async def test_a_store_in_trouble_is_waited_for(gateway: FakeGateway) -> None:
    """S166: 503 says that the outcome is unknown; the message goes out again with its key."""
    troubles = iter([True, True])

    async def accept(
        batch: Sequence[Inbound],
        cursor: str | None = None,
        watermarks: Mapping[str, str] = NO_WATERMARKS,
    ) -> tuple[Receipt, ...]:
        if next(troubles, False):
            return ()
        return await gateway.accept(batch, cursor, watermarks)

    async with serving(web_channel(gateway), accept) as url, talking(Person(url)) as person:
        person.type("hello")
        await until(lambda: person.heard)

    assert person.heard == ["you said hello"]
    assert person.remarks == [NOT_STORED]


async def test_a_question_is_answered_by_its_number(gateway: FakeGateway) -> None:
    """S141, S142: the question is there after a restart, and takes the number of a choice."""
    gateway.say(ROUTE, "Shall I?", question=12, choices=(YES,))
    async with serving(web_channel(gateway), gateway.accept) as url, talking(Person(url)) as person:
        await until(lambda: person.heard)
        person.type("1")
        await until(lambda: gateway.stored)

    ((_, inbound),) = gateway.stored.values()
    assert (inbound.words.question, inbound.words.choice_id) == (12, "yes")
    assert person.heard[:2] == ["Shall I?", "  1) Yes"]


async def test_a_pipe_is_left_when_everything_is_answered(gateway: FakeGateway) -> None:
    gateway.say(ROUTE, "old words, not for this pipe")
    async with serving(web_channel(gateway), gateway.accept) as url:
        person = Person(url, is_interactive=False)
        async with talking(person):
            person.type("one", "two", "three")

    assert person.heard == ["you said one", "you said two", "you said three"]
    assert person.code == 0


async def test_a_pipe_waits_for_an_answer_that_takes_long(gateway: FakeGateway) -> None:
    gateway.on_message = lambda inbound, receipt: None
    async with serving(web_channel(gateway), gateway.accept) as url:
        person = Person(url, is_interactive=False)
        async with talking(person):
            person.type("think")
            person.keyboard.close()
            await until(lambda: gateway.stored)
            gateway.turn_is(ROUTE, 1, "running", "queued")
            assert person.code is None
            gateway.say(ROUTE, "42", turn=1)

    assert person.heard == ["42"]


async def test_a_pipe_is_left_when_a_question_comes_back(gateway: FakeGateway) -> None:
    def ask(inbound: Inbound, receipt: Receipt) -> None:
        gateway.say(ROUTE, "Really?", turn=int(receipt.entry_id), question=3, choices=(YES,))

    gateway.on_message = ask
    async with serving(web_channel(gateway), gateway.accept) as url:
        person = Person(url, is_interactive=False)
        async with talking(person):
            person.type("delete everything")

    assert person.heard == ["Really?", "  1) Yes"]


async def test_a_pipe_is_left_when_the_turn_failed_without_words(gateway: FakeGateway) -> None:
    gateway.on_message = lambda inbound, receipt: gateway.turn_is(
        ROUTE, int(receipt.entry_id), "stopped", "running"
    )
    async with serving(web_channel(gateway), gateway.accept) as url:
        person = Person(url, is_interactive=False)
        async with talking(person):
            person.type("hello")

    assert (person.heard, person.code) == ([], 0)


async def test_a_refused_message_is_reported_and_the_exit_code_tells(gateway: FakeGateway) -> None:
    channel = web_channel(gateway, limits=WebLimits(message_chars_max=10))
    async with serving(channel, gateway.accept) as url:
        person = Person(url, is_interactive=False)
        async with talking(person):
            person.type("much too long", "short")

    assert person.heard == ["you said short"]
    assert person.remarks == ["not sent: text is longer than 10 characters"]
    assert person.code == 1


async def test_a_wrong_token_is_said_clearly(gateway: FakeGateway) -> None:
    async with serving(web_channel(gateway), gateway.accept) as url:
        person = Person(url, token=lambda: "wrong")
        with fail_after(WITHIN_S), person.keyboard:
            await person.talk()

    assert person.code == 78
    assert person.remarks == [NOT_OURS.format(url=url)]


async def test_a_very_long_answer_is_shown(gateway: FakeGateway) -> None:
    gateway.say(ROUTE, "\x1b" * 1_000_000)
    async with serving(web_channel(gateway), gateway.accept) as url, talking(Person(url)) as person:
        await until(lambda: person.heard)

    assert person.heard == ["␛" * 1_000_000]


async def test_a_token_that_is_made_later_is_found(gateway: FakeGateway) -> None:
    """The first start of the gateway makes the token; the client may have been there before."""
    tokens: list[str] = []
    async with serving(web_channel(gateway), gateway.accept) as url:
        person = Person(url, token=lambda: tokens[0] if tokens else None)
        async with talking(person):
            person.type("hello")
            await until(lambda: person.remarks)
            tokens.append(TOKEN)
            await until(lambda: person.heard)

    assert person.heard == ["you said hello"]


async def test_a_person_who_leaves_is_told_what_was_not_sent() -> None:
    """S162: nothing typed disappears without a word."""
    async with wire(None) as line, talking(Person(line.url)) as person:
        person.type("hello")
        await until(lambda: person.remarks)

    assert person.remarks[-1] == "not sent: hello"
    assert person.code == 0


async def test_a_command_is_answered_by_its_reply(gateway: FakeGateway) -> None:
    def carry_out(inbound: Inbound, receipt: Receipt) -> None:
        handled = Receipt(entry_id=receipt.entry_id, state=EntryState.HANDLED, is_duplicate=False)
        gateway.stored[inbound.external_id] = (handled, inbound)
        cause = f"command:{receipt.entry_id}"
        gateway.say(ROUTE, "all is well", turn=None, cause=cause)

    gateway.on_message = carry_out
    async with serving(web_channel(gateway), gateway.accept) as url:
        person = Person(url, is_interactive=False)
        async with talking(person):
            person.type("/status")

    assert person.heard == ["all is well"]


@asynccontextmanager
async def gateway_at(line: Wire, gateway: FakeGateway) -> AsyncIterator[None]:
    """A gateway at the end of the wire; afterwards it is gone, without a goodbye."""
    channel = web_channel(gateway)
    async with serving(channel, gateway.accept):
        line.target, line.connections = channel.bound_port, 0
        yield
        line.target, line.connections = None, 0
