package enforce

import (
	"maps"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// SuspendedObject tells the operator of a table, view or function on which statements are refused, or of a whole
// database whose agents are refused.
type SuspendedObject struct {
	Database string
	Kind     string // relation, function or database
	Name     string // as schema.name; "" for a database
	Cause    string
	Remedy   string
}

// The remedies that the operator is told.
const (
	remedyChanged     = "Run pgconsent migrate, or undo the change."
	remedyUnreachable = "See that the server answers: pgconsent doctor tries it. Agents are served again once it does."
	remedyUnsafe      = "Run pgconsent doctor, which says what differs; pgconsent migrate puts it right."
)

// SuspendedObjects returns the suspended objects of all databases, each with cause and remedy, ordered by database and
// name.
func (e *Enforcer) SuspendedObjects() []SuspendedObject {
	var out []SuspendedObject
	for _, name := range slices.Sorted(maps.Keys(e.databases)) {
		v, refused := e.databases[name].current()
		if refused != nil {
			remedy := refused.Hint
			if refused.Reason == sqlstate.ReasonUpstream {
				remedy = remedyUnreachable
			}
			out = append(out, SuspendedObject{Database: name, Kind: "database", Cause: refused.Message, Remedy: remedy})
			continue
		}
		out = append(out, v.state.suspension.objects(name)...)
	}
	return out
}

// objects returns the suspended objects of a database: relations first, then functions, each ordered by name.
func (u suspension) objects(database string) []SuspendedObject {
	if u.isEmpty() {
		return nil
	}
	remedy := remedyChanged
	if len(u.unsafeRelations) > 0 {
		remedy = remedyUnsafe
	}
	causes := joinSortedNames(slices.Concat(u.alteredRelations, u.unsafeRelations))
	var relations, functions []SuspendedObject
	for name := range u.relations {
		o := SuspendedObject{Database: database, Kind: "relation", Name: name.String()}
		switch {
		case slices.Contains(u.alteredRelations, name):
			o.Cause, o.Remedy = "its definition has changed since pgconsent migrate", remedyChanged
		case slices.Contains(u.unsafeRelations, name):
			o.Cause = "its row security, policies or rights are not as pgconsent migrate left them"
			o.Remedy = remedyUnsafe
		default:
			o.Cause, o.Remedy = "it may depend on "+causes, remedy
		}
		relations = append(relations, o)
	}
	for name := range u.notWritable {
		relations = append(relations, SuspendedObject{Database: database, Kind: "relation", Name: name.String(),
			Cause: "it takes no writes: a foreign key connects it with " + causes, Remedy: remedy})
	}
	for _, name := range u.replacedFunctions {
		functions = append(functions, SuspendedObject{Database: database, Kind: "function", Name: name.String(),
			Cause: "its definition has changed since pgconsent migrate", Remedy: remedyChanged})
	}
	for name := range u.functions {
		if !slices.ContainsFunc(u.replacedFunctions, func(f catalog.Name) bool { return f.String() == name }) {
			functions = append(functions, SuspendedObject{Database: database, Kind: "function", Name: name,
				Cause: "it may read " + causes, Remedy: remedy})
		}
	}
	byName := func(a, b SuspendedObject) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(relations, byName)
	slices.SortFunc(functions, byName)
	return append(relations, functions...)
}
