-- The sweep of sent files looks at deliveries that carry one.
CREATE INDEX outbox_files ON outbox (delivery_id) WHERE file IS NOT NULL;
