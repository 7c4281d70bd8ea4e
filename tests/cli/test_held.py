"""What a restored past owes: held, shown, and sent when a person says so."""

import signal
from pathlib import Path

from koboshi.stores.faults import VARIABLE
from tests.cli.process import gateway, koboshi, until
from tests.harness.rows import read_rows


def outbox(home: Path) -> list[tuple[object, object]]:
    return [(row["state"], row["labelled"]) for row in read_rows(home).of("outbox")]


def test_held_until_released(tmp_path: Path) -> None:
    home, file = tmp_path / "home", tmp_path / "backup.db"
    with gateway(home, **{VARIABLE: "outbox.claim:before"}) as one:
        one.say("ann", "echo the answer")
        assert one.wait_end() == -signal.SIGKILL
    assert koboshi("backup", "create", "--to", str(file), home=home).code == 0
    restored = koboshi("restore", str(file), home=home)

    assert "held      1 delivery that may have arrived since" in restored.out
    with gateway(home) as one:
        # A later answer goes out: what is held does not silence the chat.
        one.wait_state(one.say("ann", "echo another"), "done")
        assert outbox(home)[0] == ("held", 0)
        told = koboshi("status", home=home).out
        assert "to send    1 delivery, 1 held: `koboshi outbox release`" in told
        released = koboshi("outbox", "release", "d1", "--json", home=home)
        assert released.document["released"] == 1
        until(lambda: outbox(home)[0][0] == "delivered", "it is delivered", within_s=90)
    assert outbox(home)[0] == ("delivered", 1), "it says that it may be a duplicate"
