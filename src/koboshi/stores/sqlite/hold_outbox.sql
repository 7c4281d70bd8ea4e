-- Nothing that a database owes goes out by itself where it may have arrived since.
UPDATE outbox SET state = 'owed', worker_id = NULL, not_before_ms = :until_ms, ambiguous = 1,
    reason = :reason
WHERE settled_ms IS NULL AND state IN ('owed', 'sending');
