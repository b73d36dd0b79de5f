-- A personal archive after ADR-0007, "Consent gate on agent retrieval". Run this as the role arcive_owner, which owns the
-- database, after extensions.sql.

CREATE TABLE people (
  id             uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  user_id        uuid NOT NULL,
  name           text NOT NULL,
  is_self        boolean NOT NULL DEFAULT false,
  consent_status text DEFAULT 'pending', -- granted, pending, revoked; rows of older versions of the application hold others
  created_at     timestamptz NOT NULL DEFAULT now()
);

-- A person is pending until the owner of the archive grants; the user's own person is granted on sign-up.
CREATE FUNCTION people_grant_self() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.consent_status := 'granted';
  RETURN NEW;
END $$;
CREATE TRIGGER people_grant_self BEFORE INSERT ON people FOR EACH ROW WHEN (NEW.is_self) EXECUTE FUNCTION people_grant_self();

-- The embedding's type is the one that extensions.sql found.
DO $$
DECLARE
  embedding text := CASE
    WHEN EXISTS (SELECT FROM pg_extension WHERE extname = 'vector') THEN 'public.vector(8)'
    WHEN EXISTS (SELECT FROM pg_extension WHERE extname = 'cube') THEN 'public.cube'
    ELSE 'double precision[]'
  END;
BEGIN
  EXECUTE format($f$
    CREATE TABLE memories (
      id          uuid PRIMARY KEY DEFAULT gen_random_uuid(),
      user_id     uuid NOT NULL,
      title       text NOT NULL,
      body        text NOT NULL,
      metadata    jsonb, -- mood text, stars integer, place text, tags array of text
      embedding   %s,    -- eight dimensions
      occurred_at timestamptz NOT NULL DEFAULT now()
    ) $f$, embedding);
END $$;

CREATE TABLE memory_participants (
  memory_id uuid NOT NULL REFERENCES memories ON DELETE CASCADE,
  person_id uuid NOT NULL, -- no foreign key: merging and deleting people leaves links that dangle until a job removes them
  role      text NOT NULL DEFAULT 'present',
  PRIMARY KEY (memory_id, person_id)
);

CREATE TABLE memory_edges (
  from_id uuid NOT NULL REFERENCES memories ON DELETE CASCADE,
  to_id   uuid NOT NULL REFERENCES memories ON DELETE CASCADE,
  weight  double precision NOT NULL,
  PRIMARY KEY (from_id, to_id)
);

CREATE INDEX people_user ON people (user_id);
CREATE INDEX memories_user_time ON memories (user_id, occurred_at DESC);
CREATE INDEX memories_text ON memories USING gin (to_tsvector('english', title || ' ' || body));
CREATE INDEX memories_metadata ON memories USING gin (metadata jsonb_path_ops);
CREATE INDEX memory_participants_person ON memory_participants (person_id);
CREATE INDEX memory_edges_to ON memory_edges (to_id);

-- Retrieval. respect_consent is the gate of ADR-0007: left out or false, the owner sees everything; true leaves out each
-- memory with a participant who has not granted. Written as SQL-standard bodies: names are bound here, once.
DO $$
DECLARE
  vector    text := (SELECT format_type(atttypid, -1) FROM pg_attribute WHERE attrelid = 'memories'::regclass AND attname = 'embedding');
  distance  text := CASE WHEN vector = 'double precision[]'
    THEN '(SELECT sqrt(sum((a.x - b.x) ^ 2)) FROM unnest(m.embedding) WITH ORDINALITY a (x, n) JOIN unnest(%1$s) WITH ORDINALITY b (x, n) USING (n))'
    ELSE 'm.embedding <-> %1$s' END;
  construct text := CASE vector WHEN 'cube' THEN 'cube(%1$s)' ELSE '%1$s::' || vector END;
  gated     text := $g$(respect_consent IS FALSE OR NOT EXISTS (
      SELECT FROM memory_participants p LEFT JOIN people q ON q.id = p.person_id
      WHERE p.memory_id = m.id AND q.consent_status IS DISTINCT FROM 'granted'))$g$;
BEGIN
  EXECUTE format($f$
    CREATE FUNCTION match_memories(query_embedding %1$s, match_count integer, respect_consent boolean DEFAULT false)
    RETURNS TABLE (id uuid, title text, body text, distance double precision)
    LANGUAGE sql STABLE SECURITY INVOKER
    BEGIN ATOMIC
      SELECT m.id, m.title, m.body, %2$s FROM memories m WHERE %3$s ORDER BY %2$s, m.id LIMIT match_count;
    END $f$, vector, format(distance, 'query_embedding'), gated);

  -- The text is embedded as data.sql embeds memories: each word points somewhere, and the sum is scaled to length one.
  EXECUTE format($f$
    CREATE FUNCTION search_memories_semantic(query_text text, match_count integer, respect_consent boolean DEFAULT false)
    RETURNS TABLE (id uuid, title text, body text, distance double precision)
    LANGUAGE sql STABLE SECURITY INVOKER
    BEGIN ATOMIC
      WITH words AS (
        SELECT DISTINCT w FROM regexp_split_to_table(lower(query_text), '[^a-z]+') w WHERE w <> ''
      ), axes AS (
        SELECT d, coalesce(sum(get_byte(decode(md5(w), 'hex'), d) - 127.5), 0)::double precision AS v
        FROM generate_series(0, 7) d LEFT JOIN words ON true GROUP BY d
      ), query AS (
        SELECT %4$s AS embedding
        FROM (SELECT array_agg(v / length ORDER BY d) AS v FROM axes, (SELECT greatest(sqrt(sum(v * v)), 1) AS length FROM axes) l) a
      )
      SELECT m.id, m.title, m.body, %2$s FROM memories m WHERE %3$s ORDER BY %2$s, m.id LIMIT match_count;
    END $f$, vector, format(distance, '(SELECT embedding FROM query)'), gated, format(construct, 'v'));

  IF vector = 'vector' THEN
    CREATE INDEX memories_embedding ON memories USING hnsw (embedding vector_l2_ops);
    -- These two are to find what is nearest of the rows that are seen, which this index alone does not promise.
    ALTER FUNCTION match_memories SET enable_indexscan = off;
    ALTER FUNCTION search_memories_semantic SET enable_indexscan = off;
  ELSIF vector = 'cube' THEN
    CREATE INDEX memories_embedding ON memories USING gist (embedding);
  END IF;
END $$;
