CREATE TABLE "User" (id integer PRIMARY KEY, name text NOT NULL);
CREATE TABLE "Company" (id integer PRIMARY KEY, name text NOT NULL, "ownerId" integer NOT NULL REFERENCES "User");
CREATE TABLE "Contact" (
  id integer PRIMARY KEY,
  "companyId" integer REFERENCES "Company",
  "ownerId" integer NOT NULL REFERENCES "User",
  "fullName" text NOT NULL,
  email text,
  born date,
  "lawfulBasis" text CHECK ("lawfulBasis" IN ('consent', 'contract', 'objected')),
  "deletedAt" timestamptz,
  custom jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX ON "Contact" ("ownerId");
CREATE TABLE "Deal" (
  id integer PRIMARY KEY,
  "companyId" integer NOT NULL REFERENCES "Company",
  "ownerId" integer NOT NULL REFERENCES "User",
  title text NOT NULL,
  amount numeric(12, 2) NOT NULL,
  stage text NOT NULL,
  "sharedWith" integer[] NOT NULL DEFAULT '{}'
);
CREATE TABLE "DealContact" ("dealId" integer REFERENCES "Deal", "contactId" integer REFERENCES "Contact", PRIMARY KEY ("dealId", "contactId"));
CREATE TABLE "Activity" (
  id integer PRIMARY KEY,
  "contactId" integer NOT NULL REFERENCES "Contact",
  kind text NOT NULL,
  note text,
  at timestamptz NOT NULL
);
CREATE INDEX ON "Activity" ("contactId", at);
