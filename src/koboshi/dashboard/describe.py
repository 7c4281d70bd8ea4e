"""The page's part of the description of the API, made of the table of its operations."""

from typing import Any, TypeAlias

from koboshi.control.replies import Explained
from koboshi.dashboard.operation import Operation
from koboshi.dashboard.operations import KILL_PATH, OPERATIONS

# JSON has no types to offer; this is a codec.
Json: TypeAlias = dict[str, Any]

SHAPES: tuple[type, ...] = tuple(
    dict.fromkeys([Explained, *(reply for each in OPERATIONS for reply in each.replies)])
)
"""What the answers look like."""

_FAILURES = {
    "list": ("400", "401", "503"),
    "show": ("401", "404", "503"),
    "do": ("401", "403", "404", "409", "503"),
}


def paths() -> Json:
    """What can be looked at and done, by its address."""
    return {
        operation.path: {"post" if operation.how == "do" else "get": _described(operation)}
        for operation in OPERATIONS
    }


def _described(operation: Operation) -> Json:
    good = "202" if operation.path == KILL_PATH else "200"
    return {
        "operationId": operation.name,
        "summary": operation.summary,
        "responses": {good: _answer(*operation.replies), **_failures(*_FAILURES[operation.how])},
        "parameters": _parameters(operation),
    }


def _parameters(operation: Operation) -> list[Json]:
    found = []
    if "{what}" in operation.path:
        found.append(_in("path", "what") | {"example": operation.example})
    found += [_in("query", query, is_required=False) for query in operation.queries]
    if operation.is_open:
        found.append(_in("query", "open", is_required=False) | {"description": operation.is_open})
    return found


def _answer(*answers: type) -> Json:
    refs = [{"$ref": f"#/components/schemas/{shape.__name__}"} for shape in answers]
    schema = refs[0] if len(refs) == 1 else {"anyOf": refs}
    names = " or ".join(shape.__name__ for shape in answers)
    return {"description": names, "content": {"application/json": {"schema": schema}}}


def _in(place: str, name: str, *, is_required: bool = True) -> Json:
    return {"in": place, "name": name, "required": is_required, "schema": {"type": "string"}}


def _failures(*statuses: str) -> Json:
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Failure"}}}
    return {status: {"description": "Failure", "content": content} for status in statuses}
