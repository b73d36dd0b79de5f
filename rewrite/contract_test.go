package rewrite

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
)

// contractRefusal returns the first error with which the policy's contracts refuse a statement of the text.
func contractRefusal(t *testing.T, r *Rewriter, sql string, values map[string]string) *sqlstate.Error {
	t.Helper()
	result, refusal := r.Rewrite(sql, false)
	if refusal != nil {
		t.Fatalf("%s: %v (%s)", sql, refusal, refusal.Hint)
	}
	for _, s := range result.Statements {
		if err := contracted.pol.Judge(s, values); err != nil {
			return err
		}
	}
	return nil
}

func TestContracts(t *testing.T) {
	r := underContract(t)
	sessionValues := func(stage, intent string) map[string]string {
		values := map[string]string{}
		if stage != "" {
			values["stage"] = stage
		}
		if intent != "" {
			values["intent"] = intent
		}
		return values
	}
	for _, c := range []struct {
		stage, intent, sql string
		refusal            string // the beginning of the error message; "" if allowed
		rowEstimator       string
	}{
		{"1", "any", "SELECT title FROM event", "", ""},
		{"1", "any", "SELECT id FROM event ORDER BY embedding <-> '(1,1)'::cube LIMIT 3", "", ""},
		{"1", "any", "SELECT description FROM agreement",
			"contract retrieval, stage 1: agreement is not allowed; this statement would read it (structured)",
			"Here it allows event (metadata, structured, vector), need (metadata, structured, vector)."},
		{"1", "any", "SELECT count(*) FROM agreement", "contract retrieval, stage 1: agreement is not allowed; this statement would read its metadata", ""},
		{"0", "any", "SELECT count(*), max(made) FROM event", "", ""},
		{"0", "any", "SELECT title FROM event", "contract retrieval, stage 0: event is not allowed; this statement would read it (structured)", ""},
		{"0", "any", "SELECT id FROM event WHERE title = 'x'", "contract retrieval, stage 0: event is not allowed", ""},
		{"0", "any", "SELECT description FROM agreement", "", ""},
		{"0", "any", "SELECT count(*) FROM agreement", "", ""}, // an agent that may read it may count it
		{"4", "any", "SELECT description FROM agreement ORDER BY agreed_at", "", ""},
		{"4", "any", "SELECT id FROM agreement ORDER BY description <-> 'we agreed' LIMIT 1",
			"contract retrieval, stage 4: agreement is not allowed; this statement would search it by likeness " +
				"(vector)", "Here it allows agreement (structured), library (vector)."},
		{"4", "any", "SELECT title FROM library ORDER BY embedding <-> '(1,1)'::cube LIMIT 3", "", ""},
		{"4", "any", "SELECT title FROM library", "contract retrieval, stage 4: library is not allowed; this statement would read it (structured)", ""},
		{"4", "any", "SELECT count(*) FROM library", "contract retrieval, stage 4: library is not allowed", ""},
		{"4", "any", "SELECT b.title FROM library a, library b ORDER BY a.embedding <-> '(1,1)'::cube",
			"contract retrieval, stage 4: library is not allowed", ""},
		{"3", "any", "SELECT title FROM event", "contract retrieval, stage 3: nothing is allowed",
			"The contract lists 0, 1, 2, 4, 5, 6, and no other value of stage."},
		{"5", "any", "SELECT title FROM event",
			"contract retrieval, stage 5: nothing may be retrieved; this statement would read it (structured): event", ""},
		{"", "any", "SELECT title FROM event", "contract retrieval allows nothing: the session has no stage", "The attribute stage decides"},
		{"1", "", "SELECT title FROM event", "contract intent allows nothing: the session has no intent", ""},
		{"1", "other", "SELECT title FROM event", "contract intent, intent other: nothing is allowed", ""},
		{"", "", "SELECT word FROM plain", "", ""}, // the table is not an object of the contract
		{"", "", "SELECT 1", "", ""},
		{"", "", "SELECT relname FROM pg_class", "", ""},
		{"", "", "BEGIN; SET TimeZone = 'UTC'; COMMIT", "", ""},
		// Whichever statement wraps the query, the answer is the same.
		{"4", "any", "PREPARE p AS SELECT title FROM event", "contract retrieval, stage 4: event is not allowed", ""},
		{"4", "any", "DECLARE c CURSOR FOR SELECT title FROM event", "contract retrieval, stage 4: event is not allowed", ""},
		{"4", "any", "COPY event (title) TO STDOUT", "contract retrieval, stage 4: event is not allowed", ""},
		{"4", "any", "COPY (SELECT title FROM event) TO STDOUT", "contract retrieval, stage 4: event is not allowed", ""},
		{"4", "any", "SELECT id FROM event_titles", "contract retrieval, stage 4: event (through public.event_titles) is not allowed", ""},
		{"4", "any", "SELECT find_events('x')", "contract retrieval, stage 4: event (through public.find_events) is not allowed", ""},
		{"1", "any", "SELECT find_events('x')", "", ""},
		{"1", "any", "SELECT silent('x')",
			"function public.silent may not be called: the policy does not say what it reads", "The DBA says it under functions: reads"},
		{"1", "any", "SELECT harmless('x')", "", ""},
		{"4", "any", "SELECT p.story FROM plain p", "contract retrieval, stage 4: event (through public.story) is not allowed", ""},
		{"4", "any", "SELECT (p).story FROM plain p", "contract retrieval, stage 4: event (through public.story) is not allowed", ""},
		{"1", "any", "SELECT p.story FROM plain p", "", ""},
		{"1", "any", "SELECT word FROM plain p WHERE p.mute = 'x'", "function public.mute may not be called: the policy does not say what it reads", ""},
		{"1", "any", "SELECT ('x'::text).silent", "function public.silent may not be called: the policy does not say what it reads", ""},
		{"4", "any", "SELECT description FROM agreement; SELECT title FROM event", "contract retrieval, stage 4: event is not allowed", ""},
		{"4", "any", "SELECT (SELECT count(*) FROM event), description FROM agreement", "contract retrieval, stage 4: event is not allowed", ""},
		{"0", "any", "SELECT day FROM parted", "contract retrieval, stage 0: parted is not allowed", ""},
		// Writing needs an explicit permission.
		{"1", "any", "INSERT INTO event (title) VALUES ('x')", "contract retrieval, stage 1: event is not allowed; this statement would write it", ""},
		{"6", "any", "INSERT INTO event (title) VALUES ('x')", "", ""},
		{"1", "any", "INSERT INTO event_titles (title) VALUES ('x')",
			"contract retrieval, stage 1: event (through public.event_titles) is not allowed; this statement would write it", ""},
		{"6", "any", "UPDATE event SET title = 'x' WHERE id = 1", "", ""},
		// Tables that may only be joined.
		{"1", "any", "SELECT e.title FROM event e JOIN vessel v ON e.vessel_id = v.id WHERE v.user_id = 1", "", ""},
		{"1", "any", "SELECT title FROM event WHERE vessel_id IN (SELECT id FROM vessel WHERE user_id = 1)", "", ""},
		{"1", "any", "SELECT title FROM event e WHERE EXISTS (SELECT 1 FROM vessel v WHERE v.id = e.vessel_id AND v.user_id = 1)", "", ""},
		{"1", "any", "SELECT v.user_id FROM event e JOIN vessel v ON e.vessel_id = v.id",
			"vessel may only be joined: its columns may not be returned", "on a key of vessel"},
		{"1", "any", "SELECT e.title FROM event e JOIN vessel v ON e.vessel_id = v.id ORDER BY v.user_id",
			"vessel may only be joined: its columns may not be returned", ""},
		{"1", "any", "SELECT (SELECT v.user_id = 1 FROM vessel v WHERE v.id = e.vessel_id) FROM event e",
			"vessel may only be joined: its columns may not be returned", ""},
		{"1", "any", "SELECT EXISTS (SELECT 1 FROM vessel v WHERE v.id = e.vessel_id AND v.user_id = 1) FROM event e",
			"vessel may only be joined: its columns may not be returned", ""},
		{"1", "any", "SELECT e.title FROM vessel u, event e JOIN vessel v ON e.vessel_id = v.id",
			"vessel may only be joined to another object, on a key of it", ""},
		{"1", "any", "SELECT e.title FROM event e JOIN vessel v ON e.vessel_id = v.id, vessel u",
			"vessel may only be joined to another object, on a key of it", ""},
		{"1", "any", "SELECT e.title FROM vessel u, event e JOIN vessel v ON e.vessel_id = v.id WHERE u.user_id = 1",
			"vessel may only be joined to another object, on a key of it", ""},
		{"1", "any", "SELECT e.title FROM event e JOIN vessel v ON e.vessel_id = v.id, vessel u WHERE u.user_id = 1",
			"vessel may only be joined to another object, on a key of it", ""},
		{"4", "any", "EXECUTE p (find_events('x'))", "contract retrieval, stage 4: event (through public.find_events) is not allowed", ""},
		{"1", "any", "SELECT count(*) FROM vessel", "vessel may only be joined to another object, on a key of it", ""},
		{"1", "any", "SELECT count(*) FROM vessel, event", "vessel may only be joined to another object, on a key of it", ""},
		{"1", "any", "SELECT x.u FROM event e JOIN (SELECT id, user_id AS u FROM vessel) x ON e.vessel_id = x.id",
			"vessel may only be joined: its columns may not be returned", ""},
		{"1", "any", "SELECT e.title FROM event e JOIN (SELECT id, user_id AS u FROM vessel) x ON e.vessel_id = x.id WHERE x.u = 1", "", ""},
		{"2", "any", "SELECT c.body FROM content c JOIN record r ON c.record_id = r.id WHERE r.decision = " +
			"'GRANTED' AND r.revoked_at IS NULL AND c.active", "", ""},
		{"5", "any", "SELECT 1 FROM event e JOIN vessel v ON e.vessel_id = v.id", "contract retrieval, stage 5: nothing may be retrieved", ""},
		// Columns.
		{"2", "any", "SELECT id, label FROM need", "", ""},
		{"2", "any", "SELECT id, label FROM need WHERE confirmed",
			`contract retrieval, stage 2: column "confirmed" of need is not allowed`, "It allows id, label."},
		{"6", "any", "SELECT * FROM need", "", ""},
		// Tables that belong to different vessels may not be read in one statement.
		{"2", "any", "SELECT title FROM event, agreement",
			"contract retrieval, stage 2: agreement and event may not be in one statement: their vessels are " +
				"shared and user", "Read each vessel in a statement of its own."},
		{"2", "any", "SELECT title FROM event UNION ALL SELECT body FROM content",
			"contract retrieval, stage 2: content and event may not be in one statement", ""},
		{"2", "any", "SELECT title FROM event; SELECT body FROM content", "", ""}, // each statement is judged by itself
		{"2", "any", "WITH e AS (SELECT title FROM event) SELECT body FROM content WHERE body IN (TABLE e)",
			"contract retrieval, stage 2: content and event may not be in one statement", ""},
		{"2", "any", "SELECT c.body FROM content c, agreement a", "", ""},
		// The contract intent narrows what the contract retrieval allows.
		{"1", "none", "SELECT title FROM event", "contract intent, intent none: nothing may be retrieved",
			"At intent none the contract allows nothing at all."},
		{"1", "minimal", "SELECT title FROM event LIMIT 5", "", ""},
		{"1", "minimal", "SELECT title FROM event WHERE n > 3 ORDER BY embedding <-> '(1,1)'::cube LIMIT 2", "", ""},
		{"1", "minimal", "SELECT e.* FROM event e JOIN vessel v ON e.vessel_id = v.id WHERE v.user_id = 1 LIMIT 5", "", ""},
		{"1", "minimal",
			"SELECT e.title FROM event e JOIN (SELECT string_agg(label, ',') AS l FROM need) n ON true LIMIT 5",
			"contract intent, intent minimal: at most 5 rows", ""},
		{"1", "minimal", "SELECT title FROM event LIMIT 6", "contract intent, intent minimal: at most 5 rows, as they are", "LIMIT 5 or less."},
		{"1", "minimal", "SELECT title FROM event", "contract intent, intent minimal: at most 5 rows", ""},
		{"1", "minimal", "SELECT title FROM event LIMIT $1", "contract intent, intent minimal: at most 5 rows", ""},
		{"1", "minimal", "SELECT title FROM event LIMIT ALL", "contract intent, intent minimal: at most 5 rows", ""},
		{"1", "minimal", "SELECT title FROM event ORDER BY id FETCH FIRST 5 ROWS WITH TIES", "contract intent, intent minimal: at most 5 rows", ""},
		{"1", "minimal", "SELECT string_agg(title, ',') FROM event LIMIT 1", "contract intent, intent minimal: at most 5 rows", ""},
		{"1", "minimal", "SELECT (SELECT string_agg(title, ',') FROM event) FROM event LIMIT 1", "contract intent, intent minimal: at most 5 rows", ""},
		{"1", "minimal", "SELECT title FROM event WHERE title = (SELECT max(label) FROM need) LIMIT 1",
			"contract intent, intent minimal: at most 5 rows", ""},
		{"1", "minimal", "SELECT title FROM event_titles LIMIT 1", "contract intent, intent minimal: at most 5 rows", ""},
		{"1", "minimal", "(SELECT title FROM event LIMIT 5) UNION ALL (SELECT label FROM need LIMIT 5)",
			"contract intent, intent minimal: at most 5 rows", ""},
		// Named statements.
		{"1", "templates", "SELECT title FROM event WHERE id = $1 AND n > 3", "", ""},
		{"1", "templates", "select Title from event where id = 17 and n > 3;", "", ""},
		{"1", "templates", "PREPARE p (integer) AS SELECT title FROM event WHERE id = $1 AND n > 3", "", ""},
		{"1", "templates", "DECLARE c CURSOR WITHOUT HOLD FOR SELECT title FROM event WHERE id = 3 AND n > 3", "", ""},
		{"1", "templates", "SELECT e.title FROM event AS e ORDER BY e.embedding <-> '(1,2)'::cube LIMIT 5", "", ""},
		{"1", "templates", "SELECT title FROM event WHERE id = $1 AND n > 4",
			"contract intent, intent templates: the statement is none of those that the contract allows", "It allows the statements near, titles"},
		{"1", "templates", "SELECT title FROM event WHERE id = $1 AND n > $2", "contract intent, intent templates: the statement is none of those", ""},
		{"1", "templates", "SELECT title FROM event WHERE id = id AND n > 3", "contract intent, intent templates: the statement is none of those", ""},
		{"1", "templates", `SELECT "title" FROM event WHERE id = $1 AND n > 3`, "contract intent, intent templates: the statement is none of those", ""},
		{"1", "templates", "SELECT title FROM event WHERE id = $1 AND n > 3 OR true",
			"contract intent, intent templates: the statement is none of those", ""},
		{"1", "templates",
			"SELECT title FROM event WHERE id = 1 AND n > 3; SELECT title FROM event WHERE id = 2 AND n > 3",
			"contract intent, intent templates: the statement is none of those", ""},
		{"1", "templates", "COPY (SELECT title FROM event WHERE id = 1 AND n > 3) TO STDOUT",
			"contract intent, intent templates: the statement is none of those", ""},
	} {
		err := contractRefusal(t, r, c.sql, sessionValues(c.stage, c.intent))
		switch {
		case err == nil && c.refusal == "":
		case err == nil:
			t.Errorf("stage %q, intent %q: %s\nis allowed", c.stage, c.intent, c.sql)
		case c.refusal == "" || !strings.HasPrefix(err.Message, c.refusal) || !strings.Contains(err.Hint, c.rowEstimator):
			t.Errorf("stage %q, intent %q: %s\n got %s (%s)\nwant %s (%s)", c.stage, c.intent, c.sql, err.Message, err.Hint, c.refusal, c.rowEstimator)
		case err.Code != sqlstate.InsufficientPrivilege || err.Reason != sqlstate.ReasonContract:
			t.Errorf("%s: %s, %s", c.sql, err.Code, err.Reason)
		}
	}
}

// A policy without contracts refuses no statement.
func TestNoContract(t *testing.T) {
	if err := new(policy.Policy).Judge(policy.Statement{Accesses: []policy.Access{{Source: policy.SourceFunction}}},
		nil); err != nil {
		t.Error(err)
	}
}
