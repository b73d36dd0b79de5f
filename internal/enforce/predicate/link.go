package predicate

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// step returns the link of a Visible node as a Step.
func (n Visible) step() Step { return Step{n.Relation, n.Column, n.FromColumn, n.MorePairs} }

// pairs returns all pairs of columns of the link.
func (s Step) pairs() []ColumnPair {
	return append([]ColumnPair{{s.Column, s.FromColumn}}, s.MorePairs...)
}

// Pairs returns all pairs of columns of the link.
func (s Step) Pairs() []ColumnPair { return s.pairs() }

// targetColumns returns the columns of the table to which a link leads. fromColumns returns the columns of the row at
// which the link starts.
func (s Step) targetColumns() []string {
	var out []string
	for _, p := range s.pairs() {
		out = append(out, p.Column)
	}
	return out
}

func (s Step) fromColumns() []string {
	var out []string
	for _, p := range s.pairs() {
		out = append(out, p.FromColumn)
	}
	return out
}

// onSQL returns the SQL condition that the link leads from the row called from to the row called to.
func (s Step) onSQL(to, from string) string {
	var parts []string
	for _, p := range s.pairs() {
		parts = append(parts, equalSQL(columnSQL(to, p.Column), columnSQL(from, p.FromColumn)))
	}
	return strings.Join(parts, " AND ")
}

// LeadsToAtMostOne reports whether the link always leads to at most one row, even inside a transaction. It does so if
// it names the whole primary key of a table, the key is not deferrable, and the table has no children whose rows count
// as its own.
func (s Step) LeadsToAtMostOne() bool {
	r := s.Relation
	if len(r.PrimaryKey) == 0 || !(r.Kind == catalog.PartitionedTable || r.Kind == catalog.Table && !r.HasChildren) {
		return false
	}
	named := s.targetColumns()
	return !slices.ContainsFunc(r.PrimaryKey, func(c string) bool { return !slices.Contains(named, c) }) &&
		slices.ContainsFunc(r.BTrees, func(i catalog.BTree) bool {
			return i.IsUnique && len(i.Columns) == len(r.PrimaryKey) &&
				!slices.ContainsFunc(i.Columns, func(c string) bool { return !slices.Contains(r.PrimaryKey, c) })
		})
}

// JoinCondition returns the condition that the link leads from the row called from to the row called to.
func (s Step) JoinCondition(to, from string) string { return s.onSQL(to, from) }

// startNotNullSQL returns the SQL condition that no column at which the link starts is NULL: NULL equals nothing.
func (s Step) startNotNullSQL(row string) string {
	var parts []string
	for _, from := range s.fromColumns() {
		parts = append(parts, columnSQL(row, from)+" IS NOT NULL")
	}
	return strings.Join(parts, " AND ")
}

// targetNotNullSQL returns the SQL condition that no column to which the link leads is NULL in the row.
func (s Step) targetNotNullSQL(row string) string {
	var parts []string
	for _, to := range s.targetColumns() {
		parts = append(parts, columnSQL(row, to)+" IS NOT NULL")
	}
	return strings.Join(parts, " AND ")
}

// repeatsColumn reports whether a link names a column of its target table twice.
func (s Step) repeatsColumn() bool {
	to := s.targetColumns()
	slices.Sort(to)
	return len(slices.Compact(to)) < len(s.MorePairs)+1
}

func followStep(step Step, row Row, w World) []Row {
	var out []Row
	for _, candidate := range w.Tables[step.Relation.Name] {
		if isLinked(step, row, candidate) {
			out = append(out, candidate)
		}
	}
	return out
}

func isLinked(step Step, row, to Row) bool {
	for _, p := range step.pairs() {
		from, ok := row[p.FromColumn]
		if v, found := to[p.Column]; !ok || !found || v != from {
			return false
		}
	}
	return true
}

// TargetColumns returns the columns of the table to which the link leads.
func (s Step) TargetColumns() []string { return s.targetColumns() }

// StartColumns returns the columns of the row at which the link starts.
func (s Step) StartColumns() []string { return s.fromColumns() }
