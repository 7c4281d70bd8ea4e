"""Updates to what the gateway understands: who said what, where, and whether it is for us."""

from typing import Any

import pytest

from koboshi.domain.route import Route
from tests.harness.telegram_updates import (
    ANN,
    BOB,
    DATE,
    FORUM,
    GROUP,
    JSON,
    MAIN,
    PRIVATE,
    SUPERGROUP,
    US,
    a_reader,
    inbound,
    marked,
    message,
    naming,
    pressed,
    read,
    update,
)

OUR_WORDS = message("Shall I?", SUPERGROUP, message_id=5, **{"from": US})


def test_words_in_private_are_for_us() -> None:
    found = read(update(31, message=message("hello")))

    assert found.number == 31
    assert found.inbound.ignored is None
    assert found.inbound.is_private
    assert found.inbound.route == Route(channel=MAIN, chat="7")
    assert (found.inbound.sender, found.inbound.sender_name) == ("7", "Ann Lee")
    assert found.inbound.external_id == "7/10"
    words = found.inbound.words
    assert (words.text, words.anchor, words.sent_ms) == ("hello", "10", DATE * 1000)


def test_a_message_has_one_key_in_whatever_update_it_comes() -> None:
    """S97: the numbers of updates are the platform's own, and start again."""
    first = read(update(5, message=message("hello")))
    again = read(update(900, message=message("hello")))
    elsewhere = read(update(5, message=message("hello", GROUP)))

    assert first.inbound.external_id == again.inbound.external_id
    assert first.inbound.external_id != elsewhere.inbound.external_id


@pytest.mark.parametrize("chat", [GROUP, SUPERGROUP, FORUM])
def test_in_a_group_what_is_not_said_to_us_is_told_apart(chat: JSON) -> None:
    """Issue 13, B14: whether it is kept is decided where it is stored, by how the chat is set."""
    found = inbound("lunch at noon?", chat)

    assert (found.is_addressed, found.ignored) == (False, None)
    assert found.is_group
    assert not found.is_private


@pytest.mark.parametrize("chat", [GROUP, SUPERGROUP])
@pytest.mark.parametrize(
    "text, heard",
    [
        ("@koboshi_bot what now?", "what now?"),
        ("@Koboshi_Bot, what now?", "what now?"),
        ("what now? @koboshi_bot", "what now?"),
        ("ask @koboshi_bot what now", "ask @koboshi_bot what now"),
        ("@koboshi_bot", "@koboshi_bot"),
        ("😀😀 @koboshi_bot", "😀😀"),
    ],
)
def test_in_a_group_we_are_called_by_name(chat: JSON, text: str, heard: str) -> None:
    name = "@Koboshi_Bot" if "@Koboshi_Bot" in text else "@koboshi_bot"
    found = inbound(text, chat, entities=naming(text, name))

    assert found.ignored is None
    assert found.words.text == heard


def test_a_name_that_begins_like_ours_is_another() -> None:
    text = "@koboshi_bot2 what now?"

    assert not inbound(text, GROUP, entities=naming(text, "@koboshi_bot2")).is_addressed


def test_a_name_that_is_no_mention_is_only_text() -> None:
    assert not inbound("see `@koboshi_bot`", GROUP).is_addressed


def test_who_has_no_name_to_type_is_mentioned_by_account() -> None:
    text = "Koboshi, what now?"
    us, bob = (marked("text_mention", "Koboshi", text, user=user) for user in (US, BOB))

    assert inbound(text, GROUP, entities=[us]).ignored is None
    assert not inbound(text, GROUP, entities=[bob]).is_addressed


def test_a_caption_calls_us_too() -> None:
    text = "@koboshi_bot what is this?"
    photo = [{"file_id": "F", "file_size": 9}]
    found = inbound(chat=GROUP, photo=photo, caption=text, caption_entities=naming(text))

    assert found.ignored is None
    assert found.words.text == "what is this?"
    assert len(found.words.files) == 1


def test_an_answer_to_us_is_for_us() -> None:
    assert inbound("yes", SUPERGROUP, reply_to_message=OUR_WORDS).words.text == "yes"
    to_bob = message("Shall I?", SUPERGROUP, message_id=5, **{"from": BOB})
    assert not inbound("yes", SUPERGROUP, reply_to_message=to_bob).is_addressed


def test_being_in_a_topic_that_we_made_is_no_answer_to_us() -> None:
    """In a forum every message answers the one that its topic began with."""
    root = {**OUR_WORDS, "chat": FORUM, "forum_topic_created": {"name": "work"}}
    place: dict[str, Any] = {"message_thread_id": 5, "is_topic_message": True}

    assert not inbound("lunch?", FORUM, reply_to_message=root, **place).is_addressed
    answer = {**OUR_WORDS, "chat": FORUM, "message_id": 6}
    assert inbound("yes", FORUM, reply_to_message=answer, **place).ignored is None


@pytest.mark.parametrize(
    "text, heard",
    [
        ("/stop", "/stop"),
        ("/stop@koboshi_bot", "/stop"),
        ("/stop@Koboshi_BOT", "/stop"),
        ("/queue@koboshi_bot then this", "/queue then this"),
    ],
)
def test_commands_in_a_group_are_for_us_unless_they_name_another(text: str, heard: str) -> None:
    command = text.split(" ")[0]
    entities = naming(text, command, "bot_command")

    assert inbound(text, GROUP, entities=entities).words.text == heard


def test_commands_of_other_bots_are_theirs() -> None:
    text = "/stop@other_bot"
    assert inbound(text, GROUP, entities=naming(text, text, "bot_command")).ignored
    inside = "please /stop"
    assert not inbound(inside, GROUP, entities=naming(inside, "/stop", "bot_command")).is_addressed


def test_a_command_in_answer_to_a_person_is_still_a_command() -> None:
    theirs = message("a long story", message_id=5, **{"from": BOB})

    assert inbound("/stop", reply_to_message=theirs).words.text == "/stop"


def test_our_name_is_taken_off_also_where_something_is_answered_or_passed_on() -> None:
    text = "@koboshi_bot /stop"
    theirs = message("go on", GROUP, message_id=5, **{"from": BOB})
    found = inbound("@koboshi_bot sum up", GROUP, reply_to_message=theirs, entities=naming(text))

    assert found.words.text == "[in answer to «go on»]\nsum up"


def test_a_topic_of_a_forum_is_a_place_of_its_own() -> None:
    text = "@koboshi_bot hello"
    place: dict[str, Any] = {"message_thread_id": 5, "is_topic_message": True}
    found = inbound(text, FORUM, entities=naming(text), **place)

    assert found.route == Route(channel=MAIN, chat="-1001234", thread="5")


def test_a_topic_of_a_private_chat_is_a_place_of_its_own() -> None:
    """S152."""
    assert inbound("hello", message_thread_id=5, is_topic_message=True).route.thread == "5"


def test_a_thread_of_answers_is_no_topic() -> None:
    text = "@koboshi_bot hello"
    found = inbound(text, SUPERGROUP, entities=naming(text), message_thread_id=5)

    assert found.route.thread == ""


def test_a_button_carries_the_question_and_the_choice() -> None:
    """S142: bound to what it answers, despite later questions."""
    asked = {**OUR_WORDS, "message_thread_id": 3, "is_topic_message": True}
    found = read(pressed("q12:yes", asked))

    assert (found.callback, found.inbound.external_id) == ("77", "c77")
    words = found.inbound.words
    assert (words.question, words.choice_id, words.anchor) == (12, "yes", "5")
    assert found.inbound.sender == str(ANN["id"])
    assert found.inbound.route == Route(channel=MAIN, chat="-1001234", thread="3")
    assert not found.inbound.is_private


@pytest.mark.parametrize("press", ["", "q:yes", "q12", "q12:", "buy:12", f"q{'9' * 30}:yes"])
def test_a_button_that_is_not_ours_decides_nothing(press: str) -> None:
    found = read(pressed(press, OUR_WORDS))

    assert found.inbound.ignored == "not-our-button"
    assert found.inbound.words.question is None
    assert found.callback == "77", "who pressed it is still told that it was seen"


def test_a_button_on_a_message_that_is_too_old_still_counts() -> None:
    """The platform then tells of its place alone."""
    gone = {"message_id": 5, "chat": PRIVATE, "date": 0}

    assert read(pressed("q12:yes", gone)).inbound.words.choice_id == "yes"
    assert read(pressed("q12:yes", None)).inbound.ignored == "not-our-button"


def test_one_who_writes_for_a_chat_is_that_chat() -> None:
    """An anonymous admin may not pass for the account that the platform writes for them."""
    text = "@koboshi_bot hello"
    anonymous = {"id": 1087968824, "is_bot": True, "first_name": "Group"}
    fields: dict[str, Any] = {"from": anonymous, "sender_chat": SUPERGROUP}
    found = inbound(text, SUPERGROUP, entities=naming(text), **fields)

    assert found.sender == "-1001234"


def test_no_one_is_answered_who_is_no_person() -> None:
    channel = {"id": -1009, "type": "channel", "title": "News"}
    post = {"message_id": 3, "chat": channel, "date": DATE, "text": "news", "sender_chat": channel}

    assert read(update(channel_post=post)).inbound.ignored == "not-a-message"
    assert read(update(message=post)).inbound.ignored == "not-from-a-person"
    assert inbound("hello", **{"from": US}).ignored == "not-from-a-person"


def test_a_group_that_moves_is_told_of_on_both_sides() -> None:
    out = inbound(chat=GROUP, migrate_to_chat_id=-1001234)
    into = inbound(chat=SUPERGROUP, migrate_from_chat_id=-55)

    assert [(each.route.chat, each.moved_to) for each in (out, into)] == [("-55", "-1001234")] * 2
    assert out.external_id != into.external_id


def test_an_edit_names_what_it_takes_the_place_of() -> None:
    first = inbound("helo")
    edited = read(update(9, edited_message=message("hello", edit_date=DATE + 5))).inbound

    assert edited.edits == first.external_id
    assert edited.external_id == "u9"
    assert edited.words.text == "hello"


@pytest.mark.parametrize("kind", ["my_chat_member", "poll", "message_reaction", "of_the_future"])
def test_updates_that_say_nothing_to_us_are_passed_over(kind: str) -> None:
    found = read(update(9, **{kind: {"anything": 1}}))

    assert (found.number, found.inbound.ignored) == (9, "not-a-message")


@pytest.mark.parametrize(
    "service", [{"new_chat_members": [ANN]}, {"pinned_message": OUR_WORDS}, {"left_chat_member": 1}]
)
def test_what_the_platform_tells_by_a_message_is_nothing_said(service: JSON) -> None:
    assert inbound(chat=GROUP, **service).ignored == "nothing-said"


def test_words_of_other_bots_and_commands_to_them_are_never_for_us() -> None:
    """Issue 13, B14: also where the agent listens to all, else bots would talk for ever."""
    bot = {"id": 99, "is_bot": True, "first_name": "Other"}
    assert inbound("beep", GROUP, **{"from": bot}).ignored == "not-addressed"
    assert inbound("/stop@other_bot now", GROUP).ignored == "not-addressed"


def test_who_writes_for_a_chat_has_the_name_of_the_chat() -> None:
    """Issue 13, B9: the id that is stored is the chat's, so the name is, too."""
    text = "@koboshi_bot hello"
    place = {"id": -100, "type": "supergroup", "title": "The owners"}
    found = inbound(text, SUPERGROUP, entities=naming(text), sender_chat=place)

    assert (found.sender, found.sender_name, found.is_group) == ("-100", "The owners", True)


def test_an_album_in_a_group_is_for_us_as_a_whole() -> None:
    """The name stands below the first picture only."""
    reader = a_reader()
    text = "@koboshi_bot compare them"
    first: dict[str, Any] = {"caption": text, "caption_entities": naming(text)}

    def picture(number: int, album: str, **fields: Any) -> bool:
        photo = [{"file_id": f"F{number}"}]
        held = message(chat=GROUP, message_id=number, photo=photo, media_group_id=album, **fields)
        return reader.read(update(number, message=held)).inbound.is_addressed

    assert picture(1, "A", **first)
    assert picture(2, "A")
    assert not picture(3, "B")


def test_words_that_are_too_long_are_cut_and_say_so() -> None:
    found = a_reader(chars_max=100).read(update(message=message("x" * 5_000))).inbound

    assert found.words.text.startswith("x" * 100 + "\n")
    assert "5000" in found.words.text


@pytest.mark.parametrize("date", [-1, -(2**70), 0, 2**31, 2**63, 2**90])
def test_no_clock_of_theirs_breaks_ours(date: int) -> None:
    sent_ms = inbound("hello", date=date).words.sent_ms

    assert 0 <= sent_ms < 2**53
