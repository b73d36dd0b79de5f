package rewrite

import (
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// scope holds the FROM items of one SELECT. Its expressions see the items of parent as well, from the inside out.
type scope struct {
	parent *scope
	items  []*fromItem
	byName map[string][]*fromItem

	query          *sqltext.SelectStmt // nil where another statement has the items
	hasUnknownName bool                // it has an item whose name the text does not show
	outerItems     int                 // how many items the scopes around it have
}

// maxItems bounds the FROM items in sight of one expression: each column looks through them.
const maxItems = 1_000

func newScope(parent *scope) *scope {
	s := &scope{parent: parent}
	if parent != nil {
		s.outerItems = parent.outerItems + len(parent.items)
	}
	return s
}

// fromItem is what a name in front of a column can mean.
type fromItem struct {
	name       string
	ref        *reference      // a relation; nil for a subquery, a function, a WITH query
	noAlias    bool            // schema.table.column reaches it
	columns    map[string]bool // the columns that the item certainly has; nil: not known
	references []*reference    // the relations that a subquery reads
}

// namesResultColumn tells whether the SELECT gives a result column this name.
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

// itemsNamed returns the items with the given name, the innermost scope first.
func (s *scope) itemsNamed(name string) []*fromItem {
	var out []*fromItem
	for ; s != nil; s = s.parent {
		out = append(out, s.byName[name]...)
	}
	return out
}

// hasUnknownNameInSight tells whether the name of an item in sight is not known: it may be any.
func (s *scope) hasUnknownNameInSight() bool {
	for ; s != nil; s = s.parent {
		if s.hasUnknownName {
			return true
		}
	}
	return false
}

// hasColumn tells whether item.column is certain to be a column. Which item is meant is not certain: the alias of a
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

// itemsOfRelation returns the items without alias that are that relation.
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

// keepSameNames injects nothing where two items have one name: PostgreSQL allows that for tables of different schemas,
// but not for subqueries.
func (s *scope) keepSameNames() {
	for _, item := range s.items {
		if len(s.byName[item.name]) > 1 && item.ref != nil {
			item.ref.sharesName = true
			item.ref.doNotInject(itemsOfOneName)
		}
	}
}

// cteFrame holds the names of WITH queries that one WITH clause has brought into sight so far.
type cteFrame struct {
	parent    *cteFrame
	columnsOf map[string]map[string]bool // the columns of each WITH query, by name; nil: not known
	// by name: for a SELECT, the first read of single rows of a table whose rows count in groups. What a statement
	// with RETURNING gives was written, and is no part of a table.
	singleRowReads map[string]*reference
}

// lookup returns the columns of a WITH query, and its read of single rows. A name without schema means a WITH query
// before any table.
func (f *cteFrame) lookup(name string) (columns map[string]bool, singleRows *reference, found bool) {
	for ; f != nil; f = f.parent {
		if columns, found := f.columnsOf[name]; found {
			return columns, f.singleRowReads[name], true
		}
	}
	return nil, nil, false
}
