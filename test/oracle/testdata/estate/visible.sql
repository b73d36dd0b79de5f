-- What the assistant of t5 and ann may see, written without a look at the policy's SQL.
CREATE TEMP TABLE kept_party AS SELECT tenant, no, uid FROM core.party WHERE tenant = 't5' AND consents ->> 'assistant' = 'yes' AND erased_at IS NULL;
CREATE TEMP TABLE kept_version AS SELECT id FROM core.party_version WHERE (tenant, no) IN (SELECT tenant, no FROM kept_party) AND known_to IS NULL;
CREATE TEMP TABLE kept_lease AS SELECT tenant, no, version FROM core.lease WHERE tenant = 't5' AND ((tenant, holder) IN (SELECT tenant, no FROM kept_party) OR '96d72af7-666f-377d-9b93-9c9c813ad5f4' = ANY (signers)) AND state <> 'ended';
CREATE TEMP TABLE kept_co AS SELECT tenant, lease, version, party FROM core.co_holder WHERE (tenant, lease, version) IN (SELECT tenant, no, version FROM kept_lease) AND (tenant, party) IN (SELECT tenant, no FROM kept_party);
CREATE TEMP TABLE kept_closure AS SELECT tenant, ancestor, descendant FROM core.closure WHERE (tenant, ancestor) IN (SELECT tenant, no FROM kept_party) AND (tenant, descendant) IN (SELECT tenant, no FROM kept_party);
CREATE TEMP TABLE kept_value AS SELECT id FROM core.value WHERE attribute NOT IN (SELECT id FROM core.attribute WHERE sensitive) AND ((tenant, party) IN (SELECT tenant, no FROM kept_party) OR entity_type = 'flat' AND tenant = 't5');
CREATE TEMP TABLE kept_remark AS SELECT id FROM core.remark WHERE tenant = 't5' AND ('96d72af7-666f-377d-9b93-9c9c813ad5f4' = ANY (mentions) OR author = '96d72af7-666f-377d-9b93-9c9c813ad5f4' OR subject_type = 'party' AND (tenant, subject_no) IN (SELECT tenant, no FROM kept_party) OR subject_type = 'flat' AND subject_code IN (SELECT code FROM core.flat WHERE tenant = 't5'));
CREATE TEMP TABLE kept_event AS SELECT stream, version FROM desk.event WHERE payload -> 'people' ? '96d72af7-666f-377d-9b93-9c9c813ad5f4' AND jsonb_typeof(payload -> 'people') = 'array' OR payload ->> 'tenant' = 't5' AND kind = 'moved';
CREATE TEMP TABLE kept_folder AS SELECT id FROM desk.folder WHERE owner = 'ann';
