package policy

import (
	"regexp"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
)

// fileFormat says which YAML a policy may use.
var fileFormat = yamlfile.Format{
	RefuseOther:       "anchors, aliases, tags and merge keys are not part of a policy",
	SecondDocument:    "a second YAML document",
	SecondDocumentFix: "put it into a file of its own",
	CheckText:         checkVariable,
}

// variable matches a reference to an environment variable, as shells and configurations write it.
var variable = regexp.MustCompile(`\$\{[A-Za-z_][A-Za-z0-9_]*([:?+=-][^}]*)?\}`)

// checkVariable refuses text with a reference to an environment variable, so that a reader of the policy sees
// everything that it says.
func checkVariable(position place, text string) *Error {
	name := variable.FindString(text)
	if name == "" {
		return nil
	}
	return position.Errorf("what differs between agents is an attribute, which the configuration gives them; "+
		"passwords stand under secrets there",
		"%s is not replaced: a policy takes nothing from the environment", name)
}
