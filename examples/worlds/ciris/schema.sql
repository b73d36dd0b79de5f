-- What an agent service keeps of its users, after the "CIRIS Consent Service". Run this as the role ciris_owner, which owns
-- the database.

CREATE TABLE users (
  user_id    text PRIMARY KEY,
  name       text,
  stream     text, -- TEMPORARY, PARTNERED, ANONYMOUS; rows of older versions of the service hold others, or none
  granted_at timestamptz NOT NULL
);

-- One row for each conversation; under each consent category the columns that the service names for it.
CREATE TABLE interactions (
  id           bigint PRIMARY KEY,
  user_id      text NOT NULL, -- of users; no foreign key, since a conversation that has become anonymous is nobody's
  channel_id   text NOT NULL,
  channel_type text NOT NULL, -- api, discord, cli
  occurred_at  timestamptz NOT NULL,
  -- ESSENTIAL
  user_identification   text,
  session_management    text,
  communication_context text,
  -- BEHAVIORAL
  communication_style   text,
  response_preferences  text,
  interaction_frequency integer,
  -- IMPROVEMENT
  error_patterns      text,
  feature_usage       text,
  performance_metrics integer,
  -- STATISTICAL
  usage_statistics       integer, -- messages in the conversation
  performance_benchmarks integer, -- milliseconds to an answer
  trend_analysis         text,    -- rising, steady, falling
  anonymised boolean NOT NULL DEFAULT false -- nothing says any more who it was
);

CREATE INDEX interactions_user ON interactions (user_id);
CREATE INDEX interactions_time ON interactions (occurred_at);
