CREATE TABLE follower (
    name TEXT NOT NULL, topic TEXT NOT NULL, hub TEXT NOT NULL, state TEXT NOT NULL,
    token TEXT NOT NULL, secret BLOB NOT NULL, next_token TEXT NOT NULL,
    next_secret BLOB NOT NULL, lease_until_us INTEGER NOT NULL,
    attempts INTEGER NOT NULL, due_us INTEGER NOT NULL, base TEXT NOT NULL,
    PRIMARY KEY (name, topic)
) WITHOUT ROWID;
CREATE INDEX follower_token ON follower (token);
CREATE INDEX follower_next ON follower (next_token);
