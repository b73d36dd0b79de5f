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

// secondOpinion asks PostgreSQL what a statement touches after view expansion: debug_print_rewritten over a Parse
// message, which neither plans nor executes.
type secondOpinion struct {
	conn  *pgconn.PgConn
	names map[string]string // "rel 1259" → pg_catalog.pg_class, "func 2803" → pg_catalog.count

	mu   sync.Mutex
	tree strings.Builder
}

// touchedRelations are the objects of a tree, by name.
type touchedRelations map[string]bool

var (
	relationID    = regexp.MustCompile(`:relid (\d+)`)
	aggregateCall = regexp.MustCompile(`:(?:aggfnoid|winfnoid) (\d+)`)
	functionCall  = regexp.MustCompile(`:funcid (\d+) :funcresulttype \d+ :funcretset \S+ :funcvariadic \S+ :funcformat 0 `)
)

func newSecondOpinion(t testing.TB, db *pgtest.DB) *secondOpinion {
	t.Helper()
	s := &secondOpinion{names: map[string]string{}}
	cfg, err := pgconn.ParseConfig(db.DSN("postgres", ""))
	if err != nil {
		t.Fatal(err)
	}
	cfg.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if n.Message == "rewritten parse tree:" {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.tree.WriteString(n.Detail)
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
			s.names[key] = name
		}
	}
	harness.Ask(s.conn, `SET debug_print_rewritten = on; SET client_min_messages = log`)
	return s
}

func (s *secondOpinion) of(t testing.TB, sql string) (touchedRelations, error) {
	t.Helper()
	s.mu.Lock()
	s.tree.Reset()
	s.mu.Unlock()
	if _, err := s.conn.Prepare(context.Background(), "", sql, nil); err != nil {
		return nil, err
	}
	s.mu.Lock()
	// The text wraps at 78 columns wherever a blank stood.
	tree := strings.Join(strings.Fields(s.tree.String()), " ")
	s.mu.Unlock()
	if tree == "" {
		return nil, fmt.Errorf("no tree was printed")
	}
	set := touchedRelations{}
	for _, m := range relationID.FindAllStringSubmatch(tree, -1) {
		if m[1] != "0" { // PostgreSQL 16 writes 0 for an item that is no relation
			set["rel "+s.names["rel "+m[1]]] = true
		}
	}
	for _, expr := range []*regexp.Regexp{aggregateCall, functionCall} {
		for _, m := range expr.FindAllStringSubmatch(tree, -1) {
			set["func "+s.names["func "+m[1]]] = true
		}
	}
	return set, nil
}

// The rewriter's own list of what a statement touches is PostgreSQL's.
func TestTouchedObjectsAreTheServers(t *testing.T) {
	tier.All(t)
	db := pgtest.Template(t, "arcive", loadArcive)
	m := harness.Migrate(t, arciveDatabase(t, db, policyFile(t, ""), ""), harness.Both)
	opinion := newSecondOpinion(t, db)
	for _, mode := range []rewrite.Mode{rewrite.InjectedMode, rewrite.RowSecurityMode} {
		rewriter := rewrite.New(m.Snapshot, m.Policy, mode)
		compared := 0
		for _, q := range corpusQueries(t) {
			res, refusal := rewriter.Rewrite(q.sql, true)
			if refusal != nil || res.Tag != "SELECT" {
				continue
			}
			server, err := opinion.of(t, res.Text)
			if err != nil {
				t.Errorf("%s: %v\n%s", q.name, err, res.Text)
				continue
			}
			compared++
			compareTouched(t, q, res, server, opinion, m.Policy)
		}
		if compared < 100 {
			t.Errorf("mode %v: only %d statements were compared", mode, compared)
		}
	}
}

func compareTouched(t *testing.T, q query, res *rewrite.Result, server touchedRelations, opinion *secondOpinion, pol *policy.Policy) {
	t.Helper()
	mine := touchedRelations{}
	for _, a := range res.Accesses {
		if a.Source == "function" {
			continue
		}
		name := a.Relation
		shadow, isShadow := catalog.ShadowRelation(name)
		if isShadow {
			name = shadow
		}
		mine["rel "+name.String()] = true
		if isShadow { // reads inside the view are not compared
			viewTouched, err := opinion.of(t, fmt.Sprintf(`SELECT * FROM %q.%q`, name.Schema, name.Name))
			if err != nil {
				t.Fatal(err)
			}
			for object := range viewTouched {
				if object != "rel "+name.String() {
					delete(server, object)
				}
			}
		}
	}
	for _, f := range res.Functions {
		mine["func "+f] = true
		if name, ok := strings.CutPrefix(f, "pg_catalog."); ok {
			if standIn, ok := catalog.ShadowFunction(name); ok {
				mine["func "+standIn.String()] = true
			}
		}
	}
	for object := range server {
		_, name, _ := strings.Cut(object, " ")
		ours := strings.HasPrefix(name, "pgconsent_signed.") || strings.HasPrefix(name, "pgconsent.") || madeByServer[object]
		if !mine[object] && !ours && !isLookupTable(pol, name) {
			t.Errorf("%s: the server touches %s and the rewriter does not know\n%s", q.name, object, res.Text)
		}
	}
	for object := range mine {
		if strings.HasPrefix(object, "rel ") && !server[object] {
			t.Errorf("%s: the rewriter names %s and the server does not touch it\n%s", q.name, object, res.Text)
		}
	}
}

// madeByServer are calls that PostgreSQL itself makes of SEARCH and CYCLE clauses (rewriteSearchCycle.c).
var madeByServer = touchedRelations{"func pg_catalog.int8inc": true, "func pg_catalog.array_cat": true}

// isLookupTable tells whether a table may be read behind a signed view, by the predicates.
func isLookupTable(pol *policy.Policy, name string) bool {
	for _, table := range pol.Tables() {
		if table.Relation.Name.String() == name {
			return true
		}
	}
	return false
}
