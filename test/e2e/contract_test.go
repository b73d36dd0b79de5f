package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/test/tier"
)

const contractSetup = `
CREATE EXTENSION IF NOT EXISTS cube;
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE SCHEMA mediation AUTHORIZATION arcive_owner;
SET ROLE arcive_owner;
CREATE TABLE mediation.session (id int PRIMARY KEY, a uuid, b uuid, stage int);
CREATE TABLE mediation.turn (id int PRIMARY KEY, session int, plan text, sealed_at timestamptz);
CREATE TABLE mediation.event (id int PRIMARY KEY, session int, body text, embedding public.cube, made timestamptz DEFAULT now());
CREATE TABLE mediation.agreement (id int PRIMARY KEY, session int, description text);
CREATE VIEW mediation.event_view AS SELECT id, body, embedding FROM mediation.event;
CREATE FUNCTION mediation.liar() RETURNS SETOF text LANGUAGE sql STABLE AS $$ SELECT body FROM mediation.event ORDER BY id $$;
INSERT INTO mediation.session VALUES (1, '11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222', 1),
  (2, '22222222-2222-4222-8222-222222222222', NULL, 1);
INSERT INTO mediation.turn VALUES (1, 1, 'event:structured,agreement:structured', NULL);
INSERT INTO mediation.event SELECT i, 1 + i % 2, CASE i % 2 WHEN 0 THEN 'own ' ELSE 'HIDDENMARK ' END || i,
  public.cube(i::float8) FROM generate_series(0, 19) i;
INSERT INTO mediation.agreement SELECT i, 1, 'we agreed ' || i FROM generate_series(0, 4) i;
RESET ROLE;`

const contractPolicy = `version: 1
attributes:
  user:    { type: uuid, source: credential }
  session: { type: integer, source: set, setting: app.session,
    within: { table: mediation.session, column: id, rows: [ any: [ own: { column: a, is: user }, own: { column: b, is: user } ] ] } }
  stage:   { type: integer, source: query, audit: true, query: { table: mediation.session, column: stage, match: { id: session } } }
  plan:    { type: text, source: query, optional: true,
    query: { table: mediation.turn, column: plan, match: { session: session }, rows: [ sql: "sealed_at IS NULL" ] } }
tables:
  mediation.event: { rows: [ own: { column: session, is: session } ] }
  mediation.agreement: { rows: [ own: { column: session, is: session } ] }
views: { mediation.event_view: {} }
functions: { mediation.liar: { reads: nothing } }
objects:
  event: { table: mediation.event, vessel: user, metadata: [id, session, made] }
  agreement: { table: mediation.agreement, vessel: shared, metadata: [id, session] }
contracts:
  retrieval:
    by: stage
    apart: [user, shared]
    values:
      0: { allow: { agreement: metadata } }
      1: { allow: { event: [structured, vector] } }
      2: { allow: { event: structured, agreement: structured } }
      3: { allow: { agreement: structured } }
  turn: { allow: { event: [structured, vector], agreement: structured }, plan: plan }
`

// A contract applies to each way of sending a statement, and a new stage counts at the next statement.
func TestContracts(t *testing.T) {
	tier.All(t)
	for name, o := range map[string]options{"both": {}, "auto": {mode: rewrite.AutoMode},
		"row security alone": {mode: modeRLS}} {
		t.Run(name, func(t *testing.T) {
			o.beforeMigrate, o.policy = contractSetup, contractPolicy
			in := start(t, o)
			agent := in.agent(t)
			ctx := t.Context()
			setStage := func(n string) { runAsSuperuser(t, in.db, "UPDATE mediation.session SET stage = "+n+" WHERE id = 1") }
			setPlan := func(p string) { runAsSuperuser(t, in.db, "UPDATE mediation.turn SET plan = '"+p+"'") }
			want := func(sql, want string) {
				t.Helper()
				if got := firstColumn(t, agent, sql); got != want {
					t.Errorf("%s: got %s, want %s", sql, got, want)
				}
			}
			wantDenied := func(sql, message string) {
				t.Helper()
				if got := firstColumn(t, agent, sql); !strings.Contains(got, message) || !strings.Contains(got, "SQLSTATE 42501") {
					t.Errorf("%s: got %s, want %s", sql, got, message)
				}
			}
			const bodiesQuery = "SELECT body FROM mediation.event ORDER BY id LIMIT 2"
			const nearestQuery = "SELECT id FROM mediation.event ORDER BY embedding <-> '(4)'::cube LIMIT 1"
			const agreementQuery = "SELECT description FROM mediation.agreement ORDER BY id LIMIT 1"

			wantDenied(bodiesQuery, "the session has no stage")
			want("SET app.session = 1", "")
			want(bodiesQuery, "own 0 own 2")
			wantDenied(nearestQuery, "contract turn: event is not in the plan; this statement would search it by likeness (vector)")
			setPlan("event:structured,event:vector,agreement:structured")
			want(nearestQuery, "4")
			wantDenied(agreementQuery, "contract retrieval, stage 1: agreement is not allowed")
			wantDenied("SELECT count(*) FROM mediation.agreement", "contract retrieval, stage 1: agreement is not allowed")
			wantDenied(bodiesQuery+"; "+agreementQuery, "agreement is not allowed")

			// Statements that were prepared before, by the protocol and in SQL; a cursor; COPY.
			if _, err := agent.Prepare(ctx, "wire", bodiesQuery, nil); err != nil {
				t.Fatal(err)
			}
			want("PREPARE sql AS "+nearestQuery, "")
			askAgain := func() string {
				r := agent.ExecPrepared(ctx, "wire", nil, nil, nil).Read()
				if r.Err != nil {
					return r.Err.Error()
				}
				return string(r.Rows[0][0])
			}
			if got := askAgain(); got != "own 0" {
				t.Errorf("EXECUTE of the wire: %s", got)
			}
			want("EXECUTE sql", "4")
			setStage("2")
			if got := askAgain(); got != "own 0" {
				t.Errorf("EXECUTE of the wire: %s", got)
			}
			wantDenied("EXECUTE sql", "contract retrieval, stage 2: event is not allowed; this statement would search it by likeness (vector)")
			want(agreementQuery, "we agreed 0")
			wantDenied("SELECT body FROM mediation.event UNION ALL SELECT description FROM mediation.agreement", "may not be in one statement")
			wantDenied("SELECT id FROM mediation.agreement ORDER BY similarity(description, 'x') LIMIT 1", "search it by likeness (vector)")
			setStage("3")
			if got := askAgain(); !strings.Contains(got, "contract retrieval, stage 3: event is not allowed") {
				t.Errorf("EXECUTE of the wire: %s", got)
			}
			wantDenied(bodiesQuery, "contract retrieval, stage 3: event is not allowed")
			wantDenied("COPY mediation.event (body) TO STDOUT", "contract retrieval, stage 3: event is not allowed")
			wantDenied("COPY (SELECT body FROM mediation.event) TO STDOUT", "contract retrieval, stage 3: event is not allowed")
			wantDenied("SELECT body FROM mediation.event_view", "contract retrieval, stage 3: event (through mediation.event_view) is not allowed")
			wantDenied("DECLARE c CURSOR WITH HOLD FOR SELECT body FROM mediation.event", "contract retrieval, stage 3: event is not allowed")
			if _, err := agent.Prepare(ctx, "late", bodiesQuery, nil); err == nil || !strings.Contains(err.Error(), "contract retrieval, stage 3") {
				t.Errorf("Parse: %v", err)
			}
			// The second layer of enforcement: a function that reads other tables than the policy declares gets no rows.
			want("SELECT count(*) FROM mediation.liar()", "0")
			setStage("1")
			want("SELECT count(*) FROM mediation.liar()", "10")
			setPlan("agreement:structured")
			want("SELECT count(*) FROM mediation.liar()", "0")
			wantDenied(bodiesQuery, "contract turn: event is not in the plan")
			setPlan("event:structured")
			want(bodiesQuery, "own 0 own 2")
			runAsSuperuser(t, in.db, "UPDATE mediation.turn SET sealed_at = now()")
			wantDenied(bodiesQuery, "contract turn: there is no plan")
			want("SELECT count(*) FROM mediation.liar()", "0")
			runAsSuperuser(t, in.db, "UPDATE mediation.turn SET sealed_at = NULL")

			// Cursors that are open when the stage changes.
			want("BEGIN", "")
			want("DECLARE c CURSOR FOR SELECT body FROM mediation.event ORDER BY id", "")
			want("FETCH c", "own 0")
			setStage("3")
			if got := firstColumn(t, agent, "FETCH c"); strings.Contains(got, "own") || !strings.Contains(got, "SQLSTATE") {
				t.Errorf("FETCH after the stage has changed: %s", got)
			}
			want("ROLLBACK", "")
			setStage("7")
			wantDenied(agreementQuery, "contract retrieval, stage 7: nothing is allowed")
			setStage("NULL")
			wantDenied(agreementQuery, "contract retrieval allows nothing: the session has no stage")
			in.requireNoMarker(t)
			contractAudit(t, in, agent)
		})
	}
}

// contractAudit checks that the audit has a record of each attempt, with the verdicts of the contracts.
func contractAudit(t *testing.T, in *instance, agent *pgconn.PgConn) {
	t.Helper()
	type contract struct{ Name, By, Value, Verdict string }
	counts := map[contract]int{}
	vectors := 0
	if _, err := audit.Walk(in.audit, func(r audit.Record) error {
		if r.Kind != "decision" {
			return nil
		}
		var d struct {
			Contracts []contract
			Tables    []struct{ Name, Source string }
			Verdict   string
			Reason    string
		}
		if err := json.Unmarshal(r.Line, &d); err != nil {
			return err
		}
		for _, c := range d.Contracts {
			counts[c]++
			if c.Verdict == "deny" && (d.Verdict != "deny" || d.Reason != "contract" || len(d.Tables) == 0) {
				t.Errorf("a record of a refusal by contract: %+v", d)
			}
		}
		for _, table := range d.Tables {
			if table.Source == "vector" {
				vectors++
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []contract{
		{"retrieval", "stage", "1", "allow"}, {"retrieval", "stage", "1", "deny"}, {"retrieval", "stage", "2", "deny"}, {"retrieval", "stage", "3", "deny"},
		{"retrieval", "stage", "7", "deny"}, {"retrieval", "stage", "", "deny"}, {"turn", "", "", "deny"}, {"turn", "", "", "allow"},
	} {
		if counts[c] == 0 {
			t.Errorf("no record of %+v", c)
		}
	}
	if vectors == 0 {
		t.Error("no record of an access by likeness")
	}
}
