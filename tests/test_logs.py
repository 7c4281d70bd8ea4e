"""One event is one line, with any content, and holds no secret."""

import io
import json
import logging
import warnings
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import structlog
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from koboshi.logs import configure, redactor

CANARY = "123456:can/ary+'token\"é"


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


class Broken(io.StringIO):
    """A stream that refuses to be written to until it is repaired."""

    is_mended = False

    def write(self, text: str) -> int:
        if not self.is_mended:
            raise BrokenPipeError
        return super().write(text)


@pytest.fixture(autouse=True)
def _former_set_up() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, former = list(root.handlers), root.level, structlog.get_config()
    yield
    structlog.configure(**former)
    structlog.contextvars.clear_contextvars()
    logging.captureWarnings(False)
    root.handlers[:] = handlers
    root.setLevel(level)


def set_up(*, as_json: bool | None = True, level: str = "debug", **others: Any) -> io.StringIO:
    stream: io.StringIO = others.pop("stream", None) or io.StringIO()
    configure(level, as_json, others.pop("secrets", ()), stream=stream, **others)
    return stream


def parsed(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def log_and_read(stream: io.StringIO, event: str = "seen", **values: object) -> str:
    structlog.get_logger().info(event, **values)
    return stream.getvalue()


def test_an_event_is_one_json_object_with_time_level_and_values() -> None:
    stream = set_up()

    structlog.get_logger().warning("turn_recovered", turn="t1", recoveries=2, path=Path("/tmp"))

    (event,) = parsed(stream)
    assert list(event)[:3] == ["timestamp", "level", "event"]
    assert (event["level"], event["event"]) == ("warning", "turn_recovered")
    assert (event["turn"], event["recoveries"], event["path"]) == ("t1", 2, "/tmp")
    assert len(event["timestamp"]) == len("2026-01-02T03:04:05.678Z")
    assert event["timestamp"].endswith("Z")


def test_a_person_gets_a_compact_line() -> None:
    stream = set_up(as_json=False)

    line = log_and_read(stream, "turn_closed", turn="t1", why="all said", n=2, none=None)

    time, rest = line.split(" ", 1)
    assert time.endswith("Z")
    assert rest == 'info     turn_closed turn=t1 why="all said" n=2 none=null\n'


def test_the_stream_decides_between_json_and_lines_unless_told() -> None:
    assert log_and_read(set_up(as_json=None)).startswith("{")
    assert not log_and_read(set_up(as_json=None, stream=Terminal())).startswith("{")
    assert log_and_read(set_up(as_json=True, stream=Terminal())).startswith("{")


def test_colours_are_for_terminals_without_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in log_and_read(set_up(as_json=False, stream=Terminal()))
    assert "\x1b[" not in log_and_read(set_up(as_json=False))
    assert "\x1b[" not in log_and_read(set_up(as_json=True, stream=Terminal()))
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in log_and_read(set_up(as_json=False, stream=Terminal()))


def test_events_below_the_level_are_not_heard() -> None:
    stream = set_up(level="warning")

    assert log_and_read(stream) == ""


def test_an_unknown_level_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match='log level "loud" is unknown; known levels: debug, info'):
        configure("loud", None)


def test_values_bound_to_a_task_are_on_its_lines() -> None:
    stream = set_up()
    structlog.contextvars.bind_contextvars(turn="t1")

    log_and_read(stream)

    assert parsed(stream)[0]["turn"] == "t1"


def test_a_later_set_up_reaches_loggers_made_before() -> None:
    log = structlog.get_logger()
    set_up()
    log.info("first")
    stream = set_up()

    log.info("second")

    assert [event["event"] for event in parsed(stream)] == ["second"]


def test_an_exception_is_a_field_in_json_and_an_indented_traceback_for_people() -> None:
    forged = "boom\n2026-01-01T00:00:00.000Z info forged"

    def fail(stream: io.StringIO) -> str:
        try:
            raise ValueError(forged)
        except ValueError:
            structlog.get_logger().exception("turn_failed", turn="t1")
        return stream.getvalue()

    (line,) = fail(set_up()).splitlines()
    assert json.loads(line)["exception"].startswith("Traceback")
    first, *below = fail(set_up(as_json=False)).splitlines()
    assert "turn_failed turn=t1" in first
    assert below[0] == "    Traceback (most recent call last):"
    assert all(each.startswith("    ") for each in below)


@pytest.mark.parametrize("as_json", [True, False])
@pytest.mark.parametrize(
    "form",
    [CANARY, quote(CANARY), quote(CANARY, safe=""), b64encode(CANARY.encode()).decode(),
     json.dumps(CANARY), repr(CANARY), f"https://api.example/bot{CANARY}/getMe"],
)  # fmt: skip
def test_a_secret_is_blanked_wherever_it_stands(as_json: bool, form: str) -> None:
    stream = set_up(as_json=as_json, secrets=[CANARY, "other-secret"])
    log = structlog.get_logger()

    log.info(form, plain=form, nested={form: [form, {"deep": (form,)}]}, shown=ValueError(form))
    logging.getLogger("library").error("got %s", form)
    try:
        raise RuntimeError(form)
    except RuntimeError:
        log.exception("failed")

    written = stream.getvalue()
    assert written.count("***") >= 6
    for trace in (CANARY, json.dumps(CANARY)[1:-1], quote(CANARY, safe=""), "123456"):
        assert trace not in written
    assert b64encode(CANARY.encode()).decode().rstrip("=") not in written
    if as_json:
        assert len(parsed(stream)) == 3


@pytest.mark.parametrize("secret", ["1234567", '": "xy', "timestamp", "level: ", "\\\\\\\\\\\\"])
def test_json_stays_json_whatever_a_secret_looks_like(secret: str) -> None:
    stream = set_up(secrets=[secret])

    log_and_read(stream, secret, number=91234567, text=f"{secret} \\ {secret}")

    (event,) = parsed(stream)
    assert secret not in "".join(str(value) for value in event.values())


def test_a_secret_that_begins_with_another_is_blanked_whole() -> None:
    assert redactor(["secret", "secret-longer"])("a secret-longer b secret c") == "a *** b *** c"


def test_a_secret_too_short_to_be_one_is_left_alone() -> None:
    assert redactor(["", "info", "five5"])("info five5") == "info five5"


WILD = st.one_of(
    st.text(max_size=60),
    st.sampled_from(
        ["a\r\nb", "\x1b]52;c;x\x07", "\x85\u2028\u2029", "\u202ereversed", "\udcff", "\0"]
    ),
    st.floats(),
    st.integers(),
    st.binary(max_size=20),
    st.recursive(
        st.text(max_size=8), lambda below: st.lists(below) | st.dictionaries(st.text(), below)
    ),
)


@given(event=st.text(max_size=60), value=WILD)
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_value_breaks_out_of_its_line(event: str, value: object) -> None:
    for as_json in (True, False):
        stream = set_up(as_json=as_json)

        line = log_and_read(stream, event, value=value)

        assert line.endswith("\n")
        assert line[:-1].isprintable()
        if as_json:
            json.loads(line, parse_constant=pytest.fail)


def test_large_and_deep_values_are_cut() -> None:
    deep: list[object] = []
    for _ in range(100):
        deep = [deep]
    stream = set_up()

    line = log_and_read(stream, text="x" * 1_000_000, many=list(range(10_000)), deep=deep)

    assert len(line) < 40_000
    assert "(968000 more)" in line


def test_the_standard_library_is_heard_from_warning_on_in_the_same_form() -> None:
    logging.getLogger().handlers[:] = []  # the test runner's own would choke on the last error
    stream = set_up(level="debug")
    library = logging.getLogger("uvicorn.error")

    library.info("chatter")
    library.warning("slow %s\nforged", "client")
    library.log(35, "a level of its own")
    library.error("bad arguments %d", "x")
    warnings.showwarning("old", DeprecationWarning, "file.py", 1)

    events = parsed(stream)
    assert [event["level"] for event in events] == ["warning", "warning", "error", "warning"]
    assert (events[0]["event"], events[0]["logger"]) == ("slow client\nforged", "uvicorn.error")
    assert events[2]["event"] == "bad arguments %d ('x',)"
    assert events[3]["logger"] == "py.warnings"


def test_nothing_prints_past_the_redaction() -> None:
    past = io.StringIO()
    logging.getLogger().addHandler(logging.StreamHandler(past))
    stream = set_up(secrets=[CANARY])

    logging.getLogger("library").error(CANARY)

    assert past.getvalue() == ""
    assert parsed(stream)[0]["event"] == "***"


def test_calling_it_twice_does_not_double_the_lines() -> None:
    set_up()
    stream = set_up()

    logging.getLogger("library").error("once")

    assert len(parsed(stream)) == 1


def test_a_log_that_cannot_be_written_stop_nothing_and_is_counted() -> None:
    stream = Broken()
    set_up(stream=stream)
    log = structlog.get_logger()

    log.info("lost")
    log.info("lost")
    stream.is_mended = True
    log.info("heard")

    lost, heard = parsed(stream)
    assert (lost["event"], lost["count"], heard["event"]) == ("log_lines_lost", 2, "heard")
