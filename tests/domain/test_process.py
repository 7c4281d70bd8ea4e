"""What a watcher finds in a log, however the log is cut, and which process is which."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koboshi.domain.ids import ProcessId, WatcherId
from koboshi.domain.process import ENDED, Birth, ProcessState, is_same
from koboshi.domain.watch import (
    LINE_BYTES_MAX,
    MATCH_LINES_MAX,
    Chunk,
    Watcher,
    WatcherKind,
    WatcherState,
)
from koboshi.domain.watch import examine as examine_with
from koboshi.tools.patterns import complaint_about_pattern, matcher

WATCHER = Watcher(
    watcher_id=WatcherId(1),
    process_id=ProcessId(1),
    kind=WatcherKind.MATCH,
    argument="ready",
    state=WatcherState.ARMED,
    log_offset=0,
    reports=0,
)
BIRTH = Birth(boot_id="a", pid=100, start_ticks=5)


def chunk(content: bytes, *, offset: int = 0, is_last: bool = False) -> Chunk:
    return Chunk(offset=offset, content=content, is_last=is_last)


@dataclass(frozen=True)
class Report:
    ordinal: int
    text: str


def examine(watcher: Watcher, read: Chunk) -> tuple[Watcher, tuple[Report, ...]]:
    found = examine_with(watcher, read, matcher(watcher.patterns), until=None)
    reports = (Report(found.watcher.reports, found.output),) if found.output else ()
    return found.watcher, reports


def matching_lines(pattern: str, lines: list[str]) -> list[str]:
    assert complaint_about_pattern(pattern) is None
    return [line for line in lines if matcher([pattern])(line)]


def texts(reports: tuple[Report, ...]) -> list[str]:
    return [report.text for report in reports]


def test_a_matching_line_is_reported() -> None:
    _, reports = examine(WATCHER, chunk(b"starting\nserver is ready\n"))

    assert texts(reports) == ["server is ready"]


def test_matching_lines_of_one_read_are_one_report() -> None:
    """S117."""
    _, reports = examine(WATCHER, chunk(b"ready 1\nbusy\nready 2\n"))

    assert texts(reports) == ["ready 1\nready 2"]


def test_the_offset_moves_behind_what_was_examined() -> None:
    watcher, _ = examine(WATCHER, chunk(b"one\ntwo\nthr"))

    assert watcher.log_offset == len(b"one\ntwo\n")


def test_a_line_that_is_not_complete_is_left_for_the_next_read() -> None:
    watcher, reports = examine(WATCHER, chunk(b"server is rea"))

    assert (watcher, reports) == (WATCHER, ())


def test_a_match_split_over_two_reads_is_found() -> None:
    watcher, _ = examine(WATCHER, chunk(b"up\nserver is rea"))
    _, reports = examine(watcher, chunk(b"server is ready\n", offset=3))

    assert texts(reports) == ["server is ready"]


def test_the_last_line_of_an_ended_process_needs_no_line_end() -> None:
    watcher, reports = examine(WATCHER, chunk(b"server is ready", is_last=True))

    assert texts(reports) == ["server is ready"]
    assert watcher.log_offset == len(b"server is ready")


def test_output_that_was_examined_before_is_skipped() -> None:
    """S139: a restart does not repeat what was reported."""
    watcher, _ = examine(WATCHER, chunk(b"ready 1\n"))
    _, reports = examine(watcher, chunk(b"ready 1\nready 2\n"))

    assert texts(reports) == ["ready 2"]


def test_a_read_that_ends_before_the_offset_moves_nothing() -> None:
    watcher = replace(WATCHER, log_offset=100)

    assert examine(watcher, chunk(b"ready\n")) == (watcher, ())


def test_a_report_that_was_not_filed_is_found_again_under_its_number() -> None:
    """S112: the key is the same, so filing it twice is filing it once."""
    assert examine(WATCHER, chunk(b"ready\n")) == examine(WATCHER, chunk(b"ready\n"))


def test_reports_are_numbered_from_one_on() -> None:
    watcher, first = examine(WATCHER, chunk(b"ready\n"))
    watcher, second = examine(watcher, chunk(b"ready\n", offset=6))

    assert [report.ordinal for report in first + second] == [1, 2]
    assert watcher.reports == 2


def test_a_read_without_a_match_uses_up_no_number() -> None:
    watcher, reports = examine(WATCHER, chunk(b"busy\n"))

    assert (watcher.reports, reports) == (0, ())


@pytest.mark.parametrize("state", [WatcherState.FIRED, WatcherState.DISARMED])
def test_a_watcher_that_is_not_armed_is_silent(state: WatcherState) -> None:
    """S115: a process that was killed has nothing more to say."""
    watcher = replace(WATCHER, state=state)

    assert examine(watcher, chunk(b"ready\n")) == (watcher, ())


@pytest.mark.parametrize("kind", [WatcherKind.EXIT, WatcherKind.EVERY])
def test_only_a_match_watcher_reads_the_log(kind: WatcherKind) -> None:
    watcher = replace(WATCHER, kind=kind)

    assert examine(watcher, chunk(b"ready\n")) == (watcher, ())


def test_many_matching_lines_are_counted_and_not_all_shown() -> None:
    """S170: what was left out is summed up."""
    _, reports = examine(WATCHER, chunk(b"ready\n" * (MATCH_LINES_MAX + 5)))
    *shown, summary = reports[0].text.split("\n")

    assert len(shown) == MATCH_LINES_MAX
    assert summary == "… and 5 more matching lines"


def test_a_line_of_unreasonable_length_is_examined_before_it_ends() -> None:
    content = b"ready" + b"x" * LINE_BYTES_MAX
    watcher, reports = examine(WATCHER, chunk(content))

    assert len(reports) == 1
    assert watcher.log_offset == len(content)


def test_a_long_line_within_reason_is_waited_for() -> None:
    watcher, reports = examine(WATCHER, chunk(b"ready" + b"x" * (LINE_BYTES_MAX - 6)))

    assert (watcher, reports) == (WATCHER, ())


def test_bytes_that_are_no_text_do_not_hide_a_match() -> None:
    _, reports = examine(WATCHER, chunk(b"\xff\xfe ready \x80\n"))

    assert texts(reports) == ["\ufffd\ufffd ready \ufffd"]


def test_a_pattern_is_a_regular_expression() -> None:
    assert matching_lines(r"port \d+", ["port 80", "port x"]) == ["port 80"]


@pytest.mark.parametrize("pattern", ["[ready", "*", "(", "a{2,1}", "\\"])
def test_a_pattern_that_is_no_regular_expression_is_taken_literally(pattern: str) -> None:
    assert matching_lines(pattern, ["nothing", f"it says {pattern} here"]) == [
        f"it says {pattern} here"
    ]


PIECES = st.sampled_from([b"ready", b"busy", b" ", b"\n", b"\r\n", b"\xc3\xa9", b"\xff"])
LOG = st.lists(PIECES, max_size=2 * MATCH_LINES_MAX).map(b"".join)
READS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=12)


@given(LOG, READS)
@settings(deadline=None)
def test_each_matching_line_is_found_once_however_the_log_is_cut(
    log: bytes, reads: list[tuple[int, int]]
) -> None:
    """S139: each read begins anywhere before the stored offset, as after a restart, and sees the
    log as far as it was written by then."""
    found: list[str] = []
    stored, written = WATCHER, 0
    for growth, overlap in reads:
        written = min(written + growth, len(log))
        begin = max(0, stored.log_offset - overlap)
        stored = found_in(stored, chunk(log[begin:written], offset=begin), found)
    found_in(stored, chunk(log, is_last=True), found)

    lines = log.decode(errors="replace").splitlines()
    assert found == [line for line in lines if "ready" in line]


def found_in(watcher: Watcher, read: Chunk, found: list[str]) -> Watcher:
    """The watcher that is stored after this read; its matching lines are added to `found`."""
    moved, reports = examine(watcher, read)
    found += [line for report in reports for line in report.text.split("\n")]
    return replace(WATCHER, log_offset=moved.log_offset, reports=moved.reports)


@given(LOG, READS)
@settings(deadline=None)
def test_the_offset_never_goes_back_and_the_numbers_of_reports_grow_by_one(
    log: bytes, reads: list[tuple[int, int]]
) -> None:
    watcher, ordinals = WATCHER, []
    for begin, size in reads:
        before = watcher.log_offset
        watcher, reports = examine(watcher, chunk(log[begin : begin + size], offset=begin))
        ordinals += [report.ordinal for report in reports]
        assert watcher.log_offset >= before

    assert ordinals == list(range(1, len(ordinals) + 1))


def test_a_process_is_known_by_boot_pid_and_start() -> None:
    """S135."""
    assert is_same(BIRTH, Birth(boot_id="a", pid=100, start_ticks=5))


@pytest.mark.parametrize(
    "seen",
    [
        None,
        replace(BIRTH, start_ticks=6),
        replace(BIRTH, boot_id="b"),
        replace(BIRTH, pid=101),
    ],
)
def test_a_pid_that_came_back_is_another_process(seen: Birth | None) -> None:
    """S135: it is never adopted or signalled."""
    assert not is_same(BIRTH, seen)


def test_a_process_has_ended_when_it_is_neither_starting_nor_running() -> None:
    assert set(ProcessState) - ENDED == {ProcessState.STARTING, ProcessState.RUNNING}


def test_a_pattern_too_large_to_be_one_is_taken_literally() -> None:
    pattern = "a{99999999999999999999}"

    assert matching_lines(pattern, [pattern]) == [pattern]


def test_a_report_of_a_huge_line_is_short() -> None:
    _, reports = examine(WATCHER, chunk(b"ready" + b"x" * 1_000_000 + b"\n"))

    assert len(reports[0].text) < 1_000


def test_a_read_that_is_full_and_has_no_line_end_is_examined() -> None:
    watcher, _ = examine(WATCHER, chunk(b"x" * LINE_BYTES_MAX))

    assert watcher.log_offset == LINE_BYTES_MAX
