package noninterference

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// making says from which rows of the rule's target a row was made: by links, by a column with one key, or with a list
// of them.
type making struct {
	self       bool // of its own table
	list       bool
	everything bool  // the sources must show to the caller
	where      *rule // of the sources besides; nil: nothing
	unless     *rule // rows of which nothing is asked; nil: of none
}

// derive has rows of some tables made from others, or from rows of their own table.
func (s *schema) derive(r *rand.Rand) {
	for i, t := range slices.Clone(s.tables) {
		if t.rule == nil || t.commands != nil || t.grouped || strings.HasPrefix(t.name, "link") || r.IntN(4) > 0 {
			continue
		}
		target := t
		if earlier := s.sources(s.tables[:i]); len(earlier) > 0 && (t.keys > 1 || r.IntN(3) > 0) {
			target = pick(r, earlier...)
		}
		if target.keys > 1 {
			continue
		}
		m := &making{self: target == t, everything: target != t && r.IntN(3) == 0}
		if target == t || r.IntN(3) == 0 {
			m.unless = &rule{kind: "status", column: t.need("state", "code"), word: pick(r, "granted", "revoked", "Granted")}
		}
		again := slices.ContainsFunc(target.rule.of("derived"), func(d *rule) bool { return d.making.self })
		if target != t && !again && r.IntN(3) == 0 {
			m.where = &rule{kind: "status", column: target.need("state", "code"), word: pick(r, "granted", "revoked")}
		}
		made := &rule{kind: "derived", target: target, targetColumn: target.columns[0].name, making: m}
		switch n := r.IntN(3); {
		case n == 0 && target.columns[0].kind == "code":
			m.list, made.column = true, t.need("made from "+target.name, "arr")
		case n == 1 && t.keys == 1 && t.link() == nil:
			made.column, made.link = t.columns[0].name, s.newLink(t, target)
		default:
			made.column = t.need("ref "+target.name, target.columns[0].kind)
		}
		switch rest := t.rule; {
		case rest.kind == "open":
			t.rule = &rule{kind: "rows", parts: []*rule{made}}
		case target == t || r.IntN(3) > 0:
			t.rule = &rule{kind: "rows", parts: []*rule{made, rest}}
		default:
			t.rule = &rule{kind: pick(r, "any", "all"), parts: []*rule{made, rest}}
		}
	}
}

// sources are tables from whose rows others may be made: agents do not write them.
func (s *schema) sources(of []*table) (out []*table) {
	for _, t := range of {
		if t.keys == 1 && t.rule != nil && t.commands == nil && !t.grouped && !strings.HasPrefix(t.name, "link") {
			out = append(out, t)
		}
	}
	return out
}

// newLink makes a table of links from rows of one table to rows of another.
func (s *schema) newLink(t, target *table) *table {
	s.links++
	link := &table{name: fmt.Sprintf("link%d", s.links), keys: 2, columns: []column{
		{name: "item", kind: t.columns[0].kind, ruled: true}, {name: "subject", kind: target.columns[0].kind, ruled: true}, {name: "note", kind: "text"},
	}}
	s.tables = append(s.tables, link)
	return link
}

func (r *rule) derivedYAML() string {
	from := fmt.Sprintf("from: { %q: { %q: %q } }", r.target.name, r.targetColumn, r.column)
	switch {
	case r.making.list:
		from = fmt.Sprintf("sources: %q, of: %q", r.column, r.target.name)
	case r.link != nil:
		from = fmt.Sprintf("from: [ %q: { item: %q }, %q: { %q: subject } ]", r.link.name, r.column, r.target.name, r.targetColumn)
	}
	if r.making.everything {
		from += ", inherit: everything"
	}
	if r.making.where != nil {
		from += ", where: [ " + r.making.where.yaml() + " ]"
	}
	if r.making.unless != nil {
		from += ", unless: [ " + r.making.unless.yaml() + " ]"
	}
	return "{ derived: { " + from + " } }"
}

// isMadeWell is the model: every row from which the row was made is there, and is what is asked of it. Before are the
// keys of the rows of the same table that led here, by which circles are seen.
func (d data) isMadeWell(r *rule, at row, caller map[string]string, before []string) bool {
	m := r.making
	if m.unless != nil && d.judge(m.unless, at, caller) == shows {
		return true
	}
	if before == nil && m.self {
		before = []string{at[r.targetColumn]}
	}
	var keys []string
	value, known := at[r.column]
	switch {
	case !known:
		return false
	case m.list:
		keys = elements(value)
	case r.link != nil:
		for _, link := range d[r.link] {
			if link["item"] == value {
				keys = append(keys, link["subject"])
			}
		}
	default:
		keys = []string{value}
	}
	for _, key := range keys {
		i := slices.IndexFunc(d[r.target], func(source row) bool { return source[r.targetColumn] == key })
		if i < 0 || m.self && slices.Contains(before, key) {
			return false
		}
		source := d[r.target][i]
		if m.where != nil && d.judge(m.where, source, caller) != shows {
			return false
		}
		if m.everything && !d.visible(r.target, source, caller) {
			return false
		}
		var path []string
		if m.self {
			path = append(slices.Clone(before), key)
		}
		if !m.everything && !d.asks(r.target.rule, source, caller, path) {
			return false
		}
	}
	return len(keys) > 0
}

// asks is what is asked of a source: its rule, but for whose the row is.
func (d data) asks(r *rule, at row, caller map[string]string, before []string) bool {
	switch r.kind {
	case "rows":
		return !slices.ContainsFunc(r.parts, func(part *rule) bool { return !d.asks(part, at, caller, before) })
	case "own", "tenant":
		return true
	case "visible":
		value, known := at[r.column]
		return slices.ContainsFunc(d[r.target], func(target row) bool {
			return known && target[r.targetColumn] == value && d.asks(r.target.rule, target, caller, nil)
		})
	case "derived":
		return d.isMadeWell(r, at, caller, before)
	}
	return d.judge(r, at, caller) == shows
}
