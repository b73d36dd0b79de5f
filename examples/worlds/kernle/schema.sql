-- Memories of SIs that live among people, after "Memory Privacy & Access Control". Run this as the role kernle_owner, which
-- owns the database. An id is kind:name: human:sean, si:ash, dog:bella, role:vet, ctx:bella_health.

-- A stack is the memory of one SI.
CREATE TABLE stacks (id TEXT PRIMARY KEY, owner TEXT NOT NULL);

-- Who speaks for whom: for a child, a pet. The owner of the stack records it.
CREATE TABLE guardians (
  stack_id TEXT NOT NULL,
  subject  TEXT NOT NULL,
  guardian TEXT NOT NULL,
  PRIMARY KEY (stack_id, subject, guardian)
);

-- The four tables of memories, with the privacy fields as the application has them: JSON arrays in text.
CREATE TABLE episodes (
  id             TEXT PRIMARY KEY DEFAULT 'episode:' || gen_random_uuid(),
  stack_id       TEXT NOT NULL,
  content        TEXT NOT NULL,
  source_entity  TEXT,                 -- who told me this? null: self-observed
  subject_ids    TEXT DEFAULT '[]',    -- JSON array: who or what is this about?
  access_grants  TEXT DEFAULT '[]',    -- JSON array: who is authorized to see this?
  consent_grants TEXT DEFAULT '[]',    -- JSON array: who authorized sharing? Evidence, no more
  created_at     TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
  told_from      TEXT                  -- the memory of another SI that this one was told from: the chain of who told whom
);
CREATE TABLE beliefs (LIKE episodes INCLUDING ALL);
CREATE TABLE notes (LIKE episodes INCLUDING ALL);
CREATE TABLE raw_entries (LIKE episodes INCLUDING ALL);
ALTER TABLE beliefs ALTER id SET DEFAULT 'belief:' || gen_random_uuid();
ALTER TABLE notes ALTER id SET DEFAULT 'note:' || gen_random_uuid();
ALTER TABLE raw_entries ALTER id SET DEFAULT 'raw:' || gen_random_uuid();

-- The same episodes as other installations keep them: as arrays, and as jsonb.
CREATE TABLE episodes_array (
  id             TEXT PRIMARY KEY DEFAULT 'episode:' || gen_random_uuid(),
  stack_id       TEXT NOT NULL,
  content        TEXT NOT NULL,
  source_entity  TEXT,
  subject_ids    TEXT[] DEFAULT '{}',
  access_grants  TEXT[] DEFAULT '{}',
  consent_grants TEXT[] DEFAULT '{}',
  created_at     TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
  told_from      TEXT
);
CREATE TABLE episodes_jsonb (
  id             TEXT PRIMARY KEY DEFAULT 'episode:' || gen_random_uuid(),
  stack_id       TEXT NOT NULL,
  content        TEXT NOT NULL,
  source_entity  TEXT,
  subject_ids    JSONB DEFAULT '[]',
  access_grants  JSONB DEFAULT '[]',
  consent_grants JSONB DEFAULT '[]',
  created_at     TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
  told_from      TEXT
);

-- Context tracking.
CREATE TABLE privacy_contexts (
  id TEXT PRIMARY KEY DEFAULT 'context:' || gen_random_uuid(),
  stack_id TEXT NOT NULL,
  context_id TEXT NOT NULL,
  participants TEXT DEFAULT '[]',
  default_access_grants TEXT DEFAULT '[]',
  created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP
);

-- Consent audit trail.
CREATE TABLE consent_records (
  id TEXT PRIMARY KEY DEFAULT 'consent:' || gen_random_uuid(),
  stack_id TEXT NOT NULL,
  grantor TEXT NOT NULL,              -- who gave consent
  grantee TEXT NOT NULL,              -- who received consent
  scope TEXT NOT NULL,                -- what was consented: a memory, a context, * for everything
  granted_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
  revoked_at TIMESTAMP                -- NULL = still active
);

-- What else somebody is called, so that no belief names them. The owner of the stack writes it.
CREATE TABLE aliases (
  id TEXT PRIMARY KEY DEFAULT 'alias:' || gen_random_uuid(),
  stack_id TEXT NOT NULL,
  subject  TEXT NOT NULL,
  alias    TEXT NOT NULL
);

-- Which belief was drawn from which private memory: for the owner of the stack alone.
CREATE TABLE generalizations (
  id TEXT PRIMARY KEY DEFAULT 'generalization:' || gen_random_uuid(),
  stack_id  TEXT NOT NULL,
  belief_id TEXT NOT NULL,
  source_id TEXT NOT NULL,
  source_kind TEXT NOT NULL DEFAULT '', -- memories of two kinds may have one id
  abstraction_note TEXT NOT NULL DEFAULT '',
  created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP
);

CREATE INDEX episodes_stack ON episodes (stack_id);
CREATE INDEX beliefs_stack ON beliefs (stack_id);
CREATE INDEX notes_stack ON notes (stack_id);
CREATE INDEX raw_entries_stack ON raw_entries (stack_id);
CREATE INDEX episodes_array_stack ON episodes_array (stack_id);
CREATE INDEX episodes_jsonb_stack ON episodes_jsonb (stack_id);
CREATE INDEX stacks_owner ON stacks (owner);
CREATE INDEX privacy_contexts_stack ON privacy_contexts (stack_id, context_id);
CREATE INDEX consent_records_grantor ON consent_records (stack_id, grantor);
CREATE INDEX generalizations_source ON generalizations (stack_id, source_id);
CREATE INDEX aliases_subject ON aliases (stack_id, subject);
