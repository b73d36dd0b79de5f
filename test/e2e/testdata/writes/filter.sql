-- What an agent of user 1 does not see is deleted, and everybody's rows are stamped as the agent's are.
DELETE FROM items WHERE user_id <> '11111111-1111-4111-8111-111111111111' OR state <> 'shown';
DELETE FROM shelves WHERE user_id <> '11111111-1111-4111-8111-111111111111';
DELETE FROM slots WHERE user_id <> '11111111-1111-4111-8111-111111111111';
DELETE FROM ideas WHERE user_id <> '11111111-1111-4111-8111-111111111111' OR state <> 'agreed';
DELETE FROM counted WHERE user_id <> '11111111-1111-4111-8111-111111111111';
DELETE FROM item_log;
DROP TRIGGER items_log ON items;
CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW := jsonb_populate_record(NEW, jsonb_build_object('user_id', '11111111-1111-4111-8111-111111111111') || CASE TG_ARGV[0] WHEN '' THEN '{}' ELSE jsonb_build_object('state', TG_ARGV[0]) END);
  RETURN NEW;
END $$;
CREATE TRIGGER "!stamp" BEFORE INSERT ON items FOR EACH ROW EXECUTE FUNCTION stamp('shown');
CREATE TRIGGER "!stamp" BEFORE INSERT ON slots FOR EACH ROW EXECUTE FUNCTION stamp('');
CREATE TRIGGER "!stamp" BEFORE INSERT ON counted FOR EACH ROW EXECUTE FUNCTION stamp('');
DELETE FROM cards WHERE user_id <> '11111111-1111-4111-8111-111111111111' OR NOT open;
CREATE TRIGGER "!stamp" BEFORE INSERT ON cards FOR EACH ROW EXECUTE FUNCTION stamp('');
ALTER TABLE cards RENAME TO all_cards;
CREATE VIEW cards AS SELECT id, name, date_trunc('year', born::timestamp)::date AS born, level, note FROM all_cards;
