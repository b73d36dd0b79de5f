package rewrite

import (
	_ "embed"
	"strings"
)

// The data files list the names of pg_catalog in each supported version, and those of the extensions that agents may
// use. They say what an agent may do with each name. A name that they do not have is refused. Tests compare them with
// live servers.
var (
	//go:embed functions.txt
	functionsText string
	//go:embed extensions.txt
	extensionsText string
	//go:embed operators.txt
	operatorsText string
	//go:embed types.txt
	typesText string
	//go:embed casts.txt
	castsText string
)

// class says what an agent may do with a name.
type class string

const (
	classAllow    class = "allow"
	classShadow   class = "shadow"
	classRefuse   class = "refuse"
	classInternal class = "internal"
)

type classifiedName struct {
	class class
	why   string
}

// dataFile is a data file: what it says of a name, by pg_catalog or an extension.
type dataFile map[string]map[string]classifiedName

var (
	catalogFunctions   = readList(functionsText)[catalogKey]
	extensionFunctions = readList(extensionsText)
	operatorList       = readList(operatorsText)
	typeList           = readList(typesText)
	castList           = readList(castsText)
)

func readList(text string) dataFile {
	out := dataFile{}
	extension := catalogKey
	var group classifiedName
	for line := range dataLines(text) {
		if head, isGroup := strings.CutPrefix(line, "= "); isGroup {
			c, why, _ := strings.Cut(head, ": ")
			group = classifiedName{class(c), why}
			continue
		}
		if name, isExtension := strings.CutPrefix(line, "["); isExtension {
			extension = strings.TrimSuffix(name, "]")
			continue
		}
		if out[extension] == nil {
			out[extension] = map[string]classifiedName{}
		}
		out[extension][line] = group
	}
	return out
}

// catalogKey stands for pg_catalog where a list has the name of an extension. The name of an object that belongs to
// neither is empty, and no list has anything under it.
const catalogKey = "pg_catalog"

// allows tells whether agents may use a name of an extension, or of pg_catalog.
func (l dataFile) allows(extension, name string) bool { return l[extension][name].class == classAllow }

// knownExtension tells whether an extension is in the data files.
func knownExtension(name string) bool { return extensionFunctions[name] != nil }

// dataLines yields the lines of a data file without comments and empty lines. Operators may begin with the sign of a
// comment, so a comment begins with that sign and a space.
func dataLines(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(line)
			if line != "" && !strings.HasPrefix(line, "# ") && !yield(line) {
				return
			}
		}
	}
}
