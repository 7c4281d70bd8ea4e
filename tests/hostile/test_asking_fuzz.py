"""Questions to the owner of the home, by socket and by HTTP: each has an answer."""

import json
import re
from collections.abc import AsyncIterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from koboshi.control.context import ControlContext
from koboshi.control.handle import answer, reply_to
from koboshi.domain.ids import ProcessId
from koboshi.ports.runners import Seen
from koboshi.processes.runners import LocalRunners
from tests.channels.fakes import TOKEN
from tests.harness.backends import Limits, SqliteBackend
from tests.harness.homes import Home, a_world
from tests.hostile.whole_api import WholeApi
from tests.hostile.wild import JSON, NUMBERS, TEXTS, fuzzed, objects

VERBS = (
    "status explain processes process-log login stop restart drain process-kill pairing-list "
    "pairing-approve pairing-deny pairing-revoke held backup-standing list show trace turn-resume "
    "turn-drop outbox-retry outbox-release outbox-drop inbox-retry inbox-drop nothing"
).split()
KINDS = ["turn", "session", "message", "delivery", "worker", "line", "process", "nothing"]
NAMES = st.sampled_from(
    ["t1", "s1", "m1", "d1", "p1", "w1", "1", "t0", "t999999999999999999", "t9223372036854775808"]
)
WHAT = NAMES | TEXTS
QUESTIONS = objects(
    ask=st.sampled_from(VERBS),
    kind=st.sampled_from(KINDS) | JSON,
    what=WHAT | JSON,
    limit=NUMBERS | JSON,
    before=WHAT | JSON,
    open=st.booleans() | JSON,
    session=WHAT | JSON,
    chat=TEXTS | JSON,
    chars=NUMBERS | JSON,
    person=TEXTS | JSON,
    keep=NUMBERS | JSON,
)


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    """One with a session, a turn that waits, a message and a delivery."""
    one = Home(backend=SqliteBackend(tmp_path), world=a_world(), limits=Limits())
    await one.boot()
    await one.ask(await one.work_on("hello"))
    yield one
    await one.store.close()


def jobs(home: Home) -> ControlContext:
    async def store_end(_process_id: ProcessId, _seen: Seen) -> None:
        raise AssertionError("nothing runs here")

    async def output_of(process_id: ProcessId, _chars_max: int) -> str:
        return f"the output of {process_id}"

    return ControlContext(
        store=home.store,
        runners=LocalRunners(Path("processes")),
        store_end=store_end,
        output_of=output_of,
        is_running=True,
    )


@fuzzed(80)
@example({"ask": "list", "kind": "turn", "limit": 10**40, "before": "t9223372036854775807"})
@example({"ask": "process-log", "what": "p1", "chars": -(10**40)})
@example({"ask": "process-log", "chars": False})
@example({"ask": "list", "kind": "session", "chat": "half \ud800"})
@example({"ask": "pairing-revoke", "what": "\ud800", "person": "\ud800"})
@example({"ask": "explain", "what": "\0"})
@given(question=QUESTIONS | JSON.filter(lambda value: isinstance(value, dict)))
async def test_any_question_has_an_answer(home: Home, question: Mapping[str, Any]) -> None:
    told = await answer(jobs(home), question)

    json.dumps(told).encode()
    msgspec.json.encode(told)
    assert isinstance(told["ok"], bool)
    if not told["ok"]:
        error = told["error"]
        assert isinstance(error, dict)
        assert (
            error["type"]
            in ("not-found bad-request refused not-running unknown-request no-backups").split()
        ), told
        assert error["message"]


SEGMENTS = st.sampled_from(["t1", "s1", "m1", "d1", "p1", "ann", "..", "%2e%2e", "%00", "%ff%fe"])
QUERIES = st.dictionaries(
    st.sampled_from("limit before open session chat chars after from thread token".split()),
    WHAT | st.sampled_from(["start", "now", "recent", "1", "0", "-1"]),
    max_size=4,
)
HEADERS = st.dictionaries(
    st.sampled_from(["last-event-id", "idempotency-key", "cookie", "accept", "x-koboshi-proof"]),
    TEXTS.map(lambda text: text.encode("latin-1", "replace").decode("latin-1")),
    max_size=3,
)


@fuzzed(80)
@given(
    number=st.integers(0, 10**6),
    segment=SEGMENTS | TEXTS,
    method=st.sampled_from("GET POST HEAD PUT PATCH DELETE OPTIONS TRACE".split()),
    query=QUERIES,
    headers=HEADERS,
    body=JSON.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=40),
)
async def test_any_request_has_an_answer_below_500(
    home: Home,
    tmp_path: Path,
    number: int,
    segment: str,
    method: str,
    query: dict[str, str],
    headers: dict[str, str],
    body: bytes,
) -> None:
    """Of a person who has the token, on every route, whatever they put where."""
    whole = WholeApi(home, folder=tmp_path, ask=partial(reply_to, jobs(home)))
    route = whole.paths()[number % len(whole.paths())]
    if route.endswith("/events") and method == "GET":
        method = "HEAD"  # it would not end
    path = re.sub(r"\{\w+\}", lambda _: segment, route)
    status, said = await whole.answered(method, path, query, headers, body)

    assert status < 500 or whole.done == ["message"], (method, path, said)
    assert TOKEN.encode() not in said
    if status >= 400 and method != "HEAD" and said.startswith(b"{"):
        assert json.loads(said)["error"]["message"]
