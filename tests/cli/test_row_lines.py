"""Rows in lines for a person."""

import pytest

from koboshi.cli.rows.row_text import delivery_lines
from koboshi.domain.ids import DeliveryId, SessionId
from koboshi.ports.views import DeliveryView

NOW_MS = 1_000_000


@pytest.mark.parametrize(
    "due_ms, says", [(None, []), (NOW_MS - 1, []), (NOW_MS + 80_000, ["next      in 1 min 20 s"])]
)
def test_a_delivery_that_waits_for_a_time_says_when_it_is_tried_next(
    due_ms: int | None, says: list[str]
) -> None:
    """Issue 12, C18."""
    view = DeliveryView(
        delivery_id=DeliveryId(9),
        session_id=SessionId(1),
        turn_id=None,
        cause="step:4",
        part=1,
        parts=1,
        state="owed",
        reason="not reached",
        attempts=3,
        platform_id=None,
        text="hello",
        created_ms=NOW_MS,
        settled_ms=None,
        due_ms=due_ms,
    )

    assert [line for line in delivery_lines(view, NOW_MS) if line.startswith("next")] == says
