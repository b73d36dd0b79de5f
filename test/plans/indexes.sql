ALTER TABLE participants ADD PRIMARY KEY (memory_id, person_id);
CREATE INDEX ON participants (person_id);
CREATE INDEX ON memories (occurred_at);
CREATE INDEX ON memories (owner_id);
CREATE INDEX ON memories USING gin (tsv);
CREATE INDEX ON memories USING gin (title gin_trgm_ops);
CREATE INDEX ON memories USING gin (metadata);
CREATE INDEX ON people (id) WHERE consent_status <> 'granted';
