-- What a server like PostgREST sends for a request after the settings of its transaction, for the tables of this test. The server reads the columns of the
-- outermost SELECT by their places. A line that begins with --- names the request and its method, one with --: gives a parameter, its type and value.

--- GET /notes?select=id,body,folder:folders(id,title)&mood=eq.glad&order=id.asc
--: unknown glad
WITH pgrst_source AS (
  SELECT "public"."notes"."id", "public"."notes"."body", row_to_json("its_folder".*)::jsonb AS "folder"
  FROM "public"."notes"
  LEFT JOIN LATERAL (
    SELECT "f"."id", "f"."title" FROM "public"."folders" AS "f" WHERE "f"."id" = "public"."notes"."folder"
  ) AS "its_folder" ON TRUE
  WHERE "public"."notes"."mood" = $1
  ORDER BY "public"."notes"."id" ASC
)
SELECT null::bigint AS total_result_set, pg_catalog.count(r) AS page_total,
  coalesce(json_agg(r), '[]') AS body,
  nullif(current_setting('response.headers', true), '') AS response_headers,
  nullif(current_setting('response.status', true), '') AS response_status, '' AS response_inserted
FROM (SELECT * FROM pgrst_source) AS r

--- GET /folders?select=title,notes(body) Prefer: count=exact
WITH pgrst_source AS (
  SELECT "public"."folders"."title", COALESCE("its_notes"."list", '[]') AS "notes"
  FROM "public"."folders"
  LEFT JOIN LATERAL (
    SELECT json_agg("one")::jsonb AS "list"
    FROM (SELECT "n"."body" FROM "public"."notes" AS "n" WHERE "n"."folder" = "public"."folders"."id") AS "one"
  ) AS "its_notes" ON TRUE
)
SELECT pg_catalog.count(r) AS total_result_set, pg_catalog.count(r) AS page_total,
  coalesce(json_agg(r), '[]') AS body,
  nullif(current_setting('response.headers', true), '') AS response_headers,
  nullif(current_setting('response.status', true), '') AS response_status, '' AS response_inserted
FROM (SELECT * FROM pgrst_source) AS r

--- GET /notes?select=id,tags!inner(name)&tags.name=eq.red&order=id&limit=2&offset=0 Prefer: count=exact
--: unknown red
--: unknown 2
--: unknown 0
--: unknown red
WITH pgrst_source AS (
  SELECT "public"."notes"."id", COALESCE("its_tags"."list", '[]') AS "tags"
  FROM "public"."notes"
  INNER JOIN LATERAL (
    SELECT json_agg("one")::jsonb AS "list"
    FROM (
      SELECT "public"."tags"."name" FROM "public"."tags", "public"."note_tags"
      WHERE "public"."note_tags"."note" = "public"."notes"."id" AND "public"."note_tags"."tag" = "public"."tags"."id" AND "public"."tags"."name" = $1
    ) AS "one"
  ) AS "its_tags" ON "its_tags" IS NOT NULL
  ORDER BY "public"."notes"."id"
  LIMIT $2 OFFSET $3
), every AS (
  SELECT 1 FROM "public"."notes" WHERE EXISTS (
    SELECT 1 FROM "public"."tags", "public"."note_tags"
    WHERE "public"."note_tags"."note" = "public"."notes"."id" AND "public"."note_tags"."tag" = "public"."tags"."id" AND "public"."tags"."name" = $4
  )
)
SELECT (SELECT pg_catalog.count(*) FROM every) AS total_result_set, pg_catalog.count(r) AS page_total,
  coalesce(json_agg(r), '[]') AS body,
  nullif(current_setting('response.headers', true), '') AS response_headers,
  nullif(current_setting('response.status', true), '') AS response_status, '' AS response_inserted
FROM (SELECT * FROM pgrst_source) AS r

--- GET /notes?select=id,extra->>colour&body=ilike.*chess*&id=in.(11,12,21)&folder=is.null&or=(mood.eq.glad,mood.is.null)&order=id.desc
--: unknown colour
--: unknown %chess%
--: unknown {"11","12","21"}
--: unknown glad
WITH pgrst_source AS (
  SELECT "public"."notes"."id", to_jsonb("public"."notes"."extra") ->> $1 AS "colour"
  FROM "public"."notes"
  WHERE "public"."notes"."body" ILIKE $2 AND "public"."notes"."id" = ANY ($3) AND "public"."notes"."folder" IS NULL
    AND ("public"."notes"."mood" = $4 OR "public"."notes"."mood" IS NULL)
  ORDER BY "public"."notes"."id" DESC
)
SELECT null::bigint AS total_result_set, pg_catalog.count(r) AS page_total,
  coalesce(json_agg(r), '[]') AS body,
  nullif(current_setting('response.headers', true), '') AS response_headers,
  nullif(current_setting('response.status', true), '') AS response_status, '' AS response_inserted
FROM (SELECT * FROM pgrst_source) AS r

--- GET /notes?select=id&body=fts(english).chess Accept: application/vnd.pgrst.object+json
--: unknown english
--: unknown chess
WITH pgrst_source AS (
  SELECT "public"."notes"."id" FROM "public"."notes" WHERE "public"."notes"."body" @@ to_tsquery($1, $2)
)
SELECT null::bigint AS total_result_set, pg_catalog.count(r) AS page_total,
  coalesce(json_agg(r) -> 0, 'null') AS body,
  nullif(current_setting('response.headers', true), '') AS response_headers,
  nullif(current_setting('response.status', true), '') AS response_status, '' AS response_inserted
FROM (SELECT * FROM pgrst_source) AS r

--- GET /profiles
WITH pgrst_source AS (
  SELECT "public"."profiles".* FROM "public"."profiles"
)
SELECT null::bigint AS total_result_set, pg_catalog.count(r) AS page_total,
  coalesce(json_agg(r), '[]') AS body,
  nullif(current_setting('response.headers', true), '') AS response_headers,
  nullif(current_setting('response.status', true), '') AS response_status, '' AS response_inserted
FROM (SELECT * FROM pgrst_source) AS r

--- GET /notes?select=id Accept: text/csv
WITH pgrst_source AS (
  SELECT "public"."notes"."id" FROM "public"."notes"
)
SELECT null::bigint AS total_result_set, pg_catalog.count(r) AS page_total,
  concat_ws(E'\n', (SELECT string_agg(key, ',') FROM json_object_keys((SELECT row_to_json(first) FROM pgrst_source AS first LIMIT 1)) AS key),
    string_agg(trim('()' FROM r::text), E'\n')) AS body,
  nullif(current_setting('response.headers', true), '') AS response_headers,
  nullif(current_setting('response.status', true), '') AS response_status, '' AS response_inserted
FROM (SELECT * FROM pgrst_source) AS r

--- GET /rpc/notes_with?word=chess&select=id&order=id
--: unknown chess
WITH pgrst_source AS (
  SELECT "called"."id" FROM "public"."notes_with"("word" := $1::text) AS "called"
)
SELECT null::bigint AS total_result_set, pg_catalog.count(r) AS page_total,
  coalesce(json_agg(r), '[]') AS body,
  nullif(current_setting('response.headers', true), '') AS response_headers,
  nullif(current_setting('response.status', true), '') AS response_status, '' AS response_inserted
FROM (SELECT "notes"."id" FROM "pgrst_source" AS "notes" ORDER BY "notes"."id") AS r

--- POST /rpc/count_with
--: json {"word": "chess"}
WITH pgrst_source AS (
  SELECT called.answer
  FROM (SELECT $1 AS document) AS sent,
    LATERAL (SELECT "word" FROM json_to_record(sent.document) AS _ ("word" text) LIMIT 1) AS given,
    LATERAL (SELECT "public"."count_with"("word" := given."word") AS answer) AS called
)
SELECT null::bigint AS total_result_set, 1 AS page_total,
  coalesce(json_agg(r.answer) -> 0, 'null') AS body,
  nullif(current_setting('response.headers', true), '') AS response_headers,
  nullif(current_setting('response.status', true), '') AS response_status, '' AS response_inserted
FROM (SELECT "count_with".* FROM "pgrst_source" AS "count_with") AS r

--- POST /notes?select=id,body Prefer: return=representation
--: json {"user_id": {user}, "body": "plays chess at night", "folder": {user}0}
WITH pgrst_source AS (
  INSERT INTO "public"."notes" ("body", "folder", "user_id")
  SELECT given."body", given."folder", given."user_id"
  FROM (SELECT $1 AS document) AS sent,
    LATERAL (SELECT "body", "folder", "user_id" FROM json_to_record(sent.document) AS _ ("body" text, "folder" integer, "user_id" integer)) AS given
  RETURNING "public"."notes"."id", "public"."notes"."body"
)
SELECT '' AS total_result_set, pg_catalog.count(r) AS page_total,
  ARRAY[]::text[] AS header,
  coalesce(json_agg(r), '[]') AS body,
  nullif(current_setting('response.headers', true), '') AS response_headers,
  nullif(current_setting('response.status', true), '') AS response_status, '' AS response_inserted
FROM (SELECT "notes"."id", "notes"."body" FROM "pgrst_source" AS "notes") AS r

--- POST /notes Prefer: return=headers-only
--: json [{"user_id": {user}, "body": "one more"}]
WITH pgrst_source AS (
  INSERT INTO "public"."notes" ("body", "user_id")
  SELECT given."body", given."user_id"
  FROM (SELECT $1 AS document) AS sent,
    LATERAL (SELECT "body", "user_id" FROM json_to_recordset(sent.document) AS _ ("body" text, "user_id" integer)) AS given
  RETURNING "public"."notes"."id"
)
SELECT '' AS total_result_set, pg_catalog.count(r) AS page_total,
  CASE pg_catalog.count(r) WHEN 1 THEN (
    SELECT array_agg(concat(part.key, '=', coalesce('eq.' || part.value, 'is.null')))
    FROM (SELECT row_to_json(made) AS made FROM pgrst_source AS made LIMIT 1) AS one, json_each_text(one.made) AS part
    WHERE part.key IN ('id')
  ) ELSE ARRAY[]::text[] END AS header,
  ''::text AS body,
  nullif(current_setting('response.headers', true), '') AS response_headers,
  nullif(current_setting('response.status', true), '') AS response_status, '' AS response_inserted
FROM (SELECT * FROM pgrst_source) AS r

--- PATCH /notes?body=like.one*&select=body Prefer: return=representation
--: json {"body": "one less"}
--: unknown one%
WITH pgrst_source AS (
  UPDATE "public"."notes" SET "body" = given."body"
  FROM (SELECT $1 AS document) AS sent,
    LATERAL (SELECT "body" FROM json_to_record(sent.document) AS _ ("body" text)) AS given
  WHERE "public"."notes"."body" LIKE $2
  RETURNING "public"."notes"."body"
)
SELECT '' AS total_result_set, pg_catalog.count(r) AS page_total,
  ARRAY[]::text[] AS header,
  coalesce(json_agg(r), '[]') AS body,
  nullif(current_setting('response.headers', true), '') AS response_headers,
  nullif(current_setting('response.status', true), '') AS response_status, '' AS response_inserted
FROM (SELECT "notes"."body" FROM "pgrst_source" AS "notes") AS r

--- DELETE /notes?body=eq.one%20less Prefer: return=minimal
--: unknown one less
WITH pgrst_source AS (
  DELETE FROM "public"."notes" WHERE "public"."notes"."body" = $1 RETURNING 1
)
SELECT '' AS total_result_set, pg_catalog.count(r) AS page_total,
  ARRAY[]::text[] AS header,
  ''::text AS body,
  nullif(current_setting('response.headers', true), '') AS response_headers,
  nullif(current_setting('response.status', true), '') AS response_status, '' AS response_inserted
FROM (SELECT * FROM pgrst_source) AS r
