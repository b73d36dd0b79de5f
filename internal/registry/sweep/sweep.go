package sweep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/registry"
	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Sweeper sweeps one database. Only the field Registry is required.
type Sweeper struct {
	Registry  *registry.Registry
	Log       *slog.Logger                     // nil: nothing is logged
	BatchSize int                              // how many rows one transaction deletes or changes; 0: 1000
	Progress  func(stage string, done, of int) // is called to report progress; may be nil

	betweenTransactions func() // tests set it; it runs between two transactions
}

// Report says what a sweep did or, with DryRun, would do.
type Report struct {
	DryRun         bool           `json:"dry_run"`
	SweepRunning   bool           `json:"busy"`     // another sweeper was running, so this one did nothing
	RecordedEvents map[string]int `json:"recorded"` // the number of records made, by event: expired, lapsed, warned
	Tables         []Table        `json:"tables"`
	Failures       []string       `json:"failures,omitempty"`
}

// Table counts the rows that a sweep removes from one table.
type Table struct {
	Table      string `json:"table"`
	Subjects   int    `json:"subjects"`
	Deleted    int64  `json:"deleted"`
	Anonymised int64  `json:"anonymised"`
}

// lockKey is the key of the advisory lock that the running sweeper of a database holds.
const lockKey = 7_203_361_906_117_000_001

// dueRows says how many rows of a subject in one table must be removed.
type dueRows struct {
	relation, subject, operation string
	rows                         int64
}

// Run sweeps once. It returns an error if the sweep could not begin or could not read the database. Other problems are
// in Failures, and the next sweep tries again.
func (s *Sweeper) Run(ctx context.Context, dryRun bool) (Report, error) {
	out := Report{DryRun: dryRun, RecordedEvents: map[string]int{}}
	conn, err := s.connect(ctx)
	if err != nil {
		return out, err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if dryRun {
		return out, s.countDueRows(ctx, conn, &out)
	}
	var isLocked bool
	if err := conn.QueryRow(ctx, "SELECT pg_catalog.pg_try_advisory_lock($1)",
		int64(lockKey)).Scan(&isLocked); err != nil {
		return out, databaseError("begin to sweep", err)
	}
	if !isLocked {
		out.SweepRunning = true
		return out, nil
	}
	// The lock is released explicitly: the server may notice the end of a connection late, and the next sweep could not
	// begin.
	defer func() {
		unlock, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_, _ = conn.Exec(unlock, "SELECT pg_catalog.pg_advisory_unlock($1)", int64(lockKey))
	}()
	s.recordExpiries(ctx, &out)
	epoch, err := s.Registry.LastRecordNumber(ctx)
	if err != nil {
		return out, err
	}
	if err := s.recordNotes(ctx, conn, &out); err != nil {
		return out, err
	}
	// Erasures that come after this query are left for the next sweep.
	var erased []string
	if err := conn.QueryRow(ctx,
		"SELECT COALESCE(pg_catalog.array_agg(e.subject || ' ' || e.erased_at::text), '{}') FROM "+
			"pgconsent.sweep_erased AS e").Scan(&erased); err != nil {
		return out, databaseError("read who was erased", err)
	}
	if err := s.sweepRows(ctx, conn, &out); err != nil {
		return out, err
	}
	if err := s.recordNotes(ctx, conn, &out); err != nil {
		return out, err
	}
	if len(out.Failures) > 0 {
		return out, nil
	}
	if _, err := conn.Exec(ctx,
		"DELETE FROM pgconsent.sweep_erased AS e WHERE e.subject || ' ' || e.erased_at::text = ANY ($1)", erased); err != nil {
		return out, databaseError("forget who was erased", err)
	}
	if _, err := conn.Exec(ctx, "UPDATE pgconsent.sweep_state SET finished_at = pgconsent.consent_now(), epoch = $1",
		epoch); err != nil {
		return out, databaseError("remember the sweep", err)
	}
	return out, nil
}

// connect opens a separate connection, since the advisory lock belongs to its session.
func (s *Sweeper) connect(ctx context.Context) (*pgx.Conn, error) {
	c := s.Registry.Connect.Copy()
	c.RuntimeParams["application_name"] = "pgconsent sweep"
	c.RuntimeParams["statement_timeout"] = "0"
	c.RuntimeParams["lock_timeout"] = "30s"
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return nil, sqlstate.New(sqlstate.ConnectionFailure, sqlstate.ReasonUpstream,
			"the database cannot be reached to sweep it").WithCause(err)
	}
	return conn, nil
}

func (s *Sweeper) progress(stage string, done, total int) {
	if s.Progress != nil {
		s.Progress(stage, done, total)
	}
	if s.betweenTransactions != nil {
		s.betweenTransactions()
	}
}

// addFailure adds a failure to the report. It reports only the code and the place of a database error, because its
// message may quote a row.
func (s *Sweeper) addFailure(out *Report, action string, err error) {
	text := action + ": " + err.Error()
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		text = fmt.Sprintf("%s: SQLSTATE %s", action, pgErr.Code)
		if pgErr.ConstraintName != "" {
			text += ", constraint " + pgErr.ConstraintName
		}
	}
	if !slices.Contains(out.Failures, text) {
		out.Failures = append(out.Failures, text)
		if s.Log != nil {
			s.Log.Error("sweep", "failure", text)
		}
	}
}

var eventNames = map[consent.Action]string{consent.ActionExpire: "expired", consent.ActionLapse: "lapsed",
	consent.ActionWarn: "warned"}

// recordExpiries records what time alone has caused: expiries, lapsed requests and warnings.
func (s *Sweeper) recordExpiries(ctx context.Context, out *Report) {
	const page = 500
	recordedCount, stuckKeys := 0, map[consent.Key]bool{}
	for ctx.Err() == nil {
		list, err := s.Registry.DueCommands(ctx, page+len(stuckKeys))
		if err != nil {
			s.addFailure(out, "read what is due", err)
			return
		}
		hasChanged := false
		for _, command := range list {
			if stuckKeys[command.Key()] {
				continue
			}
			_, err := s.Registry.Execute(ctx, command)
			var validationErr *consent.ValidationError
			switch {
			case errors.As(err, &validationErr): // another process has recorded it already
				stuckKeys[command.Key()] = true
			case err != nil:
				stuckKeys[command.Key()] = true
				s.addFailure(out, "record that a consent "+eventNames[command.Action], err)
			default:
				hasChanged = true
				out.RecordedEvents[eventNames[command.Action]]++
			}
			recordedCount++
			s.progress("records", recordedCount, 0)
			if ctx.Err() != nil {
				return
			}
		}
		if !hasChanged {
			return
		}
	}
}

// recordNotes records in the registry that rows of subjects were deleted or anonymised, as notes of sweeps say.
func (s *Sweeper) recordNotes(ctx context.Context, conn *pgx.Conn, out *Report) error {
	signer, err := s.Registry.NoteSigner(ctx)
	if err != nil {
		return err
	}
	rows, err := conn.Query(ctx,
		"SELECT n.id::text, n.subject, n.what, COALESCE(n.code, '') FROM pgconsent.sweep_note AS n ORDER BY n.id")
	if err != nil {
		return databaseError("read what was deleted", err)
	}
	type note struct{ id, subject, what, code string }
	notes, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (n note, err error) {
		return n, row.Scan(&n.id, &n.subject, &n.what, &n.code)
	})
	if err != nil {
		return databaseError("read what was deleted", err)
	}
	for i, n := range notes {
		once, ok := signer.Verify(n.subject, n.code)
		if !ok {
			s.addFailure(out, "record that data were "+n.what,
				errors.New("this note was not made by a sweep (pgconsent.sweep_note): find out who made it, and delete it"))
			continue
		}
		command := consent.Command{Action: consent.ActionNoteDeleted, Subject: n.subject,
			Caller:    consent.Party{Role: consent.RoleSystem},
			Interface: "sweep", RequestKey: "sweep " + once + " " + n.what}
		if n.what == "anonymised" {
			command.Action = consent.ActionNoteAnonymised
		}
		// An erased subject is unknown to the registry, so the note cannot be recorded.
		var notFound *consent.NotFoundError
		if _, err := s.Registry.Execute(ctx, command); err != nil && !errors.As(err, &notFound) {
			s.addFailure(out, "record that data were "+n.what, err)
			continue
		}
		s.progress("notes", i+1, len(notes))
		if _, err := conn.Exec(ctx, "DELETE FROM pgconsent.sweep_note WHERE id = $1::text::uuid", n.id); err != nil {
			return databaseError("remove a recorded note", err)
		}
	}
	return nil
}

// findDueRows returns which rows are due, or none if the policy has no lifecycles.
//
// With withDerivedRows, the list includes rows that must be removed because they were made from due rows. Each is
// counted for the first subject because of whom it is removed.
func (s *Sweeper) findDueRows(ctx context.Context, conn *pgx.Conn, withDerivedRows bool) ([]dueRows, error) {
	var exists, derived bool
	if err := conn.QueryRow(ctx,
		"SELECT pg_catalog.to_regprocedure('pgconsent.sweep_due()') IS NOT NULL, "+
			"pg_catalog.to_regprocedure('pgconsent.sweep_preview()') IS NOT NULL").Scan(&exists, &derived); err != nil ||
		!exists {
		return nil, err
	}
	function := "sweep_due"
	if withDerivedRows && derived {
		function = "sweep_preview"
	}
	rows, err := conn.Query(ctx, "SELECT relation, subject, what, number FROM pgconsent."+function+"()")
	if err != nil {
		return nil, databaseError("look for what is due", err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d dueRows, err error) {
		return d, row.Scan(&d.relation, &d.subject, &d.operation, &d.rows)
	})
	if err != nil {
		return nil, databaseError("look for what is due", err)
	}
	slices.SortFunc(out, func(a, b dueRows) int {
		if c := strings.Compare(a.subject, b.subject); c != 0 {
			return c
		}
		return strings.Compare(a.relation, b.relation)
	})
	return out, nil
}

// sweepRows removes the due rows subject by subject, so that all rows of a withdrawal are removed at about the same
// time.
func (s *Sweeper) sweepRows(ctx context.Context, conn *pgx.Conn, out *Report) error {
	list, err := s.findDueRows(ctx, conn, false)
	if err != nil {
		return err
	}
	signer, err := s.Registry.NoteSigner(ctx)
	if err != nil {
		return err
	}
	tables := tableCounts{}
	for i := 0; i < len(list); {
		d, expected := list[i], int64(0)
		for ; i < len(list) && list[i].subject == d.subject && list[i].relation == d.relation; i++ {
			expected += list[i].rows
		}
		if err := s.sweepSubject(ctx, conn, d, signer.Code(d.subject), expected, tables); err != nil {
			if ctx.Err() != nil || conn.IsClosed() {
				return databaseError("sweep "+d.relation, err)
			}
			s.addFailure(out, "sweep "+d.relation, err)
			continue
		}
		s.progress("subjects", i, len(list))
	}
	out.Tables = tables.sorted()
	return nil
}

// sweepSubject sweeps one table for one subject, in transactions of limited size. Its notes get the code.
func (s *Sweeper) sweepSubject(ctx context.Context, conn *pgx.Conn, d dueRows, code string, expected int64,
	t tableCounts) error {
	batch := s.BatchSize
	if batch <= 0 {
		batch = 1000
	}
	const maxDerivedOnly = 3 // how many transactions in a row may remove only derived rows
	if _, err := conn.Exec(ctx, "SELECT pg_catalog.set_config('pgconsent.sweep', $1, false)", code); err != nil {
		return err
	}
	for sweptRows, idle := int64(0), 0; ; {
		rows, err := conn.Query(ctx, "SELECT swept, what, number FROM pgconsent.sweep_rows($1, $2, $3)", d.relation,
			d.subject, batch)
		if err != nil {
			return err
		}
		before, derivedRows := sweptRows, int64(0)
		var relation, operation string
		var number int64
		if _, err := pgx.ForEachRow(rows, []any{&relation, &operation, &number}, func() error {
			if relation == d.relation {
				sweptRows += number
			} else {
				derivedRows += number
			}
			t.addRows(relation, d.subject, operation, number)
			return nil
		}); err != nil {
			return err
		}
		if sweptRows > before {
			idle = 0
		} else if idle++; derivedRows == 0 || idle > maxDerivedOnly {
			return nil
		}
		if s.betweenTransactions != nil {
			s.betweenTransactions()
		}
		// Others may add a few rows meanwhile. But if a trigger restores rows, the loop would never end.
		if sweptRows > 2*expected+int64(batch) {
			return errors.New("rows stay unchanged: a trigger of the table may undo the changes")
		}
	}
}

// tableCounts counts the removed rows, by table.
type tableCounts map[string]*tableCount

type tableCount struct {
	Table
	lastSubject string // the subject counted last; rows come sorted by subject
}

// addRows counts rows of a subject. Rows with the operation "derived" are not removed themselves, only rows made from
// them, so they do not count.
func (t tableCounts) addRows(relation, subject, operation string, number int64) {
	if operation == "derived" || number == 0 {
		return
	}
	c := t[relation]
	if c == nil {
		c = &tableCount{Table: Table{Table: relation}}
		t[relation] = c
	}
	if c.Subjects == 0 || c.lastSubject != subject {
		c.Subjects, c.lastSubject = c.Subjects+1, subject
	}
	if operation == "deleted" {
		c.Deleted += number
	} else {
		c.Anonymised += number
	}
}

func (t tableCounts) sorted() []Table {
	out := []Table{}
	for _, c := range t {
		out = append(out, c.Table)
	}
	slices.SortFunc(out, func(a, b Table) int { return strings.Compare(a.Table, b.Table) })
	return out
}

// countDueRows reports what a sweep would do now.
func (s *Sweeper) countDueRows(ctx context.Context, conn *pgx.Conn, out *Report) error {
	warning := s.Registry.Settings.WarningTime
	if warning == 0 {
		warning = consent.DefaultWarningTime
	}
	rows, err := conn.Query(ctx, `SELECT 'expired', pg_catalog.count(*) FROM pgconsent.consent_current
		WHERE state = 'given' AND expires_at <= pgconsent.consent_now()
		UNION ALL SELECT 'lapsed', pg_catalog.count(*) FROM pgconsent.consent_current WHERE due_at <= pgconsent.consent_now()
		UNION ALL SELECT 'warned', pg_catalog.count(*) FROM pgconsent.consent_current WHERE state = 'given'
			AND expires_at > pgconsent.consent_now() AND expires_at <= pgconsent.consent_now() + $1::interval AND warned_at IS NULL`,
		fmt.Sprintf("%d seconds", int64(warning/time.Second)))
	if err != nil {
		return databaseError("read what is due", err)
	}
	var event string
	var number int
	if _, err := pgx.ForEachRow(rows, []any{&event, &number}, func() error {
		if number > 0 {
			out.RecordedEvents[event] = number
		}
		return nil
	}); err != nil {
		return databaseError("read what is due", err)
	}
	list, err := s.findDueRows(ctx, conn, true)
	if err != nil {
		return err
	}
	tables := tableCounts{}
	for _, d := range list {
		tables.addRows(d.relation, d.subject, d.operation, d.rows)
	}
	out.Tables = tables.sorted()
	return nil
}

// databaseError returns the error for callers after a failure of the database, without anything that its message
// quotes.
func databaseError(action string, err error) error {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		switch pgErr.Code {
		case "3F000", "42P01", "42883", "42704":
			return sqlstate.New(sqlstate.UndefinedObject, sqlstate.ReasonConsent,
				"the database lacks the functions of the sweeper").WithHint("Run pgconsent migrate.").WithCause(err)
		case "42501":
			return sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonConsent, "the control role may not %s",
				action).WithHint("Run pgconsent migrate, which gives it the rights.").WithCause(err)
		case "25006":
			return registry.StandbyError(err)
		}
		return sqlstate.New(sqlstate.Code(pgErr.Code), sqlstate.ReasonConsent, "the database refused to %s",
			action).WithCause(err)
	}
	return fmt.Errorf("%s: %w", action, err)
}
