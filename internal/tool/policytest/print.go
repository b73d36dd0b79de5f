package policytest

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Printer writes the results as text, each when its test ends.
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

// PrintStart announces the tests of a file.
func (p Printer) PrintStart(f *File, tests int) {
	fmt.Fprintf(p.Out, "%s  %s\n", p.colourText("1", shortPath(f.Path)),
		p.colourText("2", fmt.Sprintf("%d tests of %s", tests, shortPath(f.Policy))))
}

// PrintTest prints the result of one test.
func (p Printer) PrintTest(r Result) {
	mark, colour := "ok  ", "32"
	if !r.HasPassed {
		mark, colour = "FAIL", "31;1"
	}
	fmt.Fprintf(p.Out, "  %s  %s %s\n", p.colourText(colour, mark), r.Name, p.colourText("2", fmt.Sprintf("(%s)",
		roundForPeople(r.Duration))))
	for _, problem := range r.Problems {
		fmt.Fprintf(p.Out, "        %s\n", problem.Error())
	}
	for _, f := range r.Failures {
		place := f.Place
		place.File = shortPath(place.File)
		fmt.Fprintf(p.Out, "        %s: as %s, %s: %s\n", place, f.As, p.colourText("1", f.What), f.Problem)
		p.printRows("expected", "32", f.Want)
		p.printRows("got", "31", f.Got)
	}
}

// maxListedRows is how many rows of a failure are printed. The output of --json has all of them.
const maxListedRows = 12

func (p Printer) printRows(heading, colour string, rows []string) {
	if rows == nil {
		return
	}
	if len(rows) == 0 {
		rows = []string{"nothing"}
	}
	for i, row := range rows {
		label := ""
		if i == 0 {
			label = heading
		}
		if i == maxListedRows {
			fmt.Fprintf(p.Out, "          %-9s %s\n", "", p.colourText("2", fmt.Sprintf("… and %d more", len(rows)-i)))
			break
		}
		fmt.Fprintf(p.Out, "          %-9s %s\n", label, p.colourText(colour, row))
	}
}

// PrintFile prints the result of a whole file: its problems, and the blocks of the policy on which no test depends.
func (p Printer) PrintFile(r Report) {
	for _, problem := range r.Problems {
		fmt.Fprintf(p.Out, "  %s  %s\n", p.colourText("31;1", "FAIL"), problem.Error())
	}
	if len(r.Problems) > 0 {
		return
	}
	passedCount := 0
	for _, t := range r.Results {
		if t.HasPassed {
			passedCount++
		}
	}
	coveredCount, tables := 0, map[string]bool{}
	width := 0
	for _, c := range r.Coverage {
		tables[c.Table] = true
		if c.IsComplete() {
			coveredCount++
		} else {
			width = max(width, len(c.Table)+len(c.Block)+2)
		}
	}
	colour := "32"
	if passedCount < len(r.Results) {
		colour = "31;1"
	}
	line := p.colourText(colour, fmt.Sprintf("%d of %d tests passed", passedCount, len(r.Results)))
	if r.Coverage != nil {
		line += fmt.Sprintf(", %d of %d blocks of %d tables covered", coveredCount, len(r.Coverage), len(tables))
	}
	fmt.Fprintf(p.Out, "  %s %s\n", line, p.colourText("2", fmt.Sprintf("(%s)", roundForPeople(r.Duration))))
	for _, c := range r.Coverage {
		if c.IsComplete() {
			continue
		}
		notCovered := []string{}
		if !c.HasShown {
			notCovered = append(notCovered, "a row that shows because of it")
		}
		if !c.Hidden && c.Block != "open" {
			notCovered = append(notCovered, "a row that it alone hides")
		}
		place := c.Place
		place.File = shortPath(place.File)
		fmt.Fprintf(p.Out, "  %s %-*s  %s: no test has %s\n", p.colourText("33", "not covered"), width,
			c.Table+": "+c.Block, place, strings.Join(notCovered, ", nor "))
	}
}

func roundForPeople(d time.Duration) time.Duration {
	if d > time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}
