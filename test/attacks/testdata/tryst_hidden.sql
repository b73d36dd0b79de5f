SELECT 'users' AS what, count(*), sum(hashtextextended(x::text, 0)) FROM auth.users x
UNION ALL SELECT 'profile', count(*), sum(hashtextextended(x::text, 0)) FROM profile x WHERE id <> 5
UNION ALL SELECT 'own profile', count(*), sum(hashtextextended((id, user_id, region, handle, born, headline, phone, settings, status, circles, shown_to)::text, 0)) FROM profile
UNION ALL SELECT 'profile_interest', count(*), sum(hashtextextended(x::text, 0)) FROM profile_interest x
UNION ALL SELECT 'photo', count(*), sum(hashtextextended(x::text, 0)) FROM photo x
UNION ALL SELECT 'photo_consent', count(*), sum(hashtextextended(x::text, 0)) FROM photo_consent x
UNION ALL SELECT 'swipe', count(*), sum(hashtextextended(x::text, 0)) FROM swipe x
UNION ALL SELECT 'pairing', count(*), sum(hashtextextended(x::text, 0)) FROM pairing x
UNION ALL SELECT 'thread', count(*), sum(hashtextextended(x::text, 0)) FROM chat.thread x WHERE id NOT IN (SELECT id FROM kept_thread)
UNION ALL SELECT 'members', count(*), sum(hashtextextended((id, pairing_id, members, created_at)::text, 0)) FROM chat.thread x
UNION ALL SELECT 'message', count(*), sum(hashtextextended((id, thread_id, sender_id, body, kind, reactions, attachments, voice_length, sent_at, edited_at, deleted_at)::text, 0)) FROM chat.message x WHERE id NOT IN (SELECT id FROM kept_message) AND thread_id NOT IN (SELECT id FROM kept_thread)
UNION ALL SELECT 'suggestion', count(*), sum(hashtextextended(x::text, 0)) FROM chat.suggestion x WHERE owner <> md5('u5')::uuid
UNION ALL SELECT 'Meetup', count(*), sum(hashtextextended(x::text, 0)) FROM "Meetup" x
UNION ALL SELECT 'MeetupGuest', count(*), sum(hashtextextended(x::text, 0)) FROM "MeetupGuest" x WHERE "profileId" <> 5
UNION ALL SELECT '_InterestToMeetup', count(*), sum(hashtextextended(x::text, 0)) FROM "_InterestToMeetup" x
UNION ALL SELECT 'availability', count(*), sum(hashtextextended(x::text, 0)) FROM availability x
UNION ALL SELECT 'subscription', count(*), sum(hashtextextended(x::text, 0)) FROM pay.subscription x
UNION ALL SELECT 'charge', count(*), sum(hashtextextended(x::text, 0)) FROM pay.charge x
UNION ALL SELECT 'report', count(*), sum(hashtextextended(x::text, 0)) FROM report x WHERE reporter_id <> 5
UNION ALL SELECT 'filter_rule', count(*), sum(hashtextextended(x::text, 0)) FROM filter_rule x
UNION ALL SELECT 'device', count(*), sum(hashtextextended(x::text, 0)) FROM device x
UNION ALL SELECT 'answer', count(*), sum(hashtextextended(x::text, 0)) FROM answer x WHERE profile_id <> 5
UNION ALL SELECT 'guide', count(*), sum(hashtextextended(x::text, 0)) FROM guide x
UNION ALL SELECT 'guide_chunk', count(*), sum(hashtextextended(x::text, 0)) FROM guide_chunk x
UNION ALL SELECT 'diary', count(*), sum(hashtextextended(x::text, 0)) FROM diary x WHERE owner <> md5('u5')::uuid
UNION ALL SELECT 'mood', count(*), sum(hashtextextended(x::text, 0)) FROM mood x
UNION ALL SELECT 'leaderboard', count(*), sum(hashtextextended(x::text, 0)) FROM leaderboard x
UNION ALL SELECT 'app_secret', count(*), sum(hashtextextended(x::text, 0)) FROM app_secret x
