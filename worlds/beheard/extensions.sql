-- The type of embeddings: pgvector if the server has it, else the cube extension, which knows the same operator <->.
-- Where neither is there, schema.sql takes an array of numbers and nearest neighbours are found without an index.
-- Run this as a superuser, in the database of the world.
DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector') THEN
    CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public;
  ELSIF EXISTS (SELECT FROM pg_available_extensions WHERE name = 'cube') THEN
    CREATE EXTENSION IF NOT EXISTS cube WITH SCHEMA public;
    RAISE NOTICE 'pgvector is not installed: embeddings are of type cube, whose literals read (1,2,…)';
  ELSE
    RAISE NOTICE 'neither pgvector nor cube is installed: embeddings are arrays, and there is no operator <->';
  END IF;
  IF EXISTS (SELECT FROM pg_available_extensions WHERE name = 'pg_trgm') THEN -- likeness of texts, which contracts know, too
    CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA public;
  END IF;
END $$;
