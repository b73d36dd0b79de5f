package e2e

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// serverAnalysis asks PostgreSQL which objects a statement uses after views are expanded. It sends a Parse message with
// debug_print_rewritten, which neither plans nor executes the statement.
type serverAnalysis struct {
	conn        *pgconn.PgConn
	objectNames map[string]string // "rel 1259" → pg_catalog.pg_class, "func 2803" → pg_catalog.count

	mu            sync.Mutex
	rewrittenTree strings.Builder
}

// accessedObjects is the set of objects in a query tree, by name.
type accessedObjects map[string]bool

var (
	relationID    = regexp.MustCompile(`:relid (\d+)`)
	aggregateCall = regexp.MustCompile(`:(?:aggfnoid|winfnoid) (\d+)`)
	functionCall  = regexp.MustCompile(`:funcid (\d+) :funcresulttype \d+ :funcretset \S+ :funcvariadic \S+ :funcformat 0 `)
)

func newServerAnalysis(t testing.TB, db *pgtest.DB) *serverAnalysis {
	t.Helper()
	s := &serverAnalysis{objectNames: map[string]string{}}
	cfg, err := pgconn.ParseConfig(db.DSN("postgres", ""))
	if err != nil {
		t.Fatal(err)
	}
	cfg.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if n.Message == "rewritten parse tree:" {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.rewrittenTree.WriteString(n.Detail)
		}
	}
	if s.conn, err = pgconn.ConnectConfig(context.Background(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.conn.Close(context.Background()) })
	for _, list := range []string{
		`SELECT 'rel ' || c.oid, n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace`,
		`SELECT 'func ' || p.oid, n.nspname || '.' || p.proname FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace`,
	} {
		for _, row := range harness.Ask(s.conn, list).Results[0].Rows {
			key, name, _ := strings.Cut(row, "\t")
			s.objectNames[key] = name
		}
	}
	harness.Ask(s.conn, `SET debug_print_rewritten = on; SET client_min_messages = log`)
	return s
}

func (s *serverAnalysis) accessedBy(t testing.TB, sql string) (accessedObjects, error) {
	t.Helper()
	s.mu.Lock()
	s.rewrittenTree.Reset()
	s.mu.Unlock()
	if _, err := s.conn.Prepare(context.Background(), "", sql, nil); err != nil {
		return nil, err
	}
	s.mu.Lock()
	// The server wraps the printed tree at blanks, at 78 columns.
	wholeTree := strings.Join(strings.Fields(s.rewrittenTree.String()), " ")
	s.mu.Unlock()
	if wholeTree == "" {
		return nil, fmt.Errorf("no tree was printed")
	}
	objects := accessedObjects{}
	for _, m := range relationID.FindAllStringSubmatch(wholeTree, -1) {
		if m[1] != "0" { // PostgreSQL 16 prints 0 for an item that is no relation
			objects["rel "+s.objectNames["rel "+m[1]]] = true
		}
	}
	for _, pattern := range []*regexp.Regexp{aggregateCall, functionCall} {
		for _, m := range pattern.FindAllStringSubmatch(wholeTree, -1) {
			objects["func "+s.objectNames["func "+m[1]]] = true
		}
	}
	return objects, nil
}

// The rewriter lists the same objects for a statement as PostgreSQL does.
func TestAccessedObjectsAreTheServers(t *testing.T) {
	tier.All(t)
	db := pgtest.Template(t, "arcive", loadArcive)
	m := harness.Migrate(t, arciveDatabase(t, db, policyFile(t, ""), ""), harness.Both)
	analysis := newServerAnalysis(t, db)
	for _, mode := range []rewrite.Mode{rewrite.InjectedMode, rewrite.RowSecurityMode} {
		rewriter := rewrite.New(m.Snapshot, m.Policy, mode)
		comparedCount := 0
		for _, q := range corpusQueries(t) {
			res, refusal := rewriter.Rewrite(q.sql, true)
			if refusal != nil || res.Tag != "SELECT" {
				continue
			}
			serverObjects, err := analysis.accessedBy(t, res.Text)
			if err != nil {
				t.Errorf("%s: %v\n%s", q.name, err, res.Text)
				continue
			}
			comparedCount++
			compareAccesses(t, q, res, serverObjects, analysis, m.Policy)
		}
		if comparedCount < 100 {
			t.Errorf("mode %v: only %d statements were compared", mode, comparedCount)
		}
	}
}

func compareAccesses(t *testing.T, q query, res *rewrite.Result, serverObjects accessedObjects, analysis *serverAnalysis,
	pol *policy.Policy) {
	t.Helper()
	rewriterObjects := accessedObjects{}
	for _, a := range res.Accesses {
		if a.Source == "function" {
			continue
		}
		name := a.Relation
		shadow, isShadow := catalog.ShadowRelation(name)
		if isShadow {
			name = shadow
		}
		rewriterObjects["rel "+name.String()] = true
		if isShadow { // objects inside the view are not compared
			viewObjects, err := analysis.accessedBy(t, fmt.Sprintf(`SELECT * FROM %q.%q`, name.Schema, name.Name))
			if err != nil {
				t.Fatal(err)
			}
			for object := range viewObjects {
				if object != "rel "+name.String() {
					delete(serverObjects, object)
				}
			}
		}
	}
	for _, f := range res.Functions {
		rewriterObjects["func "+f] = true
		if name, ok := strings.CutPrefix(f, "pg_catalog."); ok {
			if replacement, ok := catalog.ShadowFunction(name); ok {
				rewriterObjects["func "+replacement.String()] = true
			}
		}
	}
	for object := range serverObjects {
		_, name, _ := strings.Cut(object, " ")
		isOurs := strings.HasPrefix(name, "pgconsent_signed.") || strings.HasPrefix(name, "pgconsent.") || serverMadeCalls[object]
		if !rewriterObjects[object] && !isOurs && !isLookupTable(pol, name) {
			t.Errorf("%s: the server touches %s and the rewriter does not know\n%s", q.name, object, res.Text)
		}
	}
	for object := range rewriterObjects {
		if strings.HasPrefix(object, "rel ") && !serverObjects[object] {
			t.Errorf("%s: the rewriter names %s and the server does not touch it\n%s", q.name, object, res.Text)
		}
	}
}

// serverMadeCalls are function calls that PostgreSQL itself makes for SEARCH and CYCLE clauses (rewriteSearchCycle.c).
var serverMadeCalls = accessedObjects{"func pg_catalog.int8inc": true, "func pg_catalog.array_cat": true}

// isLookupTable tells whether a table is in the policy, so that predicates behind a signed view may read it.
func isLookupTable(pol *policy.Policy, name string) bool {
	for _, table := range pol.Tables() {
		if table.Relation.Name.String() == name {
			return true
		}
	}
	return false
}
