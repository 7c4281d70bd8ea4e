"""Whether gateways of one database are configured alike, section by section."""

from koboshi.domain.fingerprint import Configured, fingerprint_of, first_alike, sections_apart

A = (("gateway", "max_turns", "16"), ("model", "name", "scripted"), ("mcp.files", "command", "x"))
B = (("model", "name", "scripted"), ("gateway", "max_turns", "5"), ("mcp.web", "command", "y"))


def configured(values: tuple[tuple[str, str, str], ...], version: str = "1") -> Configured:
    return Configured(version=version, fingerprint=fingerprint_of(values))


def test_sections_that_differ_or_are_missing_are_named() -> None:
    assert sections_apart(configured(A), configured(B)) == ("gateway", "mcp.files", "mcp.web")
    assert sections_apart(configured(A), configured(tuple(reversed(A)))) == ()


def test_a_mark_tells_nothing_of_the_value() -> None:
    assert "scripted" not in configured(A).fingerprint


def test_versions_are_not_compared_with_each_other_and_the_unknown_with_nothing() -> None:
    assert sections_apart(configured(A), configured(B, "2")) == ()
    unknown = Configured(version="1", fingerprint="")
    assert sections_apart(configured(A), unknown) == ()

    found = [unknown, configured(A, "2"), configured(A), configured(B)]
    assert first_alike(found, configured(B)) == configured(A)
    assert first_alike([], unknown) == unknown
