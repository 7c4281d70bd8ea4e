"""`koboshi explain` on real gateways: where things stand, why, and what happened."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from koboshi.app.owned import owned_store
from koboshi.config import load
from koboshi.domain.ids import ChannelName
from koboshi.domain.inbox import Words
from koboshi.domain.route import Route
from koboshi.ports.channel import Inbound
from koboshi.ports.store import Arrival
from tests.cli.knocking import strangers_knock
from tests.cli.process import Gateway, environment, gateway, koboshi, until


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway that all tests of this file talk to, each in a chat of its own."""
    with gateway(tmp_path_factory.mktemp("explain") / "home") as running:
        yield running


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def explained(one: Gateway, what: str) -> list[str]:
    told = koboshi("explain", what, home=one.home)
    assert told.code == 0, told.err
    return told.out.splitlines()


def happened(lines: list[str]) -> list[str]:
    """What happened, without the times."""
    begin = lines.index("what happened") + 1
    end = next((place for place in range(begin, len(lines)) if not lines[place]), len(lines))
    return [line.split("  ", 2)[2] for line in lines[begin:end]]


# ── the five situations ─────────────────────────────────────────────────────────────────────────


async def test_a_session_without_a_turn_is_not_unknown(home: Path) -> None:
    """Red before: `sessions list` shows it, and `explain` said that there is no such thing."""
    home.mkdir(mode=0o700)
    await strangers_knock(home, "111")
    told = koboshi("explain", "s1", home=home)

    assert told.code == 1
    assert "session s1 has had no turn yet" in told.err


def test_a_turn_that_was_answered(one: Gateway) -> None:
    message = one.say("answered", "echo good morning")
    turn = f"t{one.wait_state(message, 'done')['turn']['turn_id']}"

    lines = explained(one, turn)

    assert lines[0].startswith(f"turn {turn} of session s")
    assert lines[0].endswith("(web:main, chat answered)")
    assert lines[1] == "asked     «echo good morning»"
    assert lines[2].startswith("stands    done, since ")
    assert lines[3] == "why       the answer was delivered"
    assert happened(lines)[:3] == ["accepted", "work began (boot 1)", "the answer was stored"]
    assert happened(lines)[-1] == "done: nothing is left to deliver"
    assert any(line.startswith(f"  {message}  ") for line in lines)
    assert lines[-1].endswith("«good morning»  delivered")


def test_a_turn_that_waits_for_an_answer(one: Gateway) -> None:
    message = one.say("waiting", "ask me which drink: tea or coffee")
    one.wait_state(message, "waiting")

    lines = explained(one, message)

    assert lines[2].startswith("stands    waiting for an answer, since ")
    words = "it asked «Which drink?» and waits for the answer (rule question-open)"
    assert lines[3] == f"why       {words}"
    assert lines[4].startswith("remedy    answer in the chat")
    assert "the model asked the person a question" in happened(lines)
    assert "«Which drink?»" in lines[-1]


def test_a_turn_that_was_stopped(one: Gateway) -> None:
    """S83: it is said to be over, and who ended it."""
    message = one.say("stopped", "count to 100 slowly")
    one.wait_state(message, "running")
    one.say("stopped", "/stop")
    one.wait_state(message, "stopped")

    lines = explained(one, message)

    assert lines[2].startswith("stands    stopped, since ")
    assert lines[3] == "why       stopped by the person, with /stop or /new"
    assert lines[4] == (
        "remedy    write it again, if it is still wanted; "
        f"`koboshi inbox retry {message}`, or Retry on the page, asks it again"
    )
    assert happened(lines)[-1] == "stopped by the person"


async def test_a_blank_message_that_was_ignored(home: Path) -> None:
    """S67: nothing blank reaches the model, and it is kept so that one can ask about it."""
    home.mkdir(mode=0o700)
    words = Words(text="   ", sent_ms=0)
    channel = ChannelName("web:main")
    route = Route(channel=channel, chat="blank")
    inbound = Inbound(route=route, external_id="blank/1", sender="ann", words=words)
    async with owned_store(load(home, None, environment()), who="a test") as store:
        await store.inbox.accept(
            channel,
            [Arrival(inbound=inbound, ignored="blank")],
            cursor=None,
            respond=lambda _command, _facts: pytest.fail("it is no command"),
        )

    told = koboshi("explain", "m1", home=home)

    lines = told.out.splitlines()
    assert lines[0].startswith("message m1 from ann on web:main, received at ")
    assert lines[1] == "said      «»"
    assert lines[2] == "became    ignored: there are no words in it (blank)"


def test_a_message_that_waits_behind_a_turn(one: Gateway) -> None:
    """S92: it is told behind what it waits."""
    first = one.say("queue", "count to 100 slowly")
    turn = f"t{one.wait_state(first, 'running')['turn']['turn_id']}"
    second = one.say("queue", "echo later")

    lines = explained(one, second)

    assert lines[0].startswith(f"message {second} from web on web:main, received at ")
    assert lines[1] == "said      «echo later»"
    assert lines[2] == f"became    waiting behind turn {turn}, «count to 100 slowly»"
    assert lines[3].startswith("          which is being worked on, since ")
    one.say("queue", "/stop")
    assert explained(one, second)[2].startswith(
        "became    dropped: the person cut the conversation"
    )


# ── ways to name a thing ────────────────────────────────────────────────────────────────────────


def test_a_session_is_its_newest_turn(one: Gateway) -> None:
    one.wait_state(one.say("newest", "echo one"), "done")
    told = one.wait_state(one.say("newest", "echo two"), "done")

    lines = explained(one, f"s{told['turn']['session_id']}")

    assert lines[1] == "asked     «echo two»"


def test_a_message_by_the_id_that_the_platform_gave_it(one: Gateway) -> None:
    one.wait_state(one.say("keyed", "echo by key", key="my-key"), "done")

    assert explained(one, "keyed/my-key")[1] == "asked     «echo by key»"


def test_a_delivery_is_told_with_the_turn_it_belongs_to(one: Gateway) -> None:
    told = one.wait_state(one.say("delivery", "echo delivered"), "done")
    delivery = f"d{told['deliveries'][0]['delivery_id']}"

    lines = explained(one, delivery)

    assert lines[0].startswith(f"delivery {delivery} in session s")
    assert lines[1] == "says      «delivered»"
    assert lines[2] == "stands    delivered"
    assert f"belongs   to turn t{told['turn']['turn_id']}, «echo delivered»" in lines
    assert happened(lines) == [f"{delivery} was delivered"]


def test_a_command_is_a_message_that_was_carried_out(one: Gateway) -> None:
    message = one.say("command", "/status")

    assert explained(one, message)[2] == (
        "became    a command: it was carried out and answered when it arrived"
    )


@pytest.mark.parametrize("what", ["t99999", "s99999", "m99999", "d99999", "p1", "nonsense", "«"])
def test_what_is_not_there_is_said_with_how_to_name_things(one: Gateway, what: str) -> None:
    told = koboshi("explain", what, home=one.home)

    assert told.code == 1
    assert f'there is nothing named "{what}"; turns are t1, sessions s1' in told.err


def test_what_is_not_there_is_one_document_for_programs(one: Gateway) -> None:
    told = koboshi("explain", "t99999", "--json", home=one.home)

    assert told.code == 1
    assert told.document["error"]["type"] == "not-found"
    assert told.err == ""


@pytest.mark.parametrize("arguments", [[], [""], ["x" * 2_000]])
def test_explaining_nothing_is_a_wrong_use(one: Gateway, arguments: list[str]) -> None:
    told = koboshi("explain", "--json", *arguments, home=one.home)

    assert told.code == 2
    assert told.document["error"]["type"] == "usage"


# ── for programs, for people, for terminals ─────────────────────────────────────────────────────


def test_a_turn_for_programs(one: Gateway) -> None:
    message = one.say("json", "ask me what?")
    one.wait_state(message, "waiting")
    until(lambda: _has_delivered(one, message), "the question is delivered")

    told = koboshi("explain", message, "--json", home=one.home).document

    assert told["ok"] is True
    assert told["kind"] == "turn"
    assert told["is_running"] is True
    assert told["turn"]["request"] == "ask me what?"
    assert told["why"]["rule"] == "question-open"
    assert {line["subject"] for line in told["lines"]} >= {"turn", "step", "delivery"}
    assert [entry["text"] for entry in told["entries"]] == ["ask me what?"]


def _has_delivered(one: Gateway, message: str) -> bool:
    return any(line["subject"] == "delivery" for line in one.explained(message)["lines"])


def test_the_words_of_people_cannot_command_the_terminal(one: Gateway) -> None:
    message = one.say("terminal", "echo \x1b[2Jcleared\u202e")
    one.wait_state(message, "done")

    told = koboshi("explain", message, home=one.home)

    assert "\\x1b[2Jcleared\\u202e" in told.out
    assert told.out.replace("\n", "").isprintable()
    assert "\x1b" not in koboshi("explain", message, "--json", home=one.home).out


def test_no_colours_are_printed_in_any_case(one: Gateway) -> None:
    message = one.say("plain", "echo hi")

    assert "\x1b" not in koboshi("explain", message, home=one.home, NO_COLOR="1").out
    assert "\x1b" not in koboshi("status", home=one.home).out


# ── without a gateway ───────────────────────────────────────────────────────────────────────────


def test_a_turn_whose_gateway_was_killed_is_explained_without_one(home: Path) -> None:
    """S161, S168: the same decision that the next boot will take, with its reason."""
    with gateway(home) as running:
        message = running.say("a", "count to 30 slowly")
        running.wait_state(message, "running")
        waiting = running.say("a", "echo later")
        running.kill()

    lines = koboshi("explain", message, home=home).out.splitlines()
    behind = koboshi("explain", waiting, home=home).out

    assert lines[2].startswith("stands    interrupted: the gateway died over it, since ")
    assert lines[3].endswith("(rule fresh); this is what the next gateway will see")
    assert "which is interrupted: the gateway died over it" in behind


def test_a_turn_whose_rows_contradict_each_other_is_explained_all_the_same(home: Path) -> None:
    """S166: damage to one story does not take the command down."""
    with gateway(home) as running:
        message = running.say("a", "ask me what?")
        running.wait_state(message, "waiting")
        running.stop()
    with closing(sqlite3.connect(home / "koboshi.db", isolation_level=None)) as database:
        database.execute("UPDATE sessions SET generation = generation + 1")

    lines = koboshi("explain", message, home=home).out.splitlines()

    words = "an open turn belongs to an older generation (rule contradiction)"
    assert lines[3].startswith(f"why       {words}")


def test_a_turn_that_was_set_down_for_a_restart_says_so(home: Path) -> None:
    with gateway(home) as running:
        message = running.say("a", "count to 30 slowly")
        running.wait_state(message, "running")
        running.stop()

    lines = koboshi("explain", message, home=home).out.splitlines()

    assert lines[2].startswith("stands    in the queue, since ")
    assert "it was set down because the gateway was stopping; it goes on" in lines[3]
    assert "set down, because the gateway was stopping" in happened(lines)
