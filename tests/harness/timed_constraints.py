"""Constraints of schedules, occasions and goals, each with a statement that it refuses."""

SCHEDULE = (
    "INSERT INTO schedules (session_id, person, name, expression, zone, late_ms, created_ms, "
    "changed_ms, kind, prompt, command, place, late, overlap, quiet, state, due_ms, recheck, "
    "created_by) SELECT 1, 'ann', 'n', '60', '', NULL, 1, 1, * FROM (VALUES"
)
_KIND, _SAYS, _HOW = "'every'", "'p', ''", "'here', 'skip', 'skip'"
ARMED = f"({_KIND}, {_SAYS}, {_HOW}, 0, 'armed', 1, 0, 'a')"
GOAL = (
    "INSERT INTO goals (generation, person, text, tokens_max, created_ms, changed_ms, session_id, "
    "state, step, steps_max, wait_until_ms, worker_id, created_by) "
    "SELECT 1, 'ann', 't', 1, 1, 1, * FROM (VALUES"
)
OCCASION = (
    "INSERT INTO occasions (schedule_id, revision, rule, decided_ms, due_ms, verdict) "
    "SELECT 1, 1, 'r', 1, * FROM (VALUES"
)
_A_SCHEDULE = f"{SCHEDULE} {ARMED}); "

REFUSED_BY_TIME: dict[str, list[tuple[str, str]]] = {
    "schedules": [
        (
            "CHECK kind IN ('at', 'every', 'cron')",
            f"{SCHEDULE} ('x', {_SAYS}, {_HOW}, 0, 'armed', 1, 0, 'a'))",
        ),
        (
            "CHECK place IN ('here', 'thread', 'fresh')",
            f"{SCHEDULE} ({_KIND}, {_SAYS}, 'x', 'skip', 'skip', 0, 'armed', 1, 0, 'a'))",
        ),
        (
            "CHECK late IN ('run', 'ask', 'skip')",
            f"{SCHEDULE} ({_KIND}, {_SAYS}, 'here', 'x', 'skip', 0, 'armed', 1, 0, 'a'))",
        ),
        (
            "CHECK overlap IN ('skip', 'queue')",
            f"{SCHEDULE} ({_KIND}, {_SAYS}, 'here', 'skip', 'x', 0, 'armed', 1, 0, 'a'))",
        ),
        (
            "CHECK quiet IN (0, 1)",
            f"{SCHEDULE} ({_KIND}, {_SAYS}, {_HOW}, 2, 'armed', 1, 0, 'a'))",
        ),
        (
            "CHECK state IN ('armed', 'paused', 'spent', 'disabled', 'removed')",
            f"{SCHEDULE} ({_KIND}, {_SAYS}, {_HOW}, 0, 'x', NULL, 0, 'a'))",
        ),
        (
            "CHECK recheck IN (0, 1)",
            f"{SCHEDULE} ({_KIND}, {_SAYS}, {_HOW}, 0, 'armed', 1, 2, 'a'))",
        ),
        ("UNIQUE schedules.created_by", f"{SCHEDULE} {ARMED}, {ARMED})"),
        (
            "CHECK (state = 'armed') = (due_ms IS NOT NULL)",
            f"{SCHEDULE} ({_KIND}, {_SAYS}, {_HOW}, 0, 'armed', NULL, 0, 'a'))",
        ),
        (
            "CHECK (state = 'armed') = (due_ms IS NOT NULL)",
            f"{SCHEDULE} ({_KIND}, {_SAYS}, {_HOW}, 0, 'paused', 1, 0, 'a'))",
        ),
        (
            "CHECK (prompt = '') <> (command = '')",
            f"{SCHEDULE} ({_KIND}, 'p', 'c', {_HOW}, 0, 'armed', 1, 0, 'a'))",
        ),
        (
            "CHECK (prompt = '') <> (command = '')",
            f"{SCHEDULE} ({_KIND}, '', '', {_HOW}, 0, 'armed', 1, 0, 'a'))",
        ),
    ],
    "occasions": [
        (
            "CHECK verdict IN ('fired', 'late', 'missed', 'skipped', 'asked', 'dropped')",
            f"{_A_SCHEDULE} {OCCASION} (1, 'x'))",
        ),
        (
            "UNIQUE occasions.schedule_id, occasions.due_ms",
            f"{_A_SCHEDULE} {OCCASION} (1, 'fired'), (1, 'late'))",
        ),
    ],
    "zones": [
        (
            "UNIQUE zones.channel, zones.person",
            "INSERT INTO zones VALUES ('a', 'b', 'UTC'), ('a', 'b', 'UTC')",
        )
    ],
    "goals": [
        (
            "CHECK state IN ('active', 'judging', 'waiting', 'paused', 'done', 'cleared')",
            f"{GOAL} (1, 'x', 0, 20, NULL, NULL, 'a'))",
        ),
        (
            "UNIQUE goals.created_by",
            f"{GOAL} (1, 'done', 0, 20, NULL, NULL, 'a'), (1, 'done', 0, 20, NULL, NULL, 'a'))",
        ),
        (
            "CHECK worker_id IS NULL OR state = 'judging'",
            f"{GOAL} (1, 'active', 0, 20, NULL, 1, 'a'))",
        ),
        (
            "CHECK (state = 'waiting') = (wait_process IS NOT NULL OR wait_until_ms IS NOT NULL)",
            f"{GOAL} (1, 'waiting', 0, 20, NULL, NULL, 'a'))",
        ),
        (
            "CHECK (state = 'waiting') = (wait_process IS NOT NULL OR wait_until_ms IS NOT NULL)",
            f"{GOAL} (1, 'active', 0, 20, 5, NULL, 'a'))",
        ),
        (
            "CHECK step >= 0 AND step <= steps_max",
            f"{GOAL} (1, 'active', 21, 20, NULL, NULL, 'a'))",
        ),
        (
            "INDEX one_goal",
            f"{GOAL} (1, 'active', 0, 20, NULL, NULL, 'a'), (1, 'paused', 0, 20, NULL, NULL, 'b'))",
        ),
    ],
}
MESSAGES_OF_TIME = {"INDEX one_goal": "UNIQUE constraint failed: goals.session_id"}
TIME_POINTING_NOWHERE = {
    "schedules.session_id": f"{_A_SCHEDULE} UPDATE schedules SET session_id = 99",
    "occasions.schedule_id": f"{OCCASION} (1, 'fired'))",
    "goals.session_id": f"{GOAL} (99, 'active', 0, 20, NULL, NULL, 'a'))",
    "goals.worker_id": f"{GOAL} (1, 'judging', 0, 20, NULL, 99, 'a'))",
}
