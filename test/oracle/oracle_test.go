package oracle

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var (
	update  = flag.Bool("update", false, "write the statements out from the shapes")
	schemas = flag.String("schemas", "", "hold these schemas alone against their copies, divided by commas")
)

// quickly are the schemas of the quick run: those with most statements.
var quickly = []string{"works", "clinic", "arcive"}

// What an agent receives for a statement is what PostgreSQL answers on a copy without the invisible rows, in every mode.
func TestAnswersEqualThoseOfAFilteredCopy(t *testing.T) {
	options := Options{Modes: []instance.Mode{instance.Both, instance.Gate, instance.Injected}}
	switch {
	case *schemas != "":
		options.Schemas = strings.Split(*schemas, ",")
	case tier.Quick():
		options.Schemas, options.Every, options.Spare = quickly, 4, 3
	case !tier.IsNightly():
		options.Spare = 3
	}
	r := Run(t, options)
	t.Log(r)
	if *schemas != "" {
		return
	}
	if r.Statements < 1000 {
		t.Errorf("the corpus has %d statements, want at least 1000", r.Statements)
	}
	if r.Must < 400 {
		t.Errorf("%d statements must be answered, want at least 400", r.Must)
	}
	if r.Sensitive*3 < r.Answered*2 {
		t.Errorf("%d of %d answered statements are sensitive to hidden rows, want two thirds", r.Sensitive, r.Answered)
	}
}

// The committed statements are what the shapes give.
func TestShapesAreWrittenOut(t *testing.T) {
	for _, s := range Schemas {
		want := Shapes(t, s.Name)
		file := instance.Path(t, "test/oracle/testdata/"+s.Name+"/shapes.sql")
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != want {
			t.Errorf("%s is not what the shapes give (run with -update): %v", file, err)
		}
	}
}
