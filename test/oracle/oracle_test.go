package oracle

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/pgtest"
	"github.com/pgconsent/pgconsent/test/instance"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var (
	update  = flag.Bool("update", false, "write the statements out from the shapes")
	schemas = flag.String("schemas", "", "hold these schemas alone against their copies, divided by commas")
)

// inTurn are schemas of which one is held against its copy each day.
var inTurn = []string{"hospital", "crm", "ward", "bazaar", "orbit", "recall", "docket", "fleet", "press", "kin", "estate", "scribe", "payroll", "campus", "carrier", "alms", "aloft", "grid", "tryst", "cortex", "lodge", "surety", "troupe", "remedy"}

// What an agent receives for a statement is what PostgreSQL answers on a copy without the invisible rows, in every mode.
func TestAnswersEqualThoseOfAFilteredCopy(t *testing.T) {
	spare := 3
	if instance.Full() {
		spare = 1
	}
	options := Options{Modes: []instance.Mode{instance.Both, instance.Gate, instance.Injected}, Spare: spare}
	if *schemas != "" {
		options.Schemas, options.Spare = strings.Split(*schemas, ","), 1
	} else {
		options.Schemas = slices.DeleteFunc(Names(), func(name string) bool {
			turn := slices.Index(inTurn, name)
			return turn >= 0 && !instance.Turn(turn, len(inTurn))
		})
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
