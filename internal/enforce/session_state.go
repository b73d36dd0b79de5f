package enforce

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/rewrite"
)

// sessionFunctions are functions that change the state of the server process until its end, without changing a setting.
// For some of them, agents call functions of pgconsent with the same names.
var sessionFunctions = []string{"pg_advisory_lock", "pg_advisory_lock_shared", "pg_try_advisory_lock",
	"pg_try_advisory_lock_shared", "setseed"}

// keepsSessionState reports whether a text calls one of sessionFunctions.
func keepsSessionState(res *rewrite.Result) bool {
	return slices.ContainsFunc(res.Functions, func(name string) bool {
		return slices.Contains(sessionFunctions, name[strings.LastIndexByte(name, '.')+1:])
	})
}
