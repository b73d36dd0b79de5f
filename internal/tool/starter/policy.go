package starter

import (
	"fmt"
	"slices"
	"strings"
)

// Policy returns the proposal as the text of a policy file, with its evidence as comments.
func (p *Proposal) Policy(database string) string {
	var b strings.Builder
	w := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	w("# A starter policy for the database %s, proposed by pgconsent init from its catalogs: names, types, keys,",
		commentText(database))
	w("# enums, checks and row policies. No row was read, and a name proves nothing: read each rule with its evidence before agents do.")
	w("#")
	w("# What is not listed does not exist for agents. At the end stands what was not understood, and why.")
	w("version: 1")
	w("")
	if len(p.Attributes) == 0 {
		w("# No column says whose a row is, so that no rule needs to know who asks.")
	} else {
		w("# Facts about an agent. The configuration gives each agent a value for each of them.")
		w("attributes:")
		for _, a := range p.Attributes {
			w("  # proposed: %s", commentText(a.Evidence))
			w("  %s: { type: %s, source: credential }", a.Name, a.Type)
		}
	}
	for _, a := range p.SpareAttributes {
		w("  # for rules that are comments below: %s", commentText(a.Evidence))
		w("  # %s: { type: %s, source: credential }", a.Name, a.Type)
	}
	w("")
	if len(p.Tables) == 0 {
		w("tables: {}")
	} else {
		w("tables:")
	}
	for _, t := range p.Tables {
		t.writeYAML(w)
	}
	p.writeDenied(w)
	return b.String()
}

func (t *Table) writeYAML(w func(string, ...any)) {
	if t.IsOpen {
		w("  # proposed: %s", commentText(t.Evidence))
		w("  # Every agent reads every row of it. Take it out if that is wrong.")
		w("  %s: { rows: open }", yamlFlow(t.Name))
		w("")
		return
	}
	for _, note := range t.Notes {
		w("  # look: %s", commentText(note))
	}
	w("  %s:", yamlFlow(t.Name))
	w("    rows:")
	for _, block := range t.Blocks {
		w("      # proposed: %s", commentText(block.Evidence))
		w("      - %s", block.YAML)
		for _, other := range block.Alternatives {
			w("      # %s:", commentText(other.Evidence))
			w("      # - %s", commentText(other.YAML))
		}
	}
	for _, reason := range t.OpenReasons {
		w("    # in place of all of these rows, if they are everybody's: %s", commentText(reason))
		w("    # rows: open")
	}
	if len(t.Hidden) > 0 {
		secrets := slices.DeleteFunc(slices.Clone(t.Hidden),
			func(name string) bool { return slices.Contains(t.ContactColumns, name) })
		if len(secrets) > 0 {
			w("    # proposed: agents do not see %s: secrets, by the name", commentText(strings.Join(secrets, ", ")))
		}
		if len(t.ContactColumns) > 0 {
			w("    # proposed: agents do not see %s, by which somebody can be reached; to join or compare by it, "+
				"write { mask: hash }", commentText(strings.Join(t.ContactColumns, ", ")))
		}
		w("    columns:")
		for _, c := range t.Relation.Columns {
			if !slices.Contains(t.Hidden, c.Name) {
				w("      %s: allow", yamlFlow(c.Name))
			}
		}
	}
	w("")
}

func (p *Proposal) writeDenied(w func(string, ...any)) {
	if len(p.Denied) == 0 {
		w("# Nothing is left out.")
		return
	}
	w("# Not listed, and so not there for agents:")
	kind := ""
	for _, d := range p.Denied {
		if d.Kind != kind {
			w("#")
			kind = d.Kind
		}
		w("#   %s %s: %s", d.Kind, commentText(d.Name), commentText(d.Reason))
	}
	if slices.ContainsFunc(p.Denied, func(d Denied) bool { return d.Kind == "table" }) {
		w("#")
		w("# To list a table, say which rows show, for example by one of")
		w("#   name: { rows: [ own: { column: …, is: user } ] }          # the row says whose it is")
		w("#   name: { rows: [ visible: { parent: { id: parent_id } } ] } # it shows with the row that it belongs to")
		w("#   name: { rows: open }                                       # everybody may see all of it")
	}
}

// commentText replaces line breaks in a text from the database, so that it cannot continue after the end of a comment.
func commentText(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 {
			return ' '
		}
		return r
	}, text)
}

// RelationAtLine returns the name of the relation whose rule is at a line of the proposed policy file.
func (p *Proposal) RelationAtLine(policy string, line int) (relation string, ok bool) {
	lines := strings.Split(policy, "\n")
	for i := min(line, len(lines)) - 1; i >= 0; i-- {
		for _, t := range p.Tables {
			if key := "  " + yamlFlow(t.Name) + ":"; lines[i] == key || strings.HasPrefix(lines[i], key+" ") {
				return t.Relation.Name.String(), true
			}
		}
	}
	return "", false
}
