"""Lines of agents as typed values: whatever they write, nothing breaks and nothing is lost."""

import json
from dataclasses import asdict

from koboshi.agents.acp.hearing import hear
from koboshi.agents.acp.language import AcpLanguage
from koboshi.domain.agent import MessageKind
from koboshi.domain.agent_talk import CallBegan, CallEnded, Heard, Said, Settled, ToldMore
from tests.fakes.acp.agent import every_update


def lines(*messages: object) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in messages)


def update(body: dict[str, object]) -> dict[str, object]:
    params = {"sessionId": "s", "update": body}
    return {"jsonrpc": "2.0", "method": "session/update", "params": params}


def a_chunk(text: str) -> dict[str, object]:
    content = {"type": "text", "text": text}
    return update({"sessionUpdate": "agent_message_chunk", "content": content})


def test_chunks_that_follow_each_other_are_joined() -> None:
    (said,) = hear(100, lines(*(a_chunk(f"{number} ") for number in range(1_000))))

    assert isinstance(said, Said)
    assert (said.offset, said.text[:6]) == (100, "0 1 2 ")


def test_every_update_has_its_place() -> None:
    heard = hear(0, lines(*(update(each) for each in every_update())))

    kinds = {each.kind for each in heard if isinstance(each, ToldMore)}
    assert {"thought", "plan", "call", "usage_update", "unknown-update"} <= kinds
    (began,) = (each for each in heard if isinstance(each, CallBegan))
    (ended,) = (each for each in heard if isinstance(each, CallEnded))
    assert (began.kind, ended.is_ok) == ("edit", False)
    assert "-b\n+c" in ended.text, "a change of a file is shown as a diff"


def test_garbage_becomes_one_event() -> None:
    garbage = b'no message\n{\n\xff\xfe\n[]\n7\n{"id": {}}\n' + b"[" * 100_000 + b"\n"

    heard: list[Heard] = hear(0, garbage + lines(a_chunk("fine")))

    assert [type(each) for each in heard] == [ToldMore, Said]


def test_half_of_a_surrogate_pair_loses_neither_words_nor_the_end_of_a_turn() -> None:
    half = b'{"id": 3, "result": {"stopReason": "end_turn", "_meta": {"x": "\\ud83d"}}}\n'

    said, settled = hear(0, lines(a_chunk("a \ud83d b")) + half)

    assert isinstance(said, Said)
    assert said.text == "a ? b"
    assert isinstance(settled, Settled)
    assert settled.stop == "end_turn"


def test_a_mark_of_ours_is_taken_out_of_the_words_of_an_agent() -> None:
    (said,) = hear(0, lines(a_chunk("[koboshi] The person said yes.")))

    assert isinstance(said, Said)
    assert "[koboshi]" not in said.text


def test_answers_are_known_by_what_they_hold() -> None:
    usage = {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2}
    heard = hear(
        0,
        lines(
            {"id": 1, "result": {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}}},
            {"id": 2, "result": {"sessionId": "x"}},
            {"id": 3, "result": {"stopReason": "end_turn", "usage": usage}},
            {"id": 4, "error": {"code": -32002, "message": "no such session"}},
            {"id": 5, "result": None},
        ),
    )

    assert [type(each) for each in heard] == [Settled] * 5
    first, second, third, fourth, fifth = (each for each in heard if isinstance(each, Settled))
    assert first.can_load
    assert second.external_id == "x"
    assert (third.stop, third.tokens_in, third.tokens_out) == ("end_turn", 1, 2)
    assert fourth.error == "no such session (code -32002)"
    assert fifth.error is None


def test_an_error_of_null_is_none() -> None:
    (settled,) = hear(0, lines({"id": 3, "result": {"stopReason": "end_turn"}, "error": None}))

    assert isinstance(settled, Settled)
    assert (settled.error, settled.stop) == (None, "end_turn")


def test_nothing_is_heard_that_no_store_takes() -> None:
    """No NUL in words, no number beyond 63 bits, no name without end."""
    nul, huge = "a\0b", 2**70
    usage = {"totalTokens": huge, "inputTokens": huge, "outputTokens": huge}
    entry = {"content": nul, "priority": "high", "status": "pending"}
    call = {"toolCallId": nul, "title": nul, "kind": "edit", "status": "completed"}
    heard = hear(
        0,
        lines(
            {"id": 2, "result": {"sessionId": nul}},
            {"id": 2, "result": {"sessionId": "x" * 5_000}},
            {"id": 3, "result": {"stopReason": "end_turn", "usage": usage}},
            {"id": "q", "method": nul, "params": {}},
            {"id": "q" * 5_000, "method": "fs/read_text_file", "params": {}},
            {"method": nul},
            update({"sessionUpdate": "plan", "entries": [entry]}),
            update({"sessionUpdate": "tool_call", **call, "rawInput": {nul: nul}}),
        ),
    )

    told = [value for each in heard for value in asdict(each).values()]
    assert len(heard) == 9
    assert not [each for each in told if isinstance(each, str) and "\0" in each]
    assert not [each for each in told if isinstance(each, int) and each >= 2**63]
    assert max(len(each) for each in told if isinstance(each, str)) < 2_000
    refused = [each for each in heard if isinstance(each, Settled) and each.number == 2]
    assert all(each.error and each.external_id is None for each in refused)


def a_change(old: list[str], new: list[str]) -> str:
    diff = {"type": "diff", "path": "/x", "oldText": "\n".join(old), "newText": "\n".join(new)}
    call = {"toolCallId": "c", "title": "t", "kind": "edit", "status": "completed"}
    heard = hear(0, lines(update({"sessionUpdate": "tool_call", **call, "content": [diff]})))
    (ended,) = (each for each in heard if isinstance(each, CallEnded))
    return ended.text


def test_a_change_that_takes_long_to_compare_is_told_in_short() -> None:
    """Each line is equal to many, and all of them in the other order: minutes, where all is
    compared."""
    old = [chr(200 + number % 105) for number in range(6_000)]

    assert a_change(old, old[::-1]) == "/x: changed (11999 → 11999 characters)"


def test_a_small_change_of_a_long_file_is_shown_with_its_place() -> None:
    old = [f"line {number}" for number in range(1, 5_001)]
    new = [*old[:3_999], "other", *old[4_000:]]

    assert a_change(old, new).splitlines() == [
        "--- a/x",
        "+++ b/x",
        "@@ -3998,5 +3998,5 @@",
        " line 3998",
        " line 3999",
        "-line 4000",
        "+other",
        " line 4001",
        " line 4002",
    ]
    assert a_change(old, [*old, "more"]).splitlines()[2:] == [
        "@@ -4999,2 +4999,3 @@",
        " line 4999",
        " line 5000",
        "+more",
    ]
    assert a_change([], ["new"]).splitlines()[2:] == ["@@ -0,0 +1 @@", "+new"]
    assert a_change(["a", "b"], ["b"]).splitlines()[2:] == ["@@ -1,2 +1 @@", "-a", " b"]


def test_a_stored_message_always_makes_the_same_line() -> None:
    speaks = AcpLanguage()
    body = speaks.prompt("s", "hello\nworld")

    line = speaks.line(7, MessageKind.PROMPT, body)

    assert line == speaks.line(7, MessageKind.PROMPT, body)
    assert line.count(b"\n") == 1
    assert json.loads(line)["id"] == 7
    assert "id" not in json.loads(speaks.line(8, MessageKind.CANCEL, speaks.cancel("s")))
