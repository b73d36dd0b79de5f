package noninterference

import "strings"

// row is a row in the model: the text of each column's value. A column that is missing is NULL.
type row map[string]string

// data has the rows of all tables in the model.
type data map[*table][]row

// verdict is the result of a rule for a row, in three-valued logic. A row with rowUnknown is hidden, also by the
// negation of the rule.
type verdict int

const (
	rowHidden verdict = iota
	rowUnknown
	rowShown
)

func verdictOf(b bool) verdict {
	if b {
		return rowShown
	}
	return rowHidden
}

// isVisible reports whether the caller may see a row.
func (d data) isVisible(t *table, r row, caller map[string]string) bool {
	return t.rule != nil && d.judge(t.rule, r, caller) == rowShown
}

func (d data) judge(r *rule, at row, caller map[string]string) verdict {
	value, isSet := at[r.column]
	switch r.kind {
	case "open":
		return rowShown
	case "all", "rows":
		out := rowShown
		for _, part := range r.parts {
			out = min(out, d.judge(part, at, caller))
		}
		return out
	case "any":
		out := rowHidden
		for _, part := range r.parts {
			out = max(out, d.judge(part, at, caller))
		}
		return out
	case "sql":
		return sqlRules[r.conditionIndex].judge(at, caller)
	case "not":
		return rowShown - d.judge(r.parts[0], at, caller)
	case "visible", "consent", "shared", "registry", "derived":
		// The SQL of these blocks yields true or NULL but never false, so that the negation of a block shows no row.
		if r.kind == "visible" && d.pointsToVisible(r, at, caller) || r.kind == "consent" && d.allConsent(r, at) ||
			r.kind == "shared" && d.isShared(r, at) || r.kind == "registry" && d.registryShows(r, at, caller) ||
			r.kind == "derived" && d.isDerivationVisible(r, at, caller, nil) {
			return rowShown
		}
		return rowUnknown
	}
	if !isSet {
		return map[bool]verdict{true: rowShown, false: rowUnknown}[r.kind == "tenant" && r.sharedBy == "null"]
	}
	switch r.kind {
	case "own":
		return verdictOf(value == caller[r.attributes[0]])
	case "status":
		return verdictOf(value == r.sharedWord)
	case "tenant":
		return verdictOf(value == caller[r.attributes[0]] || r.sharedBy == "word" && value == r.sharedWord)
	case "grant":
		for _, granted := range elements(value) {
			if r.sharedWord != "" && granted == r.sharedWord {
				return rowShown
			}
			for _, a := range r.attributes {
				if strings.HasPrefix(caller[a], "{") {
					for _, own := range elements(caller[a]) {
						if granted == own {
							return rowShown
						}
					}
				} else if granted == caller[a] {
					return rowShown
				}
			}
		}
	}
	return rowHidden
}

func (d data) pointsToVisible(r *rule, at row, caller map[string]string) bool {
	value, isSet := at[r.column]
	for _, target := range d[r.targetTable] {
		if isSet && target[r.targetColumn] == value && d.isVisible(r.targetTable, target, caller) {
			return true
		}
	}
	return false
}

func (d data) isShared(r *rule, at row) bool {
	value, isSet := at[r.column]
	for _, target := range d[r.targetTable] {
		if state, hasState := target["state"]; isSet && target[r.targetColumn] == value && hasState && state == r.sharedWord {
			return true
		}
	}
	return false
}

func (d data) allConsent(r *rule, at row) bool {
	value, isSet := at[r.column]
	if !isSet {
		return false
	}
	hasConsented := func(subject string) bool {
		for _, target := range d[r.targetTable] {
			if target[r.targetColumn] == subject {
				state, isSet := target["state"]
				until, expires := target["until"]
				return isSet && state == r.sharedWord && !(r.hasExpiry && hasEnded(until, expires))
			}
		}
		return false
	}
	if r.linkTable == nil {
		return hasConsented(value)
	}
	for _, link := range d[r.linkTable] {
		if link["item"] == value && !hasConsented(link["subject"]) {
			return false
		}
	}
	return true
}

// elements returns the elements of an array literal without quotes.
func elements(literal string) []string {
	inside := strings.TrimSuffix(strings.TrimPrefix(literal, "{"), "}")
	if inside == "" {
		return nil
	}
	return strings.Split(inside, ",")
}
