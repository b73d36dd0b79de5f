package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pgconsent/pgconsent/internal/registry"
	"github.com/pgconsent/pgconsent/internal/registry/sweep"
	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/run/serve"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/tool/doctor"
)

// checkConsent checks the consent registry, if one is configured: its key, its newest record, the clock, and whether
// the sweeper has run. "audit verify" verifies every single record.
func checkConsent(ctx context.Context, c *config.Config, database string, runsSweeper bool) []doctor.Finding {
	if c.Consent == nil {
		return nil
	}
	var out []doctor.Finding
	addFinding := func(severity doctor.Severity, fix, format string, args ...any) {
		out = append(out, doctor.Finding{ID: "consent", Severity: severity, Problem: fmt.Sprintf(format, args...), Fix: fix})
	}
	r, err := serve.OpenRegistry(c, database)
	if err != nil {
		addFinding(doctor.SeverityUnsafe, hintOr(err,
			"Run pgconsent migrate, which makes the key of a new registry; restore that of an old one from your copy."),
			"the consent registry cannot be opened: %s", errorText(err))
		return out
	}
	defer r.Close()
	inspection, err := r.Inspect(ctx)
	if err != nil {
		addFinding(doctor.SeverityWarning, hintOr(err, "Run pgconsent migrate."),
			"the consent registry could not be looked at: %s", errorText(err))
		return out
	}
	const verifyHint = "Run pgconsent audit verify, which says where; then see docs/reference/consent.md."
	for _, f := range inspection.Findings {
		addFinding(doctor.SeverityWarning, verifyHint, "the consent registry is not what was acknowledged: %s", f)
	}
	if inspection.MissingRecord != "" {
		addFinding(doctor.SeverityUnsafe,
			"Put the newest copy of the database in its place, or record again what was withdrawn since; "+
				"docs/reference/consent.md says how (\"After an older backup\").",
			"the consent registry is not what was acknowledged: %s; withdrawals may have gone with it", inspection.MissingRecord)
	}
	if inspection.NoAnchor {
		addFinding(doctor.SeverityWarning,
			"Restore consent.anchor from your copy; the next change makes one, if every record is right.",
			"nothing anchors the newest consent records: nobody could tell if they were cut off")
	}
	if inspection.ClockLag > 0 {
		addFinding(doctor.SeverityWarning, "Set the clock of the database's server right: until then nobody can grant anything.",
			"the database's clock is %s behind the last consent record", inspection.ClockLag.Round(time.Second))
	}
	if runsSweeper {
		checkSweeper(ctx, c, r, addFinding)
	}
	if len(out) == 0 {
		addFinding(doctor.SeverityOK, "", "the consent registry ends as it was anchored, and nothing waits for the sweeper")
	}
	return out
}

// checkSweeper reports rows that the sweeper should already have deleted or anonymised.
func checkSweeper(ctx context.Context, c *config.Config, r *registry.Registry,
	addFinding func(doctor.Severity, string, string, ...any)) {
	const sweepHint = "pgconsent serve sweeps while it runs: look into its log. pgconsent sweep does it now."
	n, err := (&sweep.Sweeper{Registry: r}).Counts(ctx)
	period := c.Consent.SweepInterval()
	lag := time.Duration(n.LagSeconds * float64(time.Second))
	switch {
	case err != nil:
		addFinding(doctor.SeverityWarning, hintOr(err, "Run pgconsent migrate."),
			"it could not be looked at what waits for the sweeper: %s", errorText(err))
	case lag > time.Hour:
		addFinding(doctor.SeverityWarning, sweepHint,
			"what was withdrawn, has expired or was erased waits for its deletion for %s; agents do not see it",
			lag.Round(time.Minute))
	case n.SweptAt == 0:
		addFinding(doctor.SeverityWarning, sweepHint, "the sweeper has never run here")
	case time.Since(time.Unix(int64(n.SweptAt), 0)) > 2*period:
		addFinding(doctor.SeverityWarning, sweepHint, "the sweeper ran last at %s, and is to run every %s",
			time.Unix(int64(n.SweptAt), 0).UTC().Format(time.RFC3339), period)
	}
}

// hintOr returns the hint of an error, or fallback if the error has no hint.
func hintOr(err error, fallback string) string {
	var e *sqlstate.Error
	if errors.As(err, &e) && e.Hint != "" {
		return e.Hint
	}
	return fallback
}
