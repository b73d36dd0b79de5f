SELECT 'user', count(*), sum(hashtextextended(x::text, 0)) FROM "user" x
UNION ALL SELECT 'account', count(*), sum(hashtextextended(x::text, 0)) FROM account x WHERE id NOT IN (SELECT id FROM kept_account)
UNION ALL SELECT 'contact', count(*), sum(hashtextextended(x::text, 0)) FROM contact x WHERE id NOT IN (SELECT id FROM kept_contact)
UNION ALL SELECT 'secrets', count(*), sum(hashtextextended(concat(email, phone, birthday, address, score), 0)) FROM contact x
UNION ALL SELECT 'Ticket', count(*), sum(hashtextextended(x::text, 0)) FROM "Ticket" x WHERE id NOT IN (SELECT id FROM kept_ticket)
UNION ALL SELECT 'TicketMessage', count(*), sum(hashtextextended(x::text, 0)) FROM "TicketMessage" x WHERE ("ticketId", seq) NOT IN (SELECT ticket, seq FROM kept_message)
UNION ALL SELECT 'attachment', count(*), sum(hashtextextended(x::text, 0)) FROM attachment x WHERE (ticket_id, seq) NOT IN (SELECT ticket, seq FROM kept_message)
UNION ALL SELECT 'ticket_tag', count(*), sum(hashtextextended(x::text, 0)) FROM ticket_tag x WHERE ticket_id NOT IN (SELECT id FROM kept_ticket)
UNION ALL SELECT 'Deal', count(*), sum(hashtextextended(x::text, 0)) FROM "Sales"."Deal" x WHERE account NOT IN (SELECT id FROM kept_account)
UNION ALL SELECT 'deal_line', count(*), sum(hashtextextended(x::text, 0)) FROM "Sales".deal_line x
UNION ALL SELECT 'activity', count(*), sum(hashtextextended(x::text, 0)) FROM activity x
UNION ALL SELECT 'kb_article', count(*), sum(hashtextextended(x::text, 0)) FROM kb_article x
UNION ALL SELECT 'survey', count(*), sum(hashtextextended(x::text, 0)) FROM survey x
UNION ALL SELECT 'contact_note', count(*), sum(hashtextextended(x::text, 0)) FROM contact_note x
UNION ALL SELECT 'data_share', count(*), sum(hashtextextended(x::text, 0)) FROM data_share x
UNION ALL SELECT 'audit_log', count(*), sum(hashtextextended(x::text, 0)) FROM audit_log x
