package predicate

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// The schemas of pgconsent's objects that predicates use.
const (
	OwnSchema    = "pgconsent"        // the schema of seal keys and lookup views; agents have no USAGE on it
	SignedSchema = "pgconsent_signed" // the schema of signed views, and of functions that rewritten statements may call
	// the schema of the views that agents read in place of tables on which they have no rights
	RowsSchema = "pgconsent_rows"
)

// LookupTable is a table that a predicate reads in addition to the row's own table, with the columns that it reads.
type LookupTable struct {
	Relation *catalog.Relation
	Columns  []string // the names of the columns, sorted
}

// LookupTables returns the tables that a predicate reads in addition to the row's own table, sorted by name.
func LookupTables(node Node) []LookupTable {
	columns := map[catalog.Name]map[string]bool{}
	relations := map[catalog.Name]*catalog.Relation{}
	add := func(relation *catalog.Relation, columnNames ...string) {
		if columns[relation.Name] == nil {
			columns[relation.Name] = map[string]bool{}
			relations[relation.Name] = relation
		}
		for _, name := range columnNames {
			columns[relation.Name][name] = true
		}
	}
	walkNodes(node, nil, func(node Node, row *catalog.Relation) {
		switch n := node.(type) {
		case Own, Tenant, Grant, Status, SQL:
			if row != nil {
				add(row, columnsOf(n)...)
			}
		case Consent:
			if row != nil && len(n.Steps) > 0 {
				add(row, n.Steps[0].fromColumns()...)
			}
			if n.Materialized != nil { // the reader role computes the stored answers
				add(n.Materialized.Relation, n.Materialized.Relation.PrimaryKey...)
			}
			for i, step := range n.Steps {
				add(step.Relation, step.targetColumns()...)
				add(step.Relation, n.stepColumns(i)...)
			}
		case Visible:
			if row != nil {
				add(row, n.step().fromColumns()...)
			}
			add(n.Relation, n.step().targetColumns()...)
		case Reference:
			if row != nil {
				add(row, n.FromColumns...)
			}
			add(n.Relation, n.Columns...)
			if n.RowBefore.Relation != nil {
				add(n.RowBefore.Relation, n.RowBefore.targetColumns()...)
				add(n.RowBefore.Relation, n.FromColumns...)
			}
		case listSourceNode:
			add(n.Relation, n.columns()...)
		case listChainNode:
			add(n.Relation, n.columns()...)
		case Derived:
			if row != nil {
				add(row, n.fromColumns()...)
			}
			for _, o := range append([]Origin{n.Origin}, n.SourceOrigins...) {
				for i, step := range o.Steps {
					add(step.Relation, step.targetColumns()...)
					add(step.Relation, o.stepColumns(i)...)
				}
				if o.Source != nil {
					add(o.Source, o.Key)
				}
			}
			for _, o := range n.SourceOrigins {
				add(n.SourceTable(), o.fromColumns()...)
				add(n.SourceTable(), n.SourceTable().PrimaryKey...)
			}
		case RecordedConsent:
			if row != nil {
				add(row, n.fromColumns()...)
			}
			for i, step := range n.Steps {
				add(step.Relation, step.targetColumns()...)
				add(step.Relation, n.stepColumns(i)...)
			}
			if n.Record.Relation != nil {
				add(n.Record.Relation, n.Record.ownColumns()...)
			}
			if g := n.Record.Guardians; g != nil {
				add(g.Relation, g.columns()...)
			}
		case RegistryConsent:
			if row != nil {
				add(row, n.fromColumns()...)
			}
			for i, step := range n.Subjects.Steps {
				add(step.Relation, step.targetColumns()...)
				add(step.Relation, n.Subjects.stepColumns(i)...)
			}
			add(registryTable, registryColumns()...)
		}
	})
	var out []LookupTable
	for _, name := range slices.SortedFunc(maps.Keys(columns), compareNames) {
		out = append(out, LookupTable{relations[name], sortedKeys(columns[name])})
	}
	return out
}

// TablesThatShowWhenEmpty returns the tables that make rows visible while they are empty, sorted by name. If the lookup
// view of such a table has no rows, the predicate checks by [ReadableFunction] that the table itself has none.
func TablesThatShowWhenEmpty(node Node) []*catalog.Relation {
	found := map[catalog.Name]*catalog.Relation{}
	walkNodes(node, nil, func(node Node, _ *catalog.Relation) {
		if c, ok := node.(Consent); ok && !c.FirstRequired && len(c.Steps) > 0 {
			found[c.Steps[0].Relation.Name] = c.Steps[0].Relation
		}
		if c, ok := node.(RecordedConsent); ok && !c.FirstRequired && len(c.Steps) > 0 {
			found[c.Steps[0].Relation.Name] = c.Steps[0].Relation
		}
		if c, ok := node.(RegistryConsent); ok && !c.Subjects.FirstRequired && len(c.Subjects.Steps) > 0 {
			found[c.Subjects.Steps[0].Relation.Name] = c.Subjects.Steps[0].Relation
		}
	})
	var out []*catalog.Relation
	for _, name := range slices.SortedFunc(maps.Keys(found), compareNames) {
		out = append(out, found[name])
	}
	return out
}

// walkNodes calls visit for node and for all predicates in it. row is the lookup table whose row a predicate is about;
// nil means the outer row.
func walkNodes(node Node, row *catalog.Relation, visit func(Node, *catalog.Relation)) {
	visit(node, row)
	switch n := node.(type) {
	case All:
		for _, part := range n {
			walkNodes(part, row, visit)
		}
	case Any:
		for _, part := range n {
			walkNodes(part, row, visit)
		}
	case Not:
		walkNodes(n.Node, row, visit)
	case Visible:
		walkNodes(n.Rows, n.Relation, visit)
	case Reference:
		walkNodes(n.Rows, n.Relation, visit)
	case Derived:
		if n.ExceptIf != nil {
			walkNodes(n.ExceptIf, row, visit)
		}
		walkNodes(n.Rows, n.SourceTable(), visit)
		for _, o := range n.SourceOrigins {
			if o.ExceptIf != nil {
				walkNodes(o.ExceptIf, n.SourceTable(), visit)
			}
		}
	case listSourceNode:
		if n.RowCondition != nil {
			walkNodes(n.RowCondition, n.Relation, visit)
		}
	case listChainNode:
		walkNodes(n.Rows, n.Relation, visit)
	case RecordedConsent:
		if n.Record.Rows != nil {
			walkNodes(n.Record.Rows, n.Record.Relation, visit)
		}
		if g := n.Record.Guardians; g != nil && g.Rows != nil {
			walkNodes(g.Rows, g.Relation, visit)
		}
	}
}

// columnsOf returns the columns of its own row that a node without parts reads.
func columnsOf(node Node) []string {
	switch n := node.(type) {
	case Own:
		return []string{n.Column}
	case Tenant:
		return []string{n.Column}
	case Grant:
		return []string{n.Column}
	case Status:
		return []string{n.Column}
	case SQL:
		return ColumnsOf(n.Expr)
	default:
		return nil
	}
}

// AttributesOf returns the names of all attributes that n uses, including optional ones, sorted.
func AttributesOf(n Node) []string { return sortedKeys(usedAttributes(n)) }

// attributesThatHide returns the attributes that the SQL need not test for presence: if one is missing, a comparison
// with NULL hides every row.
func attributesThatHide(node Node) []string {
	switch n := node.(type) {
	case Own:
		return []string{n.Attribute}
	case All:
		var out []string
		for _, part := range n {
			out = append(out, attributesThatHide(part)...)
		}
		return out
	case Visible:
		return attributesThatHide(n.Rows)
	default:
		return nil
	}
}

// LookupView returns the name of the view that row policies read in place of a table. The view belongs to the reader
// role, so the agent's own row security does not apply in it.
func LookupView(table catalog.Name) catalog.Name {
	return catalog.Name{Schema: OwnSchema, Name: objectName(lookupViewPrefix, table)}
}

const lookupViewPrefix = "h_"

// SignedLookupView returns the name of the view that signed statements read in place of a lookup table. The view raises
// an error unless the statement is signed.
func SignedLookupView(table catalog.Name) catalog.Name {
	return catalog.Name{Schema: SignedSchema, Name: objectName("", table)}
}

// RowView returns the name of the view that agents read in place of a table with hidden or masked columns. The table's
// row security applies to it.
func RowView(table catalog.Name) catalog.Name {
	return catalog.Name{Schema: RowsSchema, Name: objectName("", table)}
}

// FilteredRowView returns the name of a row view that also contains the predicate. The view is the second enforcement
// layer if the predicate reads hidden columns: then the rewriter cannot put the predicate into an agent's text.
func FilteredRowView(table catalog.Name) catalog.Name {
	return catalog.Name{Schema: RowsSchema, Name: objectName("filtered_", table)}
}

// KeyedView returns the name of a row view that also has the columns which agents may read only by key. Agents have no
// right on the view. They call a function with the same name, which returns the rows with the given keys. filtered says
// that the view contains the predicate, like a [FilteredRowView].
func KeyedView(table catalog.Name, filtered bool) catalog.Name {
	if filtered {
		return catalog.Name{Schema: RowsSchema, Name: objectName("filtered_key_", table)}
	}
	return catalog.Name{Schema: RowsSchema, Name: objectName("key_", table)}
}

// ReadableFunction returns the name of the function that reports whether predicates can read a link table: its lookup
// view has rows, or the table has none. It is declared IMMUTABLE, which it is not, so that the planner evaluates a call
// with a constant. Its argument does nothing else.
func ReadableFunction(table catalog.Name) catalog.Name {
	return catalog.Name{Schema: OwnSchema, Name: objectName("readable_", table)}
}

// EmptyFunction returns the name of the function that reports whether a link table has no rows at all.
func EmptyFunction(table catalog.Name) catalog.Name {
	return catalog.Name{Schema: OwnSchema, Name: objectName("empty_", table)}
}

// ChangeStampFunction returns the name of the trigger function that sets the columns of a table's new rows whose values
// the policy prescribes.
func ChangeStampFunction(table catalog.Name) catalog.Name {
	return catalog.Name{Schema: OwnSchema, Name: objectName("stamp_", table)}
}

// PrivacyFunction returns the name of the trigger function that records whom changed rows of a table give access, and
// from whom they withdraw it.
func PrivacyFunction(table catalog.Name) catalog.Name {
	return catalog.Name{Schema: OwnSchema, Name: objectName("privacy_", table)}
}

// CopyView returns the name of a view without rows. COPY FROM writes to this view in place of a table with row
// security, to which PostgreSQL does not allow COPY FROM.
func CopyView(table catalog.Name) catalog.Name {
	return catalog.Name{Schema: RowsSchema, Name: objectName("in_", table)}
}

// CopyFunction returns the name of the trigger function that inserts rows copied to the CopyView into the table, with
// the rights of the role that copies.
func CopyFunction(table catalog.Name) catalog.Name {
	return catalog.Name{Schema: OwnSchema, Name: objectName("copy_", table)}
}

// GroupView returns the name of the view that signed aggregates read in place of a table. The view has the visible
// rows, and rows that agents may only count in groups. It raises an error unless the statement is signed.
func GroupView(table catalog.Name) catalog.Name {
	return catalog.Name{Schema: SignedSchema, Name: objectName("group_", table)}
}

// reservedPrefixes are names that, as the name of a table's schema, would make a view's name without a hash ambiguous:
// they are also prefixes of other views.
var reservedPrefixes = map[string]bool{"visible": true, "group": true, "filtered": true, "in": true, "key": true}

// objectName makes a name from a prefix and a table's name. The name is unique for the table and the prefix, and fits
// within the 63 bytes of an identifier.
func objectName(prefix string, table catalog.Name) string {
	name := prefix + table.Schema + "_" + table.Name
	if len(name) <= 50 && !strings.Contains(table.Schema, "_") && !reservedPrefixes[table.Schema] {
		return name
	}
	sum := sha256.Sum256([]byte(table.Schema + "\x00" + table.Name))
	short := name
	if len(short) > 46 {
		short = strings.ToValidUTF8(short[:46], "")
	}
	return short + "_" + hex.EncodeToString(sum[:8])
}

func compareNames(a, b catalog.Name) int {
	if c := strings.Compare(a.Schema, b.Schema); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}

func sortedKeys(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
