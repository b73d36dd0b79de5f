package why

// Answer says why an agent sees a row or does not.
type Answer struct {
	Agent        string            `json:"agent"`
	Table        string            `json:"table"`
	KeyCondition string            `json:"asked"` // the key, as an SQL condition
	Attributes   map[string]string `json:"attributes"`
	Missing      []string          `json:"missing"` // attributes that the session does not have
	Listed       bool              `json:"listed"`  // the policy lists the table
	// the policy lists the table and does not enforce its rule yet, so agents read every row
	Observed bool     `json:"observed,omitempty"`
	Rows     []Row    `json:"rows"`    // the rows with the key; empty: there is no such row
	More     bool     `json:"more"`    // the table has more rows with the key
	Columns  []Column `json:"columns"` // the hidden and the masked columns
	// restrictive row policies that pgconsent has not made and that also apply to the agent's role
	ForeignPolicies []string `json:"foreign"`

	// RowSecurity is how many of the rows the agent's role sees under row security; nil: nobody asked the database, and
	// RowSecurityNotAsked says why.
	RowSecurity         *int   `json:"row_security"`
	RowSecurityNotAsked string `json:"unasked,omitempty"`
}

// VisibleRows returns how many of the rows the rule shows.
func (a *Answer) VisibleRows() int {
	n := 0
	for _, r := range a.Rows {
		if r.Visible {
			n++
		}
	}
	return n
}

// AgreesWithRowSecurity reports whether row security, where it was tested, shows as many rows as the rule does.
func (a *Answer) AgreesWithRowSecurity() bool {
	return a.RowSecurity == nil || a.More || *a.RowSecurity == a.VisibleRows()
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
	TakesRow bool    `json:"takes"` // the aggregate's rule takes the row, and its group is closed if it must be
	GroupKey []Value `json:"cell"`  // the dimensions, as groups have them
	Subject  string  `json:"subject"`
	Subjects int64   `json:"subjects"` // number of different subjects in the group
	Minimum  int     `json:"minimum"`
	// largest share of one subject, in percent. A group in which a subject has more does not count; this is not checked
	// here.
	Share int `json:"share,omitempty"`
}

// IsCounted reports whether aggregates count the row, if the share of one subject is not too large.
func (g *Group) IsCounted() bool { return g.TakesRow && g.Subjects >= int64(g.Minimum) }

// Block is a block of the rule and whether it holds for the row.
type Block struct {
	File    string   `json:"file"`
	Line    int      `json:"line"`
	Column  int      `json:"column"`
	Block   string   `json:"block"`
	Holds   bool     `json:"holds"`
	Unknown bool     `json:"unknown,omitempty"` // neither the block nor its negation holds, since something is NULL
	Says    string   `json:"says,omitempty"`
	Parts   []*Block `json:"parts,omitempty"`
	Records []Record `json:"records,omitempty"` // the records that the block read
	Targets []Row    `json:"targets,omitempty"` // rows that must be visible
	More    bool     `json:"more,omitempty"`    // there are more records or targets than listed
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

// Value is the value of a column as text; nil means NULL.
type Value struct {
	Column string  `json:"column"`
	Value  *string `json:"value"`
}

// Column is a column whose values agents do not see unchanged.
type Column struct {
	Name string `json:"name"`
	How  string `json:"how"` // the word hidden, or the mask
}
