package policydiff

import "slices"

// Report is what would change between the old policy and the new one.
type Report struct {
	Database   string  `json:"database"`
	Old        string  `json:"old"`
	New        string  `json:"new"`
	OldVersion string  `json:"old_version"`
	NewVersion string  `json:"new_version"`
	Tables     []Table `json:"tables"` // the tables whose rows, columns or rights differ
	Functions  Change  `json:"functions"`
	Operators  Change  `json:"operators"` // extensions whose operators agents may use
	Views      Change  `json:"views"`
	// names of the contracts, limits, aggregates and so on that differ between the policies
	Restrictions []string `json:"shape"`
	Notes        []string `json:"notes"`
}

// Table is a table whose rows, columns or rights differ.
type Table struct {
	Name      string `json:"table"`
	WasListed bool   `json:"was_listed"`
	IsListed  bool   `json:"is_listed"`
	Columns   Change `json:"columns"`
	Write     Change `json:"write"`
	Rows      []Rows `json:"rows"`
	Groups    []Rows `json:"groups"`    // rows that aggregates count if their groups are large enough
	SameRule  bool   `json:"same_rule"` // both policies have the same rule for every agent, so no row was compared
}

// Change lists what agents gain, what they lose, and what exists under both policies but differs.
type Change struct {
	Gained  []string `json:"gained"`
	Lost    []string `json:"lost"`
	Altered []string `json:"altered"` // each in the form name: before → after
}

func (c Change) isEmpty() bool { return len(c.Gained)+len(c.Lost)+len(c.Altered) == 0 }

// Rows counts the rows that agents with equal attributes see under the old and the new policy.
type Rows struct {
	Agents    []string   `json:"agents"`
	Old       int64      `json:"old"`
	New       int64      `json:"new"`
	Appear    int64      `json:"appear"`
	Disappear int64      `json:"disappear"`
	Key       []string   `json:"key,omitempty"` // the columns of the key by which sample rows are named
	Appearing [][]string `json:"appearing,omitempty"`
	Vanishing [][]string `json:"vanishing,omitempty"`
}

// IsEmpty reports whether the comparison found no difference between the policies.
func (r *Report) IsEmpty() bool {
	return len(r.Tables) == 0 && r.Functions.isEmpty() && r.Operators.isEmpty() && r.Views.isEmpty() && len(r.Restrictions) == 0
}

// Gains reports whether agents certainly gain something, such as a row, a column or a right, and whether another change
// may let them gain something.
func (r *Report) Gains() (areCertain, arePossible bool) {
	addChange := func(c Change) {
		areCertain = areCertain || len(c.Gained) > 0
		arePossible = arePossible || len(c.Altered) > 0
	}
	for _, t := range r.Tables {
		addChange(t.Columns)
		addChange(t.Write)
		areCertain = areCertain || t.IsListed && !t.WasListed
		for _, rows := range append(slices.Clone(t.Rows), t.Groups...) {
			areCertain = areCertain || rows.Appear > 0
		}
	}
	addChange(r.Functions)
	addChange(r.Operators)
	addChange(r.Views)
	return areCertain, arePossible || areCertain || len(r.Restrictions) > 0
}

// MayReveal reports whether an agent may gain something.
func (r *Report) MayReveal() bool {
	_, arePossible := r.Gains()
	return arePossible
}
