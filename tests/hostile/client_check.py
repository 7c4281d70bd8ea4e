"""Uses a client that was generated from our OpenAPI document against a gateway that serves.

Run by the interpreter of `.venv-openapi`, where the client is: `client_check.py <url> <token>`.
Prints one line for each operation that was used. Whatever does not fit its type is an error here.
"""

import importlib
import pkgutil
import sys
import threading
import time

import koboshi_client
from koboshi_client import AuthenticatedClient
from koboshi_client.api import default
from koboshi_client.models import Accepted, Failure, Post, Standing, TurnExplained

CHAT = "generated"
WITHIN_S = 60.0


def operation(name: str):  # type: ignore[no-untyped-def]
    module = importlib.import_module(f"{default.__name__}.{name}")

    def ask(*args, **more):  # type: ignore[no-untyped-def]
        response = module.sync_detailed(*args, client=client, **more)
        assert response.parsed is not None, (name, response.status_code, response.content[:500])
        print(name, int(response.status_code), type(response.parsed).__name__)
        return response.parsed

    return ask


def main() -> None:
    names = [
        each.name for each in pkgutil.walk_packages(koboshi_client.__path__, "koboshi_client.")
    ]
    for name in names:
        importlib.import_module(name)
    post = Post(text="in background echo hello", question=None, choice=None)
    accepted = operation("post_message")(CHAT, body=post, idempotency_key="k1")
    assert isinstance(accepted, Accepted), accepted
    settled(accepted.message)
    lists()
    shown = operation("show_turn")("t1")
    assert isinstance(shown, TurnExplained), shown
    assert shown.calls[0].tool == "terminal"
    assert shown.why is None
    for what in ("m1", "t1", "d1", "p1", "s1"):
        told = operation("explain")(what)
        assert not isinstance(told, Failure), (what, told)
    missing = operation("show_turn")("t99")
    assert isinstance(missing, Failure), missing
    assert missing.error.type_ == "not-found"
    empty = operation("post_message")(CHAT, body=Post(text=" "), idempotency_key="k2")
    assert isinstance(empty, Failure), empty


def settled(message: str) -> None:
    """Wait until the message is answered, as a client does that only asks."""
    until = time.monotonic() + WITHIN_S
    while time.monotonic() < until:
        standing = operation("get_message")(CHAT, message)
        assert isinstance(standing, Standing), standing
        if standing.turn and operation("show_turn")(standing.turn).turn.state == "done":
            return
        threading.Event().wait(0.1)
    raise AssertionError("it was not answered")


def lists() -> None:
    fields = {
        "list_sessions": "sessions",
        "list_turns": "turns",
        "list_inbox": "messages",
        "list_outbox": "deliveries",
        "list_processes": "processes",
        "list_boots": "workers",
        "list_journal": "lines",
        "list_chats": "chats",
    }
    for name, field in fields.items():
        assert getattr(operation(name)(), field), f"{name} lists nothing"
    assert operation("list_questions")().questions == []
    assert operation("list_troubles")().troubles == []
    assert operation("get_ready")().ok
    assert {each.name for each in operation("get_readiness")().neighbours} == {"model", "boundary"}
    assert operation("get_alive")().ok
    assert operation("get_status")().worker.pid
    assert "koboshi_build_info" in operation("get_metrics")()
    assert operation("describe_page")().version
    for name, what in {
        "show_session": "s1",
        "show_message": "m1",
        "show_delivery": "d1",
        "show_process": "p1",
        "show_process_log": "p1",
    }.items():
        assert operation(name)(what).ok


if __name__ == "__main__":
    client = AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2])
    main()
