package rewrite

import (
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// scope holds the FROM items of one SELECT. Its expressions also see the items of parent, after the items of the scope
// itself.
type scope struct {
	parent *scope
	items  []*fromItem
	byName map[string][]*fromItem

	query          *sqltext.SelectStmt // the SELECT; nil if the items belong to another kind of statement
	hasUnknownName bool                // some item has a name that the text does not show
	outerItems     int                 // the number of items in the scopes around this one
}

// maxItems bounds how many FROM items one expression may see, since the search for each column looks through them.
const maxItems = 1_000

func newScope(parent *scope) *scope {
	s := &scope{parent: parent}
	if parent != nil {
		s.outerItems = parent.outerItems + len(parent.items)
	}
	return s
}

// fromItem is an item of FROM, which a name in front of a column can mean.
type fromItem struct {
	name       string
	ref        *reference      // the relation; nil for a subquery, a function or a WITH query
	noAlias    bool            // the item has no alias, so that schema.table.column can mean it
	columns    map[string]bool // the columns that the item certainly has; nil: not known
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

// hasUnknownNameInSight tells whether some item in sight has a name that is not known, and may be any.
func (s *scope) hasUnknownNameInSight() bool {
	for ; s != nil; s = s.parent {
		if s.hasUnknownName {
			return true
		}
	}
	return false
}

// hasColumn tells whether item.column is certain to be a column. Which item is meant is not certain. The alias of a
// join hides the items inside, and a join's condition does not see the items beside it. So every item of that name must
// have the column.
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

// itemsOfRelation returns the items without an alias that are the given relation.
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

// keepSameNames injects no subquery for items that have the same name: PostgreSQL allows that for tables of different
// schemas, but not for subqueries.
func (s *scope) keepSameNames() {
	for _, item := range s.items {
		if len(s.byName[item.name]) > 1 && item.ref != nil {
			item.ref.sharesName = true
			item.ref.doNotInject(itemsOfOneName)
		}
	}
}

// cteFrame holds the names of the WITH queries that a WITH clause has declared so far.
type cteFrame struct {
	parent    *cteFrame
	columnsOf map[string]map[string]bool // the columns of each WITH query, by name; nil: not known
	// For each WITH query that is a SELECT, by name: its first read of single rows of a table in which some rows count
	// in groups only. The result of a statement with RETURNING was written, and is no part of a table.
	singleRowReads map[string]*reference
}

// findCTE returns the columns of a WITH query, and its first read of single rows of a table that counts in groups only.
// A name without schema means a WITH query before it means a table.
func (f *cteFrame) findCTE(name string) (columns map[string]bool, singleRows *reference, found bool) {
	for ; f != nil; f = f.parent {
		if columns, found := f.columnsOf[name]; found {
			return columns, f.singleRowReads[name], true
		}
	}
	return nil, nil, false
}
