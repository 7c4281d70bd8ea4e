"""Checks the fake with Slack's own client, which we did not write.

Run by `tests/channels/test_slack_fake.py` in a process of its own: the client leaves threads and
sockets behind.
"""

import queue
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError
from slack_sdk.signature import SignatureVerifier
from slack_sdk.socket_mode import SocketModeClient
from slack_sdk.socket_mode.client import BaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse

from tests.fakes.slack.happenings import Fate
from tests.fakes.slack.limits import DISTRIBUTED
from tests.fakes.slack.request_url import SIGNING_SECRET, signature
from tests.fakes.slack.server import Elsewhere, serving_in_thread
from tests.fakes.slack.world import BOT_USER
from tests.harness.polling import until

WAIT_S = 20


@pytest.fixture(scope="module")
def slack() -> Iterator[Elsewhere]:
    with serving_in_thread() as elsewhere:
        yield elsewhere


@pytest.fixture
def web(slack: Elsewhere) -> WebClient:
    fake = slack.fake
    return WebClient(token=fake.bot_token, base_url=f"{fake.api}/", timeout=10)


class Listener:
    """Slack's own socket client, which acknowledges only when it is told to."""

    def __init__(self, slack: Elsewhere, web: WebClient) -> None:
        self._seen: queue.Queue[SocketModeRequest] = queue.Queue()
        self.client = SocketModeClient(app_token=slack.fake.app_token, web_client=web)
        self.client.socket_mode_request_listeners.append(self._hear)
        self.client.connect()

    def _hear(self, _: BaseSocketModeClient, request: SocketModeRequest) -> None:
        self._seen.put(request)

    def next(self) -> SocketModeRequest:
        return self._seen.get(timeout=WAIT_S)

    def acknowledge(self, request: SocketModeRequest) -> None:
        self.client.send_socket_mode_response(SocketModeResponse(request.envelope_id))


@pytest.fixture
async def listener(slack: Elsewhere, web: WebClient) -> AsyncIterator[Listener]:
    made = Listener(slack, web)
    await until(lambda: slack.fake.sockets.connections, "it is connected")
    yield made
    made.client.close()
    await until(lambda: not slack.fake.sockets.connections, "it has gone")
    slack.do(slack.fake.world.happenings.give_up_all)


def test_the_app_knows_itself_and_its_scopes(web: WebClient) -> None:
    me = web.auth_test()
    assert (me["user_id"], me["is_enterprise_install"]) == (BOT_USER, False)
    assert "chat:write" in me.headers["X-OAuth-Scopes"]


def test_a_wrong_token_is_refused(slack: Elsewhere) -> None:
    with pytest.raises(SlackApiError, match="invalid_auth"):
        WebClient(token="xoxb-wrong", base_url=f"{slack.fake.api}/").auth_test()


def test_messages_carry_threads_blocks_and_metadata(slack: Elsewhere, web: WebClient) -> None:
    world = slack.fake.world
    place = slack.do(lambda: world.im(world.user())).channel_id
    words = {"type": "rich_text_section", "elements": [{"type": "text", "text": "hello"}]}
    metadata = {"event_type": "koboshi_delivery", "event_payload": {"key": "k-1"}}
    first = web.chat_postMessage(
        channel=place,
        text="hello",
        blocks=[{"type": "rich_text", "elements": [words]}],
        metadata=metadata,
    )
    web.chat_postMessage(channel=place, text="below", thread_ts=first["ts"])
    web.chat_update(channel=place, ts=first["ts"], text="changed")

    (seen,) = web.conversations_history(channel=place, include_all_metadata=True)["messages"]
    assert (seen["text"], seen["metadata"], seen["reply_count"]) == ("changed", metadata, 1)
    thread = web.conversations_replies(channel=place, ts=first["ts"])["messages"]
    assert [each["text"] for each in thread] == ["changed", "below"]
    assert "metadata" not in web.conversations_history(channel=place)["messages"][0]


def test_pages_are_followed_to_their_end(slack: Elsewhere, web: WebClient) -> None:
    world = slack.fake.world
    ann = slack.do(world.user)
    place = slack.do(lambda: world.im(ann))
    for number in range(5):
        slack.do(lambda n=number: world.say(place, ann, f"{n}"))  # type: ignore[misc]
    pages = web.conversations_history(channel=place.channel_id, limit=2)
    # The client fills the same page anew each time.
    assert [each["text"] for page in pages for each in page["messages"]] == list("43210")
    names = [
        each["id"] for page in web.users_conversations(types="im") for each in page["channels"]
    ]
    assert place.channel_id in names
    slack.do(world.happenings.give_up_all)


def test_one_history_a_minute_with_fifteen_messages(slack: Elsewhere, web: WebClient) -> None:
    world, tiers = slack.fake.world, slack.fake.tiers
    ann = slack.do(world.user)
    place = slack.do(lambda: world.im(ann))
    for number in range(20):
        slack.do(lambda n=number: world.say(place, ann, f"{n}"))  # type: ignore[misc]
    before, tiers.history, tiers.is_on = tiers.history, DISTRIBUTED, True
    try:
        assert len(web.conversations_history(channel=place.channel_id, limit=100)["messages"]) == 15
        with pytest.raises(SlackApiError) as refused:
            web.conversations_history(channel=place.channel_id)
    finally:
        tiers.history, tiers.is_on = before, False
        slack.do(world.happenings.give_up_all)
    assert refused.value.response.status_code == 429
    assert 0 < int(refused.value.response.headers["Retry-After"]) <= 60


def test_files_go_up_and_come_down(slack: Elsewhere, web: WebClient) -> None:
    place = slack.do(lambda: slack.fake.world.im(slack.fake.world.user()))
    web.files_upload_v2(
        channel=place.channel_id, content="the words", filename="a.txt", initial_comment="look"
    )
    (post,) = slack.fake.world.posts(place)
    (file,) = post.body["files"]
    assert (post.text, file["name"], file["size"]) == ("look", "a.txt", 9)
    assert web.files_info(file=file["id"])["file"]["url_private_download"].endswith("a.txt")


def test_people_reactions_and_status(slack: Elsewhere, web: WebClient) -> None:
    world = slack.fake.world
    ann = slack.do(lambda: world.user("Ann"))
    place = slack.do(lambda: world.im(ann))
    said = slack.do(lambda: world.say(place, ann, "hello"))
    me = web.auth_test()["bot_id"]
    assert web.bots_info(bot=me)["bot"]["app_id"] == "A0KOBOSHI"
    assert web.users_info(user=ann.user_id)["user"]["profile"]["display_name"] == "Ann"
    assert web.conversations_open(users=ann.user_id)["channel"]["id"] == place.channel_id
    web.reactions_add(channel=place.channel_id, timestamp=said.ts, name="eyes")
    with pytest.raises(SlackApiError, match="already_reacted"):
        web.reactions_add(channel=place.channel_id, timestamp=said.ts, name="eyes")
    web.assistant_threads_setStatus(
        channel_id=place.channel_id, thread_ts=said.ts, status="is working"
    )
    assert place.status == {said.ts: "is working"}
    slack.do(world.happenings.give_up_all)


async def test_an_event_comes_again_until_it_is_acknowledged(
    slack: Elsewhere, web: WebClient, listener: Listener
) -> None:
    world = slack.fake.world
    ann = slack.do(world.user)
    place = slack.do(lambda: world.im(ann))
    world.happenings.ack_s_max = 0.2
    try:
        said = slack.do(lambda: world.say(place, ann, "hello"))
        first, again = listener.next(), listener.next()
    finally:
        world.happenings.ack_s_max = WAIT_S
    assert first.payload["event_id"] == again.payload["event_id"]
    assert first.envelope_id != again.envelope_id
    assert (first.retry_attempt, again.retry_attempt, again.retry_reason) == (0, 1, "timeout")
    assert first.payload["event"]["text"] == "hello"
    listener.acknowledge(again)
    event = slack.do(lambda: world.event_of(said))
    await until(lambda: event.fate is Fate.ACKNOWLEDGED, "it is acknowledged")


async def test_mentions_presses_and_commands_are_parsed(
    slack: Elsewhere, web: WebClient, listener: Listener
) -> None:
    world = slack.fake.world
    ann = slack.do(world.user)
    room = slack.do(lambda: world.channel("general"))
    slack.do(lambda: world.say(room, ann, f"<@{BOT_USER}> hello"))
    kinds = set()
    for _ in range(2):
        request = listener.next()
        listener.acknowledge(request)
        kinds.add(request.payload["event"]["type"])
    assert kinds == {"message", "app_mention"}
    slack.do(lambda: world.command(room, ann, "stop"))
    request = listener.next()
    listener.acknowledge(request)
    assert (request.type, request.payload["command"]) == ("slash_commands", "/koboshi")
    assert request.accepts_response_payload


async def test_a_connection_that_is_refreshed_is_replaced(
    slack: Elsewhere, web: WebClient, listener: Listener
) -> None:
    before = slack.fake.sockets.opened
    slack.wait_for(slack.fake.sockets.refresh())
    await until(lambda: slack.fake.sockets.opened > before, "it connects again")


def test_signatures_are_those_that_the_client_expects() -> None:
    headers: dict[str, Any] = signature(b'{"type":"event_callback"}', str(int(time.time())))
    verifier = SignatureVerifier(SIGNING_SECRET)
    assert verifier.is_valid_request(b'{"type":"event_callback"}', headers)
    assert not verifier.is_valid_request(b'{"type":"other"}', headers)
