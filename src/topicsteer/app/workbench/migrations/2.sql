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
INSERT INTO words (words) VALUES ('rebuild');
