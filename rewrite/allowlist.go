package rewrite

import (
	_ "embed"
	"strings"
)

// The data files list the names in pg_catalog of each supported PostgreSQL version, and the names in the extensions
// that agents may use. For each name they say what an agent may do with it. A name that is not listed is refused. Tests
// compare the files with live servers.
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

// nameClass says what an agent may do with a name of pg_catalog or of an extension.
type nameClass string

const (
	classAllow    nameClass = "allow"
	classShadow   nameClass = "shadow"
	classRefuse   nameClass = "refuse"
	classInternal nameClass = "internal"
)

// classifiedName is a name with its class.
type classifiedName struct {
	class nameClass
	why   string
}

// dataFile holds the names of a data file. The first key is an extension or catalogKey, the second key is the name.
type dataFile map[string]map[string]classifiedName

var (
	catalogFunctions   = readDataFile(functionsText)[catalogKey]
	extensionFunctions = readDataFile(extensionsText)
	operatorList       = readDataFile(operatorsText)
	typeList           = readDataFile(typesText)
	castList           = readDataFile(castsText)
)

func readDataFile(text string) dataFile {
	out := dataFile{}
	extension := catalogKey
	var group classifiedName
	for line := range dataLines(text) {
		if head, isGroup := strings.CutPrefix(line, "= "); isGroup {
			c, reason, _ := strings.Cut(head, ": ")
			group = classifiedName{nameClass(c), reason}
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

// catalogKey is the first key of a dataFile for the names of pg_catalog. An object that belongs neither to pg_catalog
// nor to an extension has the key "", under which no dataFile lists a name.
const catalogKey = "pg_catalog"

// allows tells whether agents may use a name of an extension, or of pg_catalog.
func (l dataFile) allows(extension, name string) bool { return l[extension][name].class == classAllow }

// isKnownExtension tells whether the data files list an extension.
func isKnownExtension(name string) bool { return extensionFunctions[name] != nil }

// dataLines yields the lines of a data file without comments and empty lines. An operator may begin with #, so a
// comment begins with # and a space.
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
