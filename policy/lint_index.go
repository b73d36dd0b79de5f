package policy

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// MissingIndexes returns those warnings of [Lint] that are about missing indexes. The indexes change only how fast
// rules are.
func MissingIndexes(doc *Document, snap *catalog.Snapshot, options ...Option) ([]*Error, error) {
	c, p, err := compileDocument(doc, snap, options)
	if err != nil {
		return nil, err
	}
	l := newLinter(c, p, LintContext{})
	l.checkIndexes()
	return l.sorted(), nil
}

func (l *linter) checkIndexes() {
	for _, name := range l.tableOrder {
		t := l.tables[name]
		l.checkRuleIndex(t.decl.rows, t.relation)
		if a := t.decl.aggregate; a != nil {
			l.checkRuleIndex(a.rows, t.relation)
		}
	}
	for _, a := range l.doc.attributes {
		q := a.lookup
		if a.within != nil && a.within.source != nil {
			q = a.within.source
		}
		if q != nil {
			l.checkLookupIndex(a, q)
		}
	}
}

// checkLookupIndex proposes an index for the query that reads an attribute's value, if there is none.
func (l *linter) checkLookupIndex(a attributeDecl, q *lookupDecl) {
	table := l.findTable(q.tableAt, q.table)
	if table == nil {
		return
	}
	var columns []string
	for _, m := range q.matchedAttributes {
		columns = append(columns, m.column)
	}
	if a.Source == sourceSet {
		columns = append(columns, q.column)
	}
	var condition predicate.Node
	if q.rows != nil {
		condition = l.recompileBlock(q.rows, table)
		l.checkLinkIndexes(q.rows, table)
	}
	if len(columns) > 0 {
		l.checkBTree(q.tableAt, table, condition, columns...)
	}
}

// checkRuleIndex proposes an index for the columns by which a rule finds rows, if there is none.
func (l *linter) checkRuleIndex(rows block, r *catalog.Relation) {
	rule := l.recompileBlock(rows, r)
	var links []predicate.Visible
	var linksAt []place
	found := false // another block of the rule finds the rows by an index
	for _, part := range flatten(rows, false) {
		switch n := l.recompileBlock(part, r).(type) {
		case predicate.Own:
			found = true
			l.checkBTree(part.At(), r, rule, n.Column)
		case predicate.Tenant:
			found = true
			l.checkBTree(part.At(), r, rule, n.Own.Column)
		case predicate.Grant:
			found = true
			l.checkGIN(part.At(), r, n)
		case predicate.Visible:
			links, linksAt = append(links, n), append(linksAt, part.At())
		}
	}
	hasLinkIndex := func(n predicate.Visible) bool { return hasIndex(r, rule, linkFromColumns(n)) }
	if !found && len(links) > 0 && !slices.ContainsFunc(links, hasLinkIndex) {
		l.checkBTree(linksAt[0], r, rule, linkFromColumns(links[0])...)
	}
	l.checkLinkIndexes(rows, r)
}

// linkFromColumns returns the row's own columns at which a link starts.
func linkFromColumns(n predicate.Visible) []string {
	out := []string{n.FromColumn}
	for _, pair := range n.MorePairs {
		out = append(out, pair.FromColumn)
	}
	return out
}

// checkLinkIndexes proposes indexes for all links in a rule, at any depth of its blocks.
func (l *linter) checkLinkIndexes(b block, row *catalog.Relation) {
	switch b := b.(type) {
	case allBlock:
		for _, part := range b.parts {
			l.checkLinkIndexes(part, row)
		}
	case anyBlock:
		for _, part := range b.parts {
			l.checkLinkIndexes(part, row)
		}
	case consentBlock:
		if n, ok := l.recompileBlock(b, row).(predicate.Consent); ok {
			for i, step := range n.Steps {
				l.checkBTree(b.subjectLinks[i].place, step.Relation, nil, stepColumns(step)...)
			}
		}
		if n, ok := l.recompileBlock(b, row).(predicate.RegistryConsent); ok {
			for i, step := range n.Subjects.Steps {
				l.checkBTree(b.subjectLinks[i].place, step.Relation, nil, stepColumns(step)...)
			}
		}
		if n, ok := l.recompileBlock(b, row).(predicate.RecordedConsent); ok {
			for i, step := range n.Steps {
				l.checkBTree(b.subjectLinks[i].place, step.Relation, nil, stepColumns(step)...)
			}
			record := b.records.record
			l.checkIDIndex(record.place, n.Record.Relation, n.Record.Rows, n.Record.GrantorColumn, n.Record.MatchedColumns)
			if g := n.Record.Guardians; g != nil {
				l.checkIDIndex(record.guardians.place, g.Relation, g.Rows, g.SubjectColumn, g.MatchedColumns)
			}
		}
	case derivedBlock:
		if n, ok := l.recompileBlock(b, row).(predicate.Derived); ok {
			for i, step := range n.Steps {
				l.checkBTree(b.from[i].place, step.Relation, nil, stepColumns(step)...)
			}
			for _, part := range b.where {
				l.checkLinkIndexes(part, n.SourceTable())
			}
		}
	case visibleBlock:
		if n, ok := l.recompileBlock(b, row).(predicate.Visible); ok {
			l.checkBTree(b.link.place, n.Relation, n.Rows,
				stepColumns(predicate.Step{Column: n.Column, MorePairs: n.MorePairs})...)
		}
	case notBlock:
		if b.part != nil {
			l.checkLinkIndexes(b.part, row)
		}
	case sharedBlock:
		l.checkRevokedIndexes(b, row)
	}
}

// checkRevokedIndexes proposes an index that leaves out revoked records, and an index on the column by which a row says
// that it is shared. Without them, PostgreSQL reads revoked records only to filter them out.
func (l *linter) checkRevokedIndexes(b sharedBlock, row *catalog.Relation) {
	n, ok := l.recompileBlock(b, row).(predicate.All)
	if !ok {
		return
	}
	for _, part := range n {
		link, ok := part.(predicate.Visible)
		if !ok || b.revokedColumn == "" {
			continue
		}
		r := link.Relation
		hasRevoked := func(columns []string) bool { return slices.Contains(columns, b.revokedColumn) }
		isSameType := slices.ContainsFunc(r.BTrees, func(i catalog.BTree) bool { return hasRevoked(i.Columns) }) ||
			slices.ContainsFunc(r.PartialBTrees, func(i catalog.PartialBTree) bool { return implies(r, link.Rows, i.Where) })
		if isSameType {
			continue
		}
		where := catalog.QuoteIdent(b.revokedColumn) + " IS NULL"
		if c := r.Column(b.revokedColumn); c != nil && c.Type == "boolean" {
			where = "NOT " + catalog.QuoteIdent(b.revokedColumn)
		}
		var key []string
		for _, name := range stepColumns(predicate.Step{Column: link.Column, MorePairs: link.MorePairs}) {
			key = append(key, catalog.QuoteIdent(name))
		}
		l.proposeIndex(b.revokedAt, r, "("+strings.Join(key, ", ")+") WHERE "+where,
			"no index of %s leaves out the records that are revoked (%s), which the rule reads then as well", r.Name, b.revokedColumn)
	}
	if b.active != "" && !slices.ContainsFunc(row.PartialBTrees,
		func(i catalog.PartialBTree) bool { return implies(row, n, i.Where) }) {
		l.checkBTree(b.activeAt, row, n, b.active)
	}
}

func stepColumns(s predicate.Step) []string {
	out := []string{s.Column}
	for _, pair := range s.MorePairs {
		out = append(out, pair.Column)
	}
	return out
}

// checkBTree proposes an index unless an existing index begins with one of the columns.
func (l *linter) checkBTree(position place, r *catalog.Relation, condition predicate.Node, columns ...string) {
	if hasIndex(r, condition, columns) {
		return
	}
	quoted := make([]string, 0, len(columns))
	for _, name := range columns {
		quoted = append(quoted, catalog.QuoteIdent(name))
	}
	if message := "no index of %s begins with "; len(columns) == 1 {
		l.proposeIndex(position, r, "("+quoted[0]+")", message+"%s, by which the rule looks rows up", r.Name, columns[0])
	} else {
		l.proposeIndex(position, r, "("+strings.Join(quoted, ", ")+")", message+"one of %s, by which the rule looks rows up",
			r.Name, strings.Join(columns, ", "))
	}
}

// hasIndex tells whether an index begins with one of the columns. A partial index counts only if its predicate follows
// from the condition, which all rows in question meet.
func hasIndex(r *catalog.Relation, condition predicate.Node, columns []string) bool {
	return slices.ContainsFunc(r.BTrees, func(i catalog.BTree) bool {
		return len(i.Columns) > 0 && slices.Contains(columns, i.Columns[0])
	}) ||
		slices.ContainsFunc(r.PartialBTrees, func(i catalog.PartialBTree) bool {
			return slices.Contains(columns, i.Columns[0]) && implies(r, condition, i.Where)
		})
}

// implies tells whether the predicate of a partial index follows from a condition. It recognises predicates that
// compare one column with NULL, a boolean or a word. It returns false for all other predicates.
func implies(r *catalog.Relation, condition predicate.Node, where string) bool {
	switch n := condition.(type) {
	case predicate.All:
		return slices.ContainsFunc(n, func(part predicate.Node) bool { return implies(r, part, where) })
	case predicate.Status:
		name := catalog.QuoteIdent(n.Column)
		if c := r.Column(n.Column); c != nil && c.Type == "boolean" {
			if n.Value == "true" {
				return where == name || where == "("+name+" = true)" || where == "("+name+" IS TRUE)"
			}
			return where == "(NOT "+name+")" || where == "("+name+" = false)" || where == "("+name+" IS FALSE)"
		}
		for _, column := range []string{name, "(" + name + ")::text"} {
			rest, ok := strings.CutPrefix(where, "("+column+" = "+catalog.QuoteLiteral(n.Value)+"::")
			if kind, closed := strings.CutSuffix(rest, ")"); ok && closed && !strings.ContainsAny(kind, "()'=") {
				return true
			}
		}
	case predicate.SQL:
		return expressionImplies(n.Expr, where)
	}
	return false
}

func expressionImplies(e predicate.Expr, where string) bool {
	switch e := e.(type) {
	case predicate.And:
		return slices.ContainsFunc(e, func(part predicate.Expr) bool { return expressionImplies(part, where) })
	case predicate.IsTest:
		column, ok := e.Operand.(predicate.Column)
		return ok && e.Keyword == "NULL" && where == "("+catalog.QuoteIdent(column.Name)+" IS NULL)"
	}
	return false
}

// checkIDIndex proposes an index that finds an id in the rows to which a link leads, if there is none.
func (l *linter) checkIDIndex(position place, r *catalog.Relation, condition predicate.Node, id string,
	match []predicate.ColumnPair) {
	var equal, quoted []string
	for _, p := range match {
		equal = append(equal, p.Column)
	}
	equal = append(equal, id)
	var indexColumns [][]string
	for _, index := range r.BTrees {
		indexColumns = append(indexColumns, index.Columns)
	}
	for _, index := range r.PartialBTrees {
		if implies(r, condition, index.Where) {
			indexColumns = append(indexColumns, index.Columns)
		}
	}
	for _, columns := range indexColumns {
		for _, column := range columns {
			if column == id {
				return
			}
			if !slices.Contains(equal, column) {
				break
			}
		}
	}
	for _, name := range equal {
		quoted = append(quoted, catalog.QuoteIdent(name))
	}
	l.proposeIndex(position, r, "("+strings.Join(quoted, ", ")+")",
		"no index of %s begins with %s, by which the rule looks rows up", r.Name, strings.Join(equal, ", "))
}

// checkGIN proposes an index on the elements of a list column, if there is none. JSON in a text column cannot have such
// an index.
func (l *linter) checkGIN(position place, r *catalog.Relation, n predicate.Grant) {
	if n.Form == predicate.GrantJSON || slices.Contains(r.GINColumns, n.Column) {
		return
	}
	l.proposeIndex(position, r, "USING gin ("+catalog.QuoteIdent(n.Column)+")",
		"no GIN index of %s has the elements of %s, by which the rule looks rows up", r.Name, n.Column)
}

// proposeIndex warns of a missing index, once for each index.
func (l *linter) proposeIndex(position place, r *catalog.Relation, label, message string, a ...any) {
	if r.Kind == catalog.ForeignTable {
		return
	}
	sql := "CREATE INDEX CONCURRENTLY ON " + r.Name.SQL() + " " + label + ";"
	if r.Kind == catalog.PartitionedTable { // PostgreSQL cannot index a partitioned table concurrently.
		sql = "CREATE INDEX ON " + r.Name.SQL() + " " + label + ";"
	}
	if l.proposedIndexes[sql] {
		return
	}
	l.proposedIndexes[sql] = true
	suggestion := sql
	if r.Kind == catalog.PartitionedTable {
		suggestion += " it locks out writers: index each partition CONCURRENTLY before"
	}
	l.warn(position, suggestion, message, a...)
}
