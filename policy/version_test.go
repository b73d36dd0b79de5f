package policy_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/test/tier"
)

// descriptionOf are files with policies that, together, use nearly every part of the language. Each has its schema.sql
// beside it.
var descriptionOf = []string{
	"../examples/worlds/arcive/policy.yaml", "../examples/worlds/ciris/policy.yaml",
	"../examples/worlds/ciris/policy_registry.yaml", "../examples/worlds/kernle/policy.yaml",
	"../examples/worlds/beheard/policy.yaml", "../examples/worlds/memberintel/policy.yaml",
	"../test/oracle/testdata/hospital/policy.yaml",
}

// fieldsWithoutMeaning are fields of a compiled policy that are not part of its meaning: positions, the original
// wording, and the order of parts.
var fieldsWithoutMeaning = []string{"version", "warnings", "place", "Rule", "order", "expressions"}

// Two policies with the same version have the same meaning. If a word, a number or an entry of a document changes, the
// version changes too, or the compiled policy is the same. On a reload, a proxy does nothing if the version is the
// same.
func TestVersionsTellPoliciesApart(t *testing.T) {
	tier.All(t)
	sameMeaning := cmp.Options{
		cmp.Exporter(func(reflect.Type) bool { return true }),
		cmp.Comparer(func(a, b *catalog.Relation) bool { return a == b }),
		cmp.Comparer(func(a, b *catalog.Function) bool { return a == b }),
		cmp.Comparer(func(a, b *regexp.Regexp) bool { return a == b || a != nil && b != nil && a.String() == b.String() }),
		cmp.FilterPath(func(p cmp.Path) bool {
			f, ok := p.Last().(cmp.StructField)
			return ok && slices.Contains(fieldsWithoutMeaning, f.Name())
		}, cmp.Ignore()),
	}
	for i, file := range descriptionOf {
		if !tier.IsPicked(i, 2) {
			continue
		}
		t.Run(filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			snap := schemaBeside(t, file)
			compilePolicy := func(text []byte) *policy.Policy {
				doc, err := policy.Parse("p.yaml", text)
				if err != nil {
					return nil
				}
				p, err := policy.Compile(doc, snap, policy.WithViews(rewrite.RewriteViewQuery))
				if err != nil {
					return nil
				}
				return p
			}
			var tree yaml.MapSlice
			if err := yaml.UnmarshalWithOptions(text, &tree, yaml.UseOrderedMap()); err != nil {
				t.Fatal(err)
			}
			documentYAML, err := yaml.Marshal(tree)
			if err != nil {
				t.Fatal(err)
			}
			p := compilePolicy(documentYAML)
			if p == nil {
				t.Fatalf("%s does not compile\n%s", file, documentYAML)
			}
			differing := 0
			variants := changes(tree, rand.New(rand.NewPCG(3, 3)), 120)
			for _, c := range variants {
				changedYAML, err := yaml.Marshal(c.tree)
				if err != nil {
					t.Fatal(err)
				}
				o := compilePolicy(changedYAML)
				if o == nil {
					continue
				}
				if p.Version() != o.Version() {
					differing++
				} else if d := cmp.Diff(p, o, sameMeaning); d != "" {
					t.Errorf("%s: the version stays as it was, and the policy does not\n%.1500s", c.description, d)
				}
			}
			if differing < 5 {
				t.Errorf("%d of %d changes make another policy", differing, len(variants))
			}
			t.Logf("%d of %d changes make another policy", differing, len(variants))
		})
	}
}

func schemaBeside(t *testing.T, file string) *catalog.Snapshot {
	t.Helper()
	conn := pgtest.Database(t).Connect(t, "postgres")
	for _, name := range []string{"extensions.sql", "schema.sql"} {
		sql, err := os.ReadFile(filepath.Join(filepath.Dir(file), name))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.PgConn().Exec(t.Context(), string(sql)).ReadAll(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	snap, err := pgcatalog.Load(t.Context(), conn, []string{"public"})
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

type change struct {
	description, kind string
	tree              any
}

// changes returns variants of a document with one entry left out, a number plus one, a boolean inverted, or a word
// moved. It returns at most most variants, some of each kind.
func changes(tree any, r *rand.Rand, maxChanges int) []change {
	var words []string
	var collect func(n any)
	collect = func(n any) {
		switch n := n.(type) {
		case yaml.MapSlice:
			for _, item := range n {
				collect(item.Value)
			}
		case []any:
			for _, item := range n {
				collect(item)
			}
		case string:
			words = append(words, n)
		}
	}
	collect(tree)
	var out []change
	var walk func(n any, path, lastKey string, replace func(any) any)
	walk = func(n any, path, lastKey string, replace func(any) any) {
		addChange := func(label string, v any) {
			kind := lastKey
			if strings.HasPrefix(label, "without ") {
				kind = label
			}
			out = append(out, change{path + ": " + label, kind, replace(v)})
		}
		switch n := n.(type) {
		case yaml.MapSlice:
			for i, item := range n {
				name := fmt.Sprint(item.Key)
				addChange("without "+name, slices.Delete(slices.Clone(n), i, i+1))
				walk(item.Value, path+"."+name, name, func(v any) any {
					c := slices.Clone(n)
					c[i].Value = v
					return replace(c)
				})
			}
		case []any:
			for i, item := range n {
				addChange(fmt.Sprintf("without entry %d", i+1), slices.Delete(slices.Clone(n), i, i+1))
				walk(item, fmt.Sprintf("%s[%d]", path, i+1), lastKey, func(v any) any {
					c := slices.Clone(n)
					c[i] = v
					return replace(c)
				})
			}
		case bool:
			addChange("turned over", !n)
		case uint64:
			addChange("one more", n+1)
		case string:
			for range 2 {
				w := words[r.IntN(len(words))]
				addChange(n+" is "+w, w)
			}
			addChange(n+" with a 1", n+"1")
		}
	}
	walk(tree, "policy", "", func(v any) any { return v })
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	countByKind := map[string]int{}
	numberInKind := map[*change]int{} // the number of the change among those of its kind
	var order []*change
	for i := range out {
		numberInKind[&out[i]], order = countByKind[out[i].kind], append(order, &out[i])
		countByKind[out[i].kind]++
	}
	slices.SortStableFunc(order, func(a, b *change) int { return numberInKind[a] - numberInKind[b] })
	var chosenChanges []change
	for _, c := range order[:min(maxChanges, len(order))] {
		chosenChanges = append(chosenChanges, *c)
	}
	return chosenChanges
}
