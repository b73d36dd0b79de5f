package enforce

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/rewrite"
)

// sessionFunctions are the functions by which a statement changes what stays in the server's process until its end, and
// what no setting tells. Agents call stand-ins of the same names for some.
var sessionFunctions = []string{"pg_advisory_lock", "pg_advisory_lock_shared", "pg_try_advisory_lock",
	"pg_try_advisory_lock_shared", "setseed"}

// keepsSessionState reports whether a text calls one of these functions.
func keepsSessionState(res *rewrite.Result) bool {
	return slices.ContainsFunc(res.Functions, func(name string) bool {
		return slices.Contains(sessionFunctions, name[strings.LastIndexByte(name, '.')+1:])
	})
}
