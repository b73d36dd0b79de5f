package predicate

import "github.com/pgconsent/pgconsent/catalog"

// Row is a row in memory: column to the value's text. A column that is absent is NULL.
type Row map[string]string

// World is what a predicate is evaluated in.
type World struct {
	Tables     map[catalog.Name][]Row
	Attributes map[string]string // of the session; absent: NULL
	Sealed     bool
}

// Eval tells whether the row shows. It is the reference model: written for plainness, with two-valued logic of its own,
// and used by tests only.
func Eval(n Node, row Row, w World) bool {
	if !w.Sealed {
		return false
	}
	for a := range attributes(n) {
		if _, ok := w.Attributes[a]; !ok {
			return false
		}
	}
	return shows(n, row, w)
}

func shows(n Node, row Row, w World) bool {
	switch n := n.(type) {
	case Open:
		return true
	case All:
		for _, part := range n {
			if !shows(part, row, w) {
				return false
			}
		}
		return len(n) > 0
	case Any:
		for _, part := range n {
			if shows(part, row, w) {
				return true
			}
		}
		return false
	case Own:
		value, ok := row[n.Column]
		attribute, sealed := w.Attributes[n.Attribute]
		return ok && sealed && value == attribute
	case Status:
		value, ok := row[n.Column]
		return ok && value == n.Is
	case Consent:
		return consents(n, row, w)
	case Visible:
		for _, target := range follow(Step{n.Relation, n.Column, n.From}, row, w) {
			if shows(n.Rows, target, w) {
				return true
			}
		}
		return false
	default:
		return false
	}
}

func consents(n Consent, row Row, w World) bool {
	if len(n.Steps) == 0 {
		return false
	}
	if _, ok := row[n.Steps[0].From]; !ok {
		return false
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
	}
	return true
}

func follow(step Step, row Row, w World) []Row {
	value, ok := row[step.From]
	if !ok {
		return nil
	}
	var out []Row
	for _, candidate := range w.Tables[step.Relation.Name] {
		if v, ok := candidate[step.Column]; ok && v == value {
			out = append(out, candidate)
		}
	}
	return out
}
