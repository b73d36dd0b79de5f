package policy

import "github.com/pgconsent/pgconsent/internal/run/yamlfile"

type (
	// Error is a problem in a policy, with its place in the file.
	Error = yamlfile.Error
	// Errors are all problems in a policy, in the order of the files.
	Errors = yamlfile.Errors

	place = yamlfile.Place
	node  = yamlfile.Node
)

// quoteName writes a name in quotes for a message.
func quoteName(s string) string { return `"` + s + `"` }
