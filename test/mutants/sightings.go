package mutants

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Sighting says which make target catches a planted fault, and with which test.
type Sighting struct {
	Target string // test, test-all or none; "": the fault has not been tried yet
	By     TestName
}

// Values of Sighting.Target. targetNone means that the fault was tried and no test failed.
const (
	targetTest    = "test"
	targetTestAll = "test-all"
	targetNone    = "none"
)

const sightingsHead = `# Which of "make test" and "make test-all" sees a planted fault: its name, its package, the target ("none": neither), and the
# package and the name of the test that sees it. A fault without a target was not tried yet. TestPlanted writes it.
`

// readSightings reads planted.txt, which says for each planted fault which test catches it.
func readSightings(root string) (map[string]Sighting, error) {
	text, err := os.ReadFile(filepath.Join(root, "test/mutants/planted.txt"))
	if err != nil {
		return nil, err
	}
	out := map[string]Sighting{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		var s Sighting
		switch {
		case len(fields) == 2:
		case len(fields) == 3 && fields[2] == targetNone:
			s.Target = targetNone
		case len(fields) == 5 && (fields[2] == targetTest || fields[2] == targetTestAll):
			s = Sighting{fields[2], TestName{fields[3], fields[4]}}
		default:
			return nil, fmt.Errorf("planted.txt: %q is not a fault and what sees it", strings.TrimSpace(line))
		}
		out[fields[0]] = s
	}
	return out, nil
}

// writeSightings writes planted.txt, which has one line for each fault.
func writeSightings(root string, faults []Mutant, sightings map[string]Sighting) error {
	var b strings.Builder
	b.WriteString(sightingsHead)
	for _, m := range faults {
		fields := []string{m.Name, "./" + path.Dir(m.File)}
		if s := sightings[m.Name]; s.Target != "" {
			fields = append(fields, s.Target)
			if s.Target != targetNone {
				fields = append(fields, s.By.Pkg, s.By.Test)
			}
		}
		b.WriteString(strings.Join(fields, " ") + "\n")
	}
	// An interruption must leave either the old or the new file.
	to := filepath.Join(root, "test/mutants/planted.txt")
	if err := os.WriteFile(to+".new", []byte(b.String()), 0o644); err != nil {
		return err
	}
	return os.Rename(to+".new", to)
}
