"""Following a chat: server-sent events from the journal, over a real socket."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import httpx2
import pytest
from anyio import fail_after

from koboshi.channels.web.limits import WebLimits
from koboshi.domain.ids import ChannelName, EntryId, Seq, TurnId
from koboshi.domain.route import Route
from koboshi.domain.transcript import Answer, Message, Past, PastWords
from koboshi.ports.views import Event
from tests.channels.fakes import WEB, FakeGateway, client_of, serving, until, web_channel
from tests.harness.polling import WITHIN_S

ROUTE = Route(channel=WEB, chat="room")
EVENTS = "/api/v1/sessions/room/events"
HINTS = "/api/v1/journal/events"


@pytest.fixture
def gateway() -> FakeGateway:
    return FakeGateway()


async def test_a_follower_is_told_what_was_and_what_comes(gateway: FakeGateway) -> None:
    gateway.say(ROUTE, "one")
    async with (
        serving(web_channel(gateway), gateway.accept) as url,
        client_of(url) as client,
        following(client) as events,
    ):
        assert await texts(events, 1) == ["one"]
        gateway.say(ROUTE, "two")
        gateway.say(ROUTE, "three")
        assert await texts(events, 2) == ["two", "three"]


async def test_lost_hints_cost_time_and_no_event(gateway: FakeGateway) -> None:
    gateway.wakeups.is_deaf = True
    async with (
        serving(web_channel(gateway), gateway.accept) as url,
        client_of(url) as client,
        following(client) as events,
    ):
        gateway.say(ROUTE, "quiet")
        assert await texts(events, 1) == ["quiet"]


async def test_many_followers_of_one_chat_are_all_told(gateway: FakeGateway) -> None:
    async with (
        serving(web_channel(gateway), gateway.accept) as url,
        client_of(url) as client,
        following(client) as one,
        following(client) as two,
        following(client) as three,
    ):
        gateway.say(ROUTE, "all")
        assert [await texts(each, 1) for each in (one, two, three)] == [["all"]] * 3


async def test_chats_are_told_apart_and_threads_where_asked_for(gateway: FakeGateway) -> None:
    """S124: what belongs to another place is not shown here."""
    gateway.say(Route(channel=WEB, chat="hall"), "elsewhere")
    gateway.say(Route(channel=WEB, chat="room", thread="a"), "in a")
    gateway.say(ROUTE, "in none")
    async with serving(web_channel(gateway), gateway.accept) as url, client_of(url) as client:
        async with following(client) as everything:
            assert await texts(everything, 2) == ["in a", "in none"]
        async with (
            following(client, {"thread": "a"}) as in_a,
            following(client, {"thread": ""}) as in_none,
        ):
            assert await texts(in_a, 1) == ["in a"]
            assert await texts(in_none, 1) == ["in none"]


@pytest.mark.parametrize("how", ["header", "query", "both"])
async def test_a_follower_that_comes_back_begins_behind_what_it_saw(
    gateway: FakeGateway, how: str
) -> None:
    for number in range(5):
        gateway.say(ROUTE, str(number))
    params = {"header": {}, "query": {"after": "3"}, "both": {"after": "1"}}[how]
    headers = {"Last-Event-ID": "3"} if how != "query" else {}
    async with (
        serving(web_channel(gateway), gateway.accept) as url,
        client_of(url) as client,
        following(client, params, headers) as events,
    ):
        assert await texts(events, 2) == ["3", "4"]


@pytest.mark.parametrize(
    "start,first", [({}, "15"), ({"from": "recent"}, "15"), ({"from": "start"}, "0")]
)
async def test_a_new_follower_begins_a_little_back_or_where_it_wants(
    gateway: FakeGateway, start: dict[str, str], first: str
) -> None:
    for number in range(20):
        gateway.say(ROUTE, str(number))
        gateway.say(Route(channel=WEB, chat="hall"), "noise")
    channel = web_channel(gateway, limits=WebLimits(recent_lines=5, page_lines=3))
    async with (
        serving(channel, gateway.accept) as url,
        client_of(url) as client,
        following(client, start) as events,
    ):
        wanted = list(map(str, range(int(first), 20)))
        assert await texts(events, len(wanted)) == wanted


async def test_a_follower_from_now_on_learns_its_place_before_anything_happens(
    gateway: FakeGateway,
) -> None:
    """A client that is cut off before the first event must not miss it."""
    gateway.say(ROUTE, "old")
    async with serving(web_channel(gateway), gateway.accept) as url, client_of(url) as client:
        async with following(client, {"from": "now"}) as events:
            place = await anext(events)
        gateway.say(ROUTE, "new")
        async with following(client, headers={"Last-Event-ID": place.id}) as events:
            assert await texts(events, 1) == ["new"]

    assert (place.id, place.event, place.data) == ("1", "place", '{"seq":1}')


async def test_a_place_that_the_journal_has_not_reached_is_no_place_to_wait_at(
    gateway: FakeGateway,
) -> None:
    """After a restored backup ids are used again; a client must not be deaf until then."""
    gateway.say(ROUTE, "old")
    async with (
        serving(web_channel(gateway), gateway.accept) as url,
        client_of(url) as client,
        following(client, {"after": "5000"}) as events,
    ):
        await anext(events)
        gateway.say(ROUTE, "new")
        assert await texts(events, 1) == ["new"]


@pytest.mark.parametrize("params", [{"after": "-1"}, {"after": "x"}, {"from": "there"}], ids=str)
async def test_a_place_that_is_none_is_refused(
    gateway: FakeGateway, params: dict[str, str]
) -> None:
    async with serving(web_channel(gateway), gateway.accept) as url, client_of(url) as client:
        response = await client.get(EVENTS, params=params)

    assert (response.status_code, response.json()["error"]["type"]) == (400, "bad-place")


@pytest.mark.parametrize("headers", [{}, {"Last-Event-ID": "2"}], ids=["new", "stale"])
async def test_a_place_older_than_what_is_kept_is_a_resync(
    gateway: FakeGateway, headers: dict[str, str]
) -> None:
    """Issue 13, A4: not silence. What was said is told from the transcript, then what is kept; who
    comes back behind that is not told again."""
    gateway.first_seq = 8
    gateway.say(ROUTE, "new words")
    said: tuple[Message | Answer, ...] = (
        Message(text="old words", sender="ann", entry_id=EntryId(1), sent_ms=1),
        Answer(text="old answer"),
    )
    gateway.forgotten = Past(
        seq=7,
        at_ms=1,
        said=tuple(
            PastWords(seq=Seq(number), turn_id=TurnId(1), thread="", body=body, at_ms=1)
            for number, body in enumerate(said)
        ),
    )
    async with serving(web_channel(gateway), gateway.accept) as url, client_of(url) as client:
        async with following(client, {"from": "start"}, headers) as events:
            with fail_after(WITHIN_S):
                told = [await anext(events) for _ in range(4)]
        assert [each.event for each in told] == ["resync", "message", "answer", "answer"]
        assert json.loads(told[0].data)["seq"] == 7
        words = [json.loads(each.data)["text"] for each in told[1:]]
        assert words == ["old words", "old answer", "new words"]
        assert [each.id for each in told] == ["7", "7", "7", "8"]
        async with following(client, {}, {"Last-Event-ID": "7"}) as events:
            assert await texts(events, 1) == ["new words"]


async def test_a_quiet_connection_is_kept_alive_with_its_place(gateway: FakeGateway) -> None:
    gateway.say(ROUTE, "hi")
    gateway.add(ROUTE, "call", 1, "started")
    channel = web_channel(gateway, limits=WebLimits(keep_alive_s=0.05))
    async with (
        serving(channel, gateway.accept) as url,
        client_of(url) as client,
        following(client) as events,
    ):
        await texts(events, 1)
        quiet = await anext(events)

    assert (quiet.id, quiet.event, quiet.data) == ("2", "place", '{"seq":2}')


async def test_typing_is_shown_to_those_who_follow_and_is_no_place(gateway: FakeGateway) -> None:
    channel = web_channel(gateway)
    async with (
        serving(channel, gateway.accept) as url,
        client_of(url) as client,
        following(client) as events,
    ):
        place = await anext(events)
        await channel.typing(ROUTE)
        typing = await anext(events)

    assert typing.event == "typing"
    assert typing.id == place.id


async def test_nothing_is_skipped_or_repeated_across_many_restarts(gateway: FakeGateway) -> None:
    """S145, S149: the server goes away again and again in the middle of the stream; each time the
    client comes back with the last id it saw."""
    seen: list[str] = []
    place = {"Last-Event-ID": "0"}
    for round_number in range(5):
        for number in range(20):
            gateway.say(ROUTE, f"{round_number}.{number}")
        channel = web_channel(gateway, limits=WebLimits(page_lines=3))
        async with (
            serving(channel, gateway.accept) as url,
            client_of(url) as client,
            following(client, headers=place) as events,
        ):
            with fail_after(WITHIN_S):
                async for event in events:
                    place = {"Last-Event-ID": event.id}
                    seen += [json.loads(event.data)["text"]] if event.event != "place" else []
                    if len(seen) >= 20 * round_number + 13:
                        break
    assert seen == [f"{a}.{b}" for a in range(5) for b in range(20)][: len(seen)]
    assert len(seen) == 93


async def test_a_follower_that_leaves_makes_room_for_another(gateway: FakeGateway) -> None:
    channel = web_channel(gateway, limits=WebLimits(followers_max=1, poll_s=0.05))
    async with serving(channel, gateway.accept) as url, client_of(url) as client:
        async with following(client) as events:
            await anext(events)
            crowded = await client.get(EVENTS)
        statuses = []
        with fail_after(WITHIN_S):
            while 200 not in statuses:
                async with client.stream("GET", EVENTS) as response:
                    statuses.append(response.status_code)

    assert crowded.status_code == 503
    assert "retry-after" in crowded.headers


async def test_a_head_request_is_not_left_hanging(gateway: FakeGateway) -> None:
    async with serving(web_channel(gateway), gateway.accept) as url, client_of(url) as client:
        with fail_after(WITHIN_S):
            response = await client.head(EVENTS)

    assert response.headers["content-type"].startswith("text/event-stream")


async def test_what_is_stored_while_a_page_is_read_is_told(gateway: FakeGateway) -> None:
    """The hint comes between reading and waiting."""
    channel = web_channel(gateway, limits=WebLimits(poll_s=3600))
    read = gateway.events
    reads = []

    async def read_and_write(
        channel: ChannelName, chat: str, *, after: int, limit: int
    ) -> Sequence[Event]:
        page = await read(channel, chat, after=after, limit=limit)
        reads.append(len(page))
        if len(reads) == 2:
            gateway.say(ROUTE, "late")
        return page

    gateway.say(ROUTE, "early")
    gateway.events = read_and_write  # type: ignore[method-assign]
    async with (
        serving(channel, gateway.accept) as url,
        client_of(url) as client,
        following(client, {"after": "0"}) as events,
    ):
        assert await texts(events, 2) == ["early", "late"]
        await until(lambda: len(reads) >= 3)


async def test_a_follower_that_looks_at_everything_is_told_that_something_happened_anywhere(
    gateway: FakeGateway,
) -> None:
    hall = Route(channel=WEB, chat="hall")
    channel = web_channel(gateway, limits=WebLimits(hint_s=0.0))
    async with (
        serving(channel, gateway.accept) as url,
        client_of(url) as client,
        following(client, path=HINTS) as hints,
    ):
        assert (await anext(hints)).event == "journal"
        gateway.say(hall, "one")
        gateway.say(ROUTE, "two")
        with fail_after(WITHIN_S):
            while json.loads((await anext(hints)).data)["seq"] < 2:
                continue


async def test_a_follower_that_looks_at_everything_does_not_hold_up_the_end(
    gateway: FakeGateway,
) -> None:
    limits = WebLimits(hint_s=0.0, goodbye_s=60)
    with fail_after(WITHIN_S):
        async with (
            AsyncExitStack() as visits,
            serving(web_channel(gateway, limits=limits), gateway.accept) as url,
        ):
            client = await visits.enter_async_context(client_of(url))
            hints = await visits.enter_async_context(following(client, path=HINTS))
            await anext(hints)


@asynccontextmanager
async def following(
    client: httpx2.AsyncClient,
    params: dict[str, str] | None = None,
    headers: dict[str, str] | None = None,
    path: str = EVENTS,
) -> AsyncIterator[AsyncIterator[httpx2.ServerSentEvent]]:
    async with client.stream("GET", path, params=params, headers=headers) as response:
        assert response.status_code == 200
        yield aiter(httpx2.EventSource(response))


async def texts(events: AsyncIterator[httpx2.ServerSentEvent], count: int) -> list[str]:
    found: list[str] = []
    with fail_after(WITHIN_S):
        while len(found) < count:
            event = await anext(events)
            if event.event != "place":
                found.append(json.loads(event.data)["text"])
    return found
