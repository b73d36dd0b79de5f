package audit

import (
	"bytes"
	"slices"
	"sync/atomic"
)

// StatementEncoding keeps the encoded members of decisions about one statement, which are mostly the same for each of
// its executions. A decision that differs in one of them is encoded anew, so what it writes never depends on what is
// kept. Several goroutines may use it.
type StatementEncoding struct {
	wasUsed atomic.Bool // a decision has been encoded; what is executed once only keeps nothing
	kept    atomic.Pointer[keptEncoding]
}

// keptEncoding has the encoded members of a statement. It does not change.
type keptEncoding struct {
	decision Decision // a copy with lists of its own, which nobody else can change
	members  []byte
}

// appendStatement appends the members of d that [Decision.appendStatement] encodes. e may be nil.
func (e *StatementEncoding) appendStatement(dst []byte, d *Decision) []byte {
	if e == nil {
		return d.appendStatement(dst)
	}
	kept := e.kept.Load()
	if kept != nil && kept.decision.hasSameStatement(d) {
		return append(dst, kept.members...)
	}
	start := len(dst)
	dst = d.appendStatement(dst)
	// Only the first encoding is kept: decisions that take turns would otherwise replace that of one another each time.
	if e.wasUsed.Swap(true) && kept == nil {
		e.kept.Store(&keptEncoding{d.copyStatement(), bytes.Clone(dst[start:])})
	}
	return dst
}

// hasSameStatement reports whether the members of both that appendStatement encodes are equal.
func (d *Decision) hasSameStatement(other *Decision) bool {
	return d.Protocol == other.Protocol && d.Tag == other.Tag && d.Fingerprint == other.Fingerprint &&
		d.Verdict == other.Verdict && d.SQLState == other.SQLState && d.Reason == other.Reason && d.Path == other.Path &&
		d.Policy == other.Policy && d.Catalog == other.Catalog &&
		slices.EqualFunc(d.Tables, other.Tables, Table.equal) && slices.Equal(d.Functions, other.Functions) &&
		slices.Equal(d.Contracts, other.Contracts)
}

func (t Table) equal(other Table) bool {
	return t.Name == other.Name && slices.Equal(t.Columns, other.Columns) && t.DataSource == other.DataSource &&
		t.ByKey == other.ByKey && t.IsWritten == other.IsWritten
}

// copyStatement returns a copy of the members that appendStatement encodes.
func (d *Decision) copyStatement() Decision {
	c := Decision{Protocol: d.Protocol, Tag: d.Tag, Fingerprint: d.Fingerprint, Tables: slices.Clone(d.Tables),
		Functions: slices.Clone(d.Functions), Contracts: slices.Clone(d.Contracts), Verdict: d.Verdict, SQLState: d.SQLState,
		Reason: d.Reason, Path: d.Path, Policy: d.Policy, Catalog: d.Catalog}
	for i := range c.Tables {
		c.Tables[i].Columns = slices.Clone(c.Tables[i].Columns)
	}
	return c
}
