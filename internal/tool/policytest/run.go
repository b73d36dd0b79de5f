package policytest

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/pgconsent/pgconsent/policy"
)

// Options say how to run tests. The zero value runs all of them and reports nothing.
type Options struct {
	TestNames *regexp.Regexp // matches the names of the tests to run; nil: all tests run
	// Dump reads the schema of a database of the configuration; nil: there is no configuration
	Dump     func(ctx context.Context, database string) (Schema, error)
	Log      *slog.Logger // nil: nothing is logged
	OnStart  func(f *File, tests int)
	OnFinish func(Result)
}

// Result is the result of one test.
type Result struct {
	Place
	Name      string        `json:"name"`
	HasPassed bool          `json:"passed"`
	Failures  []Failure     `json:"failures"`
	Problems  policy.Errors `json:"problems"` // errors in the test itself
	Duration  time.Duration `json:"-"`
}

// Report is the result of running the tests of a file.
type Report struct {
	File   string `json:"file"`
	Policy string `json:"policy,omitempty"`
	// errors in the file, the policy or the schema, because of which no test ran
	Problems policy.Errors   `json:"problems"`
	Results  []Result        `json:"tests"`
	Coverage []BlockCoverage `json:"coverage"` // coverage of the policy's blocks; nil if only some tests ran
	Duration time.Duration   `json:"-"`
}

// HasPassed reports whether all tests have passed and no file has problems.
func (r Report) HasPassed() bool {
	return len(r.Problems) == 0 && !slices.ContainsFunc(r.Results, func(t Result) bool { return !t.HasPassed })
}

// DependentFiles returns the files on which the tests depend. If one changes, the tests should run again.
func (f *File) DependentFiles() []string {
	return slices.Concat([]string{f.Path, f.Policy, filepath.Join(filepath.Dir(f.Path), "world.yaml")}, f.Extensions,
		f.Schema, f.Data)
}

// Run runs the tests of a file. The report has the errors in the file, the policy or the schema. The returned error is
// about the server.
func Run(ctx context.Context, s *Server, path string, o Options) (report Report, err error) {
	startTime := time.Now()
	report = Report{File: path, Problems: policy.Errors{}, Results: []Result{}}
	defer func() {
		report.Duration = time.Since(startTime)
		var policyError *policy.Error
		switch {
		case errors.As(err, &report.Problems):
			err = nil
		case errors.As(err, &policyError):
			report.Problems, err = policy.Errors{policyError}, nil
		}
	}()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	f, err := Load(path)
	if err != nil {
		return report, err
	}
	report.Policy = f.Policy
	var tests []*Test
	for _, t := range f.Tests {
		if o.TestNames == nil || o.TestNames.MatchString(t.Name) {
			tests = append(tests, t)
		}
	}
	if o.OnStart != nil {
		o.OnStart(f, len(tests))
	}
	b, err := s.build(ctx, f, o.Dump)
	if b != nil && b.name != "" {
		defer func() { err = errors.Join(err, s.dropDatabase(context.WithoutCancel(ctx), b.name)) }()
	}
	if err != nil {
		return report, err
	}
	login, err := newCredential(rand.Text())
	if err != nil {
		return report, err
	}
	coverage := newCoverage(b.policy)
	var sharedDatabase *testDatabase // tests that change nothing share this database
	defer func() {
		if sharedDatabase != nil {
			err = errors.Join(err, sharedDatabase.close(context.WithoutCancel(ctx)))
		}
	}()
	for _, t := range tests {
		if err := ctx.Err(); err != nil {
			return report, err
		}
		startedAt := time.Now()
		d := sharedDatabase
		if d == nil || t.mayChange() {
			if d, err = b.openCopy(ctx, login, o.Log); err != nil {
				return report, err
			}
			if !t.mayChange() {
				sharedDatabase = d
			}
		}
		result, err := d.run(ctx, t, login, coverage)
		if d != sharedDatabase {
			err = errors.Join(err, d.close(context.WithoutCancel(ctx)))
		} else {
			d.endSessions(ctx)
		}
		if err != nil {
			return report, err
		}
		result.Duration = time.Since(startedAt)
		report.Results = append(report.Results, result)
		if o.OnFinish != nil {
			o.OnFinish(result)
		}
	}
	if len(tests) == len(f.Tests) {
		report.Coverage = coverage.blocks()
	}
	return report, nil
}

// readOnlyStart matches the beginning of a statement that cannot change data.
var readOnlyStart = regexp.MustCompile(`(?i)^\s*(SELECT|TABLE|VALUES)\s`)

// mayChange reports whether a test may change data. Such a test runs on its own copy of the database.
func (t *Test) mayChange() bool {
	for _, s := range t.Steps {
		if len(s.Preparation)+len(s.Actions) > 0 {
			return true
		}
		for _, e := range s.Expectations {
			if e.Query != "" && e.Error == "" && !readOnlyStart.MatchString(e.Query) {
				return true
			}
			if e.Error != "" && !readOnlyStart.MatchString(e.Query) {
				return true // If the expected error does not happen, the statement may change data.
			}
		}
	}
	return false
}

func (d *testDatabase) run(ctx context.Context, t *Test, login credential, c *coverage) (Result, error) {
	r := Result{Place: t.Place, Name: t.Name, Failures: []Failure{}, Problems: policy.Errors{}}
	fault := func(err error) (Result, error) {
		if errors.As(err, &r.Problems) {
			return r, nil
		}
		return r, err
	}
	settings := map[string][]Setting{}
	for _, s := range t.Steps {
		for _, changes := range [][]Change{s.Preparation, s.Actions} {
			if err := d.applyChanges(ctx, d.ownerConn, changes); err != nil {
				return fault(err)
			}
			if err := d.writeRegistry(ctx, d.adminConn, changes); err != nil {
				return fault(err)
			}
			d.changeCount += len(changes)
		}
		for _, e := range s.Expectations {
			settings[e.Caller] = append(settings[e.Caller], e.Settings...)
			failures, err := d.checkExpectation(ctx, e, login)
			if err != nil {
				return fault(err)
			}
			r.Failures = append(r.Failures, failures...)
			if e.Query != "" && !readOnlyStart.MatchString(e.Query) {
				d.changeCount++
			}
			if err := d.countCoverage(ctx, c, e, settings[e.Caller]); err != nil {
				return fault(err)
			}
		}
	}
	r.HasPassed = len(r.Failures) == 0
	return r, nil
}

// endSessions ends the sessions of a test, so that no other test gets their settings and prepared statements.
func (d *testDatabase) endSessions(ctx context.Context) {
	for name, c := range d.sessions {
		_ = c.Close(ctx)
		delete(d.sessions, name)
	}
}
