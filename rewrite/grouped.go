package rewrite

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// addGroupColumns adds columns to a GROUP BY that contains a whole primary key. PostgreSQL lets a SELECT name the other
// columns of such a table ungrouped. But a table with hidden columns is read through a view, for which PostgreSQL knows
// no primary key.
//
// The columns that the SELECT names of such a table are added; they do not divide a group further. Where that is not
// certain, nothing is added, and PostgreSQL reports the missing columns.
func (w *walker) addGroupColumns(s *sqltext.SelectStmt, ownScope *scope) {
	if w.refused != nil || w.repeated || len(s.GroupClause) == 0 {
		return
	}
	var added []catalog.Name // pairs of an item's name and a column
	for _, item := range ownScope.items {
		if item.name == "" || len(ownScope.byName[item.name]) > 1 || !isGroupedByKey(s, ownScope, item) {
			continue
		}
		named := namedColumns(s, item, ownScope)
		for _, c := range item.ref.relation.Columns {
			if (named[c.Name] || named[""]) && !slices.Contains(item.ref.relation.PrimaryKey, c.Name) {
				if !w.canGroupByColumn(c) {
					// PostgreSQL cannot group by this column. Without it, PostgreSQL reports that it must be in GROUP BY.
					continue
				}
				added = append(added, catalog.Name{Schema: item.name, Name: c.Name})
			}
		}
	}
	last := w.source.TokenAt(groupLocation(s.GroupClause[0])) - 1 // the token before the list of GROUP BY
	for last > 0 && w.source.KindAt(last) == sqltext.OpenParen {
		last--
	}
	nextToken := last
	if kind := w.source.KindAt(nextToken); kind == sqltext.Distinct || kind == sqltext.All {
		nextToken--
	}
	if len(added) == 0 || nextToken < 1 || w.source.KindAt(nextToken) != sqltext.By ||
		w.source.KindAt(nextToken-1) != sqltext.Group {
		return
	}
	text, nodes := "", make([]*sqltext.Node, 0, len(added)+len(s.GroupClause))
	for _, n := range added {
		node := parseExpression(n.SQL())
		if node == nil {
			return
		}
		text += " " + n.SQL() + ","
		nodes = append(nodes, node)
	}
	end := w.source.Tokens[last].End
	w.replace(end, end, text, func() {
		clones := make([]*sqltext.Node, 0, cap(nodes))
		for _, n := range nodes {
			clones = append(clones, proto.Clone(n).(*sqltext.Node))
		}
		s.GroupClause = append(clones, s.GroupClause...)
	})
}

// isGroupedByKey tells whether GROUP BY contains the whole primary key of a table that is read through a view.
func isGroupedByKey(s *sqltext.SelectStmt, ownScope *scope, item *fromItem) bool {
	ref := item.ref
	if ref == nil || ref.fragment == nil || !ref.fragment.isView() || ref.fragment.visible.Kind == catalog.View ||
		ref.keyLookup != nil || ref.rangeVar == nil ||
		len(ref.rangeVar.GetAlias().GetColnames()) > 0 || len(ref.relation.PrimaryKey) == 0 ||
		ref.relation.HasChildren && ref.relation.Kind != catalog.PartitionedTable {
		return false
	}
	for _, key := range ref.relation.PrimaryKey {
		column := ref.relation.Column(key)
		// the key column is hidden or masked, so that several rows may have the same value
		if column == nil || !column.NotNull {
			return false
		}
		if !slices.ContainsFunc(s.GroupClause,
			func(n *sqltext.Node) bool { return isColumn(groupedExpr(s, n, ownScope), item, key, ownScope) }) {
			return false
		}
	}
	return true
}

// groupedExpr returns the expression that an item of GROUP BY means. The item may be the position or the name of a
// result column. A name that a column of FROM has means that column.
func groupedExpr(s *sqltext.SelectStmt, n *sqltext.Node, ownScope *scope) *sqltext.Node {
	if fields := n.GetColumnRef().GetFields(); len(fields) == 1 {
		name := fields[0].GetString_().GetSval()
		if slices.ContainsFunc(ownScope.items, func(i *fromItem) bool { return i.columns == nil || i.columns[name] }) {
			return n
		}
		var named []*sqltext.Node
		for _, t := range s.TargetList {
			if t.GetResTarget().GetName() == name {
				named = append(named, t.GetResTarget().GetVal())
			}
		}
		if len(named) == 1 {
			return named[0]
		}
		return n
	}
	number := n.GetAConst().GetIval()
	if number == nil || slices.ContainsFunc(s.TargetList,
		func(n *sqltext.Node) bool { return isStar(n.GetResTarget().GetVal()) }) {
		return n
	}
	if i := int(number.Ival); i >= 1 && i <= len(s.TargetList) {
		return s.TargetList[i-1].GetResTarget().GetVal()
	}
	return n
}

// isColumn tells whether a node is item.column, with or without a schema, or only column if that is unambiguous.
func isColumn(n *sqltext.Node, item *fromItem, column string, ownScope *scope) bool {
	name, ok := columnOfItem(n.GetColumnRef(), item, ownScope)
	return ok && name == column
}

// columnOfItem returns the name of the item's column that a reference means, or "" for a star. ok is false if the
// reference means no column of the item.
func columnOfItem(c *sqltext.ColumnRef, item *fromItem, ownScope *scope) (name string, ok bool) {
	fields := c.GetFields()
	switch len(fields) {
	case 1:
		ok = len(ownScope.items) == 1 || ownScope.ownsColumn(item, fields[0].GetString_().GetSval())
	case 2:
		ok = fields[0].GetString_().GetSval() == item.name
	case 3:
		ok = item.noAlias && item.ref != nil && item.ref.name == catalog.Name{
			Schema: fields[0].GetString_().GetSval(), Name: fields[1].GetString_().GetSval()}
	}
	if !ok {
		return "", false
	}
	return fields[len(fields)-1].GetString_().GetSval(), true
}

// ownsColumn tells whether a column name certainly means a column of this item, and not of another item of the scope.
func (s *scope) ownsColumn(item *fromItem, column string) bool {
	return item.columns[column] && !slices.ContainsFunc(s.items,
		func(i *fromItem) bool { return i != item && (i.columns == nil || i.columns[column]) })
}

// namedColumns returns the columns of an item that the SELECT names outside of aggregates; "" stands for all columns.
func namedColumns(s *sqltext.SelectStmt, item *fromItem, ownScope *scope) map[string]bool {
	named := map[string]bool{}
	visit := func(m proto.Message) bool {
		switch x := m.(type) {
		case *sqltext.ColumnRef:
			if name, ok := columnOfItem(x, item, ownScope); ok {
				named[name] = true
			}
			return false
		case *sqltext.FuncCall: // arguments of an aggregate need no grouping
			return x.Over != nil || x.AggWithinGroup || !slices.Contains(commonAggregates, lastNamePart(x.Funcname))
		}
		return true
	}
	for _, nodes := range [][]*sqltext.Node{s.TargetList, {s.HavingClause}, s.SortClause, s.WindowClause,
		s.DistinctClause} {
		for _, n := range nodes {
			if n != nil {
				sqltext.Walk(n, visit)
			}
		}
	}
	return named
}

// comparableTypes are types of pg_catalog that PostgreSQL can group by.
var comparableTypes = []string{
	"bool", "int2", "int4", "int8", "numeric", "float4", "float8", "text", "varchar", "bpchar", "char", "name",
	"uuid", "date", "time", "timetz", "timestamp",
	"timestamptz", "interval", "bytea", "jsonb", "inet", "cidr", "macaddr", "macaddr8", "bit", "varbit", "tsvector",
	"oid", "money",
	"int4range", "int8range", "numrange", "tsrange", "tstzrange", "daterange",
}

func (w *walker) canGroupByColumn(c catalog.Column) bool {
	return w.canGroupByType(c.TypeOID, maxTypeDepth)
}

// canGroupByType tells whether PostgreSQL can group by a type; for a composite type, by each of its fields.
func (w *walker) canGroupByType(oid uint32, depth int) bool {
	t := w.snap.TypeByOID(oid)
	switch {
	case t == nil || depth == 0:
		return false
	case t.Kind == 'd':
		return w.canGroupByType(t.Base, depth-1)
	case t.Kind == 'c':
		fields, found := w.snap.Relation(t.Name)
		return found && len(fields.Columns) > 0 &&
			!slices.ContainsFunc(fields.Columns, func(c catalog.Column) bool { return !w.canGroupByType(c.TypeOID, depth-1) })
	case t.Element != 0 && t.Name.Name[0] == '_':
		return w.canGroupByType(t.Element, depth-1)
	}
	return t.Kind == 'e' || t.Kind == 'r' || t.Kind == 'm' ||
		slices.Contains(comparableExtensionTypes[t.Extension], t.Name.Name) ||
		t.Name.Schema == "pg_catalog" && slices.Contains(comparableTypes, t.Name.Name)
}

func groupLocation(n *sqltext.Node) int32 {
	if c := n.GetColumnRef(); c != nil {
		return c.Location
	}
	if c := n.GetAConst(); c != nil {
		return c.Location
	}
	return -1
}

// comparableExtensionTypes are types of extensions that PostgreSQL can group by.
var comparableExtensionTypes = map[string][]string{
	"citext": {"citext"}, "hstore": {"hstore"}, "ltree": {"ltree"}, "cube": {"cube"}, "vector": {
		"vector", "halfvec", "sparsevec"},
}
