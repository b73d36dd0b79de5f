-- What a server like PostgREST asks as it starts, in our words: the version, the settings of its role and of the roles that it may take, and from the
-- catalogs the tables, keys, functions and types that it serves. A line that begins with --- names a statement, one with --: gives a parameter, its type
-- and value.

--- version
SELECT version() AS whole, current_setting('server_version') AS short, current_setting('server_version_num')::integer AS number

--- db_settings
--: text[] {pgrst.jwt_secret,pgrst.db_schemas,pgrst.db_anon_role,pgrst.db_max_rows,pgrst.db_pre_request,pgrst.openapi_mode}
SELECT DISTINCT ON (pair[1]) replace(pair[1], 'pgrst.', '') AS setting, pair[2] AS chosen
FROM pg_catalog.pg_db_role_setting AS s
LEFT JOIN pg_catalog.pg_database AS d ON d.oid = s.setdatabase
CROSS JOIN LATERAL unnest(s.setconfig) AS line
CROSS JOIN LATERAL regexp_match(line, '^([^=]+)=(.*)$') AS pair
WHERE s.setrole = quote_ident(current_user)::regrole::oid AND (s.setdatabase = 0 OR d.datname = current_catalog) AND pair[1] = ANY ($1)
ORDER BY pair[1], d.oid DESC NULLS LAST

--- role_settings
WITH mine AS (
  SELECT rolname, unnest(rolconfig) AS line
  FROM pg_roles
  WHERE oid IN (SELECT roleid FROM pg_auth_members WHERE member = quote_ident(current_user)::regrole::oid)
), split AS (
  SELECT rolname, left(line, strpos(line, '=') - 1) AS name, substr(line, strpos(line, '=') + 1) AS value, 'default_transaction_isolation' AS level
  FROM mine
)
SELECT rolname, max(value) FILTER (WHERE name = level) AS level, coalesce(array_agg((name, value)) FILTER (WHERE name <> level), '{}') AS others
FROM split
INNER JOIN pg_settings AS known USING (name)
WHERE has_parameter_privilege(quote_ident(current_user)::regrole::oid, name, 'set') OR known.context = 'user'
GROUP BY rolname

--- setting_contexts
--: text[] {statement_timeout,default_transaction_isolation,TimeZone,log_statement}
SELECT name, context, vartype FROM pg_settings WHERE name = ANY ($1)

--- timezones
SELECT z.name FROM pg_timezone_names AS z ORDER BY z.name

--- tables
--: text[] {"\"public\""}
WITH RECURSIVE stands_for (type, base) AS (
  SELECT oid, oid FROM pg_type WHERE typbasetype = 0
  UNION
  SELECT d.oid, s.base FROM stands_for AS s, pg_type AS d WHERE d.typbasetype = s.type
), parts AS (
  SELECT f.attrelid, array_agg(row(
    f.attname,
    (SELECT description FROM pg_description WHERE (classoid, objoid, objsubid) = ('pg_class'::regclass, f.attrelid, f.attnum)),
    NOT f.attnotnull AND NOT (ty.typtype = 'd' AND ty.typnotnull),
    CASE base.typnamespace WHEN 'pg_catalog'::regnamespace THEN format_type(base.oid, NULL::integer) ELSE format_type(ty.oid, f.atttypmod) END,
    format_type(ty.oid, f.atttypmod)::text,
    information_schema._pg_char_max_length(information_schema._pg_truetypid(f.*, ty.*), information_schema._pg_truetypmod(f.*, ty.*))::integer,
    CASE WHEN f.attidentity = 'd'
      THEN (SELECT format('nextval(%L)', objid::regclass) FROM pg_depend WHERE (refobjid, refobjsubid) = (f.attrelid, f.attnum) AND deptype = 'i' LIMIT 1)
      ELSE coalesce(pg_get_expr(own.adbin, own.adrelid), pg_get_expr(ty.typdefaultbin, 0)) END,
    ARRAY(SELECT e.enumlabel FROM pg_enum AS e WHERE e.enumtypid = base.oid ORDER BY e.enumsortorder)
  ) ORDER BY f.attnum) AS list
  FROM pg_attribute AS f
  INNER JOIN pg_type AS ty ON ty.oid = f.atttypid
  INNER JOIN stands_for AS s ON s.type = ty.oid
  INNER JOIN pg_type AS base ON base.oid = s.base
  LEFT JOIN pg_attrdef AS own ON (own.adrelid, own.adnum) = (f.attrelid, f.attnum) AND f.attgenerated = ''
  WHERE f.attnum > 0 AND NOT f.attisdropped AND f.attrelid IN (SELECT oid FROM pg_class WHERE relnamespace = ANY ($1::regnamespace[]))
  GROUP BY f.attrelid
)
SELECT c.relnamespace::regnamespace::text, c.relname, remark.description, c.relkind NOT IN ('r', 'p', 'f'),
  may.bits & 8 <> 0, may.bits & 4 <> 0, may.bits & 16 <> 0,
  coalesce((
    SELECT array_agg(f.attname ORDER BY f.attname) FROM pg_constraint AS k
    INNER JOIN pg_attribute AS f ON f.attrelid = k.conrelid AND f.attnum = ANY (k.conkey)
    WHERE k.conrelid = c.oid AND k.contype IN ('p')
  ), '{}') AS key,
  coalesce(parts.list, '{}') AS list
FROM pg_class AS c
CROSS JOIN LATERAL (SELECT CASE
  WHEN c.relkind IN ('r', 'p') THEN 4 + 8 + 16
  WHEN c.relkind <> 'm' THEN pg_relation_is_updatable(c.oid::regclass, true)
  ELSE 0 END AS bits) AS may
LEFT JOIN parts ON parts.attrelid = c.oid
LEFT JOIN pg_description AS remark ON remark.objoid = c.oid AND remark.classoid = 'pg_class'::regclass AND remark.objsubid = 0
WHERE c.relnamespace <> ALL ('{pg_catalog,information_schema}'::regnamespace[]) AND c.relkind IN ('r', 'p', 'f', 'v', 'm')
  AND NOT c.relispartition AND NOT pg_is_other_temp_schema(c.relnamespace)

--- view_keys
--: text[] {"\"public\""}
--: text[] {"\"public\""}
WITH RECURSIVE rule AS (
  SELECT c.oid AS view, c.relnamespace AS schema, regexp_replace(translate(r.ev_action::text, '"[],', '....'), '\\.', '', 'g') AS tree
  FROM pg_rewrite AS r
  INNER JOIN pg_class AS c ON c.oid = r.ev_class AND c.relkind IN ('v', 'm')
  WHERE c.relnamespace = ANY ($1::regnamespace[] || $2::regnamespace[])
), document AS ( -- a node and a list are both an array, and each other word is a string
  SELECT view, schema, regexp_replace(
    translate(regexp_replace(tree, '[^ (){}]+', '"\&"', 'g'), '(){}', '[][]'), '(["\]]) *(?=[ \[])', '\1,', 'g')::json AS tree
  FROM rule
), field AS (
  SELECT view, schema, f.value, lag(f.value::text) OVER (PARTITION BY view ORDER BY f.place) AS name
  FROM document, json_array_elements(tree -> 0) WITH ORDINALITY AS f (value, place)
), entry AS (
  SELECT view, schema, json_array_elements(value) AS words FROM field WHERE name = '":targetList"'
), origin AS (
  SELECT view, schema, (words ->> 4)::int AS place, (words ->> -5)::oid AS source, (words ->> -3)::int AS source_place FROM entry
), trace (view, place, source, source_place, seen) AS (
  SELECT view, place, source, source_place, ARRAY[view] FROM origin WHERE schema = ANY ($1::regnamespace[])
  UNION ALL
  SELECT t.view, t.place, o.source, o.source_place, t.seen || o.view
  FROM trace AS t INNER JOIN origin AS o ON (o.view, o.place) = (t.source, t.source_place) WHERE o.view <> ALL (t.seen)
), key_part AS (
  SELECT k.oid AS key, k.conname, k.contype::text || side.suffix AS kind, side.source, p.source_place, p.nth, cardinality(side.places) AS wanted
  FROM pg_constraint AS k
  CROSS JOIN LATERAL (VALUES ('', k.conrelid, k.conkey), ('_ref', k.confrelid, k.confkey)) AS side (suffix, source, places)
  LEFT JOIN LATERAL unnest(side.places) WITH ORDINALITY AS p (source_place, nth) ON true
  WHERE k.contype = 'f' OR k.contype = 'p' AND side.suffix = ''
), shown AS (
  SELECT t.view, key, conname, kind, source, source_place, nth, wanted, array_agg(f.attname) AS names
  FROM trace AS t
  INNER JOIN key_part USING (source, source_place)
  INNER JOIN pg_attribute AS f ON f.attrelid = t.view AND f.attnum = t.place
  GROUP BY t.view, key, conname, kind, source, source_place, nth, wanted
)
SELECT home.nspname, base.relname, v.relnamespace::regnamespace::text, v.relname, s.conname, s.kind, array_agg(row(f.attname, s.names) ORDER BY s.nth)
FROM shown AS s
INNER JOIN pg_class AS v ON v.oid = s.view
INNER JOIN pg_class AS base ON base.oid = s.source
INNER JOIN pg_namespace AS home ON home.oid = base.relnamespace
INNER JOIN pg_attribute AS f ON f.attrelid = s.source AND f.attnum = s.source_place
GROUP BY home.nspname, base.relname, v.oid, v.relnamespace, v.relname, s.key, s.conname, s.kind, s.wanted
HAVING count(*) = s.wanted

--- relationships
SELECT near_schema.nspname, near.relname, far_schema.nspname, far.relname, near.oid = far.oid, k.conname,
  (
    SELECT array_agg(row(a.attname, b.attname) ORDER BY p.nth)
    FROM unnest(k.conkey, k.confkey) WITH ORDINALITY AS p (here, there, nth)
    INNER JOIN pg_attribute AS a ON (a.attrelid, a.attnum) = (near.oid, p.here)
    INNER JOIN pg_attribute AS b ON (b.attrelid, b.attnum) = (far.oid, p.there)
  ) AS pairs,
  ARRAY(SELECT unnest(k.conkey) ORDER BY 1) IN (
    SELECT array_agg(n ORDER BY n) FROM pg_constraint AS u, LATERAL unnest(u.conkey) AS n
    WHERE u.conrelid = k.conrelid AND u.contype IN ('u', 'p') AND u.connamespace <> 'pg_catalog'::regnamespace GROUP BY u.oid
  ) AS at_most_one
FROM pg_constraint AS k
INNER JOIN pg_class AS near ON near.oid = k.conrelid
INNER JOIN pg_class AS far ON far.oid = k.confrelid
INNER JOIN pg_namespace AS near_schema ON near_schema.oid = near.relnamespace
INNER JOIN pg_namespace AS far_schema ON far_schema.oid = far.relnamespace
WHERE k.conparentid = 0 AND k.contype = 'f'

--- functions
--: text[] {"\"public\""}
--: text[] {statement_timeout,default_transaction_isolation}
WITH stands_for AS (
  WITH RECURSIVE step (type, base) AS (
    SELECT oid, oid FROM pg_type WHERE typbasetype = 0
    UNION
    SELECT d.oid, s.base FROM step AS s, pg_type AS d WHERE d.typbasetype = s.type
  )
  SELECT type, base FROM step
)
SELECT f.pronamespace::regnamespace::text, f.proname, remark.description, coalesce(given.list, '{}') AS given, home.nspname, coalesce(made.relname, ty.typname),
  f.proretset, ty.typtype = 'c' OR coalesce(f.proargmodes::text[] && ARRAY['o', 'b', 't'], false), ty.oid <> f.prorettype, f.provolatile, f.provariadic <> 0,
  (SELECT (regexp_split_to_array(line, '[=,]'))[2] FROM unnest(f.proconfig) AS line WHERE line LIKE 'default_transaction_isolation=%') AS level,
  ARRAY(SELECT row(left(line, strpos(line, '=') - 1), substr(line, strpos(line, '=') + 1)) FROM unnest(f.proconfig) AS line WHERE line ~ ANY ($2)) AS settings
FROM pg_proc AS f
INNER JOIN stands_for AS s ON s.type = f.prorettype
INNER JOIN pg_type AS ty ON ty.oid = s.base
INNER JOIN pg_namespace AS home ON home.oid = ty.typnamespace
LEFT JOIN pg_class AS made ON made.oid = ty.typrelid
LEFT JOIN pg_description AS remark ON (remark.classoid, remark.objoid) = ('pg_proc'::regclass, f.oid)
LEFT JOIN LATERAL (
  SELECT bool_and(p.label IS NOT NULL) AS named, (array_agg(p.type))[1] AS first, count(*) AS number,
    array_agg((
      coalesce(p.label, ''), p.type::regtype::text,
      CASE WHEN p.type IN ('bit'::regtype, 'character'::regtype, 'bit[]'::regtype, 'character[]'::regtype)
        THEN regexp_replace(p.type::regtype::text, '^\w+', '\& varying') ELSE p.type::regtype::text END,
      p.nth + f.pronargdefaults <= f.pronargs, coalesce(p.mode = 'v', false)
    ) ORDER BY p.nth) AS list
  FROM unnest(f.proargtypes, f.proargnames, f.proargmodes) WITH ORDINALITY AS p (type, label, mode, nth)
  WHERE p.type IS NOT NULL
) AS given ON true
WHERE f.prokind = 'f' AND f.pronamespace = ANY ($1::regnamespace[]) AND ty.oid <> 'trigger'::regtype
  AND (given.named IS NOT false OR given.number = 1 AND given.first IN ('text'::regtype, 'bytea'::regtype, 'xml'::regtype, 'jsonb'::regtype, 'json'::regtype))

--- computed_relationships
WITH shape AS (
  SELECT c.reltype, c.relname::text AS name, n.nspname::text AS home FROM pg_class AS c INNER JOIN pg_namespace AS n ON n.oid = c.relnamespace
  WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm')
), link AS (
  SELECT (parse_ident(f.pronamespace::regnamespace::text))[1] AS home, f.proname::text, a.home AS from_home, a.name AS from_name, b.home AS to_home,
    b.name AS to_name, f.prorows = 1 OR NOT f.proretset AS at_most_one
  FROM pg_proc AS f
  INNER JOIN shape AS a ON a.reltype = f.proargtypes[0]
  INNER JOIN shape AS b ON b.reltype = f.prorettype
  WHERE f.pronargs = 1
)
SELECT link.*, row(to_home, to_name) = row(from_home, from_name) AS to_itself FROM link

--- representations
WITH plain (type) AS (VALUES ('text'::regtype::oid), ('json'::regtype::oid))
SELECT k.castfunc::regproc::text, k.castsource::regtype::text, k.casttarget::regtype::text
FROM pg_catalog.pg_cast AS k, pg_catalog.pg_type AS d
WHERE d.typtype = 'd' AND k.castmethod = 'f' AND k.castcontext = 'i' AND has_function_privilege(k.castfunc, 'execute') AND (
  d.oid = k.castsource AND k.casttarget IN (SELECT type FROM plain) OR d.oid = k.casttarget AND k.castsource IN (SELECT type FROM plain)
)

--- media_handlers
--: text[] {"\"public\""}
WITH media AS (
  SELECT d.oid, d.typnamespace::regnamespace::text AS home, lower(d.typname) AS name, coalesce(nullif(d.typname, '*/*'), 'application/octet-stream') AS sent_as
  FROM pg_type AS d
  WHERE d.typbasetype <> 0 AND (d.typname = '*/*' OR d.typname ~* '^[a-z0-9.-]+/[a-z0-9.+-]+$')
), taken AS (
  SELECT reltype AS type FROM pg_class WHERE relkind = ANY ('{r,p,f,v,m}') UNION SELECT oid FROM pg_type WHERE typname = 'anyelement'
), maker AS (
  SELECT f.oid, f.proname, n.nspname, f.prokind, f.proretset, f.pronargs, f.proargtypes[0] AS first, media.name, media.home, media.sent_as
  FROM pg_proc AS f INNER JOIN media ON media.oid = f.prorettype INNER JOIN pg_namespace AS n ON n.oid = f.pronamespace
  WHERE f.pronamespace = ANY ($1::regnamespace[])
)
SELECT home, name, nspname, proname, name, sent_as FROM maker WHERE prokind = 'f' AND NOT proretset
UNION
SELECT m.nspname, m.proname, n.nspname, ty.typname, m.name, m.sent_as
FROM maker AS m
INNER JOIN pg_aggregate AS whole ON whole.aggfnoid = m.oid
INNER JOIN pg_type AS ty ON ty.oid = m.first
INNER JOIN pg_namespace AS n ON n.oid = ty.typnamespace
WHERE m.pronargs = 1 AND m.first IN (SELECT type FROM taken)

--- openapi_tables
--: text public
SELECT c.relnamespace::regnamespace::text AS home, c.relname
FROM pg_class AS c
WHERE c.relnamespace = $1::regnamespace AND NOT c.relispartition AND c.relkind IN ('r', 'p', 'f', 'v', 'm') AND CASE
  WHEN pg_has_role(c.relowner, 'usage') THEN true
  WHEN has_table_privilege(c.oid, 'trigger, references, truncate, delete, update, insert, select') THEN true
  ELSE has_any_column_privilege(c.oid, 'references, update, insert, select') END
ORDER BY 1, 2

--- openapi_functions
--: text public
SELECT f.proname, obj_description(f.oid, 'pg_proc'), f.prorettype::regtype::text, f.proretset, f.provolatile,
  ARRAY(SELECT (n, t::regtype::text) FROM unnest(f.proargnames, f.proargtypes) AS p (n, t) WHERE t IS NOT NULL) AS given
FROM pg_proc AS f
WHERE f.pronamespace = $1::regnamespace AND f.prokind = 'f' AND f.prorettype <> 'trigger'::regtype AND has_function_privilege(f.oid, 'execute')

--- openapi_description
--: unknown public
SELECT obj_description(home, 'pg_namespace') FROM (SELECT $1::regnamespace::oid AS home) AS asked

--- listen
LISTEN "pgrst"
