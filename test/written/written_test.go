package written

import (
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/oracle"
)

var update = flag.Bool("update", false, "write testdata as it comes out; the difference is what a review reads")

func TestMain(m *testing.M) { pgtest.Main(m) }

// source is a policy and the schema that it is about.
type source struct {
	name       string
	schema     []string // paths of the schema's files
	policy     string   // path of the policy
	searchPath []string
}

func sources() []source {
	var out []source
	for _, name := range []string{"clinic", "works", "docket", "press", "kin", "scribe", "fleet", "payroll"} {
		i := slices.IndexFunc(oracle.Schemas, func(s oracle.Schema) bool { return s.Name == name })
		out = append(out, sourceInFolder(name, "test/oracle/testdata/"+name, oracle.Schemas[i].SearchPath...))
	}
	for _, name := range []string{"chat", "crm", "health", "saas", "support"} {
		out = append(out, sourceInFolder("cookbook_"+name, "examples/cookbook/"+name))
	}
	for _, name := range []string{"arcive", "beheard", "ciris", "kernle", "memberintel"} {
		out = append(out, sourceInFolder(name, "examples/worlds/"+name)) // without extensions that a server may lack
	}
	registry := sourceInFolder("ciris_registry", "examples/worlds/ciris")
	registry.policy = "examples/worlds/ciris/policy_registry.yaml"
	return append(out, registry, sourceInFolder("air", "examples/air"), sourceInFolder("kinds", "test/written/testdata/kinds"))
}

func sourceInFolder(name, path string, searchPath ...string) source {
	if len(searchPath) == 0 {
		searchPath = []string{"public"}
	}
	return source{name, []string{path + "/schema.sql"}, path + "/policy.yaml", searchPath}
}

// The SQL that policies generate, and the forms of their rules, must be those in the files.
func TestGeneratedSQL(t *testing.T) {
	for _, s := range sources() {
		t.Run(s.name, func(t *testing.T) {
			db := pgtest.Database(t)
			for _, file := range s.schema {
				instance.Exec(t, db, instance.ReadRepoFile(t, file))
			}
			m := instance.Compile(t, instance.Database{Name: s.name, DB: db, Policy: instance.ReadRepoFile(t, s.policy), SearchPath: s.searchPath}, instance.Auto)
			compare(t, s.name, m)
		})
	}
}

// maxPlainSize is the largest size of a file with the statements themselves. For longer ones it has their first lines
// and digests.
const maxPlainSize = 80 << 10

func compare(t *testing.T, name string, m *instance.Migrated) {
	t.Helper()
	texts := append(statements(m, name == "kinds"), ruleForms(m)...)
	got, isPlain := fileText(texts)
	file := instance.RepoPath(t, "test/written/testdata") + "/" + name + ".txt"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) == got {
		return
	}
	t.Errorf("something else is written (with -update it is taken over): -committed +now\n%s",
		cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")))
	for _, text := range texts {
		if !isPlain && !strings.Contains(string(want), digest(text)) {
			t.Logf("now:\n%s", text)
		}
	}
}

// fileText returns the content of a file: the texts themselves, or their digests.
func fileText(texts []string) (text string, isPlain bool) {
	if text = strings.Join(texts, "\n\n") + "\n"; len(text) <= maxPlainSize {
		return text, true
	}
	var b strings.Builder
	for _, t := range texts {
		firstLine, _, _ := strings.Cut(t, "\n")
		fmt.Fprintf(&b, "%s %.80s\n", digest(t), firstLine)
	}
	return b.String(), false
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}

// statements returns those of the plan, up and down, and those that differ if row security was on before. It leaves out
// the catalog shadows, which depend on the server's version, and the queries of copied views, which the server prints.
func statements(m *instance.Migrated, withOtherRoles bool) []string {
	var out []string
	seenSQL := map[string]bool{}
	add := func(statements []rls.Statement) {
		for _, s := range statements {
			if seenSQL[s.SQL] || strings.Contains(s.SQL, catalog.ShadowSchema+".") {
				continue
			}
			seenSQL[s.SQL] = true
			sql := s.SQL
			if head, _, ok := strings.Cut(sql, "\n"); ok && strings.Contains(head, "security_invoker") {
				sql = head
			}
			out = append(out, sql)
		}
	}
	add(m.Plan.Up())
	existing := migrations.Found{
		Database: "of Theirs", RowSecurity: map[string]bool{}, PublicUsage: map[string]bool{"public": true},
		PublicOnDatabase: []string{"CREATE", "TEMPORARY"}, PublicCreate: []string{"public", "of Theirs"}, KeepRoles: []string{"somebody", "Somebody Else"},
	}
	for _, r := range rls.PredicateTables(m.Policy) {
		existing.RowSecurity[r.Name.String()] = true
	}
	add(m.Plan.UpFrom(existing))
	add(rls.Generate(m.Policy, m.Snapshot, rls.Options{Mode: rls.SealOnly, SignedViews: true}).Up())
	if withOtherRoles { // other role names, which need quotes
		add(rls.Generate(m.Policy, m.Snapshot,
			rls.Options{AgentRole: "Its Agent", ControlRole: "Its Control", ReaderRole: "Its Reader", RowsRole: "Its Rows"}).Up())
	}
	down := m.Plan.Down()
	upCount := len(out)
	add(append(down, m.Plan.DownTo(existing)...))
	return append(out[:upCount], strings.Join(out[upCount:], "\n"))
}

// ruleForms returns the other forms into which the rules of tables are compiled, and what package predicate says about
// them.
func ruleForms(m *instance.Migrated) []string {
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, t := range m.Policy.Tables() {
		name := t.Relation.Name.String()
		nodes := append([]predicate.Node{t.Rows}, t.ColumnConditions()...)
		if t.Aggregate != nil {
			nodes = append(nodes, t.Aggregate.Rows)
		}
		nodes = append(nodes, t.Write.Conditions()...)
		for i, n := range nodes {
			sql, signed := predicate.InjectedCondition(n, "r1")
			add("inject %s %d, signed %v: %s", name, i, signed, sql)
			add("direct %s %d: %s", name, i, predicate.DirectCondition(n, "t",
				map[string]string{"user": "it's one", "tenant": "t1", "me": "1"}))
			numbered := predicate.Parameters{FirstNumber: 3}
			add("numbered %s %d: %s %q", name, i, numbered.Condition(n, "t"), numbered.AttributeNames)
			if flat, ok := predicate.SignedViewCondition(n, t.Relation, "t"); ok {
				add("flat %s %d, signed view %v: %s", name, i, predicate.HasSignedView(n, t.Relation), flat)
			}
			add("check %s %d: %s", name, i, predicate.CheckSQL(n, t.Relation))
			columns, known := predicate.RowColumns(n)
			add("about %s %d: attributes %q, columns %q (%v), timed %v, grows %q, empty %q, sets %q, reads %q",
				name, i, predicate.AttributesOf(n), columns, known,
				predicate.TimeCanHide(n), names(predicate.TablesWhereInsertHides(n)), names(predicate.TablesThatShowWhenEmpty(n)),
				hashedSetTexts(n, t.Relation), lookupTableNames(n))
			for _, part := range predicate.Conjuncts(n) {
				switch part := part.(type) {
				case predicate.RecordedConsent:
					add("subjects %s %d: %s", name, i, predicate.SubjectsQuery(part, "t", map[string]string{"user": "u"}))
				case predicate.RegistryConsent:
					add("registry %s %d: %s", name, i, predicate.RegistryQuery(part, "t", map[string]string{"user": "u"}))
				}
			}
		}
	}
	for _, t := range m.Policy.Tables() {
		if t.Aggregate != nil {
			dimensions, counts, known := rls.CellExpressions(t, "t")
			add("group of %s: by %q, counted where %q (%v), as %s", t.Relation.Name, dimensions, counts, known,
				rls.CountedSubject(t, "t"))
		}
	}
	for _, f := range m.Plan.Fills() {
		add("fill %s of %s: %s; %s; %s", f.Name, f.Relation, f.NextRows(100), f.CountLeft, f.CountWrong)
	}
	unnoticed := slices.SortedFunc(maps.Keys(m.Plan.UntrackedRelations()), func(a, b catalog.Name) int { return strings.Compare(a.String(), b.String()) })
	add("changes: what is not watched %q, unnoticed %q, timed %v, signed views %v, about %q", m.Plan.UntrackedAttributeTable(), unnoticed,
		m.Plan.TimeCanHide(), m.Plan.HasSignedViews(), names(rls.PredicateTables(m.Policy)))
	for _, d := range m.Policy.Derivations() {
		from, where := d.Origin.DerivedRowsSQL(d.Table, "made", "source")
		add("products of %s: %q where %s", d.Table.Name, from, where)
		add("made %s: %s", d.Table.Name, d.Origin.DerivedFromCondition("made", "source"))
	}
	return out
}

func names(relations []*catalog.Relation) []string {
	var out []string
	for _, r := range relations {
		out = append(out, r.Name.String())
	}
	return out
}

func hashedSetTexts(n predicate.Node, relation *catalog.Relation) []string {
	var out []string
	for _, s := range predicate.HashedSets(n, relation) {
		out = append(out, fmt.Sprint(s.Relation.Name, strings.Join(s.Columns, ","), names(s.SourceTables)))
	}
	return out
}

func lookupTableNames(n predicate.Node) []string {
	var out []string
	for _, h := range predicate.LookupTables(n) {
		out = append(out, fmt.Sprint(h.Relation.Name, h.Columns))
	}
	return out
}
