SELECT 'company' AS what, count(*), sum(hashtextextended(x::text, 0)) FROM hr.company x WHERE id <> 'CYN'
UNION ALL SELECT 'budget', count(*), sum(hashtextextended(concat(budget, seats, settings), 0)) FROM hr.company
UNION ALL SELECT 'unit', count(*), sum(hashtextextended(x::text, 0)) FROM hr.unit x WHERE id NOT IN (SELECT id FROM kept_unit)
UNION ALL SELECT 'employee', count(*), sum(hashtextextended(x::text, 0)) FROM hr.employee x WHERE id NOT IN (SELECT id FROM kept_employee)
UNION ALL SELECT 'private', count(*), sum(hashtextextended(concat(email, iban, salary, born, prefs, shares, left_on), 0)) FROM hr.employee x
UNION ALL SELECT 'report_line', count(*), sum(hashtextextended(x::text, 0)) FROM hr.report_line x
UNION ALL SELECT 'terms', count(*), sum(hashtextextended(x::text, 0)) FROM hr.terms x
UNION ALL SELECT 'slip', count(*), sum(hashtextextended(x::text, 0)) FROM pay.slip x
UNION ALL SELECT 'correction', count(*), sum(hashtextextended(x::text, 0)) FROM pay.correction x
UNION ALL SELECT 'absence', count(*), sum(hashtextextended(x::text, 0)) FROM hr.absence x WHERE id NOT IN (SELECT id FROM kept_absence) AND employee <> 6
UNION ALL SELECT 'shift', count(*), sum(hashtextextended((id, company, site, starts, ends, employee, need, daily)::text, 0)) FROM hr.shift x WHERE id NOT IN (SELECT id FROM kept_shift)
UNION ALL SELECT 'punch', count(*), sum(hashtextextended(x::text, 0)) FROM hr.punch x WHERE employee <> 6
UNION ALL SELECT 'review', count(*), sum(hashtextextended(x::text, 0)) FROM hr.review x
UNION ALL SELECT 'goal', count(*), sum(hashtextextended(x::text, 0)) FROM hr.goal x WHERE owner <> 6
UNION ALL SELECT 'answer', count(*), sum(hashtextextended(x::text, 0)) FROM hr.answer x
UNION ALL SELECT 'candidate', count(*), sum(hashtextextended(x::text, 0)) FROM hr.candidate x WHERE id NOT IN (SELECT id FROM kept_candidate)
UNION ALL SELECT 'permission', count(*), sum(hashtextextended(x::text, 0)) FROM hr.permission x
UNION ALL SELECT 'interview', count(*), sum(hashtextextended(x::text, 0)) FROM hr.interview x
UNION ALL SELECT 'channel', count(*), sum(hashtextextended((id, company, kind, topic, members, pinned)::text, 0)) FROM hr.channel x
UNION ALL SELECT 'post', count(*), sum(hashtextextended((id, channel, author, body, at, gone, reactions, files, mentions)::text, 0)) FROM hr.post x WHERE id NOT IN (SELECT id FROM kept_post) AND author IS DISTINCT FROM 6
UNION ALL SELECT 'digest', count(*), sum(hashtextextended(x::text, 0)) FROM hr.digest x WHERE id NOT IN (SELECT id FROM kept_digest)
UNION ALL SELECT 'ticket', count(*), sum(hashtextextended(x::text, 0)) FROM hr.ticket x WHERE id NOT IN (SELECT id FROM kept_ticket)
UNION ALL SELECT 'enrolment', count(*), sum(hashtextextended(x::text, 0)) FROM pay.enrolment x WHERE employee <> 6
UNION ALL SELECT 'expense', count(*), sum(hashtextextended(x::text, 0)) FROM pay.expense x WHERE employee <> 6
UNION ALL SELECT 'device', count(*), sum(hashtextextended(x::text, 0)) FROM hr.device x
UNION ALL SELECT 'saved', count(*), sum(hashtextextended(x::text, 0)) FROM hr.saved x WHERE owner <> 6
UNION ALL SELECT 'todo', count(*), sum(hashtextextended(x::text, 0)) FROM hr.todo x WHERE owner <> 6
UNION ALL SELECT 'tips', count(*), sum(hashtextextended(x::text, 0)) FROM vault.tips x
