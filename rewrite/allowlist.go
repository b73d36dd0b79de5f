package rewrite

import (
	_ "embed"
	"strings"
)

//go:embed functions.txt
var functionsText string

//go:embed extensions.txt
var extensionsText string

// functionClass says what an agent may do with a function name of pg_catalog.
type functionClass string

const (
	allowFunction    functionClass = "allow"
	shadowFunction   functionClass = "shadow"
	refuseFunction   functionClass = "refuse"
	internalFunction functionClass = "internal"
)

type classified struct {
	class functionClass
	why   string
}

// catalogFunctions is functions.txt: what is not in it is refused.
var catalogFunctions = func() map[string]classified {
	functions := map[string]classified{}
	var group classified
	for line := range lines(functionsText) {
		if head, isGroup := strings.CutPrefix(line, "= "); isGroup {
			class, why, _ := strings.Cut(head, ": ")
			group = classified{functionClass(class), why}
			continue
		}
		functions[line] = group
	}
	return functions
}()

// extensionFunctions is extensions.txt. Its keys are the extensions whose types and operators agents may use.
var extensionFunctions = func() map[string]map[string]bool {
	extensions := map[string]map[string]bool{}
	extension := ""
	for line := range lines(extensionsText) {
		if name, isGroup := strings.CutPrefix(line, "= "); isGroup {
			extension = name
			extensions[name] = map[string]bool{}
			continue
		}
		extensions[extension][line] = true
	}
	return extensions
}()

func knownExtension(name string) bool { return name != "" && extensionFunctions[name] != nil }

// lines yields the lines of a data file that say something.
func lines(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if line != "" && line[0] != '#' && !yield(line) {
				return
			}
		}
	}
}
