CREATE TEMP TABLE kept_hotel AS SELECT id FROM public.hotel WHERE brand_id = 'alpine' AND deleted_at IS NULL;
CREATE TEMP TABLE kept_guest AS SELECT id FROM public.guest g WHERE brand_id = 'alpine' AND EXISTS (SELECT FROM public.guest_consent c WHERE c.guest_id = g.id AND c.grantee IN ('concierge', '*') AND c.purpose IN ('service', '*') AND c.revoked_at IS NULL AND (c.expires_at IS NULL OR c.expires_at > now()));
CREATE TEMP TABLE kept_booking AS SELECT id FROM res.booking WHERE guest_id IN (SELECT id FROM kept_guest) AND hotel_id IN (SELECT id FROM kept_hotel);
CREATE TEMP TABLE kept_review AS SELECT id FROM public.review WHERE hotel_id IN (SELECT id FROM kept_hotel) AND (published OR guest_id IN (SELECT id FROM kept_guest));
CREATE TEMP TABLE kept_spa AS SELECT "Id" AS id FROM public."SpaAppointment" WHERE "guestId" IN (SELECT id FROM kept_guest) AND "hotelId" IN (SELECT id FROM kept_hotel);
CREATE TEMP TABLE kept_task AS SELECT id FROM public.task WHERE hotel_id IN (SELECT id FROM kept_hotel) AND (assignee = md5('s1')::uuid OR watchers @> ARRAY[md5('s1')::uuid]);
