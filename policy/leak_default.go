package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// uniqueFunctions are functions of PostgreSQL whose results differ for any two rows. random() is none: it may have few
// values, or be truncated.
var uniqueFunctions = []string{"nextval", "gen_random_uuid", "uuidv4", "uuidv7"}

// hasUniqueDefault tells whether a column's default gives each row a value of its own. A sequence, a random UUID and
// the full clock do. So do, by assumption, functions of the owner and of extensions (decision 0007). A constant can be
// equal in other rows. So can the result of another function of PostgreSQL that uses the clock, random numbers or the
// session.
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
			if i < 4 || text(source.Tokens[i-4]) != "::" { // after :: the parenthesis belongs to a type, not to a function call
				return true
			}
		case slices.Contains(uniqueFunctions, text(source.Tokens[i-1])):
			return true
		}
	}
	return slices.Contains([]string{"timestamp with time zone", "timestamp without time zone"}, column.Type) &&
		slices.Contains(clockDefaults, column.Default)
}

// clockDefaults are the default expressions that return the clock with microseconds, in PostgreSQL's spelling.
var clockDefaults = []string{"now()", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP", "transaction_timestamp()",
	"statement_timestamp()", "clock_timestamp()",
	"(now() AT TIME ZONE 'utc'::text)", "(now() AT TIME ZONE 'UTC'::text)",
	"(CURRENT_TIMESTAMP AT TIME ZONE 'utc'::text)", "(CURRENT_TIMESTAMP AT TIME ZONE 'UTC'::text)",
	"timezone('utc'::text, now())", "timezone('UTC'::text, now())"}
