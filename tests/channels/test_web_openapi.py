"""The description of the API says all that a program has to know about an answer."""

from dataclasses import fields
from typing import Any

import msgspec
import pytest

from koboshi.channels.web.openapi import document
from koboshi.channels.web.pages import Pages
from koboshi.control.replies import InboxEntry
from koboshi.dashboard.describe import SHAPES, paths
from koboshi.ports.views import EntryView

Json = dict[str, Any]


@pytest.fixture(scope="module")
def described() -> Json:
    return document(Pages(paths=paths, shapes=SHAPES), "koboshi")


def operations(described: Json) -> list[Json]:
    return [each for methods in described["paths"].values() for each in methods.values()]


def test_every_operation_has_an_id_of_its_own(described: Json) -> None:
    """Issue 13, C18."""
    ids = [each["operationId"] for each in operations(described)]
    assert len(ids) == len(set(ids)) > 30
    assert all(each.isidentifier() for each in ids)


def test_every_answer_has_a_type(described: Json) -> None:
    """Issue 13, C18."""
    for each in operations(described):
        good = [told for status, told in each["responses"].items() if status.startswith("2")]
        assert good, each["operationId"]
        for told in good:
            assert all(content["schema"] for content in told["content"].values())


def test_what_an_answer_always_has_is_required(described: Json) -> None:
    """Issue 13, C18: a default on our side does not make a field of an answer optional."""
    schemas = described["components"]["schemas"]
    required = {name: set(schema.get("required", ())) for name, schema in schemas.items()}
    assert "breaker" in required["Status"]
    assert {"turn", "reason"} <= required["Standing"]
    assert "ok" in required["Failure"]
    assert "next" in required["TurnList"]
    assert set(schemas["StepView"]["properties"]) == required["StepView"]
    assert "reason" not in required["TurnExplained"]
    assert required["Readiness"] == {"ok"}


def test_what_a_client_may_leave_out_or_null_is_said_to_be_so(described: Json) -> None:
    """Issue 13, C18."""
    post = described["components"]["schemas"]["Post"]
    assert not post["required"]
    for name in ("question", "choice"):
        assert {"type": "null"} in post["properties"][name]["anyOf"]


def test_a_message_in_the_list_has_all_that_a_message_has_and_its_fate() -> None:
    """Issue 13, C18: it is written down twice, because the list adds to it."""
    listed = {field.name for field in msgspec.structs.fields(InboxEntry)}
    assert listed == {field.name for field in fields(EntryView)} | {"turn", "fate"}
