package migrations

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Statement is a SQL statement with the reason that --dry-run prints above it.
type Statement struct{ SQL, Why string }

// Object is one thing that a plan makes: a policy, a view with the rights on it, a trigger with its function.
type Object struct {
	// Identity says what the object is and to which table it belongs, as in "policy pgconsent_select on public.people". No
	// two objects of a plan have the same identity.
	Identity       string
	Tables         []catalog.Name // the tables to which the object belongs
	NeededObjects  []string       // the identities of the objects that must exist before it
	MakeStatements []Statement
	DropStatements []Statement

	// ReplaceStatements turn an earlier version of the object into this one, so that objects which need it can stay. If
	// nil, the object is dropped and made again.
	ReplaceStatements []Statement

	// Grants are the rights that making the object gives on other objects, and that remain when it is dropped.
	Grants []Grant
}

// MakeAll returns the statements that make objects, in the order of the objects.
func MakeAll(objects []Object) []Statement {
	var out []Statement
	for _, o := range objects {
		out = append(out, o.MakeStatements...)
	}
	return out
}

// DropAll returns the statements that drop objects, the last object first. Rights that the objects have given remain.
func DropAll(objects []Object) []Statement {
	var out []Statement
	for _, o := range slices.Backward(objects) {
		out = append(out, o.DropStatements...)
	}
	return out
}

// Right is a privilege as GRANT names it, on whole objects or on some of their columns.
type Right struct {
	Name    string
	Columns []string // the quoted columns; nil: the right is on the whole object
}

// WholeObjectRights returns privileges on whole objects.
func WholeObjectRights(names ...string) []Right {
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
	Rights  []Right
	Kind    string   // the kind of the objects: TABLE, FUNCTION, …; "": relations
	Objects []string // the names of the objects as GRANT writes them
	Roles   []string // the quoted names of the roles that get the rights
	Why     string
}

// GrantStatement returns the statement that gives the rights.
func (g Grant) GrantStatement() Statement {
	rights := make([]string, len(g.Rights))
	for i, r := range g.Rights {
		rights[i] = r.String()
	}
	return Statement{
		SQL: "GRANT " + strings.Join(rights, ", ") + " ON " + g.kind() + strings.Join(g.Objects, ", ") +
			" TO " + strings.Join(g.Roles, ", "),
		Why: g.Why,
	}
}

// kind returns the kind of object as GRANT has it, with a space behind it, or nothing for a table.
func (g Grant) kind() string {
	if g.Kind == "" {
		return ""
	}
	return g.Kind + " "
}

// revokeStatements returns a statement for each of the rights that takes it back. Two grants of the same right have the
// same statement.
func (g Grant) revokeStatements() []string {
	kind := g.Kind
	if kind == "" {
		kind = "TABLE"
	}
	var out []string
	for _, right := range g.Rights {
		for _, one := range right.perColumn() {
			for _, on := range g.Objects {
				for _, to := range g.Roles {
					out = append(out, "REVOKE "+one.String()+" ON "+kind+" "+on+" FROM "+to)
				}
			}
		}
	}
	return out
}

// perColumn returns a right for each column.
func (r Right) perColumn() []Right {
	if r.Columns == nil {
		return []Right{r}
	}
	out := make([]Right, len(r.Columns))
	for i, c := range r.Columns {
		out[i] = Right{r.Name, []string{c}}
	}
	return out
}
