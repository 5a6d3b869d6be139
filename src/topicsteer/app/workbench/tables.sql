CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE documents (row INTEGER PRIMARY KEY, id TEXT NOT NULL, text TEXT NOT NULL, extra TEXT NOT NULL);
CREATE TABLE batches (
    batch INTEGER PRIMARY KEY AUTOINCREMENT, who TEXT NOT NULL, at TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('do', 'undo', 'redo')), target INTEGER, request TEXT UNIQUE,
    note TEXT NOT NULL
);
CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, batch INTEGER NOT NULL REFERENCES batches (batch),
    person TEXT, document INTEGER, topic INTEGER NOT NULL, state TEXT NOT NULL, before TEXT NOT NULL
);
CREATE INDEX events_of_batch ON events (batch);
CREATE TRIGGER events_stay BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER events_remain BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TABLE models (
    model INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, whole INTEGER NOT NULL, meta TEXT NOT NULL
);
CREATE TABLE model_files (
    model INTEGER NOT NULL, name TEXT NOT NULL, part INTEGER NOT NULL, data BLOB NOT NULL
);
CREATE INDEX model_files_in_order ON model_files (model, name, part);
CREATE VIRTUAL TABLE words USING fts5 (
    text, content = 'documents', content_rowid = 'row', tokenize = 'unicode61 remove_diacritics 2'
);
