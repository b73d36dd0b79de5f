package noninterference

import "strings"

// row is a row in memory: column to the value's text; absent is NULL.
type row map[string]string

// data are the rows of all tables.
type data map[*table][]row

// verdict of a rule on a row: NULL hides, and so does its negation.
type verdict int

const (
	hides verdict = iota
	undecided
	shows
)

func decided(b bool) verdict {
	if b {
		return shows
	}
	return hides
}

// visible tells whether the caller may see a row.
func (d data) visible(t *table, r row, caller map[string]string) bool {
	return t.rule != nil && d.judge(t.rule, r, caller) == shows
}

func (d data) judge(r *rule, at row, caller map[string]string) verdict {
	value, known := at[r.column]
	switch r.kind {
	case "open":
		return shows
	case "all", "rows":
		out := shows
		for _, part := range r.parts {
			out = min(out, d.judge(part, at, caller))
		}
		return out
	case "any":
		out := hides
		for _, part := range r.parts {
			out = max(out, d.judge(part, at, caller))
		}
		return out
	case "sql":
		return conditions[r.condition].judge(at, caller)
	case "not":
		return shows - d.judge(r.parts[0], at, caller)
	case "visible", "consent", "shared", "registry", "derived":
		// What reads other tables shows or does not; its negation never shows.
		if r.kind == "visible" && d.pointsToVisible(r, at, caller) || r.kind == "consent" && d.allConsent(r, at) ||
			r.kind == "shared" && d.isShared(r, at) || r.kind == "registry" && d.byRecords(r, at, caller) ||
			r.kind == "derived" && d.isMadeWell(r, at, caller, nil) {
			return shows
		}
		return undecided
	}
	if !known {
		return map[bool]verdict{true: shows, false: undecided}[r.kind == "tenant" && r.shared == "null"]
	}
	switch r.kind {
	case "own":
		return decided(value == caller[r.attributes[0]])
	case "status":
		return decided(value == r.word)
	case "tenant":
		return decided(value == caller[r.attributes[0]] || r.shared == "word" && value == r.word)
	case "grant":
		for _, granted := range elements(value) {
			if r.word != "" && granted == r.word {
				return shows
			}
			for _, a := range r.attributes {
				if strings.HasPrefix(caller[a], "{") {
					for _, mine := range elements(caller[a]) {
						if granted == mine {
							return shows
						}
					}
				} else if granted == caller[a] {
					return shows
				}
			}
		}
	}
	return hides
}

func (d data) pointsToVisible(r *rule, at row, caller map[string]string) bool {
	value, known := at[r.column]
	for _, target := range d[r.target] {
		if known && target[r.targetColumn] == value && d.visible(r.target, target, caller) {
			return true
		}
	}
	return false
}

func (d data) isShared(r *rule, at row) bool {
	value, known := at[r.column]
	for _, target := range d[r.target] {
		if state, stated := target["state"]; known && target[r.targetColumn] == value && stated && state == r.word {
			return true
		}
	}
	return false
}

func (d data) allConsent(r *rule, at row) bool {
	value, known := at[r.column]
	if !known {
		return false
	}
	consented := func(subject string) bool {
		for _, target := range d[r.target] {
			if target[r.targetColumn] == subject {
				state, known := target["state"]
				until, ends := target["until"]
				return known && state == r.word && !(r.expires && ended(until, ends))
			}
		}
		return false
	}
	if r.link == nil {
		return consented(value)
	}
	for _, link := range d[r.link] {
		if link["item"] == value && !consented(link["subject"]) {
			return false
		}
	}
	return true
}

// elements takes a plain array literal apart.
func elements(literal string) []string {
	inside := strings.TrimSuffix(strings.TrimPrefix(literal, "{"), "}")
	if inside == "" {
		return nil
	}
	return strings.Split(inside, ",")
}
