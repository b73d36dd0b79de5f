package policy

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// uniqueFunctions are PostgreSQL's functions whose results no two rows share. Those of random() may, where it is of few
// numbers, or cut.
var uniqueFunctions = []string{"nextval", "gen_random_uuid", "uuidv4", "uuidv7"}

// hasUniqueDefault tells whether a column's default gives each row a value of its own: what draws, the clock as it is, and what
// calls code of the owner's or of an extension, which is not known (decision 0007). Constants, and what PostgreSQL's
// functions make of the clock, of chance or of the session, can be those of other rows.
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
			if i < 4 || text(source.Tokens[i-4]) != "::" { // else the parenthesis is a type's
				return true
			}
		case slices.Contains(uniqueFunctions, text(source.Tokens[i-1])):
			return true
		}
	}
	return slices.Contains([]string{"timestamp with time zone", "timestamp without time zone"}, column.Type) &&
		slices.Contains(clockDefaults, column.Default)
}

// clockDefaults are defaults that are the clock in microseconds, as PostgreSQL writes them.
var clockDefaults = []string{"now()", "CURRENT_TIMESTAMP", "LOCALTIMESTAMP", "transaction_timestamp()",
	"statement_timestamp()", "clock_timestamp()",
	"(now() AT TIME ZONE 'utc'::text)", "(now() AT TIME ZONE 'UTC'::text)",
	"(CURRENT_TIMESTAMP AT TIME ZONE 'utc'::text)", "(CURRENT_TIMESTAMP AT TIME ZONE 'UTC'::text)",
	"timezone('utc'::text, now())", "timezone('UTC'::text, now())"}
