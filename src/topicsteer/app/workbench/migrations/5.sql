-- Topics may have parents, and a label may mean "this topic, and nothing below it".
ALTER TABLE topics ADD COLUMN parent INTEGER;
