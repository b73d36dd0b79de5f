package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/rewrite"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

const blocksSetup = `
CREATE SCHEMA "Case Files" AUTHORIZATION arcive_owner;
SET ROLE arcive_owner;
CREATE TYPE "Case Files".stage AS ENUM ('draft', 'final');
CREATE TABLE "Case Files"."Order" (
  tenant text, number int, "Group" uuid, stage "Case Files".stage, title text NOT NULL, access text[], readers jsonb, shared_with text,
  expires_at timestamptz, PRIMARY KEY (tenant, number));
CREATE TABLE "Case Files".lines (tenant text, number int, line text NOT NULL);
INSERT INTO "Case Files"."Order" VALUES
  ('acme',   1, '11111111-1111-4111-8111-111111111111', 'final', 'mine',                 NULL,           NULL,             NULL,             NULL),
  ('acme',   2, NULL,                                   'final', 'granted to work',      '{work,"a,b"}', NULL,             NULL,
    now() + interval '1 hour'),
  ('acme',   3, NULL,                                   'final', 'granted to everybody', '{*}',          NULL,             NULL,             NULL),
  ('global', 4, NULL,                                   'final', 'granted in jsonb',     NULL,           '["x|y=z#"]',     NULL,             NULL),
  ('acme',   5, NULL,                                   'final', 'granted in a text',    NULL,           NULL,             '["\u0077ork"]',  NULL),
  ('acme',   6, NULL,                                   'draft', 'HIDDENMARK draft',     '{work}',       NULL,             NULL,             NULL),
  ('acme',   7, NULL,                                   NULL,    'HIDDENMARK no stage',  '{work}',       NULL,             NULL,             NULL),
  ('acme',   8, NULL,                                   'final', 'HIDDENMARK expired',   '{work}',       NULL,             NULL,
    now() - interval '1 second'),
  ('other',  9, '11111111-1111-4111-8111-111111111111', 'final', 'HIDDENMARK tenant',    '{work,*}',     NULL,             NULL,             NULL),
  (' acme', 10, NULL,                                   'final', 'HIDDENMARK malformed', '{worker}',     '{"work": 1}',    '["work"',        NULL),
  ('acme',  11, NULL,                                   'final', 'HIDDENMARK malformed', '{NULL}',       '"work"',         '["work", {}]',   NULL),
  ('acme',  12, NULL,                                   'final', 'HIDDENMARK malformed', NULL,           'null',           'work',           NULL);
INSERT INTO "Case Files".lines SELECT tenant, number, title FROM "Case Files"."Order";
INSERT INTO "Case Files".lines VALUES ('acme', NULL, 'HIDDENMARK line'), ('other', 1, 'HIDDENMARK line');
RESET ROLE;`

const blocksPolicy = `version: 1
attributes:
  user: { type: uuid, source: credential }
  tenant: { type: text, source: credential }
  contexts: { type: "text[]", source: credential }
tables:
  "Case Files.Order":
    rows:
      - tenant: { column: tenant, is: tenant, shared: global }
      - not: { status: { column: stage, is: draft } }
      - sql: "expires_at IS NULL OR expires_at > now()"
      - any:
          - own: { column: Group, is: user }
          - grant: { column: access, to: [user, contexts], all: "*" }
          - grant: { column: readers, to: [user, contexts] }
          - grant: { column: shared_with, to: contexts }
  "Case Files.lines": { rows: [ { visible: { "Case Files.Order": { tenant: tenant, number: number } } } ] }
`

// The rule blocks over a row's own columns work through the proxy, in each mode, in a schema whose names need quotes.
// No part of a hidden row is sent, not even in an error.
func TestBlocks(t *testing.T) {
	tier.All(t)
	attributes := map[string]string{"tenant": "acme", "contexts": `{"work","x|y=z#","100% \"sure\", {a} \\"}`}
	for name, o := range map[string]options{
		"both": {}, "auto": {mode: rewrite.AutoMode}, "signed": {mode: rewrite.AlwaysSignedMode}, "row security alone": {
			mode: modeRLS}, "text alone": {mode: modeInjected, rowSecurity: withoutPolicies},
	} {
		t.Run(name, func(t *testing.T) {
			o.beforeMigrate, o.policy, o.attributes = blocksSetup, blocksPolicy, attributes
			in := start(t, o)
			agent := in.agent(t)
			for _, q := range []struct{ sql, want string }{
				{`SELECT number FROM "Case Files"."Order" ORDER BY number`, "1 2 3 4 5"},
				{
					`SELECT o.number FROM "Case Files"."Order" AS o JOIN "Case Files".lines AS l USING (tenant, number) WHERE l.line LIKE '%' ORDER BY 1`, "1 2 3 4 5"},
				{`SELECT count(*) FROM "Case Files".lines`, "5"},
				{`SELECT count(*) FROM "Case Files"."Order" WHERE title LIKE 'HIDDEN%' OR shared_with IS NOT NULL`, "1"},
				{
					`SELECT count(*) FROM "Case Files".lines WHERE number IS NULL OR NOT EXISTS (SELECT FROM "Case Files"."Order" AS o WHERE o.number = lines.number)`, "0"},
				{`SELECT max(number) FROM "Case Files"."Order" WHERE tenant IN ('acme', 'other')`, "5"},
			} {
				if got := firstColumn(t, agent, q.sql); got != q.want {
					t.Errorf("%s: got %s, want %s", q.sql, got, q.want)
				}
			}
			if o.mode != modeInjected { // only this mode allows errors to depend on hidden rows
				for _, sql := range []string{
					`SELECT title::int FROM "Case Files"."Order"`,
					`SELECT 1 / (number - 9) FROM "Case Files"."Order"`, `SELECT shared_with::jsonb FROM "Case Files"."Order" WHERE number > 5`,
					`SELECT line::date FROM "Case Files".lines WHERE number IS NULL`,
				} {
					harness.Ask(agent, sql)
				}
			}
			in.requireNoMarker(t)
		})
	}
}

func firstColumn(t *testing.T, agent *pgconn.PgConn, sql string) string {
	t.Helper()
	results, err := agent.Exec(t.Context(), sql).ReadAll()
	if err != nil {
		return fmt.Sprint(err)
	}
	var out []string
	for _, row := range results[0].Rows {
		out = append(out, string(row[0]))
	}
	return strings.Join(out, " ")
}
