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
		refused(t, code, err, want.name, want.code)
		var state *sqlstate.Error
		if errors.As(err, &state) && (state.Detail != "" || want.code == code && code != "55P03" &&
			(err.Error() != "said" || state.Hint != "do so")) {
			t.Errorf("%s: %+v", code, state)
		}
	}
	other := errors.New("the connection broke")
	if got := translateDatabaseError(other); got != other {
		t.Errorf("what is no answer of a database: %v", got)
	}
	if err := translateDatabaseError(nil); err != nil {
		t.Errorf("no error: %v", err)
	}
}

func TestEachNameHasItsSQLSTATE(t *testing.T) {
	for name, code := range map[string]string{NameNotFound: "PC404", NameForbidden: "42501", NameValidation: "PC422",
		NameBlocked: "PC422", NameConflict: "PC409"} {
		refused(t, name, newError(name, "a hint", "%d of %s", 2, "x"), name, code)
	}
	refused(t, "missing", newNotFoundError("memory"), NameNotFound, "PC404")
}

// A name blocks a belief, whatever the caller accepts. A possible name blocks until the caller accepts warnings. Other
// findings do not block.
func TestFindingsThatBlockABelief(t *testing.T) {
	warned := func(check generalize.Check) generalize.Report {
		return generalize.Report{Verdict: generalize.VerdictWarned, Findings: []generalize.Finding{{Check: check,
			Level: generalize.LevelWarn}}}
	}
	advised := generalize.Report{Verdict: generalize.VerdictWarned,
		Findings: []generalize.Finding{{Check: generalize.CheckEntityName, Level: generalize.LevelAdvisory}}}
	for _, c := range []struct {
		what           string
		report         generalize.Report
		asked, accepts bool // whether it blocks if warnings are not accepted, and if they are
	}{
		{"nothing", generalize.Report{Verdict: generalize.VerdictClear}, false, false},
		{"a name", generalize.Report{Verdict: generalize.VerdictBlocked}, true, true},
		{"what may be a name", warned(generalize.CheckEntityName), true, false},
		{"a date", warned(generalize.CheckSpecificity), false, false},
		{"advice about a name", advised, false, false},
	} {
		for accept, blocks := range map[bool]bool{false: c.asked, true: c.accepts} {
			err := refusalOfReport(c.report, accept)
			if !blocks {
				if err != nil {
					t.Errorf("%s, accepted %v: %v", c.what, accept, err)
				}
				continue
			}
			refused(t, c.what, err, NameBlocked, "PC422")
			var told *BlockedError
			if !errors.As(err, &told) || told.Name() != NameBlocked || told.Report.Verdict != c.report.Verdict ||
				told.Error() == "" {
				t.Errorf("%s, accepted %v: %v tells nothing of the report", c.what, accept, err)
			}
		}
	}
}
