"""A hundred thousand armed schedules, none of which is due for long."""

COUNT = 100_000
FAR_MS = 4_000_000_000_000
FILL = """
WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < {count})
INSERT INTO schedules (session_id, person, name, kind, expression, zone, prompt, command, place,
                       late, overlap, quiet, state, due_ms, created_by, created_ms, changed_ms)
SELECT 1, 'ann', 'n' || i, 'cron', '0 7 * * *', '', 'p', '', 'here', 'skip', 'skip', 0, 'armed',
       {far} + i, 'k' || i, 1, 1 FROM n
"""
