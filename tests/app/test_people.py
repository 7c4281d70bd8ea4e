"""Whom the configuration allows: ids, whole and exact."""

from pathlib import Path

import pytest

from koboshi.app.boot_config import allowed_by
from koboshi.config import load
from koboshi.domain.ids import ChannelName
from koboshi.domain.people import code_hash, normal_code

BOT = ChannelName("telegram:main")


def allowed(tmp_path: Path, allow: str, person: str, channel: ChannelName = BOT) -> bool:
    file = tmp_path / "koboshi.toml"
    file.write_text(f"[channels.telegram.main]\nallow = {allow}\n", encoding="utf-8")
    config = load(tmp_path, file, {"TELEGRAM_BOT_TOKEN": "1:abcdefghijklmnopqrstuvwxyz"})
    return allowed_by(config)(channel, person)


@pytest.mark.parametrize(
    "allow, person, expected",
    [
        ("[123]", "123", True),
        ("[123]", "1234", False),
        ("[123]", "12", False),
        ("[123]", "０１２３", False),
        ("[123]", "", False),
        ("[123]", "*", False),
        ("[]", "123", False),
        ('["*"]', "any person", True),
    ],
)
def test_ids_are_compared_whole(tmp_path: Path, allow: str, person: str, expected: bool) -> None:
    assert allowed(tmp_path, allow, person) == expected


def test_a_list_belongs_to_one_channel(tmp_path: Path) -> None:
    assert not allowed(tmp_path, '["*"]', "123", ChannelName("telegram:other"))


def test_one_who_has_the_token_of_the_web_is_allowed(tmp_path: Path) -> None:
    assert allowed(tmp_path, "[]", "any person", ChannelName("web:main"))


def test_a_hash_is_bound_to_whom_the_code_was_given() -> None:
    hashes = {
        code_hash(channel, person, "AAAA2222")
        for channel, person in [("a", "b"), ("a", "c"), ("b", "b"), ("ab", ""), ("", "ab")]
    }
    assert len(hashes) == 5


@pytest.mark.parametrize("typed", ["k7wq2mxa", "K7WQ-2MXA", " K7WQ 2MXA\t"])
def test_a_code_may_be_typed_as_people_type(typed: str) -> None:
    assert normal_code(typed) == "K7WQ2MXA"
