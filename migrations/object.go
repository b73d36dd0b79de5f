package migrations

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Statement is one statement with the reason that --dry-run prints above it.
type Statement struct{ SQL, Why string }

// Object is one thing that a plan makes: a policy, a view with the rights on it, a trigger with its function.
type Object struct {
	// Identity says what it is, and of which table: "policy pgconsent_select on public.people". No two objects of a plan
	// have the same.
	Identity string
	Tables   []catalog.Name // to which it belongs
	Needs    []string       // identities of objects that have to be there before it
	Make     []Statement
	Drop     []Statement

	// Replaces tells that Replace turns an earlier version of the object into this one. What depends on it stays.
	Replace []Statement

	// Grants are the rights that Make gives on things which the object does not make, and which Drop leaves.
	Grants []Grant
}

// MakeAll returns the statements that make objects, in their order.
func MakeAll(objects []Object) []Statement {
	var out []Statement
	for _, o := range objects {
		out = append(out, o.Make...)
	}
	return out
}

// DropAll returns the statements that drop objects, the last one first. Rights that objects have given stay.
func DropAll(objects []Object) []Statement {
	var out []Statement
	for _, o := range slices.Backward(objects) {
		out = append(out, o.Drop...)
	}
	return out
}

// Right is a privilege as GRANT names it, on whole objects or on columns.
type Right struct {
	Name    string
	Columns []string // quoted; nil: on the whole
}

// Rights are privileges on the whole of objects.
func Rights(names ...string) []Right {
	out := make([]Right, len(names))
	for i, name := range names {
		out[i] = Right{Name: name}
	}
	return out
}

func (r Right) String() string {
	if r.Columns == nil {
		return r.Name
	}
	return r.Name + " (" + strings.Join(r.Columns, ", ") + ")"
}

// Grant gives rights on objects to roles.
type Grant struct {
	Rights []Right
	Kind   string   // TABLE, FUNCTION, …; "": relations
	On     []string // as GRANT names them
	To     []string // quoted
	Why    string
}

// Statement is the statement that gives the rights.
func (g Grant) Statement() Statement {
	rights := make([]string, len(g.Rights))
	for i, r := range g.Rights {
		rights[i] = r.String()
	}
	return Statement{
		SQL: "GRANT " + strings.Join(rights, ", ") + " ON " + g.kind() + strings.Join(g.On, ", ") +
			" TO " + strings.Join(g.To, ", "),
		Why: g.Why,
	}
}

func (g Grant) kind() string {
	if g.Kind == "" {
		return ""
	}
	return g.Kind + " "
}
