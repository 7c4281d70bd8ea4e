"""Constraints of memories and of what turns were shown, each with a statement that it refuses."""

_SCOPE = (
    "INSERT INTO memory_scopes (channel, kind, name, revision, erased_revision, changed_ms) VALUES"
)
_A_SCOPE = f"{_SCOPE} ('web:main', 'person', 'ann', 9, 0, 1);"
_MEMORY = f"{_A_SCOPE} INSERT INTO memories (scope_id, shelf, text, turn_id, born, died) VALUES"
_REVISION = (
    f"{_A_SCOPE} INSERT INTO memory_revisions (scope_id, revision, kind, made_by, turn_id, words, "
    "at_ms) VALUES"
)
_PICTURE = (
    f"{_A_SCOPE} INSERT INTO memory_pictures (scope_id, shelf, home, digest, revision, written) "
    "VALUES"
)
_SHOWN = "INSERT INTO turn_shown (turn_id, digest, scope_id) VALUES"
_KINDS = "('add', 'replace', 'remove', 'hand', 'undo', 'erase')"

REFUSED_BY_MEMORY: dict[str, list[tuple[str, str]]] = {
    "memory_scopes": [
        ("CHECK kind IN ('person', 'chat')", f"{_SCOPE} ('web:main', 'x', 'ann', 0, 0, 1)"),
        (
            "UNIQUE memory_scopes.channel, memory_scopes.kind, memory_scopes.name",
            f"{_A_SCOPE} {_A_SCOPE}",
        ),
        ("CHECK erased_revision <= revision", f"{_SCOPE} ('web:main', 'chat', 'r', 1, 2, 1)"),
    ],
    "memories": [
        ("CHECK shelf IN ('memory', 'user')", f"{_MEMORY} (1, 'x', '', NULL, 1, NULL)"),
        ("CHECK died IS NULL OR died > born", f"{_MEMORY} (1, 'user', '', NULL, 2, 2)"),
    ],
    "memory_revisions": [
        (f"CHECK kind IN {_KINDS}", f"{_REVISION} (1, 1, 'x', 'a', NULL, '', 1)"),
        (
            "UNIQUE memory_revisions.scope_id, memory_revisions.revision",
            f"{_REVISION} (1, 1, 'add', 'a', NULL, '', 1), (1, 1, 'add', 'b', NULL, '', 1)",
        ),
        (
            "UNIQUE memory_revisions.made_by",
            f"{_REVISION} (1, 1, 'add', 'a', NULL, '', 1), (1, 2, 'add', 'a', NULL, '', 1)",
        ),
    ],
    "memory_pictures": [
        ("CHECK shelf IN ('memory', 'user')", f"{_PICTURE} (1, 'x', 'h', 'd', 1, 0)"),
        ("CHECK written IN (0, 1)", f"{_PICTURE} (1, 'user', 'h', 'd', 1, 2)"),
        (
            "UNIQUE memory_pictures.scope_id, memory_pictures.shelf, memory_pictures.home, "
            "memory_pictures.digest",
            f"{_PICTURE} (1, 'user', 'h', 'd', 1, 0), (1, 'user', 'h', 'd', 1, 0)",
        ),
    ],
    "shown_texts": [
        (
            "UNIQUE shown_texts.digest",
            "INSERT INTO shown_texts (digest, text, at_ms) VALUES ('d', '', 1), ('d', '', 1)",
        ),
    ],
}
MEMORY_POINTING_NOWHERE = {
    "memories.scope_id": f"{_MEMORY} (99, 'user', '', NULL, 1, NULL)",
    "memories.turn_id": f"{_MEMORY} (1, 'user', '', 99, 1, NULL)",
    "memory_revisions.scope_id": f"{_REVISION} (99, 1, 'add', 'a', NULL, '', 1)",
    "memory_revisions.turn_id": f"{_REVISION} (1, 1, 'add', 'a', 99, '', 1)",
    "memory_pictures.scope_id": f"{_PICTURE} (99, 'user', 'h', 'd', 1, 0)",
    "turn_shown.scope_id": f"{_SHOWN} (1, 'd', 99)",
}
