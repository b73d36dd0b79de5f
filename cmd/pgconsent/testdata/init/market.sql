-- A marketplace as a mapper makes it: shops, buyers, comments on several kinds of rows, nested categories, tables of tools, a range type, links without foreign keys.
CREATE TYPE span AS RANGE (SUBTYPE = double precision);
CREATE TABLE schema_migrations (version text PRIMARY KEY);
CREATE TABLE _prisma_migrations (id text PRIMARY KEY, checksum text NOT NULL);
CREATE TABLE active_storage_blobs (id bigserial PRIMARY KEY, key text NOT NULL UNIQUE, filename text);
CREATE TABLE users (id uuid PRIMARY KEY, uid uuid NOT NULL UNIQUE, email text NOT NULL, ai_consent text NOT NULL CHECK (ai_consent IN ('granted', 'denied', 'unset')));
CREATE TABLE shops (id serial PRIMARY KEY, slug text NOT NULL UNIQUE, name text NOT NULL);
CREATE TABLE memberships (shop_id integer NOT NULL REFERENCES shops, user_id uuid NOT NULL REFERENCES users);
CREATE TABLE categories (id serial PRIMARY KEY, parent_id integer REFERENCES categories, name text NOT NULL, lft integer, rgt integer);
CREATE TABLE products (id bigserial PRIMARY KEY, shop_id integer NOT NULL REFERENCES shops, title text NOT NULL, size span);
CREATE TABLE categories_products (category_id integer NOT NULL, product_id bigint NOT NULL);
CREATE TABLE gift_cards (id bigserial PRIMARY KEY, buyer_id uuid NOT NULL REFERENCES users, cents integer NOT NULL);
CREATE TABLE gift_card_use (gift_card bigint NOT NULL, at timestamptz NOT NULL, cents integer NOT NULL);
CREATE TABLE comments (id bigserial PRIMARY KEY, commentable_type text NOT NULL, commentable_id bigint NOT NULL, body text);
CREATE TABLE attachments (id bigserial PRIMARY KEY, user_id uuid NOT NULL REFERENCES users, record_type text, record_id bigint, file text);
CREATE TABLE consent_periods (user_id uuid NOT NULL REFERENCES users, purpose text NOT NULL, during daterange NOT NULL, withdrawn_at timestamptz);
