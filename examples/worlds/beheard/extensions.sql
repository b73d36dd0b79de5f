-- The type of embeddings: pgvector if the server has it and who runs this may install it, else the cube extension, which knows the same operator <->.
-- Where neither is there, schema.sql takes an array of numbers and nearest neighbours are found without an index.
-- Run this as a superuser, in the database of the world.
DO $$
DECLARE with_vector boolean := false;
BEGIN
  IF EXISTS (SELECT FROM pg_available_extensions WHERE name = 'vector') THEN
    BEGIN
      CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public;
      with_vector := true;
    EXCEPTION WHEN insufficient_privilege THEN
      RAISE NOTICE 'only a superuser can install pgvector here';
    END;
  END IF;
  IF NOT with_vector AND EXISTS (SELECT FROM pg_available_extensions WHERE name = 'cube') THEN
    CREATE EXTENSION IF NOT EXISTS cube WITH SCHEMA public;
    RAISE NOTICE 'there is no pgvector: embeddings are of type cube, whose literals read (1,2,…)';
  ELSIF NOT with_vector THEN
    RAISE NOTICE 'neither pgvector nor cube is installed: embeddings are arrays, and there is no operator <->';
  END IF;
  IF EXISTS (SELECT FROM pg_available_extensions WHERE name = 'pg_trgm') THEN -- likeness of texts, which contracts know, too
    CREATE EXTENSION IF NOT EXISTS pg_trgm WITH SCHEMA public;
  END IF;
END $$;
