SELECT 'insurer' AS what, count(*), sum(hashtextextended(x::text, 0)) FROM ref.insurer x
UNION ALL SELECT 'staff', count(*), sum(hashtextextended(x::text, 0)) FROM public.staff x
UNION ALL SELECT 'party', count(*), sum(hashtextextended(x::text, 0)) FROM public.party x
UNION ALL SELECT 'person', count(*), sum(hashtextextended(x::text, 0)) FROM public.person x
UNION ALL SELECT 'permission', count(*), sum(hashtextextended(x::text, 0)) FROM public.permission x
UNION ALL SELECT 'policy', count(*), sum(hashtextextended(x::text, 0)) FROM "Claims".policy x
UNION ALL SELECT 'vehicle', count(*), sum(hashtextextended(x::text, 0)) FROM "Claims".vehicle x
UNION ALL SELECT 'claim', count(*), sum(hashtextextended(x::text, 0)) FROM "Claims"."Claim" x WHERE insurer <> 'ALFA' OR status = 'fraud' OR NOT (team = 'home' OR handler = 140 OR 140 = ANY (readers))
UNION ALL SELECT 'score of claims', count(*), sum(hashtextextended(("claimId", "siu score", opening, handler, team, readers, status)::text, 0)) FROM "Claims"."Claim"
UNION ALL SELECT 'parties', count(*), sum(hashtextextended(x::text, 0)) FROM "Claims"."ClaimParty" x WHERE "claimId" NOT IN (SELECT id FROM kept_claim) OR "partyId" NOT IN (SELECT id FROM kept_party)
UNION ALL SELECT 'reserve', count(*), sum(hashtextextended(x::text, 0)) FROM "Claims".reserve x WHERE "claimId" NOT IN (SELECT id FROM kept_claim)
UNION ALL SELECT 'payment', count(*), sum(hashtextextended(x::text, 0)) FROM "Claims".payment x
UNION ALL SELECT 'document', count(*), sum(hashtextextended((id, title, body, tags, private)::text, 0)) FROM public.document x WHERE private OR "claimId" IN (SELECT "claimId" FROM "Claims"."Claim" WHERE "claimId" NOT IN (SELECT id FROM kept_claim))
UNION ALL SELECT 'letter', count(*), sum(hashtextextended(x::text, 0)) FROM public.letter x WHERE "claimId" NOT IN (SELECT id FROM kept_claim)
UNION ALL SELECT 'note', count(*), sum(hashtextextended(x::text, 0)) FROM public.note x WHERE author <> 140
UNION ALL SELECT 'task', count(*), sum(hashtextextended(x::text, 0)) FROM public.task x WHERE owner <> 140
UNION ALL SELECT 'score', count(*), sum(hashtextextended(x::text, 0)) FROM public.score x
UNION ALL SELECT 'log', count(*), sum(hashtextextended(x::text, 0)) FROM public.log x
