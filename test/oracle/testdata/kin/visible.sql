-- What the assistant of user 8, account 3, may see, written without a look at the policy's SQL.
CREATE TEMP TABLE kept_tree AS SELECT id FROM "Tree Data"."Tree" WHERE ("accountId" = 3 OR 8 = ANY (editors) OR guests::text = '["8"]') AND state <> 'deleted';
CREATE TEMP TABLE agreed AS SELECT "treeId", grantor AS id FROM "Living Consent" WHERE grantee IN ('8', '*') AND topic = '*' AND "revokedAt" IS NULL AND (until IS NULL OR until > now());
CREATE TEMP TABLE kept_person AS SELECT id FROM "Person" p WHERE "treeId" IN (SELECT id FROM kept_tree) AND NOT private AND (NOT living OR ("treeId", id) IN (SELECT "treeId", id FROM agreed) OR EXISTS (SELECT FROM guardian g JOIN agreed a ON a.id = g.guardian WHERE g.ward = p.id AND a."treeId" = p."treeId"));
CREATE TEMP TABLE kept_source AS SELECT id FROM "Source" WHERE "accountId" = 3 OR "accountId" IS NULL;
CREATE TEMP TABLE kept_citation AS SELECT id FROM "Citation" WHERE "sourceId" IN (SELECT id FROM kept_source) AND "citableType" = 'Person' AND "citableId" IN (SELECT id FROM kept_person);
CREATE TEMP TABLE kept_story AS SELECT id FROM story WHERE "treeId" IN (SELECT id FROM kept_tree) AND cardinality(people) > 0 AND array_position(people, NULL) IS NULL AND people <@ (SELECT array_agg(id) FROM kept_person);
CREATE TEMP TABLE kept_kit AS SELECT id FROM dna.kit WHERE "userId" = 8 OR share = 'all' AND (until IS NULL OR until > now());
CREATE TEMP TABLE kept_thread AS SELECT id FROM thread WHERE 8 = ANY (members);
CREATE TEMP TABLE kept_sage AS SELECT id FROM "Überlieferung_der_Familie_und_ihrer_Häuser_nach_Herkunft_Aa" WHERE "accountId" = 3;
CREATE TEMP TABLE kept_mark AS SELECT id FROM bookmark WHERE "by" = 8;
