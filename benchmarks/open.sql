-- Open turns in a filled database: each session has one that was at work when the gateway was killed.

-- name: worker
-- The boot that was killed.
INSERT INTO workers (worker_id, host, pid, birth, version, started_ms, heartbeat_ms)
VALUES (2, 'bench', 2, 'bench', '0', :now, :now);

-- name: turns
-- One for each session, claimed once.
INSERT INTO turns (turn_id, session_id, generation, state, event, epoch, worker_id, person, anchor,
                   first_seq, opened_ms, progressed_ms, changed_ms)
SELECT :turns + session_id, session_id, 1, 'running', 'claimed', 1, 2, 'person-' || session_id,
       'open-' || session_id, :turns * 5 + 10 + session_id, :now, :now, :now
FROM sessions ORDER BY session_id;

-- name: inbox
-- The message that opened it.
INSERT INTO inbox (entry_id, session_id, generation, kind, source, external_id, sender, body,
                   accepted_by, received_ms, changed_ms, state, turn_id)
SELECT :turns + session_id, session_id, 1, 'message', :channel, 'open-' || session_id,
       'person-' || session_id,
       json_object('text', 'echo hello', 'sent_ms', :now, 'anchor', 'open-' || session_id),
       2, :now, :now, 'attached', :turns + session_id
FROM sessions ORDER BY session_id;

-- name: steps
-- The same words in the transcript; the model has not replied.
INSERT INTO steps (seq, session_id, turn_id, epoch, kind, cause, body, at_ms)
SELECT :turns * 5 + 10 + session_id, session_id, :turns + session_id, 0, 'message',
       'entry:' || (:turns + session_id),
       json_object('text', 'echo hello', 'sender', 'person-' || session_id,
                   'entry_id', :turns + session_id, 'sent_ms', :now), :now
FROM sessions ORDER BY session_id;
