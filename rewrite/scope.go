package rewrite

import (
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// scope holds the FROM items of one SELECT. The expressions of the SELECT can name these items, and then those of
// parent.
type scope struct {
	parent *scope
	items  []*fromItem
	byName map[string][]*fromItem

	query          *sqltext.SelectStmt // the SELECT; nil if the items belong to another kind of statement
	hasUnknownName bool                // some item has a name that the text does not show
	outerItems     int                 // the number of items in the scopes around this one
}

// maxItems bounds how many FROM items one expression can name, since the rewriter searches all of them for each column.
const maxItems = 1_000

func newScope(parent *scope) *scope {
	s := &scope{parent: parent}
	if parent != nil {
		s.outerItems = parent.outerItems + len(parent.items)
	}
	return s
}

// fromItem is an item of FROM, which a qualifier before a column can name.
type fromItem struct {
	name       string
	ref        *reference      // the table or view that the item is; nil for a subquery, a function or a WITH query
	noAlias    bool            // the item has no alias, so that schema.table.column can mean it
	columns    map[string]bool // the columns that the item certainly has; nil: its columns are not known
	references []*reference    // the relations that a subquery reads
}

// namesResultColumn tells whether the SELECT gives this name to a result column.
func (s *scope) namesResultColumn(column string) bool {
	for _, n := range s.query.GetTargetList() {
		if n.GetResTarget().GetName() == column {
			return true
		}
	}
	return false
}

func (s *scope) add(item *fromItem) {
	if s.byName == nil {
		s.byName = map[string][]*fromItem{}
	}
	s.hasUnknownName = s.hasUnknownName || item.name == ""
	s.items = append(s.items, item)
	s.byName[item.name] = append(s.byName[item.name], item)
}

// itemsNamed returns the items with the given name, those of the innermost scope first.
func (s *scope) itemsNamed(name string) []*fromItem {
	var out []*fromItem
	for ; s != nil; s = s.parent {
		out = append(out, s.byName[name]...)
	}
	return out
}

// hasUnknownNameInSight tells whether an item of this scope or the scopes around it has a name that is not known, and
// may be any name.
func (s *scope) hasUnknownNameInSight() bool {
	for ; s != nil; s = s.parent {
		if s.hasUnknownName {
			return true
		}
	}
	return false
}

// hasColumn tells whether item.column is certainly a column. Several items may have that name: the alias of a join
// hides the items inside, and the condition of a join cannot name the items beside the join. So every item of that name
// must have the column.
func (s *scope) hasColumn(item, column string) bool {
	found := false
	for ; s != nil; s = s.parent {
		if s.hasUnknownName {
			return false
		}
		for _, i := range s.byName[item] {
			if !i.columns[column] {
				return false
			}
			found = true
		}
	}
	return found
}

// itemsOfRelation returns the items that are the given relation and have no alias.
func (s *scope) itemsOfRelation(n catalog.Name) []*fromItem {
	var out []*fromItem
	for ; s != nil; s = s.parent {
		for _, item := range s.byName[n.Name] {
			if item.noAlias && item.ref != nil && item.ref.name == n {
				out = append(out, item)
			}
		}
	}
	return out
}

// keepSameNames puts no subqueries in the place of items that have the same name. PostgreSQL allows the same name for
// tables of different schemas, but not for subqueries.
func (s *scope) keepSameNames() {
	for _, item := range s.items {
		if len(s.byName[item.name]) > 1 && item.ref != nil {
			item.ref.sharesName = true
			item.ref.doNotInject(itemsOfOneName)
		}
	}
}

// cteFrame holds the WITH queries that a WITH clause has declared so far.
type cteFrame struct {
	parent    *cteFrame
	columnsOf map[string]map[string]bool // the columns of each WITH query, by name; nil: not known
	// For each WITH query that is a SELECT, by its name: its first read of single rows of a table whose rows agents see
	// partly in group results only. Rows that a WITH query with RETURNING has written do not count.
	singleRowReads map[string]*reference
}

// findCTE returns the columns of a WITH query, and its entry in singleRowReads. A name without schema means a WITH
// query before it means a table.
func (f *cteFrame) findCTE(name string) (columns map[string]bool, singleRows *reference, found bool) {
	for ; f != nil; f = f.parent {
		if columns, found := f.columnsOf[name]; found {
			return columns, f.singleRowReads[name], true
		}
	}
	return nil, nil, false
}
