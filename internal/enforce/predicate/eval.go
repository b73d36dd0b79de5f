package predicate

import (
	"slices"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Row is a row in memory: the text of each column's value, by the column's name. A column that is missing in the map is
// NULL.
type Row map[string]string

// World has the tables and the session for which tests evaluate a predicate in memory.
type World struct {
	Tables     map[catalog.Name][]Row
	Attributes map[string]string // the attributes of the session; an absent attribute is NULL
	Sealed     bool
	Now        time.Time // the time at which the statement began
}

// Eval reports whether the row is visible. It is the reference model for tests: simple code with its own three-valued
// logic.
func Eval(n Node, row Row, w World) bool {
	if !w.Sealed {
		return false
	}
	for a := range requiredAttributes(n) {
		if _, ok := w.Attributes[a]; !ok {
			return false
		}
	}
	return evalNode(n, row, w) == truthYes
}

// truth is a value of three-valued logic, in the order no < unknown < yes.
type truth int

const (
	truthNo truth = iota
	truthUnknown
	truthYes
)

func truthOf(b bool) truth {
	if b {
		return truthYes
	}
	return truthNo
}

func evalNode(node Node, row Row, w World) truth {
	switch n := node.(type) {
	case Open:
		return truthYes
	case All:
		out := truthYes
		for _, part := range n {
			out = min(out, evalNode(part, row, w))
		}
		if len(n) == 0 {
			return truthUnknown
		}
		return out
	case Any:
		out := truthNo
		for _, part := range n {
			out = max(out, evalNode(part, row, w))
		}
		if len(n) == 0 {
			return truthUnknown
		}
		return out
	case Not:
		return truthYes - evalNode(n.Node, row, w)
	case Own:
		return n.evalOwn(row, w)
	case Tenant:
		return n.evalTenant(row, w)
	case Grant:
		return n.evalGrant(row, w)
	case SQL:
		return n.evalCondition(row, w)
	case Status:
		value, ok := row[n.Column]
		if !ok {
			return truthUnknown
		}
		return truthOf(value == n.Value)
	case Consent:
		return yesOrUnknown(hasConsent(n, row, w))
	case Visible:
		return yesOrUnknown(slices.ContainsFunc(followStep(n.step(), row, w), func(target Row) bool {
			return evalNode(n.Rows, target, w) == truthYes
		}))
	case Reference:
		return yesOrUnknown(isReferenceShown(n, row, w))
	case RecordedConsent:
		return yesOrUnknown(everySubjectAgreed(n, row, w))
	case Derived:
		return yesOrUnknown(areSourcesVisible(n, row, w))
	case RegistryConsent:
		return yesOrUnknown(everySubjectConsents(n, row, w))
	default:
		return truthUnknown
	}
}

// yesOrUnknown converts the result of a node that reads other tables into true or unknown, never false. So a Not around
// such a node hides the row.
func yesOrUnknown(b bool) truth {
	if b {
		return truthYes
	}
	return truthUnknown
}

// hasConsent evaluates a Consent node over rows in memory; see [Eval].
func hasConsent(n Consent, row Row, w World) bool {
	if len(n.Steps) == 0 {
		return false
	}
	for _, from := range n.Steps[0].fromColumns() {
		if _, ok := row[from]; !ok {
			return false
		}
	}
	reached := followStep(n.Steps[0], row, w)
	if n.FirstRequired && len(reached) == 0 {
		return false
	}
	for _, step := range n.Steps[1:] {
		var next []Row
		for _, from := range reached {
			to := followStep(step, from, w)
			if len(to) == 0 {
				return false
			}
			next = append(next, to...)
		}
		reached = next
	}
	for _, subject := range reached {
		if value, ok := subject[n.StatusColumn]; !ok || value != n.AgreedStatus {
			return false
		}
		if until, ok := subject[n.ExpiryColumn]; n.ExpiryColumn != "" && ok && !isLaterThan(until, w.Now) {
			return false
		}
	}
	return true
}
