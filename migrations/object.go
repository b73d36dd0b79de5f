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

	// Replace turns an earlier version of the object into this one, so that the objects that need it stay. Nil: it is
	// dropped and made again.
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

// revokes are the statements that take each of the rights back by itself. Grants that give the same right have the same
// statement for it.
func (g Grant) revokes() []string {
	kind := g.Kind
	if kind == "" {
		kind = "TABLE"
	}
	var out []string
	for _, right := range g.Rights {
		for _, one := range right.each() {
			for _, on := range g.On {
				for _, to := range g.To {
					out = append(out, "REVOKE "+one.String()+" ON "+kind+" "+on+" FROM "+to)
				}
			}
		}
	}
	return out
}

// each returns the right on each column by itself.
func (r Right) each() []Right {
	if r.Columns == nil {
		return []Right{r}
	}
	out := make([]Right, len(r.Columns))
	for i, c := range r.Columns {
		out[i] = Right{r.Name, []string{c}}
	}
	return out
}
