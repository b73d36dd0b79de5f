package why

// Answer is why an agent sees a row or does not.
type Answer struct {
	Agent      string            `json:"agent"`
	Table      string            `json:"table"`
	Condition  string            `json:"asked"` // the key, as a condition
	Attributes map[string]string `json:"attributes"`
	Missing    []string          `json:"missing"` // attributes that the session does not have
	Listed     bool              `json:"listed"`  // the policy lists the table
	// the policy lists the table and does not enforce its rule yet, so agents read every row
	Observed bool     `json:"observed,omitempty"`
	Rows     []Row    `json:"rows"`    // the rows with the key; none: there is no such row
	More     bool     `json:"more"`    // the table has more rows with the key
	Columns  []Column `json:"columns"` // the hidden and the masked columns
	// restrictive row policies that pgconsent has not made and that also apply to the agent's role
	ForeignPolicies []string `json:"foreign"`

	// RowSecurity is how many of the rows the agent's role sees under row security; nil: nobody asked the database, and
	// RowSecurityNotAsked says why.
	RowSecurity         *int   `json:"row_security"`
	RowSecurityNotAsked string `json:"unasked,omitempty"`
}

// Shown is how many of the rows show by the rule.
func (a *Answer) Shown() int {
	n := 0
	for _, r := range a.Rows {
		if r.Visible {
			n++
		}
	}
	return n
}

// AgreesWithRowSecurity tells whether row security, where it was tested, shows as many rows as the rule does.
func (a *Answer) AgreesWithRowSecurity() bool {
	return a.RowSecurity == nil || a.More || *a.RowSecurity == a.Shown()
}

// Row is a row with the verdict on it.
type Row struct {
	Table   string  `json:"table"`
	Key     []Value `json:"key"`
	Visible bool    `json:"visible"`
	Besides bool    `json:"besides,omitempty"` // the row exists, but does not meet a further condition of the block
	Rule    *Block  `json:"rule"`
	// the group that a hidden row counts in, if the table has rows that count in groups
	Group *Group `json:"group,omitempty"`
}

// Group is the group in which a row counts in aggregates.
type Group struct {
	Takes    bool    `json:"takes"` // the aggregate's rule takes the row, and its group is closed if it must be
	Cell     []Value `json:"cell"`  // the dimensions, as groups have them
	Subject  string  `json:"subject"`
	Subjects int64   `json:"subjects"` // different ones in the group
	Minimum  int     `json:"minimum"`
	// in percent; a group of which one subject is more does not count, which is not looked at
	Share int `json:"share,omitempty"`
}

// Counts tells whether aggregates count the row, but for the share of one subject.
func (g *Group) Counts() bool { return g.Takes && g.Subjects >= int64(g.Minimum) }

// Block is a block of the rule and whether it holds for the row.
type Block struct {
	File    string   `json:"file"`
	Line    int      `json:"line"`
	Column  int      `json:"column"`
	Block   string   `json:"block"`
	Holds   bool     `json:"holds"`
	Unknown bool     `json:"unknown,omitempty"` // neither it nor its contrary holds: something is NULL
	Says    string   `json:"says,omitempty"`
	Parts   []*Block `json:"parts,omitempty"`
	Records []Record `json:"records,omitempty"` // the records that the block read
	Targets []Row    `json:"targets,omitempty"` // rows that must be visible
	More    bool     `json:"more,omitempty"`    // records or targets are left out
}

// Record is a row of another table that a block looked at.
type Record struct {
	Table string  `json:"table"`
	Key   []Value `json:"key"`
	Via   []Value `json:"via,omitempty"` // the key of the link that leads to it
	Link  string  `json:"link,omitempty"`
	Holds bool    `json:"holds"`
	Says  string  `json:"says"`
}

// Value is a column's value; nil is NULL.
type Value struct {
	Column string  `json:"column"`
	Value  *string `json:"value"`
}

// Column is a column that does not come out as it is.
type Column struct {
	Name string `json:"name"`
	How  string `json:"how"` // hidden, or the mask
}
