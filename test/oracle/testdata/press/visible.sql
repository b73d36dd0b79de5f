-- What the assistant of member 4 of house north, desks city and sport, may see, written without a look at the policy's SQL.
CREATE TEMP TABLE kept_staff AS SELECT id FROM staff WHERE house = 'north' AND (desk IN ('city', 'sport') OR id = 4 OR id = (SELECT boss FROM staff WHERE id = 4) OR boss IS NULL);
CREATE TEMP TABLE agrees AS SELECT id FROM informant WHERE says = 'yes' AND (until IS NULL OR until > now());
CREATE TEMP TABLE kept_informant AS SELECT id FROM informant WHERE house = 'north' AND (handler = 4 OR id IN (SELECT id FROM agrees));
CREATE TEMP TABLE agreed_interview AS SELECT id FROM interview i WHERE NOT EXISTS (SELECT FROM interview_informant l WHERE l.interview_id = i.id AND l.informant_id NOT IN (SELECT id FROM agrees));
CREATE TEMP TABLE kept_interview AS SELECT id, held, desk FROM interview WHERE id IN (SELECT id FROM agreed_interview) AND (by_staff = 4 OR house = 'north' AND desk IN ('city', 'sport') OR jsonb_typeof(readers) = 'array' AND readers ? '4');
CREATE TEMP TABLE granted_interview AS SELECT id FROM interview WHERE id IN (SELECT id FROM kept_interview);
CREATE TEMP TABLE kept_piece AS SELECT id FROM piece p WHERE house = 'north' AND (author = 4 OR state = 'published' OR desk IN ('city', 'sport')) AND (kind = 'column' OR EXISTS (SELECT FROM piece_interview l WHERE l.piece_id = p.id) AND NOT EXISTS (SELECT FROM piece_interview l WHERE l.piece_id = p.id AND l.interview_id NOT IN (SELECT id FROM kept_interview)));
CREATE TEMP TABLE kept_digest AS SELECT id FROM digest WHERE house = 'north' AND jsonb_typeof(pieces) = 'array' AND pieces <> '[]' AND (CASE WHEN jsonb_typeof(pieces) = 'array' THEN NOT EXISTS (SELECT FROM jsonb_array_elements_text(pieces) p WHERE p::uuid NOT IN (SELECT id FROM kept_piece)) END);
CREATE TEMP TABLE kept_remark AS SELECT id FROM remark WHERE piece_id IN (SELECT id FROM kept_piece) AND coalesce(votes, 0) >= 0;
CREATE TEMP TABLE kept_clip AS SELECT id FROM clip WHERE on_air AND release_id IN (SELECT id FROM release WHERE decision = 'GRANTED' AND revoked_at IS NULL);
