package policy

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/catalog"
	"github.com/pgconsent/pgconsent/predicate"
)

// indexes warns of columns by which a rule looks rows up and that no index has, with the statement that makes one.
func (l *linter) indexes(t *compiling) {
	for _, part := range flat(t.decl.rows, false) {
		switch n := l.node(part, t.relation).(type) {
		case predicate.Own:
			l.btree(part.at(), t.relation, n.Column)
		case predicate.Tenant:
			l.btree(part.at(), t.relation, n.Own.Column)
		case predicate.Grant:
			l.inverted(part.at(), t.relation, n)
		}
	}
	l.lookups(t.decl.rows, t.relation)
}

// lookups goes through all parts, since a link is followed wherever it stands.
func (l *linter) lookups(b block, row *catalog.Relation) {
	switch b := b.(type) {
	case allBlock:
		for _, part := range b.parts {
			l.lookups(part, row)
		}
	case anyBlock:
		for _, part := range b.parts {
			l.lookups(part, row)
		}
	case consentBlock:
		if n, ok := l.node(b, row).(predicate.Consent); ok {
			for i, step := range n.Steps {
				l.btree(b.every[i].place, step.Relation, columnsOf(step)...)
			}
		}
		if n, ok := l.node(b, row).(predicate.Recorded); ok {
			for i, step := range n.Steps {
				l.btree(b.every[i].place, step.Relation, columnsOf(step)...)
			}
			record := b.recorded.record
			l.id(record.place, n.Record.Relation, n.Record.Grantor, n.Record.Match)
			if g := n.Record.Guardians; g != nil {
				l.id(record.guardians.place, g.Relation, g.Subject, g.Match)
			}
		}
	case visibleBlock:
		if n, ok := l.node(b, row).(predicate.Visible); ok {
			l.btree(b.link.place, n.Relation, columnsOf(predicate.Step{Column: n.Column, And: n.And})...)
		}
	}
}

func columnsOf(s predicate.Step) []string {
	out := []string{s.Column}
	for _, pair := range s.And {
		out = append(out, pair.Column)
	}
	return out
}

// btree asks for an index that begins with one of the columns.
func (l *linter) btree(at place, r *catalog.Relation, columns ...string) {
	if slices.ContainsFunc(r.Indexes, func(i catalog.BTree) bool { return len(i.Columns) > 0 && slices.Contains(columns, i.Columns[0]) }) {
		return
	}
	quoted := make([]string, 0, len(columns))
	for _, name := range columns {
		quoted = append(quoted, catalog.QuoteIdent(name))
	}
	l.propose(at, r, strings.Join(columns, ", "), "("+strings.Join(quoted, ", ")+")")
}

// id asks for an index that finds an id among the rows that a link leads to.
func (l *linter) id(at place, r *catalog.Relation, id string, match []predicate.Pair) {
	var equal, quoted []string
	for _, p := range match {
		equal = append(equal, p.Column)
	}
	equal = append(equal, id)
	for _, index := range r.Indexes {
		for _, column := range index.Columns {
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
	l.propose(at, r, strings.Join(equal, ", "), "("+strings.Join(quoted, ", ")+")")
}

// inverted asks for an index of the column's elements. JSON in a text has none that could serve.
func (l *linter) inverted(at place, r *catalog.Relation, n predicate.Grant) {
	if n.Form == predicate.GrantJSON || slices.Contains(r.Inverted, n.Column) {
		return
	}
	l.propose(at, r, n.Column, "USING gin ("+catalog.QuoteIdent(n.Column)+")")
}

func (l *linter) propose(at place, r *catalog.Relation, columns, what string) {
	if r.Kind == catalog.ForeignTable {
		return
	}
	sql := "CREATE INDEX CONCURRENTLY ON " + r.Name.SQL() + " " + what + ";"
	if r.Kind == catalog.PartitionedTable { // which cannot be indexed concurrently
		sql = "CREATE INDEX ON " + r.Name.SQL() + " " + what + ";"
	}
	if l.indexed[sql] {
		return
	}
	l.indexed[sql] = true
	suggestion := sql
	if r.Kind == catalog.PartitionedTable {
		suggestion += " it locks out writers: index each partition CONCURRENTLY before"
	}
	l.warn(at, suggestion, "no index of %s begins with %s, by which the rule looks rows up", r.Name, columns)
}
