package policydiff

import (
	"fmt"
	"io"
	"strings"
	"unicode"
)

// Printer writes reports as text.
type Printer struct {
	Out         io.Writer
	UsesColours bool
}

func (p Printer) colourText(colour, text string) string {
	if !p.UsesColours {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// Print writes a report. A line begins with + if agents gain something, with - if they lose it, with ~ for other
// changes.
func (p Printer) Print(r *Report) {
	fmt.Fprintf(p.Out, "database %s: %s → %s\n", r.Database, r.Old, r.New)
	for _, note := range r.Notes {
		fmt.Fprintf(p.Out, "  %s %s\n", p.colourText("33", "note:"), note)
	}
	if r.IsEmpty() {
		fmt.Fprintln(p.Out, "  agents see and may do what they did")
		return
	}
	for _, t := range r.Tables {
		fmt.Fprintf(p.Out, "\n%s\n", p.colourText("1", t.Name))
		switch {
		case t.IsListed && !t.WasListed:
			p.printLine("32", "+", "table", "agents may name it")
		case t.WasListed && !t.IsListed:
			p.printLine("31", "-", "table", "agents may not name it any more")
		}
		p.printChange("column", t.Columns)
		p.printChange("write", t.Write)
		p.printRows("rows", t.Rows)
		p.printRows("grouped", t.Groups)
	}
	if !r.Functions.isEmpty() {
		fmt.Fprintf(p.Out, "\n%s\n", p.colourText("1", "functions"))
		p.printChange("function", r.Functions)
	}
	if !r.Operators.isEmpty() {
		fmt.Fprintf(p.Out, "\n%s\n", p.colourText("1", "operators"))
		p.printChange("of", r.Operators)
	}
	if !r.Views.isEmpty() {
		fmt.Fprintf(p.Out, "\n%s\n", p.colourText("1", "views"))
		p.printChange("view", r.Views)
	}
	if len(r.Restrictions) > 0 {
		fmt.Fprintf(p.Out, "\n%s\n", p.colourText("1", "what bounds statements"))
		for _, restriction := range r.Restrictions {
			fmt.Fprintf(p.Out, "  %s %s\n", p.colourText("33", "~"), restriction)
		}
	}
	fmt.Fprintln(p.Out)
	switch areCertain, arePossible := r.Gains(); {
	case areCertain:
		fmt.Fprintln(p.Out, p.colourText("33", "agents gain something"))
	case arePossible:
		fmt.Fprintln(p.Out, p.colourText("33", "agents may gain something by what is otherwise (~)"))
	default:
		fmt.Fprintln(p.Out, "agents gain nothing")
	}
}

func (p Printer) printLine(colour, sign, label, text string) {
	fmt.Fprintf(p.Out, "  %s %-8s %s\n", p.colourText(colour, sign), label, text)
}

func (p Printer) printChange(label string, c Change) {
	for _, text := range c.Gained {
		p.printLine("32", "+", label, text)
	}
	for _, text := range c.Lost {
		p.printLine("31", "-", label, text)
	}
	for _, text := range c.Altered {
		p.printLine("33", "~", label, text)
	}
}

func (p Printer) printRows(label string, rows []Rows) {
	width := 0
	for _, r := range rows {
		width = max(width, len(strings.Join(r.Agents, ", ")))
	}
	for _, r := range rows {
		fmt.Fprintf(p.Out, "    %-8s %-*s  %d → %d", label, width, strings.Join(r.Agents, ", "), r.Old, r.New)
		if r.Appear > 0 {
			fmt.Fprintf(p.Out, "  %s", p.colourText("32", fmt.Sprintf("+%d", r.Appear)))
		}
		if r.Disappear > 0 {
			fmt.Fprintf(p.Out, "  %s", p.colourText("31", fmt.Sprintf("-%d", r.Disappear)))
		}
		if r.Appear+r.Disappear == 0 {
			fmt.Fprint(p.Out, "  the same rows")
		}
		fmt.Fprintln(p.Out)
		p.printKeys("32", "+", r, r.Appearing, r.Appear)
		p.printKeys("31", "-", r, r.Vanishing, r.Disappear)
	}
}

func (p Printer) printKeys(colour, sign string, r Rows, keys [][]string, total int64) {
	for i, key := range keys {
		text := printableValue(key[0])
		if len(key) > 1 {
			var parts []string
			for j, v := range key {
				parts = append(parts, r.Key[j]+"="+printableValue(v))
			}
			text = "(" + strings.Join(parts, ", ") + ")"
		}
		fmt.Fprintf(p.Out, "             %s %s\n", p.colourText(colour, sign), text)
		if i == len(keys)-1 && total > int64(len(keys)) {
			fmt.Fprintf(p.Out, "             %s … and %d more\n", p.colourText(colour, sign), total-int64(len(keys)))
		}
	}
}

// printableValue replaces line breaks and control characters in a value of a row, since an agent may have written it.
func printableValue(value string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return ' '
		}
		return r
	}, value)
}
