SELECT 'party' AS what, count(*), sum(hashtextextended(x::text, 0)) FROM core.party x WHERE (tenant, no) NOT IN (SELECT tenant, no FROM kept_party)
UNION ALL SELECT 'coretenant', count(*), sum(hashtextextended(x::text, 0)) FROM core.tenant x WHERE id NOT IN ('t5') AND parent IS DISTINCT FROM 't5'
UNION ALL SELECT 'coreparty_versio', count(*), sum(hashtextextended(x::text, 0)) FROM core.party_version x WHERE id NOT IN (SELECT id FROM kept_version)
UNION ALL SELECT 'coreflat', count(*), sum(hashtextextended(x::text, 0)) FROM core.flat x WHERE tenant <> 't5'
UNION ALL SELECT 'corelease', count(*), sum(hashtextextended(x::text, 0)) FROM core.lease x WHERE (tenant, no, version) NOT IN (SELECT tenant, no, version FROM kept_lease)
UNION ALL SELECT 'coreco_holder', count(*), sum(hashtextextended(x::text, 0)) FROM core.co_holder x WHERE (tenant, lease, version, party) NOT IN (SELECT tenant, lease, version, party FROM kept_co)
UNION ALL SELECT 'coreclosure', count(*), sum(hashtextextended(x::text, 0)) FROM core.closure x WHERE (tenant, ancestor, descendant) NOT IN (SELECT tenant, ancestor, descendant FROM kept_closure)
UNION ALL SELECT 'coreattribute', count(*), sum(hashtextextended(x::text, 0)) FROM core.attribute x WHERE sensitive
UNION ALL SELECT 'corevalue', count(*), sum(hashtextextended(x::text, 0)) FROM core.value x WHERE id NOT IN (SELECT id FROM kept_value)
UNION ALL SELECT 'coreremark', count(*), sum(hashtextextended(x::text, 0)) FROM core.remark x WHERE id NOT IN (SELECT id FROM kept_remark)
UNION ALL SELECT 'deskremark', count(*), sum(hashtextextended(x::text, 0)) FROM desk.remark x WHERE tenant <> 't5' OR private
UNION ALL SELECT 'deskparty', count(*), sum(hashtextextended(x::text, 0)) FROM desk.party x WHERE (tenant, no) NOT IN (SELECT tenant, no FROM kept_party) OR role = 'debtor'
UNION ALL SELECT 'deskevent', count(*), sum(hashtextextended(x::text, 0)) FROM desk.event x WHERE (stream, version) NOT IN (SELECT stream, version FROM kept_event)
UNION ALL SELECT 'deskread_mark', count(*), sum(hashtextextended(x::text, 0)) FROM desk.read_mark x WHERE reader <> 'ann' OR (stream, version) NOT IN (SELECT stream, version FROM kept_event)
UNION ALL SELECT 'deskplace', count(*), sum(hashtextextended(x::text, 0)) FROM desk.place x WHERE tenant <> 't5'
UNION ALL SELECT 'deskvisit', count(*), sum(hashtextextended(x::text, 0)) FROM desk.visit x WHERE tenant <> 't5' OR who <> 'ann'
UNION ALL SELECT 'desksetting', count(*), sum(hashtextextended(x::text, 0)) FROM desk.setting x WHERE tenant <> 't5'
UNION ALL SELECT 'deskdraft', count(*), sum(hashtextextended(x::text, 0)) FROM desk.draft x WHERE owner <> 'ann'
UNION ALL SELECT 'deskfolder', count(*), sum(hashtextextended(x::text, 0)) FROM desk.folder x WHERE owner <> 'ann'
UNION ALL SELECT 'deskfile', count(*), sum(hashtextextended(x::text, 0)) FROM desk.file x WHERE owner = 'bob'
UNION ALL SELECT 'deskpayout', count(*), sum(hashtextextended(x::text, 0)) FROM desk.payout x WHERE (tenant, lease, version) NOT IN (SELECT tenant, no, version FROM kept_lease)
UNION ALL SELECT 'deskÖffentliche', count(*), sum(hashtextextended(x::text, 0)) FROM desk."Öffentliche Aushänge ""am Brett"" im Treppenhaus, OG/EG; --" x WHERE tenant <> 't5'
UNION ALL SELECT 'coretables', count(*), sum(hashtextextended(x::text, 0)) FROM core.tables x WHERE tenant <> 't5'
UNION ALL SELECT 'coreproduct', count(*), sum(hashtextextended(x::text, 0)) FROM core.product x WHERE tenant <> 't5'
UNION ALL SELECT 'secrets', count(*), sum(hashtextextended(tax::text || consents, 0)) FROM core.party
