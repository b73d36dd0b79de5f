package policy

import "github.com/pgconsent/pgconsent/internal/run/yamlfile"

type (
	// Error is one thing that is wrong with a policy, or unwise in it, with its place in the file.
	Error = yamlfile.Error
	// Errors are all that is wrong with a policy, in the order of the files.
	Errors = yamlfile.Errors

	place = yamlfile.Place
	node  = yamlfile.Node
)

func quote(s string) string { return `"` + s + `"` }
