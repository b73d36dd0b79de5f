package predicate

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// step is the link of a Visible as a Step.
func (n Visible) step() Step { return Step{n.Relation, n.Column, n.From, n.And} }

// pairs are all pairs of columns of a link.
func (s Step) pairs() []Pair { return append([]Pair{{s.Column, s.From}}, s.And...) }

// Pairs are all pairs of columns of the link.
func (s Step) Pairs() []Pair { return s.pairs() }

// columns are the columns of the table that a link leads to; fromColumns are the columns of the row where it starts.
func (s Step) columns() []string {
	var out []string
	for _, p := range s.pairs() {
		out = append(out, p.Column)
	}
	return out
}

func (s Step) fromColumns() []string {
	var out []string
	for _, p := range s.pairs() {
		out = append(out, p.From)
	}
	return out
}

// onSQL is the condition under which a row is one that the link leads to.
func (s Step) onSQL(to, from string) string {
	var parts []string
	for _, p := range s.pairs() {
		parts = append(parts, equal(column(to, p.Column), column(from, p.From)))
	}
	return strings.Join(parts, " AND ")
}

// LeadsToOne tells whether the link leads to one row at most, inside any transaction: it names the whole primary key,
// of a table whose children do not count among its rows, and the key is not deferred.
func (s Step) LeadsToOne() bool {
	r := s.Relation
	if len(r.PrimaryKey) == 0 || !(r.Kind == catalog.PartitionedTable || r.Kind == catalog.Table && !r.HasChildren) {
		return false
	}
	named := s.columns()
	return !slices.ContainsFunc(r.PrimaryKey, func(c string) bool { return !slices.Contains(named, c) }) &&
		slices.ContainsFunc(r.Indexes, func(i catalog.BTree) bool {
			return i.Unique && len(i.Columns) == len(r.PrimaryKey) &&
				!slices.ContainsFunc(i.Columns, func(c string) bool { return !slices.Contains(r.PrimaryKey, c) })
		})
}

// On is the condition under which the row called to is one that the link leads to from the row called from.
func (s Step) On(to, from string) string { return s.onSQL(to, from) }

// startNotNull is the condition that the link can lead to a row at all: NULL equals nothing.
func (s Step) startNotNull(row string) string {
	var parts []string
	for _, from := range s.fromColumns() {
		parts = append(parts, column(row, from)+" IS NOT NULL")
	}
	return strings.Join(parts, " AND ")
}

func follow(step Step, row Row, w World) []Row {
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
		from, ok := row[p.From]
		if v, found := to[p.Column]; !ok || !found || v != from {
			return false
		}
	}
	return true
}

// Columns are the link's columns in the table that it leads to.
func (s Step) Columns() []string { return s.columns() }

// Froms are the link's columns in the row where it starts.
func (s Step) Froms() []string { return s.fromColumns() }
