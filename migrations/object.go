package migrations

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Statement is a SQL statement with the reason that migrate --dry-run prints above it.
type Statement struct{ SQL, Why string }

// Object is something that a plan makes in the database: a row policy, a view with the rights on it, or a trigger with
// its function.
type Object struct {
	// Identity names the object uniquely within its plan, as in "policy pgconsent_select on public.people".
	Identity       string
	Tables         []catalog.Name // the tables to which the object belongs
	NeededObjects  []string       // the identities of the objects that must exist before it
	MakeStatements []Statement
	DropStatements []Statement

	// ReplaceStatements turn an installed version of the object into this one in place, so that objects which need it can
	// stay. If nil, migrate drops the object and makes it again.
	ReplaceStatements []Statement

	// Grants are the rights on other objects that MakeStatements grant, and that DropStatements do not revoke.
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

// DropAll returns the statements that drop objects, the last object first. They do not revoke the objects' Grants.
func DropAll(objects []Object) []Statement {
	var out []Statement
	for _, o := range slices.Backward(objects) {
		out = append(out, o.DropStatements...)
	}
	return out
}

// Right is a privilege, named as in GRANT, on whole objects or on some of their columns.
type Right struct {
	Name    string
	Columns []string // the quoted columns; nil: the right is on the whole object
}

// WholeObjectRights returns rights with these names on whole objects, and not on columns.
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

// Grant is a grant of rights on objects to roles.
type Grant struct {
	Rights  []Right
	Kind    string   // TABLE, FUNCTION, …; "": tables and views
	Objects []string // the names of the objects as GRANT writes them
	Roles   []string // the quoted names of the roles that get the rights
	Why     string
}

// GrantStatement returns the GRANT statement for the rights.
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

// kind returns g.Kind with a space behind it, or "" if g.Kind is empty.
func (g Grant) kind() string {
	if g.Kind == "" {
		return ""
	}
	return g.Kind + " "
}

// revokeStatements returns a REVOKE statement for each single right, column, object and role. So two grants that
// overlap have equal statements.
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

// perColumn returns a right for each column of r, or r itself if it is on the whole object.
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
