package privacy

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/memory/generalize"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// An error of the proxy or the database gets one of this package's names. It keeps its SQLSTATE and message, and its
// detail is dropped.
func TestNamesOfDatabaseErrors(t *testing.T) {
	for code, want := range map[string]struct{ name, code string }{
		"42501": {NameForbidden, "42501"},
		"23505": {NameConflict, "23505"},
		"22023": {NameValidation, "22023"},
		"22021": {NameValidation, "22021"},
		"22P02": {NameNotFound, "PC404"}, // the id is not of the column's type, so no row has it
		"55P03": {NameBusy, "55P03"},
		"23503": {NameRefused, "23503"},
		"57014": {NameRefused, "57014"},
		"2F000": {NameRefused, "2F000"},
	} {
		err := translateDatabaseError(fmt.Errorf("asked: %w", &pgconn.PgError{Code: code, Message: "said", Hint: "do so",
			Detail: "Key (id)=(secret)"}))
		requireRefused(t, code, err, want.name, want.code)
		var state *sqlstate.Error
		if errors.As(err, &state) && (state.Detail != "" || want.code == code && code != "55P03" &&
			(err.Error() != "said" || state.Hint != "do so")) {
			t.Errorf("%s: %+v", code, state)
		}
	}
	otherError := errors.New("the connection broke")
	if got := translateDatabaseError(otherError); got != otherError {
		t.Errorf("what is no answer of a database: %v", got)
	}
	if err := translateDatabaseError(nil); err != nil {
		t.Errorf("no error: %v", err)
	}
}

func TestEachNameHasItsSQLSTATE(t *testing.T) {
	for name, code := range map[string]string{NameNotFound: "PC404", NameForbidden: "42501", NameValidation: "PC422",
		NameBlocked: "PC422", NameConflict: "PC409"} {
		requireRefused(t, name, newError(name, "a hint", "%d of %s", 2, "x"), name, code)
	}
	requireRefused(t, "missing", newNotFoundError("memory"), NameNotFound, "PC404")
}

// A name blocks a belief, whatever the caller accepts. A possible name blocks until the caller accepts warnings. Other
// findings do not block.
func TestFindingsThatBlockABelief(t *testing.T) {
	reportOfCheck := func(check generalize.Check) generalize.Report {
		return generalize.Report{Verdict: generalize.VerdictWarned, Findings: []generalize.Finding{{Check: check,
			Level: generalize.LevelWarn}}}
	}
	adviceReport := generalize.Report{Verdict: generalize.VerdictWarned,
		Findings: []generalize.Finding{{Check: generalize.CheckEntityName, Level: generalize.LevelAdvisory}}}
	for _, c := range []struct {
		description                           string
		report                                generalize.Report
		blocksIfNotAccepted, blocksIfAccepted bool // whether it blocks if warnings are not accepted, and if they are
	}{
		{"nothing", generalize.Report{Verdict: generalize.VerdictClear}, false, false},
		{"a name", generalize.Report{Verdict: generalize.VerdictBlocked}, true, true},
		{"what may be a name", reportOfCheck(generalize.CheckEntityName), true, false},
		{"a date", reportOfCheck(generalize.CheckSpecificity), false, false},
		{"advice about a name", adviceReport, false, false},
	} {
		for acceptWarnings, wantBlocked := range map[bool]bool{false: c.blocksIfNotAccepted, true: c.blocksIfAccepted} {
			err := refusalOfReport(c.report, acceptWarnings)
			if !wantBlocked {
				if err != nil {
					t.Errorf("%s, accepted %v: %v", c.description, acceptWarnings, err)
				}
				continue
			}
			requireRefused(t, c.description, err, NameBlocked, "PC422")
			var blockedError *BlockedError
			if !errors.As(err, &blockedError) || blockedError.Name() != NameBlocked || blockedError.Report.Verdict != c.report.Verdict ||
				blockedError.Error() == "" {
				t.Errorf("%s, accepted %v: %v tells nothing of the report", c.description, acceptWarnings, err)
			}
		}
	}
}
