package rewrite

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// CheckTimeout refuses a value of statement_timeout that exceeds maximum, and also 0, which means no limit. If maximum
// is 0, it refuses nothing. [CheckSetting] must have accepted the value before.
func CheckTimeout(name, value string, maximum time.Duration) *sqlstate.Error {
	if maximum == 0 || !strings.EqualFold(name, "statement_timeout") {
		return nil
	}
	if milliseconds, ok := parseMilliseconds(value); ok && milliseconds >= 1 &&
		milliseconds <= float64(maximum.Milliseconds()) {
		return nil
	}
	return sqlstate.New(sqlstate.InvalidParameterValue, sqlstate.ReasonLimit,
		"statement_timeout is at most %d ms for agents", maximum.Milliseconds()).
		WithHint("The policy says how long a statement may take. It can be set lower, and not to 0, which would " +
			"be without bound.")
}

// parseMilliseconds reads a duration such as '5s' as PostgreSQL does, and rounds it to whole milliseconds.
func parseMilliseconds(value string) (float64, bool) {
	value = strings.ToLower(strings.TrimSpace(value))
	number := strings.TrimRight(value, "abcdefghijklmnopqrstuvwxyz ")
	n, err := strconv.ParseFloat(number, 64)
	unit, isKnown := map[string]float64{"": 1, "us": 0.001, "ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000,
		"d": 86_400_000}[strings.TrimSpace(value[len(number):])]
	return math.RoundToEven(n * unit), err == nil && isKnown
}
