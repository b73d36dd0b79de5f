SELECT 'school' AS what, count(*), sum(hashtextextended(x::text, 0)) FROM sis.school x WHERE id <> 'MOOR'
UNION ALL SELECT 'term', count(*), sum(hashtextextended(x::text, 0)) FROM sis.term x WHERE school <> 'MOOR'
UNION ALL SELECT 'person', count(*), sum(hashtextextended(x::text, 0)) FROM sis.person x
UNION ALL SELECT 'role', count(*), sum(hashtextextended(x::text, 0)) FROM sis.role x
UNION ALL SELECT 'agreement', count(*), sum(hashtextextended(x::text, 0)) FROM sis.agreement x
UNION ALL SELECT 'guardianship', count(*), sum(hashtextextended(x::text, 0)) FROM sis.guardianship x
UNION ALL SELECT 'class', count(*), sum(hashtextextended((id, school, term, name, teacher, room, weekly, capacity, plan::text)::text, 0)) FROM sis.class x WHERE id NOT IN (SELECT id FROM kept_class)
UNION ALL SELECT 'enrolment', count(*), sum(hashtextextended(x::text, 0)) FROM sis.enrolment x WHERE class NOT IN (SELECT id FROM kept_class) OR pupil NOT IN (SELECT id FROM kept_person)
UNION ALL SELECT 'attendance', count(*), sum(hashtextextended(x::text, 0)) FROM sis.attendance x WHERE class NOT IN (SELECT id FROM kept_class) OR pupil NOT IN (SELECT id FROM kept_person)
UNION ALL SELECT 'assignment', count(*), sum(hashtextextended(x::text, 0)) FROM lms.assignment x WHERE class NOT IN (SELECT id FROM kept_class)
UNION ALL SELECT 'submission', count(*), sum(hashtextextended(x::text, 0)) FROM lms.submission x WHERE (assignment, pupil, attempt) NOT IN (SELECT assignment, pupil, attempt FROM kept_submission)
UNION ALL SELECT 'grade_event', count(*), sum(hashtextextended(x::text, 0)) FROM lms.grade_event x WHERE class NOT IN (SELECT id FROM kept_class) OR pupil NOT IN (SELECT id FROM kept_person)
UNION ALL SELECT 'review', count(*), sum(hashtextextended(x::text, 0)) FROM lms.review x
UNION ALL SELECT 'post', count(*), sum(hashtextextended((id, on_type, on_id, author, body, at, mentions, votes)::text, 0)) FROM lms.post x WHERE id NOT IN (SELECT id FROM kept_post) AND author <> md5('p5')::uuid
UNION ALL SELECT 'document', count(*), sum(hashtextextended(x::text, 0)) FROM lms.document x
UNION ALL SELECT 'quiz', count(*), sum(hashtextextended(x::text, 0)) FROM lms.quiz x
UNION ALL SELECT 'release', count(*), sum(hashtextextended(x::text, 0)) FROM lms.release x
UNION ALL SELECT 'quiz_answer', count(*), sum(hashtextextended(x::text, 0)) FROM lms.quiz_answer x
UNION ALL SELECT 'letter', count(*), sum(hashtextextended(x::text, 0)) FROM lms.letter x
UNION ALL SELECT 'insight', count(*), sum(hashtextextended(x::text, 0)) FROM lms.insight x WHERE id NOT IN (SELECT id FROM kept_insight)
UNION ALL SELECT 'field', count(*), sum(hashtextextended(x::text, 0)) FROM office.field x
UNION ALL SELECT 'value', count(*), sum(hashtextextended(x::text, 0)) FROM office.value x
UNION ALL SELECT 'unit', count(*), sum(hashtextextended(x::text, 0)) FROM office.unit x
UNION ALL SELECT 'device', count(*), sum(hashtextextended(x::text, 0)) FROM office.device x WHERE school <> 'MOOR'
UNION ALL SELECT 'holder', count(*), sum(hashtextextended(concat(holder), 0)) FROM office.device
UNION ALL SELECT 'archive', count(*), sum(hashtextextended(x::text, 0)) FROM office.archive x
UNION ALL SELECT 'loan', count(*), sum(hashtextextended((item, no, borrower, during, back, fine, note)::text, 0)) FROM lib.loan x WHERE no <> 3 OR borrower NOT IN (SELECT id FROM kept_person)
UNION ALL SELECT 'wish', count(*), sum(hashtextextended(x::text, 0)) FROM lib.wish x WHERE owner <> md5('p5')::uuid
UNION ALL SELECT 'meals', count(*), sum(hashtextextended(x::text, 0)) FROM "Mensa"."Meal Plan" x WHERE "Who" NOT IN (SELECT id FROM kept_person)
UNION ALL SELECT 'allergies', count(*), sum(hashtextextended(concat("Allergies"), 0)) FROM "Mensa"."Meal Plan" x
UNION ALL SELECT 'setting', count(*), sum(hashtextextended(x::text, 0)) FROM lms.setting x WHERE owner <> md5('p5')::uuid
