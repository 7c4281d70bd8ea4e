"""Any input is stored or passed over, and breaks nothing behind it."""

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from koboshi.channels.telegram.codec import Read, next_offset, number_of, pieces_of
from koboshi.domain.inbox import Words
from koboshi.runtime.intake import storable
from tests.harness.telegram_updates import HOSTILE, PRIVATE, a_reader, message, read, update


def check(found: Read) -> None:
    """Fail if it could not be stored."""
    inbound = found.inbound
    for text in (inbound.external_id, inbound.sender, inbound.route.chat, inbound.route.thread):
        text.encode()
        assert len(text) < 200
    encoded = msgspec.json.encode(inbound.words)
    assert msgspec.json.decode(encoded, type=Words) == inbound.words
    assert storable(inbound.words.text) == inbound.words.text
    assert inbound.external_id
    assert found.number is None or 0 < found.number < 2**53


@pytest.mark.parametrize("raw", HOSTILE.values(), ids=HOSTILE)
def test_what_cannot_be_read_is_kept_as_it_came(raw: bytes) -> None:
    found = read(raw)

    check(found)
    assert found.inbound.ignored


def test_one_that_is_broken_is_known_by_its_number_or_its_content() -> None:
    numbered, unnumbered = read(HOSTILE["cut off"]), read(b'{"message":1}')

    assert (numbered.number, numbered.inbound.external_id) == (6, "u6")
    assert unnumbered.number is None
    assert unnumbered.inbound.external_id == read(b'{"message":1}').inbound.external_id
    assert unnumbered.inbound.external_id != read(b'{"message":2}').inbound.external_id


def test_a_megabyte_that_is_broken_is_not_kept_whole() -> None:
    found = read(b'{"update_id":6,"message":{"text":"' + b"x" * 1_000_000)

    check(found)
    assert len(found.inbound.words.text) < 20_000


def test_a_megabyte_of_words_is_cut() -> None:
    found = a_reader(chars_max=64_000).read(update(message=message("x" * 1_000_000)))

    check(found)
    assert len(found.inbound.words.text) < 65_000


@pytest.mark.parametrize("number", [0, -1, -5, 2**63, 10**30])
def test_a_number_that_cannot_be_is_none(number: int) -> None:
    """A place below zero would make the platform forget what waits."""
    assert read(update(number, message=message("hello"))).number is None
    assert number_of(b'{"update_id":%d,' % number) is None or number == 0
    assert next_offset([read(update(number, message=message("hello")))], 50) == 51


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                "id type text message_id chat from date photo document file_id file_name caption"
                " entities offset length user reply_to_message message_thread_id data message"
                " is_topic_message media_group_id migrate_to_chat_id sender_chat quote poll".split()
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=20,
)


def encoded(value: object) -> bytes:
    return msgspec.json.encode(value)


# How long Hypothesis takes to make them up says something about the machine only.
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from("message edited_message callback_query x".split()), VALUES))
def test_any_object_is_read_as_something_that_can_be_stored(fields: dict[str, object]) -> None:
    found = read(encoded({"update_id": 6, **fields}))

    check(found)
    assert found.number == 6


@given(
    st.fixed_dictionaries(
        {"message_id": st.integers(), "chat": st.just(PRIVATE), "date": st.integers()},
        optional={
            "from": st.fixed_dictionaries({"id": st.integers(), "first_name": st.text()}),
            "text": st.text(),
            "media_group_id": st.text(),
            "message_thread_id": st.integers(),
            "is_topic_message": st.booleans(),
            "document": st.fixed_dictionaries(
                {"file_id": st.text()},
                optional={
                    "file_name": st.text(),
                    "file_size": st.integers(),
                    "mime_type": st.text(),
                },
            ),
            "entities": st.lists(
                st.fixed_dictionaries(
                    {
                        "type": st.sampled_from(["mention", "bot_command", "text_mention"]),
                        "offset": st.integers(),
                        "length": st.integers(),
                    }
                )
            ),
        },
    )
)
def test_any_message_is_read_as_something_that_can_be_stored(fields: dict[str, object]) -> None:
    check(read(encoded({"update_id": 6, "message": fields})))


@given(st.binary(max_size=300))
@example(b'{"update_id":99999999999999999999999999999999}')
@example(b'{"update_id":-99}')
def test_any_bytes_are_read_as_something_that_can_be_stored(raw: bytes) -> None:
    check(read(raw))


@given(st.lists(st.one_of(st.none(), st.integers(-10, 10**20)), max_size=8), st.integers(0, 10**9))
def test_the_place_never_goes_below_zero(numbers: list[int | None], offset: int) -> None:
    reads = [read(b"{}" if each is None else update(each)) for each in numbers]

    assert next_offset(reads, offset) >= 0


@given(
    st.integers(1, 10**9),
    st.lists(st.sampled_from(["whole", "broken", "unnumbered"]), min_size=1, max_size=8),
)
def test_what_was_stored_is_passed_over(first: int, kinds: list[str]) -> None:
    """For any batch of updates, the next question is behind the last of them."""
    raws = {
        "whole": lambda number: update(number, message=message("hello")),
        "broken": lambda number: b'{"update_id":%d,"message":5}' % number,
        "unnumbered": lambda number: b'{"message":%d}' % number,
    }
    reads = [read(raws[kind](first + place)) for place, kind in enumerate(kinds)]

    assert next_offset(reads, first) == first + len(kinds)


def test_numbers_may_start_again_below() -> None:
    assert next_offset([read(update(3)), read(update(4))], 900) == 5


def in_a_batch(*updates: bytes) -> bytes:
    return b'{"ok":true,"result":[' + b",".join(updates) + b"]}"


@pytest.mark.parametrize("broken", ["half a character", "deep lists", "deep answers"])
def test_the_updates_beside_a_broken_one_are_had(broken: str) -> None:
    good = update(5, message=message('a "quoted" \\ word, [and] {more}'))
    pieces = pieces_of(in_a_batch(good, HOSTILE[broken], good))

    assert pieces == [good, HOSTILE[broken], good]


def test_an_answer_that_ends_too_early_is_none() -> None:
    assert pieces_of(in_a_batch(update(5))[:-2]) is None
    assert pieces_of(b'{"ok":true,"result":[') is None
    assert pieces_of(b'{"ok":false,"error_code":409}') is None
    assert pieces_of(b"<html>") is None
    assert pieces_of(in_a_batch()) == []


@given(st.lists(VALUES, max_size=5))
def test_the_borders_of_any_updates_are_found(values: list[object]) -> None:
    updates = [encoded(value) for value in values]

    assert pieces_of(in_a_batch(*updates)) == updates


@given(st.binary(max_size=200))
def test_any_answer_has_updates_or_none(body: bytes) -> None:
    for whole in (body, b'{"ok":true,"result":[' + body, in_a_batch(body)):
        pieces = pieces_of(whole)
        assert pieces is None or all(isinstance(piece, bytes) for piece in pieces)
