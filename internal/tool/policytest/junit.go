package policytest

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"
)

type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	File    string        `xml:"file,attr"`
	Line    int           `xml:"line,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitOutcome `xml:"failure"`
	Error   *junitOutcome `xml:"error"`
}

type junitOutcome struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes reports as JUnit XML, which CI systems read, with a suite for each test file.
func WriteJUnit(w io.Writer, reports []Report) error {
	var all junitSuites
	for _, r := range reports {
		s := junitSuite{Name: r.File, Time: secondsText(r.Duration)}
		if len(r.Problems) > 0 {
			s.Cases = append(s.Cases, junitCase{Name: "file", Class: r.File, File: r.File, Line: r.Problems[0].Line,
				Time: "0", Error: &junitOutcome{r.Problems[0].Message, r.Problems.Error()}})
		}
		for _, t := range r.Results {
			c := junitCase{Name: t.Name, Class: r.File, File: t.File, Line: t.Line, Time: secondsText(t.Duration)}
			switch {
			case len(t.Problems) > 0:
				c.Error = &junitOutcome{t.Problems[0].Message, t.Problems.Error()}
			case !t.HasPassed:
				var b strings.Builder
				for _, f := range t.Failures {
					fmt.Fprintf(&b, "%s: as %s, %s: %s\nexpected: %s\ngot: %s\n", f.Place, f.As, f.What, f.Problem,
						strings.Join(f.Want, ", "), strings.Join(f.Got, ", "))
				}
				c.Failure = &junitOutcome{t.Failures[0].Problem, b.String()}
			}
			s.Cases = append(s.Cases, c)
		}
		for _, c := range s.Cases {
			s.Tests++
			if c.Failure != nil {
				s.Failures++
			}
			if c.Error != nil {
				s.Errors++
			}
		}
		all.Suites = append(all.Suites, s)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func secondsText(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
