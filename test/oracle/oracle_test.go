package oracle

import (
	"flag"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var schemas = flag.String("schemas", "", "hold these schemas alone against their copies, divided by commas")

// quickSchemas are the schemas of the quick run, those with most statements.
var quickSchemas = []string{"works", "clinic"}

// The answer to an agent's statement must be PostgreSQL's answer on a copy without the hidden rows, in every mode.
func TestAnswersEqualThoseOfAFilteredCopy(t *testing.T) {
	options := Options{Modes: instance.Modes(instance.Both, instance.SignedViews, instance.InjectedOnly)}
	switch {
	case *schemas != "":
		options.Schemas = strings.Split(*schemas, ",")
	case tier.Quick():
		options.Schemas, options.EveryNth, options.EveryNthInOtherModes, options.OneOtherMode = quickSchemas, 4, 3, true
	case !tier.IsNightly():
		options.EveryNth, options.EveryNthInOtherModes, options.OneOtherMode = 8, 3, true
	}
	r := Run(t, options)
	t.Log(r)
	if *schemas != "" {
		return
	}
	if r.Statements < 1000 && !tier.Quick() {
		t.Errorf("the corpus has %d statements, want at least 1000", r.Statements)
	}
	if r.MustBeAnswered < 400 && !tier.Quick() || r.MustBeAnswered < 300 {
		t.Errorf("%d statements must be answered, want at least 400", r.MustBeAnswered)
	}
	if r.DependsOnHidden*3 < r.Answered*2 {
		t.Errorf("%d of %d answered statements are sensitive to hidden rows, want two thirds", r.DependsOnHidden, r.Answered)
	}
}

// Every shape must fit a table of some schema, and every table of bindings.txt must have shapes.
func TestShapesFit(t *testing.T) {
	fittingShapes, tables := map[string]bool{}, map[string]int{}
	for _, s := range Schemas {
		for _, q := range s.shapeStatements(t) {
			shapeSource, table, _ := strings.Cut(q.Source, ", ")
			fittingShapes[shapeSource] = true
			tables[table]++
		}
	}
	for _, shape := range readStatements(t, "test/oracle/testdata/shapes.sql") {
		if !fittingShapes[shape.Source] {
			t.Errorf("%s: %s is written for no table", shape.Source, shape.SQL)
		}
	}
	for _, b := range readPlaceholderValues(t) {
		if table := b.values["T"] + " of " + b.schema; tables[table] == 0 {
			t.Errorf("nothing is written for %s", table)
		}
	}
}
