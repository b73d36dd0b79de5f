package enforce

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Each suspended object is listed once, with the cause and the remedy.
func TestSuspendedObjects(t *testing.T) {
	name := func(n string) catalog.Name { return catalog.Name{Schema: "public", Name: n} }
	if got := (suspension{}).objects("app"); got != nil {
		t.Errorf("nothing is suspended: %+v", got)
	}
	u := suspension{
		suspensionCauses: suspensionCauses{alteredRelations: []catalog.Name{name("people")}, unsafeRelations: []catalog.Name{name("notes")},
			replacedFunctions: []catalog.Name{name("count_notes")}},
		relations:   map[catalog.Name]bool{name("people"): true, name("notes"): true, name("memories"): true},
		notWritable: map[catalog.Name]bool{name("visits"): true},
		functions:   map[string]bool{"public.count_notes": true, "public.titles": true},
	}
	const unsafe = "Run pgconsent doctor, which says what differs; pgconsent migrate puts it right."
	const changed = "Run pgconsent migrate, or undo the change."
	want := []SuspendedObject{
		{"app", "relation", "public.memories", "it may depend on public.notes, public.people", unsafe},
		{"app", "relation", "public.notes", "its row security, policies or rights are not as pgconsent migrate left them", unsafe},
		{"app", "relation", "public.people", "its definition has changed since pgconsent migrate", changed},
		{"app", "relation", "public.visits", "it takes no writes: a foreign key connects it with public.notes, public.people", unsafe},
		{"app", "function", "public.count_notes", "its definition has changed since pgconsent migrate", changed},
		{"app", "function", "public.titles", "it may read public.notes, public.people", unsafe},
	}
	if diff := cmp.Diff(want, u.objects("app")); diff != "" {
		t.Error(diff)
	}
}
