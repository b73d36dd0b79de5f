package demo

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

const (
	// readyTimeout is how long the demo waits for a new database. On a slow machine, reading its catalogs for the first
	// time can take longer than a running server would wait, so the demo tries again.
	readyTimeout = 15 * time.Minute
	// progressInterval is how often the demo reports that it is waiting.
	progressInterval = 15 * time.Second
)

// retrySchedule says for how long to repeat an operation that may fail on a slow machine.
type retrySchedule struct {
	limit, reportEvery time.Duration
	progress           func(string)
}

// retryUntilReady calls attempt until it succeeds, or until it fails for another reason than a slow machine.
func (p retrySchedule) retryUntilReady(ctx context.Context, isSlow func(error) bool, attempt func() error) error {
	startedAt := time.Now()
	reportedAt := startedAt
	for {
		err := attempt()
		if err == nil || !isSlow(err) || time.Since(startedAt) > p.limit {
			return err
		}
		if time.Since(reportedAt) > p.reportEvery {
			reportedAt = time.Now()
			p.progress("this takes long, and goes on; Ctrl-C ends it: " + err.Error())
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// isNotReady tells whether a database may become usable some time after this error.
func isNotReady(err error) bool {
	var stateError *sqlstate.Error
	return errors.As(err, &stateError) && stateError.Reason == sqlstate.ReasonUpstream
}

// isUnanswered tells whether a login failed because the server is busy, and not because of the role or its password.
func isUnanswered(err error) bool {
	var serverError *pgconn.PgError
	if errors.As(err, &serverError) {
		return slices.Contains([]string{"08", "53", "57"}, serverError.Code[:2])
	}
	return true
}
