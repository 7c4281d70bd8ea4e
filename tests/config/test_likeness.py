"""What makes two nodes differ, and what is each node's own."""

from pathlib import Path

import pytest

from koboshi.config import Config, load
from koboshi.config.likeness import config_fingerprint
from koboshi.domain.fingerprint import Configured, sections_apart


def loaded(folder: Path, **settings: str) -> Config:
    given = {"HOME": str(folder), **settings}
    return load(folder / "home", None, given)


def apart(one: Config, other: Config) -> tuple[str, ...]:
    first, second = (
        Configured(version="1", fingerprint=config_fingerprint(each)) for each in (one, other)
    )
    return sections_apart(first, second)


@pytest.mark.parametrize(
    "settings, sections",
    [
        ({"KOBOSHI__GATEWAY__MAX_TURNS": "5"}, ("gateway",)),
        ({"KOBOSHI__MODEL__SYSTEM_PROMPT": "be brief"}, ("model",)),
        ({"KOBOSHI__GATEWAY__NODE": "b", "KOBOSHI__GATEWAY__WORKDIR": "/srv"}, ()),
        ({"KOBOSHI__CHANNELS__WEB__MAIN__PORT": "9000"}, ()),
        ({"KOBOSHI__STORE__URL": "postgresql://b@/db"}, ()),
        ({"KOBOSHI__STORE__LEASE_SECONDS": "20"}, ("store",)),
    ],
)
def test_sections_that_all_nodes_should_share(
    tmp_path: Path, settings: dict[str, str], sections: tuple[str, ...]
) -> None:
    assert apart(loaded(tmp_path / "a"), loaded(tmp_path / "b", **settings)) == sections
