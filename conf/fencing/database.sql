-- A guard for data in an SQL database, with the fencing tokens of latchd. For SQLite,
-- PostgreSQL, and what speaks like them; :name and :token are parameters.

-- Once: the highest token that was seen, for each lock.
CREATE TABLE fence (name TEXT PRIMARY KEY, token BIGINT NOT NULL);

-- Once for each lock.
INSERT INTO fence (name, token) VALUES (:name, 0) ON CONFLICT (name) DO NOTHING;

-- The first statement of every transaction that reads or writes what the lock protects,
-- before anything is read. One row changed: go on, nobody can come in between until the end
-- of the transaction. None: another one holds the lock since, so ROLLBACK, and stop.
-- (MySQL counts a row that keeps its value only with CLIENT_FOUND_ROWS.)
UPDATE fence SET token = :token WHERE name = :name AND token <= :token;
