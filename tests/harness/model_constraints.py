"""Constraints of models, of what they cost and of what was moved here, each with a statement that
it refuses."""

_BENCH = (
    "INSERT INTO model_benches (model, node, trouble, reason, tries, since_ms, until_ms, wait_ms) "
    "VALUES"
)
_PURSE = "INSERT INTO purses (day, scope, subject, unit, used, reserved, more) VALUES"
_BILL = "INSERT INTO bills (worker_id, purses, model, amount, made_ms) VALUES"

REFUSED_BY_MODELS: dict[str, list[tuple[str, str]]] = {
    "model_benches": [
        ("CHECK tries > 0", f"{_BENCH} ('m', '', 'x', 'x', 0, 1, 2, 1)"),
        (
            "UNIQUE model_benches.model, model_benches.node",
            f"{_BENCH} ('m', '', 'x', 'x', 1, 1, 2, 1), ('m', '', 'y', 'y', 2, 1, 2, 1)",
        ),
    ],
    "purses": [
        (
            "CHECK scope IN ('all', 'person', 'chat', 'schedule')",
            f"{_PURSE} (1, 'x', '', 'money', 0, 0, 0)",
        ),
        ("CHECK unit IN ('money', 'tokens')", f"{_PURSE} (1, 'all', '', 'x', 0, 0, 0)"),
        ("CHECK used >= 0", f"{_PURSE} (1, 'all', '', 'money', -1, 0, 0)"),
        ("CHECK reserved >= 0", f"{_PURSE} (1, 'all', '', 'money', 0, -1, 0)"),
        ("CHECK more >= 0", f"{_PURSE} (1, 'all', '', 'money', 0, 0, -1)"),
        (
            "UNIQUE purses.day, purses.scope, purses.subject, purses.unit",
            f"{_PURSE} (1, 'all', '', 'money', 0, 0, 0), (1, 'all', '', 'money', 1, 1, 1)",
        ),
    ],
    "bills": [("CHECK amount >= 0", f"{_BILL} (1, '', 'm', -1, 1)")],
    "imports": [
        (
            "UNIQUE imports.digest",
            "INSERT INTO imports (digest, source, files, committed_ms) "
            "VALUES ('a', 'hermes', '[]', 1), ('a', 'hermes', '[]', 1)",
        ),
    ],
}
