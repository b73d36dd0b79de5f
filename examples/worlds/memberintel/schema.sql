-- The brain of an advisor: what its answers are made from and cite. Run as memberintel_owner, who owns the database.

CREATE TABLE brain_entries (
  id uuid PRIMARY KEY,
  tenant_id text,            -- 'global', or the id of the one user whose it is
  collection text NOT NULL,  -- playbooks, hive_docs, benchmarks; soul, bible, memories of a user
  title text,
  category text,
  last_reviewed date,
  metadata jsonb,            -- what the ingest wrote down: nobody has looked at every key
  content text               -- the title as its first line, then the text
);
CREATE INDEX brain_entries_tenant ON brain_entries (tenant_id, collection);
CREATE INDEX brain_entries_metadata ON brain_entries USING gin (metadata);
