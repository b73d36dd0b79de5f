CREATE TEMP TABLE kept_party AS SELECT id FROM public.party g WHERE insurer = 'ALFA' AND EXISTS (SELECT FROM public.permission c WHERE c.party_id = g.id AND c.insurer = g.insurer AND c.given_to IN ('home', '*') AND c.about IN ('claims', '*') AND c.withdrawn IS NULL AND (c.until IS NULL OR c.until > now()));
CREATE TEMP TABLE kept_policy AS SELECT insurer, number, version FROM "Claims".policy WHERE insurer = 'ALFA' AND holder IN (SELECT id FROM kept_party);
CREATE TEMP TABLE kept_claim AS SELECT "claimId" AS id FROM "Claims"."Claim" WHERE insurer = 'ALFA' AND (team = 'home' OR handler = 140 OR 140 = ANY (readers)) AND status <> 'fraud';
CREATE TEMP TABLE kept_document AS SELECT id FROM public.document WHERE NOT private AND ("claimId" IS NULL OR "claimId" IN (SELECT id FROM kept_claim));
