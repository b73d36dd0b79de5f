package why

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Printer writes answers as text.
type Printer struct {
	Out         io.Writer
	UsesColours bool
}

// colourText returns a text in a colour if the terminal shows colours.
func (p Printer) colourText(colour, text string) string {
	if !p.UsesColours {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// Print writes an answer as a tree of blocks.
func (p Printer) Print(a *Answer) {
	printLine := func(format string, args ...any) { fmt.Fprintf(p.Out, format+"\n", args...) }
	for _, name := range slices.Sorted(maps.Keys(a.Attributes)) {
		value := a.Attributes[name]
		printLine("%s %s is %s", p.colourText("2", "attribute"), name, quotedOrNull(&value))
	}
	for _, name := range a.Missing {
		printLine("%s %s is missing: a block that needs it shows nothing", p.colourText("33", "attribute"), name)
	}
	if len(a.Rows) == 0 {
		printLine("%s has no row with %s: %s", a.Table, a.KeyCondition,
			p.colourText("33", "there is nothing to see for anybody"))
		return
	}
	if !a.Listed {
		printLine("%s (%s): %s sees %s of it", a.Table, a.KeyCondition, a.Agent, p.colourText("31;1", "nothing"))
		printLine("  the policy does not list the table: agents have no right to it, and naming it is refused with 42501")
		return
	}
	for _, r := range a.Rows {
		printLine("")
		if a.Observed && !r.Visible {
			printLine("%s %s: %s %s it %s", r.Table, quotedKey(r.Key), a.Agent, p.colourText("33;1", "sees"),
				"while the table is only observed; enforced, the rule hides it")
		} else if r.Visible {
			printLine("%s %s: %s %s it", r.Table, quotedKey(r.Key), a.Agent, p.colourText("32;1", "sees"))
		} else {
			printLine("%s %s: %s %s it", r.Table, quotedKey(r.Key), a.Agent, p.colourText("31;1", "does not see"))
		}
		p.printBlock(r.Rule, "", "")
		if r.Group != nil {
			printLine("  %s", r.Group.explanation())
		}
	}
	if a.More {
		printLine("\n… and more rows: give more of the key")
	}
	printLine("")
	switch {
	case a.RowSecurity == nil:
		printLine("row security was not asked: %s", a.RowSecurityNotAsked)
	case a.Observed:
		printLine("%s the policy only observes %s: agents read every row of it, and the rule is what enforcing it "+
			"would change", p.colourText("33", "note:"), a.Table)
	case !a.AgreesWithRowSecurity():
		printLine("%s: asked as the agent's role it shows %d of these rows, and the rule %d. Run pgconsent doctor.",
			p.colourText("31;1", "row security disagrees"), *a.RowSecurity, a.VisibleRows())
	case a.More:
		printLine("row security shows %d rows of this key", *a.RowSecurity)
	default:
		printLine("row security, asked as the agent's role, agrees; the predicate in the text is made of the same rule")
	}
	if len(a.ForeignPolicies) > 0 {
		printLine("%s the table has restrictive policies of others, which hide rows besides: %s", p.colourText("33", "note:"),
			strings.Join(a.ForeignPolicies, ", "))
	}
	if len(a.Columns) > 0 && a.VisibleRows() > 0 {
		var parts []string
		for _, c := range a.Columns {
			parts = append(parts, c.Name+" "+c.How)
		}
		printLine("not all of it is seen: %s", strings.Join(parts, ", "))
	}
}

// explanation says in a sentence whether aggregates count the row.
func (g *Group) explanation() string {
	if !g.TakesRow {
		return "aggregates do not count it either: the aggregate's rows do not take it, it names no subject, or " +
			"its period is not over"
	}
	group := "all rows that count"
	if len(g.GroupKey) > 0 {
		var parts []string
		for _, v := range g.GroupKey {
			parts = append(parts, v.Column+" "+quotedOrNull(v.Value))
		}
		group = strings.Join(parts, ", ")
	}
	text := fmt.Sprintf("its group (%s) has %d different %s, and at least %d are needed", group, g.Subjects,
		g.Subject, g.Minimum)
	if !g.IsCounted() {
		return "aggregates do not count it either: " + text
	}
	if g.Share > 0 {
		text += fmt.Sprintf("; unless one of them is more than %d percent of it, which was not checked", g.Share)
	}
	return "aggregates count it: " + text
}

// quotedKey writes a key. If it has only one column, it writes the value alone.
func quotedKey(values []Value) string {
	var parts []string
	for _, v := range values {
		text := strings.Trim(quotedOrNull(v.Value), "'")
		if len(values) == 1 {
			return text
		}
		parts = append(parts, v.Column+"="+text)
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

// printBlock writes a block as a branch of the tree, and its parts, records and targets below it.
func (p Printer) printBlock(b *Block, branch, indentBelow string) {
	mark := p.colourText("31", "✗")
	switch {
	case b.Holds:
		mark = p.colourText("32", "✓")
	case b.Unknown:
		mark = p.colourText("33", "?")
	}
	line := fmt.Sprintf("%s%s %s", p.colourText("2", branch), mark, p.colourText("1", b.Block))
	if b.Says != "" {
		line += ": " + b.Says
	}
	if b.Unknown {
		line += " (unknown, which hides)"
	}
	fmt.Fprintf(p.Out, "  %s  %s\n", line, p.colourText("2", fmt.Sprintf("%s:%d", shortestPath(b.File), b.Line)))
	type leafPrinter func(branch, indentBelow string)
	var leaves []leafPrinter
	for _, part := range b.Parts {
		leaves = append(leaves, func(branch, indentBelow string) { p.printBlock(part, branch, indentBelow) })
	}
	for _, r := range b.Records {
		leaves = append(leaves, func(branch, _ string) {
			mark := p.colourText("31", "✗")
			if r.Holds {
				mark = p.colourText("32", "✓")
			}
			text := strings.TrimSpace(r.Table + " " + quotedKey(r.Key))
			if r.Key == nil {
				text = r.Table
			}
			viaText := ""
			if r.Link != "" {
				viaText = p.colourText("2", fmt.Sprintf("  by %s %s", r.Link, quotedKey(r.Via)))
			}
			fmt.Fprintf(p.Out, "  %s%s %s: %s%s\n", p.colourText("2", branch), mark, text, r.Says, viaText)
		})
	}
	for _, t := range b.Targets {
		leaves = append(leaves, func(branch, indentBelow string) {
			verdict := p.colourText("31", "does not show")
			if t.Besides {
				verdict = p.colourText("31", "shows, but what the block asks of it besides does not hold")
			} else if t.Visible {
				verdict = p.colourText("32", "shows")
			}
			fmt.Fprintf(p.Out, "  %s%s %s %s\n", p.colourText("2", branch), t.Table, quotedKey(t.Key), verdict)
			p.printBlock(t.Rule, indentBelow+"└─ ", indentBelow+"   ")
		})
	}
	if b.More {
		leaves = append(leaves, func(branch, _ string) { fmt.Fprintf(p.Out, "  %s… and more\n", p.colourText("2", branch)) })
	}
	for i, f := range leaves {
		if i == len(leaves)-1 {
			f(indentBelow+"└─ ", indentBelow+"   ")
		} else {
			f(indentBelow+"├─ ", indentBelow+"│  ")
		}
	}
}

// shortestPath returns a path relative to the working directory if that is shorter.
func shortestPath(path string) string {
	if wd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(wd, path); err == nil && len(rel) < len(path) {
			return rel
		}
	}
	return path
}
