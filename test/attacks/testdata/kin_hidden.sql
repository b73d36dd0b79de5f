SELECT 'account', count(*), sum(hashtextextended(x::text, 0)) FROM "Account" x
UNION ALL SELECT 'user', count(*), sum(hashtextextended(x::text, 0)) FROM "User" x
UNION ALL SELECT 'tree', count(*), sum(hashtextextended(x::text, 0)) FROM "Tree Data"."Tree" x WHERE id NOT IN (SELECT id FROM kept_tree)
UNION ALL SELECT 'person', count(*), sum(hashtextextended(x::text, 0)) FROM "Person" x WHERE id NOT IN (SELECT id FROM kept_person)
UNION ALL SELECT 'consent', count(*), sum(hashtextextended(x::text, 0)) FROM "Living Consent" x
UNION ALL SELECT 'event', count(*), sum(hashtextextended(x::text, 0)) FROM event x WHERE person NOT IN (SELECT id FROM kept_person)
UNION ALL SELECT 'source', count(*), sum(hashtextextended(x::text, 0)) FROM "Source" x
UNION ALL SELECT 'citation', count(*), sum(hashtextextended(x::text, 0)) FROM "Citation" x
UNION ALL SELECT 'story', count(*), sum(hashtextextended(x::text, 0)) FROM story x WHERE author <> 8 AND id NOT IN (SELECT id FROM kept_story)
UNION ALL SELECT 'kit', count(*), sum(hashtextextended(x::text, 0)) FROM dna.kit x
UNION ALL SELECT 'match', count(*), sum(hashtextextended(x::text, 0)) FROM dna."match" x WHERE a NOT IN (SELECT id FROM kept_kit) OR b NOT IN (SELECT id FROM kept_kit)
UNION ALL SELECT 'segment', count(*), sum(hashtextextended(x::text, 0)) FROM dna.segment x
UNION ALL SELECT 'origin', count(*), sum(hashtextextended(x::text, 0)) FROM dna.origin x
UNION ALL SELECT 'thread', count(*), sum(hashtextextended(x::text, 0)) FROM thread x WHERE id NOT IN (SELECT id FROM kept_thread)
UNION ALL SELECT 'reply', count(*), sum(hashtextextended(x::text, 0)) FROM reply x WHERE thread NOT IN (SELECT id FROM kept_thread)
UNION ALL SELECT 'saved', count(*), sum(hashtextextended(x::text, 0)) FROM saved_search x WHERE who <> 8
UNION ALL SELECT 'bookmark', count(*), sum(hashtextextended(x::text, 0)) FROM bookmark x WHERE "by" <> 8
UNION ALL SELECT 'media', count(*), sum(hashtextextended(x::text, 0)) FROM media x
UNION ALL SELECT 'visit', count(*), sum(hashtextextended(x::text, 0)) FROM visit x WHERE "user" <> 8
UNION ALL SELECT 'invoice', count(*), sum(hashtextextended(x::text, 0)) FROM invoice x
UNION ALL SELECT 'note', count(*), sum(hashtextextended(x::text, 0)) FROM note x WHERE who <> 8 OR body = 'drunk'
