-- Nothing that a restored database owes goes out by itself; it may have arrived since.
UPDATE outbox SET state = 'owed', worker_id = NULL, not_before_ms = :until_ms, ambiguous = 1,
    reason = 'held after a restore'
WHERE settled_ms IS NULL AND state IN ('owed', 'sending');
