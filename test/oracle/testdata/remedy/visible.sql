-- What member 5 of the clinic alder, for care and research, may see, written without a look at the policy's SQL.
CREATE TEMP TABLE agreed AS SELECT person_id FROM consent WHERE grantee IN ('alder', 'night', '*') AND purpose IN ('care', 'research') AND withdrawn_at IS NULL AND during @> now();
CREATE TEMP TABLE kept_person AS SELECT id FROM person p WHERE deleted_at IS NULL AND (clinic_id = 'alder' OR EXISTS (SELECT FROM sharing s WHERE s.owner = p.clinic_id AND s.partner = 'alder' AND s.ended_at IS NULL AND coalesce(s.until, 'infinity') > now()))
  AND (id IN (SELECT person_id FROM agreed) OR EXISTS (SELECT FROM guardian g JOIN agreed a ON a.person_id = g.guardian WHERE g.ward = p.id AND g.active));
CREATE TEMP TABLE kept_resource AS SELECT id FROM fhir.resource WHERE person_id IN (SELECT id FROM kept_person) AND (kind <> 'DocumentReference' OR clinic_id = 'alder');
CREATE TEMP TABLE kept_call AS SELECT id FROM voice.call WHERE person_id IN (SELECT id FROM kept_person) AND outcome IS DISTINCT FROM 'sealed';
CREATE TEMP TABLE kept_speaker AS SELECT call_id, label FROM voice.speaker WHERE call_id IN (SELECT id FROM kept_call) AND (person_id IS NULL OR person_id IN (SELECT id FROM kept_person));
CREATE TEMP TABLE kept_summary AS SELECT id FROM voice.summary s WHERE clinic_id = 'alder' AND cardinality(calls) > 0 AND calls <@ ARRAY(SELECT id FROM kept_call);
