package why

// Answer says why an agent sees a row or does not.
type Answer struct {
	Agent        string            `json:"agent"`
	Table        string            `json:"table"`
	KeyCondition string            `json:"asked"` // the key that the question names, as an SQL condition
	Attributes   map[string]string `json:"attributes"`
	Missing      []string          `json:"missing"` // attributes that the session does not have
	Listed       bool              `json:"listed"`  // whether the policy lists the table
	// the policy lists the table but only observes its rule, so agents read every row
	Observed bool     `json:"observed,omitempty"`
	Rows     []Row    `json:"rows"`    // the rows with this key; empty: the table has none
	More     bool     `json:"more"`    // the table has more rows with this key than Rows
	Columns  []Column `json:"columns"` // the hidden and the masked columns
	// restrictive row policies of others that also apply to the agent role
	ForeignPolicies []string `json:"foreign"`

	// RowSecurity is how many of the rows the agent role sees under row security; nil: this was not tested, for the reason
	// in RowSecurityNotAsked.
	RowSecurity         *int   `json:"row_security"`
	RowSecurityNotAsked string `json:"unasked,omitempty"`
}

// VisibleRows returns how many of the rows are visible by the rule.
func (a *Answer) VisibleRows() int {
	n := 0
	for _, r := range a.Rows {
		if r.Visible {
			n++
		}
	}
	return n
}

// AgreesWithRowSecurity reports whether row security shows as many rows as the rule, or was not tested.
func (a *Answer) AgreesWithRowSecurity() bool {
	return a.RowSecurity == nil || a.More || *a.RowSecurity == a.VisibleRows()
}

// Row is a row, whether it is visible, and why.
type Row struct {
	Table   string  `json:"table"`
	Key     []Value `json:"key"`
	Visible bool    `json:"visible"`
	Besides bool    `json:"besides,omitempty"` // the row exists, but does not meet the block's additional condition
	Rule    *Block  `json:"rule"`
	// the group in which aggregates count the row, if the table's policy has aggregates
	Group *Group `json:"group,omitempty"`
}

// Group is the group in which a row counts in aggregates.
type Group struct {
	TakesRow bool    `json:"takes"` //  the aggregate's condition includes the row, and its period is over if it must be.
	GroupKey []Value `json:"cell"`  // the values of the dimensions that identify the group
	Subject  string  `json:"subject"`
	Subjects int64   `json:"subjects"` // number of different subjects in the group
	Minimum  int     `json:"minimum"`
	// the largest share that one subject may have in a group, in percent; aggregates leave out a group that exceeds it,
	// which is not checked here
	Share int `json:"share,omitempty"`
}

// IsCounted reports whether aggregates count the row, unless one subject's share of the group is too large.
func (g *Group) IsCounted() bool { return g.TakesRow && g.Subjects >= int64(g.Minimum) }

// Block is a block of the rule, and whether it holds for the row.
type Block struct {
	File    string   `json:"file"`
	Line    int      `json:"line"`
	Column  int      `json:"column"`
	Block   string   `json:"block"`
	Holds   bool     `json:"holds"`
	Unknown bool     `json:"unknown,omitempty"` // neither the block nor its negation holds, since a value is NULL
	Says    string   `json:"says,omitempty"`
	Parts   []*Block `json:"parts,omitempty"`
	Records []Record `json:"records,omitempty"` // the records that the block read
	Targets []Row    `json:"targets,omitempty"` // the rows of which the block requires one to be visible
	More    bool     `json:"more,omitempty"`    // the block has more records or targets than listed
}

// Record is a row of another table that a block reads.
type Record struct {
	Table string  `json:"table"`
	Key   []Value `json:"key"`
	Via   []Value `json:"via,omitempty"` // the key of the row in the link table that leads to the record
	Link  string  `json:"link,omitempty"`
	Holds bool    `json:"holds"`
	Says  string  `json:"says"`
}

// Value is the value of a column as text; nil means NULL.
type Value struct {
	Column string  `json:"column"`
	Value  *string `json:"value"`
}

// Column is a column that the policy hides from agents or masks.
type Column struct {
	Name string `json:"name"`
	How  string `json:"how"` // "hidden", or how the value is masked
}
