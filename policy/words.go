package policy

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// RuleLine is a line of the text that describes a rule in words.
type RuleLine struct {
	Depth int    `json:"depth"`
	Text  string `json:"text"`
	Place string `json:"place,omitempty"` // the place in the policy, as file:line:column
}

// RuleInWords describes the rule of a table, line by line.
func (p *Policy) RuleInWords(t *Table) []RuleLine {
	var out []RuleLine
	p.addWords(t.Rule, t.Relation, 0, &out)
	return out
}

func (p *Policy) addWords(r *Rule, row *catalog.Relation, depth int, out *[]RuleLine) {
	say := func(text string) {
		*out = append(*out, RuleLine{depth, text, fmt.Sprintf("%s:%d:%d", r.File, r.Line, r.Column)})
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
		p.addWords(part, row, depth+1, out)
	}
}

// inWords describes a node in words, or by its SQL if there are no words for it.
func (p *Policy) inWords(n predicate.Node, row *catalog.Relation) string {
	switch n := n.(type) {
	case predicate.Open:
		return "every row"
	case predicate.Own:
		return ownConditionText(n)
	case predicate.Tenant:
		switch {
		case n.SharedNull:
			return ownConditionText(n.Own) + ", or NULL, which is everybody's"
		case n.SharedValue != "":
			return ownConditionText(n.Own) + fmt.Sprintf(", or %q, which is everybody's", n.SharedValue)
		}
		return ownConditionText(n.Own)
	case predicate.Status:
		return fmt.Sprintf("%s is %q", n.Column, n.Value)
	case predicate.Grant:
		return fmt.Sprintf("%s lists %s", n.Column, granteeText(n))
	case predicate.SQL:
		return "the condition " + conditionText(n, row)
	case predicate.Consent:
		text := fmt.Sprintf("everybody reached by %s has %s = %q", linkText(n.Steps), n.StatusColumn, n.AgreedStatus)
		if n.ExpiryColumn != "" {
			text += ", and " + n.ExpiryColumn + " is not over"
		}
		return text + noSubjectText(n.FirstRequired)
	case predicate.RecordedConsent:
		return subjectsText(n, fmt.Sprintf("has agreed by a record of %s that is given to %s", n.Record.Relation.Name,
			granteeText(n.Record.Grantee)))
	case predicate.Derived:
		text := "every row that it was made from, reached by " + linkText(n.Steps)
		if len(n.Steps) == 0 {
			text = fmt.Sprintf("every row of %s that %s lists", n.Source.Name, n.List.Column)
		}
		text += ", is there, and for it " + p.inWords(n.Rows, n.SourceTable())
		if len(n.SourceOrigins) > 0 {
			text += ", and so on for what that was made from"
		}
		if n.ExceptIf != nil {
			text += ", unless " + p.inWords(n.ExceptIf, row)
		}
		return text
	case predicate.RegistryConsent:
		return subjectsText(n.Subjects, "consents by the registry"+registryText(n))
	case predicate.Visible:
		steps := []predicate.Step{{Relation: n.Relation, Column: n.Column, FromColumn: n.FromColumn, MorePairs: n.MorePairs}}
		if t, ok := p.Table(n.Relation.Name); ok && predicate.CheckSQL(t.Rows, t.Relation) == predicate.CheckSQL(n.Rows,
			n.Relation) {
			return "a row shows of " + linkText(steps)
		}
		return "there is a row of " + linkText(steps) + " for which " + p.inWords(n.Rows, n.Relation)
	case predicate.Any:
		var parts []string
		for _, part := range n {
			parts = append(parts, p.inWords(part, row))
		}
		if len(parts) == 0 {
			return "no row"
		}
		return "one of these: " + strings.Join(parts, "; or ")
	case predicate.All:
		var parts []string
		for _, part := range n {
			parts = append(parts, p.inWords(part, row))
		}
		return strings.Join(parts, ", and ")
	}
	return "the condition " + conditionText(n, row)
}

// subjectsText says in words who must consent and how.
func subjectsText(n predicate.RecordedConsent, how string) string {
	subjects := n.Subject
	if subjects == "" {
		subjects = "everybody in " + n.Subjects.Column
	}
	text := subjects + " " + how
	if len(n.Steps) > 0 {
		text = "of the rows reached by " + linkText(n.Steps) + ": " + text
	}
	if len(n.ExceptCallers) > 0 {
		text += ", but the agent's own " + attributeNames(n.ExceptCallers) + " need not be asked"
	}
	return text
}

// registryText says in words which record a subject must have in the registry.
func registryText(n predicate.RegistryConsent) string {
	var out []string
	listed := func(label string, words []string, session []predicate.Grantee) {
		switch {
		case len(words) > 0 && len(session) > 0:
			out = append(out, fmt.Sprintf("to the %s %s, which the agent's %s has", label,
				strings.Join(words, " and "), attributeNames(session)))
		case len(words) > 0:
			out = append(out, fmt.Sprintf("to the %s %s", label, strings.Join(words, " and ")))
		case len(session) > 0:
			out = append(out, fmt.Sprintf("to each %s in the agent's %s", label, attributeNames(session)))
		}
	}
	listed("category", n.Categories, n.SessionCategories)
	listed("purpose", n.Purposes, n.SessionPurposes)
	if n.Streams != nil {
		out = append(out, "in the stream "+strings.Join(n.Streams, " or "))
	}
	if len(n.Grantees) > 0 {
		out = append(out, "given to everybody or the agent's "+attributeNames(n.Grantees))
	}
	scopes := []string{"everything", "table:" + n.Tables[0]}
	if n.KeyColumn != "" {
		scopes = append(scopes, "row:"+n.Tables[0]+":<"+n.KeyColumn+">")
	}
	if len(n.Contexts) > 0 {
		scopes = append(scopes, "ctx:<"+attributeNames(n.Contexts)+">")
	}
	if len(scopes) > 2 {
		out = append(out, "about "+strings.Join(scopes, " or "))
	}
	if n.DataTimeColumn != "" {
		out = append(out, "for rows of the time "+n.DataTimeColumn)
	}
	if n.DataTimeColumn != "" && n.DecayDays > 0 && n.DecayDays < predicate.NeverDecays {
		out = append(out, fmt.Sprintf("or had consented until a countdown began, fewer than %d full days ago", n.DecayDays))
	}
	if len(out) == 0 {
		return ""
	}
	return ", " + strings.Join(out, ", ")
}

func attributeNames(grantees []predicate.Grantee) string {
	var out []string
	for _, g := range grantees {
		out = append(out, g.Attribute)
	}
	return strings.Join(out, ", ")
}

// conditionText returns the SQL of a node without the test that the session is signed.
func conditionText(n predicate.Node, row *catalog.Relation) string {
	return strings.TrimPrefix(ReadableSQL(predicate.CheckSQL(n, row)), "(SELECT sealed()) AND ")
}

func ownConditionText(n predicate.Own) string {
	if strings.HasSuffix(n.Type, "[]") {
		return fmt.Sprintf("%s is one of the agent's %s", n.Column, n.Attribute)
	}
	return fmt.Sprintf("%s is the agent's %s", n.Column, n.Attribute)
}

func granteeText(n predicate.Grant) string {
	var who []string
	for _, grantee := range n.Grantees {
		if grantee.IsList {
			who = append(who, "one of the agent's "+grantee.Attribute)
		} else {
			who = append(who, "the agent's "+grantee.Attribute)
		}
	}
	if n.EverybodyWord != "" {
		who = append(who, fmt.Sprintf("%q for everybody", n.EverybodyWord))
	}
	if len(who) == 0 {
		return "the id that is listed"
	}
	return strings.Join(who, " or ")
}

// linkText describes links as in: note_people (note_id = id) → people (id = person_id).
func linkText(steps []predicate.Step) string {
	var out []string
	for _, s := range steps {
		pairs := []string{s.Column + " = " + s.FromColumn}
		for _, p := range s.MorePairs {
			pairs = append(pairs, p.Column+" = "+p.FromColumn)
		}
		out = append(out, fmt.Sprintf("%s (%s)", s.Relation.Name, strings.Join(pairs, ", ")))
	}
	return strings.Join(out, " → ")
}

func noSubjectText(required bool) string {
	if required {
		return "; a row that refers to nobody is hidden"
	}
	return "; a row without anybody to ask shows"
}

var qualifiedOperator = regexp.MustCompile(`OPERATOR\(pg_catalog\.([^)]+)\)`)

// ReadableSQL returns generated SQL without the schema names that it has only to be independent of the search path.
func ReadableSQL(sql string) string {
	sql = qualifiedOperator.ReplaceAllString(sql, "$1")
	return strings.NewReplacer("pg_catalog.", "", "pgconsent_signed.attr(", "attr(", "pgconsent_signed.sealed(",
		"sealed(").Replace(sql)
}
