package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// uniqueFunctions are functions of PostgreSQL that never return the same value twice. random() is not among them: its
// results may be truncated or rounded to few values.
var uniqueFunctions = []string{"nextval", "gen_random_uuid", "uuidv4", "uuidv7"}

// hasUniqueDefault tells whether a column's default gives each row another value. A sequence, a random UUID and the
// time in microseconds do. Functions of the owner and of extensions are assumed to do so (decision 0007). A constant
// may be equal in other rows. So may the result of another function of PostgreSQL that depends on the time, random
// numbers or the session.
func hasUniqueDefault(column *catalog.Column) bool {
	source, err := sqltext.Scan(column.Default)
	if err != nil {
		return false
	}
	text := func(t sqltext.Token) string { return source.Text[t.Start:t.End] }
	for i, t := range source.Tokens {
		if i == 0 || text(t) != "(" {
			continue
		}
		switch {
		case i > 2 && text(source.Tokens[i-2]) == ".":
			// a parenthesis after :: belongs to the name of a type, and not to a function call
			if i < 4 || text(source.Tokens[i-4]) != "::" {
				return true
			}
		case slices.Contains(uniqueFunctions, text(source.Tokens[i-1])):
			return true
		}
	}
	return slices.Contains([]string{"timestamp with time zone", "timestamp without time zone"}, column.Type) &&
		slices.Contains(clockDefaults, column.Default)
}

// clockDefaults are the default expressions that return the time in microseconds, as PostgreSQL writes them.
var clockDefaults = []string{"now()", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP", "transaction_timestamp()",
	"statement_timestamp()", "clock_timestamp()",
	"(now() AT TIME ZONE 'utc'::text)", "(now() AT TIME ZONE 'UTC'::text)",
	"(CURRENT_TIMESTAMP AT TIME ZONE 'utc'::text)", "(CURRENT_TIMESTAMP AT TIME ZONE 'UTC'::text)",
	"timezone('utc'::text, now())", "timezone('UTC'::text, now())"}
