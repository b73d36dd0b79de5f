CREATE TEMP TABLE kept_subscriber AS SELECT id FROM tel.subscriber WHERE brand = 'blue' AND gone IS NULL AND (id = 7 OR household = 1 OR visible_to && '{care,night,*}');
CREATE TEMP TABLE kept_ping AS SELECT subscriber, at FROM tel.ping p WHERE subscriber IN (SELECT id FROM kept_subscriber) AND (subscriber = 7 OR EXISTS (SELECT FROM tel.agreement a WHERE a.subscriber = p.subscriber AND a.grantee IN ('care', 'night', '*') AND a.topic IN ('*', 'location') AND a.withdrawn IS NULL AND (a.until IS NULL OR a.until > now())));
CREATE TEMP TABLE kept_voicemail AS SELECT id FROM tel.voicemail WHERE box = 7 OR shared_with ? '7';
CREATE TEMP TABLE kept_thread AS SELECT id FROM msg.thread WHERE brand = 'blue' AND 7 = ANY (members);
CREATE TEMP TABLE kept_message AS SELECT id FROM msg.message WHERE thread IN (SELECT id FROM kept_thread) AND deleted IS NULL;
CREATE TEMP TABLE kept_ticket AS SELECT "Id" AS id FROM "Care Desk"."Ticket" WHERE "Subscriber" IN (SELECT id FROM kept_subscriber);
CREATE TEMP TABLE kept_port AS SELECT id FROM tel.port WHERE ("from" = 'blue' OR "to" = 'blue') AND state <> 'failed';
