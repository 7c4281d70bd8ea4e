"""Whom the configuration names, and what it says about groups."""

from pathlib import Path

import pytest

from koboshi.app.boot_config import boot_config_of
from koboshi.config import load
from koboshi.domain.ids import ChannelName

BOT = ChannelName("telegram:main")
SECTION = "KOBOSHI__CHANNELS__TELEGRAM__MAIN__"


@pytest.mark.parametrize(
    "allow, owners", [("[7]", ["7"]), ('["*"]', []), ('[7, "*"]', ["7"]), ("[]", [])]
)
def test_an_owner_is_named_by_id(tmp_path: Path, allow: str, owners: list[str]) -> None:
    """Issue 13, B14: `*` gives everyone access and makes no person an owner."""
    environ = {
        "HOME": str(tmp_path),
        "TELEGRAM_BOT_TOKEN": "123456:AAbbccddeeffgghhiijjkkllmmnnooppqqrr",
        f"{SECTION}ALLOW": allow,
        f"{SECTION}GROUPS": "all",
    }
    world = boot_config_of(load(None, None, environ))

    assert [person for person in ("7", "8", "*", "") if world.is_owner(BOT, person)] == owners
    assert world.listen == {BOT: "all"}
