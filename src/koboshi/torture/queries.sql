-- What a gateway at rest left behind, as the check of a torture reads it.

-- name: entries
-- Everything that arrived.
SELECT entry_id, kind, external_id, state, turn_id, reason FROM inbox ORDER BY entry_id;

-- name: turns
-- Every turn, with the chat it is in and how many answers it has.
SELECT t.turn_id, s.chat, t.state, t.reason,
       (SELECT count(*) FROM steps a WHERE a.turn_id = t.turn_id AND a.kind = 'answer') AS answers
  FROM turns t JOIN sessions s USING (session_id) ORDER BY t.turn_id;

-- name: deliveries
-- Everything that was owed.
SELECT d.delivery_id, s.chat, d.turn_id, d.cause, d.part, d.parts, d.text, d.state
  FROM outbox d JOIN sessions s USING (session_id) ORDER BY d.delivery_id;

-- name: processes
-- Every command, whether it was waited for or not.
SELECT p.process_id, s.chat, p.foreground, p.command, p.state, p.exit_code,
       p.boundary
  FROM processes p JOIN sessions s USING (session_id) ORDER BY p.process_id;

-- name: heard
-- How often each report is in the transcript.
SELECT cause, count(*) AS times FROM steps WHERE kind = 'note' AND cause LIKE 'entry:%'
 GROUP BY cause;

-- name: joined
-- The messages of each turn that answers a backlog, in order.
SELECT n.turn_id, i.entry_id, i.sender
  FROM steps n JOIN steps m ON m.turn_id = n.turn_id AND m.kind = 'message' AND m.seq < n.seq
  JOIN inbox i ON m.cause = 'entry:' || i.entry_id
 WHERE n.kind = 'note' AND n.cause = 'backlog' ORDER BY m.seq;

-- name: integrity
-- What SQLite finds wrong with the file; one row with "ok" if it is whole.
PRAGMA integrity_check;

-- name: foreign_keys
-- Rows that refer to nothing.
PRAGMA foreign_key_check;
