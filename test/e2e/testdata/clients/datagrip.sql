-- In the manner of DataGrip and the other IDEs of its family: what they read to show a database, written for this test. They
-- ask for the transaction that has written each row of the catalogs, to read again only what has changed since.

--P
SELECT t.transactionid::varchar::bigint AS oldest FROM pg_catalog.pg_locks t WHERE t.transactionid IS NOT NULL ORDER BY pg_catalog.age(t.transactionid) DESC LIMIT 1

--P
SELECT CASE WHEN pg_catalog.pg_is_in_recovery() THEN NULL ELSE (pg_catalog.txid_current() % 4294967296)::varchar::bigint END AS now_at

--P
SELECT d.oid::bigint AS id, d.datname, s.description, d.datistemplate, d.datallowconn, pg_catalog.pg_get_userbyid(d.datdba) AS "owner" FROM pg_catalog.pg_database d LEFT JOIN pg_catalog.pg_shdescription s ON s.objoid = d.oid ORDER BY CASE WHEN d.datname = pg_catalog.current_database() THEN -1::bigint ELSE d.oid::bigint END

--P
SELECT n.oid::bigint AS id, n.xmin AS state, n.nspname, s.description, pg_catalog.pg_get_userbyid(n.nspowner) AS "owner" FROM pg_catalog.pg_namespace n LEFT JOIN pg_catalog.pg_description s ON s.objoid = n.oid ORDER BY CASE WHEN n.nspname = pg_catalog.current_schema() THEN -1::bigint ELSE n.oid::bigint END

--P
SELECT name, is_dst FROM pg_catalog.pg_timezone_names UNION DISTINCT SELECT abbrev, is_dst FROM pg_catalog.pg_timezone_abbrevs

--P
SELECT r.oid::bigint AS id, r.rolname, r.rolsuper, r.rolinherit, r.rolcreaterole, r.rolcreatedb, r.rolcanlogin, r.rolreplication, r.rolconnlimit, r.rolvaliduntil, r.rolbypassrls, r.rolconfig, s.description FROM pg_catalog.pg_roles r LEFT JOIN pg_catalog.pg_shdescription s ON s.objoid = r.oid

--P
SELECT m.member AS id, m.roleid AS role_id, m.admin_option FROM pg_catalog.pg_auth_members m ORDER BY id, m.roleid::text

--P
SELECT s.oid::bigint AS id, s.spcname, s.xmin AS state, pg_catalog.pg_get_userbyid(s.spcowner) AS "owner", pg_catalog.pg_tablespace_location(s.oid) AS location, s.spcoptions, d.description FROM pg_catalog.pg_tablespace s LEFT JOIN pg_catalog.pg_shdescription d ON d.objoid = s.oid

--P
SELECT e.oid AS id, e.xmin AS state, e.extname, e.extversion, e.extnamespace, n.nspname FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace

--P
SELECT l.oid AS id, l.xmin AS state, l.lanname, l.lanpltrusted, h.proname, i.proname, v.proname FROM pg_catalog.pg_language l LEFT JOIN pg_catalog.pg_proc h ON h.oid = l.lanplcallfoid LEFT JOIN pg_catalog.pg_proc i ON i.oid = l.laninline LEFT JOIN pg_catalog.pg_proc v ON v.oid = l.lanvalidator ORDER BY l.lanname

--P
SELECT c.oid, c.xmin AS state, c.castsource, pg_catalog.quote_ident(sn.nspname) || '.' || pg_catalog.quote_ident(s.typname) AS source, c.casttarget, c.castfunc, c.castcontext, c.castmethod FROM pg_cast c JOIN pg_type s ON c.castsource::oid = s.oid JOIN pg_namespace sn ON s.typnamespace = sn.oid WHERE pg_catalog.age(c.xmin) <= coalesce(nullif(greatest(pg_catalog.age('812'::varchar::xid), -1), -1), 2147483647)

--P
SELECT e.oid, e.xmin AS state, e.evtname, e.evtevent, e.evtfoid, e.evtenabled, e.evttags FROM pg_catalog.pg_event_trigger e

--P
SELECT f.oid, f.xmin AS state, f.fdwname, f.fdwoptions FROM pg_catalog.pg_foreign_data_wrapper f WHERE pg_catalog.age(f.xmin) <= pg_catalog.age('0'::varchar::xid)

--P
SELECT a.oid AS id, a.xmin AS state, a.amname, a.amhandler::oid, a.amtype FROM pg_am a

--P
SELECT t.oid AS id, t.relnamespace, pg_catalog.translate(t.relkind, 'rmvpfS', 'rmvrfS') AS kind, t.relname FROM pg_catalog.pg_class t WHERE t.relnamespace = 'public'::regnamespace AND t.relkind IN ('r', 'm', 'v', 'p', 'f', 'S') UNION ALL SELECT oid, collnamespace, 'C', collname FROM pg_catalog.pg_collation WHERE collnamespace = 'public'::regnamespace ORDER BY relnamespace

--P
SELECT c.xmin AS state, q.seqrelid, c.relname, pg_catalog.format_type(q.seqtypid, NULL) AS type, q.seqstart, q.seqincrement, q.seqmin, q.seqmax, q.seqcache, q.seqcycle FROM pg_catalog.pg_sequence q JOIN pg_class c ON q.seqrelid = c.oid WHERE c.relnamespace = 'public'::regnamespace AND pg_catalog.age(c.xmin) <= coalesce(nullif(greatest(pg_catalog.age('0'::varchar::xid), -1), -1), 2147483647)

--P
SELECT t.oid AS id, t.xmin AS state, t.typname, t.typtype, t.typcategory, t.typrelid, t.typbasetype, CASE WHEN t.typtype IN ('c', 'e') THEN NULL ELSE pg_catalog.format_type(t.typbasetype, t.typtypmod) END AS spec, t.typndims, t.typdefault, t.typnotnull FROM pg_catalog.pg_type t LEFT JOIN pg_catalog.pg_class c ON t.typrelid = c.oid WHERE t.typnamespace = 'public'::regnamespace AND pg_catalog.age(t.xmin) <= coalesce(nullif(greatest(pg_catalog.age('0'::varchar::xid), -1), -1), 2147483647) AND (t.typtype IN ('d', 'e') OR c.relkind = 'c'::"char" OR t.typtype = 'p' AND NOT t.typisdefined) ORDER BY 1

--P
SELECT t.relkind, t.relname, t.oid AS id, t.xmin AS state, false AS with_oids, t.reltablespace, t.reloptions, t.relpersistence, (SELECT pg_catalog.array_agg(inhparent::bigint ORDER BY inhseqno)::varchar FROM pg_catalog.pg_inherits WHERE t.oid = inhrelid) AS parents, t.relispartition, pg_catalog.pg_get_partkeydef(t.oid) AS part_key, pg_catalog.pg_get_expr(t.relpartbound, t.oid) AS part_bound, t.relam, pg_catalog.pg_get_userbyid(t.relowner) AS "owner" FROM pg_catalog.pg_class t WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'm', 'v', 'f', 'p') AND pg_catalog.age(t.xmin) <= coalesce(nullif(greatest(pg_catalog.age('0'::varchar::xid), -1), -1), 2147483647) ORDER BY relkind, id

--P
WITH t AS (SELECT DISTINCT c.oid, c.relname, c.relkind FROM pg_catalog.pg_class c, pg_catalog.pg_attribute a WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'm', 'v', 'f', 'p') AND (pg_catalog.age(a.xmin) <= coalesce(nullif(greatest(pg_catalog.age('0'::varchar::xid), -1), -1), 2147483647) OR pg_catalog.age(c.xmin) <= coalesce(nullif(greatest(pg_catalog.age('0'::varchar::xid), -1), -1), 2147483647)) AND a.attrelid = c.oid) SELECT t.oid, c.attnum, c.attname, c.xmin AS state, c.atttypmod, c.attndims, pg_catalog.format_type(c.atttypid, c.atttypmod) AS spec, c.atttypid, c.attnotnull, pg_catalog.pg_get_expr(d.adbin, t.oid) AS standard, NOT c.attislocal AS inherited, c.attfdwoptions, c.attisdropped, c.attidentity, c.attgenerated FROM t JOIN pg_catalog.pg_attribute c ON t.oid = c.attrelid LEFT JOIN pg_catalog.pg_attrdef d ON (c.attrelid, c.attnum) = (d.adrelid, d.adnum) WHERE c.attnum > 0 ORDER BY t.oid, c.attnum

--P
SELECT t.oid, t.relkind, s.relname, h.indexrelid, s.xmin AS state, h.indisunique, h.indisprimary, pg_catalog.pg_get_expr(h.indpred, h.indrelid) AS condition, s.reltablespace, opcmethod FROM pg_catalog.pg_class t JOIN pg_catalog.pg_index h ON h.indrelid = t.oid JOIN pg_catalog.pg_class s ON t.relnamespace = s.relnamespace AND s.oid = h.indexrelid LEFT JOIN pg_catalog.pg_opclass ON pg_opclass.oid = ANY (indclass) WHERE t.relnamespace = 'public'::regnamespace AND t.relkind IN ('r', 'm', 'v', 'p') AND s.relkind IN ('i', 'I') AND pg_catalog.age(s.xmin) <= coalesce(nullif(greatest(pg_catalog.age('0'::varchar::xid), -1), -1), 2147483647)

--P
SELECT h.indexrelid, k, k <= indnkeyatts AS in_key, h.indkey[k - 1] AS at, h.indoption[k - 1] AS options, h.indcollation[k - 1] AS coll, collname, h.indclass[k - 1] AS opclass, CASE WHEN opcdefault THEN NULL ELSE opcname END AS opclass_name, CASE WHEN indexprs IS NULL THEN NULL ELSE pg_catalog.pg_get_indexdef(h.indexrelid, k::int, true) END AS expression, ordered FROM pg_catalog.pg_index h JOIN pg_catalog.pg_class s ON s.oid = h.indexrelid CROSS JOIN unnest(h.indkey) WITH ORDINALITY u (u, k) LEFT JOIN pg_catalog.pg_collation ON pg_collation.oid = h.indcollation[k - 1] CROSS JOIN pg_catalog.pg_indexam_has_property(s.relam, 'can_order') ordered LEFT JOIN pg_catalog.pg_opclass ON pg_opclass.oid = h.indclass[k - 1] WHERE s.relnamespace = 'public'::regnamespace AND s.relkind IN ('i', 'I') AND pg_catalog.age(s.xmin) <= coalesce(nullif(greatest(pg_catalog.age('0'::varchar::xid), -1), -1), 2147483647) ORDER BY h.indexrelid, k

--P
SELECT t.oid AS id, relkind, c.oid::bigint AS con, c.xmin::varchar::bigint AS state, conname, contype, conkey, conindid, confrelid, condeferrable, condeferred, confupdtype, confdeltype, connoinherit, pg_catalog.pg_get_expr(conbin, t.oid) AS expression, confkey, conexclop::int[], ARRAY (SELECT unnest::regoper::varchar FROM unnest(conexclop)) AS ops FROM pg_catalog.pg_constraint c JOIN pg_catalog.pg_class t ON c.conrelid = t.oid WHERE relkind IN ('r', 'v', 'f', 'p') AND relnamespace = 'public'::regnamespace AND contype IN ('p', 'u', 'f', 'c', 'x') AND pg_catalog.age(t.xmin) <= coalesce(nullif(greatest(pg_catalog.age('0'::varchar::xid), -1), -1), 2147483647) OR pg_catalog.age(c.xmin) < 0

--P
WITH languages AS (SELECT oid AS lang, lanname FROM pg_catalog.pg_language), routines AS (SELECT proname, prolang AS lang, oid AS id, xmin AS state, proargnames, proargmodes, proargtypes::int[] AS ins, proallargtypes::int[] AS arguments, pg_catalog.pg_get_expr(proargdefaults, 0) AS defaults, provariadic, prorettype, proretset, prokind, provolatile, proisstrict, prosecdef, proconfig, procost, pg_catalog.pg_get_userbyid(proowner) AS "owner", prorows, proleakproof, proparallel FROM pg_catalog.pg_proc WHERE pronamespace = 'public'::regnamespace AND NOT (prokind = 'a') AND pg_catalog.age(xmin) <= coalesce(nullif(greatest(pg_catalog.age('0'::varchar::xid), -1), -1), 2147483647)) SELECT * FROM routines NATURAL JOIN languages

--P
SELECT p.oid, p.xmin AS state, p.proname, a.aggtransfn::oid, a.aggtransfn::regproc::text, CASE WHEN a.aggfinalfn::oid = 0 THEN NULL ELSE a.aggfinalfn::regproc::varchar END AS final, CASE WHEN a.aggsortop = 0 THEN NULL ELSE a.aggsortop::regoper::varchar END AS sorted FROM pg_catalog.pg_aggregate a JOIN pg_catalog.pg_proc p ON a.aggfnoid = p.oid WHERE p.pronamespace = 'pg_catalog'::regnamespace AND pg_catalog.age(p.xmin) <= coalesce(nullif(greatest(pg_catalog.age('0'::varchar::xid), -1), -1), 2147483647) ORDER BY p.oid

--P
SELECT o.oid, o.xmin AS state, oprname, oprkind, oprleft, oprright, oprresult, oprcode::oid, oprcode::varchar AS code, oprcom::regoper::varchar AS com, oprcanmerge, oprcanhash FROM pg_catalog.pg_operator o WHERE oprnamespace = 'pg_catalog'::regnamespace AND pg_catalog.age(xmin) <= coalesce(nullif(greatest(pg_catalog.age('0'::varchar::xid), -1), -1), 2147483647)

--P
SELECT oid AS id, xmin, collname, collcollate, collctype, pg_catalog.pg_get_userbyid(collowner) AS "owner" FROM pg_catalog.pg_collation WHERE collnamespace = 'pg_catalog'::regnamespace AND pg_catalog.age(xmin) <= coalesce(nullif(greatest(pg_catalog.age('0'::varchar::xid), -1), -1), 2147483647)

--P
SELECT o.oid AS id, o.amopstrategy, o.amopopr, o.amopopr::regoperator::varchar AS op, o.amopsortfamily, s.opfname, o.amopfamily, c.oid AS class FROM pg_catalog.pg_amop o LEFT JOIN pg_opfamily f ON o.amopfamily = f.oid LEFT JOIN pg_opfamily s ON o.amopsortfamily = s.oid LEFT JOIN pg_depend d ON d.classid = 'pg_amop'::regclass AND o.oid = d.objid AND d.objsubid = 0 LEFT JOIN pg_opclass c ON d.refclassid = 'pg_opclass'::regclass AND c.oid = d.refobjid AND d.refobjsubid = 0 WHERE c.opcnamespace = 'pg_catalog'::regnamespace OR c.opcnamespace IS NULL AND f.opfnamespace = 'pg_catalog'::regnamespace ORDER BY c.oid, f.oid

--P
SELECT p.oid AS id, p.xmin AS state, polname, polrelid, polpermissive, polroles, polcmd, pg_get_expr(polqual, polrelid) AS qual, pg_get_expr(polwithcheck, polrelid) AS checks FROM pg_catalog.pg_policy p JOIN pg_catalog.pg_class c ON polrelid = c.oid WHERE relnamespace = 'public'::regnamespace AND pg_catalog.age(p.xmin) <= coalesce(nullif(greatest(pg_catalog.age('0'::varchar::xid), -1), -1), 2147483647) ORDER BY polrelid

--P
SELECT t.tgrelid, t.oid AS id, t.xmin AS state, t.tgname, t.tgfoid, pg_catalog.encode(t.tgargs, 'escape') AS args, t.tgtype, t.tgenabled, t.tgdeferrable, t.tginitdeferred, t.tgconstraint, pg_catalog.pg_get_triggerdef(t.oid, true) AS text, tgattr FROM pg_catalog.pg_trigger t, pg_catalog.pg_class c WHERE NOT t.tgisinternal AND c.oid = t.tgrelid AND c.relnamespace = 'public'::regnamespace

--P
SELECT r.ev_class, r.oid, r.xmin AS state, r.rulename, pg_catalog.translate(r.ev_type, '1234', 'SUID') AS kind, r.ev_enabled, r.is_instead FROM pg_catalog.pg_rewrite r JOIN pg_catalog.pg_class c ON c.oid = r.ev_class WHERE c.relnamespace = 'public'::regnamespace AND NOT r.rulename = '_RETURN' AND pg_catalog.age(r.xmin) <= coalesce(nullif(greatest(pg_catalog.age('0'::varchar::xid), -1), -1), 2147483647)

--P
SELECT t.oid AS id, t.relacl AS acl FROM pg_catalog.pg_class t WHERE relnamespace = 'public'::regnamespace AND pg_catalog.age(t.xmin) <= pg_catalog.age('0'::varchar::xid) UNION ALL SELECT t.oid, t.proacl FROM pg_catalog.pg_proc t WHERE pronamespace = 'public'::regnamespace AND pg_catalog.age(t.xmin) <= pg_catalog.age('0'::varchar::xid) ORDER BY id

--P
SELECT t.oid AS id, a.attnum, a.attacl FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class t ON t.oid = a.attrelid WHERE relnamespace = 'public'::regnamespace AND attnum > 0 AND pg_catalog.age(a.xmin) <= pg_catalog.age('0'::varchar::xid) ORDER BY id, attnum

--P
SELECT d.objid, d.refobjid, d.refobjsubid FROM pg_depend d JOIN pg_class q ON d.objid = q.oid AND d.classid = 'pg_class'::regclass::oid JOIN pg_class t ON d.refobjid = t.oid AND d.refclassid = 'pg_class'::regclass::oid WHERE q.relkind = 'S' AND t.relkind = 'r' AND d.refobjsubid <> 0 AND (d.deptype = 'a' OR d.deptype = 'i') AND t.relnamespace = 'public'::regnamespace ORDER BY 2

--P
SELECT t.relkind, t.oid AS id, pg_catalog.pg_get_viewdef(t.oid, true) AS text FROM pg_catalog.pg_class t JOIN pg_catalog.pg_namespace n ON t.relnamespace = n.oid WHERE n.oid = 'public'::regnamespace AND t.relkind IN ('m', 'v') AND (pg_catalog.age(t.xmin) <= coalesce(nullif(greatest(pg_catalog.age('0'::varchar::xid), -1), -1), 2147483647) OR EXISTS (SELECT a.attrelid FROM pg_catalog.pg_attribute a WHERE a.attrelid = t.oid AND pg_catalog.age(a.xmin) <= coalesce(nullif(greatest(pg_catalog.age('0'::varchar::xid), -1), -1), 2147483647)))

--P
SELECT oid AS id, pg_catalog.pg_get_function_arguments(oid) AS arguments, pg_catalog.pg_get_function_result(oid) AS result, pg_catalog.pg_get_function_sqlbody(oid) AS body, prosrc FROM pg_catalog.pg_proc WHERE pronamespace = 'public'::regnamespace AND NOT (prokind = 'a') AND pg_catalog.age(xmin) <= coalesce(nullif(greatest(pg_catalog.age('0'::varchar::xid), -1), -1), 2147483647) AND prosrc IS NOT NULL

--P
SHOW TRANSACTION ISOLATION LEVEL
