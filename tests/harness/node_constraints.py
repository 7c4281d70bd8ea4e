"""Constraints of what several gateways share, each with a statement that it refuses."""

MOVE = "INSERT INTO moves (one, move_id, state, place, at_ms) VALUES"

REFUSED_BY_NODES: dict[str, list[tuple[str, str]]] = {
    "moves": [
        ("CHECK one = 1", f"{MOVE} (2, 'm', 'live', '', 1)"),
        ("CHECK state IN ('arriving', 'live', 'moved')", f"{MOVE} (1, 'm', 'x', '', 1)"),
    ],
    "login_codes": [
        (
            "UNIQUE login_codes.code_hash",
            "INSERT INTO login_codes (code_hash, expires_ms) VALUES ('h', 1), ('h', 1)",
        ),
    ],
    "kept_files": [
        (
            "UNIQUE kept_files.path, kept_files.part",
            "INSERT INTO kept_files (path, part, content, kept_ms) "
            "VALUES ('p', 1, '', 1), ('p', 1, '', 1)",
        ),
    ],
}
