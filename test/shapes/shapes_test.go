package shapes

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/oracle"
	"github.com/pgconsent/pgconsent/test/tier"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func worksSchema(t testing.TB) oracle.Schema {
	t.Helper()
	for _, s := range oracle.Schemas {
		if s.Name == "works" {
			return s
		}
	}
	t.Fatal("no schema works")
	return oracle.Schema{}
}

// allStatements returns all statements: thousands.
func allStatements() []string { return append(operatorStatements(2), literalSpellings()...) }

// The rewriter must replace names only, and leave every other byte as it is, in every mode. Each statement is tried in
// one mode, and in the nightly run in all.
func TestOnlyNamesAreReplaced(t *testing.T) {
	tier.All(t)
	s := worksSchema(t)
	m := instance.Compile(t, s.BehindProxy(t), instance.SignedViews)
	all := allStatements()
	if len(all) < 5000 {
		t.Errorf("%d statements", len(all))
	}
	modes := []rewrite.Mode{rewrite.InjectedMode, rewrite.RowSecurityMode, rewrite.AlwaysInjectedMode,
		rewrite.AlwaysSignedMode}
	for n, mode := range modes {
		r := rewrite.New(m.Snapshot, m.Policy, mode)
		answeredCount, triedCount := 0, 0
		for i, sql := range all {
			if !tier.IsPicked(i+n, len(modes)) {
				continue
			}
			triedCount++
			result, refused := r.Rewrite(sql, false)
			if refused != nil {
				continue
			}
			answeredCount++
			checkOnlyNamesReplaced(t, sql, result)
			if t.Failed() {
				return
			}
		}
		t.Logf("mode %d: %d of %d statements are answered", mode, answeredCount, triedCount)
		if answeredCount*10 < triedCount*7 {
			t.Errorf("mode %d: only %d of %d statements are answered", mode, answeredCount, triedCount)
		}
	}
}

// checkOnlyNamesReplaced compares the parts of the statement that were copied. It fails the test unless what was not
// copied is a whole name.
func checkOnlyNamesReplaced(t *testing.T, sql string, result *rewrite.Result) {
	t.Helper()
	before, after := []rune(sql), []rune(result.Text)
	copied := make([]bool, len(before))
	for i := 0; i < len(after); {
		j := i
		for j+1 < len(after) && result.Position(j+2) == result.Position(j+1)+1 {
			j++
		}
		if from := result.Position(i+1) - 1; j > i {
			for k := i; k <= j; k++ {
				// The last character of an insertion is in front of copied text, and its first character behind copied
				// text.
				inserted := k == i || k == j && result.Position(k+2) == result.Position(k+1)
				if at := from + k - i; at < len(before) && before[at] == after[k] {
					copied[at] = true
				} else if !inserted {
					t.Errorf("%s\nis altered at %d:\n%s", sql, at, result.Text)
					return
				}
			}
		} else if from < len(before) && before[from] == after[i] {
			copied[from] = true
		}
		i = j + 1
	}
	source, refused := sqltext.Scan(sql)
	if refused != nil {
		t.Fatal(refused)
	}
	inName := make([]bool, len(sql))
	for _, token := range source.Tokens {
		if token.IsName() || token.Kind == sqltext.Dot || token.Kind == sqltext.Table {
			for b := token.Start; b < token.End; b++ {
				inName[b] = true
			}
		}
	}
	at := 0
	for i, r := range before {
		if !copied[i] && !inName[at] && strings.TrimSpace(string(r)) != "" {
			t.Errorf("%s\nloses %q at %d:\n%s", sql, r, i, result.Text)
			return
		}
		at += len(string(r))
	}
}

// An agent sends these statements. Each must be answered as a filtered copy answers it, or be refused.
func TestShapesAnswerAsTheFilteredCopy(t *testing.T) {
	s := worksSchema(t)
	referenceAnswer := oracle.ReferenceAnswers(t, s)
	proxies := map[string]*instance.Proxy{}
	for _, mode := range instance.Modes(instance.Both, instance.SignedViews) {
		proxy := instance.Start(t, mode, s.BehindProxy(t), s.Attributes)
		proxies[mode.Name] = proxy
		agent := proxy.Agent(t, "agent", s.Name)
		answered, refused, failed, sensitive := 0, 0, 0, 0
		for i, sql := range allStatements() {
			if !tier.IsPicked(i, 12) {
				continue
			}
			want, dependsOnHidden := referenceAnswer(sql)
			got := instance.AskCopy(agent, sql)
			switch {
			case agent.IsClosed():
				t.Fatalf("%s\nends the session: %s", sql, got.Err)
			case want.Err != "" && got.Code == want.Code:
				failed++
			case got.Refused():
				refused++
			case got.WithoutNotices().SortedString() != want.WithoutNotices().SortedString():
				t.Errorf("%s: %s\nagent:\n%s\nfiltered copy:\n%s", mode.Name, sql, instance.Truncate(got.SortedString()), instance.Truncate(want.SortedString()))
			default:
				answered++
				if dependsOnHidden {
					sensitive++
				}
			}
		}
		t.Logf("%s: %d answered, %d of them sensitive, %d refused, %d fail on both sides", mode.Name, answered, sensitive, refused, failed)
		if answered < 5*(refused+failed) {
			t.Errorf("%s: only %d are answered, %d refused, %d fail", mode.Name, answered, refused, failed)
		}
		proxy.Tap().RequireNoMarker(t)
	}
}
