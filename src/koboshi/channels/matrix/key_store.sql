-- The keys of one device of Matrix. Queries of `key_store.py`, by name.

-- name: settings
PRAGMA synchronous = EXTRA;
PRAGMA secure_delete = ON;

-- name: form
PRAGMA user_version;

-- name: make
CREATE TABLE accounts (
    one    INTEGER PRIMARY KEY CHECK (one = 1),
    pickle TEXT NOT NULL,
    shared INTEGER NOT NULL
) STRICT;
-- Between two devices.
CREATE TABLE sessions (
    curve_key  TEXT NOT NULL,
    session_id TEXT NOT NULL,
    pickle     TEXT NOT NULL,
    created    TEXT NOT NULL,
    used       TEXT NOT NULL,
    PRIMARY KEY (curve_key, session_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE room_keys (
    room        TEXT NOT NULL,
    curve_key   TEXT NOT NULL,
    session_id  TEXT NOT NULL,
    ed25519     TEXT NOT NULL,
    pickle      TEXT NOT NULL,
    received_ms INTEGER NOT NULL,
    PRIMARY KEY (room, curve_key, session_id)
) STRICT, WITHOUT ROWID;
-- Of other people, by the keys that they were first seen with.
CREATE TABLE devices (
    user_id    TEXT NOT NULL,
    device_id  TEXT NOT NULL,
    ed25519    TEXT NOT NULL,
    curve25519 TEXT NOT NULL,
    deleted    INTEGER NOT NULL,
    PRIMARY KEY (user_id, device_id)
) STRICT, WITHOUT ROWID;
PRAGMA user_version = 1;

-- name: account
SELECT pickle, shared FROM accounts;

-- name: account_save
INSERT OR REPLACE INTO accounts (one, pickle, shared) VALUES (1, ?, ?);

-- name: sessions
SELECT curve_key, pickle, created, used FROM sessions;

-- name: session_save
INSERT OR REPLACE INTO sessions (curve_key, session_id, pickle, created, used)
VALUES (?, ?, ?, ?, ?);

-- name: room_keys_forget
DELETE FROM room_keys WHERE received_ms < ?;

-- name: room_keys
SELECT room, curve_key, ed25519, pickle FROM room_keys;

-- name: room_key_save
INSERT OR REPLACE INTO room_keys (room, curve_key, session_id, ed25519, pickle, received_ms)
VALUES (?, ?, ?, ?, ?, ?);

-- name: devices
SELECT user_id, device_id, ed25519, curve25519, deleted FROM devices;

-- name: device_save
INSERT OR REPLACE INTO devices (user_id, device_id, ed25519, curve25519, deleted)
VALUES (?, ?, ?, ?, ?);
