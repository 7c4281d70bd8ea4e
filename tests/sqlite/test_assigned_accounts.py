"""Databases from before accounts were known: what they hold becomes that of the first account."""

from collections.abc import Callable
from pathlib import Path

import pytest

from koboshi.domain.ids import ChannelName
from tests.harness.golden import GOLDEN
from tests.harness.rows import read_rows
from tests.harness.victim import open_here

OLD, NEW = "111", "222"
TELEGRAM = ChannelName("telegram:main")


@pytest.mark.parametrize("lay_out", GOLDEN.values(), ids=GOLDEN)
async def test_what_version_1_stored_is_assigned_to_the_first_account_that_connects(
    tmp_path: Path, lay_out: Callable[[Path], None]
) -> None:
    """Issue 12, A6: its cursor and its keys, each of them, and nothing of other channels."""
    lay_out(tmp_path)
    home = await open_here(tmp_path)
    inbox, views = home.store.inbox, home.store.views
    cursor = await inbox.cursor(TELEGRAM)
    before = (await views.status()).sessions
    await inbox.bind({TELEGRAM: OLD})
    assert await inbox.cursor(TELEGRAM, OLD) == cursor
    await inbox.connect(TELEGRAM, OLD)
    assert await inbox.cursor(TELEGRAM, OLD) == cursor
    assert await inbox.cursor(TELEGRAM) is None
    assert (await views.status()).sessions == before
    await inbox.bind({TELEGRAM: NEW})
    await inbox.connect(TELEGRAM, NEW)
    assert await inbox.cursor(TELEGRAM, NEW) is None
    await home.store.close()
    assert home.failures == []
    rows = read_rows(tmp_path).inbox
    assert {row["account"] for row in rows if row["source"] == TELEGRAM} <= {OLD}
    assert {row["account"] for row in rows if row["source"] != TELEGRAM} == {""}
