package rewrite

import (
	"github.com/pgconsent/pgconsent/catalog"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/sqlstate"
	"github.com/pgconsent/pgconsent/verdict"
)

// Mode says which wall the text carries.
type Mode int

// The modes.
const (
	Both     Mode = iota // predicates in the text where they can be, besides row security
	RLS                  // names are only qualified: row security alone holds
	Injected             // for tests: as Both, and a reference that cannot carry its predicate is refused
)

// Result is what became of a text.
type Result struct {
	Text           string        // what goes upstream, without a signature
	NeedsSignature bool          // the text names gate views: it must be signed
	Position       func(int) int // from a 1-based character position in Text to one in the original

	Accesses    []policy.Access // relations read, those of the catalog under their own names; sorted, each once
	Functions   []string        // functions called by name, qualified, sorted
	Effects     []verdict.Effect
	Fingerprint string // of the shape of the text, literals left out
	Tag         string // "SELECT", "COPY", "BEGIN", "SET" …; "multi" for several statements, "" for none
}

// Rewriter rewrites statements under one policy and one catalog. It is safe for concurrent use.
type Rewriter struct {
	snap *catalog.Snapshot
	pol  *policy.Policy
	mode Mode
}

// New returns a rewriter.
func New(snap *catalog.Snapshot, pol *policy.Policy, mode Mode) *Rewriter {
	return &Rewriter{snap: snap, pol: pol, mode: mode}
}

// Rewrite judges the text of one message and rewrites it. A refusal comes with a Result too, which has the Tag and the
// Fingerprint as far as they are known, for the record, and no Text.
func (r *Rewriter) Rewrite(text string, extended bool) (*Result, *sqlstate.Error) {
	return &Result{}, sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonStatement, "not built yet")
}
