package predicate

import (
	"slices"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Row is a row in memory: column to the value's text. A column that is absent is NULL.
type Row map[string]string

// World is the tables and the session in which a predicate is evaluated.
type World struct {
	Tables     map[catalog.Name][]Row
	Attributes map[string]string // the attributes of the session; an absent attribute is NULL
	Sealed     bool
	Now        time.Time // when the statement began
}

// Eval tells whether the row shows. It is the reference model: written to be simple, with its own three-valued logic,
// and used only by tests.
func Eval(n Node, row Row, w World) bool {
	if !w.Sealed {
		return false
	}
	for a := range requiredAttributes(n) {
		if _, ok := w.Attributes[a]; !ok {
			return false
		}
	}
	return judge(n, row, w) == yes
}

// truth is a value of three-valued logic; the order is no < unknown < yes.
type truth int

const (
	no truth = iota
	unknown
	yes
)

func truthOf(b bool) truth {
	if b {
		return yes
	}
	return no
}

func judge(n Node, row Row, w World) truth {
	switch n := n.(type) {
	case Open:
		return yes
	case All:
		out := yes
		for _, part := range n {
			out = min(out, judge(part, row, w))
		}
		if len(n) == 0 {
			return unknown
		}
		return out
	case Any:
		out := no
		for _, part := range n {
			out = max(out, judge(part, row, w))
		}
		if len(n) == 0 {
			return unknown
		}
		return out
	case Not:
		return yes - judge(n.Node, row, w)
	case Own:
		return n.judge(row, w)
	case Tenant:
		return n.judge(row, w)
	case Grant:
		return n.judge(row, w)
	case SQL:
		return n.judge(row, w)
	case Status:
		value, ok := row[n.Column]
		if !ok {
			return unknown
		}
		return truthOf(value == n.Is)
	case Consent:
		return shown(consents(n, row, w))
	case Visible:
		return shown(slices.ContainsFunc(follow(n.step(), row, w), func(target Row) bool {
			return judge(n.Rows, target, w) == yes
		}))
	case Reference:
		return shown(referenceShows(n, row, w))
	case Recorded:
		return shown(everySubjectAgreed(n, row, w))
	case Derived:
		return shown(sourcesShow(n, row, w))
	case Registered:
		return shown(everySubjectConsents(n, row, w))
	default:
		return unknown
	}
}

// shown is the truth of a node that reads other tables: yes or unknown, never no, so that Not over it hides the row.
func shown(b bool) truth {
	if b {
		return yes
	}
	return unknown
}

func consents(n Consent, row Row, w World) bool {
	if len(n.Steps) == 0 {
		return false
	}
	for _, from := range n.Steps[0].fromColumns() {
		if _, ok := row[from]; !ok {
			return false
		}
	}
	reached := follow(n.Steps[0], row, w)
	if n.Required && len(reached) == 0 {
		return false
	}
	for _, step := range n.Steps[1:] {
		var next []Row
		for _, from := range reached {
			to := follow(step, from, w)
			if len(to) == 0 {
				return false
			}
			next = append(next, to...)
		}
		reached = next
	}
	for _, subject := range reached {
		if value, ok := subject[n.Status]; !ok || value != n.Is {
			return false
		}
		if until, ok := subject[n.Expires]; n.Expires != "" && ok && !after(until, w.Now) {
			return false
		}
	}
	return true
}
