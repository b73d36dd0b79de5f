package console

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/enforce"
	"github.com/pgconsent/pgconsent/internal/memory/privacy"
	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/services/operations"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// renderPage returns a page as the console sends it to the caller.
func renderPage(t *testing.T, s operations.AdminService, caller identity.Caller, path string) string {
	t.Helper()
	s.Record = func(context.Context, audit.Call) error { return nil }
	o, err := New(Config{Service: operations.NewAdminService(s), Verifier: verifier{"secret-token": caller}})
	if err != nil {
		t.Fatal(err)
	}
	_, value, err := o.sessions.begin("secret-token")
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, Base+path, nil)
	r.AddCookie(o.sessionCookie(value))
	w := httptest.NewRecorder()
	o.ServeHTTP(w, r)
	return w.Body.String()
}

// The page for operators says that all is well only if the agents of every database are served and the audit can be
// written.
func TestHealthForOperators(t *testing.T) {
	servedDatabase, refusedDatabase := enforce.DatabaseStatus{Database: "app", Served: true}, enforce.DatabaseStatus{Database: "other",
		Refusal: "no policy"}
	for name, c := range map[string]struct {
		databases []enforce.DatabaseStatus
		audit     string
		isHealthy bool
	}{
		"all is well":                {[]enforce.DatabaseStatus{servedDatabase}, "", true},
		"a database is not served":   {[]enforce.DatabaseStatus{servedDatabase, refusedDatabase}, "", false},
		"records cannot be written":  {[]enforce.DatabaseStatus{servedDatabase}, "no space left on device", false},
		"neither of the two is well": {[]enforce.DatabaseStatus{refusedDatabase}, "no space left on device", false},
	} {
		v := operations.Overview{Audit: operations.AuditState{Mode: "strict", Problem: c.audit}}
		for _, d := range c.databases {
			v.Databases = append(v.Databases, operations.DatabaseState{DatabaseStatus: d})
		}
		s := operations.AdminService{Service: &operations.Service{}, Overview: func(context.Context) operations.Overview { return v }}
		page := renderPage(t, s, identity.Caller{Name: "op", Role: identity.Operator}, "operations")
		for text, want := range map[string]bool{"<strong>Healthy</strong>": c.isHealthy, "<strong>Problem</strong>": !c.isHealthy,
			c.audit: true, "records are written": c.audit == ""} {
			if strings.Contains(page, text) != want {
				t.Errorf("%s: the page says %q: %t", name, text, !want)
			}
		}
	}
}

// If the database has memories, the navigation has a link to them, and to beliefs only if the database has those, too.
func TestMemoriesAndBeliefsAreLinked(t *testing.T) {
	table := func(name, columns string) *catalog.Relation {
		relation := &catalog.Relation{Name: catalog.Name{Schema: "public", Name: name}, Kind: catalog.Table, PrimaryKey: []string{"id"}}
		for column := range strings.FieldsSeq(columns) {
			kind := "text"
			if column == "subjects" || column == "grants" {
				kind = "text[]"
			}
			relation.Columns = append(relation.Columns, catalog.Column{Name: column, Type: kind})
		}
		return relation
	}
	snap := catalog.NewSnapshot(catalog.Spec{Database: "app", ServerVersion: 170000, SearchPath: []string{"public"},
		Relations: []*catalog.Relation{table("notes", "id store content subjects grants"), table("drawn", "id store made source")}})
	const head = "version: 1\nattributes: { user: { type: text, source: credential } }\ntables:\n  notes: { rows: open }\n" +
		"  drawn: { rows: open, write: { commands: [insert], columns: [id, store, made, source] } }\n"
	const memories = "privacy:\n  entity: user\n  memories: [ { tables: { note: notes }, store: store, content: content, " +
		"subjects: subjects, grants: grants } ]\n"
	const beliefs = "  generalize: { into: note, link: { table: drawn, store: store, made: made, source: source } }\n"
	for _, c := range []struct {
		policy            string
		memories, beliefs bool
	}{{head, false, false}, {head + memories, true, false}, {head + memories + beliefs, true, true}} {
		doc, err := policy.Parse("policy.yaml", []byte(c.policy))
		if err != nil {
			t.Fatal(err)
		}
		compiledPolicy, err := policy.Compile(doc, snap)
		if err != nil {
			t.Fatal(err)
		}
		db := &operations.Database{Name: "app", Privacy: &privacy.Service{}, Policy: func() *policy.Policy { return compiledPolicy }}
		s := operations.AdminService{Service: &operations.Service{Databases: map[string]*operations.Database{"app": db}}}
		// The navigation is the same on every page, also on a page that this person may not see.
		page := renderPage(t, s, identity.Caller{Name: "ada", Role: identity.Subject, Subject: "ada", Database: "app"}, "people")
		for path, want := range map[string]bool{"me/memories": c.memories, "me/general": c.beliefs} {
			if strings.Contains(page, `href="`+Base+path+`"`) != want {
				t.Errorf("a link to %s: %t, with the policy\n%s", path, !want, c.policy)
			}
		}
	}
}
