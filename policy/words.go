package policy

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/pgconsent/pgconsent/catalog"
	"github.com/pgconsent/pgconsent/predicate"
)

// Line is a line of a rule in words.
type Line struct {
	Depth int    `json:"depth"`
	Text  string `json:"text"`
	Place string `json:"place,omitempty"` // file:line:column
}

// Words says the rule of a table in words, line by line.
func (p *Policy) Words(t *Table) []Line {
	var out []Line
	p.words(t.Rule, t.Relation, 0, &out)
	return out
}

func (p *Policy) words(r *Rule, row *catalog.Relation, depth int, out *[]Line) {
	say := func(text string) {
		*out = append(*out, Line{depth, text, fmt.Sprintf("%s:%d:%d", r.File, r.Line, r.Column)})
	}
	switch {
	case r.Block == "not" && len(r.Parts) > 0:
		say("it does certainly not hold that")
	case r.Block == "any":
		say("one of these holds")
	case r.Block == "all":
		say("all of these hold")
	default:
		say(p.inWords(r.Node, row))
		return
	}
	for _, part := range r.Parts {
		p.words(part, row, depth+1, out)
	}
}

// inWords says what a node asks. What it has no words for it shows as SQL.
func (p *Policy) inWords(n predicate.Node, row *catalog.Relation) string {
	switch n := n.(type) {
	case predicate.Open:
		return "every row"
	case predicate.Own:
		return owned(n)
	case predicate.Tenant:
		switch {
		case n.SharedNull:
			return owned(n.Own) + ", or NULL, which is everybody's"
		case n.Shared != "":
			return owned(n.Own) + fmt.Sprintf(", or %q, which is everybody's", n.Shared)
		}
		return owned(n.Own)
	case predicate.Status:
		return fmt.Sprintf("%s is %q", n.Column, n.Is)
	case predicate.Grant:
		return fmt.Sprintf("%s lists %s", n.Column, grantedTo(n))
	case predicate.SQL:
		return "the condition " + condition(n, row)
	case predicate.Consent:
		return fmt.Sprintf("everybody reached by %s has %s = %q", path(n.Steps), n.Status, n.Is) + without(n.Required)
	case predicate.Recorded:
		subjects := n.Subject
		if subjects == "" {
			subjects = "everybody in " + n.Subjects.Column
		}
		text := fmt.Sprintf("%s has agreed by a record of %s that is given to %s", subjects, n.Record.Relation.Name, grantedTo(n.Record.Grantee))
		if len(n.Steps) > 0 {
			text = "of the rows reached by " + path(n.Steps) + ": " + text
		}
		if len(n.But) > 0 {
			var ids []string
			for _, g := range n.But {
				ids = append(ids, g.Attribute)
			}
			text += ", but the agent's own " + strings.Join(ids, ", ") + " need not be asked"
		}
		return text
	case predicate.Derived:
		text := "every row that it was made from, reached by " + path(n.Steps)
		if len(n.Steps) == 0 {
			text = fmt.Sprintf("every row of %s that %s lists", n.Source.Name, n.List.Column)
		}
		text += ", is there, and for it " + p.inWords(n.Rows, n.Of())
		if len(n.Again) > 0 {
			text += ", and so on for what that was made from"
		}
		if n.Unless != nil {
			text += ", unless " + p.inWords(n.Unless, row)
		}
		return text
	case predicate.Visible:
		steps := []predicate.Step{{Relation: n.Relation, Column: n.Column, From: n.From, And: n.And}}
		if t, ok := p.Table(n.Relation.Name); ok && predicate.Check(t.Rows, t.Relation) == predicate.Check(n.Rows, n.Relation) {
			return "a row shows of " + path(steps)
		}
		return "there is a row of " + path(steps) + " for which " + p.inWords(n.Rows, n.Relation)
	case predicate.Any:
		var parts []string
		for _, part := range n {
			parts = append(parts, p.inWords(part, row))
		}
		if len(parts) > 0 {
			return "one of these: " + strings.Join(parts, "; or ")
		}
	case predicate.All:
		var parts []string
		for _, part := range n {
			parts = append(parts, p.inWords(part, row))
		}
		return strings.Join(parts, ", and ")
	}
	return "the condition " + condition(n, row)
}

// condition is the SQL of a node, without the question whether the session has a seal.
func condition(n predicate.Node, row *catalog.Relation) string {
	return strings.TrimPrefix(Readable(predicate.Check(n, row)), "(SELECT sealed()) AND ")
}

func owned(n predicate.Own) string {
	if strings.HasSuffix(n.Type, "[]") {
		return fmt.Sprintf("%s is one of the agent's %s", n.Column, n.Attribute)
	}
	return fmt.Sprintf("%s is the agent's %s", n.Column, n.Attribute)
}

func grantedTo(n predicate.Grant) string {
	var who []string
	for _, to := range n.To {
		if to.List {
			who = append(who, "one of the agent's "+to.Attribute)
		} else {
			who = append(who, "the agent's "+to.Attribute)
		}
	}
	if n.All != "" {
		who = append(who, fmt.Sprintf("%q for everybody", n.All))
	}
	if len(who) == 0 {
		return "the id that is listed"
	}
	return strings.Join(who, " or ")
}

// path says where links lead: note_people (note_id = id) → people (id = person_id).
func path(steps []predicate.Step) string {
	var out []string
	for _, s := range steps {
		pairs := []string{s.Column + " = " + s.From}
		for _, p := range s.And {
			pairs = append(pairs, p.Column+" = "+p.From)
		}
		out = append(out, fmt.Sprintf("%s (%s)", s.Relation.Name, strings.Join(pairs, ", ")))
	}
	return strings.Join(out, " → ")
}

func without(required bool) string {
	if required {
		return "; a row that refers to nobody is hidden"
	}
	return "; a row without anybody to ask shows"
}

var qualifiedOperator = regexp.MustCompile(`OPERATOR\(pg_catalog\.([^)]+)\)`)

// Readable leaves out of generated SQL what only makes it independent of settings: the schema of built-in names.
func Readable(sql string) string {
	sql = qualifiedOperator.ReplaceAllString(sql, "$1")
	return strings.NewReplacer("pg_catalog.", "", "pgconsent_gate.attr(", "attr(", "pgconsent_gate.sealed(", "sealed(").Replace(sql)
}
