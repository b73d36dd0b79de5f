package policydiff

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/policy"
)

// compareByName compares two sets of descriptions. Each has a name as its key and a description as its value.
func compareByName(before, after map[string]string) Change {
	c := Change{Gained: []string{}, Lost: []string{}, Altered: []string{}}
	for name, now := range after {
		oldText, exists := before[name]
		switch {
		case !exists:
			c.Gained = append(c.Gained, nameAndDescription(name, now))
		case oldText != now:
			c.Altered = append(c.Altered, fmt.Sprintf("%s: %s → %s", name, textOrDefault(oldText), textOrDefault(now)))
		}
	}
	for name := range before {
		if _, exists := after[name]; !exists {
			c.Lost = append(c.Lost, name)
		}
	}
	for _, list := range [][]string{c.Gained, c.Lost, c.Altered} {
		slices.Sort(list)
	}
	return c
}

func nameAndDescription(name, description string) string {
	if description == "" {
		return name
	}
	return name + " (" + description + ")"
}

func textOrDefault(text string) string {
	if text == "" {
		return "as it is"
	}
	return text
}

// compareColumns compares which columns exist for agents, and how they are masked. It compares nothing if only one
// policy lists the table: then the report names the whole table.
func compareColumns(before, after *policy.Table) Change {
	if before == nil || after == nil {
		return compareByName(nil, nil)
	}
	describe := func(table *policy.Table) map[string]string {
		out := map[string]string{}
		if table.Columns == nil {
			for _, c := range table.Relation.Columns {
				out[c.Name] = ""
			}
			return out
		}
		for _, c := range table.Columns.Columns {
			out[c.Name] = c.Describe()
		}
		return out
	}
	return compareByName(describe(before), describe(after))
}

// compareWrites compares how agents may change the table.
func compareWrites(before, after *policy.Table) Change {
	describe := func(table *policy.Table) map[string]string {
		out := map[string]string{}
		if table == nil || table.Write == nil {
			return out
		}
		w := table.Write
		if w.Insert {
			out["insert"] = strings.Join(w.Insertable, ", ")
			out["what a new row must be"] = predicate.CheckSQL(w.InsertCheck, table.Relation)
		}
		if w.Update {
			out["update"] = strings.Join(w.Updatable, ", ")
			out["what a changed row must be"] = predicate.CheckSQL(w.UpdateCheck, table.Relation)
			if w.UpdatableRows != nil {
				out["which rows may be updated"] = predicate.CheckSQL(w.UpdatableRows, table.Relation)
			}
		}
		if w.Delete {
			out["delete"] = ""
			if w.DeletableRows != nil {
				out["which rows may be deleted"] = predicate.CheckSQL(w.DeletableRows, table.Relation)
			}
		}
		for _, s := range w.Stamps {
			out["stamp of "+s.Column] = "'" + s.Value + "'"
			if s.Attribute != "" {
				out["stamp of "+s.Column] = "the agent's " + s.Attribute
			}
		}
		return out
	}
	c := compareByName(describe(before), describe(after))
	// The SQL of a condition is long, so the report only says that the condition changed.
	for i, text := range c.Altered {
		if strings.HasPrefix(text, "what a ") {
			c.Altered[i], _, _ = strings.Cut(text, ":")
		}
	}
	for i, text := range c.Gained {
		if strings.HasPrefix(text, "what a ") {
			c.Gained[i], _, _ = strings.Cut(text, " (")
		}
	}
	conditions := func(text string) bool {
		return strings.HasPrefix(text, "what a ") || strings.HasPrefix(text, "stamp of ")
	}
	if len(c.Gained) > 0 && !slices.ContainsFunc(c.Gained, func(text string) bool { return !conditions(text) }) {
		// The new condition restricts a command that was allowed before, so agents gain nothing by it.
		c.Altered, c.Gained = append(c.Altered, c.Gained...), []string{}
	} else {
		c.Gained = slices.DeleteFunc(c.Gained, conditions)
	}
	if slices.ContainsFunc(c.Lost, func(text string) bool { return !conditions(text) }) {
		c.Lost = slices.DeleteFunc(c.Lost, conditions)
	}
	return c
}

func functionChanges(before, after *policy.Policy) Change {
	describe := func(p *policy.Policy) map[string]string {
		out := map[string]string{}
		for _, function := range p.Functions() {
			var pins []string
			for _, pin := range function.Pins {
				pins = append(pins, pin.Arg+" is "+pin.Value)
			}
			description := ""
			if len(pins) > 0 {
				description = "pinned: " + strings.Join(pins, ", ")
			}
			out[function.Name.String()] = description
		}
		return out
	}
	return compareByName(describe(before), describe(after))
}

func operatorChanges(before, after *policy.Policy) Change {
	describe := func(p *policy.Policy) map[string]string {
		out := map[string]string{}
		for _, extension := range p.OperatorExtensions() {
			out[extension] = ""
		}
		return out
	}
	return compareByName(describe(before), describe(after))
}

func compareViews(before, after *policy.Policy) Change {
	describe := func(p *policy.Policy) map[string]string {
		out := map[string]string{}
		for _, v := range p.Views() {
			if v.Listed {
				out[v.Relation.Name.String()] = ""
			}
		}
		return out
	}
	return compareByName(describe(before), describe(after))
}

// boundChanges lists the contracts and limits that differ between the policies, part by part. It does not tell whether
// a limit became stricter, nor how many statements it affects.
func boundChanges(before, after *policy.Policy) []string {
	oldBounds, newBounds := before.Restrictions(), after.Restrictions()
	out := []string{}
	for name, now := range newBounds {
		oldParts, exists := oldBounds[name]
		if !exists {
			out = append(out, name+" (new)")
			continue
		}
		if maps.Equal(oldParts, now) {
			continue
		}
		startLength := len(out)
		for part := range mergeMaps(oldParts, now) {
			oldParts, exists := oldParts[part]
			now, newBounds := now[part]
			switch {
			case part == "" || exists == newBounds && oldParts == now:
			case part == "which rows count": // The SQL of such a rule is long, and compareRows counts its rows.
				out = append(out, name+", "+part)
			case !exists:
				out = append(out, fmt.Sprintf("%s, %s: %s (new)", name, part, now))
			case !newBounds:
				out = append(out, fmt.Sprintf("%s, %s (gone)", name, part))
			default:
				out = append(out, fmt.Sprintf("%s, %s: %s → %s", name, part, textOrNothing(oldParts), textOrNothing(now)))
			}
		}
		if len(out) == startLength {
			out = append(out, name)
		}
	}
	for name := range oldBounds {
		if _, exists := newBounds[name]; !exists {
			out = append(out, name+" (gone)")
		}
	}
	slices.Sort(out)
	return out
}

func mergeMaps(a, b map[string]string) map[string]string {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

func textOrNothing(text string) string {
	if text == "" {
		return "nothing"
	}
	return text
}
