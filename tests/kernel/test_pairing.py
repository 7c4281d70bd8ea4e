"""The codes that strangers are given."""

from koboshi.domain.people import ALPHABET, CODE_CHARS
from koboshi.kernel.pairing import fresh_code


def test_codes_are_not_to_be_guessed_or_misread() -> None:
    codes = {fresh_code() for _ in range(2_000)}

    assert len(codes) == 2_000
    assert {len(code) for code in codes} == {CODE_CHARS}
    assert len(ALPHABET) == 32
    assert not set("".join(codes)) & set("01IO")
