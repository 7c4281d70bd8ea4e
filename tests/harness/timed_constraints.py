"""Constraints of schedules, goals, watchers and children, each with a statement that it refuses."""

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
ZONE = "INSERT INTO zones (channel, person, zone, told) VALUES"
_A_SCHEDULE = f"{SCHEDULE} {ARMED}); "

WATCHER = "INSERT INTO watchers (process_id, kind, argument, state) VALUES (1,"

REFUSED_BY_TIME: dict[str, list[tuple[str, str]]] = {
    "watchers": [
        (
            "CHECK kind IN ('exit', 'match', 'every')",
            f"{WATCHER} 'never', '', 'armed')",
        ),
        (
            "CHECK state IN ('armed', 'fired', 'disarmed')",
            f"{WATCHER} 'exit', '', 'sleepy')",
        ),
    ],
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
        ("CHECK plain IN (0, 1)", f"{_A_SCHEDULE} UPDATE schedules SET plain = 2"),
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
            f"{ZONE} ('a', 'b', 'UTC', 1), ('a', 'b', 'UTC', 1)",
        ),
        ("CHECK told IN (0, 1)", f"{ZONE} ('a', 'b', 'UTC', 2)"),
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
CHILD = (
    "INSERT INTO children (session_id, generation, call_id, person, name, task, made_ms, turn_id, "
    "depth, state, own_session, begun_ms, how, ended_ms) "
    "SELECT 1, 1, '1.0', 'ann', 'n', 't', 1, * FROM (VALUES"
)
_WAITS, _WORKS = "'waiting', NULL, NULL, NULL, NULL", "'working', 1, 1, NULL, NULL"
REFUSED_BY_CHILDREN: dict[str, list[tuple[str, str]]] = {
    "children": [
        ("CHECK depth >= 1", f"{CHILD} (1, 0, {_WAITS}))"),
        (
            "CHECK state IN ('waiting', 'working', 'ended')",
            f"{CHILD} (1, 1, 'x', NULL, NULL, NULL, NULL))",
        ),
        (
            "UNIQUE children.turn_id, children.call_id",
            f"{CHILD} (1, 1, {_WAITS}), (1, 1, {_WAITS}))",
        ),
        ("UNIQUE children.own_session", f"{CHILD} (1, 1, {_WORKS}), (2, 1, {_WORKS}))"),
        (
            "CHECK state <> 'working' OR own_session IS NOT NULL",
            f"{CHILD} (1, 1, 'working', NULL, NULL, NULL, NULL))",
        ),
        (
            "CHECK (own_session IS NULL) = (begun_ms IS NULL)",
            f"{CHILD} (1, 1, 'waiting', NULL, 1, NULL, NULL))",
        ),
        (
            "CHECK (state = 'ended') = (ended_ms IS NOT NULL)",
            f"{CHILD} (1, 1, 'waiting', NULL, NULL, 'answered', 1))",
        ),
        (
            "CHECK (ended_ms IS NULL) = (how IS NULL)",
            f"{CHILD} (1, 1, 'ended', NULL, NULL, NULL, 1))",
        ),
        (
            "TRIGGER ended_children_stay_ended",
            f"{CHILD} (1, 1, 'ended', NULL, NULL, 'answered', 1)); "
            "UPDATE children SET state = 'waiting', how = NULL, ended_ms = NULL",
        ),
    ],
}
CHILDREN_POINTING_NOWHERE = {
    "children.session_id": f"{CHILD} (1, 1, {_WAITS})); UPDATE children SET session_id = 99",
    "children.turn_id": f"{CHILD} (99, 1, {_WAITS}))",
    "children.own_session": f"{CHILD} (1, 1, 'working', 99, 1, NULL, NULL))",
}
MESSAGES_OF_TIME = {"INDEX one_goal": "UNIQUE constraint failed: goals.session_id"}
TIME_POINTING_NOWHERE = {
    "schedules.session_id": f"{_A_SCHEDULE} UPDATE schedules SET session_id = 99",
    "schedules.own_session": f"{_A_SCHEDULE} UPDATE schedules SET own_session = 99",
    "occasions.schedule_id": f"{OCCASION} (1, 'fired'))",
    "goals.session_id": f"{GOAL} (99, 'active', 0, 20, NULL, NULL, 'a'))",
    "goals.worker_id": f"{GOAL} (1, 'judging', 0, 20, NULL, 99, 'a'))",
}
