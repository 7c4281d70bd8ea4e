-- Every statement of the store, by name. A conditional write that touches no row is a lost claim.

-- ── workers ────────────────────────────────────────────────────────────────────────────────────

-- name: worker_insert
-- A new row for this boot.
INSERT INTO workers (host, pid, birth, version, started_ms, heartbeat_ms,
                     memory_group, group_kills, machine_kills, node, home)
VALUES (:host, :pid, :birth, :version, :now, :now, :memory_group, :group_kills, :machine_kills, :node,
        :home);

-- name: worker_by_id
-- A boot.
SELECT worker_id, host, pid, birth, version, started_ms, heartbeat_ms, draining, ended_ms, ended_how,
       restart_by, found_dead, report
FROM workers WHERE worker_id = :worker_id;

-- name: worker_gone
-- Whether a worker has ended: then what it held is for anybody to take. Other queries say the same as
-- a condition on `ended_ms`; nothing else tells that a worker is gone.
SELECT 1 FROM workers WHERE worker_id = :worker_id AND ended_ms IS NOT NULL;

-- name: worker_left
-- Whether a boot of a home has not ended.
SELECT 1 FROM workers WHERE ended_ms IS NULL AND home = :home LIMIT 1;

-- name: workers_mark_dead
-- Boots of a home that ended without a word get the end that the next owner of the home found. What is
-- not known is NULL, and no comparison with that holds.
UPDATE workers SET ended_ms = heartbeat_ms,
    ended_how = CASE
        WHEN host = :host AND substr(birth, 1, instr(birth, '/')) <> :boot THEN 'rebooted'
        WHEN host = :host AND heartbeat_ms >= :soon_ms
             AND CASE WHEN memory_group = :memory_group THEN group_kills < :group_kills
                      ELSE machine_kills < :machine_kills END THEN 'memory'
        ELSE 'killed' END
WHERE ended_ms IS NULL AND home = :home;

-- name: worker_beat
-- Still alive; says whether a restart was asked for.
UPDATE workers SET heartbeat_ms = :now, memory_group = :memory_group, group_kills = :group_kills,
                   machine_kills = :machine_kills
WHERE worker_id = :worker_id AND ended_ms IS NULL
RETURNING restart_by IS NOT NULL;

-- name: worker_drain
-- Somebody asks for a drain.
UPDATE workers SET draining = 1 WHERE worker_id = :worker_id AND ended_ms IS NULL;

-- name: worker_found_dead
-- How many turns were running when this worker's predecessors died.
UPDATE workers SET found_dead = (
    SELECT count(*) FROM turns INDEXED BY turns_alive
    JOIN workers AS owner ON owner.worker_id = turns.worker_id
    WHERE turns.closed_ms IS NULL AND turns.state = 'running' AND owner.ended_ms IS NOT NULL)
WHERE worker_id = :worker_id;

-- name: workers_unclean
-- When the newest boots began that found a turn dead.
SELECT started_ms FROM workers INDEXED BY workers_unclean WHERE found_dead > 0
ORDER BY worker_id DESC LIMIT :limit;

-- name: worker_restart
-- Somebody asked this worker to end and come back.
UPDATE workers SET draining = 1, restart_by = coalesce(restart_by, :by)
WHERE worker_id = :worker_id AND ended_ms IS NULL;

-- name: worker_restarted_by
-- The worker that somebody asked to come back.
SELECT worker_id, host, pid, birth, version, started_ms, heartbeat_ms, draining, ended_ms, ended_how,
       restart_by, found_dead, report
FROM workers INDEXED BY workers_restarted WHERE restart_by = :by ORDER BY worker_id DESC LIMIT 1;

-- name: worker_last_restart
-- Who asked for the newest restart before this boot. The boots right after it may have died early.
SELECT restart_by FROM workers
WHERE restart_by IS NOT NULL AND worker_id < :worker_id ORDER BY worker_id DESC LIMIT 1;

-- name: worker_report
-- What this boot found and decided.
UPDATE workers SET report = :report WHERE worker_id = :worker_id;

-- name: sessions_at_work
-- Sessions with a turn that this worker runs.
SELECT session_id, anchor FROM turns INDEXED BY turns_alive
WHERE closed_ms IS NULL AND state = 'running' AND worker_id = :worker_id ORDER BY turn_id;

-- name: farewell_abandon
-- What a worker that is gone wanted to say about its own end, and about what it did just then.
-- One that was being sent may be there: it must not be taken for another that is looked for.
UPDATE outbox SET state = :after, worker_id = NULL, reason = 'the restart is over',
                  settled_ms = :now, changed_ms = :now,
                  ambiguous = CASE WHEN state = 'sending' THEN 1 ELSE ambiguous END
WHERE delivery_id = :delivery_id AND state IN ('draft', 'owed', 'sending', 'held');

-- name: farewells_of_the_gone
-- What `farewell_abandon` is for: no living worker sends it, or said it of its own end or its own turn.
SELECT o.delivery_id, s.lock_key
FROM outbox AS o INDEXED BY outbox_unsettled JOIN sessions AS s USING (session_id)
WHERE o.settled_ms IS NULL AND (o.cause LIKE 'drain:%' OR o.cause LIKE 'progress:%')
    AND NOT EXISTS (SELECT 1 FROM workers AS alive
                    WHERE alive.ended_ms IS NULL
                    AND (alive.worker_id = o.worker_id
                         OR 'drain:' || alive.worker_id = o.cause
                         OR alive.worker_id = (SELECT worker_id FROM turns
                                               WHERE turns.turn_id = o.turn_id)))
ORDER BY o.delivery_id;

-- name: turn_hold
-- It is not tried before a moment; nothing else changes.
UPDATE turns SET not_before_ms = :not_before_ms, wait_ms = max(0, :not_before_ms - :now)
WHERE turn_id = :turn_id AND state = 'queued' AND not_before_ms < :not_before_ms;

-- name: waits_cap_turns
-- A wait that has more left than its length means that the clock was set back.
SELECT t.turn_id, s.lock_key FROM turns AS t JOIN sessions AS s USING (session_id)
WHERE t.closed_ms IS NULL AND t.state = 'queued'
    AND (t.recoveries > 0 AND t.event <> 'replied') IN (0, 1)
    AND t.not_before_ms > :now AND t.not_before_ms > :now + t.wait_ms;

-- name: wait_cap_turn
-- It waits for its length and no longer.
UPDATE turns SET not_before_ms = :now + wait_ms
WHERE turn_id = :turn_id AND state = 'queued' AND not_before_ms > :now + wait_ms;

-- name: waits_cap_outbox
-- The same for what is owed; what is held waits for no time.
SELECT o.delivery_id, s.lock_key FROM outbox AS o JOIN sessions AS s USING (session_id)
WHERE o.settled_ms IS NULL AND o.not_before_ms > 0 AND o.not_before_ms > :now
    AND o.not_before_ms > :now + o.wait_ms;

-- name: wait_cap_delivery
-- It waits for its length and no longer.
UPDATE outbox SET not_before_ms = :now + wait_ms
WHERE delivery_id = :delivery_id AND settled_ms IS NULL AND not_before_ms > :now + wait_ms;

-- name: waits_cap_quiet
-- The same for chats that want quiet.
UPDATE quiet SET until_ms = :now + wait_ms WHERE until_ms > :now + wait_ms;

-- name: quiet_expire
-- Chats that were quiet long enough.
DELETE FROM quiet WHERE until_ms <= :now;

-- name: ages_move_outbox
-- The clock on the wall jumped: what is owed is as old as it was before.
UPDATE outbox SET aged_from_ms = aged_from_ms + :jump_ms WHERE settled_ms IS NULL;

-- name: ages_move_questions
-- The same for questions that are open.
UPDATE turns SET expires_ms = expires_ms + :jump_ms
WHERE closed_ms IS NULL AND state = 'waiting' AND expires_ms IS NOT NULL;

-- name: ages_move_turns
-- The same for how long turns are idle that are not over.
UPDATE turns SET progressed_ms = progressed_ms + :jump_ms, worked_ms = worked_ms + :jump_ms
WHERE closed_ms IS NULL;

-- name: ages_move_beats
-- The same for the last sign of life of boots that did not end, and of those that died over turns
-- that still wait for a decision.
UPDATE workers SET heartbeat_ms = heartbeat_ms + :jump_ms
WHERE ended_ms IS NULL OR worker_id IN
    (SELECT worker_id FROM turns WHERE closed_ms IS NULL AND state = 'running');

-- name: worker_last_beat
-- The last sign of life of the boots before.
SELECT heartbeat_ms FROM workers ORDER BY worker_id DESC LIMIT 1;

-- name: worker_end
-- The last word of a boot. One that could not start leaves what it found to the next one, to count.
UPDATE workers SET ended_ms = :now, ended_how = :how, heartbeat_ms = :now,
                   found_dead = CASE WHEN :how = 'refused' THEN 0 ELSE found_dead END
WHERE worker_id = :worker_id AND ended_ms IS NULL;

-- name: worker_newest
-- The newest boots.
SELECT worker_id, host, pid, birth, version, started_ms, heartbeat_ms, draining, ended_ms, ended_how,
       restart_by, found_dead, report
FROM workers ORDER BY worker_id DESC LIMIT :limit;

-- name: worker_before
-- The newest boot before this one that served.
SELECT worker_id, host, pid, birth, version, started_ms, heartbeat_ms, draining, ended_ms, ended_how,
       restart_by, found_dead, report
FROM workers WHERE worker_id < :worker_id AND ended_how IS NOT 'refused'
ORDER BY worker_id DESC LIMIT 1;

-- name: worker_started
-- When a boot began.
SELECT started_ms FROM workers WHERE worker_id = :worker_id;

-- name: worker_heartbeat
-- The last sign of life of a boot.
SELECT heartbeat_ms FROM workers WHERE worker_id = :worker_id;

-- ── sessions ───────────────────────────────────────────────────────────────────────────────────

-- name: session_by_route
-- The session on a route.
SELECT session_id, channel, chat, thread, generation, context_from, settings FROM sessions
WHERE channel = :channel AND chat = :chat AND thread = :thread;

-- name: session_by_id
-- A session.
SELECT session_id, channel, chat, thread, generation, context_from, settings FROM sessions
WHERE session_id = :session_id;

-- name: session_insert
-- A route that nobody has written on before.
INSERT INTO sessions (channel, chat, thread, created_ms, changed_ms, lock_key)
VALUES (:channel, :chat, :thread, :now, :now, :lock_key);

-- name: session_key
-- What whoever writes rows of a session names.
SELECT lock_key FROM sessions WHERE session_id = :session_id;

-- name: chat_key
-- The key of a chat that has a session: that of its first one.
SELECT lock_key FROM sessions WHERE channel = :channel AND chat = :chat
ORDER BY session_id LIMIT 1;

-- name: turn_key
-- The key of a turn's session.
SELECT lock_key FROM sessions
WHERE session_id = (SELECT session_id FROM turns WHERE turn_id = :turn_id);

-- name: entry_key
-- The key of an entry's session, if it has one.
SELECT lock_key FROM sessions
WHERE session_id = (SELECT session_id FROM inbox WHERE entry_id = :entry_id);

-- name: delivery_key
-- The key of a delivery's session.
SELECT lock_key FROM sessions
WHERE session_id = (SELECT session_id FROM outbox WHERE delivery_id = :delivery_id);

-- name: process_key
-- The key of a process's session.
SELECT lock_key FROM sessions
WHERE session_id = (SELECT session_id FROM processes WHERE process_id = :process_id);

-- name: moved_key
-- The key of the session that is where another one moves to, if there is one.
SELECT there.lock_key FROM sessions AS here JOIN sessions AS there USING (channel, thread)
WHERE here.session_id = :session_id AND there.chat = :chat;

-- name: keys_of_channel
-- The keys of all chats of a channel.
SELECT DISTINCT lock_key FROM sessions WHERE channel = :channel ORDER BY lock_key;

-- name: keys_of_ages
-- The keys of all chats in which something has an age.
SELECT lock_key FROM sessions
WHERE session_id IN (SELECT session_id FROM turns WHERE closed_ms IS NULL
                     UNION SELECT session_id FROM outbox WHERE settled_ms IS NULL)
ORDER BY lock_key;

-- name: keys_to_hasten
-- The keys of the chats that `deliveries_hasten` writes to.
SELECT DISTINCT s.lock_key FROM outbox AS o JOIN sessions AS s USING (session_id)
WHERE o.settled_ms IS NULL AND o.not_before_ms > 0
    AND o.state = 'owed' AND o.ambiguous = 0 AND s.channel = :channel
ORDER BY s.lock_key;

-- name: keys_to_release
-- The keys of the chats that `deliveries_release` writes to.
SELECT DISTINCT s.lock_key FROM outbox AS o JOIN sessions AS s USING (session_id)
WHERE o.state = 'held'
    AND (:delivery_id IS NULL OR o.delivery_id = :delivery_id)
ORDER BY s.lock_key;

-- name: keys_of_lines
-- The keys of the chats that lines of the journal tell of.
SELECT DISTINCT lock_key FROM sessions
WHERE session_id IN (SELECT session_id FROM journal
                     WHERE seq IN (SELECT value FROM json_each(:ids)))
ORDER BY lock_key;

-- name: keys_of_deliveries
-- The keys of the chats of deliveries.
SELECT DISTINCT lock_key FROM sessions
WHERE session_id IN (SELECT session_id FROM outbox
                     WHERE delivery_id IN (SELECT value FROM json_each(:ids)))
ORDER BY lock_key;

-- name: session_at_node
-- Where the newest turn of a session was claimed.
UPDATE sessions SET node = :node WHERE session_id = :session_id;

-- name: session_cut
-- A new generation; `context_from` moves only for a cut that forgets.
UPDATE sessions SET generation = :generation, context_from = max(context_from, :context_from),
    changed_ms = :now
WHERE session_id = :session_id AND generation = :generation - 1;

-- name: session_set
-- A person's own settings.
UPDATE sessions SET settings = :settings, changed_ms = :now WHERE session_id = :session_id;

-- name: sessions_of_chat
-- All threads of a chat.
SELECT session_id FROM sessions WHERE channel = :channel AND chat = :chat;

-- name: sessions_of_channel
-- All sessions of a channel.
SELECT session_id FROM sessions WHERE channel = :channel;

-- name: sessions_rebound
-- Another account speaks in them from now on. The moment is behind everything that the other one
-- said, also where a clock was set back since.
UPDATE sessions SET moved_ms = max(:now, moved_ms,
    (SELECT coalesce(max(changed_ms), 0) FROM outbox WHERE session_id = sessions.session_id),
    (SELECT coalesce(max(changed_ms), 0) FROM turns WHERE session_id = sessions.session_id))
WHERE channel = :channel;

-- name: session_moved
-- Since when the platform's ids of a session are those of its chat.
SELECT moved_ms FROM sessions WHERE session_id = :session_id;

-- name: session_move
-- The chat lives elsewhere now, unless a session is there already.
UPDATE OR IGNORE sessions SET chat = :chat, moved_ms = :now, changed_ms = :now
WHERE session_id = :session_id;

-- name: anchors_forget_turns
-- The messages of a chat that moved have other numbers, or none, where it is now.
UPDATE turns SET anchor = ''
WHERE session_id = :session_id AND closed_ms IS NULL AND anchor <> '';

-- name: anchors_forget_outbox
-- Likewise for what is owed.
UPDATE outbox SET anchor = ''
WHERE session_id = :session_id AND settled_ms IS NULL AND anchor <> '';

-- name: anchors_forget_inbox
-- Likewise for what waits.
UPDATE inbox SET body = json_set(body, '$.anchor', '')
WHERE session_id = :session_id AND state = 'waiting';

-- name: session_processes
-- Background processes of the session: the running ones, then the newest that have ended.
SELECT process_id, command, state, started_ms, ended_ms, exit_code FROM processes
WHERE session_id = :session_id AND foreground = 0
ORDER BY ended_ms IS NOT NULL, process_id DESC LIMIT :limit;

-- name: processes_ask_end
-- A cut ends the turn's foreground processes, and with `everything` all of the session.
UPDATE processes SET end_asked_ms = :now
WHERE session_id = :session_id AND ended_ms IS NULL AND end_asked_ms IS NULL
    AND (:everything = 1 OR (foreground = 1 AND turn_id = :turn_id));

-- ── people ─────────────────────────────────────────────────────────────────────────────────────

-- name: person_paired
-- Whether somebody was let in.
SELECT 1 FROM people WHERE channel = :channel AND person = :person AND revoked_ms IS NULL;

-- name: people_all
-- Everybody who was let in, newest first.
SELECT channel, person, name, paired_ms, entry_id FROM people WHERE revoked_ms IS NULL
ORDER BY paired_ms DESC, channel, person LIMIT :limit;

-- name: person_insert
-- Somebody is let in; with a new code also for the second time.
INSERT INTO people (channel, person, name, entry_id, paired_ms)
VALUES (:channel, :person, :name, :entry_id, :now)
ON CONFLICT (channel, person) DO UPDATE SET name = excluded.name, entry_id = excluded.entry_id,
    paired_ms = excluded.paired_ms, revoked_ms = NULL;

-- name: person_revoke
-- Somebody is let in no more.
UPDATE people SET revoked_ms = :now
WHERE channel = :channel AND person = :person AND revoked_ms IS NULL;

-- name: turns_of_person
-- What is not closed on a channel of the turns that a message of a person is in, or that are worked
-- on for them.
SELECT turn_id, session_id, generation, state, event, rule, reason, epoch, worker_id, recoveries,
       crash_streak, person, anchor, first_seq, question_seq, opened_ms, progressed_ms, worked_ms,
       changed_ms, closed_ms, model_tries, not_before_ms, model_waited_ms, model_failure
FROM turns INDEXED BY turns_alive
WHERE closed_ms IS NULL
    AND (person = :person OR EXISTS (SELECT 1 FROM inbox WHERE inbox.turn_id = turns.turn_id
                                     AND inbox.kind = 'message' AND inbox.sender = :person))
    AND session_id IN (SELECT session_id FROM sessions WHERE channel = :channel)
ORDER BY turn_id;

-- name: pairing_of
-- What is known of a stranger.
SELECT p.channel, p.person, p.name, s.chat, p.offered_ms, p.expires_ms, p.code_hash IS NULL
FROM pairings AS p JOIN sessions AS s USING (session_id)
WHERE p.channel = :channel AND p.person = :person;

-- name: pairings_alive
-- Strangers with a code that is good, and those who get none for a while; newest first.
SELECT p.channel, p.person, p.name, s.chat, p.offered_ms, p.expires_ms, p.code_hash IS NULL
FROM pairings AS p JOIN sessions AS s USING (session_id)
WHERE p.expires_ms > :now ORDER BY p.offered_ms DESC, p.channel, p.person LIMIT :limit;

-- name: pairings_good
-- Every code that is good: a handful.
SELECT channel, person, name, session_id, entry_id, code_hash FROM pairings
WHERE code_hash IS NOT NULL AND expires_ms > :now;

-- name: pairings_good_count
-- How many codes of a channel are good, after those that are over were forgotten.
SELECT count(*) FROM pairings WHERE channel = :channel AND code_hash IS NOT NULL;

-- name: pairing_insert
-- A stranger gets a code.
INSERT INTO pairings (channel, person, name, session_id, entry_id, code_hash, offered_ms, expires_ms)
VALUES (:channel, :person, :name, :session_id, :entry_id, :code_hash, :now, :expires_ms);

-- name: pairing_forget
-- A code was used: it is good for nothing more.
DELETE FROM pairings WHERE channel = :channel AND person = :person;

-- name: pairing_silence
-- A code is worthless, and its person gets no other before that moment.
UPDATE pairings SET code_hash = NULL, expires_ms = :expires_ms
WHERE channel = :channel AND person = :person;

-- name: pairings_guessed
-- A wrong guess counts against every code that is good; too many make it worthless.
UPDATE pairings SET wrong = wrong + 1,
    code_hash = CASE WHEN wrong + 1 < :wrong_max THEN code_hash END
WHERE code_hash IS NOT NULL AND expires_ms > :now;

-- name: pairings_expire
-- What is over, and what a clock that was set back would keep for ever.
DELETE FROM pairings WHERE expires_ms <= :now OR expires_ms > :latest_ms;

-- ── inbox ──────────────────────────────────────────────────────────────────────────────────────

-- name: account_of
-- As whom a channel speaks to its platform.
SELECT account FROM accounts WHERE channel = :channel;

-- name: account_set
-- From now on a channel speaks as this one.
INSERT INTO accounts (channel, account, bound_ms) VALUES (:channel, :account, :now)
ON CONFLICT (channel) DO UPDATE SET account = excluded.account, bound_ms = excluded.bound_ms;

-- name: unclaimed_any
-- Whether something of a channel came before accounts were known.
SELECT 1 FROM cursors WHERE channel = :channel AND account = ''
UNION ALL SELECT 1 FROM inbox WHERE source = :channel AND account = '' LIMIT 1;

-- name: entries_adopt
-- What came before accounts were known came to this one.
UPDATE OR IGNORE inbox SET account = :account WHERE source = :channel AND account = '';

-- name: cursor_adopt
-- Likewise for how far it was read.
UPDATE OR REPLACE cursors SET account = :account WHERE channel = :channel AND account = '';

-- name: cursor_get
-- How far a channel was read as an account; as nobody in particular, if that is all we know.
SELECT token FROM cursors WHERE channel = :channel AND account IN (:account, '')
ORDER BY account DESC LIMIT 1;

-- name: cursor_set
-- How far a channel was read, in the transaction that stores what was read.
INSERT INTO cursors (channel, account, token) VALUES (:channel, :account, :token)
ON CONFLICT (channel, account) DO UPDATE SET token = excluded.token;

-- name: entry_insert
-- Something arrived; nothing happens if it did before.
INSERT INTO inbox (session_id, generation, kind, source, external_id, sender, body, during_turn,
                   accepted_by, received_ms, changed_ms, state, reason, account)
VALUES (:session_id, :generation, :kind, :source, :external_id, :sender, :body, :during_turn,
        :accepted_by, :now, :now, :state, :reason, :account)
ON CONFLICT (source, account, external_id) DO NOTHING;

-- name: entries_of_strangers_forget
-- Only the newest messages of people who may not use the gateway are kept.
DELETE FROM inbox WHERE entry_id IN (
    SELECT entry_id FROM inbox INDEXED BY inbox_of_strangers WHERE reason = 'not-allowed'
    ORDER BY entry_id DESC LIMIT -1 OFFSET :kept);

-- name: entry_by_key
-- What was stored for a platform's id.
SELECT entry_id, state, body, session_id FROM inbox
WHERE source = :source AND account = :account AND external_id = :external_id;

-- name: entry_state
-- What became of an entry.
SELECT state FROM inbox WHERE entry_id = :entry_id;

-- name: entry_reword
-- Its sender has put it in other words, before anybody heard it.
UPDATE inbox SET body = :body
WHERE entry_id = :entry_id AND state = 'waiting' AND sender = :sender;

-- name: turn_group
-- What the newest message of a turn was sent as a part of.
SELECT json_extract(body, '$.group') FROM inbox
WHERE turn_id = :turn_id AND kind = 'message' ORDER BY entry_id DESC LIMIT 1;

-- name: entry_attach
-- It belongs to a turn now.
UPDATE inbox SET state = :after, turn_id = :turn_id, changed_ms = :now
WHERE entry_id = :entry_id AND state = 'waiting';

-- name: entry_drop
-- It will not be taken up, for a reason.
UPDATE inbox SET state = :after, reason = :reason, changed_ms = :now
WHERE entry_id = :entry_id AND state = 'waiting';

-- name: queued_notice_abandon
-- That a message waits is not said any more, unless it is being said right now.
UPDATE outbox SET state = :after, reason = :reason, settled_ms = :now, changed_ms = :now
WHERE session_id = :session_id AND settled_ms IS NULL AND state IN ('draft', 'owed', 'held')
    AND cause = 'queued:' || :entry_id;

-- name: entry_picked_before
-- Whether this very choice has answered the question already.
SELECT 1 FROM steps JOIN inbox ON inbox.turn_id = steps.turn_id
WHERE steps.seq = :question AND steps.session_id = :session_id AND inbox.state = 'attached'
    AND inbox.body ->> 'question' = :question AND inbox.body ->> 'choice_id' = :choice_id LIMIT 1;

-- name: entries_waiting
-- What waits in a session, oldest first.
SELECT entry_id, session_id, generation, kind, source, external_id, sender, body, during_turn,
       accepted_by, received_ms
FROM inbox WHERE session_id = :session_id AND state = 'waiting' ORDER BY entry_id;

-- name: entries_of_turn
-- What a turn has heard, oldest first.
SELECT entry_id, session_id, generation, kind, source, external_id, sender, body, during_turn,
       accepted_by, received_ms
FROM inbox WHERE turn_id = :turn_id ORDER BY entry_id;

-- name: entries_waiting_count
-- How much waits in a session.
SELECT count(*) FROM inbox WHERE session_id = :session_id AND state = 'waiting';

-- name: messages_waiting_count
-- How many messages of people wait in a session.
SELECT count(*) FROM inbox
WHERE session_id = :session_id AND state = 'waiting' AND kind = 'message';

-- name: entry_newest_before_move
-- The newest entry that there was when a turn came into its state; 0 if there was none. What brought
-- a turn back that was set aside came before it was resumed, and still counts as newer.
SELECT newest_entry FROM turns WHERE turn_id = :turn_id;

-- name: entries_cut
-- A cut drops what waited before it; the end of a process is still told to the person.
UPDATE inbox SET state = :after, reason = 'cut', changed_ms = :now
WHERE session_id = :session_id AND state = 'waiting'
    AND NOT (kind = 'report' AND json_extract(body, '$.kind') = 'exit');

-- name: ends_known
-- The ends of processes that a turn knows of: reports that are in it, and reports that were dropped
-- because its calls have shown the end. One that is in another turn is for that one to tell.
SELECT entry_id, session_id, generation, kind, source, external_id, sender, body, during_turn,
       accepted_by, received_ms
FROM inbox INDEXED BY inbox_by_turn
WHERE turn_id = :turn_id AND kind = 'report' AND json_extract(body, '$.kind') = 'exit'
UNION ALL
SELECT i.entry_id, i.session_id, i.generation, i.kind, i.source, i.external_id, i.sender, i.body,
       i.during_turn, i.accepted_by, i.received_ms
FROM processes AS p CROSS JOIN inbox AS i
    ON i.source = 'process' AND i.account = '' AND i.external_id = p.process_id || ':end'
WHERE p.session_id = :session_id AND p.exit_read_by IN
        (SELECT call_id FROM calls WHERE calls.turn_id = :turn_id)
    AND (i.state = 'waiting' OR i.reason = 'already-read')
ORDER BY 1;

-- name: entry_handle
-- The person was told of it; no turn is.
UPDATE inbox SET state = :after, changed_ms = :now
WHERE entry_id = :entry_id AND state = 'waiting';

-- name: reports_waiting_of
-- Whether a report of the process was not heard yet.
SELECT 1 FROM inbox WHERE session_id = :session_id AND state = 'waiting' AND kind = 'report'
    AND json_extract(body, '$.process_id') = :process_id LIMIT 1;

-- name: reports_lately
-- How much was reported since a moment, in the session and in all. What a clock that was set back
-- has left in the future does not count.
SELECT coalesce(sum(session_id = :session_id), 0), count(*) FROM inbox INDEXED BY inbox_reports
WHERE kind = 'report' AND received_ms > :since_ms AND received_ms <= :now AND state <> 'dropped'
    AND json_extract(body, '$.kind') <> 'exit';

-- ── turns ──────────────────────────────────────────────────────────────────────────────────────

-- name: turn_insert
-- A turn begins; its first step follows in the same transaction.
INSERT INTO turns (session_id, generation, state, event, person, anchor, first_seq, opened_ms,
                   progressed_ms, changed_ms, newest_entry)
VALUES (:session_id, :generation, 'queued', 'opened', :person, :anchor,
        :first_seq, :now, :now, :now, (SELECT coalesce(max(entry_id), 0) FROM inbox));

-- name: turn_by_id
-- A turn.
SELECT turn_id, session_id, generation, state, event, rule, reason, epoch, worker_id, recoveries,
       crash_streak, person, anchor, first_seq, question_seq, opened_ms, progressed_ms, worked_ms,
       changed_ms, closed_ms, model_tries, not_before_ms, model_waited_ms, model_failure
FROM turns WHERE turn_id = :turn_id;

-- name: turn_open
-- The open turn of a session.
SELECT turn_id, session_id, generation, state, event, rule, reason, epoch, worker_id, recoveries,
       crash_streak, person, anchor, first_seq, question_seq, opened_ms, progressed_ms, worked_ms,
       changed_ms, closed_ms, model_tries, not_before_ms, model_waited_ms, model_failure
FROM turns WHERE session_id = :session_id
    AND state IN ('queued', 'running', 'waiting', 'suspended');

-- name: turn_newest
-- The newest turns of a session.
SELECT turn_id, session_id, generation, state, event, rule, reason, epoch, worker_id, recoveries,
       crash_streak, person, anchor, first_seq, question_seq, opened_ms, progressed_ms, worked_ms,
       changed_ms, closed_ms, model_tries, not_before_ms, model_waited_ms, model_failure
FROM turns WHERE session_id = :session_id ORDER BY turn_id DESC LIMIT :limit;

-- name: turn_to_retry
-- The turns of what a session may still see that failed, were dropped, or made room for what waited
-- behind them, and that nobody has asked again, newest first. Only the newest turns are looked at.
SELECT turn_id, session_id, generation, state, event, rule, reason, epoch, worker_id, recoveries,
       crash_streak, person, anchor, first_seq, question_seq, opened_ms, progressed_ms, worked_ms,
       changed_ms, closed_ms, model_tries, not_before_ms, model_waited_ms, model_failure
FROM (SELECT * FROM turns WHERE session_id = :session_id ORDER BY turn_id DESC LIMIT 20) AS ended
WHERE first_seq >= :context_from
    AND (state = 'failed' OR event = 'dropped' OR rule IN ('policy-behind', 'not-allowed-behind'))
    AND NOT EXISTS (SELECT 1 FROM inbox WHERE source = 'retry' AND account = ''
                    AND external_id = CAST(ended.turn_id AS TEXT))
ORDER BY turn_id DESC;

-- name: turn_senders
-- Who else has a message in a turn.
SELECT DISTINCT sender FROM inbox
WHERE turn_id = :turn_id AND kind = 'message' AND sender <> :person;

-- name: turns_held_up
-- Turns that nobody looks at after a boot and that a message of a person waits behind, newest first.
SELECT t.turn_id, t.person, s.channel
FROM turns AS t INDEXED BY turns_alive JOIN sessions AS s USING (session_id)
WHERE t.closed_ms IS NULL AND t.state IN ('queued', 'waiting')
    AND EXISTS (SELECT 1 FROM inbox AS i WHERE i.session_id = t.session_id AND i.state = 'waiting'
                AND i.kind = 'message')
ORDER BY t.turn_id DESC;

-- name: turns_due
-- Queued turns that may be claimed, recovered ones or the others; those nobody has tried first. A
-- boot that has ended claims nothing. One column says whether another person has a message in it.
SELECT t.turn_id, t.session_id, t.generation, t.epoch, t.opened_ms, t.person, s.channel,
       EXISTS (SELECT 1 FROM inbox AS i WHERE i.turn_id = t.turn_id AND i.kind = 'message'
               AND i.sender <> t.person),
       s.lock_key, s.node
FROM turns AS t INDEXED BY turns_alive JOIN sessions AS s USING (session_id)
WHERE t.closed_ms IS NULL AND t.state = 'queued'
    AND (t.recoveries > 0 AND t.event <> 'replied') = :recovered AND t.not_before_ms <= :now
    AND NOT EXISTS (SELECT 1 FROM workers AS w WHERE w.worker_id = :worker_id
                    AND w.ended_ms IS NOT NULL)
ORDER BY t.not_before_ms, t.turn_id LIMIT :limit;

-- name: turns_next_due
-- When the next queued turn is due, of the recovered ones or of the others.
SELECT not_before_ms FROM turns INDEXED BY turns_alive
WHERE closed_ms IS NULL AND state = 'queued'
    AND (recoveries > 0 AND event <> 'replied') = :recovered
ORDER BY not_before_ms LIMIT 1;

-- name: turn_claim
-- One worker takes it; every write of an earlier epoch is worthless from here on.
UPDATE turns SET state = :after, event = :event, rule = NULL, reason = NULL,
    epoch = epoch + 1, worker_id = :worker_id, changed_ms = :now
WHERE turn_id = :turn_id AND state = 'queued' AND epoch = :epoch;

-- name: turn_progress
-- The claim is valid, and the turn moved.
UPDATE turns SET progressed_ms = :now, crash_streak = 0, model_tries = 0, model_waited_ms = 0,
    model_failure = NULL
WHERE turn_id = :turn_id AND epoch = :epoch AND state = 'running';

-- name: turn_tried_model
-- The claim is valid, and the model did not answer.
UPDATE turns SET model_tries = model_tries + 1, model_failure = :reason,
    model_waited_ms = CASE WHEN model_tries = 0 THEN 0 ELSE model_waited_ms + :spent_ms END
WHERE turn_id = :turn_id AND epoch = :epoch AND state = 'running'
RETURNING model_tries, model_waited_ms;

-- name: turn_model_answered
-- The claim is valid, and the model answered something that is no progress.
UPDATE turns SET model_tries = 0, model_waited_ms = 0, model_failure = NULL
WHERE turn_id = :turn_id AND epoch = :epoch AND state = 'running';

-- name: turn_waits_for_model
-- The claim is valid, and it is given back until a wait for the model is over.
UPDATE turns SET model_waited_ms = model_waited_ms + :wait_ms
WHERE turn_id = :turn_id AND epoch = :epoch AND state = 'running';

-- name: turns_running_count
-- How many turns are claimed.
SELECT count(*) FROM turns INDEXED BY turns_alive WHERE closed_ms IS NULL AND state = 'running';

-- name: command_not_started
-- Whether a turn has a command that may run (it needs no approval, or has it) and was not started.
SELECT 1 FROM calls
WHERE turn_id = :turn_id AND effect = 'resumable' AND started_ms IS NULL AND skipped_ms IS NULL
    AND (need = 'nobody' OR approved_ms IS NOT NULL) LIMIT 1;

-- name: turn_held
-- Whether a claim is valid.
SELECT 1 FROM turns WHERE turn_id = :turn_id AND epoch = :epoch AND state = 'running';

-- name: turn_move
-- From one state to another.
UPDATE turns SET state = :after, event = :event, rule = :rule, reason = :reason, worker_id = NULL,
    question_seq = :question_seq, expires_ms = :expires_ms, closed_ms = :closed_ms,
    changed_ms = :now, not_before_ms = :not_before_ms, wait_ms = max(0, :not_before_ms - :now),
    progressed_ms = CASE WHEN :progressed = 1 THEN :now ELSE progressed_ms END,
    worked_ms = max(worked_ms, :worked_ms),
    recoveries = CASE WHEN :renewed = 1 THEN 0 ELSE recoveries + :recovered END,
    crash_streak = CASE WHEN :progressed = 1 OR :renewed = 1 THEN 0 ELSE crash_streak + :died END,
    -- A person who does not want to wait takes nothing off the patience that was not waited for.
    model_waited_ms = CASE WHEN :renewed = 1 THEN max(0, model_waited_ms - max(0, not_before_ms - :now))
                           ELSE model_waited_ms END
WHERE turn_id = :turn_id AND state = :before AND epoch = :epoch;

-- name: turn_settle
-- Nothing of an answered turn is left to deliver.
UPDATE turns SET state = :after, event = :event, rule = NULL, closed_ms = :now,
    changed_ms = :now
WHERE turn_id = :turn_id AND state = 'answered'
    AND NOT EXISTS (SELECT 1 FROM outbox WHERE session_id = :session_id AND settled_ms IS NULL
                    AND turn_id = :turn_id);

-- name: turn_speaks
-- The newest words of a person in a turn: theirs is the anchor of what is said about it.
UPDATE turns SET person = :person, anchor = :anchor WHERE turn_id = :turn_id;

-- name: turns_unowned
-- Running under a worker that is gone: newest first.
SELECT turn_id FROM turns
WHERE closed_ms IS NULL AND state = 'running'
    AND EXISTS (SELECT 1 FROM workers AS owner
                WHERE owner.worker_id = turns.worker_id AND owner.ended_ms IS NOT NULL)
ORDER BY turn_id DESC;

-- name: turns_to_judge
-- The same, and those that were set aside.
SELECT turn_id FROM turns
WHERE closed_ms IS NULL AND state IN ('running', 'suspended')
    AND (worker_id IS NULL
         OR EXISTS (SELECT 1 FROM workers AS owner
                    WHERE owner.worker_id = turns.worker_id AND owner.ended_ms IS NOT NULL))
ORDER BY turn_id DESC;

-- name: turns_expired
-- Questions that nobody answered in time.
SELECT t.turn_id, s.lock_key FROM turns AS t JOIN sessions AS s USING (session_id)
WHERE t.closed_ms IS NULL AND t.state = 'waiting' AND t.expires_ms <= :now LIMIT :limit;

-- name: turns_alive_by_state
-- How many turns are not closed, by state.
SELECT state, count(*) FROM turns WHERE closed_ms IS NULL GROUP BY state;

-- name: count_turns_left
-- How many turns are running under a worker that is gone.
SELECT count(*) FROM turns INDEXED BY turns_alive
JOIN workers AS owner ON owner.worker_id = turns.worker_id
WHERE turns.closed_ms IS NULL AND turns.state = 'running' AND owner.ended_ms IS NOT NULL;

-- name: turns_left
-- Turns that somebody worked on and nobody works on now, the oldest first.
SELECT turn_id, session_id, generation, state, event, rule, reason, epoch, worker_id, recoveries,
       crash_streak, person, anchor, first_seq, question_seq, opened_ms, progressed_ms, worked_ms,
       changed_ms, closed_ms, model_tries, not_before_ms, model_waited_ms, model_failure
FROM turns INDEXED BY turns_alive
WHERE closed_ms IS NULL AND state IN ('queued', 'running') AND epoch > 0
    AND (worker_id IS NULL
         OR EXISTS (SELECT 1 FROM workers AS owner
                    WHERE owner.worker_id = turns.worker_id AND owner.ended_ms IS NOT NULL))
ORDER BY turn_id LIMIT :limit;

-- ── steps and calls ────────────────────────────────────────────────────────────────────────────

-- name: step_insert
-- One more line of the transcript.
INSERT INTO steps (seq, session_id, turn_id, epoch, kind, cause, body, at_ms)
VALUES (:seq, :session_id, :turn_id, :epoch, :kind, :cause, :body, :now);

-- name: step_next
-- The number of the next step, where one connection writes; asked by `Transaction.next_step` alone.
SELECT coalesce(max(seq), 0) + 1 FROM steps;

-- name: step_by_seq
-- One step.
SELECT seq, turn_id, epoch, at_ms, kind, body FROM steps WHERE seq = :seq;

-- name: steps_of_turn
-- The steps of a turn, in order.
SELECT seq, turn_id, epoch, at_ms, kind, body FROM steps
WHERE session_id = :session_id AND seq >= :first_seq AND turn_id = :turn_id ORDER BY seq;

-- name: steps_before
-- What a session said before a turn, newest first.
SELECT seq, turn_id, epoch, at_ms, kind, body FROM steps
WHERE session_id = :session_id AND seq >= :context_from AND seq < :first_seq
ORDER BY seq DESC LIMIT :limit;

-- name: summary_newest
-- The newest summary of what a session may still see.
SELECT seq, turn_id, epoch, at_ms, kind, body FROM steps
WHERE session_id = :session_id AND kind = 'summary' AND seq >= :context_from
ORDER BY seq DESC LIMIT 1;

-- name: steps_count
-- How many steps a turn has.
SELECT count(*) FROM steps
WHERE session_id = :session_id AND seq >= :first_seq AND turn_id = :turn_id;

-- name: step_last_kind
-- What a turn's transcript ends with, ignoring what the gateway said itself.
SELECT kind FROM steps
WHERE session_id = :session_id AND seq >= :first_seq AND turn_id = :turn_id
    AND kind NOT IN ('note', 'question', 'summary') ORDER BY seq DESC LIMIT 1;

-- name: turn_request
-- The newest step of a turn that a request to the model answers to: the same for all tries of one.
SELECT coalesce(max(seq), 0) FROM steps
WHERE session_id = :session_id AND seq >= :first_seq AND turn_id = :turn_id
    AND kind IN ('message', 'reply', 'result');

-- name: note_exists
-- Whether an epoch already has its recovery note.
SELECT 1 FROM steps WHERE turn_id = :turn_id AND epoch = :epoch AND kind = 'note'
    AND cause = 'recovery';

-- name: question_newest
-- The question that a turn asked last.
SELECT body FROM steps WHERE session_id = :session_id AND seq >= :first_seq AND turn_id = :turn_id
    AND kind = 'question' ORDER BY seq DESC LIMIT 1;

-- name: turn_went_on
-- When a turn went on after its newest question: by an answer, an approval or a step. No row, if it
-- has asked nothing.
SELECT min(coalesce((SELECT min(at_ms) FROM steps WHERE session_id = :session_id AND seq > asked.seq
                     AND turn_id = :turn_id), 9223372036854775807),
           coalesce((SELECT min(approved_ms) FROM calls WHERE turn_id = :turn_id
                     AND approved_ms > asked.at_ms), 9223372036854775807),
           coalesce((SELECT min(changed_ms) FROM inbox WHERE turn_id = :turn_id
                     AND changed_ms > asked.at_ms), (SELECT changed_ms FROM turns
                                                     WHERE turn_id = :turn_id)))
FROM (SELECT seq, at_ms FROM steps WHERE session_id = :session_id AND seq >= :first_seq
      AND turn_id = :turn_id AND kind = 'question' ORDER BY seq DESC LIMIT 1) AS asked;

-- name: call_insert
-- A call was proposed; it has certainly not run.
INSERT INTO calls (turn_id, call_id, place, tool, arguments, effect, need, provider_id, args_hash)
VALUES (:turn_id, :call_id, :place, :tool, :arguments, :effect, :need, :provider_id, :args_hash);

-- name: call_start
-- It is about to run, under a valid claim.
UPDATE calls SET started_ms = :now
WHERE turn_id = :turn_id AND call_id = :call_id AND started_ms IS NULL AND skipped_ms IS NULL
    AND EXISTS (SELECT 1 FROM turns WHERE turn_id = :turn_id AND epoch = :epoch
                AND state = 'running');

-- name: call_was_unsettled
-- The same call was made before in this turn, and nobody knows what it did, or the gateway died while
-- it had just begun; a person who approved this one has decided otherwise.
SELECT 1 FROM calls AS this JOIN calls AS earlier
    ON earlier.turn_id = this.turn_id AND earlier.args_hash = this.args_hash
WHERE this.turn_id = :turn_id AND this.call_id = :call_id AND this.approved_ms IS NULL
    AND earlier.call_id <> this.call_id AND earlier.effect IN ('once', 'resumable')
    AND (earlier.outcome = 'unknown' OR earlier.died_ms - earlier.started_ms < :quiet_ms)
LIMIT 1;

-- name: call_ask
-- The call is the question itself: asking is what it does. One that wants approval stays proposed.
UPDATE calls SET started_ms = :now
WHERE turn_id = :turn_id AND call_id = :call_id AND started_ms IS NULL AND need = 'answer';

-- name: call_finish
-- It has its result: it ran to an end, or it will never run.
UPDATE calls SET finished_ms = CASE WHEN started_ms IS NOT NULL THEN :now END,
    skipped_ms = CASE WHEN started_ms IS NULL THEN :now END, outcome = :outcome
WHERE turn_id = :turn_id AND call_id = :call_id AND finished_ms IS NULL AND skipped_ms IS NULL;

-- name: call_died
-- The gateway died while it ran.
UPDATE calls SET died_ms = :died_ms
WHERE turn_id = :turn_id AND started_ms IS NOT NULL AND finished_ms IS NULL;

-- name: call_approve
-- A person allowed it, once.
UPDATE calls SET approved_by = :person, approved_ms = :now
WHERE turn_id = :turn_id AND call_id = :call_id AND started_ms IS NULL AND approved_ms IS NULL;

-- name: calls_of_turn
-- All calls of a turn, in order.
SELECT call_id, tool, arguments, effect, need, provider_id, started_ms, died_ms, finished_ms,
       skipped_ms, approved_by, approved_ms
FROM calls WHERE turn_id = :turn_id ORDER BY place;

-- name: calls_begun
-- What ran for a turn, oldest first, and how it ended. A question to a person is no such call.
SELECT tool, arguments, coalesce(outcome, 'unknown') FROM calls
WHERE turn_id = :turn_id AND started_ms IS NOT NULL AND need <> 'answer'
ORDER BY place LIMIT :limit;

-- name: calls_unresolved
-- Calls without a result, in order.
SELECT call_id, tool, arguments, effect, need, provider_id, started_ms, died_ms, finished_ms,
       skipped_ms, approved_by, approved_ms
FROM calls WHERE turn_id = :turn_id AND finished_ms IS NULL AND skipped_ms IS NULL ORDER BY place;

-- name: calls_unresolved_count
-- How many calls have no result.
SELECT count(*) FROM calls WHERE turn_id = :turn_id AND finished_ms IS NULL
    AND skipped_ms IS NULL;

-- ── outbox ─────────────────────────────────────────────────────────────────────────────────────

-- name: delivery_insert
-- Something is owed to a person.
INSERT INTO outbox (session_id, turn_id, cause, part, parts, text, choices, question, anchor, file,
                    state, created_ms, changed_ms, aged_from_ms)
VALUES (:session_id, :turn_id, :cause, :part, :parts, :text, :choices, :question, :anchor, :file,
        'owed', :now, :now, :now);

-- name: delivery_by_cause
-- Whether something was ever owed for this cause.
SELECT 1 FROM outbox WHERE session_id = :session_id AND cause = :cause LIMIT 1;

-- name: deliveries_of_cause
-- The parts of what is said for a cause, and whether a file comes with one.
SELECT text, state, file IS NOT NULL FROM outbox
WHERE session_id = :session_id AND cause = :cause ORDER BY part;

-- name: words_of_turn
-- What is said for a turn, other than what was taken back.
SELECT text FROM outbox WHERE turn_id = :turn_id AND state <> 'abandoned';

-- name: delivery_head
-- The oldest unsettled delivery of a session, with where it goes. One that is held does not hold up
-- what is said since.
SELECT o.delivery_id, o.session_id, o.turn_id, o.cause, o.part, o.parts, o.text, o.choices,
       o.question, o.anchor, o.attempts, o.created_ms, o.ambiguous, o.labelled, o.state,
       o.not_before_ms, o.worker_id, s.channel, s.chat, s.thread, o.file, o.aged_from_ms,
       o.tried_by, o.unsure, o.strikes, o.wait_ms
FROM outbox AS o JOIN sessions AS s USING (session_id)
WHERE o.session_id = :session_id AND o.settled_ms IS NULL AND o.state <> 'held'
ORDER BY o.delivery_id LIMIT 1;

-- name: delivery_overtaking
-- The oldest reply to a command that is due, in a session whose oldest delivery has to wait.
SELECT o.delivery_id, o.session_id, o.turn_id, o.cause, o.part, o.parts, o.text, o.choices,
       o.question, o.anchor, o.attempts, o.created_ms, o.ambiguous, o.labelled, o.state,
       o.not_before_ms, o.worker_id, s.channel, s.chat, s.thread, o.file, o.aged_from_ms,
       o.tried_by, o.unsure, o.strikes, o.wait_ms
FROM outbox AS o JOIN sessions AS s USING (session_id)
WHERE o.session_id = :session_id AND o.settled_ms IS NULL AND o.state = 'owed' AND o.ambiguous = 0
    AND o.not_before_ms <= :now AND o.cause GLOB 'command:*'
ORDER BY o.delivery_id LIMIT 1;

-- name: delivery_send
-- It is about to be sent: until it is settled, nobody knows whether it arrived.
UPDATE outbox SET state = :after, worker_id = :worker_id, attempts = attempts + 1,
    ambiguous = :ambiguous, changed_ms = :now, tried_by = :worker_id,
    tried_seq = CASE attempts WHEN 0 THEN (SELECT coalesce(max(seq), 0) FROM journal)
                              ELSE tried_seq END,
    sent_seq = CASE attempts WHEN 0 THEN (SELECT coalesce(max(seq), 0) FROM journal)
                             ELSE sent_seq END
WHERE delivery_id = :delivery_id AND state IN ('owed', 'sending');

-- name: delivery_settle
-- How it ended.
UPDATE outbox SET state = :after, worker_id = NULL, platform_id = :platform_id, reason = :reason,
    settled_ms = :now, changed_ms = :now, ambiguous = max(ambiguous, :may_be_there),
    settled_seq = (SELECT coalesce(max(seq), 0) FROM journal)
WHERE delivery_id = :delivery_id AND state = :before AND worker_id = :worker_id;

-- name: delivery_give_up
-- It ends before it is tried again.
UPDATE outbox SET state = :after, worker_id = NULL, reason = :reason, settled_ms = :now,
    changed_ms = :now
WHERE delivery_id = :delivery_id AND state IN ('owed', 'sending');

-- name: delivery_postpone
-- Owed again, later; or held.
UPDATE outbox SET state = :after, worker_id = NULL, not_before_ms = :not_before_ms,
    wait_ms = :wait_ms, ambiguous = :ambiguous, reason = :reason, changed_ms = :now,
    unsure = unsure + :unsure, strikes = strikes + :strike,
    tried_seq = (SELECT coalesce(max(seq), 0) FROM journal)
WHERE delivery_id = :delivery_id AND state = :before AND worker_id = :worker_id;

-- name: channel_accepted_lately
-- Whether the channel of a delivery accepted another one since the last attempt. The newest lines
-- are looked at.
SELECT 1 FROM journal AS j JOIN sessions AS s ON s.session_id = j.session_id
WHERE j.seq > (SELECT tried_seq FROM outbox WHERE delivery_id = :delivery_id)
    AND j.seq > (SELECT max(seq) FROM journal) - :looked_at
    AND j.subject = 'delivery' AND j.event = 'delivered' AND s.channel = :channel LIMIT 1;

-- name: deliveries_hasten
-- The channel is back: what was provably not sent is due now. What is of unknown outcome keeps its
-- time.
UPDATE outbox SET not_before_ms = 0, wait_ms = 0
WHERE settled_ms IS NULL AND not_before_ms > 0 AND state = 'owed' AND ambiguous = 0
    AND (SELECT channel FROM sessions WHERE session_id = outbox.session_id) = :channel;

-- name: notice_open
-- The notice of a chat that tells of lost deliveries, while it has certainly not been sent.
SELECT o.delivery_id FROM sessions AS s JOIN outbox AS o ON o.session_id = s.session_id
WHERE s.channel = :channel AND s.chat = :chat AND o.settled_ms IS NULL AND o.state = 'owed'
    AND o.ambiguous = 0 AND o.labelled = 0 AND o.cause GLOB 'undelivered:*' LIMIT 1;

-- name: notice_add
-- A notice tells of one more delivery.
INSERT INTO undelivered (notice_id, delivery_id) VALUES (:notice_id, :delivery_id);

-- name: notice_deliveries
-- What a notice tells of.
SELECT delivery_id FROM undelivered WHERE notice_id = :notice_id ORDER BY delivery_id;

-- name: notice_reword
-- A notice that has not been sent gets other words.
UPDATE outbox SET text = :text WHERE delivery_id = :notice_id AND settled_ms IS NULL;

-- name: quiet_set
-- The platform wants quiet in the chat of a session.
INSERT INTO quiet (channel, chat, until_ms, wait_ms)
SELECT channel, chat, :now + :wait_ms, :wait_ms FROM sessions WHERE session_id = :session_id
ON CONFLICT (channel, chat) DO UPDATE SET until_ms = max(until_ms, excluded.until_ms),
    wait_ms = max(wait_ms, excluded.wait_ms);

-- name: quiet_forget
-- Nobody has to be left in peace on a channel.
DELETE FROM quiet WHERE channel = :channel;

-- name: quiet_until
-- Until when a chat is to be left in peace.
SELECT until_ms FROM quiet WHERE channel = :channel AND chat = :chat;

-- name: chat_known
-- The newest messages of ours in a chat that have an id, and whether they came before the first send
-- of a delivery. The order of the commits tells that: clocks are set. Of one from before a move
-- nobody can tell: it may have been sent among other numbers.
SELECT o.platform_id, s.moved_ms < :begun_ms AND (o.settled_seq < :sent_seq
    OR (o.session_id = :session_id AND o.delivery_id < :delivery_id))
FROM outbox AS o JOIN sessions AS s USING (session_id)
WHERE s.channel = :channel AND s.chat = :chat AND o.platform_id IS NOT NULL
    AND o.settled_ms > s.moved_ms ORDER BY o.delivery_id DESC LIMIT :limit;

-- name: chat_unsure_count
-- Other sends to a chat that may have arrived, and of which nobody knows the id. What was sent
-- again with a label may be there twice; the first copy matters unless the second came before.
SELECT count(*) FROM outbox
WHERE session_id IN (SELECT session_id FROM sessions WHERE channel = :channel AND chat = :chat)
    AND delivery_id <> :delivery_id AND (settled_ms IS NULL OR changed_ms > :since_ms)
    AND (platform_id IS NULL AND (state = 'sending' OR ambiguous = 1 OR labelled = 1)
        OR labelled = 1 AND (settled_seq >= :sent_seq OR settled_ms > :begun_ms)
            AND NOT (session_id = :session_id AND delivery_id < :delivery_id));

-- name: delivery_begun
-- When it was first owed, by the older of two clocks, and the journal line behind which it was first
-- sent.
SELECT min(created_ms, aged_from_ms), sent_seq FROM outbox WHERE delivery_id = :delivery_id;

-- name: delivery_label
-- Whether it says from now on that it may be a duplicate.
UPDATE outbox SET labelled = :labelled
WHERE delivery_id = :delivery_id AND state = 'sending' AND worker_id = :worker_id;

-- name: deliveries_abandon
-- A turn was ended: what it still owed is not said, except what may already be on its way.
UPDATE outbox SET state = :after, reason = :reason, settled_ms = :now, changed_ms = :now
WHERE session_id = :session_id AND settled_ms IS NULL AND turn_id = :turn_id
    AND state IN ('draft', 'owed', 'held') AND ambiguous = 0 AND labelled = 0;

-- name: answers_unsent
-- How many parts of a session's answers have certainly not been sent, and how many may have been.
SELECT coalesce(sum(o.state = 'owed' AND o.ambiguous = 0 AND o.labelled = 0), 0),
       coalesce(sum(o.state <> 'owed' OR o.ambiguous = 1 OR o.labelled = 1), 0)
FROM outbox AS o JOIN turns AS t ON t.turn_id = o.turn_id
WHERE o.session_id = :session_id AND o.settled_ms IS NULL AND t.state = 'answered';

-- name: turns_answered
-- The turns of a session whose answers are on their way.
SELECT DISTINCT o.turn_id FROM outbox AS o JOIN turns AS t ON t.turn_id = o.turn_id
WHERE o.session_id = :session_id AND o.settled_ms IS NULL AND t.state = 'answered';

-- name: delivery_hasten
-- What is owed is due now, whatever it waited for.
-- Whoever sends on what may have arrived means it: the person is told that they may see it twice.
UPDATE outbox SET not_before_ms = 0, wait_ms = 0, labelled = max(labelled, ambiguous), ambiguous = 0,
    strikes = 0, reason = NULL, changed_ms = :now
WHERE delivery_id = :delivery_id AND state = 'owed';

-- name: deliveries_release
-- What is held, one or all, is owed again and due now; what may have arrived before is labelled.
UPDATE outbox SET state = :after, labelled = max(labelled, ambiguous), ambiguous = 0, strikes = 0,
    reason = NULL, changed_ms = :now
WHERE settled_ms IS NULL AND state = 'held'
    AND (:delivery_id IS NULL OR delivery_id = :delivery_id);

-- name: outbox_hold
-- Nothing that is owed goes out by itself any more: it may have arrived since.
UPDATE outbox SET state = :after, worker_id = NULL, not_before_ms = 0, wait_ms = 0, ambiguous = 1,
    reason = :reason
WHERE settled_ms IS NULL AND state IN ('owed', 'sending', 'held');

-- name: delivery_again
-- What was rejected or abandoned is owed once more; the row that ended stays as it is.
INSERT INTO outbox (session_id, turn_id, cause, part, parts, text, choices, question, anchor, file,
                    state, created_ms, changed_ms, aged_from_ms)
SELECT session_id, turn_id, 'retry:' || delivery_id, 1, 1, text, choices, question,
       CASE WHEN outbox.changed_ms > moved_ms THEN anchor ELSE '' END, file, 'owed', :now, :now, :now
FROM outbox JOIN sessions USING (session_id)
WHERE delivery_id = :delivery_id AND state IN ('rejected', 'abandoned')
ON CONFLICT (session_id, cause, part) DO NOTHING;

-- name: delivery_retried
-- The delivery that repeats one.
SELECT again.delivery_id FROM outbox AS old JOIN outbox AS again
    ON again.session_id = old.session_id AND again.cause = 'retry:' || old.delivery_id
    AND again.part = 1
WHERE old.delivery_id = :delivery_id;

-- name: delivery_drop
-- What is owed is not said, unless a worker is saying it right now.
UPDATE outbox SET state = :after, worker_id = NULL, reason = :reason, settled_ms = :now,
    changed_ms = :now
WHERE delivery_id = :delivery_id AND state IN ('draft', 'owed', 'sending', 'held')
    AND (worker_id IS NULL
         OR EXISTS (SELECT 1 FROM workers AS owner
                    WHERE owner.worker_id = outbox.worker_id AND owner.ended_ms IS NOT NULL))
RETURNING session_id, turn_id;

-- name: progress_newest
-- What was last said about how a turn goes.
SELECT cause, outbox.created_ms, settled_ms,
       CASE WHEN settled_ms > moved_ms THEN platform_id END
FROM outbox JOIN sessions USING (session_id)
WHERE session_id = :session_id AND cause >= 'progress:' || :turn_id || ':'
    AND cause < 'progress:' || :turn_id || ';'
ORDER BY delivery_id DESC LIMIT 1;

-- name: progress_abandon
-- A turn is not worked on any more: that it is must not be said after it.
UPDATE outbox SET state = :after, reason = 'the work is over', settled_ms = :now,
                  changed_ms = :now
WHERE session_id = (SELECT session_id FROM turns WHERE turn_id = :turn_id) AND settled_ms IS NULL
    AND turn_id = :turn_id AND state IN ('draft', 'owed', 'held') AND cause LIKE 'progress:%';

-- name: deliveries_move
-- The chat moved to where a session is already: what is owed is said there.
UPDATE OR IGNORE outbox SET session_id = (
    SELECT there.session_id FROM sessions AS here
    JOIN sessions AS there USING (channel, thread)
    WHERE here.session_id = :session_id AND there.chat = :chat)
WHERE session_id = :session_id AND settled_ms IS NULL;

-- name: deliveries_with_file
-- Files that are still owed, and those that people fetch from us, as long as their delivery is there.
SELECT o.file FROM outbox AS o INDEXED BY outbox_files JOIN sessions AS s USING (session_id)
WHERE o.file IS NOT NULL
    AND (o.settled_ms IS NULL OR o.state = 'delivered' AND s.channel GLOB 'web:*');

-- name: delivery_file
-- The file that a delivery brought to a chat.
SELECT o.file FROM outbox AS o JOIN sessions AS s USING (session_id)
WHERE o.delivery_id = :delivery_id AND o.file IS NOT NULL AND o.state = 'delivered'
    AND s.channel = :channel AND s.chat = :chat;

-- name: deliveries_due_all
-- Sessions to which something is owed: what is next, when it is due, whether it waits for its
-- channel, and when the first reply to a command is due, which may overtake it.
WITH owed AS (
    SELECT session_id, max(delivery_id) AS newest, min(delivery_id) AS head,
           min(CASE WHEN cause GLOB 'command:*' AND ambiguous = 0 THEN not_before_ms END) AS reply_ms
    FROM outbox INDEXED BY outbox_unsettled
    WHERE settled_ms IS NULL AND state NOT IN ('draft', 'held')
    GROUP BY session_id
)
SELECT owed.newest, owed.session_id, s.channel, s.chat, s.thread,
       max(iif(o.state = 'sending', 0, o.not_before_ms), coalesce(q.until_ms, 0)),
       o.ambiguous = 1 OR o.state = 'sending' OR o.cause GLOB 'undelivered:*',
       max(owed.reply_ms, coalesce(q.until_ms, 0))
FROM owed JOIN outbox AS o ON o.delivery_id = owed.head
JOIN sessions AS s ON s.session_id = owed.session_id
LEFT JOIN quiet AS q ON q.channel = s.channel AND q.chat = s.chat;

-- name: deliveries_due_new
-- Sessions to which something is owed that came after a delivery.
SELECT max(o.delivery_id), o.session_id, s.channel, s.chat, s.thread, 0, 0, NULL
FROM outbox AS o JOIN sessions AS s USING (session_id)
WHERE o.delivery_id > :after AND o.settled_ms IS NULL AND o.state NOT IN ('draft', 'held')
GROUP BY o.session_id;

-- name: deliveries_unsettled_count
-- How much is owed to a session.
SELECT count(*) FROM outbox WHERE session_id = :session_id AND settled_ms IS NULL;

-- ── processes ──────────────────────────────────────────────────────────────────────────────────

-- name: process_insert
-- A process is about to be started for a call; a call has only one.
INSERT INTO processes (session_id, generation, turn_id, call_id, foreground, command, workdir,
                       state, started_ms, node, home)
VALUES (:session_id, :generation, :turn_id, :call_id, :foreground, :command, :workdir, 'starting',
        :now, :node, :home)
ON CONFLICT (turn_id, call_id) DO NOTHING;

-- name: process_born
-- It runs; what it is known by.
UPDATE processes SET state = :after, pid = :pid, birth = :birth
WHERE process_id = :process_id AND state = 'starting';

-- name: process_ended
-- How it ended, once.
UPDATE processes SET state = :after, exit_code = :exit_code, reason = :reason,
    ended_ms = :ended_ms
WHERE process_id = :process_id AND state IN ('starting', 'running');

-- name: process_ask_end
-- Somebody wants it ended.
UPDATE processes SET end_asked_ms = :now
WHERE process_id = :process_id AND ended_ms IS NULL AND end_asked_ms IS NULL;

-- name: process_ask_remains
-- Somebody wants ended what may be left of a lost one.
UPDATE processes SET remains_asked_ms = :now WHERE process_id = :process_id AND state = 'lost';

-- name: process_remains_ended
-- Nothing is left of it that was to be ended.
UPDATE processes SET remains_asked_ms = NULL WHERE process_id = :process_id;

-- name: processes_with_remains
-- Lost ones of which something may be left that is to be ended.
SELECT process_id FROM processes INDEXED BY processes_with_remains
WHERE remains_asked_ms IS NOT NULL ORDER BY process_id;

-- name: process_exit_read
-- The model was shown how it ended.
UPDATE processes SET exit_read_by = :by
WHERE process_id = :process_id AND ended_ms IS NOT NULL AND exit_read_by IS NULL;

-- name: watchers_disarm_of
-- Nothing more is said about a process.
UPDATE watchers SET state = :after WHERE process_id = :process_id AND state = 'armed';

-- name: watchers_disarm_output
-- Nothing more is said about the output of a process.
UPDATE watchers SET state = :after
WHERE process_id = :process_id AND state = 'armed' AND kind IN ('match', 'every');

-- name: watchers_fire_of
-- The agent will hear how a process ended, by whoever looks at that.
UPDATE watchers SET state = :after, reports = reports + 1, reported_ms = :now
WHERE process_id = :process_id AND state = 'armed' AND kind IN ('exit', 'every');

-- name: watcher_insert
-- Something looks at a process from now on.
INSERT INTO watchers (process_id, kind, argument, state)
VALUES (:process_id, :kind, :argument, 'armed');

-- name: watcher_move
-- A watcher has examined more of the log, unless somebody else was faster.
UPDATE watchers SET state = :after, log_offset = :log_offset, reports = :reports, noisy = :noisy,
                    reported_ms = CASE WHEN :is_heard THEN :now ELSE reported_ms END
WHERE watcher_id = :watcher_id AND state = 'armed' AND log_offset = :old_offset
    AND reports = :old_reports;

-- name: watchers_of_process
-- What looks, or looked, at a process.
SELECT watcher_id, process_id, kind, argument, state, log_offset, reports, reported_ms, noisy
FROM watchers WHERE process_id = :process_id ORDER BY watcher_id;

-- name: watchers_of_output
-- What looks at the output of processes now.
SELECT watcher_id, process_id, kind, argument, state, log_offset, reports, reported_ms, noisy
FROM watchers INDEXED BY watchers_armed
WHERE state = 'armed' AND kind IN ('match', 'every') ORDER BY reported_ms, watcher_id;

-- name: process_turn_log_size
-- Matches below this belong to the turn that started the process.
UPDATE processes SET turn_log_size = :log_size
WHERE process_id = :process_id AND turn_id = :turn_id AND turn_log_size IS NULL;

-- name: processes_of_turn
-- The background processes that a turn has started and that something looks at.
SELECT process_id FROM processes
WHERE turn_id = :turn_id AND foreground = 0 ORDER BY process_id;

-- name: processes_outdated
-- Ended long ago, or one of too many; oldest first. Not while its call has no result, or what is
-- said about it was not heard, or is in a turn that may not tell it.
SELECT process_id FROM processes INDEXED BY processes_ended
WHERE ended_ms IS NOT NULL AND (ended_ms < :before_ms OR ended_ms <= coalesce(
    (SELECT ended_ms FROM processes INDEXED BY processes_ended WHERE ended_ms IS NOT NULL
     ORDER BY ended_ms DESC LIMIT 1 OFFSET :kept_max), -1))
    AND NOT EXISTS (SELECT 1 FROM calls WHERE calls.turn_id = processes.turn_id
                    AND calls.call_id = processes.call_id AND calls.finished_ms IS NULL
                    AND calls.started_ms IS NOT NULL)
    AND NOT EXISTS (SELECT 1 FROM inbox WHERE inbox.session_id = processes.session_id
                    AND inbox.state = 'waiting' AND inbox.kind = 'report'
                    AND json_extract(inbox.body, '$.process_id') = processes.process_id)
    AND NOT EXISTS (SELECT 1 FROM inbox JOIN turns USING (turn_id)
                    WHERE inbox.source = 'process' AND inbox.account = ''
                    AND inbox.external_id = processes.process_id || ':end'
                    AND turns.closed_ms IS NULL)
    AND NOT EXISTS (SELECT 1 FROM calls JOIN turns USING (turn_id)
                    WHERE turns.session_id = processes.session_id
                    AND turns.state IN ('queued', 'running', 'waiting', 'suspended')
                    AND calls.call_id = processes.exit_read_by)
    AND remains_asked_ms IS NULL
ORDER BY ended_ms LIMIT :limit;

-- name: watchers_delete_of
-- With its process.
DELETE FROM watchers WHERE process_id = :process_id;

-- name: process_delete
-- It ended long ago, and nobody asks any more.
DELETE FROM processes WHERE process_id = :process_id AND ended_ms IS NOT NULL;

-- name: process_by_id
-- A process.
SELECT process_id, session_id, generation, turn_id, call_id, foreground, command, workdir, state, pid,
       birth, exit_code, reason, started_ms, ended_ms, end_asked_ms, turn_log_size, exit_read_by
FROM processes WHERE process_id = :process_id;

-- name: process_by_call
-- The process of a call.
SELECT process_id, session_id, generation, turn_id, call_id, foreground, command, workdir, state, pid,
       birth, exit_code, reason, started_ms, ended_ms, end_asked_ms, turn_log_size, exit_read_by
FROM processes WHERE turn_id = :turn_id AND call_id = :call_id;

-- name: processes_of_session
-- The processes of a session, newest first.
SELECT process_id, session_id, generation, turn_id, call_id, foreground, command, workdir, state, pid,
       birth, exit_code, reason, started_ms, ended_ms, end_asked_ms, turn_log_size, exit_read_by
FROM processes WHERE session_id = :session_id ORDER BY process_id DESC LIMIT :limit;

-- name: processes_stranded
-- Begun for a turn that has closed since, and nobody knows whether they started.
SELECT process_id FROM processes INDEXED BY processes_alive
WHERE ended_ms IS NULL AND state = 'starting'
    AND turn_id IN (SELECT turn_id FROM turns WHERE closed_ms IS NOT NULL OR state = 'answered');

-- name: commands_running
-- Foreground commands that have no end, as far as we know, by their calls.
SELECT turn_id, call_id FROM processes INDEXED BY processes_alive
WHERE ended_ms IS NULL AND foreground = 1;

-- name: commands_running_count
-- How many of them there are.
SELECT count(*) FROM processes INDEXED BY processes_alive WHERE ended_ms IS NULL AND foreground = 1;

-- name: jobs_running_count
-- How many commands of a session run in the background.
SELECT count(*) FROM processes INDEXED BY processes_alive
WHERE ended_ms IS NULL AND session_id = :session_id AND foreground = 0;

-- name: processes_not_ended
-- Every process that has no end, as far as we know.
SELECT process_id, session_id, generation, turn_id, call_id, foreground, command, workdir, state, pid,
       birth, exit_code, reason, started_ms, ended_ms, end_asked_ms, turn_log_size, exit_read_by
FROM processes INDEXED BY processes_alive WHERE ended_ms IS NULL ORDER BY process_id;

-- ── views ──────────────────────────────────────────────────────────────────────────────────────

-- name: view_tables
-- How many tables the file has.
SELECT count(*) FROM sqlite_schema;

-- name: rows_by_table
-- How many rows each table of version 1 has: backups of every version have them.
SELECT 'people', count(*) FROM people UNION ALL
SELECT 'workers', count(*) FROM workers UNION ALL
SELECT 'sessions', count(*) FROM sessions UNION ALL
SELECT 'turns', count(*) FROM turns UNION ALL
SELECT 'inbox', count(*) FROM inbox UNION ALL
SELECT 'steps', count(*) FROM steps UNION ALL
SELECT 'calls', count(*) FROM calls UNION ALL
SELECT 'outbox', count(*) FROM outbox UNION ALL
SELECT 'undelivered', count(*) FROM undelivered UNION ALL
SELECT 'processes', count(*) FROM processes UNION ALL
SELECT 'watchers', count(*) FROM watchers UNION ALL
SELECT 'journal', count(*) FROM journal;

-- name: newest_process
-- The highest id that a process ever had here.
SELECT coalesce(max(process_id), 0) FROM processes;

-- name: count_unheard
-- How many turns were set aside where the person is not to be told, or cannot be.
SELECT count(*) FROM turns
WHERE closed_ms IS NULL AND state = 'suspended'
  AND rule IN ('person-not-allowed', 'channel-unknown');

-- name: count_held
-- How much is held until the operator decides.
SELECT count(*) FROM outbox WHERE settled_ms IS NULL AND state = 'held';

-- name: journal_newest_line
-- The newest line and when it was written.
SELECT seq, at_ms FROM journal ORDER BY seq DESC LIMIT 1;

-- name: worker_known
-- Whether a boot has its row, and not another one of the same number.
SELECT 1 FROM workers WHERE worker_id = :worker_id AND birth = :birth;

-- name: hold_insert
-- The outbox is held by a start; once for each cause.
INSERT INTO holds (cause, gap, begun_ms) VALUES (:cause, :gap, :now) ON CONFLICT (cause) DO NOTHING;

-- name: gap_open
-- What the operator is told of a database that went back, until it is settled.
SELECT gap FROM holds WHERE gap IS NOT NULL AND settled_ms IS NULL ORDER BY hold_id DESC LIMIT 1;

-- name: gaps_settle
-- Nothing is held any more: the operator has decided about all of it.
UPDATE holds SET settled_ms = :now
WHERE gap IS NOT NULL AND settled_ms IS NULL AND NOT EXISTS (
    SELECT 1 FROM outbox INDEXED BY outbox_unsettled
    WHERE settled_ms IS NULL AND state = 'held');

-- name: tally_begin
-- The journal line with which a boot began; looked for from the newest on.
SELECT seq FROM journal WHERE subject = 'worker' AND number = :worker_id AND event = 'started'
ORDER BY seq DESC LIMIT 1;

-- name: tally_lines
-- What happened after a line, counted; reasons only where they are labels.
SELECT j.subject, j.event, j.after,
       CASE j.subject WHEN 'message' THEN j.reason WHEN 'turn' THEN j.rule END,
       s.channel, count(*)
FROM journal AS j LEFT JOIN sessions AS s ON s.session_id = j.session_id
WHERE j.seq > :after AND j.seq <= :newest
GROUP BY 1, 2, 3, 4, 5;

-- name: tally_times
-- How long turns took that ended after a line, and calls, and people waited for their answers: how
-- many up to each bound, and how long together. NULL is above all bounds.
WITH ended AS (
    SELECT j.after, s.channel, t.turn_id, t.opened_ms, t.closed_ms
    FROM journal AS j
    JOIN turns AS t ON t.turn_id = j.number
    JOIN sessions AS s ON s.session_id = t.session_id
    WHERE j.seq > :after AND j.seq <= :newest AND j.subject = 'turn'
      AND j.after IN ('done', 'stopped', 'failed')
), taken (what, label, ms) AS (
    SELECT 'turn', after, max(0, closed_ms - opened_ms) FROM ended
    UNION ALL
    SELECT 'message', channel, max(0, closed_ms - (
        SELECT min(received_ms) FROM inbox WHERE inbox.turn_id = ended.turn_id AND kind = 'message'))
    FROM ended WHERE after = 'done'
    UNION ALL
    SELECT 'tool', c.tool, max(0, c.finished_ms - c.started_ms)
    FROM journal AS j
    JOIN steps ON steps.seq = j.number
    JOIN calls AS c ON c.turn_id = j.turn_id
        AND c.call_id = json_extract(steps.body, '$.call_id')
    WHERE j.seq > :after AND j.seq <= :newest AND j.subject = 'step' AND j.event = 'result'
)
SELECT what, label, (SELECT min(value) FROM json_each(:bounds_ms) WHERE value >= ms),
       count(*), sum(ms)
FROM taken WHERE ms IS NOT NULL GROUP BY 1, 2, 3;

-- name: tally_calls
-- What became of calls whose results were stored after a line, and what people said to those they
-- were asked about.
SELECT c.tool, c.effect, c.outcome,
       CASE WHEN c.need <> 'approval' THEN NULL
            WHEN c.approved_ms IS NOT NULL THEN 'approved' ELSE 'denied' END,
       count(*)
FROM journal AS j
JOIN steps ON steps.seq = j.number
JOIN calls AS c ON c.turn_id = j.turn_id AND c.call_id = json_extract(steps.body, '$.call_id')
WHERE j.seq > :after AND j.seq <= :newest AND j.subject = 'step' AND j.event = 'result'
GROUP BY 1, 2, 3, 4;

-- name: tally_now
-- How much waits, is owed, is held and runs, and since when.
SELECT (SELECT min(received_ms) FROM inbox WHERE state = 'waiting'),
       (SELECT min(created_ms) FROM outbox INDEXED BY outbox_unsettled WHERE settled_ms IS NULL),
       (SELECT count(*) FROM outbox INDEXED BY outbox_unsettled
        WHERE settled_ms IS NULL AND state = 'held'),
       (SELECT count(*) FROM outbox INDEXED BY outbox_unsettled
        WHERE settled_ms IS NULL AND (ambiguous = 1 OR labelled = 1)),
       (SELECT count(*) FROM processes INDEXED BY processes_alive WHERE ended_ms IS NULL);

-- name: tally_boots
-- How boots ended that did not end by their own will.
SELECT ended_how, count(*) FROM workers WHERE ended_how IN ('killed', 'rebooted') GROUP BY ended_how;

-- name: count_waiting
-- How much waits in all inboxes.
SELECT count(*) FROM inbox WHERE state = 'waiting';

-- name: count_unsettled
-- How much is owed in all.
SELECT count(*) FROM outbox WHERE settled_ms IS NULL;

-- name: count_sessions
-- How many sessions there are.
SELECT coalesce(max(session_id), 0) FROM sessions;

-- name: view_sessions
-- The newest sessions, or those before one.
SELECT session_id, created_ms, changed_ms FROM sessions
WHERE session_id < :before ORDER BY session_id DESC LIMIT :limit;

-- name: view_session
-- When a session was made and last changed.
SELECT session_id, created_ms, changed_ms FROM sessions WHERE session_id = :session_id;

-- name: view_turns
-- The newest turns of all sessions, or those before one.
SELECT turn_id, session_id, generation, state, event, rule, reason, epoch, worker_id, recoveries,
       crash_streak, person, anchor, first_seq, question_seq, opened_ms, progressed_ms, worked_ms,
       changed_ms, closed_ms, model_tries, not_before_ms, model_waited_ms, model_failure
FROM turns WHERE turn_id < :before ORDER BY turn_id DESC LIMIT :limit;

-- name: view_turns_open
-- The same, of those that are not closed.
SELECT turn_id, session_id, generation, state, event, rule, reason, epoch, worker_id, recoveries,
       crash_streak, person, anchor, first_seq, question_seq, opened_ms, progressed_ms, worked_ms,
       changed_ms, closed_ms, model_tries, not_before_ms, model_waited_ms, model_failure
FROM turns INDEXED BY turns_alive WHERE closed_ms IS NULL AND turn_id < :before
ORDER BY turn_id DESC LIMIT :limit;

-- name: view_entries
-- The newest entries of all inboxes, or those before one.
SELECT entry_id, session_id, turn_id, kind, state, reason, source, external_id, sender, body,
       received_ms FROM inbox WHERE entry_id < :before ORDER BY entry_id DESC LIMIT :limit;

-- name: view_entries_open
-- The same, of those that wait.
SELECT entry_id, session_id, turn_id, kind, state, reason, source, external_id, sender, body,
       received_ms FROM inbox INDEXED BY inbox_waiting
WHERE state = 'waiting' AND entry_id < :before ORDER BY entry_id DESC LIMIT :limit;

-- name: view_deliveries
-- The newest deliveries to all sessions, or those before one.
SELECT delivery_id, session_id, turn_id, cause, part, parts, state, reason, attempts, platform_id,
       text, created_ms, settled_ms, not_before_ms
FROM outbox WHERE delivery_id < :before ORDER BY delivery_id DESC LIMIT :limit;

-- name: view_deliveries_open
-- The same, of those that are owed.
SELECT delivery_id, session_id, turn_id, cause, part, parts, state, reason, attempts, platform_id,
       text, created_ms, settled_ms, not_before_ms
FROM outbox INDEXED BY outbox_unsettled WHERE settled_ms IS NULL AND delivery_id < :before
ORDER BY delivery_id DESC LIMIT :limit;

-- name: view_deliveries_for
-- What was said about one entry itself: a command's reply, that it waits, that it was not taken.
SELECT delivery_id, session_id, turn_id, cause, part, parts, state, reason, attempts, platform_id,
       text, created_ms, settled_ms, not_before_ms
FROM outbox WHERE session_id = :session_id
    AND cause IN ('command:' || :entry_id, 'queued:' || :entry_id, 'refused:' || :entry_id,
                  'declined:' || :entry_id, 'report:' || :entry_id)
ORDER BY delivery_id;

-- name: view_calls_of_turn
-- The calls of a turn, and how they ended.
SELECT call_id, tool, effect, approved_by, started_ms, finished_ms, skipped_ms, outcome
FROM calls WHERE turn_id = :turn_id ORDER BY place;

-- name: turn_messages
-- What people said in a turn, oldest first.
SELECT body FROM steps WHERE session_id = :session_id AND seq >= :first_seq AND turn_id = :turn_id
    AND kind = 'message' ORDER BY seq LIMIT :limit;

-- name: turn_retried_by
-- The key of the words that a turn has asked again.
SELECT external_id FROM inbox WHERE turn_id = :turn_id AND source = 'retry' LIMIT 1;

-- name: view_turn_request
-- The words that opened a turn.
SELECT body FROM steps WHERE session_id = :session_id AND seq >= :first_seq AND turn_id = :turn_id
    AND kind = 'message' ORDER BY seq LIMIT 1;

-- name: turn_backlog_count
-- How many messages a turn answers that came before a boot; 0 for all others. The note behind them
-- is one of its first steps.
WITH begun AS (
    SELECT seq, kind, cause
    FROM (SELECT seq, turn_id, kind, cause FROM steps
          WHERE session_id = :session_id AND seq >= :first_seq ORDER BY seq LIMIT 40)
    WHERE turn_id = :turn_id)
SELECT count(*) FROM begun
WHERE kind = 'message' AND seq < (SELECT seq FROM begun WHERE kind = 'note' AND cause = 'backlog');

-- name: turn_first_report
-- What opened a turn that no person has opened.
SELECT body FROM steps WHERE session_id = :session_id AND seq >= :first_seq AND turn_id = :turn_id
    AND kind = 'note' AND cause GLOB 'entry:*' ORDER BY seq LIMIT 1;

-- name: view_processes
-- Background processes of all sessions: the running ones, then the newest that have ended.
SELECT process_id, session_id, generation, turn_id, call_id, foreground, command, workdir, state, pid,
       birth, exit_code, reason, started_ms, ended_ms, end_asked_ms, turn_log_size, exit_read_by
FROM processes WHERE foreground = 0
ORDER BY ended_ms IS NOT NULL, process_id DESC LIMIT :limit;

-- name: view_reports_of
-- What was said about a process.
SELECT entry_id, session_id, turn_id, kind, state, reason, source, external_id, sender, body,
       received_ms FROM inbox
WHERE source = 'process' AND account = '' AND external_id >= :first AND external_id < :behind
ORDER BY entry_id;

-- name: view_entry
-- A message.
SELECT entry_id, session_id, turn_id, kind, state, reason, source, external_id, sender, body,
       received_ms FROM inbox WHERE entry_id = :entry_id;

-- name: view_entry_by_external_id
-- A message by the platform's id of it, newest first where several channels or accounts use the
-- same. These are found one by one, so that the index answers however long the inbox is.
WITH RECURSIVE sources (source) AS (
    SELECT min(source) FROM inbox
    UNION ALL
    SELECT (SELECT min(source) FROM inbox WHERE source > sources.source) FROM sources
    WHERE sources.source IS NOT NULL
), named (source, account) AS (
    SELECT source, (SELECT min(account) FROM inbox WHERE source = sources.source) FROM sources
    WHERE sources.source IS NOT NULL
    UNION ALL
    SELECT source, (SELECT min(account) FROM inbox
                    WHERE source = named.source AND account > named.account)
    FROM named WHERE named.account IS NOT NULL
)
SELECT entry_id, session_id, turn_id, kind, state, reason, inbox.source, external_id, sender, body,
       received_ms
FROM named CROSS JOIN inbox ON inbox.source = named.source AND inbox.account = named.account
WHERE external_id = :external_id
ORDER BY entry_id DESC LIMIT 1;

-- name: view_entries_of_turn
-- The messages and reports of a turn.
SELECT entry_id, session_id, turn_id, kind, state, reason, source, external_id, sender, body,
       received_ms FROM inbox WHERE turn_id = :turn_id ORDER BY entry_id;

-- name: view_delivery
-- A delivery.
SELECT delivery_id, session_id, turn_id, cause, part, parts, state, reason, attempts, platform_id,
       text, created_ms, settled_ms, not_before_ms FROM outbox WHERE delivery_id = :delivery_id;

-- name: view_deliveries_of_turn
-- What a turn owes or owed.
SELECT delivery_id, session_id, turn_id, cause, part, parts, state, reason, attempts, platform_id,
       text, created_ms, settled_ms, not_before_ms
FROM outbox WHERE turn_id = :turn_id ORDER BY delivery_id;

-- name: view_journal_of_turn
-- What happened to a turn.
SELECT seq, at_ms, subject, number, event, before, after, rule, reason, session_id, turn_id,
       worker_id
FROM journal WHERE session_id = :session_id AND turn_id = :turn_id ORDER BY seq;

-- name: view_events
-- What happened in a chat after a journal line, with the words that belong to it.
SELECT j.seq, j.at_ms, j.subject, j.number, j.event, j.before, j.after, j.rule, j.reason,
       j.session_id, j.turn_id, j.worker_id, s.channel, s.chat, s.thread, st.kind, st.body,
       i.body, i.sender, o.cause, o.part, o.parts, o.text, o.choices, o.question, o.labelled,
       o.file
FROM journal AS j
JOIN sessions AS s ON s.session_id = j.session_id
LEFT JOIN steps AS st ON j.subject = 'step' AND st.seq = j.number
LEFT JOIN inbox AS i ON j.subject = 'message' AND i.entry_id = j.number
LEFT JOIN outbox AS o ON j.subject = 'delivery' AND o.delivery_id = j.number
WHERE j.session_id IN (SELECT session_id FROM sessions WHERE channel = :channel AND chat = :chat)
    AND j.seq > :after
ORDER BY j.seq LIMIT :limit;

-- name: view_last_event
-- The newest journal line of a chat, kept or not.
SELECT max(coalesce((SELECT max(seq) FROM journal WHERE session_id IN
               (SELECT session_id FROM sessions WHERE channel = :channel AND chat = :chat)), 0),
           coalesce((SELECT max(forgotten_seq) FROM sessions
                     WHERE channel = :channel AND chat = :chat), 0));

-- name: view_forgotten
-- The newest journal line of a chat that was deleted, and the first turn that has lines behind it.
SELECT coalesce(max(forgotten_seq), 0), coalesce((
    SELECT min(turn_id) FROM journal WHERE turn_id IS NOT NULL
        AND seq > (SELECT max(forgotten_seq) FROM sessions WHERE channel = :channel AND chat = :chat)
        AND session_id IN (SELECT session_id FROM sessions
                           WHERE channel = :channel AND chat = :chat)), 4611686018427387904)
FROM sessions WHERE channel = :channel AND chat = :chat;

-- name: view_said_before
-- What was said in a chat in turns before one: the newest first.
SELECT st.seq, st.kind, st.body, st.at_ms, st.turn_id, s.thread
FROM sessions AS s JOIN steps AS st ON st.session_id = s.session_id
WHERE s.channel = :channel AND s.chat = :chat AND st.kind IN ('message', 'answer')
    AND st.turn_id < :before_turn
ORDER BY st.seq DESC LIMIT :limit;

-- name: view_chats_touched
-- Chats of a channel in which something happened after a journal line.
SELECT DISTINCT s.chat FROM journal AS j JOIN sessions AS s ON s.session_id = j.session_id
WHERE j.seq > :after AND s.channel = :channel;

-- name: view_newest_line
-- The newest journal line of all.
SELECT coalesce(max(seq), 0) FROM journal;

-- name: view_place_before
-- The line just before the newest lines of a chat.
SELECT seq FROM journal
WHERE session_id IN (SELECT session_id FROM sessions WHERE channel = :channel AND chat = :chat)
ORDER BY seq DESC LIMIT 1 OFFSET :lines;

-- name: view_workers
-- The newest boots, or those before one.
SELECT worker_id, host, pid, birth, version, started_ms, heartbeat_ms, draining, ended_ms, ended_how,
       restart_by, found_dead, report
FROM workers WHERE worker_id < :before ORDER BY worker_id DESC LIMIT :limit;

-- name: view_journal
-- The newest lines of the journal, or those before one.
SELECT seq, at_ms, subject, number, event, before, after, rule, reason, session_id, turn_id,
       worker_id
FROM journal WHERE seq < :before ORDER BY seq DESC LIMIT :limit;

-- name: view_journal_decided
-- What recovery decided and what became of boots, among the newest lines or those before one.
SELECT seq, at_ms, subject, number, event, before, after, rule, reason, session_id, turn_id,
       worker_id
FROM journal
WHERE seq < :before AND seq > min(:before, (SELECT max(seq) FROM journal)) - :looked_at
    AND (rule IS NOT NULL OR subject = 'worker')
ORDER BY seq DESC LIMIT :limit;

-- name: view_turns_before
-- The newest turns of a session before one of them.
SELECT turn_id, session_id, generation, state, event, rule, reason, epoch, worker_id, recoveries,
       crash_streak, person, anchor, first_seq, question_seq, opened_ms, progressed_ms, worked_ms,
       changed_ms, closed_ms, model_tries, not_before_ms, model_waited_ms, model_failure
FROM turns WHERE session_id = :session_id AND turn_id < :before
ORDER BY turn_id DESC LIMIT :limit;

-- name: view_sessions_named
-- Sessions whose chat begins so. The channels are found one by one, so that the index answers
-- however many sessions there are.
WITH RECURSIVE channels (channel) AS (
    SELECT min(channel) FROM sessions
    UNION ALL
    SELECT (SELECT min(channel) FROM sessions WHERE channel > channels.channel) FROM channels
    WHERE channels.channel IS NOT NULL
)
SELECT s.session_id, s.created_ms, s.changed_ms FROM channels AS c JOIN sessions AS s
    ON s.channel = c.channel AND s.chat >= :chat AND s.chat < :chat || char(1114111)
ORDER BY s.channel, s.chat, s.thread LIMIT :limit;

-- name: view_sessions_touched
-- Sessions of a channel in which something happened lately, with when: the newest lines are looked at,
-- and for chats whose lines are gone the newest turns.
SELECT s.session_id, s.chat, s.thread, max(touched.at_ms), max(touched.seq) AS newest
FROM (SELECT session_id, at_ms, seq, 0 AS turn_id FROM journal
      WHERE seq > (SELECT max(seq) FROM journal) - :looked_at
      UNION ALL
      SELECT session_id, changed_ms, 0, turn_id FROM turns
      WHERE turn_id > (SELECT max(turn_id) FROM turns) - :looked_at) AS touched
JOIN sessions AS s ON s.session_id = touched.session_id
WHERE s.channel = :channel
GROUP BY s.session_id ORDER BY newest DESC, max(touched.turn_id) DESC LIMIT :limit;

-- name: view_turn_first
-- What a session began with.
SELECT turn_id, session_id, generation, state, event, rule, reason, epoch, worker_id, recoveries,
       crash_streak, person, anchor, first_seq, question_seq, opened_ms, progressed_ms, worked_ms,
       changed_ms, closed_ms, model_tries, not_before_ms, model_waited_ms, model_failure
FROM turns WHERE session_id = :session_id ORDER BY turn_id LIMIT 1;

-- name: view_turns_waiting
-- Turns that wait for an answer, and when their question expires.
SELECT turn_id, expires_ms FROM turns INDEXED BY turns_alive
WHERE closed_ms IS NULL AND state = 'waiting' ORDER BY turn_id LIMIT :limit;

-- name: view_steps_of_turn
-- The newest steps of a turn.
SELECT seq, kind, cause, body, at_ms FROM steps
WHERE session_id = :session_id AND seq >= :first_seq AND turn_id = :turn_id
ORDER BY seq DESC LIMIT :limit;

-- name: view_call_need
-- Whom a call waits for.
SELECT need FROM calls WHERE turn_id = :turn_id AND call_id = :call_id;

-- name: retention_line_window
-- Where the next lines to look at end.
SELECT max(seq) FROM (SELECT seq FROM journal WHERE seq > :after ORDER BY seq LIMIT :limit);

-- name: retention_lines
-- Lines that nobody needs any more: old, of turns that are closed as long, in sessions with nothing
-- open. Whether a channel works is judged by what it accepted since the last attempt of a delivery.
SELECT j.seq FROM journal AS j LEFT JOIN turns AS t ON t.turn_id = j.turn_id
WHERE j.seq > :after AND j.seq <= :upto AND j.seq < :boot_seq
    AND j.seq < (SELECT max(seq) FROM journal) AND j.at_ms < :before_ms
    AND (j.turn_id IS NULL OR t.closed_ms < :before_ms)
    AND NOT (j.event = 'delivered' AND j.seq > :tried_seq)
    AND NOT EXISTS (SELECT 1 FROM turns AS open INDEXED BY one_open_turn
                    WHERE open.session_id = j.session_id
                    AND open.state IN ('queued', 'running', 'waiting', 'suspended'))
    AND NOT EXISTS (SELECT 1 FROM inbox INDEXED BY inbox_waiting
                    WHERE inbox.session_id = j.session_id AND inbox.state = 'waiting')
    AND NOT EXISTS (SELECT 1 FROM outbox AS owed INDEXED BY outbox_unsettled
                    WHERE owed.session_id = j.session_id AND owed.settled_ms IS NULL)
    AND NOT EXISTS (SELECT 1 FROM processes INDEXED BY processes_alive
                    WHERE processes.session_id = j.session_id AND processes.ended_ms IS NULL)
ORDER BY j.seq;

-- name: retention_tried
-- The oldest end of an attempt of what is still owed and not held.
SELECT coalesce(min(tried_seq), 4611686018427387904) FROM outbox INDEXED BY outbox_unsettled
WHERE settled_ms IS NULL AND attempts > 0 AND state <> 'held';

-- name: retention_lines_still
-- Those of some lines whose sessions still have nothing open.
SELECT j.seq FROM json_each(:ids) AS each JOIN journal AS j ON j.seq = each.value
WHERE NOT EXISTS (SELECT 1 FROM turns AS open INDEXED BY one_open_turn
                    WHERE open.session_id = j.session_id
                    AND open.state IN ('queued', 'running', 'waiting', 'suspended'))
    AND NOT EXISTS (SELECT 1 FROM inbox INDEXED BY inbox_waiting
                    WHERE inbox.session_id = j.session_id AND inbox.state = 'waiting')
    AND NOT EXISTS (SELECT 1 FROM outbox AS owed INDEXED BY outbox_unsettled
                    WHERE owed.session_id = j.session_id AND owed.settled_ms IS NULL)
    AND NOT EXISTS (SELECT 1 FROM processes INDEXED BY processes_alive
                    WHERE processes.session_id = j.session_id AND processes.ended_ms IS NULL);

-- name: retention_mark
-- The sessions know up to where lines of theirs are gone.
UPDATE sessions SET forgotten_seq = max(forgotten_seq, gone.seq)
FROM (SELECT j.session_id, max(j.seq) AS seq
      FROM json_each(:ids) AS each JOIN journal AS j ON j.seq = each.value
      GROUP BY j.session_id) AS gone
WHERE sessions.session_id = gone.session_id;

-- name: retention_lines_delete
-- Lines are forgotten.
DELETE FROM journal WHERE seq IN (SELECT value FROM json_each(:ids));

-- name: retention_delivery_window
-- Where the next deliveries to look at end.
SELECT max(delivery_id) FROM
    (SELECT delivery_id FROM outbox WHERE delivery_id > :after ORDER BY delivery_id LIMIT :limit);

-- name: retention_deliveries
-- Deliveries that nobody needs any more. The newest with an id of the platform stays in each session:
-- what is sent next and gets no answer is looked for behind it.
WITH looked_at AS MATERIALIZED (
    SELECT o.delivery_id, o.session_id FROM outbox AS o LEFT JOIN turns AS t ON t.turn_id = o.turn_id
    WHERE o.delivery_id > :after AND o.delivery_id <= :upto AND o.settled_ms < :before_ms
        AND (o.turn_id IS NULL OR t.closed_ms < :before_ms)
        AND o.delivery_id < (SELECT max(delivery_id) FROM outbox)
        AND NOT EXISTS (SELECT 1 FROM turns AS open INDEXED BY one_open_turn
                        WHERE open.session_id = o.session_id
                        AND open.state IN ('queued', 'running', 'waiting', 'suspended'))
        AND NOT EXISTS (SELECT 1 FROM inbox INDEXED BY inbox_waiting
                        WHERE inbox.session_id = o.session_id AND inbox.state = 'waiting')
        AND NOT EXISTS (SELECT 1 FROM outbox AS owed INDEXED BY outbox_unsettled
                        WHERE owed.session_id = o.session_id AND owed.settled_ms IS NULL)
        AND NOT EXISTS (SELECT 1 FROM processes INDEXED BY processes_alive
                        WHERE processes.session_id = o.session_id AND processes.ended_ms IS NULL)
), kept AS MATERIALIZED (
    SELECT session_id, max(delivery_id) AS delivery_id FROM outbox
    WHERE session_id IN (SELECT session_id FROM looked_at) AND platform_id IS NOT NULL
    GROUP BY session_id
)
SELECT looked_at.delivery_id FROM looked_at LEFT JOIN kept USING (session_id)
WHERE kept.delivery_id IS NULL OR looked_at.delivery_id <> kept.delivery_id
ORDER BY looked_at.delivery_id;

-- name: retention_deliveries_still
-- Those of some deliveries whose sessions still have nothing open, and of which no notice tells that
-- stays.
SELECT o.delivery_id FROM json_each(:ids) AS each JOIN outbox AS o ON o.delivery_id = each.value
WHERE NOT EXISTS (SELECT 1 FROM turns AS open INDEXED BY one_open_turn
                    WHERE open.session_id = o.session_id
                    AND open.state IN ('queued', 'running', 'waiting', 'suspended'))
    AND NOT EXISTS (SELECT 1 FROM inbox INDEXED BY inbox_waiting
                    WHERE inbox.session_id = o.session_id AND inbox.state = 'waiting')
    AND NOT EXISTS (SELECT 1 FROM outbox AS owed INDEXED BY outbox_unsettled
                    WHERE owed.session_id = o.session_id AND owed.settled_ms IS NULL)
    AND NOT EXISTS (SELECT 1 FROM processes INDEXED BY processes_alive
                    WHERE processes.session_id = o.session_id AND processes.ended_ms IS NULL)
    AND NOT EXISTS (SELECT 1 FROM undelivered AS u WHERE u.delivery_id = o.delivery_id
                    AND u.notice_id NOT IN (SELECT value FROM json_each(:ids)));

-- name: retention_notices_delete
-- What notices told of that are forgotten.
DELETE FROM undelivered WHERE notice_id IN (SELECT value FROM json_each(:ids));

-- name: retention_deliveries_delete
-- Deliveries are forgotten.
DELETE FROM outbox WHERE delivery_id IN (SELECT value FROM json_each(:ids));

-- name: turns_in_flight
-- Turns that somebody waits for, the oldest first.
SELECT turn_id, session_id, anchor FROM turns INDEXED BY turns_alive
WHERE closed_ms IS NULL AND state IN ('queued', 'running') ORDER BY turn_id LIMIT :limit;
