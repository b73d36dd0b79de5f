package policy

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Write says what agents may write in a table. They may change only rows that they see, and must still see them after
// the change.
type Write struct {
	Insert, Update, Delete bool

	Insertable []string // the columns that an INSERT may name, and the stamped columns, in the table's order
	Updatable  []string // the columns that an UPDATE may set
	Stamps     []Stamp
	// the notices of an INSERT that sends another value for a stamped column than the stamp's
	Notices []string
	Lists   []predicate.ListBound // which ids agents may write into columns with lists of ids

	InsertCheck predicate.Node // the condition that a new row must meet
	UpdateCheck predicate.Node // the condition that a changed row must meet

	// the visible rows that agents may change, and the visible rows that they may delete; nil: all visible rows
	UpdatableRows, DeletableRows predicate.Node

	// AffectsOtherRules: the rules of other tables read this table, and it depends on the session which of the visible
	// rows an agent may change.
	AffectsOtherRules bool

	// InsertsAreHidden: because of a stamp, agents never see the rows that they insert.
	InsertsAreHidden bool
}

// Allows tells whether agents may send a command on the table.
func (w *Write) Allows(command string) bool {
	if w == nil {
		return false
	}
	switch command {
	case "INSERT":
		return w.Insert
	case "UPDATE":
		return w.Update
	case "DELETE":
		return w.Delete
	}
	return false
}

// Conditions returns all conditions on rows that agents write. w may be nil.
func (w *Write) Conditions() []predicate.Node {
	if w == nil {
		return nil
	}
	return slices.DeleteFunc([]predicate.Node{w.InsertCheck, w.UpdateCheck, w.UpdatableRows, w.DeletableRows},
		func(n predicate.Node) bool { return n == nil })
}

// describe returns a text with everything that agents may write, for the hash of the policy.
func (w *Write) describe(r *catalog.Relation) string {
	if w == nil {
		return ""
	}
	parts := []string{
		strconv.FormatBool(w.Insert), strconv.FormatBool(w.Update), strconv.FormatBool(w.Delete),
		strconv.FormatBool(w.InsertsAreHidden),
		strconv.Quote(strings.Join(w.Insertable, "\x00")), strconv.Quote(strings.Join(w.Updatable, "\x00")),
		predicate.CheckSQL(w.InsertCheck, r), predicate.CheckSQL(w.UpdateCheck, r),
	}
	for _, s := range w.Stamps {
		parts = append(parts, strconv.Quote(s.Column), strconv.Quote(s.Attribute), strconv.Quote(s.Value))
		if s.Unless != nil {
			parts = append(parts, predicate.CheckSQL(s.Unless, r))
		}
	}
	parts = append(parts, describeBounds(w.Lists))
	for command, rows := range []predicate.Node{w.UpdatableRows, w.DeletableRows} {
		if rows != nil {
			parts = append(parts, strconv.Itoa(command), predicate.CheckSQL(rows, r))
		}
	}
	return strings.Join(parts, " ")
}

// clearAffectsOtherRules sets AffectsOtherRules to false for tables that no other table's rule reads.
func (p *Policy) clearAffectsOtherRules() {
	for _, t := range p.tables {
		if t.Write == nil || !t.Write.AffectsOtherRules {
			continue
		}
		t.Write.AffectsOtherRules = slices.ContainsFunc(p.tables, func(o *Table) bool {
			return o != t && slices.ContainsFunc(predicate.LookupTables(o.Rows),
				func(h predicate.LookupTable) bool { return h.Relation.Name == t.Relation.Name })
		})
	}
}
