package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/dev/world"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// These tests cover the requirements of the kernle world, over the wire. Its lists are stored as JSON in text, as
// arrays and as jsonb. The expected visible rows are computed in Go, from the rows that the superuser reads.

// kernleTables returns the tables of episodes whose lists are stored as in the seed, as arrays and as jsonb. The quick
// run uses the seed's form only.
func kernleTables() []string {
	tables := []string{"episodes", "episodes_array", "episodes_jsonb"}
	if tier.Quick() {
		return tables[:1]
	}
	return tables
}

func loadWorld(name, owner string) func(context.Context, *pgx.Conn) error {
	return func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, fmt.Sprintf(`DO $$ BEGIN
			IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '%[1]s') THEN CREATE ROLE %[1]s LOGIN PASSWORD '%[2]s'; END IF;
			EXECUTE format('ALTER DATABASE %%I OWNER TO %[1]s', current_database());
			ALTER SCHEMA public OWNER TO %[1]s;
		END $$`, owner, rolePassword)); err != nil {
			return err
		}
		w, err := world.Open(name)
		if err != nil {
			return err
		}
		return w.Load(ctx, conn, func(string) {})
	}
}

// kernle is a database with the example world kernle, behind a proxy.
type kernle struct {
	testing.TB
	db    *pgtest.DB
	proxy *harness.Proxy
	bella *pgconn.PgConn // bella's connection, which transcript uses
}

func startKernle(t testing.TB, setup ...string) *kernle {
	t.Helper()
	return startKernleIn(t, harness.Both, setup...)
}

func startKernleIn(t testing.TB, mode harness.Mode, setup ...string) *kernle {
	t.Helper()
	k := &kernle{TB: t, db: pgtest.Template(t, "kernle", loadWorld("kernle", "kernle_owner"))}
	w, err := world.Open("kernle")
	if err != nil {
		t.Fatal(err)
	}
	text, err := w.File("policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	d := harness.Database{Name: "kernle", DB: k.db, Policy: string(text), SearchPath: []string{"public"}, Setup: strings.Join(setup, ";\n")}
	harness.Install(t, d, mode)
	var agents []harness.Agent
	for _, a := range w.Agents {
		agents = append(agents, harness.Agent{Name: a.Name, Database: "kernle", Attributes: a.Attributes})
	}
	k.proxy = harness.Serve(t, mode, []harness.Database{d}, agents)
	return k
}

// readKernle returns the world of [startKernleIn] for read-only tests, which share it. Each test has its own tap.
func readKernle(t testing.TB, mode harness.Mode) *kernle {
	t.Helper()
	sharedKernle := *harness.Shared(t, "kernle, "+mode.Name, func(t testing.TB) (*kernle, *pgtest.DB) {
		k := startKernleIn(t, mode)
		return k, k.db
	})
	return &kernle{TB: t, db: sharedKernle.db, proxy: sharedKernle.proxy.WithOwnTap(t)}
}

// connectAs connects an agent, in a context or, for "", in none.
func (k *kernle) connectAs(name, inContext string) *pgconn.PgConn {
	k.Helper()
	c := k.proxy.Agent(k, name, "kernle")
	if inContext != "" {
		k.mustExec(c, "SET pgconsent.context = '"+inContext+"'")
	}
	return c
}

func (k *kernle) mustExec(c *pgconn.PgConn, sql string) {
	k.Helper()
	if a := harness.Ask(c, sql); a.Code != "" {
		k.Fatalf("%s: %s", sql, a)
	}
}

// checkRefused checks that a statement is refused with this SQLSTATE.
func (k *kernle) checkRefused(c *pgconn.PgConn, sql, code string) {
	k.Helper()
	if a := harness.Ask(c, sql); a.Code != code {
		k.Errorf("%s: SQLSTATE %q, want %s\n%s", sql, a.Code, code, harness.Truncate(a.String()))
	}
}

func (k *kernle) queryList(c *pgconn.PgConn, sql string) []string {
	k.Helper()
	a := harness.Ask(c, sql)
	if a.Code != "" {
		k.Fatalf("%s: %s", sql, a)
	}
	return slices.Sorted(slices.Values(a.Results[0].Rows))
}

// memory is a row of a table of memories. A list that is NULL or malformed is nil.
type memory struct {
	id, stack, source    string
	toldFrom             string // the memory from which it was derived
	subjects, grants     []string
	hasMalformedSubjects bool // the column subjects does not hold a list of ids
}

// memories reads a table as the superuser; PostgreSQL itself parses the lists.
func (k *kernle) memories(table string) []memory {
	k.Helper()
	list := func(column string) string {
		switch table {
		case "episodes_array":
			return column
		case "episodes_jsonb":
			return "pg_temp.ids(" + column + "::text)"
		}
		return "pg_temp.ids(" + column + ")"
	}
	conn := k.db.Connect(k, "postgres")
	if _, err := conn.Exec(context.Background(), `CREATE FUNCTION pg_temp.ids(t text) RETURNS text[] LANGUAGE plpgsql AS $$
		BEGIN
			IF jsonb_typeof(t::jsonb) IS DISTINCT FROM 'array' THEN RETURN NULL; END IF;
			RETURN ARRAY(SELECT CASE WHEN jsonb_typeof(e) = 'string' THEN e #>> '{}' END FROM jsonb_array_elements(t::jsonb) e);
		EXCEPTION WHEN others THEN RETURN NULL;
		END $$`); err != nil {
		k.Fatal(err)
	}
	rows, err := conn.Query(context.Background(),
		"SELECT id, stack_id, coalesce(source_entity, ''), coalesce(told_from, ''), "+list("subject_ids")+", "+list("access_grants")+" FROM "+table)
	if err != nil {
		k.Fatal(err)
	}
	var out []memory
	for rows.Next() {
		var m memory
		var subjects, grants []*string
		if err := rows.Scan(&m.id, &m.stack, &m.source, &m.toldFrom, &subjects, &grants); err != nil {
			k.Fatal(err)
		}
		m.hasMalformedSubjects = subjects == nil || slices.Contains(subjects, nil)
		for _, s := range subjects {
			if s != nil {
				m.subjects = append(m.subjects, *s)
			}
		}
		for _, g := range grants {
			if g != nil {
				m.grants = append(m.grants, *g)
			}
		}
		out = append(out, m)
	}
	if rows.Err() != nil {
		k.Fatal(rows.Err())
	}
	return out
}

// entity describes an agent: its user, its roles, and the context that it has entered.
type entity struct {
	user    string
	roles   []string
	context string
}

// expectedIDs returns the ids that an entity may see, by an implementation of the rule in Go (seeds/003:58-65,
// 130-138).
func (k *kernle) expectedIDs(table string, e entity) []string {
	k.Helper()
	conn := k.db.Connect(k, "postgres")
	isTrue := func(sql string, args ...any) bool {
		var ok bool
		if err := conn.QueryRow(context.Background(), "SELECT EXISTS ("+sql+")", args...).Scan(&ok); err != nil {
			k.Fatal(err)
		}
		return ok
	}
	callerIDs := append([]string{e.user}, e.roles...)
	consentCache := map[string]bool{}
	allMemories := k.memories(table)
	var isVisible func(m memory,
		chain ...string) bool // line 65: every memory of the told_from chain must be visible as well, and the chain must have no cycle
	isVisible = func(m memory, chain ...string) bool {
		if isTrue("SELECT FROM stacks WHERE id = $1 AND owner = $2", m.stack, e.user) {
			return true
		}
		isGranted := slices.ContainsFunc(m.grants, func(g string) bool {
			return g == "*" || slices.Contains(callerIDs, g) || e.context != "" && g == e.context &&
				isTrue("SELECT FROM privacy_contexts WHERE stack_id = $1 AND context_id = $2 AND participants LIKE "+
					"'[%' AND participants::jsonb ?| $3", m.stack, e.context, callerIDs)
		})
		if !isGranted || m.hasMalformedSubjects {
			return false
		}
		for _, s := range m.subjects {
			if s == e.user {
				continue
			}
			cacheKey := fmt.Sprint(m.stack, s, m.id, m.grants)
			if _, ok := consentCache[cacheKey]; !ok {
				consentCache[cacheKey] = isTrue(`SELECT FROM consent_records r WHERE r.stack_id = $1 AND revoked_at IS NULL AND (grantee = '*' OR grantee = ANY ($3))
					AND (scope = '*' OR scope = $4 OR scope = ANY ($5))
					AND (grantor = $2 OR grantor IN (SELECT guardian FROM guardians g WHERE g.stack_id = $1 AND g.subject = $2))`, m.stack, s, callerIDs, m.id, m.grants)
			}
			if !consentCache[cacheKey] {
				return false
			}
		}
		sourceIndex := slices.IndexFunc(allMemories, func(o memory) bool { return o.id == m.toldFrom })
		return m.toldFrom == "" || sourceIndex >= 0 && !slices.Contains(chain, m.toldFrom) &&
			isVisible(allMemories[sourceIndex], append(chain, m.id)...)
	}
	var out []string
	for _, m := range allMemories {
		if isVisible(m) {
			out = append(out, m.id)
		}
	}
	return slices.Sorted(slices.Values(out))
}

// checkVisible compares the memories that an agent sees with expectedIDs.
func (k *kernle) checkVisible(c *pgconn.PgConn, table string, e entity) []string {
	k.Helper()
	got, want := k.queryList(c, "SELECT id FROM "+table), k.expectedIDs(table, e)
	if !slices.Equal(got, want) {
		k.Errorf("%s as %v: sees %d memories, want %d\nmore: %v\nless: %v", table, e, len(got), len(want), withoutElements(got, want), withoutElements(want, got))
	}
	return got
}

func withoutElements(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(x string) bool { return slices.Contains(b, x) })
}

// A grantee sees a memory; without a grant only the owning SI does. seeds/003:6, 10-15, 21-35, 60, 128-138, 152-156,
// 193-195.
func TestKernleA_GrantsShowAndTheOwnerSeesItsOwn(t *testing.T) {
	k := startKernle(t)
	for i, table := range append(kernleTables(), "beliefs", "notes", "raw_entries") {
		visibleIDs := k.checkVisible(k.connectAs("bella", ""), table, entity{user: "si:bella_agent"})
		if len(visibleIDs) < 10 {
			t.Errorf("%s: %d memories prove little", table, len(visibleIDs))
		}
		for j, e := range []struct{ name, user, role string }{
			{"ash", "si:ash", ""}, {"ashley", "si:ashley", ""}, {"sean", "human:sean", ""}, {
				"vet", "human:dr_smith", "role:vet"}, {"rex", "si:rex", ""}, {"tutor_a", "si:tutor_a", "role:tutor"},
			{"tutor_b", "si:tutor_b", "role:tutor"}, {"specialist", "si:reading_specialist", ""}, {
				"parent", "human:parent_456", ""}, {"mallory", "si:mallory", ""},
		} {
			if !tier.IsPicked(i+j, 2) {
				continue
			}
			entity := entity{user: e.user}
			if e.role != "" {
				entity.roles = []string{e.role}
			}
			c := k.connectAs(e.name, "")
			k.checkVisible(c, table, entity)
			harness.Close(c)
		}
	}
	k.checkScopes()
	foreignCount := k.queryList(k.connectAs("ash", ""), "SELECT count(*) FROM episodes WHERE stack_id <> 'ash' AND access_grants = '[]'")
	if foreignCount[0] != "0" {
		t.Errorf("%s memories of others, granted to nobody", foreignCount[0])
	}
	ownCount := harness.Ask(harness.ConnectSuperuser(t, k.db), "SELECT count(*) FROM episodes WHERE stack_id = 'ash'").Results[0].Rows[0]
	if got := k.queryList(k.connectAs("ash", ""), "SELECT count(*) FROM episodes WHERE stack_id = 'ash'")[0]; got != ownCount {
		t.Errorf("the owning SI sees %s of its own %s memories", got, ownCount)
	}
}

// checkScopes checks the four scopes of the seed (seeds/003:21-35), and those of a stack that another entity loads
// (seeds/003:128-138).
func (k *kernle) checkScopes() {
	k.Helper()
	super := harness.ConnectSuperuser(k, k.db)
	for _, table := range kernleTables() {
		for _, m := range []struct{ id, stack, grant string }{
			{"scope:self", "ash", ""}, {"scope:entity", "ash", "human:sean"}, {"scope:context", "ash", "ctx:bella_health"}, {"scope:public", "ash", "*"},
			{"load:private", "student_123", ""}, {"load:entity", "student_123", "si:tutor_b"}, {
				"load:public", "student_123", "*"}, {"load:context", "student_123", "ctx:student_123_academic"},
			{"load:group", "student_123", "role:tutor"}, {"load:longer", "student_123", "si:tutor_bb"}, {"load:shorter", "student_123", "si:tutor"},
		} {
			grants := kernleList(table)
			if m.grant != "" {
				grants = kernleList(table, m.grant)
			}
			k.mustExec(super, "INSERT INTO "+table+" (id, stack_id, content, access_grants) VALUES ('"+m.id+"', '"+m.stack+"', 'x', "+grants+")")
		}
		for _, c := range []struct{ caller, in, query, wantIDs string }{
			{"ash", "", "scope", "context entity public self"}, {"sean", "", "scope", "entity public"}, {
				"sean", "ctx:bella_health", "scope", "context entity public"},
			{"bella", "", "scope", "public"}, {"bella", "ctx:bella_health", "scope", "context public"}, {
				"bella", "ctx:dog_park", "scope", "public"}, {"rex", "", "scope", "public"},
			{"mallory", "ctx:bella_health", "scope", "public"}, {"ash_as_guest", "", "scope", "public"},
			{"tutor_b", "", "load", "entity group public"}, {
				"tutor_b", "ctx:student_123_academic", "load", "context entity group public"},
			{"tutor_a", "", "load", "context entity group longer private public shorter"},
			{"parent", "ctx:student_123_academic", "load", "context public"}, {"specialist", "", "load", "public"}, {"ash", "", "load", "public"},
		} {
			conn := k.connectAs(c.caller, c.in)
			got := strings.ReplaceAll(strings.Join(k.queryList(conn, "SELECT id FROM "+table+" WHERE id LIKE '"+c.query+":%'"), " "), c.query+":",
				"")
			if got != c.wantIDs {
				k.Errorf("%s: %s in %q sees %q, want %q", table, c.caller, c.in, got, c.wantIDs)
			}
			harness.Close(conn)
		}
	}
}

// No statement, of whatever form, returns bytes with a marker of a hidden row. seeds/003:128-138, 181-183.
func TestKernleA_NoMarkerInAnyStatement(t *testing.T) {
	k := startKernle(t)
	c := k.connectAs("bella", "")
	for _, table := range kernleTables() {
		for _, sql := range []string{
			"SELECT * FROM %s", "SELECT content FROM %s ORDER BY content LIMIT 500",
			"SELECT max(content), min(content) FROM %s", "SELECT string_agg(content, ',') FROM %s", "SELECT x FROM %s x", "SELECT content::int FROM %s",
			"SELECT a.content FROM %[1]s a LEFT JOIN %[1]s b ON a.id > b.id",
			"SELECT count(*) FROM %s WHERE access_grants::text LIKE '%%*%%' GROUP BY subject_ids",
			"COPY %s TO STDOUT", "SELECT 1 / (length(content) - 10) FROM %s",
			"WITH m AS (SELECT * FROM %s) SELECT * FROM m WHERE id LIKE 'episode:bad%%'",
			"SELECT s FROM stacks s, %s", "SELECT (subject_ids::text)::jsonb FROM %s", "UPDATE %s SET content = content RETURNING content",
		} {
			harness.Ask(c, fmt.Sprintf(sql, table))
		}
	}
	k.proxy.Tap().RequireNoMarker(t)
	if !strings.Contains(harness.Ask(harness.ConnectSuperuser(t, k.db), "SELECT string_agg(content, ',') FROM episodes").String(), "HIDDENMARK") {
		t.Error("the world has no markers")
	}
}

// A memory about somebody needs the consent of each subject, even if it is granted to everybody. Consent without a
// grant shows nothing.
// seeds/003:6, 37-44, 61, 168-177.
func TestKernleB_EverySubjectMustConsent(t *testing.T) {
	k := startKernle(t)
	owner := harness.ConnectSuperuser(t, k.db)
	for _, table := range kernleTables() {
		bellaConn, seanConn, veterinaryConn, ashleyConn := k.connectAs("bella", ""), k.connectAs("sean", ""), k.connectAs("vet",
			""), k.connectAs("ashley", "")
		hasMemory := func(c *pgconn.PgConn, id string) bool {
			t.Helper()
			return len(k.queryList(c, "SELECT id FROM "+table+" WHERE id = '"+id+"'")) == 1
		}
		if hasMemory(bellaConn, "episode:1005") || hasMemory(ashleyConn, "episode:1005") || !hasMemory(k.connectAs("ash", ""), "episode:1005") {
			t.Errorf("%s: * without consent shows, or not to its owner", table)
		}
		if !hasMemory(bellaConn, "episode:1001") || !hasMemory(seanConn, "episode:1001") || hasMemory(veterinaryConn, "episode:1001") {
			t.Errorf("%s: with the guardian's consent to bella and sean, and none of the grants to a role", table)
		}
		// A subject or its guardian may consent, to one grantee or to all, about everything, a context or one memory.
		for i, record := range []struct {
			grantor, grantee, scope string
			isVisible               bool
		}{
			{"human:kid_123", "si:bella_agent", "*", true}, {"human:mira", "si:bella_agent", "*", true}, {
				"human:mira", "*", "episode:1005", true}, {"human:mira", "si:bella_agent", "episode:100", false},
			{"human:mira", "si:bella_agent", "ctx:bella_health", false}, {
				"human:sean", "si:bella_agent", "*", false}, {"human:mir", "si:bella_agent", "*", false}, {"human:mira", "si:bella%", "*", false},
			{"human:mira", "SI:bella_agent", "*", false}, {"human:mira", "si:bella_agent ", "*", false}, {"human:mira", "", "*", false},
		} {
			id := fmt.Sprintf("consent:test%d", i)
			k.mustExec(owner, fmt.Sprintf(
				"INSERT INTO consent_records (id, stack_id, grantor, grantee, scope) VALUES ('%s', 'ash', '%s', "+
					"'%s', '%s')", id, record.grantor, record.grantee, record.scope))
			if hasMemory(bellaConn, "episode:1005") != record.isVisible {
				t.Errorf("%s: %v: shows is %v", table, record, !record.isVisible)
			}
			k.mustExec(owner, "UPDATE consent_records SET revoked_at = now() WHERE id = '"+id+"'")
			if hasMemory(bellaConn, "episode:1005") {
				t.Errorf("%s: %v: shows after it was revoked", table, record)
			}
			k.mustExec(owner, "DELETE FROM consent_records WHERE id = '"+id+"'")
		}
		// A consent without a grant shows nothing, and neither does the column consent_grants.
		k.mustExec(owner, "INSERT INTO consent_records (id, stack_id, grantor, grantee, scope) VALUES ('consent:alone', 'ash', 'human:mira', 'si:rex', '*')")
		rexConn := k.connectAs("rex", "")
		var hiddenIDs []string
		for _, m := range k.memories(table) {
			if m.stack == "ash" && !slices.Contains(m.grants, "*") && !slices.Contains(m.grants, "si:rex") {
				hiddenIDs = append(hiddenIDs, "'"+m.id+"'")
			}
		}
		if len(hiddenIDs) < 10 {
			t.Fatalf("%s: only %d memories to ask for", table, len(hiddenIDs))
		}
		if shownIDs := k.queryList(rexConn, "SELECT id FROM "+table+" WHERE id IN ("+strings.Join(hiddenIDs, ", ")+")"); len(shownIDs) > 0 {
			t.Fatalf("%s: %v show by consent alone", table, shownIDs)
		}
		k.mustExec(owner, "DELETE FROM consent_records WHERE id = 'consent:alone'")
	}
	k.proxy.Tap().RequireNoMarker(t)
}

// A context shows the memories that are granted to it, to the participants who have entered it, in its own stack.
// seeds/003:21-35, 46-56, 158-166.
func TestKernleC_ContextsAreEnteredByTheirParticipants(t *testing.T) {
	k := startKernle(t)
	for _, table := range kernleTables() {
		plainIDs := k.checkVisible(k.connectAs("bella", ""), table, entity{user: "si:bella_agent"})
		healthIDs := k.checkVisible(k.connectAs("bella", "ctx:bella_health"), table, entity{user: "si:bella_agent", context: "ctx:bella_health"})
		parkIDs := k.checkVisible(k.connectAs("bella", "ctx:dog_park"), table, entity{user: "si:bella_agent", context: "ctx:dog_park"})
		if len(withoutElements(healthIDs, plainIDs)) < 3 || len(withoutElements(parkIDs, plainIDs)) < 3 ||
			len(withoutElements(healthIDs, parkIDs)) < 3 {
			t.Errorf("%s: %d, %d and %d memories: contexts show little", table, len(plainIDs), len(healthIDs), len(parkIDs))
		}
		// Only participants can enter a context. A malformed list of participants, a missing context or a similar name is
		// refused, and nothing is entered.
		for _, e := range []struct{ name, user, in string }{
			{"ashley", "si:ashley", "ctx:bella_health"}, {"rex", "si:rex", "ctx:bella_health"}, {
				"sean", "human:sean", "ctx:broken"}, {"bella", "si:bella_agent", "ctx:none"}, {"bella", "si:bella_agent", "ctx:bella%"},
			{"bella", "si:bella_agent", "*"}, {"specialist", "si:reading_specialist", "ctx:student_123_academic"},
		} {
			c := k.connectAs(e.name, "")
			k.checkRefused(c, "SET pgconsent.context = '"+e.in+"'", "42501")
			k.checkVisible(c, table, entity{user: e.user})
		}
		// The context of the same name in mallory's own stack is another context.
		k.checkVisible(k.connectAs("mallory", "ctx:bella_health"), table, entity{user: "si:mallory", context: "ctx:bella_health"})
		// After leaving a context, or after removal from its participants, an agent no longer sees what the context showed.
		c := k.connectAs("bella", "ctx:bella_health")
		k.mustExec(c, "RESET pgconsent.context")
		k.checkVisible(c, table, entity{user: "si:bella_agent"})
		k.mustExec(c, "SET pgconsent.context = 'ctx:bella_health'")
		super := harness.ConnectSuperuser(t, k.db)
		k.mustExec(super, `UPDATE privacy_contexts SET participants = '["human:sean"]' WHERE id = 'context:1'`)
		if got := k.queryList(c, "SELECT id FROM "+table); !slices.Equal(got, plainIDs) {
			t.Errorf("%s: no participant any more, and sees %v", table, withoutElements(got, plainIDs))
		}
		k.mustExec(super, `UPDATE privacy_contexts SET participants = '["human:sean", "si:bella_agent"]' WHERE id = 'context:1'`)
		k.checkVisible(k.connectAs("tutor_b", "ctx:student_123_academic"), table,
			entity{user: "si:tutor_b", roles: []string{"role:tutor"}, context: "ctx:student_123_academic"})
	}
	k.proxy.Tap().RequireNoMarker(t)
}

// New memories inherit their grants, and cannot have wider ones. seeds/003:10-15, 46-56, 62, 63-65, 158-166, 199-207.
func TestKernleD_NewMemoriesInheritAndAreNotWider(t *testing.T) {
	k := startKernle(t, `INSERT INTO consent_records (id, stack_id, grantor, grantee, scope) VALUES
		('consent:d1', 'ash', 'human:sean', 'si:new_vet', '*'), ('consent:d2', 'ash', 'human:kid_123', 'si:new_vet', '*')`)
	super := harness.ConnectSuperuser(t, k.db)
	for _, table := range kernleTables() {
		list := func(ids ...string) string {
			if table == "episodes_array" {
				return "'{" + strings.Join(ids, ",") + "}'"
			}
			quoted := make([]string, len(ids))
			for i, id := range ids {
				quoted[i] = `"` + id + `"`
			}
			return "'[" + strings.Join(quoted, ",") + "]'"
		}
		n := 0
		insert := func(c *pgconn.PgConn, code string, values map[string]string) (grants []string, source string) {
			t.Helper()
			n++
			content := fmt.Sprintf("new %s %d", table, n)
			columns, expressions := []string{"stack_id", "content"}, []string{"'ash'", "'" + content + "'"}
			for _, name := range slices.Sorted(maps.Keys(values)) {
				columns, expressions = append(columns, name), append(expressions, values[name])
			}
			sql := "INSERT INTO " + table + " (" + strings.Join(columns, ", ") + ") VALUES (" + strings.Join(expressions, ", ") + ")"
			a := harness.Ask(c, sql)
			if a.Code != code {
				t.Errorf("%s: SQLSTATE %q, want %q\n%s", sql, a.Code, code, a)
			}
			for _, m := range k.memories(table) {
				if strings.HasSuffix(m.id, "") &&
					harness.Ask(super, "SELECT 1 FROM "+table+" WHERE id = '"+m.id+"' AND content = '"+content+"'").Results[0].Tag == "SELECT 1" {
					return m.grants, m.source
				}
			}
			return nil, ""
		}
		wantGrants := func(grants []string, source, wantSource string, want ...string) {
			t.Helper()
			if !slices.Equal(grants, want) || source != wantSource {
				t.Errorf("%s: granted to %v by %q, want %v by %q", table, grants, source, want, wantSource)
			}
		}
		ashConn, healthConn, parkConn := k.connectAs("ash", ""), k.connectAs("ash", "ctx:bella_health"), k.connectAs("ash", "ctx:dog_park")
		seanConn, bellaConn := k.connectAs("sean", ""), k.connectAs("bella", "ctx:bella_health")

		grants, source := insert(healthConn, "", nil) // seeds/003:54-55: default_access_grants
		wantGrants(grants, source, "", "human:sean", "si:bella_agent", "ctx:bella_health")
		grants, source = insert(parkConn, "", nil) // without default grants: the participants and the context
		wantGrants(grants, source, "", "si:bella_agent", "si:rex", "ctx:dog_park")
		grants, source = insert(healthConn, "",
			map[string]string{"access_grants": list("human:sean")}) // a narrower list that is given explicitly is kept
		wantGrants(grants, source, "", "human:sean")
		grants, source = insert(healthConn, "", map[string]string{"access_grants": list()})
		wantGrants(grants, source, "")
		// A wider list without consent is refused.
		insert(healthConn, "42501", map[string]string{"access_grants": list("human:sean", "si:mallory"), "subject_ids": list("dog:bella")})
		grants, source = insert(ashConn, "", nil) // no source is recorded
		wantGrants(grants, source, "")
		grants, source = insert(ashConn, "", map[string]string{"source_entity": "'human:sean'"}) // seeds/003:64: a human
		wantGrants(grants, source, "human:sean", "human:sean")
		grants, source = insert(ashConn, "", map[string]string{"source_entity": "'si:rex'"}) // seeds/003:65: another SI
		wantGrants(grants, source, "si:rex")
		insert(ashConn, "42501", map[string]string{"source_entity": "'si:rex'", "access_grants": list("si:bella_agent")})
		insert(ashConn, "42501", map[string]string{"source_entity": "'human:sean'", "access_grants": list("human:sean", "si:bella_agent_3")})
		// All subjects have consented.
		grants, source = insert(ashConn, "", map[string]string{
			"source_entity": "'human:sean'", "access_grants": list("si:new_vet"), "subject_ids": list("dog:bella", "human:kid_123")})
		wantGrants(grants, source, "human:sean", "si:new_vet")
		insert(ashConn, "42501", map[string]string{"access_grants": list("si:new_vet"),
			"subject_ids": list("dog:bella", "human:mira")}) // one subject has not consented
		// The memory is about nobody, and the SI has seen it itself.
		grants, source = insert(ashConn, "", map[string]string{"access_grants": list("*")})
		wantGrants(grants, source, "", "*")
		// All four fields have their defaults.
		k.mustExec(ashConn, "INSERT INTO "+table+" (stack_id, content) VALUES ('ash', 'as the defaults say')")
		emptyList := strings.Trim(kernleList(table), "'")
		if got := harness.Ask(super, "SELECT source_entity, subject_ids, access_grants, consent_grants FROM "+
			table+" WHERE content = 'as the defaults say'").Results[0].Rows; !slices.Equal(got, []string{`\N` + strings.Repeat("\t"+emptyList, 3)}) {
			t.Errorf("%s: the defaults are %q", table, got)
		}

		// Any other writer is recorded as the source, whatever the statement says.
		grants, source = insert(seanConn, "", map[string]string{"source_entity": "'si:ash'"})
		wantGrants(grants, source, "human:sean", "human:sean")
		grants, source = insert(bellaConn, "", nil)
		wantGrants(grants, source, "si:bella_agent", "human:sean", "si:bella_agent", "ctx:bella_health")
		insert(seanConn, "42501", map[string]string{"access_grants": list("human:sean", "*")})
		insert(k.connectAs("ashley", ""), "42501", nil)                  // an SI without any relation to the stack
		insert(k.connectAs("mallory", "ctx:bella_health"), "42501", nil) // an SI without any relation to the context
	}
	k.proxy.Tap().RequireNoMarker(t)
}

// Updates narrow the grants, or widen them with consent. Owner, source and subjects cannot be changed.
// seeds/003:62.
func TestKernleE_UpdatesDoNotWiden(t *testing.T) {
	k := startKernle(t,
		`INSERT INTO consent_records (id, stack_id, grantor, grantee, scope) VALUES ('consent:e1', 'ash', 'human:sean', 'si:new_vet', '*'), `+
			`('consent:e2', 'ash', 'vet:dr_smith', 'si:new_vet', '*')`)
	super := harness.ConnectSuperuser(t, k.db)
	for _, table := range kernleTables() {
		list := func(ids ...string) string {
			if table == "episodes_array" {
				return "'{" + strings.Join(ids, ",") + "}'"
			}
			if len(ids) == 0 {
				return "'[]'"
			}
			return `'["` + strings.Join(ids, `","`) + `"]'`
		}
		grants := func() string {
			return harness.Ask(super, "SELECT access_grants FROM "+table+" WHERE id = 'episode:1001'").Results[0].Rows[0]
		}
		ashConn, bellaConn, healthConn := k.connectAs("ash", ""), k.connectAs("bella", ""), k.connectAs("bella", "ctx:bella_health")
		before := grants()
		updateGrants := func(grantList string) string {
			return "UPDATE " + table + " SET access_grants = " + grantList + " WHERE id = 'episode:1001'"
		}
		k.checkRefused(ashConn, updateGrants(list("human:sean", "si:bella_agent", "ctx:bella_health", "si:mallory")), "42501")
		k.checkRefused(ashConn, updateGrants(list("*")), "42501")
		k.checkRefused(ashConn, updateGrants(list("human:sea")), "42501")
		if grants() != before {
			t.Errorf("%s: %s became %s", table, before, grants())
		}
		k.mustExec(ashConn, updateGrants(list("human:sean", "si:bella_agent", "ctx:bella_health",
			"si:new_vet"))) // dog:bella's guardian and the source have consented to si:new_vet
		k.mustExec(ashConn,
			updateGrants(list("si:bella_agent", "si:new_vet"))) // one grantee is removed from the list
		k.checkRefused(ashConn, updateGrants(list("si:bella_agent", "human:sean", "si:rex")), "42501")
		for _, column := range []string{"stack_id", "source_entity", "id"} {
			k.checkRefused(ashConn, "UPDATE "+table+" SET "+column+" = 'x' WHERE id = 'episode:1001'", "42501")
		}
		k.checkRefused(ashConn, "UPDATE "+table+" SET subject_ids = "+list()+" WHERE id = 'episode:1001'", "42501")
		// The memories of others cannot be changed, and an update of a memory that is not visible changes no row.
		k.checkRefused(healthConn, "UPDATE "+table+" SET content = 'x' WHERE id = 'episode:1001'", "42501")
		for _, id := range []string{"episode:1003", "episode:1005", "episode:none"} {
			if a := harness.Ask(bellaConn, "UPDATE "+table+" SET content = 'x' WHERE id = '"+id+"'"); a.Code != "" ||
				a.Results[0].Tag != "UPDATE 0" {
				t.Errorf("%s: %s", id, a)
			}
		}
		if got := harness.Ask(super, "SELECT count(*) FROM "+table+" WHERE content = 'x'").Results[0].Rows[0]; got != "0" {
			t.Errorf("%s: %s memories were changed", table, got)
		}
		k.mustExec(ashConn, updateGrants(list()))
	}
	k.proxy.Tap().RequireNoMarker(t)
}

// An owner that logs in as another entity sees only what that entity sees. As itself, it sees all memories of its
// stack.
// seeds/003:189-191, 193-195.
func TestKernleF_NoRootAccess(t *testing.T) {
	k := readKernle(t, harness.Both)
	for _, table := range kernleTables() {
		guestRows := k.checkVisible(k.connectAs("ash_as_guest", ""), table, entity{user: "human:guest"})
		ownRows := k.checkVisible(k.connectAs("ash", ""), table, entity{user: "si:ash"})
		if len(guestRows) == 0 || len(ownRows) < 5*len(guestRows) || slices.Contains(guestRows, "episode:1003") ||
			!slices.Contains(ownRows, "episode:1003") {
			t.Errorf("%s: %d as a guest, %d as itself", table, len(guestRows), len(ownRows))
		}
	}
}

// Ids are compared as a whole. A value that is not a list grants nothing, raises no error on reading and is refused on
// writing.
// seeds/003:37-44, 152-156.
func TestKernleJ_MalformedListsGrantNothing(t *testing.T) {
	k := readKernle(t, harness.Both)
	for table, values := range map[string][]string{
		"episodes": {"NULL", "''", "'{}'", "'null'", "'\"human:sean\"'", "'[\"human:sean\"'", "'[null]'",
			"'[[]]'", "'[1]'", "'human:sean'", "'[\"\\u0000\"]'", "'[{}]'", "'true'"},
		"episodes_array": {"NULL", "'{NULL}'", "'{{a},{b}}'", "'{human:sean,NULL}'"},
		"episodes_jsonb": {"NULL", "'{}'", "'null'", "'\"human:sean\"'", "'[null]'", "'[[]]'", "'[1]'", "'[{}]'"},
	} {
		super := harness.ConnectSuperuser(t, k.db)
		ashConn, seanConn, bellaConn := k.connectAs("ash", ""), k.connectAs("sean", ""), k.connectAs("bella", "")
		countRows := func() string { return harness.Ask(super, "SELECT count(*) FROM "+table).Results[0].Rows[0] }
		before := countRows()
		for _, value := range values {
			for _, column := range []string{"subject_ids", "access_grants", "consent_grants"} {
				for _, c := range []*pgconn.PgConn{ashConn, seanConn} {
					a := harness.Ask(c, "INSERT INTO "+table+" (stack_id, content, "+column+") VALUES ('ash', 'malformed', "+value+")")
					if a.Code != "22023" || !strings.Contains(a.Message, "a list of ids is not one") {
						t.Errorf("%s.%s = %s: %s", table, column, value, a)
					}
				}
			}
			k.checkRefused(ashConn, "UPDATE "+table+" SET access_grants = "+value+" WHERE id = 'episode:1001'", "22023")
		}
		if countRows() != before {
			t.Errorf("%s: rows were written", table)
		}
		if malformedIDs := k.queryList(bellaConn, "SELECT id FROM "+table+" WHERE id LIKE 'episode:bad%'"); len(malformedIDs) > 0 {
			t.Errorf("%s: %v", table, malformedIDs)
		}
		if malformedIDs := k.queryList(ashConn, "SELECT id FROM "+table+" WHERE id LIKE 'episode:bad%'"); len(malformedIDs) < 5 {
			t.Errorf("%s: the owner sees %v", table, malformedIDs)
		}
	}
	k.proxy.Tap().RequireNoMarker(t)
}
