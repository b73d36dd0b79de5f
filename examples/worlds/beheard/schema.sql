-- Conversations of two people, in stages, after "Retrieval Contracts". Run this as the role beheard_owner, which owns the
-- database, after extensions.sql. Keys are texts, as the application makes them.

CREATE TABLE "Relationship" (
  id          text PRIMARY KEY,
  "userAId"   text NOT NULL,
  "userBId"   text NOT NULL,
  status      text NOT NULL DEFAULT 'ACTIVE',
  "createdAt" timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE "Session" (
  id                  text PRIMARY KEY,
  "relationshipId"    text NOT NULL REFERENCES "Relationship",
  "userAId"           text NOT NULL,
  "userBId"           text,             -- NULL until the partner has joined
  stage               integer NOT NULL DEFAULT 0 CHECK (stage BETWEEN 0 AND 4),
  status              text NOT NULL DEFAULT 'ACTIVE',
  "previousSessionId" text,
  notes               text,
  "createdAt"         timestamptz NOT NULL DEFAULT now(),
  "completedAt"       timestamptz
);
CREATE INDEX session_relationship ON "Session" ("relationshipId");

-- What a user says, how strongly, and what may be retrieved for the answer. Agents have no right on it.
CREATE TABLE "Turn" (
  id              text PRIMARY KEY,
  "sessionId"     text NOT NULL REFERENCES "Session",
  "userId"        text NOT NULL,
  message         text NOT NULL,
  intensity       integer NOT NULL DEFAULT 1,
  phase           text NOT NULL DEFAULT 'planning', -- planning, generation
  plan            text,                             -- event:vector,need:structured …
  "defaultIntent" text,                             -- of the stage, where the application has one
  "sealedAt"      timestamptz
);
CREATE INDEX turn_session ON "Turn" ("sessionId", "userId");
CREATE UNIQUE INDEX turn_open ON "Turn" ("sessionId", "userId") WHERE "sealedAt" IS NULL;

CREATE TABLE "SessionOutcome" (
  id          text PRIMARY KEY,
  "sessionId" text NOT NULL REFERENCES "Session",
  kind        text NOT NULL,
  summary     text NOT NULL,
  "createdAt" timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX outcome_session ON "SessionOutcome" ("sessionId");

CREATE TABLE "UserVessel" (
  id          text PRIMARY KEY,
  "userId"    text NOT NULL,
  "sessionId" text NOT NULL REFERENCES "Session",
  UNIQUE ("sessionId", "userId")
);

CREATE TABLE "Boundary" (
  id          text PRIMARY KEY,
  "vesselId"  text NOT NULL REFERENCES "UserVessel",
  description text NOT NULL,
  "createdAt" timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX boundary_vessel ON "Boundary" ("vesselId");

CREATE TABLE "SharedVessel" (
  id               text PRIMARY KEY,
  "relationshipId" text NOT NULL REFERENCES "Relationship",
  "createdAt"      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX shared_relationship ON "SharedVessel" ("relationshipId");

CREATE TABLE "ConsentRecord" (
  id               text PRIMARY KEY,
  "relationshipId" text NOT NULL REFERENCES "Relationship",
  "userId"         text NOT NULL, -- who decides
  "grantedTo"      text NOT NULL,
  decision         text NOT NULL DEFAULT 'PENDING', -- GRANTED, DENIED, PENDING
  "decidedAt"      timestamptz,
  "revokedAt"      timestamptz
);
CREATE INDEX record_unrevoked ON "ConsentRecord" (id) WHERE "revokedAt" IS NULL;

CREATE TABLE "CommonGround" (
  id              text PRIMARY KEY,
  "sharedVesselId" text NOT NULL REFERENCES "SharedVessel",
  description     text NOT NULL,
  "confirmedByA"  boolean,
  "confirmedByB"  boolean,
  "createdAt"     timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ground_vessel ON "CommonGround" ("sharedVesselId");

CREATE TABLE "Agreement" (
  id               text PRIMARY KEY,
  "sharedVesselId" text NOT NULL REFERENCES "SharedVessel",
  description      text NOT NULL,
  status           text NOT NULL DEFAULT 'PROPOSED',
  "agreedByA"      boolean,
  "agreedByB"      boolean,
  "agreedAt"       timestamptz
);
CREATE INDEX agreement_vessel ON "Agreement" ("sharedVesselId");

CREATE TABLE "MicroExperiment" (
  id               text PRIMARY KEY,
  "sharedVesselId" text NOT NULL REFERENCES "SharedVessel",
  description      text NOT NULL,
  outcome          text,
  status           text NOT NULL DEFAULT 'OPEN',
  "createdAt"      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX experiment_vessel ON "MicroExperiment" ("sharedVesselId");

CREATE TABLE "AISynthesis" (
  id          text PRIMARY KEY,
  "sessionId" text NOT NULL REFERENCES "Session",
  map         text NOT NULL,
  "createdAt" timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX synthesis_session ON "AISynthesis" ("sessionId");

-- The tables with embeddings, whose type is the one that extensions.sql found.
DO $$
DECLARE
  embedding text := CASE
    WHEN EXISTS (SELECT FROM pg_extension WHERE extname = 'vector') THEN 'public.vector(8)'
    WHEN EXISTS (SELECT FROM pg_extension WHERE extname = 'cube') THEN 'public.cube'
    ELSE 'double precision[]'
  END;
BEGIN
  EXECUTE format($f$
    CREATE TABLE "UserEvent" (
      id          text PRIMARY KEY,
      "vesselId"  text NOT NULL REFERENCES "UserVessel",
      content     text NOT NULL,
      embedding   %1$s,
      "createdAt" timestamptz NOT NULL DEFAULT now()
    );
    CREATE INDEX event_vessel ON "UserEvent" ("vesselId");
    CREATE TABLE "EmotionalReading" (
      id          text PRIMARY KEY,
      "vesselId"  text NOT NULL REFERENCES "UserVessel",
      emotion     text NOT NULL,
      intensity   integer NOT NULL,
      embedding   %1$s,
      "createdAt" timestamptz NOT NULL DEFAULT now()
    );
    CREATE INDEX reading_vessel ON "EmotionalReading" ("vesselId");
    CREATE TABLE "Need" (
      id          text PRIMARY KEY,
      "vesselId"  text NOT NULL REFERENCES "UserVessel",
      name        text NOT NULL,
      confirmed   boolean,
      embedding   %1$s,
      "createdAt" timestamptz NOT NULL DEFAULT now()
    );
    CREATE INDEX need_vessel ON "Need" ("vesselId");
    CREATE TABLE "ConsentedContent" (
      id                   text PRIMARY KEY,
      "sharedVesselId"     text NOT NULL REFERENCES "SharedVessel",
      "sourceUserId"       text NOT NULL,
      "addresseeId"        text NOT NULL,
      "consentRecordId"    text, -- no foreign key: records are archived, and leave references that dangle
      kind                 text NOT NULL, -- reflection, need
      "transformedContent" text NOT NULL,
      "consentActive"      boolean,
      embedding            %1$s,
      "createdAt"          timestamptz NOT NULL DEFAULT now()
    );
    CREATE INDEX content_vessel ON "ConsentedContent" ("sharedVesselId");
    CREATE INDEX content_active ON "ConsentedContent" ("consentActive");
    CREATE TABLE "GlobalExperiment" (
      id             text PRIMARY KEY,
      title          text NOT NULL,
      suggestion     text NOT NULL,
      origin         text NOT NULL, -- curated, contributed
      "optInActive"  boolean,       -- of who contributed it
      "anonymizedAt" timestamptz,
      "embeddedAt"   timestamptz,   -- when the embedding was made: of what was contributed, of the anonymised text and not before
      embedding      %1$s
    ) $f$, embedding);
END $$;
