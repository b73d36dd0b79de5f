CREATE TEMP TABLE kept_performer AS SELECT id FROM public.performer p WHERE agency_id = 'nord' AND consent = 'granted' AND deleted_at IS NULL AND (consent_until IS NULL OR consent_until > now()) AND NOT EXISTS (SELECT FROM public.guardian g WHERE g.performer_id = p.id AND g.agreed IS DISTINCT FROM 'granted');
CREATE TEMP TABLE kept_production AS SELECT id FROM public.production WHERE agency_id = 'nord' AND (NOT confidential OR 4 = ANY (team));
CREATE TEMP TABLE kept_part AS SELECT id FROM public.part WHERE production_id IN (SELECT id FROM kept_production);
CREATE TEMP TABLE kept_audition AS SELECT id FROM sched.audition WHERE part_id IN (SELECT id FROM kept_part) AND performer_id IN (SELECT id FROM kept_performer);
CREATE TEMP TABLE kept_reel AS SELECT id FROM public.reel r WHERE agency_id = 'nord' AND NOT EXISTS (SELECT FROM public.reel_performer l LEFT JOIN public.performer p ON p.id = l.performer_id WHERE l.reel_id = r.id AND p.consent IS DISTINCT FROM 'granted');
CREATE TEMP TABLE kept_document AS SELECT id FROM public.document WHERE agency_id = 'nord' AND (performer_id IS NULL OR performer_id IN (SELECT id FROM kept_performer));
CREATE TEMP TABLE kept_event AS SELECT id FROM log.event WHERE agency_id = 'nord' AND (performer_id IS NULL OR performer_id IN (SELECT id FROM kept_performer));
CREATE TEMP TABLE kept_task AS SELECT id FROM public.task WHERE agency_id = 'nord' AND (assignee = 4 OR watchers @> '{4}');
