"""Server-sent events: the same ones come out however the stream was cut into pieces."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koboshi.models.chat.events import EventReader, LineTooLong

LINE_ENDS = (b"\n", b"\r\n", b"\r")

lines = st.sampled_from(
    [
        b"data: one",
        b"data:two",
        b"data:  three ",
        b"data: \xc3\xa9\xe2\x80\xa8",
        b"data:",
        b"data",
        b"database: no",
        b": keep-alive",
        b":",
        b"event: error",
        b"id: 7",
        b"retry: 10",
        b"data: [DONE]",
        b"",
        b"",
    ]
)


def events_in(*pieces: bytes) -> list[bytes]:
    reader = EventReader()
    return [body for piece in pieces for body in reader.feed(piece)]


@given(
    told=st.lists(lines, max_size=12),
    ends=st.lists(st.sampled_from(LINE_ENDS), min_size=12, max_size=12),
    cuts=st.lists(st.integers(0, 200), max_size=12),
)
def test_the_pieces_do_not_matter(told: list[bytes], ends: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(line + end for line, end in zip(told, ends, strict=False))
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    pieces = [stream[a:b] for a, b in pairwise(places)]
    bytewise = [stream[place : place + 1] for place in range(len(stream))]

    assert events_in(*pieces) == events_in(stream) == events_in(*bytewise)


@given(told=st.lists(lines, max_size=12), end=st.sampled_from(LINE_ENDS))
def test_the_ends_of_lines_do_not_matter(told: list[bytes], end: bytes) -> None:
    assert events_in(b"".join(line + end for line in told)) == events_in(
        b"".join(line + b"\n" for line in told)
    )


@pytest.mark.parametrize(
    "stream,bodies",
    [
        (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
        (b"data:a\n\n", [b"a"]),
        (b"data:  a \n\n", [b" a "]),
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b": hello\n\ndata: a\n\n", [b"a"]),
        (b"event: x\nid: 1\ndata: a\nretry: 5\n\n", [b"a"]),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b"data\n\n", []),
        (b"\n\n\ndata: a\r\n\r\n", [b"a"]),
        (b"data: a\n", []),
        (b"data: a", []),
        (b"database: a\n\n", []),
        (b"", []),
    ],
)
def test_what_an_event_is(stream: bytes, bodies: list[bytes]) -> None:
    assert events_in(stream) == bodies


def test_an_event_is_there_as_soon_as_it_has_ended() -> None:
    reader = EventReader()

    assert reader.feed(b"data: a\r\n\r") == [b"a"]
    assert reader.feed(b"\ndata: b\n") == []
    assert reader.feed(b"\n") == [b"b"]


@pytest.mark.parametrize("piece", [b"x" * 10, b"data: xxxx\n"])
def test_an_event_without_end_does_not_fill_the_memory(piece: bytes) -> None:
    reader = EventReader(bytes_max=100)
    fed = [piece] * 20

    with pytest.raises(LineTooLong):
        _ = [reader.feed(each) for each in fed]


def test_events_that_are_short_may_be_many() -> None:
    reader = EventReader(bytes_max=100)

    assert [reader.feed(b"data: 0123456789\n\n") for _ in range(100)] == [[b"0123456789"]] * 100


@pytest.mark.parametrize("first", [b"data:\n\n", b"data: \n\n", b"id: 1\ndata\n\n", b"id: 1\n\n"])
def test_a_first_event_without_data_is_no_event(first: bytes) -> None:
    """Issue 13, C20: a reply that began with one was taken for a broken one."""
    assert events_in(first, b"data: one\n\n") == [b"one"]
