-- Every statement of the kernel, by name. A conditional write that touches no row means a lost claim.

-- ── columns ────────────────────────────────────────────────────────────────────────────────────
-- The lists of columns that the decoders of the kernel expect, in their order (`{turn}` in a query).

-- columns: session
-- `Session`.
session_id, channel, chat, thread, generation, context_from, settings, person, aside;

-- columns: turn
-- `TurnRow`.
turn_id, session_id, generation, state, event, rule, reason, epoch, worker_id, recoveries,
crash_streak, person, anchor, first_seq, question_seq, opened_ms, progressed_ms, worked_ms,
changed_ms, closed_ms, model_tries, not_before_ms, model_waited_ms, model_failure;

-- columns: entry
-- `EntryRow`.
entry_id, session_id, generation, kind, source, external_id, sender, body, during_turn,
accepted_by, received_ms, state, turn_id, reason;

-- columns: step
-- `Step`.
seq, turn_id, epoch, at_ms, kind, body;

-- columns: call
-- `CallRecord`.
call_id, tool, arguments, effect, need, provider_id, started_ms, died_ms, finished_ms,
skipped_ms, approved_by, approved_ms, approved_seal;

-- columns: owed
-- `OwedRow`: a delivery `o` that is to be sent, with the route of its session `s`, the pause `q` of its chat and
-- the random part `k` of send keys.
o.delivery_id, o.session_id, o.turn_id, o.cause, o.part, o.parts, o.text, o.choices,
o.question, o.anchor, o.attempts, o.created_ms, o.ambiguous, o.labelled, o.state,
o.not_before_ms, o.worker_id, s.channel, s.chat, s.thread, o.file, o.aged_from_ms,
o.tried_by, o.unsure, o.strikes, o.wait_ms, o.literal, q.until_ms, k.random;

-- columns: delivery
-- `DeliveryView`: a delivery as an operator sees it.
delivery_id, session_id, turn_id, cause, part, parts, state, reason, attempts, platform_id,
text, created_ms, settled_ms, not_before_ms;

-- columns: process
-- `Process`.
process_id, session_id, generation, turn_id, call_id, foreground, command, workdir, state, pid,
birth, exit_code, reason, started_ms, ended_ms, end_asked_ms, turn_log_size, exit_read_by,
boundary, node, home, agent;

-- columns: agent_message
-- `AgentMessage`.
process_id, number, kind, turn_id, updates, begun, asked_ms, settled_ms, error, stop, tokens_in,
tokens_out, made_ms;

-- columns: watcher
-- `Watcher`.
watcher_id, process_id, kind, argument, state, log_offset, reports, reported_ms, noisy;

-- columns: worker
-- `Worker`.
worker_id, host, pid, birth, version, started_ms, heartbeat_ms, draining, ended_ms, ended_how,
restart_by, found_dead, report, node, home;

-- columns: schedule
-- `Schedule`.
schedule_id, session_id, person, name, kind, expression, zone, prompt, command, place, late,
late_ms, overlap, quiet, state, reason, revision, due_ms, again_of, tries, failures, alerted_ms,
created_by, created_ms, plain, own_session, thread_why;

-- columns: goal
-- `Goal`.
goal_id, session_id, generation, person, text, criteria, state, reason, rule, step, steps_max,
tokens, tokens_max, wait_process, wait_until_ms, judged_turn, revision, worker_id, epoch, tries,
unreadable, not_before_ms, created_ms, changed_ms;

-- columns: child
-- `Child`.
child_id, session_id, generation, turn_id, call_id, person, name, task, depth, state, own_session, how,
made_ms, begun_ms, ended_ms;
-- columns: memory
-- `MemoryEntry`.
memory_id, shelf, text, turn_id, born;

-- columns: memory_scope
-- `ScopeRow`.
scope_id, channel, kind, name, revision, erased_revision, changed_ms;

-- columns: line
-- `JournalLine`.
seq, at_ms, subject, number, event, before, after, rule, reason, session_id, turn_id,
worker_id;

-- ── workers ────────────────────────────────────────────────────────────────────────────────────

-- name: worker_insert
-- A new row for this boot.
INSERT INTO workers (host, pid, birth, version, started_ms, heartbeat_ms,
                     memory_group, group_kills, machine_kills, node, home, fingerprint)
VALUES (:host, :pid, :birth, :version, :now, :now, :memory_group, :group_kills, :machine_kills, :node,
        :home, :fingerprint);

-- name: worker_by_id
-- A boot.
SELECT {worker}
FROM workers WHERE worker_id = :worker_id;

-- name: worker_gone
-- Whether a worker has ended, so that any other worker may take what it held. Other queries repeat the
-- condition on `ended_ms`. Nothing else says that a worker is gone.
SELECT 1 FROM workers WHERE worker_id = :worker_id AND ended_ms IS NOT NULL;

-- name: worker_left
-- Whether a boot of a home has not ended.
SELECT 1 FROM workers WHERE ended_ms IS NULL AND home = :home LIMIT 1;

-- name: workers_mark_dead
-- Boots of a home that have no end get the end that the next owner of the home found. An unknown count
-- is NULL, and no comparison with NULL holds.
UPDATE workers SET ended_ms = heartbeat_ms,
    ended_how = CASE
        WHEN host = :host AND substr(birth, 1, instr(birth, '/')) <> :boot THEN 'rebooted'
        WHEN host = :host AND heartbeat_ms >= :soon_ms
             AND CASE WHEN memory_group = :memory_group THEN group_kills < :group_kills
                      ELSE machine_kills < :machine_kills END THEN 'memory'
        ELSE 'killed' END
WHERE ended_ms IS NULL AND home = :home;

-- name: worker_beat
-- A heartbeat. Returns whether a restart was requested.
UPDATE workers SET heartbeat_ms = :now, memory_group = :memory_group, group_kills = :group_kills,
                   machine_kills = :machine_kills
WHERE worker_id = :worker_id AND ended_ms IS NULL
RETURNING restart_by IS NOT NULL;

-- name: workers_alive
-- The other workers that have no end, with what changes when they give a sign of life. A store with several
-- nodes has the number of their last batch; here it is 0.
SELECT worker_id, node, heartbeat_ms, 0 FROM workers
WHERE ended_ms IS NULL AND worker_id <> :worker_id ORDER BY worker_id;

-- name: worker_bury
-- A worker is dead: it has given no sign since it was seen so.
UPDATE workers SET ended_ms = heartbeat_ms, ended_how = 'killed'
WHERE worker_id = :worker_id AND ended_ms IS NULL AND heartbeat_ms = :heartbeat_ms AND :batch = 0;

-- name: worker_died_over
-- How many turns a worker ran when another node found it dead. The boot breaker counts it.
UPDATE workers SET died_over = (
    SELECT count(*) FROM turns INDEXED BY turns_alive
    WHERE turns.closed_ms IS NULL AND turns.state = 'running' AND turns.worker_id = workers.worker_id)
WHERE worker_id = :worker_id;

-- name: home_beside
-- Another home with a worker that has no end.
SELECT 1 FROM workers INDEXED BY workers_not_ended WHERE ended_ms IS NULL AND home <> :home LIMIT 1;

-- name: node_taken
-- Whether a living worker of another home has this name of a node.
SELECT worker_id FROM workers
WHERE ended_ms IS NULL AND node = :node AND home <> :home ORDER BY worker_id LIMIT 1;

-- name: workers_living
-- All boots that have not ended.
SELECT {worker}
FROM workers INDEXED BY workers_not_ended WHERE ended_ms IS NULL ORDER BY worker_id;

-- name: worker_serves_beside
-- Whether another worker lives and does not drain.
SELECT 1 FROM workers INDEXED BY workers_not_ended
WHERE ended_ms IS NULL AND draining = 0 AND worker_id <> :worker_id LIMIT 1;

-- name: nodes_living
-- The boots that have not ended, with how many turns each works on, and how many processes it runs.
SELECT w.worker_id, w.node, w.version, w.started_ms, w.heartbeat_ms, w.draining, w.fingerprint,
       (SELECT count(*) FROM turns INDEXED BY turns_alive
        WHERE turns.closed_ms IS NULL AND turns.state = 'running' AND turns.worker_id = w.worker_id),
       (SELECT count(*) FROM processes INDEXED BY processes_alive
        WHERE processes.ended_ms IS NULL AND processes.home = w.home)
FROM workers AS w INDEXED BY workers_not_ended WHERE w.ended_ms IS NULL ORDER BY w.worker_id;

-- name: node_home
-- Which home the newest boot on a node had.
SELECT home FROM workers WHERE node = :node ORDER BY worker_id DESC LIMIT 1;

-- name: came_after_death
-- Whether what one worker accepted at a moment came after another one was dead: a later boot of the same
-- home accepted it, or it came after the last sign of life.
SELECT 1 FROM workers AS dead JOIN workers AS other ON other.worker_id = :by
WHERE dead.worker_id = :worker_id AND dead.ended_ms IS NOT NULL
    AND ((other.home = dead.home AND other.worker_id > dead.worker_id) OR dead.ended_ms < :received_ms);

-- name: worker_drain
-- A drain was requested.
UPDATE workers SET draining = 1 WHERE worker_id = :worker_id AND ended_ms IS NULL;

-- name: worker_found_dead
-- How many turns were running when this worker's predecessors died.
UPDATE workers SET found_dead = (
    SELECT count(*) FROM turns INDEXED BY turns_alive
    JOIN workers AS owner ON owner.worker_id = turns.worker_id
    WHERE turns.closed_ms IS NULL AND turns.state = 'running' AND owner.ended_ms IS NOT NULL
        AND owner.died_over = 0)
WHERE worker_id = :worker_id;

-- name: workers_unclean
-- The start times of the newest boots that found a dead turn.
SELECT started_ms FROM workers INDEXED BY workers_unclean WHERE found_dead > 0
ORDER BY worker_id DESC LIMIT :limit;

-- name: workers_dead
-- The last signs of life of the newest workers that another node found dead over a turn.
SELECT ended_ms FROM workers INDEXED BY workers_dead WHERE died_over > 0
ORDER BY ended_ms DESC LIMIT :limit;

-- name: worker_restart
-- A restart of this worker was requested.
UPDATE workers SET draining = 1, restart_by = coalesce(restart_by, :by)
WHERE worker_id = :worker_id AND ended_ms IS NULL;

-- name: worker_restarted_by
-- The worker whose restart was requested by this name.
SELECT {worker}
FROM workers INDEXED BY workers_restarted WHERE restart_by = :by ORDER BY worker_id DESC LIMIT 1;

-- name: worker_last_restart
-- Who requested the newest restart before this boot. Boots in between may have died early.
SELECT restart_by FROM workers
WHERE restart_by IS NOT NULL AND worker_id < :worker_id AND home = :home
ORDER BY worker_id DESC LIMIT 1;

-- name: worker_report
-- What this boot found and decided.
UPDATE workers SET report = :report WHERE worker_id = :worker_id;

-- name: sessions_at_work
-- Sessions with a turn that this worker runs.
SELECT session_id, anchor FROM turns INDEXED BY turns_alive
WHERE closed_ms IS NULL AND state = 'running' AND worker_id = :worker_id ORDER BY turn_id;

-- name: farewell_abandon
-- Abandon what a worker that is gone wanted to say about its own end or its running turn. One that was
-- being sent may have arrived, and must not be taken for another delivery that is looked for.
UPDATE outbox SET state = :after, worker_id = NULL, reason = 'the restart is over',
                  settled_ms = :now, changed_ms = :now,
                  ambiguous = CASE WHEN state = 'sending' THEN 1 ELSE ambiguous END
WHERE delivery_id = :delivery_id AND state IN ('draft', 'owed', 'sending', 'held');

-- name: farewells_of_the_gone
-- The rows for `farewell_abandon`: no living worker sends them, or said them of its end or its turn.
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
-- A queued turn is not claimed before a moment. Nothing else changes.
UPDATE turns SET not_before_ms = :not_before_ms, wait_ms = max(0, :not_before_ms - :now)
WHERE turn_id = :turn_id AND state = 'queued' AND not_before_ms < :not_before_ms;

-- name: waits_cap_turns
-- Turns whose wait has more left than its length: the clock was set back.
SELECT t.turn_id, s.lock_key FROM turns AS t JOIN sessions AS s USING (session_id)
WHERE t.closed_ms IS NULL AND t.state = 'queued'
    AND (t.recoveries > 0 AND t.event <> 'replied') IN (0, 1)
    AND t.not_before_ms > :now AND t.not_before_ms > :now + t.wait_ms;

-- name: wait_cap_turn
-- It waits for its length and no longer.
UPDATE turns SET not_before_ms = :now + wait_ms
WHERE turn_id = :turn_id AND state = 'queued' AND not_before_ms > :now + wait_ms;

-- name: waits_cap_outbox
-- The same for owed deliveries. A held delivery waits for no time.
SELECT o.delivery_id, s.lock_key FROM outbox AS o JOIN sessions AS s USING (session_id)
WHERE o.settled_ms IS NULL AND o.not_before_ms > 0 AND o.not_before_ms > :now
    AND o.not_before_ms > :now + o.wait_ms;

-- name: wait_cap_delivery
-- It waits for its length and no longer.
UPDATE outbox SET not_before_ms = :now + wait_ms
WHERE delivery_id = :delivery_id AND settled_ms IS NULL AND not_before_ms > :now + wait_ms;

-- name: waits_cap_quiet
-- The same for chats in a pause.
UPDATE quiet SET until_ms = :now + wait_ms WHERE until_ms > :now + wait_ms;

-- name: quiet_expire
-- Delete the pauses that are over.
DELETE FROM quiet WHERE until_ms <= :now;

-- name: ages_move_outbox
-- The wall clock jumped: keep the age of owed deliveries.
UPDATE outbox SET aged_from_ms = aged_from_ms + :jump_ms WHERE settled_ms IS NULL;

-- name: ages_move_questions
-- The same for questions that are open.
UPDATE turns SET expires_ms = expires_ms + :jump_ms
WHERE closed_ms IS NULL AND state = 'waiting' AND expires_ms IS NOT NULL;

-- name: ages_move_turns
-- The same for the idle time of turns that are not closed.
UPDATE turns SET progressed_ms = progressed_ms + :jump_ms, worked_ms = worked_ms + :jump_ms
WHERE closed_ms IS NULL;

-- name: ages_move_goals
-- The same for goals that have not ended. A clock that was set back makes no wait of theirs longer.
UPDATE goals SET changed_ms = changed_ms + :jump_ms, wait_until_ms = wait_until_ms + min(0, :jump_ms)
WHERE state NOT IN ('done', 'cleared');

-- name: ages_move_retries
-- The same for due times that are tried again after a wait.
UPDATE schedules SET due_ms = due_ms + :jump_ms WHERE due_ms IS NOT NULL AND again_of IS NOT NULL;

-- name: waits_cap_goals
-- No goal waits for a verdict longer than it was told to.
UPDATE goals SET not_before_ms = :now WHERE state = 'judging' AND not_before_ms > :now + 600000;

-- name: ages_move_beats
-- The same for the last heartbeat of boots without an end, and of boots that died over turns that
-- still need a decision.
UPDATE workers SET heartbeat_ms = heartbeat_ms + :jump_ms
WHERE ended_ms IS NULL OR worker_id IN
    (SELECT worker_id FROM turns WHERE closed_ms IS NULL AND state = 'running');

-- name: ages_move_browsers
-- The same for browsers that were let in: how long they are in, and when they were used.
UPDATE browsers SET made_ms = made_ms + :jump_ms, used_ms = used_ms + :jump_ms,
                    expires_ms = expires_ms + :jump_ms
WHERE revoked_ms IS NULL;

-- name: waits_cap_browsers
-- A browser that was let in or used in the future: the clock was set back. It is in for no longer than
-- one that is let in now.
UPDATE browsers SET expires_ms = min(expires_ms, :now + expires_ms - made_ms),
                    made_ms = min(made_ms, :now), used_ms = min(used_ms, :now)
WHERE revoked_ms IS NULL AND (made_ms > :now OR used_ms > :now);

-- name: worker_last_beat
-- The last heartbeat of the newest boot.
SELECT heartbeat_ms FROM workers ORDER BY worker_id DESC LIMIT 1;

-- name: worker_end
-- A boot ends. If it could not start, the next boot counts the dead turns that it found.
UPDATE workers SET ended_ms = :now, ended_how = :how, heartbeat_ms = :now,
                   found_dead = CASE WHEN :how = 'refused' THEN 0 ELSE found_dead END
WHERE worker_id = :worker_id AND ended_ms IS NULL;

-- name: worker_newest
-- The newest boots.
SELECT {worker}
FROM workers ORDER BY worker_id DESC LIMIT :limit;

-- name: worker_before
-- The newest boot before this one that served.
SELECT {worker}
FROM workers WHERE worker_id < :worker_id AND home = :home AND ended_how IS DISTINCT FROM 'refused'
ORDER BY worker_id DESC LIMIT 1;

-- name: boot_connected
-- When a boot first reached the platform of a session. For a channel without an account it is the start
-- of the boot: nothing is received before it.
SELECT coalesce((SELECT accounts.connected_ms FROM sessions JOIN accounts USING (channel)
                 WHERE sessions.session_id = :session_id AND accounts.connected_by = :worker_id),
                workers.started_ms)
FROM workers WHERE worker_id = :worker_id;

-- name: boot_began
-- When a boot began.
SELECT started_ms FROM workers WHERE worker_id = :worker_id;

-- name: worker_heartbeat
-- The last heartbeat of a boot.
SELECT heartbeat_ms FROM workers WHERE worker_id = :worker_id;

-- ── sessions ───────────────────────────────────────────────────────────────────────────────────

-- name: session_by_route
-- The conversation on a route.
SELECT {session} FROM sessions
WHERE channel = :channel AND chat = :chat AND thread = :thread AND aside = '';

-- name: session_aside
-- Where a schedule works on a route, beside the conversation.
SELECT {session} FROM sessions
WHERE channel = :channel AND chat = :chat AND thread = :thread AND aside = :aside;

-- name: session_aside_insert
-- A place for a schedule on the route of a conversation.
INSERT INTO sessions (channel, chat, thread, aside, person, created_ms, changed_ms, lock_key)
SELECT channel, chat, thread, :aside, person, :now, :now, lock_key FROM sessions
WHERE session_id = :session_id;

-- name: session_begins_anew
-- What comes now sees nothing of what was said there before.
UPDATE sessions SET context_from = max(context_from, :context_from), changed_ms = :now
WHERE session_id = :session_id AND aside <> '';

-- name: session_becomes_thread
-- A thread of ours has begun: the schedule works in it from now on. If people have begun to talk in it,
-- their conversation stays their own.
UPDATE sessions SET thread = :thread, changed_ms = :now,
    aside = CASE WHEN EXISTS (SELECT 1 FROM sessions AS there WHERE there.channel = sessions.channel
                              AND there.chat = sessions.chat AND there.thread = :thread
                              AND there.aside = '') THEN aside ELSE '' END
WHERE session_id = :session_id AND aside <> '' AND thread <> :thread;

-- name: asides_at_work
-- Where schedules and children of a conversation work now, or have something that waits.
SELECT a.session_id FROM sessions AS s
JOIN sessions AS a ON a.channel = s.channel AND a.chat = s.chat AND a.thread = s.thread
WHERE s.session_id = :session_id AND a.aside <> '' AND a.session_id <> s.session_id
    AND (EXISTS (SELECT 1 FROM turns AS t WHERE t.session_id = a.session_id
                 AND t.closed_ms IS NULL AND t.state <> 'answered')
         OR EXISTS (SELECT 1 FROM inbox AS i WHERE i.session_id = a.session_id AND i.state = 'waiting')
         OR EXISTS (SELECT 1 FROM children AS c WHERE c.session_id = a.session_id AND c.ended_ms IS NULL))
ORDER BY a.session_id;

-- name: child_session_insert
-- A place for a child on the route of its parent, with its key, beginning at its node.
INSERT INTO sessions (channel, chat, thread, aside, person, created_ms, changed_ms, lock_key, node, settings)
SELECT channel, chat, thread, :aside, person, :now, :now, lock_key, node, :settings FROM sessions
WHERE session_id = :session_id;

-- name: asides_of_chat
-- Where schedules work beside the conversations of a chat.
SELECT session_id FROM sessions WHERE channel = :channel AND chat = :chat AND aside <> '';

-- name: step_session
-- The session of a step.
SELECT session_id FROM steps WHERE seq = :seq;

-- name: aside_that_said
-- Where a schedule works that has sent a message of this id to the chat.
SELECT s.session_id FROM sessions AS s JOIN outbox AS o ON o.session_id = s.session_id
WHERE s.channel = :channel AND s.chat = :chat AND s.aside <> '' AND o.platform_id = :platform_id
LIMIT 1;

-- name: session_by_id
-- A session.
SELECT {session} FROM sessions
WHERE session_id = :session_id;

-- name: session_insert
-- A new session on a new route.
INSERT INTO sessions (channel, chat, thread, created_ms, changed_ms, lock_key)
VALUES (:channel, :chat, :thread, :now, :now, :lock_key);

-- name: session_key
-- The key of a session: a transaction that writes its rows holds it.
SELECT lock_key FROM sessions WHERE session_id = :session_id;

-- name: chat_key
-- The key of a chat that has sessions: that of the first one.
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
-- The key of the session in the chat that another session moves to, if there is one.
SELECT there.lock_key FROM sessions AS here JOIN sessions AS there USING (channel, thread, aside)
WHERE here.session_id = :session_id AND there.chat = :chat;

-- name: keys_of_channel
-- The keys of all chats of a channel.
SELECT DISTINCT lock_key FROM sessions WHERE channel = :channel ORDER BY lock_key;

-- name: keys_of_ages
-- The keys of all chats with rows that have an age.
SELECT lock_key FROM sessions
WHERE session_id IN (SELECT session_id FROM turns WHERE closed_ms IS NULL
                     UNION SELECT session_id FROM outbox WHERE settled_ms IS NULL
                     UNION SELECT session_id FROM agent_processes WHERE drained_ms IS NULL)
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
-- The keys of the chats of journal lines.
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

-- name: chat_mark_make
-- The marks of a session, if it has none yet.
INSERT INTO chat_marks (session_id) VALUES (:session_id) ON CONFLICT DO NOTHING;

-- name: chat_mark_title
-- The name of a chat.
UPDATE chat_marks SET title = :title WHERE session_id = :session_id;

-- name: chat_mark_pinned
-- Whether a chat is pinned, and since when.
UPDATE chat_marks SET pinned_ms = :at_ms WHERE session_id = :session_id;

-- name: chat_mark_archived
-- Whether a chat is archived, and since when.
UPDATE chat_marks SET archived_ms = :at_ms WHERE session_id = :session_id;

-- name: chat_mark_deleted
-- A chat was deleted.
UPDATE chat_marks SET deleted_ms = :now, pinned_ms = NULL, archived_ms = NULL, title = ''
WHERE session_id = :session_id;

-- name: view_chat_marks
-- What was set for a chat.
SELECT title, pinned_ms, archived_ms, deleted_ms FROM chat_marks WHERE session_id = :session_id;

-- name: view_sessions_pinned
-- Pinned sessions of a channel, and when each was last spoken in.
SELECT s.session_id, s.chat, s.thread,
    coalesce((SELECT max(changed_ms) FROM turns AS t WHERE t.session_id = s.session_id), s.created_ms)
FROM chat_marks AS m JOIN sessions AS s ON s.session_id = m.session_id
WHERE s.channel = :channel AND s.aside = '' AND (m.pinned_ms IS NOT NULL OR m.archived_ms IS NOT NULL)
ORDER BY s.session_id DESC LIMIT :limit;

-- name: sessions_of_channel
-- All sessions of a channel.
SELECT session_id FROM sessions WHERE channel = :channel;

-- name: sessions_rebound
-- The sessions of a channel get another account. The stored moment is after everything that the old
-- account sent, even if the clock was set back since.
UPDATE sessions SET moved_ms = max(:now, moved_ms,
    (SELECT coalesce(max(changed_ms), 0) FROM outbox WHERE session_id = sessions.session_id),
    (SELECT coalesce(max(changed_ms), 0) FROM turns WHERE session_id = sessions.session_id))
WHERE channel = :channel;

-- name: session_moved
-- Since when the platform's ids of a session are valid for its chat.
SELECT moved_ms FROM sessions WHERE session_id = :session_id;

-- name: session_move
-- Move a session to another chat, unless a session exists there.
UPDATE sessions SET chat = :chat, moved_ms = :now, changed_ms = :now
WHERE session_id = :session_id
    AND NOT EXISTS (SELECT 1 FROM sessions AS there WHERE there.channel = sessions.channel
                    AND there.chat = :chat AND there.thread = sessions.thread
                    AND there.aside = sessions.aside);

-- name: anchors_forget_turns
-- Forget the message ids of open turns: they are not valid in the new chat.
UPDATE turns SET anchor = ''
WHERE session_id = :session_id AND closed_ms IS NULL AND anchor <> '';

-- name: anchors_forget_outbox
-- The same for owed deliveries.
UPDATE outbox SET anchor = ''
WHERE session_id = :session_id AND settled_ms IS NULL AND anchor <> '';

-- name: anchors_forget_inbox
-- The same for what waits.
UPDATE inbox SET body = json_set(body, '$.anchor', '')
WHERE session_id = :session_id AND state = 'waiting';

-- name: session_processes
-- Background processes of a session: the running ones, then the newest that have ended.
SELECT process_id, command, state, started_ms, ended_ms, exit_code FROM processes
WHERE session_id = :session_id AND foreground = 0 AND agent = ''
ORDER BY ended_ms IS NOT NULL, process_id DESC LIMIT :limit;

-- name: processes_ask_end
-- Ask the turn's foreground processes to end; with `everything`, all of the session.
UPDATE processes SET end_asked_ms = :now
WHERE session_id = :session_id AND ended_ms IS NULL AND end_asked_ms IS NULL
    AND (:everything = 1 OR (foreground = 1 AND turn_id = :turn_id));

-- name: terminals_ask_end
-- Ask the commands that an agent has us run to end; those of one turn, or of any where it is 0.
UPDATE processes SET end_asked_ms = :now
WHERE session_id = :session_id AND ended_ms IS NULL AND end_asked_ms IS NULL
    AND agent <> '' AND substr(call_id, 1, length(:calls)) = :calls
    AND (:turn_id = 0 OR turn_id = :turn_id);

-- name: agents_ask_end
-- The database went back: ask all foreign agents to end, which may know more than the rows do.
UPDATE processes SET end_asked_ms = started_ms
WHERE ended_ms IS NULL AND end_asked_ms IS NULL
    AND process_id IN (SELECT process_id FROM agent_processes WHERE drained_ms IS NULL);

-- ── people ─────────────────────────────────────────────────────────────────────────────────────

-- name: person_role
-- The role of a person who is paired.
SELECT role FROM people WHERE channel = :channel AND person = :person AND revoked_ms IS NULL;

-- name: person_set_role
-- Give a person who is paired another role.
UPDATE people SET role = :role, role_ms = :now
WHERE channel = :channel AND person = :person AND revoked_ms IS NULL;

-- name: people_untold
-- The people who became members by an upgrade that no owner was told of.
SELECT channel, person, name FROM people WHERE role_ms IS NULL AND revoked_ms IS NULL
ORDER BY channel, person;

-- name: people_told
-- The owners are told of every role.
UPDATE people SET role_ms = :now WHERE role_ms IS NULL;

-- name: channels_with_owner
-- The channels with a paired owner.
SELECT DISTINCT channel FROM people WHERE role = 'owner' AND revoked_ms IS NULL;

-- name: sessions_private
-- The private chats, those of one person together, the main one first.
SELECT session_id, channel, person FROM sessions WHERE person <> '' AND aside = ''
ORDER BY channel, person, thread LIMIT :limit;

-- name: session_of_person
-- The session is the private chat of a person.
UPDATE sessions SET person = :person WHERE session_id = :session_id AND person <> :person;

-- name: people_all
-- All people who are paired, newest first.
SELECT channel, person, name, paired_ms, entry_id, role FROM people WHERE revoked_ms IS NULL
ORDER BY paired_ms DESC, channel, person LIMIT :limit;

-- name: person_insert
-- Pair a person; again with a new code, after the right was taken away.
INSERT INTO people (channel, person, name, entry_id, paired_ms, role, role_ms)
VALUES (:channel, :person, :name, :entry_id, :now, :role, :now)
ON CONFLICT (channel, person) DO UPDATE SET name = excluded.name, entry_id = excluded.entry_id,
    paired_ms = excluded.paired_ms, revoked_ms = NULL, role = excluded.role,
    role_ms = excluded.role_ms;

-- name: person_revoke
-- Take the right of a person away.
UPDATE people SET revoked_ms = :now
WHERE channel = :channel AND person = :person AND revoked_ms IS NULL;

-- name: turns_of_person
-- The turns on a channel that are not closed and have a message of a person, or run for that person.
SELECT {turn}
FROM turns INDEXED BY turns_alive
WHERE closed_ms IS NULL
    AND (person = :person OR EXISTS (SELECT 1 FROM inbox WHERE inbox.turn_id = turns.turn_id
                                     AND inbox.kind = 'message' AND inbox.sender = :person))
    AND session_id IN (SELECT session_id FROM sessions WHERE channel = :channel)
ORDER BY turn_id;

-- name: pairing_of
-- The pairing of a stranger.
SELECT p.channel, p.person, p.name, s.chat, p.offered_ms, p.expires_ms, p.code_hash IS NULL
FROM pairings AS p JOIN sessions AS s USING (session_id)
WHERE p.channel = :channel AND p.person = :person;

-- name: pairings_alive
-- Strangers with a valid code, and strangers who get none for a while; newest first.
SELECT p.channel, p.person, p.name, s.chat, p.offered_ms, p.expires_ms, p.code_hash IS NULL
FROM pairings AS p JOIN sessions AS s USING (session_id)
WHERE p.expires_ms > :now ORDER BY p.offered_ms DESC, p.channel, p.person LIMIT :limit;

-- name: pairings_good
-- Every valid code: a handful.
SELECT channel, person, name, session_id, entry_id, code_hash FROM pairings
WHERE code_hash IS NOT NULL AND expires_ms > :now;

-- name: pairings_good_count
-- How many codes of a channel are valid, after expired ones were deleted.
SELECT count(*) FROM pairings WHERE channel = :channel AND code_hash IS NOT NULL;

-- name: pairing_insert
-- A stranger gets a code.
INSERT INTO pairings (channel, person, name, session_id, entry_id, code_hash, offered_ms, expires_ms)
VALUES (:channel, :person, :name, :session_id, :entry_id, :code_hash, :now, :expires_ms);

-- name: pairing_forget
-- A code was used, and is no longer valid.
DELETE FROM pairings WHERE channel = :channel AND person = :person;

-- name: pairing_silence
-- A code is no longer valid, and its person gets no other before that moment.
UPDATE pairings SET code_hash = NULL, expires_ms = :expires_ms
WHERE channel = :channel AND person = :person;

-- name: pairings_guessed
-- A wrong guess counts against every valid code; too many make it invalid.
UPDATE pairings SET wrong = wrong + 1,
    code_hash = CASE WHEN wrong + 1 < :wrong_max THEN code_hash END
WHERE code_hash IS NOT NULL AND expires_ms > :now;

-- name: pairings_expire
-- Delete what has expired, and what would never expire because the clock was set back.
DELETE FROM pairings WHERE expires_ms <= :now OR expires_ms > :latest_ms;

-- ── inbox ──────────────────────────────────────────────────────────────────────────────────────

-- name: login_code_offer
-- A code that lets one browser in.
INSERT INTO login_codes (code_hash, expires_ms) VALUES (:code_hash, :expires_ms)
ON CONFLICT (code_hash) DO NOTHING;

-- name: login_codes_forget
-- Delete the codes that have expired, and the oldest beyond those that are kept.
DELETE FROM login_codes WHERE expires_ms <= :now OR code_hash NOT IN
    (SELECT code_hash FROM login_codes ORDER BY expires_ms DESC LIMIT :kept);

-- name: login_code_redeem
-- A code is good once.
DELETE FROM login_codes WHERE code_hash = :code_hash AND expires_ms > :now;

-- name: kept_file_put
-- A piece of a file that other nodes need.
INSERT INTO kept_files (path, part, content, kept_ms) VALUES (:path, :part, :content, :now)
ON CONFLICT (path, part) DO NOTHING;

-- name: kept_file_part
-- A piece of a file.
SELECT content FROM kept_files WHERE path = :path AND part = :part;

-- name: kept_file_forget
-- Delete a file.
DELETE FROM kept_files WHERE path = :path;

-- name: kept_files_old
-- Files that were kept before a moment.
SELECT path FROM kept_files WHERE part = -1 AND kept_ms < :before_ms ORDER BY path;

-- name: account_of
-- The account of a channel.
SELECT account FROM accounts WHERE channel = :channel;

-- name: account_set
-- Set the account of a channel.
INSERT INTO accounts (channel, account, bound_ms) VALUES (:channel, :account, :now)
ON CONFLICT (channel) DO UPDATE SET account = excluded.account, bound_ms = excluded.bound_ms;

-- name: account_take
-- A boot alone receives and sends as the account from now on, unless one that lives does.
UPDATE accounts SET owner = :worker_id, epoch = epoch + 1
WHERE channel = :channel AND (owner IS NULL OR owner = :worker_id
    OR EXISTS (SELECT 1 FROM workers AS w WHERE w.worker_id = accounts.owner AND w.ended_ms IS NOT NULL))
RETURNING epoch;

-- name: account_give_back
-- A boot does not receive and send as the account any more.
UPDATE accounts SET owner = NULL, epoch = epoch + 1
WHERE channel = :channel AND owner = :worker_id AND epoch = :epoch;

-- name: account_held
-- Whether a boot still has the account.
SELECT 1 FROM accounts WHERE channel = :channel AND owner = :worker_id AND epoch = :epoch;

-- name: account_owners
-- Which boots have which accounts.
SELECT a.channel, a.owner FROM accounts AS a JOIN workers AS w ON w.worker_id = a.owner
WHERE w.ended_ms IS NULL ORDER BY a.channel;

-- name: send_has_to_wait
-- Whether another boot that lives has the account of a chat, or sends something there.
SELECT 1 FROM accounts AS a JOIN workers AS w ON w.worker_id = a.owner
WHERE a.channel = :channel AND a.owner <> :worker_id AND w.ended_ms IS NULL
UNION ALL
SELECT 1 FROM sessions AS s JOIN outbox AS o INDEXED BY outbox_unsettled ON o.session_id = s.session_id
JOIN workers AS w ON w.worker_id = o.worker_id
WHERE s.channel = :channel AND s.chat = :chat AND o.settled_ms IS NULL AND o.state = 'sending'
    AND o.worker_id <> :worker_id AND w.ended_ms IS NULL
LIMIT 1;

-- name: account_connected
-- This boot connects as the account for the first time.
UPDATE accounts SET connected_by = :worker_id, connected_ms = :now
WHERE channel = :channel AND account = :account AND connected_by IS DISTINCT FROM :worker_id;

-- name: account_connects
-- Whether this boot has not connected as the account yet.
SELECT 1 FROM accounts
WHERE channel = :channel AND account = :account AND connected_by IS DISTINCT FROM :worker_id;

-- name: unclaimed_any
-- Whether a channel has rows without an account.
SELECT 1 FROM cursors WHERE channel = :channel AND account = ''
UNION ALL SELECT 1 FROM inbox WHERE source = :channel AND account = '' LIMIT 1;

-- name: entries_assign
-- Give messages without an account to this one.
UPDATE inbox SET account = :account WHERE source = :channel AND account = ''
    AND NOT EXISTS (SELECT 1 FROM inbox AS known WHERE known.source = inbox.source
                    AND known.account = :account AND known.external_id = inbox.external_id);

-- name: cursor_give_way
-- A cursor gives way to the one without an account, which is assigned next.
DELETE FROM cursors WHERE channel = :channel AND account = :account
    AND EXISTS (SELECT 1 FROM cursors AS found WHERE found.channel = :channel AND found.account = '');

-- name: cursor_assign
-- Give the cursor without an account to this one.
UPDATE cursors SET account = :account WHERE channel = :channel AND account = '';

-- name: cursor_get
-- The cursor of a channel for an account; without one, the cursor without an account.
SELECT token FROM cursors WHERE channel = :channel AND account IN (:account, '')
ORDER BY account DESC LIMIT 1;

-- name: cursor_set
-- Move the cursor of a channel, in the transaction that stores what was read.
INSERT INTO cursors (channel, account, token) VALUES (:channel, :account, :token)
ON CONFLICT (channel, account) DO UPDATE SET token = excluded.token;

-- name: watermark_set
-- Move the watermark of a chat, in the transaction that stores what was read.
INSERT INTO watermarks (channel, account, chat, token) VALUES (:channel, :account, :chat, :token)
ON CONFLICT (channel, account, chat) DO UPDATE SET token = excluded.token;

-- name: watermark_forget
-- A chat is not read any more.
DELETE FROM watermarks WHERE channel = :channel AND account = :account AND chat = :chat;

-- name: watermarks_of
-- How far each chat of an account was read.
SELECT chat, token FROM watermarks WHERE channel = :channel AND account = :account;

-- name: send_id_make
-- Make it, if there is none.
INSERT INTO send_ids (one, random) VALUES (1, :random) ON CONFLICT (one) DO NOTHING;

-- name: send_id_forget
-- The database went back: deliveries get other keys from now on.
DELETE FROM send_ids;

-- name: devices_forget
-- The database went back: what a platform knows as one of our devices is none any more.
DELETE FROM watermarks WHERE chat = 'device';

-- name: entry_insert
-- Store an entry. A key that is already stored changes nothing.
INSERT INTO inbox (session_id, generation, kind, source, external_id, sender, body, during_turn,
                   accepted_by, received_ms, changed_ms, state, reason, account)
VALUES (:session_id, :generation, :kind, :source, :external_id, :sender, :body, :during_turn,
        :accepted_by, :now, :now, :state, :reason, :account)
ON CONFLICT (source, account, external_id) DO NOTHING;

-- name: entries_of_strangers_forget
-- Keep only the newest messages of people without the right.
DELETE FROM inbox WHERE entry_id IN (
    SELECT entry_id FROM inbox INDEXED BY inbox_of_strangers WHERE reason = 'not-allowed'
    ORDER BY entry_id DESC LIMIT -1 OFFSET :kept);

-- name: entry_by_key
-- The entry with this key.
SELECT {entry} FROM inbox
WHERE source = :source AND account = :account AND external_id = :external_id;

-- name: entry_state
-- The state of an entry.
SELECT state FROM inbox WHERE entry_id = :entry_id;

-- name: entry_reword
-- The sender changed the words of an entry that waits.
UPDATE inbox SET body = :body
WHERE entry_id = :entry_id AND state = 'waiting' AND sender = :sender;

-- name: turn_group
-- The group of the newest message of a turn.
SELECT json_extract(body, '$.group') FROM inbox
WHERE turn_id = :turn_id AND kind = 'message' ORDER BY entry_id DESC LIMIT 1;

-- name: entry_attach
-- An entry joins a turn.
UPDATE inbox SET state = :after, turn_id = :turn_id, changed_ms = :now
WHERE entry_id = :entry_id AND state = 'waiting';

-- name: entry_drop
-- An entry is dropped for a reason.
UPDATE inbox SET state = :after, reason = :reason, changed_ms = :now
WHERE entry_id = :entry_id AND state = 'waiting';

-- name: queued_notice_abandon
-- Withdraw the notice that a message waits, unless it is being sent.
UPDATE outbox SET state = :after, reason = :reason, settled_ms = :now, changed_ms = :now
WHERE session_id = :session_id AND settled_ms IS NULL AND state IN ('draft', 'owed', 'held')
    AND cause = 'queued:' || :entry_id;

-- name: entry_picked_before
-- Whether the same choice has answered the question already.
SELECT 1 FROM steps JOIN inbox ON inbox.turn_id = steps.turn_id
WHERE steps.seq = :question AND steps.session_id = :session_id AND inbox.state = 'attached'
    AND json_extract(inbox.body, '$.question') = :question
    AND json_extract(inbox.body, '$.choice_id') = :choice_id LIMIT 1;

-- name: entries_waiting
-- What waits in a session, oldest first.
SELECT {entry}
FROM inbox WHERE session_id = :session_id AND state = 'waiting' ORDER BY entry_id;

-- name: entries_of_turn
-- The entries in a turn, oldest first.
SELECT {entry}
FROM inbox WHERE turn_id = :turn_id ORDER BY entry_id;

-- name: entries_waiting_count
-- How many entries wait in a session.
SELECT count(*) FROM inbox WHERE session_id = :session_id AND state = 'waiting';

-- name: messages_waiting_count
-- How many messages of people wait in a session.
SELECT count(*) FROM inbox
WHERE session_id = :session_id AND state = 'waiting' AND kind = 'message';

-- name: entry_newest_before_move
-- The newest entry at the moment when a turn came into its state; 0 if there was none. The entry that
-- brought back a turn that was set aside came before it was resumed, and still counts as newer.
SELECT newest_entry FROM turns WHERE turn_id = :turn_id;

-- name: entries_cut
-- A cut drops what waited before it. The person is still told how a process ended.
UPDATE inbox SET state = :after, reason = 'cut', changed_ms = :now
WHERE session_id = :session_id AND state = 'waiting'
    AND NOT (kind = 'report' AND json_extract(body, '$.kind') = 'exit');

-- name: ends_known
-- The ends of processes that a turn knows of: reports in the turn, and reports that were dropped because
-- its calls have shown the end. A report in another turn is told by that turn.
SELECT {entry}
FROM inbox INDEXED BY inbox_by_turn
WHERE turn_id = :turn_id AND kind = 'report' AND json_extract(body, '$.kind') = 'exit'
UNION ALL
SELECT {i.entry}
FROM processes AS p CROSS JOIN inbox AS i
    ON i.source = 'process' AND i.account = '' AND i.external_id = p.process_id || ':end'
WHERE p.session_id = :session_id AND p.exit_read_by IN
        (SELECT call_id FROM calls WHERE calls.turn_id = :turn_id)
    AND (i.state = 'waiting' OR i.reason = 'already-read')
ORDER BY 1;

-- name: entry_handle
-- The person was told of an entry, and no turn gets it.
UPDATE inbox SET state = :after, changed_ms = :now
WHERE entry_id = :entry_id AND state = 'waiting';

-- name: reports_waiting_of
-- Whether a report of the process waits.
SELECT 1 FROM inbox WHERE session_id = :session_id AND state = 'waiting' AND kind = 'report'
    AND json_extract(body, '$.process_id') = :process_id LIMIT 1;

-- name: reports_lately
-- How many reports came since a moment, in the session and in all. Reports in the future, left by a clock
-- that was set back, do not count.
SELECT count(*) FILTER (WHERE session_id = :session_id), count(*) FROM inbox INDEXED BY inbox_reports
WHERE kind = 'report' AND received_ms > :since_ms AND received_ms <= :now AND state <> 'dropped'
    AND json_extract(body, '$.kind') <> 'exit';

-- ── turns ──────────────────────────────────────────────────────────────────────────────────────

-- name: turn_insert
-- Open a turn. Its first step follows in the same transaction.
INSERT INTO turns (session_id, generation, state, event, person, anchor, first_seq, opened_ms,
                   progressed_ms, changed_ms, newest_entry)
VALUES (:session_id, :generation, 'queued', 'opened', :person, :anchor,
        :first_seq, :now, :now, :now, (SELECT coalesce(max(entry_id), 0) FROM inbox));

-- name: turn_by_id
-- A turn.
SELECT {turn}
FROM turns WHERE turn_id = :turn_id;

-- name: turn_ending
-- The anchor of a turn, and whether there is something beside it to which its end may mean something: a progress
-- message, a call without a result, a process of its session, an entry of it that is no message, a goal, an entry
-- that waits, a child.
SELECT t.anchor,
    EXISTS (SELECT 1 FROM outbox AS o INDEXED BY outbox_unsettled
            WHERE o.session_id = t.session_id AND o.settled_ms IS NULL AND o.turn_id = t.turn_id),
    EXISTS (SELECT 1 FROM calls AS c WHERE c.turn_id = t.turn_id AND c.finished_ms IS NULL
            AND c.skipped_ms IS NULL),
    EXISTS (SELECT 1 FROM processes AS p INDEXED BY processes_by_session
            WHERE p.session_id = t.session_id),
    EXISTS (SELECT 1 FROM inbox AS i INDEXED BY inbox_by_turn
            WHERE i.turn_id = t.turn_id AND i.kind <> 'message'),
    EXISTS (SELECT 1 FROM goals AS g INDEXED BY one_goal
            WHERE g.session_id = t.session_id AND g.state NOT IN ('done', 'cleared')),
    EXISTS (SELECT 1 FROM inbox AS w INDEXED BY inbox_waiting
            WHERE w.session_id = t.session_id AND w.state = 'waiting'),
    EXISTS (SELECT 1 FROM children AS h WHERE h.own_session = t.session_id)
FROM turns AS t WHERE t.turn_id = :turn_id;

-- name: turn_open
-- The open turn of a session.
SELECT {turn}
FROM turns WHERE session_id = :session_id
    AND closed_ms IS NULL AND state <> 'answered';

-- name: turn_newest
-- The newest turns of a session.
SELECT {turn}
FROM turns WHERE session_id = :session_id ORDER BY turn_id DESC LIMIT :limit;

-- name: turn_to_retry
-- Turns that failed, were dropped, or gave way to what waited behind them, and were not asked again.
-- Newest first, only since `context_from` and among the newest turns of the session.
SELECT {turn}
FROM (SELECT * FROM turns WHERE session_id = :session_id ORDER BY turn_id DESC LIMIT 20) AS ended
WHERE first_seq >= :context_from
    AND (state = 'failed' OR event = 'dropped' OR rule IN ('policy-behind', 'not-allowed-behind'))
    AND NOT EXISTS (SELECT 1 FROM inbox WHERE source = 'retry' AND account = ''
                    AND external_id = CAST(ended.turn_id AS TEXT))
ORDER BY turn_id DESC;

-- name: turn_senders
-- The other senders of messages in a turn.
SELECT DISTINCT sender FROM inbox
WHERE turn_id = :turn_id AND kind = 'message' AND sender <> :person;

-- name: sessions_of_person
-- The private chats of a person.
SELECT {session} FROM sessions WHERE channel = :channel AND person = :person;

-- name: turns_with_words
-- The turns with words of a person: all of their private chats, those of other chats in which they spoke,
-- and those in which their words were asked again.
WITH RECURSIVE found (turn_id) AS (
    SELECT turn_id FROM turns WHERE session_id IN
        (SELECT session_id FROM sessions WHERE channel = :channel AND person = :person)
    UNION
    SELECT turn_id FROM inbox WHERE sender = :person AND turn_id IS NOT NULL AND session_id IN
        (SELECT session_id FROM sessions WHERE channel = :channel)
    UNION
    SELECT i.turn_id FROM found JOIN inbox AS i
        ON i.source = 'retry' AND i.account = '' AND i.external_id = CAST(found.turn_id AS TEXT)
    WHERE i.turn_id IS NOT NULL
)
SELECT turn_id FROM found;

-- name: sessions_with_words
-- The chats in which a person wrote, or in which owners were asked about what they wanted.
SELECT session_id FROM sessions WHERE channel = :channel AND person = :person
UNION
SELECT session_id FROM inbox WHERE sender = :person AND session_id IN
    (SELECT session_id FROM sessions WHERE channel = :channel)
UNION
SELECT o.session_id FROM outbox AS o JOIN steps AS s ON s.seq = o.question
    JOIN turns AS t ON t.turn_id = s.turn_id WHERE t.session_id <> o.session_id;

-- name: erased_entries
-- The entries that an erasure empties, with what they said.
SELECT kind, body, session_id FROM inbox
WHERE erased_ms IS NULL
    AND (session_id IN (SELECT value FROM json_each(:sessions))
         OR (sender = :person AND (source = :channel OR session_id IN
                                   (SELECT session_id FROM sessions WHERE channel = :channel)))
         OR (turn_id IN (SELECT value FROM json_each(:turns))
             AND (kind IN ('report', 'task', 'child') OR source = 'retry')));

-- name: erase_entries
-- Empty them. A report still says which process it is of, and the end of a child which child.
UPDATE inbox SET erased_ms = :now,
    body = CASE WHEN kind IN ('report', 'child') THEN json_set(body, '$.headline', '', '$.output', '')
                ELSE :nothing END
WHERE erased_ms IS NULL
    AND (session_id IN (SELECT value FROM json_each(:sessions))
         OR (sender = :person AND (source = :channel OR session_id IN
                                   (SELECT session_id FROM sessions WHERE channel = :channel)))
         OR (turn_id IN (SELECT value FROM json_each(:turns))
             AND (kind IN ('report', 'task', 'child') OR source = 'retry')));

-- name: erased_steps
-- The steps of turns, and every summary of their sessions that was made after their beginning.
SELECT {step} FROM steps WHERE erased_ms IS NULL
    AND turn_id IN (SELECT value FROM json_each(:turns))
UNION
SELECT {s.step} FROM turns AS t JOIN steps AS s
    ON s.session_id = t.session_id AND s.kind = 'summary' AND s.seq >= t.first_seq
WHERE t.turn_id IN (SELECT value FROM json_each(:turns)) AND s.erased_ms IS NULL;

-- name: erase_step
-- A step says no more what it said.
UPDATE steps SET body = :body, erased_ms = :now WHERE seq = :seq;

-- name: erased_files
-- Files that were sent because of turns, or in sessions.
SELECT file FROM outbox WHERE file IS NOT NULL
    AND (turn_id IN (SELECT value FROM json_each(:turns))
         OR session_id IN (SELECT value FROM json_each(:sessions)));

-- name: erase_deliveries
-- What was said to people because of turns, in sessions, or about questions of the turns.
UPDATE outbox SET text = :erased, choices = '[]', file = NULL, literal = NULL, erased_ms = :now
WHERE erased_ms IS NULL
    AND (turn_id IN (SELECT value FROM json_each(:turns))
         OR session_id IN (SELECT value FROM json_each(:sessions))
         OR question IN (SELECT seq FROM steps WHERE turn_id IN (SELECT value FROM json_each(:turns))));

-- name: erase_calls
-- What calls of turns were asked to do.
UPDATE calls SET arguments = '{}' WHERE turn_id IN (SELECT value FROM json_each(:turns));

-- name: erase_commands
-- The commands that turns began.
UPDATE processes SET command = :erased WHERE turn_id IN (SELECT value FROM json_each(:turns));

-- name: erase_agent_messages
-- What foreign agents were told in chats in which turns were, or in sessions: a prompt may repeat what was
-- said before it. One that is fed after this asks nothing.
UPDATE agent_messages SET body = :nothing WHERE kind IN ('prompt', 'reply') AND body <> :nothing
    AND (session_id IN (SELECT value FROM json_each(:sessions))
         OR turn_id IN (SELECT value FROM json_each(:turns))
         OR ((settled_ms IS NOT NULL OR kind = 'reply') AND session_id IN
             (SELECT session_id FROM turns WHERE turn_id IN (SELECT value FROM json_each(:turns)))));

-- name: erase_agent_requests
-- What agents asked of us.
UPDATE agent_requests SET params = '{}'
WHERE session_id IN (SELECT value FROM json_each(:sessions))
    OR turn_id IN (SELECT value FROM json_each(:turns));

-- name: erase_agent_events
-- What else agents told.
DELETE FROM agent_events
WHERE session_id IN (SELECT value FROM json_each(:sessions))
    OR turn_id IN (SELECT value FROM json_each(:turns));

-- name: erase_agent_words
-- What agents said last.
UPDATE agent_processes SET said = ''
WHERE session_id IN (SELECT value FROM json_each(:sessions))
    OR process_id IN (SELECT process_id FROM agent_messages
                      WHERE turn_id IN (SELECT value FROM json_each(:turns)));

-- name: erase_lines
-- The commands in the journal.
UPDATE journal SET reason = NULL WHERE subject = 'process' AND reason IS NOT NULL
    AND turn_id IN (SELECT value FROM json_each(:turns));

-- name: erase_rules
-- What was allowed for good in sessions ends.
DELETE FROM approval_rules WHERE session_id IN (SELECT value FROM json_each(:sessions));

-- name: turns_of_chat
-- The turns of sessions, and those in which their words were asked again.
WITH RECURSIVE found (turn_id) AS (
    SELECT turn_id FROM turns WHERE session_id IN (SELECT value FROM json_each(:sessions))
    UNION
    SELECT i.turn_id FROM found JOIN inbox AS i
        ON i.source = 'retry' AND i.account = '' AND i.external_id = CAST(found.turn_id AS TEXT)
    WHERE i.turn_id IS NOT NULL
)
SELECT turn_id FROM found;

-- name: erase_titles
-- The names that sessions were given.
UPDATE chat_marks SET title = '' WHERE session_id IN (SELECT value FROM json_each(:sessions));

-- name: erase_name
-- What a person calls themselves.
UPDATE people SET name = '' WHERE channel = :channel AND person = :person;

-- name: erasure_insert
-- A wish to erase, with the files that have to go.
INSERT INTO erasures (channel, person, asked_by, asked_ms, files)
VALUES (:channel, :person, :by, :now, :files);

-- name: erasures_unfinished
-- Erasures that are not finished, oldest first.
SELECT erasure_id, channel, person, files FROM erasures WHERE done_ms IS NULL ORDER BY erasure_id;

-- name: erasure_files_gone
-- The files of an erasure are deleted.
UPDATE erasures SET files = NULL WHERE erasure_id = :erasure_id;

-- name: erasure_finish
-- Nothing is left to do for an erasure.
UPDATE erasures SET done_ms = :now WHERE erasure_id = :erasure_id AND done_ms IS NULL;

-- name: turn_speakers
-- All whose words a turn holds. Words that are asked again are those of the turn they were said in, and
-- what a process reports comes from the turn that began it, and not from a person who answered in between.
-- A child works with the words of the turn that gave it the work, and so does the turn that hears of it.
WITH RECURSIVE held (turn_id) AS (
    VALUES (:turn_id)
    UNION
    SELECT CASE WHEN i.kind = 'report' THEN p.turn_id
                WHEN i.kind IN ('task', 'child') THEN c.turn_id
                WHEN i.external_id GLOB 'm*' THEN said.turn_id
                ELSE CAST(i.external_id AS INTEGER) END
    FROM held JOIN inbox AS i ON i.turn_id = held.turn_id
    LEFT JOIN processes AS p
        ON i.kind = 'report' AND p.process_id = json_extract(i.body, '$.process_id')
    LEFT JOIN children AS c
        ON i.kind IN ('task', 'child') AND c.child_id = CAST(i.external_id AS INTEGER)
    LEFT JOIN inbox AS said
        ON i.source = 'retry' AND said.entry_id = CAST(substr(i.external_id, 2) AS INTEGER)
    WHERE i.kind IN ('report', 'task', 'child') OR i.source = 'retry'
)
SELECT person FROM turns WHERE turn_id IN (SELECT turn_id FROM held)
UNION
SELECT sender FROM inbox WHERE turn_id IN (SELECT turn_id FROM held) AND kind <> 'ignored';

-- name: approval_shown
-- Whether a question was shown in a session, for all that is known: its card was not tried in vain,
-- refused or given up.
SELECT 1 FROM outbox
WHERE session_id = :session_id AND question = :question
    AND (state IN ('sending', 'held', 'delivered') OR ambiguous = 1
         OR (state = 'owed' AND attempts = 0)) LIMIT 1;

-- name: turn_waiting_for
-- The turn that waits for the answer to a question.
SELECT {turn}
FROM turns INDEXED BY turns_alive
WHERE closed_ms IS NULL AND state = 'waiting' AND question_seq = :question;

-- name: approvals_shown
-- The open questions of other sessions that were shown in a session.
SELECT DISTINCT t.question_seq
FROM turns AS t INDEXED BY turns_alive JOIN outbox AS o ON o.question = t.question_seq
WHERE t.closed_ms IS NULL AND t.state = 'waiting' AND t.session_id <> :session_id
    AND o.session_id = :session_id
ORDER BY t.question_seq LIMIT 2;

-- name: turns_held_up
-- Queued or waiting turns with a message that waits behind them, newest first.
SELECT t.turn_id, t.person, s.channel
FROM turns AS t INDEXED BY turns_alive JOIN sessions AS s USING (session_id)
WHERE t.closed_ms IS NULL AND t.state IN ('queued', 'waiting')
    AND EXISTS (SELECT 1 FROM inbox AS i WHERE i.session_id = t.session_id AND i.state = 'waiting'
                AND i.kind = 'message')
ORDER BY t.turn_id DESC;

-- name: turns_due
-- Queued turns that may be claimed: recovered ones or the others, those without a wait first. A boot that
-- has ended claims nothing. One column says whether another person has a message in the turn, one whether an
-- entry waits behind it. A session
-- belongs to its node while that lives and does not drain, and to any node when its turn was due for long.
-- A process of the session keeps it at the home of that for as long as a boot lives there, and a while longer:
-- of agents only one that works.
SELECT t.turn_id, t.session_id, t.generation, t.epoch, t.opened_ms, t.person, s.channel,
       EXISTS (SELECT 1 FROM inbox AS i WHERE i.turn_id = t.turn_id AND i.kind = 'message'
               AND i.sender <> t.person),
       s.lock_key, s.node,
       EXISTS (SELECT 1 FROM inbox AS b INDEXED BY inbox_waiting
               WHERE b.session_id = t.session_id AND b.state = 'waiting')
FROM turns AS t INDEXED BY turns_alive JOIN sessions AS s USING (session_id)
WHERE t.closed_ms IS NULL AND t.state = 'queued'
    AND (t.recoveries > 0 AND t.event <> 'replied') = :recovered AND t.not_before_ms <= :now
    AND NOT EXISTS (SELECT 1 FROM workers AS w WHERE w.worker_id = :worker_id
                    AND w.ended_ms IS NOT NULL)
    AND (s.node IS NULL OR s.node = :node
         OR ((max(t.not_before_ms, t.changed_ms) <= :late_ms
              OR NOT EXISTS (SELECT 1 FROM workers AS w INDEXED BY workers_not_ended
                             WHERE w.ended_ms IS NULL AND w.draining = 0 AND w.node = s.node))
             AND NOT EXISTS (SELECT 1 FROM processes AS p INDEXED BY processes_alive
                             JOIN workers AS w INDEXED BY workers_by_home ON w.home = p.home
                             WHERE p.session_id = t.session_id AND p.ended_ms IS NULL
                                 AND p.home <> :home
                                 AND (p.agent = '' OR NOT EXISTS (
                                         SELECT 1 FROM agent_processes AS a
                                         WHERE a.process_id = p.process_id)
                                     OR EXISTS (SELECT 1 FROM agent_messages AS m
                                                WHERE m.process_id = p.process_id
                                                    AND m.kind = 'prompt' AND m.settled_ms IS NULL))
                                 AND (w.ended_ms IS NULL OR w.ended_ms > :late_ms))))
ORDER BY t.not_before_ms, t.turn_id LIMIT :limit;

-- name: turns_next_due
-- When the next queued turn is due, of the recovered ones or of the others. One that is due and belongs to
-- another node is looked at now and then.
SELECT t.not_before_ms FROM turns AS t INDEXED BY turns_alive JOIN sessions AS s USING (session_id)
WHERE t.closed_ms IS NULL AND t.state = 'queued'
    AND (t.recoveries > 0 AND t.event <> 'replied') = :recovered
    AND (t.not_before_ms > :now OR s.node IS NULL OR s.node = :node)
ORDER BY t.not_before_ms LIMIT 1;

-- name: turn_claim
-- One worker claims a turn. From here on every write of an earlier epoch touches no row.
UPDATE turns SET state = :after, event = :event, rule = NULL, reason = NULL,
    epoch = epoch + 1, worker_id = :worker_id, changed_ms = :now,
    newest_entry = (SELECT coalesce(max(entry_id), 0) FROM inbox)
WHERE turn_id = :turn_id AND state = 'queued' AND epoch = :epoch;

-- name: turn_progress
-- The claim is valid, and the turn made progress.
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
-- The claim is valid, and the model answered without progress of the turn.
UPDATE turns SET model_tries = 0, model_waited_ms = 0, model_failure = NULL
WHERE turn_id = :turn_id AND epoch = :epoch AND state = 'running';

-- name: turn_waits_for_model
-- The claim is valid, and the turn begins a wait for the model.
UPDATE turns SET model_waited_ms = model_waited_ms + :wait_ms
WHERE turn_id = :turn_id AND epoch = :epoch AND state = 'running';

-- name: turns_running_count
-- How many turns are claimed.
SELECT count(*) FROM turns INDEXED BY turns_alive WHERE closed_ms IS NULL AND state = 'running';

-- name: command_not_started
-- Whether a turn has a command that may run (approved, or without need for it) and is not started.
SELECT 1 FROM calls
WHERE turn_id = :turn_id AND effect = 'resumable' AND started_ms IS NULL AND skipped_ms IS NULL
    AND (need = 'nobody' OR approved_ms IS NOT NULL) LIMIT 1;

-- name: turn_held
-- Whether a claim is valid.
SELECT 1 FROM turns WHERE turn_id = :turn_id AND epoch = :epoch AND state = 'running';

-- name: turn_move
-- Move a turn from one state to another.
UPDATE turns SET state = :after, event = :event, rule = :rule, reason = :reason, worker_id = NULL,
    question_seq = :question_seq, expires_ms = :expires_ms, closed_ms = :closed_ms,
    changed_ms = :now, not_before_ms = :not_before_ms, wait_ms = max(0, :not_before_ms - :now),
    progressed_ms = CASE WHEN :progressed = 1 THEN :now ELSE progressed_ms END,
    worked_ms = max(worked_ms, :worked_ms),
    recoveries = CASE WHEN :renewed = 1 THEN 0 ELSE recoveries + :recovered END,
    crash_streak = CASE WHEN :progressed = 1 OR :renewed = 1 THEN 0 ELSE crash_streak + :died END,
    -- A person who resumes early gets back the part of the wait that did not pass.
    model_waited_ms = CASE WHEN :renewed = 1 THEN max(0, model_waited_ms - max(0, not_before_ms - :now))
                           ELSE model_waited_ms END,
    newest_entry = CASE WHEN :closed_ms IS NOT NULL OR (:event = 'resumed' AND :before = 'suspended')
                        THEN newest_entry ELSE (SELECT coalesce(max(entry_id), 0) FROM inbox) END
WHERE turn_id = :turn_id AND state = :before AND epoch = :epoch;

-- name: turn_settle
-- Close an answered turn if all its deliveries are settled.
UPDATE turns SET state = :after, event = :event, rule = NULL, closed_ms = :now,
    changed_ms = :now
WHERE turn_id = :turn_id AND state = 'answered'
    AND NOT EXISTS (SELECT 1 FROM outbox INDEXED BY outbox_by_turn
                    WHERE turn_id = :turn_id AND settled_ms IS NULL);

-- name: turn_speaks
-- The person of the newest message in a turn, and the message that its deliveries refer to.
UPDATE turns SET person = :person, anchor = :anchor WHERE turn_id = :turn_id;

-- name: turns_unowned
-- Turns that are running under a worker that is gone, newest first.
SELECT turn_id FROM turns
WHERE closed_ms IS NULL AND state = 'running'
    AND EXISTS (SELECT 1 FROM workers AS owner
                WHERE owner.worker_id = turns.worker_id AND owner.ended_ms IS NOT NULL)
ORDER BY turn_id DESC;

-- name: turns_to_judge
-- The same, and turns that were set aside.
SELECT turn_id FROM turns
WHERE closed_ms IS NULL AND state IN ('running', 'suspended')
    AND (worker_id IS NULL
         OR EXISTS (SELECT 1 FROM workers AS owner
                    WHERE owner.worker_id = turns.worker_id AND owner.ended_ms IS NOT NULL))
ORDER BY turn_id DESC;

-- name: turns_expired
-- Turns whose question has expired.
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
-- Turns that were claimed before and have no living worker, oldest first.
SELECT {turn}
FROM turns INDEXED BY turns_alive
WHERE closed_ms IS NULL AND state IN ('queued', 'running') AND epoch > 0
    AND (worker_id IS NULL
         OR EXISTS (SELECT 1 FROM workers AS owner
                    WHERE owner.worker_id = turns.worker_id AND owner.ended_ms IS NOT NULL))
ORDER BY turn_id LIMIT :limit;

-- ── steps and calls ────────────────────────────────────────────────────────────────────────────

-- name: step_insert
-- Append a step to the transcript.
INSERT INTO steps (seq, session_id, turn_id, epoch, kind, cause, body, at_ms)
VALUES (:seq, :session_id, :turn_id, :epoch, :kind, :cause, :body, :now);

-- name: step_next
-- The number of the next step, where one connection writes; asked by `Transaction.next_step` alone.
SELECT coalesce(max(seq), 0) + 1 FROM steps;

-- name: step_by_seq
-- One step.
SELECT {step} FROM steps WHERE seq = :seq;

-- name: steps_of_turn
-- The steps of a turn, in order.
SELECT {step} FROM steps
WHERE session_id = :session_id AND seq >= :first_seq AND turn_id = :turn_id ORDER BY seq;

-- name: steps_before
-- The steps of a session before a turn, newest first.
SELECT {step} FROM steps
WHERE session_id = :session_id AND seq >= :context_from AND seq < :first_seq
    AND turn_id NOT IN (SELECT turn_id FROM turns INDEXED BY turns_apart
                        WHERE apart = 1 AND session_id = :session_id)
ORDER BY seq DESC LIMIT :limit;

-- name: summary_newest
-- The newest summary since `context_from`: of the turn itself if it is apart, else of those that are not.
SELECT {step} FROM steps
WHERE session_id = :session_id AND kind = 'summary' AND seq >= :context_from
    AND CASE WHEN :apart = 0
             THEN turn_id NOT IN (SELECT turn_id FROM turns INDEXED BY turns_apart
                                  WHERE apart = 1 AND session_id = :session_id)
             ELSE turn_id = :apart END
ORDER BY seq DESC LIMIT 1;

-- name: turn_is_apart
-- The turn, if it has a context of its own.
SELECT turn_id FROM turns WHERE turn_id = :turn_id AND apart = 1;

-- name: steps_count
-- How many steps a turn has.
SELECT count(*) FROM steps
WHERE session_id = :session_id AND seq >= :first_seq AND turn_id = :turn_id;

-- name: step_last_kind
-- The kind of a turn's last step, ignoring the gateway's own steps.
SELECT kind FROM steps
WHERE session_id = :session_id AND seq >= :first_seq AND turn_id = :turn_id
    AND kind NOT IN ('note', 'question', 'summary') ORDER BY seq DESC LIMIT 1;

-- name: turn_request
-- The step that a request to the model belongs to: the same for all attempts of one request.
SELECT coalesce(max(seq), 0) FROM steps
WHERE session_id = :session_id AND seq >= :first_seq AND turn_id = :turn_id
    AND kind IN ('message', 'reply', 'result');

-- name: note_exists
-- Whether an epoch has its recovery note.
SELECT 1 FROM steps WHERE turn_id = :turn_id AND epoch = :epoch AND kind = 'note'
    AND cause = 'recovery';

-- name: question_newest
-- The question that a turn asked last.
SELECT body FROM steps WHERE session_id = :session_id AND seq >= :first_seq AND turn_id = :turn_id
    AND kind = 'question' ORDER BY seq DESC LIMIT 1;

-- name: turn_went_on
-- When a turn went on after its newest question: by an answer, an approval or a step. No row if it has
-- asked nothing.
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
-- A call is proposed; it has certainly not run.
INSERT INTO calls (turn_id, call_id, place, tool, arguments, effect, need, provider_id, args_hash)
VALUES (:turn_id, :call_id, :place, :tool, :arguments, :effect, :need, :provider_id, :args_hash);

-- name: call_start
-- A call is about to run, under a valid claim. A call that needed a yes runs under its seal.
UPDATE calls SET started_ms = :now
WHERE turn_id = :turn_id AND call_id = :call_id AND started_ms IS NULL AND skipped_ms IS NULL
    AND (need <> 'approval' OR approved_seal IS NOT DISTINCT FROM :seal)
    AND EXISTS (SELECT 1 FROM turns WHERE turn_id = :turn_id AND epoch = :epoch
                AND state = 'running');

-- name: call_start_settled
-- The same for a call that may not have done harm before (`call_was_unsettled`): then it does not run.
UPDATE calls SET started_ms = :now
WHERE turn_id = :turn_id AND call_id = :call_id AND started_ms IS NULL AND skipped_ms IS NULL
    AND (need <> 'approval' OR approved_seal IS NOT DISTINCT FROM :seal)
    AND (approved_ms IS NOT NULL OR NOT EXISTS (
            SELECT 1 FROM calls AS earlier
            WHERE earlier.turn_id = :turn_id AND earlier.args_hash = calls.args_hash
                AND earlier.call_id <> :call_id AND earlier.effect IN ('once', 'resumable')
                AND (earlier.outcome = 'unknown'
                     OR earlier.died_ms - earlier.started_ms < :quiet_ms)))
    AND EXISTS (SELECT 1 FROM turns WHERE turn_id = :turn_id AND epoch = :epoch
                AND state = 'running');

-- name: call_was_unsettled
-- Whether the same call was made before in this turn with an unknown outcome, or the gateway died just
-- after it began. A person who approved this call has decided otherwise. `call_start_settled` has the same condition.
SELECT 1 FROM calls AS this JOIN calls AS earlier
    ON earlier.turn_id = this.turn_id AND earlier.args_hash = this.args_hash
WHERE this.turn_id = :turn_id AND this.call_id = :call_id AND this.approved_ms IS NULL
    AND earlier.call_id <> this.call_id AND earlier.effect IN ('once', 'resumable')
    AND (earlier.outcome = 'unknown' OR earlier.died_ms - earlier.started_ms < :quiet_ms)
LIMIT 1;

-- name: call_ask
-- The call is the question itself, so asking starts it. A call that needs approval stays proposed.
UPDATE calls SET started_ms = :now
WHERE turn_id = :turn_id AND call_id = :call_id AND started_ms IS NULL AND need = 'answer';

-- name: call_finish
-- A call gets its result: it ran to its end, or it will never run.
UPDATE calls SET finished_ms = CASE WHEN started_ms IS NOT NULL THEN :now END,
    skipped_ms = CASE WHEN started_ms IS NULL THEN :now END, outcome = :outcome
WHERE turn_id = :turn_id AND call_id = :call_id AND finished_ms IS NULL AND skipped_ms IS NULL;

-- name: call_died
-- The gateway died while calls ran.
UPDATE calls SET died_ms = :died_ms
WHERE turn_id = :turn_id AND started_ms IS NOT NULL AND finished_ms IS NULL;

-- name: call_approve
-- A person approves a call, once.
UPDATE calls SET approved_by = :person, approved_ms = :now, approved_seal = :seal
WHERE turn_id = :turn_id AND call_id = :call_id AND started_ms IS NULL AND approved_ms IS NULL;

-- name: calls_of_turn
-- All calls of a turn, in order.
SELECT {call}
FROM calls WHERE turn_id = :turn_id ORDER BY place;

-- name: calls_begun
-- The calls that ran for a turn, oldest first, and how they ended. Questions to a person do not count.
SELECT tool, arguments, coalesce(outcome, 'unknown') FROM calls
WHERE turn_id = :turn_id AND started_ms IS NOT NULL AND need <> 'answer'
ORDER BY place LIMIT :limit;

-- name: calls_unresolved
-- Calls without a result, in order.
SELECT {call}
FROM calls WHERE turn_id = :turn_id AND finished_ms IS NULL AND skipped_ms IS NULL ORDER BY place;

-- name: calls_unresolved_count
-- How many calls have no result.
SELECT count(*) FROM calls WHERE turn_id = :turn_id AND finished_ms IS NULL
    AND skipped_ms IS NULL;

-- ── approvals ──────────────────────────────────────────────────────────────────────────────────

-- name: rule_keep
-- A person allowed this for good in a chat; once is enough.
INSERT INTO approval_rules (session_id, tool, rule_key, shown, made_by, made_ms)
VALUES (:session_id, :tool, :rule_key, :shown, :person, :now)
ON CONFLICT (session_id, rule_key) WHERE revoked_ms IS NULL DO NOTHING;

-- name: rule_alive
-- The rule of a chat for exactly this.
SELECT rule_id, made_by FROM approval_rules
WHERE session_id = :session_id AND rule_key = :rule_key AND revoked_ms IS NULL;

-- name: rule_by_id
-- A rule, in force or not.
SELECT r.rule_id, r.session_id, s.channel, s.chat, s.thread, r.tool, r.shown, r.made_by, r.made_ms,
       r.revoked_ms
FROM approval_rules AS r JOIN sessions AS s USING (session_id) WHERE r.rule_id = :rule_id;

-- name: rule_session_key
-- The key of a rule's session.
SELECT lock_key FROM sessions
WHERE session_id = (SELECT session_id FROM approval_rules WHERE rule_id = :rule_id);

-- name: rule_revoke
-- It spares no question any more.
UPDATE approval_rules SET revoked_by = :by, revoked_ms = :now
WHERE rule_id = :rule_id AND revoked_ms IS NULL;

-- name: rules_of_session
-- The rules of a chat that are in force, newest first.
SELECT r.rule_id, r.session_id, s.channel, s.chat, s.thread, r.tool, r.shown, r.made_by, r.made_ms,
       r.revoked_ms
FROM approval_rules AS r JOIN sessions AS s USING (session_id)
WHERE r.session_id = :session_id AND r.revoked_ms IS NULL ORDER BY r.rule_id DESC LIMIT :limit;

-- name: rules_alive
-- All rules that are in force, newest first.
SELECT r.rule_id, r.session_id, s.channel, s.chat, s.thread, r.tool, r.shown, r.made_by, r.made_ms,
       r.revoked_ms
FROM approval_rules AS r JOIN sessions AS s USING (session_id)
WHERE r.revoked_ms IS NULL ORDER BY r.rule_id DESC LIMIT :limit;

-- ── outbox ─────────────────────────────────────────────────────────────────────────────────────

-- name: delivery_insert
-- A delivery is owed to a person. Of what a child does no person is told, unless it asks or replies to one. A turn
-- that was there when the database went back may have said the same before, so it is labelled.
INSERT INTO outbox (session_id, turn_id, cause, part, parts, text, choices, question, anchor, file,
                    literal, state, created_ms, changed_ms, aged_from_ms, labelled)
SELECT :session_id, :turn_id, :cause, :part, :parts, :text, :choices, :question, :anchor, :file,
       :literal, 'owed', :now, :now, :now,
       (SELECT count(*) FROM turns AS t WHERE t.turn_id = :turn_id AND EXISTS (
            SELECT 1 FROM holds WHERE gap IS NOT NULL AND begun_ms >= t.opened_ms))
WHERE :to_person = 1 OR NOT EXISTS (SELECT 1 FROM sessions WHERE session_id = :session_id
                                    AND aside GLOB 'a*');

-- name: delivery_by_cause
-- Whether a delivery for this cause exists.
SELECT 1 FROM outbox WHERE session_id = :session_id AND cause = :cause LIMIT 1;

-- name: delivery_of_turn_by_cause
-- Whether a delivery of the turn for this cause exists, in whatever session it is by now.
SELECT 1 FROM outbox INDEXED BY outbox_by_turn WHERE turn_id = :turn_id AND cause = :cause LIMIT 1;

-- name: deliveries_of_cause
-- The parts of the deliveries for a cause, and whether one has a file.
SELECT text, state, file IS NOT NULL FROM outbox
WHERE session_id = :session_id AND cause = :cause ORDER BY part;

-- name: words_of_turn
-- The texts that were sent or are owed for a turn.
SELECT text FROM outbox WHERE turn_id = :turn_id AND state <> 'abandoned';

-- name: delivery_head
-- The oldest unsettled delivery of a session, with its route. A held delivery does not hold up later
-- ones.
SELECT {owed}
FROM outbox AS o JOIN sessions AS s USING (session_id)
LEFT JOIN quiet AS q ON q.channel = s.channel AND q.chat = s.chat LEFT JOIN send_ids AS k ON k.one = 1
WHERE o.session_id = :session_id AND o.settled_ms IS NULL AND o.state <> 'held'
ORDER BY o.delivery_id LIMIT 1;

-- name: delivery_is_next
-- The turn of the delivery that `delivery_head` finds.
SELECT turn_id FROM outbox
WHERE session_id = :session_id AND settled_ms IS NULL AND state <> 'held'
ORDER BY delivery_id LIMIT 1;

-- name: delivery_overtaking
-- The oldest due reply to a command, in a session whose oldest delivery must wait.
SELECT {owed}
FROM outbox AS o JOIN sessions AS s USING (session_id)
LEFT JOIN quiet AS q ON q.channel = s.channel AND q.chat = s.chat LEFT JOIN send_ids AS k ON k.one = 1
WHERE o.session_id = :session_id AND o.settled_ms IS NULL AND o.state = 'owed' AND o.ambiguous = 0
    AND o.not_before_ms <= :now AND o.cause GLOB 'command:*'
ORDER BY o.delivery_id LIMIT 1;

-- name: delivery_send
-- A delivery is about to be sent. Until it is settled its outcome is unknown.
UPDATE outbox SET state = :after, worker_id = :worker_id, attempts = attempts + 1,
    ambiguous = :ambiguous, changed_ms = :now, tried_by = :worker_id,
    tried_seq = CASE attempts WHEN 0 THEN (SELECT coalesce(max(seq), 0) FROM journal)
                              ELSE tried_seq END,
    sent_seq = CASE attempts WHEN 0 THEN (SELECT coalesce(max(seq), 0) FROM journal)
                             ELSE sent_seq END
WHERE delivery_id = :delivery_id AND state IN ('owed', 'sending');

-- name: deliveries_sent_by
-- What a worker is sending, with the keys of the chats.
SELECT o.delivery_id, s.lock_key
FROM outbox AS o INDEXED BY outbox_unsettled JOIN sessions AS s USING (session_id)
WHERE o.settled_ms IS NULL AND o.state = 'sending' AND o.worker_id = :worker_id
ORDER BY o.delivery_id;

-- name: delivery_settle
-- A delivery is settled.
UPDATE outbox SET state = :after, worker_id = NULL, platform_id = :platform_id, reason = :reason,
    settled_ms = :now, changed_ms = :now, ambiguous = max(ambiguous, :may_be_there),
    settled_seq = (SELECT coalesce(max(seq), 0) FROM journal)
WHERE delivery_id = :delivery_id AND state = :before AND worker_id = :worker_id;

-- name: delivery_give_up
-- A delivery ends before another attempt.
UPDATE outbox SET state = :after, worker_id = NULL, reason = :reason, settled_ms = :now,
    changed_ms = :now
WHERE delivery_id = :delivery_id AND state IN ('owed', 'sending');

-- name: delivery_postpone
-- A delivery is owed again later, or held.
UPDATE outbox SET state = :after, worker_id = NULL, not_before_ms = :not_before_ms,
    wait_ms = :wait_ms, ambiguous = :ambiguous, reason = :reason, changed_ms = :now,
    unsure = unsure + :unsure, strikes = strikes + :strike,
    tried_seq = (SELECT coalesce(max(seq), 0) FROM journal)
WHERE delivery_id = :delivery_id AND state = :before AND worker_id = :worker_id;

-- name: channel_accepted_lately
-- Whether the channel of a delivery accepted another one since the last attempt, among the newest
-- journal lines.
SELECT 1 FROM journal AS j JOIN sessions AS s ON s.session_id = j.session_id
WHERE j.seq > (SELECT tried_seq FROM outbox WHERE delivery_id = :delivery_id)
    AND j.seq > (SELECT max(seq) FROM journal) - :looked_at
    AND j.subject = 'delivery' AND j.event = 'delivered' AND s.channel = :channel LIMIT 1;

-- name: deliveries_hasten
-- The channel is back: what was certainly not sent is due now. A delivery of unknown outcome keeps its
-- time.
UPDATE outbox SET not_before_ms = 0, wait_ms = 0
WHERE settled_ms IS NULL AND not_before_ms > 0 AND state = 'owed' AND ambiguous = 0
    AND (SELECT channel FROM sessions WHERE session_id = outbox.session_id) = :channel;

-- name: notice_open
-- The notice of a chat about lost deliveries, while it has certainly not been sent.
SELECT o.delivery_id FROM sessions AS s JOIN outbox AS o ON o.session_id = s.session_id
WHERE s.channel = :channel AND s.chat = :chat AND o.settled_ms IS NULL AND o.state = 'owed'
    AND o.ambiguous = 0 AND o.labelled = 0 AND o.cause GLOB 'undelivered:*' LIMIT 1;

-- name: notice_add
-- A notice tells of one more delivery.
INSERT INTO undelivered (notice_id, delivery_id) VALUES (:notice_id, :delivery_id);

-- name: notice_deliveries
-- The deliveries of a notice.
SELECT delivery_id FROM undelivered WHERE notice_id = :notice_id ORDER BY delivery_id;

-- name: notice_reword
-- Change the words of a notice that has not been sent.
UPDATE outbox SET text = :text WHERE delivery_id = :notice_id AND settled_ms IS NULL;

-- name: quiet_set
-- The platform asks for a pause in the chat of a session.
INSERT INTO quiet (channel, chat, until_ms, wait_ms)
SELECT channel, chat, :now + :wait_ms, :wait_ms FROM sessions WHERE session_id = :session_id
ON CONFLICT (channel, chat) DO UPDATE SET until_ms = max(quiet.until_ms, excluded.until_ms),
    wait_ms = max(quiet.wait_ms, excluded.wait_ms);

-- name: quiet_forget
-- Delete the pauses of a channel.
DELETE FROM quiet WHERE channel = :channel;

-- name: chat_known
-- The newest deliveries in a chat that have an id of the platform, and whether they came before the first
-- attempt of a delivery. The order of the commits says that, because clocks are set. Deliveries from
-- before a move are left out: their ids may be those of another chat.
SELECT o.platform_id, s.moved_ms < :begun_ms AND (o.settled_seq < :sent_seq
    OR (o.session_id = :session_id AND o.delivery_id < :delivery_id))
FROM outbox AS o JOIN sessions AS s USING (session_id)
WHERE s.channel = :channel AND s.chat = :chat AND o.platform_id IS NOT NULL
    AND o.settled_ms > s.moved_ms ORDER BY o.delivery_id DESC LIMIT :limit;

-- name: chat_unsure_count
-- How many other deliveries to a chat may have arrived without a known id. A delivery that was sent
-- again with a label may be there twice; its first copy counts unless the second came before.
SELECT count(*) FROM outbox
WHERE session_id IN (SELECT session_id FROM sessions WHERE channel = :channel AND chat = :chat)
    AND delivery_id <> :delivery_id AND (settled_ms IS NULL OR changed_ms > :since_ms)
    AND (platform_id IS NULL AND (state = 'sending' OR ambiguous = 1 OR labelled = 1)
        OR labelled = 1 AND (settled_seq >= :sent_seq OR settled_ms > :begun_ms)
            AND NOT (session_id = :session_id AND delivery_id < :delivery_id));

-- name: delivery_begun
-- When a delivery was first owed, by the earlier of two clocks, and the newest journal line when it was
-- first sent.
SELECT min(created_ms, aged_from_ms), sent_seq FROM outbox WHERE delivery_id = :delivery_id;

-- name: delivery_label
-- Set whether a delivery is labelled as a possible duplicate.
UPDATE outbox SET labelled = :labelled
WHERE delivery_id = :delivery_id AND state = 'sending' AND worker_id = :worker_id;

-- name: deliveries_abandon
-- A turn was ended: abandon what it still owed, except what may already be on its way.
UPDATE outbox SET state = :after, reason = :reason, settled_ms = :now, changed_ms = :now
WHERE session_id = :session_id AND settled_ms IS NULL AND turn_id = :turn_id
    AND state IN ('draft', 'owed', 'held') AND ambiguous = 0 AND labelled = 0;

-- name: answers_unsent
-- How many parts of a session's answers have certainly not been sent, and how many may have been.
SELECT count(*) FILTER (WHERE o.state = 'owed' AND o.ambiguous = 0 AND o.labelled = 0),
       count(*) FILTER (WHERE o.state <> 'owed' OR o.ambiguous = 1 OR o.labelled = 1)
FROM outbox AS o JOIN turns AS t ON t.turn_id = o.turn_id
WHERE o.session_id = :session_id AND o.settled_ms IS NULL AND t.state = 'answered';

-- name: turns_answered
-- The turns of a session whose answers are on their way.
SELECT DISTINCT o.turn_id FROM outbox AS o JOIN turns AS t ON t.turn_id = o.turn_id
WHERE o.session_id = :session_id AND o.settled_ms IS NULL AND t.state = 'answered';

-- name: delivery_hasten
-- A delivery that is owed is due now. If it may have arrived before, it is labelled as a possible
-- duplicate.
UPDATE outbox SET not_before_ms = 0, wait_ms = 0, labelled = max(labelled, ambiguous), ambiguous = 0,
    strikes = 0, reason = NULL, changed_ms = :now
WHERE delivery_id = :delivery_id AND state = 'owed';

-- name: deliveries_release
-- Owe again what is held, one delivery or all. What may have arrived before is labelled.
UPDATE outbox SET state = :after, labelled = max(labelled, ambiguous), ambiguous = 0, strikes = 0,
    reason = NULL, changed_ms = :now
WHERE settled_ms IS NULL AND state = 'held'
    AND (:delivery_id IS NULL OR delivery_id = :delivery_id);

-- name: outbox_hold
-- Hold everything that is owed. It may have arrived, so it is ambiguous.
UPDATE outbox SET state = :after, worker_id = NULL, not_before_ms = 0, wait_ms = 0, ambiguous = 1,
    reason = :reason
WHERE settled_ms IS NULL AND state IN ('owed', 'sending', 'held');

-- name: delivery_again
-- Owe a rejected or abandoned delivery once more, as a new row.
INSERT INTO outbox (session_id, turn_id, cause, part, parts, text, choices, question, anchor, file,
                    literal, state, created_ms, changed_ms, aged_from_ms)
SELECT session_id, turn_id, 'retry:' || delivery_id, 1, 1, text, choices, question,
       CASE WHEN outbox.changed_ms > moved_ms THEN anchor ELSE '' END, file, literal, 'owed', :now,
       :now, :now
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
-- Drop a delivery, unless a living worker is sending it.
UPDATE outbox SET state = :after, worker_id = NULL, reason = :reason, settled_ms = :now,
    changed_ms = :now
WHERE delivery_id = :delivery_id AND state IN ('draft', 'owed', 'sending', 'held')
    AND (worker_id IS NULL
         OR EXISTS (SELECT 1 FROM workers AS owner
                    WHERE owner.worker_id = outbox.worker_id AND owner.ended_ms IS NOT NULL))
RETURNING session_id, turn_id;

-- name: progress_newest
-- The newest progress message of a turn.
SELECT cause, outbox.created_ms, settled_ms,
       CASE WHEN settled_ms > moved_ms THEN platform_id END
FROM outbox JOIN sessions USING (session_id)
WHERE session_id = :session_id AND cause >= 'progress:' || :turn_id || ':'
    AND cause < 'progress:' || :turn_id || ';'
ORDER BY delivery_id DESC LIMIT 1;

-- name: progress_abandon
-- A turn has stopped running: withdraw its progress messages.
UPDATE outbox SET state = :after, reason = 'the work is over', settled_ms = :now,
                  changed_ms = :now
WHERE session_id = (SELECT session_id FROM turns WHERE turn_id = :turn_id) AND settled_ms IS NULL
    AND turn_id = :turn_id AND state IN ('draft', 'owed', 'held') AND cause LIKE 'progress:%';

-- name: deliveries_move
-- The chat moved to one that has a session: owed deliveries move to that session.
UPDATE outbox SET session_id = there.session_id
FROM sessions AS here JOIN sessions AS there USING (channel, thread, aside)
WHERE here.session_id = :session_id AND there.chat = :chat
    AND outbox.session_id = here.session_id AND outbox.settled_ms IS NULL
    AND NOT EXISTS (SELECT 1 FROM outbox AS known WHERE known.session_id = there.session_id
                    AND known.cause = outbox.cause AND known.part = outbox.part);

-- name: deliveries_said_there
-- Withdraw what could not move, because the other session has a delivery for the same cause.
UPDATE outbox SET state = :after, reason = :reason, settled_ms = :now, changed_ms = :now
WHERE session_id = :session_id AND settled_ms IS NULL AND state IN ('draft', 'owed', 'held')
    AND EXISTS (SELECT 1 FROM sessions AS here JOIN sessions AS there USING (channel, thread, aside)
                JOIN outbox AS said ON said.session_id = there.session_id
                WHERE here.session_id = :session_id AND there.chat = :chat
                    AND there.session_id <> here.session_id
                    AND said.cause = outbox.cause AND said.part = outbox.part);

-- name: deliveries_with_file
-- Files that are still owed, and files that people can fetch, as long as their delivery exists.
SELECT o.file FROM outbox AS o INDEXED BY outbox_files JOIN sessions AS s USING (session_id)
WHERE o.file IS NOT NULL
    AND (o.settled_ms IS NULL OR o.state = 'delivered' AND s.channel GLOB 'web:*');

-- name: delivery_file
-- The file of a delivery to a chat.
SELECT o.file FROM outbox AS o JOIN sessions AS s USING (session_id)
WHERE o.delivery_id = :delivery_id AND o.file IS NOT NULL AND o.state = 'delivered'
    AND s.channel = :channel AND s.chat = :chat;

-- name: deliveries_due_all
-- Sessions to which something is owed: the newest delivery, when the next one is due, whether it needs
-- its channel, and when the first reply to a command is due, which may overtake it.
WITH owed AS (
    SELECT session_id, max(delivery_id) AS newest, min(delivery_id) AS head,
           min(CASE WHEN cause GLOB 'command:*' AND ambiguous = 0 THEN not_before_ms END) AS reply_ms
    FROM outbox INDEXED BY outbox_unsettled
    WHERE settled_ms IS NULL AND state NOT IN ('draft', 'held')
    GROUP BY session_id
)
SELECT owed.newest, owed.session_id, s.channel, s.chat, s.thread,
       max(CASE WHEN o.state = 'sending' THEN 0 ELSE o.not_before_ms END, coalesce(q.until_ms, 0)),
       o.ambiguous = 1 OR o.state = 'sending' OR o.cause GLOB 'undelivered:*',
       CASE WHEN owed.reply_ms IS NOT NULL THEN max(owed.reply_ms, coalesce(q.until_ms, 0)) END
FROM owed JOIN outbox AS o ON o.delivery_id = owed.head
JOIN sessions AS s ON s.session_id = owed.session_id
LEFT JOIN quiet AS q ON q.channel = s.channel AND q.chat = s.chat;

-- name: deliveries_due_new
-- Sessions with deliveries that are newer than one.
SELECT max(o.delivery_id), s.session_id, s.channel, s.chat, s.thread, 0, 0, NULL
FROM outbox AS o JOIN sessions AS s ON s.session_id = o.session_id
WHERE o.delivery_id > :after AND o.settled_ms IS NULL AND o.state NOT IN ('draft', 'held')
GROUP BY s.session_id;

-- name: deliveries_unsettled_count
-- How many deliveries are owed to a session.
SELECT count(*) FROM outbox WHERE session_id = :session_id AND settled_ms IS NULL;

-- ── processes ──────────────────────────────────────────────────────────────────────────────────

-- name: process_insert
-- A process is about to be started for a call. A call has one process.
INSERT INTO processes (session_id, generation, turn_id, call_id, foreground, command, workdir,
                       state, started_ms, node, home, boundary, agent)
VALUES (:session_id, :generation, :turn_id, :call_id, :foreground, :command, :workdir, 'starting',
        :now, :node, :home, :boundary, :agent)
ON CONFLICT (turn_id, call_id) DO NOTHING;

-- name: process_born
-- A process runs; its identity on the machine.
UPDATE processes SET state = :after, pid = :pid, birth = :birth
WHERE process_id = :process_id AND state = 'starting';

-- name: process_ended
-- A process ends, once.
UPDATE processes SET state = :after, exit_code = :exit_code, reason = :reason,
    ended_ms = :ended_ms
WHERE process_id = :process_id AND state IN ('starting', 'running');

-- name: process_ask_end
-- A process is asked to end.
UPDATE processes SET end_asked_ms = :now
WHERE process_id = :process_id AND ended_ms IS NULL AND end_asked_ms IS NULL;

-- name: process_ask_remains
-- What may be left of a lost process is to be ended.
UPDATE processes SET remains_asked_ms = :now WHERE process_id = :process_id AND state = 'lost';

-- name: process_remains_ended
-- What was left of a lost process has ended.
UPDATE processes SET remains_asked_ms = NULL WHERE process_id = :process_id;

-- name: processes_with_remains
-- Lost processes whose remains are to be ended.
SELECT process_id FROM processes INDEXED BY processes_with_remains
WHERE remains_asked_ms IS NOT NULL AND home = :home ORDER BY process_id;

-- name: process_exit_read
-- The model was shown how a process ended.
UPDATE processes SET exit_read_by = :by
WHERE process_id = :process_id AND ended_ms IS NOT NULL AND exit_read_by IS NULL;

-- name: watchers_disarm_of
-- Disarm all watchers of a process.
UPDATE watchers SET state = :after WHERE process_id = :process_id AND state = 'armed';

-- name: watchers_disarm_output
-- Disarm the watchers of a process's output.
UPDATE watchers SET state = :after
WHERE process_id = :process_id AND state = 'armed' AND kind IN ('match', 'every');

-- name: watchers_fire_of
-- Fire the watchers of a process's end.
UPDATE watchers SET state = :after, reports = reports + 1, reported_ms = :now
WHERE process_id = :process_id AND state = 'armed' AND kind IN ('exit', 'every');

-- name: watcher_insert
-- Arm a watcher of a process.
INSERT INTO watchers (process_id, kind, argument, state)
VALUES (:process_id, :kind, :argument, 'armed');

-- name: watcher_move
-- A watcher has examined more of the log, unless another write moved it first.
UPDATE watchers SET state = :after, log_offset = :log_offset, reports = :reports, noisy = :noisy,
                    reported_ms = CASE WHEN :is_heard = 1 THEN :now ELSE reported_ms END
WHERE watcher_id = :watcher_id AND state = 'armed' AND log_offset = :old_offset
    AND reports = :old_reports;

-- name: watchers_of_process
-- All watchers of a process.
SELECT {watcher}
FROM watchers WHERE process_id = :process_id ORDER BY watcher_id;

-- name: watchers_of_output
-- The armed watchers of the output of processes.
SELECT {watcher}
FROM watchers INDEXED BY watchers_armed
WHERE state = 'armed' AND kind IN ('match', 'every')
    AND EXISTS (SELECT 1 FROM processes AS p WHERE p.process_id = watchers.process_id
                AND p.home = :home)
ORDER BY reported_ms, watcher_id;

-- name: process_turn_log_size
-- The size of the log at the answer: output before it belongs to the turn that started the process.
UPDATE processes SET turn_log_size = :log_size
WHERE process_id = :process_id AND turn_id = :turn_id AND turn_log_size IS NULL;

-- name: processes_of_turn
-- The background processes that a turn has started.
SELECT process_id FROM processes
WHERE turn_id = :turn_id AND foreground = 0 AND agent = '' ORDER BY process_id;

-- name: processes_outdated
-- Processes that ended long ago, or are too many; oldest first. Not while the call has no result, or a
-- report waits, or is in an open turn.
SELECT process_id FROM processes INDEXED BY processes_ended
WHERE ended_ms IS NOT NULL AND home = :home AND (ended_ms < :before_ms OR ended_ms <= coalesce(
    (SELECT ended_ms FROM processes INDEXED BY processes_ended WHERE ended_ms IS NOT NULL
     AND home = :home ORDER BY ended_ms DESC LIMIT 1 OFFSET :kept_max), -1))
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
                    AND turns.closed_ms IS NULL AND turns.state <> 'answered'
                    AND calls.call_id = processes.exit_read_by)
    AND NOT EXISTS (SELECT 1 FROM agent_messages JOIN turns USING (turn_id)
                    WHERE agent_messages.process_id = processes.process_id
                    AND turns.closed_ms IS NULL)
    AND remains_asked_ms IS NULL
ORDER BY ended_ms LIMIT :limit;

-- name: watchers_delete_of
-- Delete the watchers of a process.
DELETE FROM watchers WHERE process_id = :process_id;

-- name: process_delete
-- Delete a process that has ended.
DELETE FROM processes WHERE process_id = :process_id AND ended_ms IS NOT NULL;

-- name: process_by_id
-- A process.
SELECT {process}
FROM processes WHERE process_id = :process_id;

-- name: process_by_call
-- The process of a call.
SELECT {process}
FROM processes WHERE turn_id = :turn_id AND call_id = :call_id;

-- name: processes_of_session
-- The processes of a session, newest first.
SELECT {process}
FROM processes WHERE session_id = :session_id AND agent = ''
ORDER BY process_id DESC LIMIT :limit;

-- name: processes_stranded
-- Processes that were begun for a turn that is over, with an unknown start.
SELECT process_id FROM processes INDEXED BY processes_alive
WHERE ended_ms IS NULL AND state = 'starting' AND home = :home
    AND turn_id IN (SELECT turn_id FROM turns WHERE closed_ms IS NOT NULL OR state = 'answered');

-- name: commands_running
-- Foreground commands of a home without an end, by their calls.
SELECT turn_id, call_id FROM processes INDEXED BY processes_alive
WHERE ended_ms IS NULL AND foreground = 1 AND home = :home;

-- name: commands_running_count
-- How many foreground commands of a home have no end.
SELECT count(*) FROM processes INDEXED BY processes_alive
WHERE ended_ms IS NULL AND foreground = 1 AND home = :home;

-- name: jobs_running_count
-- How many commands of a session run in the background.
SELECT count(*) FROM processes INDEXED BY processes_alive
WHERE ended_ms IS NULL AND session_id = :session_id AND foreground = 0 AND agent = '';

-- name: processes_not_ended
-- Every process of a home without an end.
SELECT {process}
FROM processes INDEXED BY processes_alive WHERE ended_ms IS NULL AND home = :home
ORDER BY process_id;

-- name: home_away
-- Since when a home has no boot that lives; NULL while it has one.
SELECT CASE WHEN count(*) = count(ended_ms) THEN coalesce(max(ended_ms), 0) END
FROM workers INDEXED BY workers_by_home WHERE home = :home;

-- name: processes_elsewhere
-- Processes without an end on homes that have no boot that lives, and since when.
SELECT p.process_id, s.lock_key,
       (SELECT max(w.ended_ms) FROM workers AS w INDEXED BY workers_by_home WHERE w.home = p.home)
FROM processes AS p INDEXED BY processes_alive JOIN sessions AS s USING (session_id)
WHERE p.ended_ms IS NULL AND p.home <> :home
    AND NOT EXISTS (SELECT 1 FROM workers AS w INDEXED BY workers_by_home
                    WHERE w.home = p.home AND w.ended_ms IS NULL)
ORDER BY p.process_id;

-- ── views ──────────────────────────────────────────────────────────────────────────────────────

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

-- name: move_state
-- Whether the rows of this database count, once they were moved.
SELECT move_id, state, place, at_ms FROM moves WHERE one = 1;

-- name: move_set
-- They count from now on, or no longer.
INSERT INTO moves (one, move_id, state, place, at_ms) VALUES (1, :move_id, :state, :place, :now)
ON CONFLICT (one) DO UPDATE SET move_id = :move_id, state = :state, place = :place, at_ms = :now;

-- name: newest_process
-- The highest id that a process ever had here.
SELECT coalesce(max(process_id), 0) FROM processes;

-- name: count_unheard
-- How many turns were set aside without the person being told.
SELECT count(*) FROM turns
WHERE closed_ms IS NULL AND state = 'suspended'
  AND rule IN ('person-not-allowed', 'channel-unknown');

-- name: count_held
-- How many deliveries are held.
SELECT count(*) FROM outbox WHERE settled_ms IS NULL AND state = 'held';

-- name: journal_newest_line
-- The newest line and when it was written.
SELECT seq, at_ms FROM journal ORDER BY seq DESC LIMIT 1;

-- name: worker_known
-- Whether the row of a boot exists, and is not another boot with the same number.
SELECT 1 FROM workers WHERE worker_id = :worker_id AND birth = :birth;

-- name: hold_insert
-- A start holds the outbox, once for each cause.
INSERT INTO holds (cause, gap, begun_ms) VALUES (:cause, :gap, :now) ON CONFLICT (cause) DO NOTHING;

-- name: gap_open
-- The gap of a database that went back in time, until the operator has decided.
SELECT gap FROM holds WHERE gap IS NOT NULL AND settled_ms IS NULL ORDER BY hold_id DESC LIMIT 1;

-- name: gaps_settle
-- Settle the gaps if nothing is held: the operator has decided.
UPDATE holds SET settled_ms = :now
WHERE gap IS NOT NULL AND settled_ms IS NULL AND NOT EXISTS (
    SELECT 1 FROM outbox INDEXED BY outbox_unsettled
    WHERE settled_ms IS NULL AND state = 'held');

-- name: tally_begin
-- The journal line of the start of a boot, searched from the newest on.
SELECT seq FROM journal WHERE subject = 'worker' AND number = :worker_id AND event = 'started'
ORDER BY seq DESC LIMIT 1;

-- name: tally_newest
-- The newest line that this boot has written. Where one gateway writes, all lines are its own.
SELECT coalesce(max(seq), :after) FROM journal
WHERE seq > :after AND (by_worker IS NULL OR by_worker = :worker_id);

-- name: tally_lines
-- Counts of the events after a line. Reasons only where they are labels.
SELECT j.subject, j.event, j.after,
       CASE j.subject WHEN 'message' THEN j.reason WHEN 'turn' THEN j.rule WHEN 'child' THEN j.reason END,
       s.channel, count(*)
FROM journal AS j LEFT JOIN sessions AS s ON s.session_id = j.session_id
WHERE j.seq > :after AND j.seq <= :newest
      AND (j.by_worker IS NULL OR j.by_worker = :worker_id)
GROUP BY 1, 2, 3, 4, 5;

-- name: tally_times
-- The durations of turns that ended after a line, of calls, and of the wait for answers: how many up to
-- each bound, and their sum. NULL is above all bounds.
WITH ended AS (
    SELECT j.after, s.channel, t.turn_id, t.opened_ms, t.closed_ms
    FROM journal AS j
    JOIN turns AS t ON t.turn_id = j.number
    JOIN sessions AS s ON s.session_id = t.session_id
    WHERE j.seq > :after AND j.seq <= :newest
      AND (j.by_worker IS NULL OR j.by_worker = :worker_id) AND j.subject = 'turn'
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
    WHERE j.seq > :after AND j.seq <= :newest
      AND (j.by_worker IS NULL OR j.by_worker = :worker_id) AND j.subject = 'step' AND j.event = 'result'
)
SELECT what, label, (SELECT min(value) FROM json_each(:bounds_ms) WHERE value >= ms),
       count(*), sum(ms)
FROM taken WHERE ms IS NOT NULL GROUP BY 1, 2, 3;

-- name: tally_calls
-- The outcomes of calls whose results were stored after a line, and what people decided about those
-- that needed approval.
SELECT c.tool, c.effect, c.outcome,
       CASE WHEN c.need <> 'approval' THEN NULL
            WHEN c.approved_ms IS NOT NULL THEN 'approved' ELSE 'denied' END,
       count(*)
FROM journal AS j
JOIN steps ON steps.seq = j.number
JOIN calls AS c ON c.turn_id = j.turn_id AND c.call_id = json_extract(steps.body, '$.call_id')
WHERE j.seq > :after AND j.seq <= :newest
      AND (j.by_worker IS NULL OR j.by_worker = :worker_id) AND j.subject = 'step' AND j.event = 'result'
GROUP BY 1, 2, 3, 4;

-- name: tally_now
-- Since when entries wait and deliveries are owed; how many are held, ambiguous, or run.
SELECT (SELECT min(received_ms) FROM inbox WHERE state = 'waiting'),
       (SELECT min(created_ms) FROM outbox INDEXED BY outbox_unsettled WHERE settled_ms IS NULL),
       (SELECT count(*) FROM outbox INDEXED BY outbox_unsettled
        WHERE settled_ms IS NULL AND state = 'held'),
       (SELECT count(*) FROM outbox INDEXED BY outbox_unsettled
        WHERE settled_ms IS NULL AND (ambiguous = 1 OR labelled = 1)),
       (SELECT count(*) FROM processes INDEXED BY processes_alive WHERE ended_ms IS NULL),
       (SELECT count(*) FROM children INDEXED BY children_open WHERE ended_ms IS NULL);

-- name: tally_boots
-- How many boots were killed or ended by a reboot.
SELECT ended_how, count(*) FROM workers WHERE ended_how IN ('killed', 'rebooted') GROUP BY ended_how;

-- name: count_waiting
-- How many entries wait in all sessions.
SELECT count(*) FROM inbox WHERE state = 'waiting';

-- name: count_unsettled
-- How many deliveries are owed in all.
SELECT count(*) FROM outbox WHERE settled_ms IS NULL;

-- name: count_sessions
-- How many sessions there are.
SELECT coalesce(max(session_id), 0) FROM sessions;

-- name: view_sessions
-- The newest sessions, or those before one. Of children only those at work.
SELECT session_id, created_ms, changed_ms FROM sessions
WHERE session_id < :before
    AND (aside NOT GLOB 'a*' OR EXISTS (SELECT 1 FROM children AS c
                                        WHERE c.own_session = sessions.session_id AND c.ended_ms IS NULL))
ORDER BY session_id DESC LIMIT :limit;

-- name: view_session
-- When a session was created and last changed.
SELECT session_id, created_ms, changed_ms FROM sessions WHERE session_id = :session_id;

-- name: view_turns
-- The newest turns of all sessions, or those before one.
SELECT {turn}
FROM turns WHERE turn_id < :before ORDER BY turn_id DESC LIMIT :limit;

-- name: view_turns_open
-- The same for turns that are not closed.
SELECT {turn}
FROM turns INDEXED BY turns_alive WHERE closed_ms IS NULL AND turn_id < :before
ORDER BY turn_id DESC LIMIT :limit;

-- name: view_entries
-- The newest entries of all sessions, or those before one.
SELECT {entry} FROM inbox WHERE entry_id < :before ORDER BY entry_id DESC LIMIT :limit;

-- name: view_entries_open
-- The same for entries that wait.
SELECT {entry} FROM inbox INDEXED BY inbox_waiting
WHERE state = 'waiting' AND entry_id < :before ORDER BY entry_id DESC LIMIT :limit;

-- name: view_deliveries
-- The newest deliveries to all sessions, or those before one.
SELECT {delivery}
FROM outbox WHERE delivery_id < :before ORDER BY delivery_id DESC LIMIT :limit;

-- name: view_deliveries_open
-- The same for deliveries that are owed.
SELECT {delivery}
FROM outbox INDEXED BY outbox_unsettled WHERE settled_ms IS NULL AND delivery_id < :before
ORDER BY delivery_id DESC LIMIT :limit;

-- name: view_deliveries_for
-- The deliveries about one entry: a command's reply, a notice that it waits or was refused.
SELECT {delivery}
FROM outbox WHERE session_id = :session_id
    AND cause IN ('command:' || :entry_id, 'queued:' || :entry_id, 'refused:' || :entry_id,
                  'declined:' || :entry_id, 'report:' || :entry_id)
ORDER BY delivery_id;

-- name: view_calls_of_turn
-- The calls of a turn, how they ended, and the codes of commands that were waited for.
SELECT {call}, outcome,
    (SELECT p.exit_code FROM processes AS p
     WHERE p.turn_id = calls.turn_id AND p.call_id = calls.call_id AND p.foreground = 1)
FROM calls WHERE turn_id = :turn_id ORDER BY place;

-- name: turn_messages
-- The messages of a turn, oldest first.
SELECT body FROM steps WHERE session_id = :session_id AND seq >= :first_seq AND turn_id = :turn_id
    AND kind = 'message' ORDER BY seq LIMIT :limit;

-- name: turn_retried_by
-- The key of the words that a turn asked again.
SELECT external_id FROM inbox WHERE turn_id = :turn_id AND source = 'retry' LIMIT 1;

-- name: view_turn_request
-- The words that opened a turn.
SELECT body FROM steps WHERE session_id = :session_id AND seq >= :first_seq AND turn_id = :turn_id
    AND kind = 'message' ORDER BY seq LIMIT 1;

-- name: turn_backlog_count
-- How many messages of a backlog a turn answers; 0 for other turns. The note behind them is one of its
-- first steps.
WITH begun AS (
    SELECT seq, kind, cause
    FROM (SELECT seq, turn_id, kind, cause FROM steps
          WHERE session_id = :session_id AND seq >= :first_seq ORDER BY seq LIMIT 40) AS first_steps
    WHERE turn_id = :turn_id)
SELECT count(*) FROM begun
WHERE kind = 'message' AND seq < (SELECT seq FROM begun WHERE kind = 'note' AND cause = 'backlog');

-- name: turn_first_report
-- The report that opened a turn.
SELECT body FROM steps WHERE session_id = :session_id AND seq >= :first_seq AND turn_id = :turn_id
    AND kind = 'note' AND cause GLOB 'entry:*' ORDER BY seq LIMIT 1;

-- name: view_processes
-- Background processes of all sessions: the running ones, then the newest that have ended.
SELECT {process}
FROM processes WHERE foreground = 0
ORDER BY ended_ms IS NOT NULL, process_id DESC LIMIT :limit;

-- name: view_reports_of
-- The reports about a process.
SELECT {entry} FROM inbox
WHERE source = 'process' AND account = '' AND external_id >= :first AND external_id < :behind
ORDER BY entry_id;

-- name: view_entry
-- A message.
SELECT {entry} FROM inbox WHERE entry_id = :entry_id;

-- name: view_entry_by_external_id
-- The newest message with an id of a platform. Channels and accounts may share ids. They are found one by
-- one, so that an index is used however long the inbox is.
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
SELECT {inbox.entry}
FROM named CROSS JOIN inbox ON inbox.source = named.source AND inbox.account = named.account
WHERE external_id = :external_id
ORDER BY entry_id DESC LIMIT 1;

-- name: view_entries_of_turn
-- The messages and reports of a turn.
SELECT {entry} FROM inbox WHERE turn_id = :turn_id ORDER BY entry_id;

-- name: view_delivery
-- A delivery.
SELECT {delivery} FROM outbox WHERE delivery_id = :delivery_id;

-- name: view_deliveries_of_turn
-- The deliveries of a turn.
SELECT {delivery}
FROM outbox WHERE turn_id = :turn_id ORDER BY delivery_id;

-- name: view_journal_of_turn
-- The journal lines of a turn.
SELECT {line}
FROM journal WHERE session_id = :session_id AND turn_id = :turn_id ORDER BY seq;

-- name: view_events
-- The journal lines of a chat after a line, with the words that belong to them. Of a child only what a
-- person is told.
SELECT {j.line}, s.channel, s.chat, s.thread, st.kind, st.body,
       i.body, i.sender, c.finished_ms - c.started_ms, o.cause, o.part, o.parts, o.text, o.choices, o.question, o.labelled,
       o.file, o.literal
FROM journal AS j
JOIN sessions AS s ON s.session_id = j.session_id
LEFT JOIN steps AS st ON j.subject = 'step' AND st.seq = j.number
LEFT JOIN inbox AS i ON j.subject = 'message' AND i.entry_id = j.number
LEFT JOIN calls AS c ON st.kind = 'result' AND c.turn_id = st.turn_id
    AND c.call_id = json_extract(st.body, '$.call_id')
LEFT JOIN outbox AS o ON j.subject = 'delivery' AND o.delivery_id = j.number
WHERE j.session_id IN (SELECT session_id FROM sessions WHERE channel = :channel AND chat = :chat)
    AND j.seq > :after AND (j.subject = 'delivery' OR s.aside NOT GLOB 'a*')
ORDER BY j.seq LIMIT :limit;

-- name: view_last_event
-- The newest journal line of a chat, deleted or not.
SELECT max(coalesce((SELECT max(seq) FROM journal WHERE session_id IN
               (SELECT session_id FROM sessions WHERE channel = :channel AND chat = :chat)), 0),
           coalesce((SELECT max(forgotten_seq) FROM sessions
                     WHERE channel = :channel AND chat = :chat), 0));

-- name: view_forgotten
-- The newest deleted journal line of a chat, and the first turn with lines after it.
SELECT coalesce(max(forgotten_seq), 0), coalesce((
    SELECT min(turn_id) FROM journal WHERE turn_id IS NOT NULL
        AND seq > (SELECT max(forgotten_seq) FROM sessions WHERE channel = :channel AND chat = :chat)
        AND session_id IN (SELECT session_id FROM sessions
                           WHERE channel = :channel AND chat = :chat)), 4611686018427387904)
FROM sessions WHERE channel = :channel AND chat = :chat;

-- name: view_said_before
-- What was said in a chat in turns before one, newest first.
SELECT st.seq, st.kind, st.body, st.at_ms, st.turn_id, s.thread
FROM sessions AS s JOIN steps AS st ON st.session_id = s.session_id
WHERE s.channel = :channel AND s.chat = :chat AND st.kind IN ('message', 'answer')
    AND st.turn_id < :before_turn AND s.aside NOT GLOB 'a*'
ORDER BY st.seq DESC LIMIT :limit;

-- name: view_chats_touched
-- Chats of a channel with events after a journal line.
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
SELECT {worker}
FROM workers WHERE worker_id < :before ORDER BY worker_id DESC LIMIT :limit;

-- name: view_journal
-- The newest lines of the journal, or those before one.
SELECT {line}
FROM journal WHERE seq < :before ORDER BY seq DESC LIMIT :limit;

-- name: view_journal_decided
-- Verdicts of recovery and events of boots, among the newest lines or those before one.
SELECT {line}
FROM journal
WHERE seq < :before AND seq > min(:before, (SELECT max(seq) FROM journal)) - :looked_at
    AND (subject = 'turn' AND rule IS NOT NULL OR subject = 'worker')
ORDER BY seq DESC LIMIT :limit;

-- name: view_turns_before
-- The newest turns of a session before one of them.
SELECT {turn}
FROM turns WHERE session_id = :session_id AND turn_id < :before
ORDER BY turn_id DESC LIMIT :limit;

-- name: view_sessions_named
-- Sessions whose chat begins with a text. The channels are found one by one, so that an index is used
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
-- Sessions of a channel with recent events, and when: from the newest journal lines, and for chats whose
-- lines were deleted from the newest turns. What works beside a conversation counts as part of it.
SELECT s.session_id, s.chat, s.thread, max(touched.at_ms), max(touched.seq) AS newest
FROM (SELECT session_id, at_ms, seq, 0 AS turn_id FROM journal
      WHERE seq > (SELECT max(seq) FROM journal) - :looked_at
      UNION ALL
      SELECT session_id, changed_ms, 0, turn_id FROM turns
      WHERE turn_id > (SELECT max(turn_id) FROM turns) - :looked_at) AS touched
JOIN sessions AS w ON w.session_id = touched.session_id
JOIN sessions AS s ON s.channel = w.channel AND s.chat = w.chat AND s.thread = w.thread AND s.aside = ''
WHERE s.channel = :channel
GROUP BY s.session_id ORDER BY newest DESC, max(touched.turn_id) DESC LIMIT :limit;

-- name: view_turn_first
-- The first turn of a session.
SELECT {turn}
FROM turns WHERE session_id = :session_id ORDER BY turn_id LIMIT 1;

-- name: view_turns_waiting
-- Turns that wait for an answer, and when their question expires.
SELECT turn_id, expires_ms FROM turns INDEXED BY turns_alive
WHERE closed_ms IS NULL AND state = 'waiting' ORDER BY turn_id LIMIT :limit;

-- name: view_steps_of_turn
-- The newest steps of a turn.
SELECT {step}, cause FROM steps
WHERE session_id = :session_id AND seq >= :first_seq AND turn_id = :turn_id
ORDER BY seq DESC LIMIT :limit;

-- name: view_call_need
-- What a call needs from a person.
SELECT need FROM calls WHERE turn_id = :turn_id AND call_id = :call_id;

-- name: retention_line_window
-- The end of the next window of lines.
SELECT max(seq) FROM (SELECT seq FROM journal WHERE seq > :after ORDER BY seq LIMIT :limit) AS looked_at;

-- name: retention_lines
-- Lines that can be deleted: old, of turns that closed as long ago, in sessions with nothing open. A line
-- of an accepted delivery stays while a delivery is owed that was last tried before it: it shows that the
-- channel works.
SELECT j.seq FROM journal AS j LEFT JOIN turns AS t ON t.turn_id = j.turn_id
WHERE j.seq > :after AND j.seq <= :upto AND j.seq < :boot_seq
    AND j.seq < (SELECT max(seq) FROM journal) AND j.at_ms < :before_ms
    AND (j.turn_id IS NULL OR t.closed_ms < :before_ms)
    AND NOT (j.event = 'delivered' AND j.seq > :tried_seq)
    AND NOT EXISTS (SELECT 1 FROM turns AS open INDEXED BY one_open_turn
                    WHERE open.session_id = j.session_id
                    AND open.closed_ms IS NULL AND open.state <> 'answered')
    AND NOT EXISTS (SELECT 1 FROM inbox INDEXED BY inbox_waiting
                    WHERE inbox.session_id = j.session_id AND inbox.state = 'waiting')
    AND NOT EXISTS (SELECT 1 FROM outbox AS owed INDEXED BY outbox_unsettled
                    WHERE owed.session_id = j.session_id AND owed.settled_ms IS NULL)
    AND NOT EXISTS (SELECT 1 FROM processes INDEXED BY processes_alive
                    WHERE processes.session_id = j.session_id AND processes.ended_ms IS NULL)
ORDER BY j.seq;

-- name: retention_tried
-- The earliest end of an attempt of a delivery that is owed and not held.
SELECT coalesce(min(tried_seq), 4611686018427387904) FROM outbox INDEXED BY outbox_unsettled
WHERE settled_ms IS NULL AND attempts > 0 AND state <> 'held';

-- name: retention_lines_still
-- Which of these lines still belong to sessions with nothing open.
SELECT j.seq FROM json_each(:ids) AS each JOIN journal AS j ON j.seq = each.value
WHERE NOT EXISTS (SELECT 1 FROM turns AS open INDEXED BY one_open_turn
                    WHERE open.session_id = j.session_id
                    AND open.closed_ms IS NULL AND open.state <> 'answered')
    AND NOT EXISTS (SELECT 1 FROM inbox INDEXED BY inbox_waiting
                    WHERE inbox.session_id = j.session_id AND inbox.state = 'waiting')
    AND NOT EXISTS (SELECT 1 FROM outbox AS owed INDEXED BY outbox_unsettled
                    WHERE owed.session_id = j.session_id AND owed.settled_ms IS NULL)
    AND NOT EXISTS (SELECT 1 FROM processes INDEXED BY processes_alive
                    WHERE processes.session_id = j.session_id AND processes.ended_ms IS NULL);

-- name: retention_mark
-- Store in each session up to which line its lines were deleted.
UPDATE sessions SET forgotten_seq = max(forgotten_seq, gone.seq)
FROM (SELECT j.session_id, max(j.seq) AS seq
      FROM json_each(:ids) AS each JOIN journal AS j ON j.seq = each.value
      GROUP BY j.session_id) AS gone
WHERE sessions.session_id = gone.session_id;

-- name: retention_lines_delete
-- Delete lines.
DELETE FROM journal WHERE seq IN (SELECT value FROM json_each(:ids));

-- name: retention_delivery_window
-- The end of the next window of deliveries.
SELECT max(delivery_id) FROM
    (SELECT delivery_id FROM outbox WHERE delivery_id > :after ORDER BY delivery_id LIMIT :limit)
    AS looked_at;

-- name: retention_deliveries
-- Deliveries that can be deleted. The newest one with an id of the platform stays in each session: a later
-- delivery of unknown outcome is looked for behind it.
WITH looked_at AS MATERIALIZED (
    SELECT o.delivery_id, o.session_id FROM outbox AS o LEFT JOIN turns AS t ON t.turn_id = o.turn_id
    WHERE o.delivery_id > :after AND o.delivery_id <= :upto AND o.settled_ms < :before_ms
        AND (o.turn_id IS NULL OR t.closed_ms < :before_ms)
        AND o.delivery_id < (SELECT max(delivery_id) FROM outbox)
        AND NOT EXISTS (SELECT 1 FROM turns AS open INDEXED BY one_open_turn
                        WHERE open.session_id = o.session_id
                        AND open.closed_ms IS NULL AND open.state <> 'answered')
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
-- Which of these deliveries still belong to sessions with nothing open, and to no notice that stays.
SELECT o.delivery_id FROM json_each(:ids) AS each JOIN outbox AS o ON o.delivery_id = each.value
WHERE NOT EXISTS (SELECT 1 FROM turns AS open INDEXED BY one_open_turn
                    WHERE open.session_id = o.session_id
                    AND open.closed_ms IS NULL AND open.state <> 'answered')
    AND NOT EXISTS (SELECT 1 FROM inbox INDEXED BY inbox_waiting
                    WHERE inbox.session_id = o.session_id AND inbox.state = 'waiting')
    AND NOT EXISTS (SELECT 1 FROM outbox AS owed INDEXED BY outbox_unsettled
                    WHERE owed.session_id = o.session_id AND owed.settled_ms IS NULL)
    AND NOT EXISTS (SELECT 1 FROM processes INDEXED BY processes_alive
                    WHERE processes.session_id = o.session_id AND processes.ended_ms IS NULL)
    AND NOT EXISTS (SELECT 1 FROM undelivered AS u WHERE u.delivery_id = o.delivery_id
                    AND u.notice_id NOT IN (SELECT value FROM json_each(:ids)));

-- name: retention_notices_delete
-- Delete what the notices among these deliveries told of.
DELETE FROM undelivered WHERE notice_id IN (SELECT value FROM json_each(:ids));

-- name: retention_deliveries_delete
-- Delete deliveries.
DELETE FROM outbox WHERE delivery_id IN (SELECT value FROM json_each(:ids));

-- name: turns_in_flight
-- Turns that are queued or running, oldest first.
SELECT turn_id, session_id, anchor FROM turns INDEXED BY turns_alive
WHERE closed_ms IS NULL AND state IN ('queued', 'running') ORDER BY turn_id LIMIT :limit;

-- name: browser_insert
-- A browser is let in.
INSERT INTO browsers (cookie_hash, proof_hash, label, made_ms, used_ms, expires_ms)
VALUES (:cookie_hash, :proof_hash, :label, :now, :now, :expires_ms);

-- name: browser_by_id
-- One browser.
SELECT browser_id, label, made_ms, used_ms, expires_ms, revoked_ms FROM browsers
WHERE browser_id = :browser_id;

-- name: browser_by_cookie
-- The browser with a cookie, while it is let in.
SELECT browser_id, label, made_ms, used_ms, expires_ms, revoked_ms, proof_hash FROM browsers
WHERE cookie_hash = :cookie_hash AND revoked_ms IS NULL AND expires_ms > :now
    AND used_ms > :now - :idle_ms;

-- name: browsers_let_in
-- The browsers that are let in now, the one that was used last first.
SELECT browser_id, label, made_ms, used_ms, expires_ms, revoked_ms FROM browsers
WHERE revoked_ms IS NULL AND expires_ms > :now AND used_ms > :now - :idle_ms
ORDER BY used_ms DESC, browser_id DESC;

-- name: browser_use
-- A browser was used.
UPDATE browsers SET used_ms = :now WHERE browser_id = :browser_id AND revoked_ms IS NULL;

-- name: browser_revoke
-- A browser is logged out.
UPDATE browsers SET revoked_ms = :now
WHERE browser_id = :browser_id AND revoked_ms IS NULL AND expires_ms > :now
    AND used_ms > :now - :idle_ms;

-- name: browsers_revoke_all
-- No browser is let in any more.
UPDATE browsers SET revoked_ms = :now
WHERE revoked_ms IS NULL AND expires_ms > :now AND used_ms > :now - :idle_ms;

-- name: browsers_give_way
-- Only so many are let in: those that were used least lately go.
UPDATE browsers SET revoked_ms = :now WHERE browser_id IN (
    SELECT browser_id FROM browsers
    WHERE revoked_ms IS NULL AND expires_ms > :now AND used_ms > :now - :idle_ms
    ORDER BY used_ms DESC, browser_id DESC LIMIT -1 OFFSET :kept);

-- name: browsers_forget
-- Browsers that have been out for long; never the newest row.
DELETE FROM browsers
WHERE browser_id < :browser_id AND coalesce(revoked_ms, min(expires_ms, used_ms)) < :before_ms;

-- name: browsers_end
-- Of a past that was restored: what was revoked since must not be let in again.
UPDATE browsers SET revoked_ms = used_ms WHERE revoked_ms IS NULL;

-- name: minutes_place
-- Up to which line the journal is counted; before the first minute, the newest line of all.
SELECT coalesce((SELECT max(upto_seq) FROM minutes), (SELECT max(seq) FROM journal), 0);

-- name: minutes_upto
-- The end of the next window of lines.
SELECT coalesce(max(seq), :after) FROM
    (SELECT seq FROM journal WHERE seq > :after ORDER BY seq LIMIT :limit) AS following;

-- name: minutes_counts
-- How many messages came and how many errors there were, in the minutes of these lines.
SELECT at_ms / 60000,
    count(*) FILTER (WHERE subject = 'message' AND event = 'accepted' AND after = 'message'),
    count(*) FILTER (WHERE (subject = 'turn' AND after = 'failed')
                     OR (subject = 'delivery' AND after IN ('rejected', 'abandoned')))
FROM journal WHERE seq > :after AND seq <= :upto GROUP BY 1;

-- name: minutes_latencies
-- How long turns took that were answered in these lines.
SELECT j.at_ms / 60000, j.at_ms - t.opened_ms FROM journal AS j JOIN turns AS t ON t.turn_id = j.turn_id
WHERE j.seq > :after AND j.seq <= :upto AND j.subject = 'turn' AND j.after = 'answered';

-- name: minutes_heard
-- Channels with messages in these lines, and when each had the last one.
SELECT i.source, max(j.at_ms) FROM journal AS j JOIN inbox AS i ON i.entry_id = j.number
WHERE j.seq > :after AND j.seq <= :upto AND j.subject = 'message' AND j.event = 'accepted'
    AND i.kind IN ('message', 'command') AND i.source <> 'retry'
GROUP BY i.source;

-- name: minute_add
-- Add to a minute.
INSERT INTO minutes (minute, upto_seq, messages, errors, latency_p50_ms, latency_p95_ms)
VALUES (:minute, :upto, :messages, :errors, :median, :slowest)
ON CONFLICT (minute) DO UPDATE SET upto_seq = max(minutes.upto_seq, excluded.upto_seq),
    messages = minutes.messages + excluded.messages, errors = minutes.errors + excluded.errors,
    latency_p50_ms = coalesce(max(minutes.latency_p50_ms, excluded.latency_p50_ms),
                              minutes.latency_p50_ms, excluded.latency_p50_ms),
    latency_p95_ms = coalesce(max(minutes.latency_p95_ms, excluded.latency_p95_ms),
                              minutes.latency_p95_ms, excluded.latency_p95_ms);

-- name: minute_measure
-- What was measured in a minute, beside what is counted.
UPDATE minutes SET tokens = :tokens, heard = :heard, memory_bytes = :memory_bytes,
    store_bytes = :store_bytes
WHERE minute = :minute;

-- name: minutes_forget
-- Minutes that no chart shows any more.
DELETE FROM minutes WHERE minute < :minute;

-- name: view_minutes
-- The minutes from one on.
SELECT minute, messages, errors, latency_p50_ms, latency_p95_ms, tokens, heard, memory_bytes, store_bytes
FROM minutes WHERE minute >= :minute ORDER BY minute;

-- ── schedules ──────────────────────────────────────────────────────────────────────────────────

-- name: schedule_insert
-- A new standing order. What made it makes no second one.
INSERT INTO schedules (session_id, person, name, kind, expression, zone, prompt, command, place,
                       late, late_ms, overlap, quiet, state, due_ms, zone_rules, created_by,
                       created_ms, changed_ms, plain)
VALUES (:session_id, :person, :name, :kind, :expression, :zone, :prompt, :command, :place,
        :late, :late_ms, :overlap, :quiet, 'armed', :due_ms, :zone_rules, :created_by, :now, :now, :plain)
ON CONFLICT (created_by) DO NOTHING;

-- name: schedule_by_id
-- A schedule.
SELECT {schedule} FROM schedules WHERE schedule_id = :schedule_id;

-- name: schedule_by_maker
-- The schedule that a call or a command has made.
SELECT {schedule} FROM schedules WHERE created_by = :created_by;

-- name: schedule_key
-- The key of a schedule's session.
SELECT lock_key FROM sessions
WHERE session_id = (SELECT session_id FROM schedules WHERE schedule_id = :schedule_id);

-- name: schedule_move
-- A schedule moves from one state to another, or is in the same with another due time.
UPDATE schedules SET state = :after, reason = :reason, due_ms = :due_ms, again_of = :again_of,
    tries = :tries, zone_rules = :zone_rules, recheck = 0, changed_ms = :now
WHERE schedule_id = :schedule_id AND state = :before;

-- name: schedule_reorder
-- The order is another one from now on.
UPDATE schedules SET name = :name, kind = :kind, expression = :expression, zone = :zone,
    prompt = :prompt, command = :command, place = :place, late = :late, late_ms = :late_ms,
    overlap = :overlap, quiet = :quiet, plain = :plain, revision = revision + 1, failures = 0, alerted_ms = NULL
WHERE schedule_id = :schedule_id;

-- name: schedule_works_in
-- Where the schedule works from now on.
UPDATE schedules SET own_session = :own_session WHERE schedule_id = :schedule_id;

-- name: schedule_without_thread
-- Why the schedule has no thread of its own; NULL if it has.
UPDATE schedules SET thread_why = :why WHERE schedule_id = :schedule_id;

-- name: thread_begun_with
-- The words that a thread was to begin with, if that was tried.
SELECT text FROM outbox WHERE session_id = :session_id AND cause = :cause AND attempts > 0 LIMIT 1;

-- name: reminders_may_be_told
-- Whether a session has a schedule of the kind that `reminders_told` looks at.
SELECT 1 FROM schedules INDEXED BY schedules_plain
WHERE session_id = :session_id AND plain = 1 AND changed_ms >= :since_ms LIMIT 1;

-- name: reminders_told
-- What was told in a session without the model, since a moment and since its newest turn was opened.
SELECT s.schedule_id, s.name, o.due_ms, s.zone
FROM schedules AS s INDEXED BY schedules_plain JOIN occasions AS o ON o.schedule_id = s.schedule_id
WHERE s.session_id = :session_id AND s.plain = 1 AND s.changed_ms >= :since_ms
    AND o.decided_ms >= :since_ms AND o.verdict IN ('fired', 'late')
    AND o.decided_ms >= coalesce((SELECT t.opened_ms FROM turns AS t WHERE t.session_id = :session_id
                                  ORDER BY t.turn_id DESC LIMIT 1), 0)
ORDER BY o.decided_ms, o.schedule_id LIMIT :limit;

-- name: schedules_of_chats
-- The schedules of sessions that were not removed.
SELECT {schedule} FROM schedules WHERE state <> 'removed'
    AND session_id IN (SELECT value FROM json_each(:sessions));

-- name: schedules_erase_chats
-- What was ordered in sessions is emptied.
UPDATE schedules SET name = :erased, prompt = CASE WHEN prompt = '' THEN '' ELSE :erased END,
    command = CASE WHEN command = '' THEN '' ELSE :erased END
WHERE session_id IN (SELECT value FROM json_each(:sessions));

-- name: goals_erase_chats
-- What was wanted in sessions is emptied.
UPDATE goals SET text = :erased, criteria = '[]', reason = NULL
WHERE session_id IN (SELECT value FROM json_each(:sessions));

-- name: schedule_reckoned
-- Another due time by other rules of zones, or after the clock went back.
UPDATE schedules SET due_ms = :due_ms, zone_rules = :zone_rules, recheck = 0
WHERE schedule_id = :schedule_id AND due_ms IS NOT NULL;

-- name: schedule_counted
-- How often it failed in a row.
UPDATE schedules SET failures = :failures, alerted_ms = :alerted_ms WHERE schedule_id = :schedule_id;

-- name: schedules_due
-- Schedules of these channels whose time has come, oldest first.
SELECT {s.schedule}, c.lock_key, c.channel
FROM schedules AS s INDEXED BY schedules_due JOIN sessions AS c USING (session_id)
WHERE s.due_ms IS NOT NULL AND s.due_ms <= :now
    AND c.channel IN (SELECT value FROM json_each(:channels))
ORDER BY s.due_ms LIMIT :limit;

-- name: schedules_next_due
-- When the next schedule of these channels is due.
SELECT s.due_ms
FROM schedules AS s INDEXED BY schedules_due JOIN sessions AS c USING (session_id)
WHERE s.due_ms IS NOT NULL AND c.channel IN (SELECT value FROM json_each(:channels))
ORDER BY s.due_ms LIMIT 1;

-- name: schedules_outdated
-- Armed schedules whose due time was reckoned by other rules of zones are reckoned again.
UPDATE schedules SET recheck = 1
WHERE due_ms IS NOT NULL AND kind <> 'every' AND zone_rules <> :zone_rules;

-- name: schedules_recheck
-- The clock went back: due times are reckoned again.
UPDATE schedules SET recheck = 1 WHERE due_ms IS NOT NULL AND again_of IS NULL AND kind <> 'at';

-- name: schedules_to_reckon
-- Schedules whose due time is reckoned again.
SELECT {s.schedule}, c.lock_key
FROM schedules AS s INDEXED BY schedules_recheck JOIN sessions AS c USING (session_id)
WHERE s.recheck = 1 ORDER BY s.schedule_id LIMIT :limit;

-- name: schedules_of_session
-- The schedules of a session that were not removed, newest first.
SELECT {schedule} FROM schedules WHERE session_id = :session_id AND state <> 'removed'
ORDER BY schedule_id DESC LIMIT :limit;

-- name: schedules_all
-- All schedules that were not removed, newest first.
SELECT {schedule} FROM schedules WHERE state <> 'removed' ORDER BY schedule_id DESC LIMIT :limit;

-- name: schedules_of_person
-- How many schedules of a person on a channel may still do something.
SELECT count(*) FROM schedules WHERE person = :person AND state IN ('armed', 'paused', 'disabled')
    AND session_id IN (SELECT session_id FROM sessions WHERE channel = :channel);

-- name: schedules_counted
-- How many schedules there are, by state.
SELECT state, count(*) FROM schedules GROUP BY state;

-- name: occasion_insert
-- What became of a due time. One that is decided stays decided.
INSERT INTO occasions (schedule_id, due_ms, revision, verdict, rule, count, entry_id, decided_ms)
VALUES (:schedule_id, :due_ms, :revision, :verdict, :rule, :count, :entry_id, :now)
ON CONFLICT (schedule_id, due_ms) DO NOTHING;

-- name: occasion_again
-- Another entry for the same due time.
UPDATE occasions SET verdict = :verdict, rule = :rule, entry_id = :entry_id
WHERE schedule_id = :schedule_id AND due_ms = :due_ms;

-- name: occasion_decided
-- Whether a due time was decided.
SELECT 1 FROM occasions WHERE schedule_id = :schedule_id AND due_ms = :due_ms;

-- name: occasion_decided_before
-- The newest due time of a span that was decided. What a person asked for is at no due time.
SELECT due_ms FROM occasions
WHERE schedule_id = :schedule_id AND due_ms >= :from_ms AND due_ms < :until_ms
    AND rule <> 'run-now'
ORDER BY due_ms DESC LIMIT 1;

-- name: occasion_open
-- The entry or the turn of one of the newest occasions that is still open.
SELECT i.entry_id, i.turn_id
FROM (SELECT entry_id FROM occasions WHERE schedule_id = :schedule_id AND entry_id IS NOT NULL
      ORDER BY due_ms DESC LIMIT 20) AS o
JOIN inbox AS i ON i.entry_id = o.entry_id
LEFT JOIN turns AS t ON t.turn_id = i.turn_id
WHERE i.state = 'waiting' OR (t.closed_ms IS NULL AND t.state <> 'answered') LIMIT 1;

-- name: occasions_of
-- The newest occasions of a schedule, with the turn of each.
SELECT o.schedule_id, o.due_ms, o.revision, o.verdict, o.rule, o.count, o.decided_ms, o.entry_id,
       i.turn_id
FROM occasions AS o LEFT JOIN inbox AS i ON i.entry_id = o.entry_id
WHERE o.schedule_id = :schedule_id ORDER BY o.due_ms DESC LIMIT :limit;

-- name: occasion_of_turn
-- The schedule and the due time that a turn was opened for.
SELECT o.schedule_id, o.due_ms, i.external_id
FROM inbox AS i INDEXED BY inbox_by_turn JOIN occasions AS o ON o.entry_id = i.entry_id
WHERE i.turn_id = :turn_id AND i.kind = 'occasion' LIMIT 1;

-- name: turn_occasion
-- The words of the occasion that a turn was opened for.
SELECT body FROM inbox INDEXED BY inbox_by_turn
WHERE turn_id = :turn_id AND kind = 'occasion' LIMIT 1;

-- name: occasions_waiting
-- The occasions of a session that wait in its inbox, with their schedules.
SELECT {s.schedule}, i.entry_id, o.due_ms
FROM inbox AS i INDEXED BY inbox_waiting
JOIN occasions AS o ON o.entry_id = i.entry_id
JOIN schedules AS s ON s.schedule_id = o.schedule_id
WHERE i.session_id = :session_id AND i.state = 'waiting' AND i.kind = 'occasion'
ORDER BY i.entry_id;

-- name: turn_reached_model
-- Whether a turn has a reply of the model.
SELECT 1 FROM steps WHERE session_id = :session_id AND seq >= :first_seq AND turn_id = :turn_id
    AND kind IN ('reply', 'answer') LIMIT 1;

-- name: turn_begun_by
-- The kind and the source of the first entry of a turn.
SELECT kind, source FROM inbox INDEXED BY inbox_by_turn WHERE turn_id = :turn_id
ORDER BY entry_id LIMIT 1;

-- name: occasions_forget
-- Old rows of what became of due times go. The newest of each schedule stay.
DELETE FROM occasions WHERE decided_ms < :before_ms AND schedule_id = :schedule_id
    AND due_ms < (SELECT max(due_ms) FROM occasions AS o WHERE o.schedule_id = :schedule_id)
    AND NOT EXISTS (SELECT 1 FROM inbox AS i JOIN turns AS t ON t.turn_id = i.turn_id
                    WHERE i.entry_id = occasions.entry_id AND t.closed_ms IS NULL);

-- name: schedules_with_old
-- Schedules after this one that have old rows.
SELECT DISTINCT schedule_id FROM occasions
WHERE schedule_id > :after AND decided_ms < :before_ms ORDER BY schedule_id LIMIT :limit;

-- name: zone_of_person
-- The zone that a person told; '' if the person was only asked.
SELECT zone FROM zones WHERE channel = :channel AND person = :person;

-- name: zone_asked
-- A person is asked for a zone.
INSERT INTO zones (channel, person, zone, told) VALUES (:channel, :person, '', 0)
ON CONFLICT (channel, person) DO NOTHING;

-- name: zone_set
-- A person tells a zone.
INSERT INTO zones (channel, person, zone, told) VALUES (:channel, :person, :zone, 1)
ON CONFLICT (channel, person) DO UPDATE SET zone = excluded.zone, told = 1;

-- name: zone_heard
-- A platform tells the zone of a person, who has not told one.
INSERT INTO zones (channel, person, zone, told) VALUES (:channel, :person, :zone, 0)
ON CONFLICT (channel, person) DO UPDATE SET zone = excluded.zone WHERE zones.told = 0;

-- name: schedules_erase
-- What a person ordered is emptied.
UPDATE schedules SET name = :erased, prompt = CASE WHEN prompt = '' THEN '' ELSE :erased END,
    command = CASE WHEN command = '' THEN '' ELSE :erased END
WHERE person = :person
    AND session_id IN (SELECT session_id FROM sessions WHERE channel = :channel);

-- name: schedules_to_erase
-- The schedules of a person that were not removed.
SELECT {schedule} FROM schedules WHERE person = :person AND state <> 'removed'
    AND session_id IN (SELECT session_id FROM sessions WHERE channel = :channel);

-- name: zone_forget
-- The zone of a person goes.
DELETE FROM zones WHERE channel = :channel AND person = :person;

-- ── goals ──────────────────────────────────────────────────────────────────────────────────────

-- name: goal_insert
-- A new standing goal.
INSERT INTO goals (session_id, generation, person, text, state, steps_max, tokens_max, created_by,
                   created_ms, changed_ms)
VALUES (:session_id, :generation, :person, :text, 'active', :steps_max, :tokens_max, :created_by,
        :now, :now);

-- name: goal_by_id
-- A goal.
SELECT {goal} FROM goals WHERE goal_id = :goal_id;

-- name: goal_of_session
-- The goal of a session that has not ended.
SELECT {goal} FROM goals INDEXED BY one_goal
WHERE session_id = :session_id AND state NOT IN ('done', 'cleared');

-- name: goal_first_waits
-- The first step of a goal, while it waits behind what was under way when the goal was set.
SELECT entry_id FROM inbox INDEXED BY inbox_waiting
WHERE session_id = :session_id AND state = 'waiting' AND kind = 'goal' AND source = :source
    AND external_id = :external_id;

-- name: goal_newest
-- The newest goal of a session, ended or not.
SELECT {goal} FROM goals WHERE session_id = :session_id ORDER BY goal_id DESC LIMIT 1;

-- name: goals_all
-- All goals, newest first.
SELECT {goal} FROM goals ORDER BY goal_id DESC LIMIT :limit;

-- name: goals_counted
-- How many goals there are, by state.
SELECT state, count(*) FROM goals GROUP BY state;

-- name: goal_key
-- The key of a goal's session.
SELECT lock_key FROM sessions
WHERE session_id = (SELECT session_id FROM goals WHERE goal_id = :goal_id);

-- name: goal_move
-- A goal moves from one state to another. What it waited for, and who judged it, is over.
UPDATE goals SET state = :after, rule = :rule, reason = :reason, wait_process = :wait_process,
    wait_until_ms = :wait_until_ms, worker_id = NULL, tries = 0, not_before_ms = :not_before_ms,
    revision = revision + :revised, generation = :generation,
    judged_turn = coalesce(:judged_turn, judged_turn), changed_ms = :now
WHERE goal_id = :goal_id AND state = :before;

-- name: goal_stepped
-- The goal begins a step by itself.
UPDATE goals SET step = step + 1, unreadable = 0 WHERE goal_id = :goal_id;

-- name: goal_spent
-- Tokens that were used for the goal.
UPDATE goals SET tokens = tokens + :tokens WHERE goal_id = :goal_id;

-- name: goal_criteria
-- What must be true for the goal to be reached. A judge that thinks about it has not seen that.
UPDATE goals SET criteria = :criteria, revision = revision + 1, worker_id = NULL, epoch = epoch + 1
WHERE goal_id = :goal_id;

-- name: goal_renewed
-- A person lets the goal go on: its bounds count from here.
UPDATE goals SET steps_max = step + :steps_max, tokens_max = tokens + :tokens_max, unreadable = 0
WHERE goal_id = :goal_id;

-- name: goals_to_judge
-- Goals that are to be judged, and that no living worker judges.
SELECT {g.goal}, c.lock_key, c.channel
FROM goals AS g INDEXED BY goals_judging JOIN sessions AS c USING (session_id)
WHERE g.state = 'judging' AND g.not_before_ms <= :now
    AND (g.worker_id IS NULL OR EXISTS (SELECT 1 FROM workers AS w WHERE w.worker_id = g.worker_id
                                        AND w.ended_ms IS NOT NULL))
ORDER BY g.not_before_ms, g.goal_id LIMIT :limit;

-- name: goals_next_judged
-- When the next goal is to be judged that no living worker judges.
SELECT g.not_before_ms FROM goals AS g INDEXED BY goals_judging
WHERE g.state = 'judging'
    AND (g.worker_id IS NULL OR EXISTS (SELECT 1 FROM workers AS w WHERE w.worker_id = g.worker_id
                                        AND w.ended_ms IS NOT NULL))
ORDER BY g.not_before_ms LIMIT 1;

-- name: goal_claim
-- One worker judges. From here on every write of an earlier epoch touches no row.
UPDATE goals SET worker_id = :worker_id, epoch = epoch + 1
WHERE goal_id = :goal_id AND state = 'judging' AND epoch = :epoch;

-- name: goal_held
-- Whether a claim on a goal is valid.
SELECT 1 FROM goals WHERE goal_id = :goal_id AND epoch = :epoch AND state = 'judging'
    AND worker_id = :worker_id;

-- name: goal_try_later
-- The judge gave no verdict: it is asked again after a wait.
UPDATE goals SET worker_id = NULL, tries = :tries, unreadable = :unreadable,
    not_before_ms = :not_before_ms, reason = :reason
WHERE goal_id = :goal_id AND epoch = :epoch AND state = 'judging';

-- name: goals_to_wake
-- Goals that wait for what has come: a time, or the end of a process.
SELECT {g.goal}, c.lock_key
FROM goals AS g INDEXED BY goals_waiting JOIN sessions AS c USING (session_id)
WHERE g.state = 'waiting'
    AND (g.wait_until_ms <= :now
         OR (g.wait_process IS NOT NULL
             AND NOT EXISTS (SELECT 1 FROM processes AS p
                             WHERE p.process_id = g.wait_process AND p.ended_ms IS NULL)))
ORDER BY g.goal_id LIMIT :limit;

-- name: goals_next_wake
-- When the next goal that waits for a time is due.
SELECT min(wait_until_ms) FROM goals INDEXED BY goals_waiting WHERE state = 'waiting';

-- name: turn_tokens
-- The tokens of a turn.
SELECT coalesce(sum(coalesce(json_extract(body, '$.tokens_in'), 0)
                    + coalesce(json_extract(body, '$.tokens_out'), 0)), 0)
FROM steps WHERE session_id = :session_id AND seq >= :first_seq AND turn_id = :turn_id
    AND kind IN ('reply', 'answer');

-- name: goal_evidence
-- The newest steps of a session that say what was done.
SELECT {step} FROM steps
WHERE session_id = :session_id AND kind IN ('message', 'answer', 'result') AND seq >= :first_seq
ORDER BY seq DESC LIMIT :limit;

-- name: goals_erase
-- What a person wanted is emptied.
UPDATE goals SET text = :erased, criteria = '[]', reason = NULL
WHERE person = :person
    AND session_id IN (SELECT session_id FROM sessions WHERE channel = :channel);

-- name: goals_to_erase
-- The goals of a person that have not ended.
SELECT {goal} FROM goals WHERE person = :person AND state NOT IN ('done', 'cleared')
    AND session_id IN (SELECT session_id FROM sessions WHERE channel = :channel);

-- ── children ───────────────────────────────────────────────────────────────────────────────────

-- name: child_insert
-- A turn gives work away. It has not begun.
INSERT INTO children (session_id, generation, turn_id, call_id, person, name, task, depth, state, made_ms)
VALUES (:session_id, :generation, :turn_id, :call_id, :person, :name, :task, :depth, 'waiting', :now);

-- name: child_by_call
-- The child that a call made.
SELECT {child} FROM children WHERE turn_id = :turn_id AND call_id = :call_id;

-- name: child_by_id
-- A child.
SELECT {child} FROM children WHERE child_id = :child_id;

-- name: child_turn
-- The newest turn of a child; the turn that made it, before it has begun.
SELECT coalesce((SELECT max(t.turn_id) FROM turns AS t WHERE t.session_id = c.own_session), c.turn_id)
FROM children AS c WHERE c.child_id = :child_id;

-- name: child_in
-- The child that works in a session.
SELECT {child} FROM children WHERE own_session = :session_id;

-- name: children_open_of
-- The children of a session that work or wait, the oldest first.
SELECT {child} FROM children INDEXED BY children_open
WHERE session_id = :session_id AND ended_ms IS NULL ORDER BY child_id;

-- name: children_of_turn
-- The children that calls of a turn made.
SELECT {child} FROM children WHERE turn_id = :turn_id ORDER BY child_id;

-- name: children_made
-- How many children a session had since something else than the end of one opened a turn there.
SELECT count(*) FROM children INDEXED BY children_by_session
WHERE session_id = :session_id AND turn_id >= coalesce((
    SELECT t.turn_id FROM turns AS t INDEXED BY turns_by_session
    WHERE t.session_id = :session_id
        AND EXISTS (SELECT 1 FROM inbox AS i INDEXED BY inbox_by_turn
                    WHERE i.turn_id = t.turn_id AND i.kind NOT IN ('child', 'report'))
    ORDER BY t.turn_id DESC LIMIT 1), 0);

-- name: child_begin
-- A child begins to work in a session of its own.
UPDATE children SET state = :after, own_session = :own_session, begun_ms = :now
WHERE child_id = :child_id AND state IN ('waiting');

-- name: child_end
-- A child has ended.
UPDATE children SET state = :after, how = :how, ended_ms = :now
WHERE child_id = :child_id AND state IN ('waiting', 'working');

-- name: child_answer
-- What was answered in a turn.
SELECT body FROM steps WHERE turn_id = :turn_id AND kind = 'answer';

-- name: children_of_person
-- The open children on a channel that work for a person, or with their words. Those that wait come first.
SELECT {child} FROM children INDEXED BY children_open
WHERE ended_ms IS NULL
    AND (person = :person OR EXISTS (SELECT 1 FROM inbox AS i INDEXED BY inbox_by_turn
                                     WHERE i.turn_id = children.turn_id AND i.kind = 'message'
                                         AND i.sender = :person))
    AND session_id IN (SELECT session_id FROM sessions WHERE channel = :channel)
ORDER BY state, child_id;

-- name: children_turns
-- The turns of the children of turns, and those that heard of them.
SELECT t.turn_id FROM children AS c JOIN turns AS t ON t.session_id = c.own_session
WHERE c.turn_id IN (SELECT value FROM json_each(:turns))
UNION
SELECT i.turn_id FROM children AS c JOIN inbox AS i
    ON i.source = 'child' AND i.account = '' AND i.external_id = CAST(c.child_id AS TEXT)
WHERE c.turn_id IN (SELECT value FROM json_each(:turns)) AND i.turn_id IS NOT NULL;

-- name: children_erase
-- What children of turns were to do.
UPDATE children SET name = :erased, task = :erased WHERE turn_id IN (SELECT value FROM json_each(:turns));

-- ── search ─────────────────────────────────────────────────────────────────────────────────────

-- name: search_place
-- Up to which step the words are indexed.
SELECT coalesce(max(upto_seq), 0) FROM search_place;

-- name: search_behind
-- Whether there are steps behind a place.
SELECT seq FROM steps WHERE seq > :after ORDER BY seq LIMIT 1;

-- name: search_steps
-- The next steps to index.
SELECT seq, kind, body, erased_ms FROM steps WHERE seq > :after AND seq <= :upto
ORDER BY seq LIMIT :limit;

-- name: search_move
-- The words are indexed up to a step.
INSERT INTO search_place (one, upto_seq) VALUES (1, :upto)
ON CONFLICT (one) DO UPDATE SET upto_seq = excluded.upto_seq;

-- name: search_tail
-- The newest steps that are not indexed.
SELECT seq, kind, body FROM steps
WHERE seq > :after AND erased_ms IS NULL AND kind IN ('message', 'answer')
ORDER BY seq DESC LIMIT :limit;

-- name: search_hit
-- A step, and the chat that it is in.
SELECT st.kind, st.body, st.at_ms, s.chat, coalesce(m.title, ''), st.turn_id
FROM steps AS st JOIN sessions AS s ON s.session_id = st.session_id
LEFT JOIN chat_marks AS m ON m.session_id = s.session_id
WHERE st.seq = :seq AND s.channel = :channel AND s.thread = '' AND st.erased_ms IS NULL;

-- name: search_titles
-- The names that chats were given.
SELECT s.chat, m.title, s.changed_ms FROM chat_marks AS m
JOIN sessions AS s ON s.session_id = m.session_id
WHERE m.title <> '' AND s.channel = :channel AND s.thread = ''
ORDER BY s.session_id DESC LIMIT :limit;

-- ── foreign agents ─────────────────────────────────────────────────────────────────────────────

-- name: agent_session_open
-- The agent session that is open in a chat.
SELECT agent_session_id, agent, external_id FROM agent_sessions
WHERE session_id = :session_id AND state = 'open';

-- name: agent_session_by_id
-- An agent session, open or closed.
SELECT agent_session_id, agent, external_id FROM agent_sessions
WHERE agent_session_id = :agent_session_id;

-- name: agent_session_insert
-- A chat has a foreign agent from now on.
INSERT INTO agent_sessions (session_id, agent, state, opened_ms)
VALUES (:session_id, :agent, 'open', :now);

-- name: agent_session_close
-- A chat has no foreign agent any more, or begins anew with it.
UPDATE agent_sessions SET state = 'closed', reason = :reason, closed_ms = :now
WHERE session_id = :session_id AND state = 'open';

-- name: agent_session_named
-- The agent has told its own name of the session.
UPDATE agent_sessions SET external_id = :external_id
WHERE agent_session_id = :agent_session_id AND state = 'open';

-- name: agent_session_of_turn
-- The agent session whose process was prompted for a turn last.
SELECT p.agent_session_id FROM agent_messages AS m JOIN agent_processes AS p USING (process_id)
WHERE m.turn_id = :turn_id AND m.kind = 'prompt' ORDER BY m.process_id DESC LIMIT 1;

-- name: agent_process_insert
-- A process of an agent is about to be started.
INSERT INTO agent_processes (process_id, session_id, agent_session_id, used_ms)
VALUES (:process_id, :session_id, :agent_session_id, :now);

-- name: agent_process_newest
-- The newest process of an agent session.
SELECT process_id FROM agent_processes WHERE agent_session_id = :agent_session_id
ORDER BY process_id DESC LIMIT 1;

-- name: agent_process
-- How far a process of an agent was read.
SELECT process_id, session_id, agent_session_id, read_offset, said, can_load, replayed_turn,
    drained_ms, events
FROM agent_processes WHERE process_id = :process_id;

-- name: agent_process_read
-- What was read is stored, in this transaction.
UPDATE agent_processes SET read_offset = :after_offset, said = :said, can_load = :can_load,
    replayed_turn = :replayed_turn, events = :events, used_ms = :now
WHERE process_id = :process_id AND read_offset = :before_offset AND drained_ms IS NULL;

-- name: agent_process_used
-- A turn has to do with the process now, and its words begin anew.
UPDATE agent_processes SET used_ms = :now, said = '' WHERE process_id = :process_id;

-- name: agent_process_drained
-- The process has ended, and all that it wrote is stored.
UPDATE agent_processes SET drained_ms = :now WHERE process_id = :process_id AND drained_ms IS NULL;

-- name: agent_process_begun_count
-- How many processes of agents a turn has begun.
SELECT count(*) FROM processes WHERE turn_id = :turn_id AND call_id GLOB 'agent:*';

-- name: agent_deaths
-- How many processes of agents died that a turn had begun or prompted. One that has no birth and is lost
-- was not even started: a gateway died before that, or something was short.
SELECT count(*) FROM agent_processes AS a JOIN processes AS p USING (process_id)
WHERE a.drained_ms IS NOT NULL AND a.session_id = :session_id
    AND NOT (p.state = 'lost' AND p.pid IS NULL)
    AND (p.turn_id = :turn_id
         OR EXISTS (SELECT 1 FROM agent_messages AS m WHERE m.process_id = a.process_id
                    AND m.kind = 'prompt' AND m.turn_id = :turn_id));

-- name: agent_has_history
-- Whether an earlier process of the agent session was prompted.
SELECT 1 FROM agent_processes AS a JOIN agent_messages AS m USING (process_id)
WHERE a.agent_session_id = :agent_session_id AND a.process_id < :process_id AND m.kind = 'prompt'
LIMIT 1;

-- name: agent_message_next
-- The number of the next message to a process.
SELECT coalesce(max(number), 0) + 1 FROM agent_messages WHERE process_id = :process_id;

-- name: agent_message_insert
-- Something is to be said to an agent.
INSERT INTO agent_messages (process_id, number, session_id, kind, turn_id, rule, body, made_ms)
VALUES (:process_id, :number, :session_id, :kind, :turn_id, :rule, :body, :now)
ON CONFLICT DO NOTHING;

-- name: agent_messages_of
-- What was said to a process and still matters: how it was opened, the newest prompt, and what has no
-- answer. Replies and cancellations get none.
SELECT {agent_message} FROM agent_messages
WHERE process_id = :process_id AND kind NOT IN ('reply', 'cancel')
    AND (kind <> 'prompt' OR settled_ms IS NULL
         OR number = (SELECT max(number) FROM agent_messages
                      WHERE process_id = :process_id AND kind = 'prompt'))
ORDER BY number;

-- name: agent_prompts_of
-- The prompts of a turn.
SELECT {agent_message} FROM agent_messages
WHERE turn_id = :turn_id AND kind = 'prompt' ORDER BY process_id, number;

-- name: agent_message_bodies
-- The words of messages to a process, from a number on.
SELECT number, kind, body FROM agent_messages
WHERE process_id = :process_id AND number >= :number ORDER BY number;

-- name: ages_move_agents
-- The wall clock jumped: keep the age of what agents have to answer before they can work.
UPDATE agent_messages SET made_ms = made_ms + :jump_ms
WHERE settled_ms IS NULL AND kind IN ('initialize', 'new', 'load')
    AND process_id IN (SELECT process_id FROM agent_processes WHERE drained_ms IS NULL);

-- name: agent_message_settle
-- The agent has answered a message, once.
UPDATE agent_messages SET settled_ms = :now, error = :error, stop = :stop, tokens_in = :tokens_in,
    tokens_out = :tokens_out
WHERE process_id = :process_id AND number = :number AND settled_ms IS NULL AND kind <> 'reply';

-- name: agent_prompt_updates
-- The agent has told more since the prompt.
UPDATE agent_messages SET updates = updates + :updates
WHERE process_id = :process_id AND number = :number;

-- name: agent_prompt_begun
-- Whether a byte of the prompt was fed, of a process that has died.
UPDATE agent_messages SET begun = :begun
WHERE process_id = :process_id AND number = :number AND begun IS NULL;

-- name: agent_prompt_asked
-- A person is asked whether to go on.
UPDATE agent_messages SET asked_ms = :now
WHERE process_id = :process_id AND number = :number AND asked_ms IS NULL;

-- name: agent_request_insert
-- The agent asks something of us.
INSERT INTO agent_requests (process_id, spool_offset, session_id, turn_id, external_id, method,
                            params, at_ms)
VALUES (:process_id, :spool_offset, :session_id, :turn_id, :external_id, :method, :params, :now)
ON CONFLICT DO NOTHING;

-- name: agent_requests_open
-- What an agent asks and has no answer yet.
SELECT process_id, spool_offset, turn_id, external_id, method, params, call_id
FROM agent_requests WHERE process_id = :process_id AND answer IS NULL
ORDER BY spool_offset LIMIT :limit;

-- name: agent_request_answer
-- A request has its answer, once. Of a long one the words are not kept: the content of a file, for example.
UPDATE agent_requests SET answer = :number, note = :note,
    params = CASE WHEN length(params) > 4000 THEN '{}' ELSE params END
WHERE process_id = :process_id AND spool_offset = :spool_offset AND answer IS NULL;

-- name: agent_request_call
-- A person is asked about the request, by a call.
UPDATE agent_requests SET call_id = :call_id
WHERE process_id = :process_id AND spool_offset = :spool_offset AND answer IS NULL;

-- name: agent_replies_forget
-- A process is drained: long answers to what it asked are of no use any more.
UPDATE agent_messages SET body = '{}'
WHERE process_id = :process_id AND kind = 'reply' AND length(body) > 4000;

-- name: agent_requests_waiting
-- How many requests of a process have no answer, and how long their words are.
SELECT count(*), coalesce(sum(length(params)), 0) FROM agent_requests
WHERE process_id = :process_id AND answer IS NULL;

-- name: agent_event_insert
-- What else an agent told.
INSERT INTO agent_events (process_id, spool_offset, session_id, turn_id, kind, body, at_ms)
VALUES (:process_id, :spool_offset, :session_id, :turn_id, :kind, :body, :now)
ON CONFLICT DO NOTHING;

-- name: agent_plan_forget
-- A plan is replaced by the next one of its turn.
DELETE FROM agent_events WHERE process_id = :process_id AND turn_id = :turn_id AND kind = 'plan';

-- name: agent_words_of_turn
-- What an agent told in a turn for people to see beside its steps, newest first.
SELECT kind, body, at_ms FROM agent_events
WHERE turn_id = :turn_id AND kind IN ('plan', 'thought', 'outside')
ORDER BY process_id DESC, spool_offset DESC LIMIT :limit;

-- name: agent_calls_count
-- How many calls a turn has.
SELECT count(*) FROM calls WHERE turn_id = :turn_id;

-- name: agent_call_by_provider
-- The call that an agent names by its own id, without a result.
SELECT call_id FROM calls WHERE turn_id = :turn_id AND provider_id = :provider_id
    AND finished_ms IS NULL AND skipped_ms IS NULL ORDER BY place DESC LIMIT 1;

-- name: call_open
-- Whether a person allowed a call that has no result, and under which seal.
SELECT approved_ms, approved_seal FROM calls WHERE turn_id = :turn_id AND call_id = :call_id
    AND finished_ms IS NULL AND skipped_ms IS NULL;

-- name: agent_turn_attached
-- Whether an agent that may live, or has said more than is stored, works on a turn.
SELECT 1 FROM agent_messages AS m JOIN agent_processes AS a USING (process_id)
    JOIN processes AS p USING (process_id)
WHERE m.turn_id = :turn_id AND m.kind = 'prompt'
    AND (m.settled_ms IS NOT NULL OR (a.drained_ms IS NULL AND p.home = :home))
LIMIT 1;

-- name: agent_elsewhere
-- The home of an agent that works on a turn on another node, as far as is known.
SELECT p.home FROM agent_messages AS m JOIN agent_processes AS a USING (process_id)
    JOIN processes AS p USING (process_id)
WHERE m.turn_id = :turn_id AND m.kind = 'prompt' AND m.settled_ms IS NULL
    AND a.drained_ms IS NULL AND p.ended_ms IS NULL AND p.home <> :home
LIMIT 1;

-- name: agent_processes_undrained
-- Processes of agents that may live, or have said more than is stored: with the turn of the prompt that
-- has no answer, whether that turn is over, whether a turn is open in the chat, how much else has no
-- answer, and the state of the process.
SELECT a.process_id, a.session_id, a.used_ms, s.state, p.agent, p.end_asked_ms, m.number, m.turn_id,
    t.closed_ms,
    (SELECT max(c.made_ms) FROM agent_messages AS c
     WHERE c.process_id = a.process_id AND c.kind = 'cancel' AND c.turn_id = m.turn_id),
    (SELECT count(*) FROM turns AS o WHERE o.session_id = a.session_id
     AND o.closed_ms IS NULL AND o.state <> 'answered'),
    a.read_offset,
    (SELECT count(*) FROM agent_messages AS u WHERE u.process_id = a.process_id
     AND u.kind IN ('initialize', 'new', 'load') AND u.settled_ms IS NULL),
    p.state
FROM agent_processes AS a JOIN processes AS p USING (process_id)
    JOIN agent_sessions AS s ON s.agent_session_id = a.agent_session_id
    LEFT JOIN agent_messages AS m ON m.process_id = a.process_id AND m.kind = 'prompt'
        AND m.settled_ms IS NULL
    LEFT JOIN turns AS t ON t.turn_id = m.turn_id
WHERE a.drained_ms IS NULL AND p.home = :home ORDER BY a.process_id;

-- name: agent_awaited
-- Whether a turn has done nothing yet, and its chat has no agent that may live.
SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM calls WHERE turn_id = :turn_id)
    AND NOT EXISTS (SELECT 1 FROM agent_processes AS a JOIN processes AS p USING (process_id)
                    WHERE a.drained_ms IS NULL AND a.session_id = :session_id
                    AND p.ended_ms IS NULL AND p.home = :home);

-- name: agent_answer_awaited
-- What the agent of a chat has to answer before it can work, and has not: since when.
SELECT s.agent, m.kind, m.made_ms FROM agent_sessions AS s
    JOIN agent_processes AS a USING (agent_session_id)
    JOIN agent_messages AS m USING (process_id)
WHERE s.session_id = :session_id AND s.state = 'open' AND a.drained_ms IS NULL
    AND m.kind IN ('initialize', 'new', 'load') AND m.settled_ms IS NULL
ORDER BY m.process_id DESC, m.number DESC LIMIT 1;

-- name: agents_running_count
-- How many agents may live in this home.
SELECT count(*) FROM agent_processes AS a JOIN processes AS p USING (process_id)
WHERE a.drained_ms IS NULL AND p.ended_ms IS NULL AND p.home = :home;

-- name: agent_events_delete_of
-- Forget what a process told.
DELETE FROM agent_events WHERE process_id = :process_id;

-- name: agent_requests_delete_of
-- Forget what a process asked.
DELETE FROM agent_requests WHERE process_id = :process_id;

-- name: agent_messages_delete_of
-- Forget what was said to a process.
DELETE FROM agent_messages WHERE process_id = :process_id;

-- name: agent_process_delete
-- Forget a process of an agent.
DELETE FROM agent_processes WHERE process_id = :process_id;

-- ── memory ─────────────────────────────────────────────────────────────────────────────────────

-- name: memory_scope_find
-- The memory of a person or a group.
SELECT {memory_scope} FROM memory_scopes
WHERE channel = :channel AND kind = :kind AND name = :name;

-- name: memory_scope_by_id
-- A memory.
SELECT {memory_scope} FROM memory_scopes WHERE scope_id = :scope_id;

-- name: memory_scopes_all
-- All memories, the newest change first.
SELECT {memory_scope} FROM memory_scopes ORDER BY changed_ms DESC, scope_id DESC LIMIT :limit;

-- name: memory_scopes_behind
-- Memories whose files this home has not written in their newest form, among all of them.
SELECT {memory_scope} FROM memory_scopes AS s
WHERE s.scope_id > :after AND (
    SELECT count(DISTINCT p.shelf) FROM memory_pictures AS p
    WHERE p.scope_id = s.scope_id AND p.home = :home AND p.revision = s.revision
        AND p.written = 1 AND p.trouble IS NULL) < 2
ORDER BY s.scope_id LIMIT :limit;

-- name: memory_scopes_newest_behind
-- The same, among those that changed last.
SELECT {memory_scope} FROM (
    SELECT {memory_scope} FROM memory_scopes ORDER BY changed_ms DESC LIMIT :limit) AS s
WHERE (
    SELECT count(DISTINCT p.shelf) FROM memory_pictures AS p
    WHERE p.scope_id = s.scope_id AND p.home = :home AND p.revision = s.revision
        AND p.written = 1 AND p.trouble IS NULL) < 2;

-- name: memory_scope_insert
-- A person or a group has something to be remembered.
INSERT INTO memory_scopes (channel, kind, name, changed_ms) VALUES (:channel, :kind, :name, :now);

-- name: memory_scope_revise
-- A memory has a new revision.
UPDATE memory_scopes SET revision = :revision, changed_ms = :now
WHERE scope_id = :scope_id AND revision = :revision - 1;

-- name: memory_scope_erased
-- Files from before this revision are not read any more.
UPDATE memory_scopes SET erased_revision = revision WHERE scope_id = :scope_id;

-- name: memories_now
-- What a memory holds, oldest first.
SELECT {memory} FROM memories WHERE scope_id = :scope_id AND died IS NULL ORDER BY memory_id;

-- name: memories_at
-- What a shelf held in a revision.
SELECT text FROM memories
WHERE scope_id = :scope_id AND shelf = :shelf AND born <= :revision
    AND (died IS NULL OR died > :revision)
ORDER BY memory_id;

-- name: memories_ended_by
-- What a revision took away.
SELECT {memory} FROM memories WHERE scope_id = :scope_id AND died = :revision ORDER BY memory_id;

-- name: memories_begun_by
-- What a revision added, whether it is still there or not.
SELECT {memory} FROM memories WHERE scope_id = :scope_id AND born = :revision ORDER BY memory_id;

-- name: memory_by_id
-- An entry that is there, and whose it is.
SELECT scope_id FROM memories WHERE memory_id = :memory_id AND died IS NULL;

-- name: memory_insert
-- Something to remember.
INSERT INTO memories (scope_id, shelf, text, turn_id, born)
VALUES (:scope_id, :shelf, :text, :turn_id, :revision);

-- name: memory_end
-- An entry goes.
UPDATE memories SET died = :revision WHERE memory_id = :memory_id AND died IS NULL;

-- name: memories_forget
-- Entries that have been gone for many revisions.
DELETE FROM memories WHERE scope_id = :scope_id AND died <= :revision
    AND memory_id < (SELECT max(memory_id) FROM memories);

-- name: memory_revision_insert
-- A change.
INSERT INTO memory_revisions (scope_id, revision, kind, made_by, turn_id, undoes, words, at_ms)
VALUES (:scope_id, :revision, :kind, :made_by, :turn_id, :undoes, :words, :now);

-- name: memory_revision_by
-- What was told when this was done before.
SELECT words FROM memory_revisions WHERE made_by = :made_by;

-- name: memory_revision_to_undo
-- The newest change that can be taken back. Nothing is, behind an erasure.
SELECT r.revision FROM memory_revisions AS r JOIN memory_scopes AS s ON s.scope_id = r.scope_id
WHERE r.scope_id = :scope_id AND r.kind <> 'undo' AND r.revision > s.erased_revision
    AND r.revision > :after AND NOT EXISTS (
        SELECT 1 FROM memory_revisions AS u WHERE u.scope_id = r.scope_id AND u.undoes = r.revision)
ORDER BY r.revision DESC LIMIT 1;

-- name: memory_picture_known
-- What is known of a file with this content.
SELECT revision, trouble FROM memory_pictures
WHERE scope_id = :scope_id AND shelf = :shelf AND home = :home AND digest = :digest;

-- name: memory_picture_newest
-- The newest revision of a file that this home has written, or read.
SELECT max(revision) FROM memory_pictures
WHERE scope_id = :scope_id AND shelf = :shelf AND home = :home AND trouble IS NULL;

-- name: memory_picture_insert
-- A content is known from now on.
INSERT INTO memory_pictures (scope_id, shelf, home, digest, revision, trouble)
VALUES (:scope_id, :shelf, :home, :digest, :revision, :trouble)
ON CONFLICT (scope_id, shelf, home, digest)
DO UPDATE SET revision = excluded.revision, trouble = excluded.trouble, written = 0;

-- name: memory_picture_written
-- The file is there.
UPDATE memory_pictures SET written = 1
WHERE scope_id = :scope_id AND home = :home AND revision = :revision AND trouble IS NULL;

-- name: memory_pictures_settled
-- A hand edit that was refused is no longer there.
DELETE FROM memory_pictures
WHERE scope_id = :scope_id AND shelf = :shelf AND home = :home AND trouble IS NOT NULL
    AND digest <> :digest;

-- name: memory_pictures_forget
-- Contents of long ago.
DELETE FROM memory_pictures WHERE scope_id = :scope_id AND revision <= :revision;

-- name: memory_troubles
-- Hand edits that are not taken over.
SELECT shelf, trouble FROM memory_pictures
WHERE scope_id = :scope_id AND home = :home AND trouble IS NOT NULL ORDER BY shelf;

-- name: shown_by_turn
-- What a turn was shown, and in which revision the memory was.
SELECT t.text, s.scope_id, s.revision FROM turn_shown AS s JOIN shown_texts AS t ON t.digest = s.digest
WHERE s.turn_id = :turn_id;

-- name: shown_text_insert
-- A text that a turn is given.
INSERT INTO shown_texts (digest, text, at_ms) VALUES (:digest, :text, :now)
ON CONFLICT (digest) DO UPDATE SET at_ms = excluded.at_ms;

-- name: turn_shown_insert
-- What a turn is shown from now on.
INSERT INTO turn_shown (turn_id, digest, scope_id, revision)
VALUES (:turn_id, :digest, :scope_id, :revision) ON CONFLICT DO NOTHING;

-- name: turns_shown_old
-- Turns that were closed long ago, and still say what they were shown.
SELECT s.turn_id FROM turn_shown AS s JOIN turns AS t ON t.turn_id = s.turn_id
WHERE t.closed_ms < :before_ms ORDER BY s.turn_id LIMIT :limit;

-- name: turns_shown_forget
-- What these turns were shown is forgotten, and lock keys are those of their sessions.
DELETE FROM turn_shown WHERE turn_id IN (SELECT value FROM json_each(:turns));

-- name: shown_texts_forget
-- Texts that no turn was given since.
DELETE FROM shown_texts WHERE at_ms < :before_ms
    AND NOT EXISTS (SELECT 1 FROM turn_shown AS s WHERE s.digest = shown_texts.digest);

-- name: memory_scopes_to_erase
-- Memories that an erasure empties: whole ones of a person or of chats, and what was noted in turns.
SELECT {memory_scope} FROM memory_scopes WHERE channel = :channel AND kind = 'person' AND name = :person
UNION
SELECT {memory_scope} FROM memory_scopes AS m WHERE kind = 'chat' AND EXISTS (
    SELECT 1 FROM sessions AS s WHERE s.session_id IN (SELECT value FROM json_each(:sessions))
        AND s.channel = m.channel AND s.chat = m.name AND s.person = '')
UNION
SELECT {memory_scope} FROM memory_scopes WHERE scope_id IN (
    SELECT scope_id FROM memories WHERE turn_id IN (SELECT value FROM json_each(:turns))
    UNION
    SELECT scope_id FROM memory_revisions WHERE turn_id IN (SELECT value FROM json_each(:turns)));

-- name: chat_among
-- Whether a group is one of these sessions.
SELECT 1 FROM sessions WHERE channel = :channel AND chat = :chat AND person = ''
    AND session_id IN (SELECT value FROM json_each(:sessions)) LIMIT 1;

-- name: memories_erase
-- The words of entries go: all of a memory, or those that were noted in turns.
UPDATE memories SET text = '', died = coalesce(died, :revision)
WHERE scope_id = :scope_id
    AND (:everything = 1 OR turn_id IN (SELECT value FROM json_each(:turns)));

-- name: memory_revisions_erase
-- Likewise for what was told of them.
UPDATE memory_revisions SET words = ''
WHERE scope_id = :scope_id
    AND (:everything = 1 OR turn_id IN (SELECT value FROM json_each(:turns)));

-- name: memory_pictures_erase
-- Contents of files are known no more.
DELETE FROM memory_pictures WHERE scope_id = :scope_id;

-- name: shown_texts_erase
-- What turns were shown of an erased memory, or in erased turns.
DELETE FROM shown_texts WHERE digest IN (
    SELECT digest FROM turn_shown
    WHERE scope_id = :scope_id OR turn_id IN (SELECT value FROM json_each(:turns)));

-- name: recall_sessions
-- The chats whose words a turn may look through: the private ones of its person, or its own group.
SELECT session_id FROM sessions
WHERE channel = :channel AND person = :person AND (:kind = 'person' OR chat = :chat);

-- name: recall_hit
-- A step of one of these chats.
SELECT st.kind, st.body, st.at_ms, st.turn_id FROM steps AS st
WHERE st.seq = :seq AND st.erased_ms IS NULL
    AND st.session_id IN (SELECT value FROM json_each(:sessions));

-- ── moving in ──────────────────────────────────────────────────────────────────────────────────

-- name: import_known
-- Whether a home of another gateway was moved in before.
SELECT 1 FROM imports WHERE digest = :digest;

-- name: import_insert
-- A home of another gateway is moved in; its files follow.
INSERT INTO imports (digest, source, files, committed_ms) VALUES (:digest, :source, :files, :now);

-- name: imports_unfinished
-- What was moved in and has files that may not be in place.
SELECT digest, source, files FROM imports WHERE finished_ms IS NULL ORDER BY digest;

-- name: import_finish
-- All files are in place.
UPDATE imports SET finished_ms = :now WHERE digest = :digest AND finished_ms IS NULL;

-- name: person_known
-- Whether a person is or was let in: a right that was taken away does not come back.
SELECT 1 FROM people WHERE channel = :channel AND person = :person;

-- name: waits_cap_benches
-- The same for models that are benched.
UPDATE model_benches SET until_ms = :now + wait_ms WHERE until_ms > :now + wait_ms;

-- name: benches_here
-- The models that are benched, or failed when they were last asked, as far as that counts on a node.
SELECT model, node, trouble, reason, tries, since_ms, until_ms FROM model_benches
WHERE node IN ('', :node) ORDER BY model, node;

-- name: benches
-- The same for all nodes.
SELECT model, node, trouble, reason, tries, since_ms, until_ms FROM model_benches
ORDER BY model, node;

-- name: bench
-- One of them.
SELECT model, node, trouble, reason, tries, since_ms, until_ms FROM model_benches
WHERE model = :model AND node = :node;

-- name: bench_set
-- A model failed: it is not asked until a moment.
INSERT INTO model_benches (model, node, trouble, reason, tries, since_ms, until_ms, wait_ms)
VALUES (:model, :node, :trouble, :reason, :tries, :since_ms, :until_ms, :until_ms - :now)
ON CONFLICT (model, node) DO UPDATE SET trouble = excluded.trouble, reason = excluded.reason,
    tries = excluded.tries, since_ms = excluded.since_ms, until_ms = excluded.until_ms,
    wait_ms = excluded.wait_ms;

-- name: bench_lift
-- A model is well again, as far as a node knows.
DELETE FROM model_benches WHERE model = :model AND node IN ('', :node);

-- name: bench_lift_all
-- A person wants the model to be asked again.
DELETE FROM model_benches WHERE model = :model;

-- name: turn_model
-- The model that a turn is on.
SELECT model FROM turn_models WHERE turn_id = :turn_id;

-- name: turn_model_set
-- A turn goes on with another model.
INSERT INTO turn_models (turn_id, model, because, at_ms)
VALUES (:turn_id, :model, :because, :now)
ON CONFLICT (turn_id) DO UPDATE SET model = excluded.model, because = excluded.because,
    at_ms = excluded.at_ms;

-- name: usage_of_session
-- What each person used of each model in a chat since a moment, with what works beside it there.
SELECT t.person, coalesce(json_extract(s.body, '$.model'), ''), count(*),
    coalesce(sum(coalesce(json_extract(s.body, '$.tokens_in'), 0)), 0),
    coalesce(sum(coalesce(json_extract(s.body, '$.tokens_out'), 0)), 0),
    coalesce(sum(coalesce(json_extract(s.body, '$.seconds'), 0)), 0)
FROM sessions AS c JOIN sessions AS n
        ON n.channel = c.channel AND n.chat = c.chat AND n.thread = c.thread
    JOIN steps AS s ON s.session_id = n.session_id JOIN turns AS t ON t.turn_id = s.turn_id
WHERE c.session_id = :session_id AND s.at_ms >= :since_ms
    AND (s.kind IN ('reply', 'answer')
        OR (s.kind = 'summary' OR s.cause GLOB 'voice:*') AND json_extract(s.body, '$.model') <> '')
GROUP BY 1, 2 ORDER BY 1, 2;

-- name: usage_of_all
-- The same for all chats.
SELECT n.channel, n.chat, n.thread, t.person, coalesce(json_extract(s.body, '$.model'), ''), count(*),
    coalesce(sum(coalesce(json_extract(s.body, '$.tokens_in'), 0)), 0),
    coalesce(sum(coalesce(json_extract(s.body, '$.tokens_out'), 0)), 0),
    coalesce(sum(coalesce(json_extract(s.body, '$.seconds'), 0)), 0)
FROM steps AS s JOIN turns AS t ON t.turn_id = s.turn_id
    JOIN sessions AS n ON n.session_id = s.session_id
WHERE s.at_ms >= :since_ms
    AND (s.kind IN ('reply', 'answer')
        OR (s.kind = 'summary' OR s.cause GLOB 'voice:*') AND json_extract(s.body, '$.model') <> '')
GROUP BY 1, 2, 3, 4, 5 ORDER BY 1, 2, 3, 4, 5;

-- name: purse
-- The counter of a limit on a day.
SELECT purse_id, scope, subject, unit, used, reserved, more FROM purses
WHERE day = :day AND scope = :scope AND subject = :subject AND unit = :unit;

-- name: purse_make
-- A counter begins at nothing.
INSERT INTO purses (day, scope, subject, unit) VALUES (:day, :scope, :subject, :unit);

-- name: purses_of_day
-- All counters of a day.
SELECT purse_id, scope, subject, unit, used, reserved, more FROM purses
WHERE day = :day AND unit = :unit ORDER BY scope, subject;

-- name: purse_reserve
-- A call is about to be made.
UPDATE purses SET reserved = reserved + :amount WHERE purse_id = :purse_id;

-- name: purse_settle
-- A call was made, or may have been: what it cost counts from now on.
UPDATE purses SET reserved = reserved - :amount, used = used + :paid WHERE purse_id = :purse_id;

-- name: purse_add
-- An owner allows more today.
UPDATE purses SET more = more + :amount WHERE purse_id = :purse_id AND day = :day;

-- name: bill_make
-- A call that has reserved its estimate.
INSERT INTO bills (worker_id, purses, model, amount, made_ms)
VALUES (:worker_id, :purses, :model, :amount, :now);

-- name: bill
-- A call that is not settled.
SELECT bill_id, purses, amount FROM bills WHERE bill_id = :bill_id;

-- name: bills_lost
-- Calls of workers that are gone.
SELECT bill_id, purses, amount FROM bills
WHERE NOT EXISTS (SELECT 1 FROM workers AS w
                  WHERE w.worker_id = bills.worker_id AND w.ended_ms IS NULL)
ORDER BY bill_id;

-- name: bill_delete
-- It is settled.
DELETE FROM bills WHERE bill_id = :bill_id;

-- name: turns_held_by_budget
-- Turns that wait for more budget, with their keys.
SELECT t.turn_id, s.lock_key FROM turns AS t JOIN sessions AS s USING (session_id)
WHERE t.closed_ms IS NULL AND t.state = 'queued' AND t.event = 'postponed'
    AND t.reason LIKE 'budget:%' ORDER BY t.turn_id;

-- name: turn_due_now
-- A turn that waits need not wait any longer.
UPDATE turns SET not_before_ms = :now WHERE turn_id = :turn_id AND state = 'queued';
