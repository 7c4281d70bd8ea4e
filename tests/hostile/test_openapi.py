"""Requests that another program makes up from our own description of the API: whatever it thinks
of, the answer is one that we have announced, and the gateway goes on."""

import os
import re
import sys
from pathlib import Path

import pytest
from anyio import fail_after, run_process

from tests.faults.serving import serving
from tests.harness.http import connection
from tests.harness.process import GatewayProcess
from tests.harness.tally import WANTS_ALL, add_to_tally
from tests.hostile.conftest import CAMPAIGN_S

pytestmark = pytest.mark.crash

CHECKS_LEFT_OUT = (
    # What may be in a name is said in words: JSON Schema cannot express "printable".
    "positive_data_acceptance",
)
SETTINGS = """
# A body may be refused for its length before any caller looks at what is wrong with it.
[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 413, 421]
"""
STREAMS = "events$"
"""They do not end; tests/hostile/test_asking_fuzz.py asks for their beginning."""
SMALL = ["--phases", "examples,fuzzing", "--max-examples", "1", "--generation-deterministic"]
LARGE = ["--phases", "examples,coverage,fuzzing", "--max-examples", "200", "--seed"]
WITHIN_S = CAMPAIGN_S - 60 if WANTS_ALL else 100


async def run_schemathesis(gateway: GatewayProcess, folder: Path) -> str:
    """What it says; fails if it has found something."""
    (folder / "schemathesis.toml").write_text(SETTINGS)
    seed = os.environ.get("KOBOSHI_SEED", "1")
    program = Path(sys.executable).with_name("schemathesis")
    command = [
        str(program),
        "run",
        f"{gateway.address}/api/v1/openapi.json",
        *([*LARGE, seed] if WANTS_ALL else SMALL),
        *("--header", f"Authorization: Bearer {gateway.token}"),
        *("--exclude-checks", ",".join(CHECKS_LEFT_OUT)),
        *("--exclude-path-regex", STREAMS),
        *("--request-timeout", "60", "--no-color"),
    ]
    with fail_after(WITHIN_S):
        ended = await run_process(command, cwd=folder, check=False)
    said = ended.stdout.decode(errors="replace")
    assert ended.returncode == 0, f"{said[-8_000:]}\n{gateway.log[-2_000:]}"
    return said


async def test_every_made_up_request_gets_an_answer_that_is_announced(
    home: Path, tmp_path: Path
) -> None:
    async with serving(home, first=2) as (gateway, person):
        said = await run_schemathesis(gateway, tmp_path)

        assert re.search(r"\b[1-9]\d* generated", said), said[-2_000:]
        assert gateway.is_running
        assert "Traceback" not in gateway.log
        assert '"level": "error"' not in gateway.log
        await person.say("echo still here", "afterwards")
        async with connection(await gateway.wait_listening(), gateway.token) as http:
            assert (await http.get("/readyz")).status_code == 200
    add_to_tally("made-up requests", {"gateways": 1, "violations": 0})
