CREATE TABLE topic (name TEXT PRIMARY KEY, latest INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE payload (
    number INTEGER PRIMARY KEY AUTOINCREMENT, topic TEXT NOT NULL, media_type TEXT NOT NULL,
    body BLOB NOT NULL, digest BLOB NOT NULL, accepted_us INTEGER NOT NULL
);
CREATE INDEX payload_topic ON payload (topic, number);
CREATE TABLE subscription (
    number INTEGER PRIMARY KEY AUTOINCREMENT, topic TEXT NOT NULL, callback TEXT NOT NULL,
    origin TEXT NOT NULL, secret BLOB NOT NULL, expires_us INTEGER NOT NULL,
    delivered INTEGER NOT NULL, attempts INTEGER NOT NULL DEFAULT 0,
    due_us INTEGER NOT NULL DEFAULT 0, UNIQUE (topic, callback)
);
CREATE INDEX subscription_owed ON subscription (topic, delivered);
CREATE TABLE intent (
    number INTEGER PRIMARY KEY AUTOINCREMENT, mode TEXT NOT NULL, topic TEXT NOT NULL,
    callback TEXT NOT NULL, origin TEXT NOT NULL, secret BLOB NOT NULL,
    lease INTEGER NOT NULL, asked_us INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0, due_us INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX intent_callback ON intent (topic, callback, number);
CREATE TABLE moment (one INTEGER PRIMARY KEY CHECK (one = 1), latest_us INTEGER NOT NULL);
