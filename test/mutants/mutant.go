package mutants

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Mutant is one change of one file.
type Mutant struct {
	Name string
	Why  string // the security hole, or the bug
	File string // path, relative to the root of the repository
	Old  string
	New  string
	At   int // byte offset of Old in the file; -1: Old occurs only once

	Machine bool // the mutant was made by MachineMutants
}

// HandMutants reads the mutants in hand/.
func HandMutants(root string) ([]Mutant, error) { return readMutants(root, "hand") }

// PlantedFaults reads the mutants in planted/.
func PlantedFaults(root string) ([]Mutant, error) { return readMutants(root, "planted") }

func readMutants(root, folder string) ([]Mutant, error) {
	files, err := filepath.Glob(filepath.Join(root, "test/mutants", folder, "*.txt"))
	if err != nil {
		return nil, err
	}
	var out []Mutant
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		m := Mutant{Name: strings.TrimSuffix(filepath.Base(file), ".txt"), At: -1}
		sections := strings.Split("\n"+string(text), "\n-- ")
		m.Why = strings.TrimSpace(sections[0])
		for _, s := range sections[1:] {
			name, body, ok := strings.Cut(s, " --\n")
			body = strings.TrimSuffix(body, "\n")
			switch {
			case ok && name == "file":
				m.File = body
			case ok && name == "old":
				m.Old = body
			case ok && name == "new":
				m.New = body
			default:
				return nil, fmt.Errorf("%s: a broken section %.20q", file, s)
			}
		}
		if m.Why == "" || m.File == "" || m.Old == "" || m.Old == m.New {
			return nil, fmt.Errorf("%s: a mutant has a reason, a file, an old text and a new one", file)
		}
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b Mutant) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// Apply returns the text of the file with the mutant's change.
func (m Mutant) Apply(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, m.File))
	if err != nil {
		return "", err
	}
	at := m.At
	if at < 0 {
		if n := strings.Count(string(text), m.Old); n != 1 {
			return "", fmt.Errorf("%s: the old text is %d times in %s, want once: the code moved, so move the mutant", m.Name, n, m.File)
		}
		at = strings.Index(string(text), m.Old)
	}
	if !strings.HasPrefix(string(text[at:]), m.Old) {
		return "", fmt.Errorf("%s: the old text is not at byte %d of %s", m.Name, at, m.File)
	}
	return string(text[:at]) + m.New + string(text[at+len(m.Old):]), nil
}
