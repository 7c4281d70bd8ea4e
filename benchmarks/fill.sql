-- Fill a database with closed turns, in bulk and in the shape the store itself would have left.

-- name: plan_table
-- The turns of one chunk, and what each consists of.
CREATE TEMP TABLE plan (
    turn_id INTEGER PRIMARY KEY, session_id INTEGER, calls INTEGER, parts INTEGER, at_ms INTEGER
);

-- name: plan_clear
-- Room for the next chunk.
DELETE FROM temp.plan;

-- name: plan_chunk
-- Sessions take turns, so that the rows of one are spread over the file as in real life. Of ten
-- turns six are answered at once, three after one call, one after two calls and in two parts.
WITH RECURSIVE span (turn_id) AS (
    VALUES (:first) UNION ALL SELECT turn_id + 1 FROM span WHERE turn_id < :last
), dice (turn_id, roll) AS (
    SELECT turn_id, (turn_id + turn_id / :sessions) % 10 FROM span
)
INSERT INTO temp.plan
SELECT turn_id, 1 + (turn_id * 7919) % :sessions,
       CASE WHEN roll < 6 THEN 0 WHEN roll < 9 THEN 1 ELSE 2 END,
       CASE WHEN roll < 9 THEN 1 ELSE 2 END,
       :now - (:turns - turn_id) * 2000
FROM dice;

-- name: worker
-- The boot that did it all, and was stopped.
INSERT INTO workers (worker_id, host, pid, birth, version, started_ms, heartbeat_ms, ended_ms,
                     ended_how)
VALUES (1, 'bench', 1, 'bench', '0', :now, :now, :now, 'stopped');

-- name: sessions
-- One chat each.
WITH RECURSIVE span (session_id) AS (
    VALUES (1) UNION ALL SELECT session_id + 1 FROM span WHERE session_id < :sessions
)
INSERT INTO sessions (session_id, channel, chat, thread, created_ms, changed_ms)
SELECT session_id, :channel, 'chat-' || session_id, '', :now, :now FROM span;

-- name: turns
-- All of them done.
INSERT INTO turns (turn_id, session_id, generation, state, event, epoch, person, anchor, first_seq,
                   opened_ms, progressed_ms, worked_ms, changed_ms, closed_ms)
SELECT turn_id, session_id, 1, 'done', 'settled', 1, 'person-' || session_id, 'fill-' || (10000000 + turn_id),
       turn_id * 5, at_ms, at_ms + 900, 0, at_ms + 1000, at_ms + 1000
FROM temp.plan ORDER BY turn_id;

-- name: inbox
-- The message that opened each turn.
INSERT INTO inbox (entry_id, session_id, generation, kind, source, external_id, sender, body,
                   accepted_by, received_ms, changed_ms, state, turn_id)
SELECT turn_id, session_id, 1, 'message', :channel, 'fill-' || (10000000 + turn_id), 'person-' || session_id,
       json_object('text', :text || turn_id, 'sent_ms', at_ms, 'anchor', 'fill-' || (10000000 + turn_id)),
       1, at_ms, at_ms, 'attached', turn_id
FROM temp.plan ORDER BY turn_id;

-- name: steps
-- Message, reply with its calls, a result for each, answer.
WITH places (place, kind) AS (
    VALUES (0, 'message'), (1, 'reply'), (2, 'result'), (3, 'result'), (4, 'answer')
)
INSERT INTO steps (seq, session_id, turn_id, epoch, kind, cause, body, at_ms)
SELECT turn_id * 5 + place, session_id, turn_id, place > 0, kind,
       CASE kind WHEN 'message' THEN 'entry:' || turn_id
                 WHEN 'result' THEN 'call:' || (turn_id * 5 + 1) || '.' || (place - 2)
                 ELSE 'model' END,
       CASE kind
           WHEN 'message' THEN json_object(
               'text', :text || turn_id, 'sender', 'person-' || session_id, 'entry_id', turn_id,
               'sent_ms', at_ms)
           WHEN 'reply' THEN json_object(
               'text', :text || turn_id, 'calls', json('[' || json_object(
                   'call_id', (turn_id * 5 + 1) || '.0', 'tool', 'read_file',
                   'arguments', '{"path": "notes"}', 'effect', 'none')
                   || CASE calls WHEN 2 THEN ',' || json_object(
                       'call_id', (turn_id * 5 + 1) || '.1', 'tool', 'read_file',
                       'arguments', '{"path": "notes"}', 'effect', 'none') ELSE '' END
                   || ']'))
           WHEN 'result' THEN json_object(
               'call_id', (turn_id * 5 + 1) || '.' || (place - 2), 'status', 'ok',
               'text', :text || turn_id)
           ELSE json_object('text', :text || turn_id) END,
       at_ms + place * 200
FROM temp.plan CROSS JOIN places
WHERE place IN (0, 4) OR place < 2 + calls AND calls > 0
ORDER BY turn_id, place;

-- name: calls
-- Each of them finished.
WITH places (place) AS (VALUES (0), (1))
INSERT INTO calls (turn_id, call_id, place, tool, arguments, effect, need, provider_id, args_hash,
                   started_ms, finished_ms)
SELECT turn_id, (turn_id * 5 + 1) || '.' || place, (turn_id * 5 + 1) * 1000 + place, 'read_file',
       '{"path": "notes"}', 'none', 'nobody', '', '0123456789abcdef0123456789abcdef',
       at_ms + 300, at_ms + 400
FROM temp.plan CROSS JOIN places WHERE place < calls ORDER BY turn_id, place;

-- name: outbox
-- Every part delivered.
WITH places (part) AS (VALUES (1), (2))
INSERT INTO outbox (delivery_id, session_id, turn_id, cause, part, parts, text, anchor, state,
                    attempts, platform_id, created_ms, changed_ms, settled_ms)
SELECT turn_id * 2 + part, session_id, turn_id, 'step:' || (turn_id * 5 + 4), part, parts,
       :text || turn_id, 'fill-' || (10000000 + turn_id), 'delivered', 1, 'platform-' || turn_id || '-' || part,
       at_ms + 800, at_ms + 1000, at_ms + 1000
FROM temp.plan CROSS JOIN places WHERE part <= parts ORDER BY turn_id, part;

-- name: journal
-- What the triggers would have written, which are away while the database is filled.
WITH lines (line, subject, event, before, after) AS (
    VALUES (0, 'message', 'accepted', NULL, 'message'),
           (1, 'turn', 'opened', NULL, 'queued'),
           (2, 'turn', 'claimed', 'queued', 'running'),
           (3, 'step', 'reply', NULL, NULL),
           (4, 'call', 'started', NULL, NULL),
           (5, 'step', 'result', NULL, NULL),
           (6, 'call', 'started', NULL, NULL),
           (7, 'step', 'result', NULL, NULL),
           (8, 'step', 'answer', NULL, NULL),
           (9, 'turn', 'answered', 'running', 'answered'),
           (10, 'delivery', 'delivered', 'sending', 'delivered'),
           (11, 'delivery', 'delivered', 'sending', 'delivered'),
           (12, 'turn', 'settled', 'answered', 'done')
)
INSERT INTO journal (seq, at_ms, subject, number, event, before, after, reason, session_id, turn_id,
                     worker_id)
SELECT turn_id * 13 + line, at_ms + line * 80, subject,
       CASE subject WHEN 'step' THEN turn_id * 5
                        + CASE line WHEN 3 THEN 1 WHEN 5 THEN 2 WHEN 7 THEN 3 ELSE 4 END
                    WHEN 'call' THEN (turn_id * 5 + 1) * 1000 + line / 2 - 2
                    WHEN 'delivery' THEN turn_id * 2 + line - 9
                    ELSE turn_id END,
       event, before, after,
       CASE subject WHEN 'call' THEN (turn_id * 5 + 1) || '.' || (line / 2 - 2) || ' read_file'
                    WHEN 'step' THEN CASE event WHEN 'result'
                        THEN 'call:' || (turn_id * 5 + 1) || '.' || (line / 2 - 2) ELSE 'model' END
       END,
       session_id, CASE WHEN line > 0 THEN turn_id END,
       CASE subject WHEN 'turn' THEN 1 WHEN 'delivery' THEN 1 END
FROM temp.plan CROSS JOIN lines
WHERE NOT (line BETWEEN 3 AND 5 AND calls < 1) AND NOT (line IN (6, 7) AND calls < 2)
    AND NOT (line = 11 AND parts < 2)
ORDER BY turn_id, line;

-- name: side_work
-- What would be kept up to date row by row: put away first, made again at the end.
SELECT type, name, sql FROM sqlite_schema
WHERE sql IS NOT NULL AND (type = 'index' OR (type = 'trigger' AND name LIKE 'journal\_%' ESCAPE '\'
                                              AND name <> 'journal_never_changes'));
