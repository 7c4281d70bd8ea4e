"""Kills at random instants, again and again on one home, while people talk: the torture itself.

A failing seed is printed with the command that plans the same kills and messages. Put it into
REGRESSIONS when its cause is fixed.
"""

import os
from pathlib import Path

import pytest

from koboshi.cli.fork_server import fork_server_command
from koboshi.clock import SystemClock
from koboshi.torture import Aim, Campaign, CampaignSettings
from tests.harness.invariants import check_rows
from tests.harness.rows import read_rows
from tests.harness.tally import ROUND, WANTS_ALL, add_to_tally

CAMPAIGNS, LIVES = (5, 400) if WANTS_ALL else (1, 16)
FIRST = int(os.environ.get("KOBOSHI_SEED", "1")) + ROUND * CAMPAIGNS
HOMES = 4
"""Side by side: most of a life is waiting, for the disk and for people."""

REGRESSIONS: tuple[int, ...] = ()
"""Seeds that once found something."""


@pytest.mark.slow
@pytest.mark.timeout(1_800 if WANTS_ALL else 600)
@pytest.mark.parametrize("seed", [*REGRESSIONS, *range(FIRST, FIRST + CAMPAIGNS)])
async def test_nothing_is_lost_or_doubled_by_kills_at_random_instants(
    seed: int, tmp_path: Path
) -> None:
    """I1-I7, I10, I12 of the reliability plan, looked at from outside, and then the rows. Issue 12,
    C18: also what people saw on a platform in Telegram's form, clocks that are wrong and jump, a
    model that is busy for a while and, in the long campaign, few descriptors."""
    settings = CampaignSettings(
        seed=seed,
        folder=tmp_path,
        fork_server=fork_server_command(),
        now_ms=SystemClock().now_ms,
        lives=LIVES,
        aim=Aim.RANDOM,
        homes=HOMES,
        has_few_files=WANTS_ALL,
    )
    campaign = Campaign(settings)

    await campaign.run()

    report = campaign.report()
    print(f"seed {seed}; to do it again: {report.repeat}")
    print("\n".join(map(str, report.tally.violations)))
    add_to_tally("random kills", report.document())
    assert report.tally.violations == []
    assert report.is_complete
    # Those that gave out for lack of descriptors were not killed.
    assert report.kills + report.tally.gave_out == LIVES
    assert bool(report.tally.few_files) == WANTS_ALL
    assert report.tally.wrong_clocks
    assert report.tally.cold_starts * 20 > LIVES or not WANTS_ALL
    assert report.tally.clock_jumps
    assert report.tally.outages
    assert report.tally.messages > LIVES
    assert report.tally.visits_answered > LIVES // 2
    assert report.tally.rights_taken
    if WANTS_ALL:  # a short campaign may be killed before each of them
        assert {name.partition(": ")[0] for name in report.tally.mishaps} >= {"sendMessage"}
    assert len(campaign.homes) == HOMES
    for home in campaign.homes:
        check_rows(read_rows(home))
