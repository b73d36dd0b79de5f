-- What user 2 of the team red may see, written without a look at the policy's SQL.
CREATE TEMP TABLE kept_account AS SELECT id FROM account WHERE deleted_at IS NULL AND (owner = 2 OR jsonb_typeof(shared_with) = 'array' AND shared_with @> '["red"]');
CREATE TEMP TABLE kept_contact AS SELECT id FROM contact WHERE opted = 'granted' AND account IN (SELECT id FROM kept_account);
CREATE TEMP TABLE kept_ticket AS SELECT id FROM "Ticket" WHERE "accountId" IN (SELECT id FROM kept_account) AND "isConfidential" IS FALSE
  AND ("contactId" IS NULL OR "contactId" IN (SELECT id FROM contact WHERE opted = 'granted'));
CREATE TEMP TABLE kept_message AS SELECT "ticketId" AS ticket, seq FROM "TicketMessage" WHERE kind = 'public' AND "ticketId" IN (SELECT id FROM kept_ticket);
CREATE TEMP TABLE kept_article AS SELECT id FROM kb_article WHERE audience && '{red,public}' AND published_at IS NOT NULL;
CREATE TEMP TABLE kept_note AS SELECT n.id FROM contact_note n WHERE EXISTS (SELECT FROM data_share s WHERE s.contact = n.contact AND s.team IN ('red', '*') AND (s.topic = 'all' OR s.topic = n.topic) AND s.revoked_at IS NULL AND (s.until IS NULL OR s.until > now()));
