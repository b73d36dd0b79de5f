-- What the assistant of employee 6 may see, written without a look at the policy's SQL.
CREATE TEMP TABLE kept_unit AS SELECT id FROM hr.unit WHERE company = 'CYN' AND (id IN (6, 14) OR NOT secret);
CREATE TEMP TABLE kept_employee AS SELECT id FROM hr.employee WHERE company = 'CYN' AND left_on IS NULL AND (id = 6 OR shares @> '{directory}');
CREATE TEMP TABLE kept_absence AS SELECT id FROM hr.absence WHERE employee IN (SELECT id FROM kept_employee) AND (employee = 6 OR state = 'approved' AND kind <> 'sick');
CREATE TEMP TABLE kept_shift AS SELECT id FROM hr.shift WHERE company = 'CYN' AND (employee IS NULL OR employee IN (SELECT id FROM kept_employee));
CREATE TEMP TABLE kept_review AS SELECT id FROM hr.review WHERE about IN (SELECT id FROM kept_employee) AND (author = 6 OR about = 6 AND NOT private);
CREATE TEMP TABLE kept_goal AS SELECT id FROM hr.goal WHERE owner = 6 OR shared AND owner IN (SELECT id FROM kept_employee);
CREATE TEMP TABLE kept_candidate AS SELECT id FROM hr.candidate c WHERE company = 'CYN' AND keep_until > now() AND EXISTS (SELECT FROM hr.permission p WHERE p.candidate = c.id AND purpose = 'assistant' AND grantee IN ('CYN', '*') AND revoked IS NULL AND (until IS NULL OR until > now()));
CREATE TEMP TABLE kept_interview AS SELECT id FROM hr.interview WHERE candidate IN (SELECT id FROM kept_candidate) AND (interviewer = 6 OR interviewer IN (SELECT id FROM kept_employee));
CREATE TEMP TABLE kept_channel AS SELECT id FROM hr.channel WHERE company = 'CYN' AND (6 = ANY (members) OR kind = 'o');
CREATE TEMP TABLE kept_post AS SELECT id FROM hr.post WHERE channel IN (SELECT id FROM kept_channel) AND gone IS NULL;
CREATE TEMP TABLE kept_digest AS SELECT id FROM hr.digest WHERE owner = 6 AND posts <> '{}' AND posts <@ ARRAY(SELECT id FROM kept_post);
CREATE TEMP TABLE kept_ticket AS SELECT id FROM hr.ticket WHERE company = 'CYN' AND (opener = 6 OR assignee = 6 OR jsonb_typeof(watchers) = 'array' AND watchers ? '6' AND NOT confidential);
