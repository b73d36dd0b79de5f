-- What the assistant of account 6 may see, written without a look at the policy's SQL.
CREATE TEMP TABLE me AS SELECT md5('account 6')::uuid AS id;
CREATE TEMP TABLE kept_account AS SELECT id FROM account WHERE tenant = 't2' AND consent = 'given' AND (until IS NULL OR until > now()) AND NOT deleted;
CREATE TEMP TABLE kept_folder AS SELECT id FROM folder WHERE tenant = 't2' AND (shared OR owner = (SELECT id FROM me));
CREATE TEMP TABLE kept_document AS SELECT tenant, id FROM document d WHERE tenant = 't2' AND folder IN (SELECT id FROM kept_folder) AND (about = '{}' OR about <@ ARRAY(SELECT id FROM kept_account));
CREATE TEMP TABLE kept_thread AS SELECT id FROM thread WHERE tenant = 't2' AND id IN (SELECT thread FROM participant WHERE account = (SELECT id FROM me));
CREATE TEMP TABLE kept_participant AS SELECT thread, account FROM participant WHERE thread IN (SELECT thread FROM participant WHERE account = (SELECT id FROM me)) AND account IN (SELECT id FROM kept_account);
CREATE TEMP TABLE kept_message AS SELECT id FROM message WHERE thread IN (SELECT id FROM kept_thread) AND (author = (SELECT id FROM me) OR NOT private AND (author IS NULL OR author IN (SELECT id FROM kept_account)));
CREATE TEMP TABLE kept_summary AS SELECT id FROM summary s WHERE tenant = 't2' AND id IN (SELECT summary FROM summary_source) AND NOT EXISTS (SELECT 1 FROM summary_source x WHERE x.summary = s.id AND x.message NOT IN (SELECT id FROM kept_message));
CREATE TEMP TABLE kept_memory AS SELECT id FROM memory m WHERE owner = (SELECT id FROM me) AND jsonb_typeof(sources) = 'array' AND sources <> '[]' AND NOT EXISTS (SELECT 1 FROM jsonb_array_elements_text(CASE jsonb_typeof(sources) WHEN 'array' THEN sources ELSE '[]' END) x WHERE x NOT IN (SELECT id::text FROM kept_message));
CREATE TEMP TABLE kept_event AS SELECT tenant, id FROM event WHERE tenant = 't2' AND actor IN (SELECT id FROM kept_account UNION SELECT id FROM me);
