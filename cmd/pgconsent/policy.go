package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
)

type policyCmd struct {
	Check  policyCheckCmd  `cmd:"" help:"Lint the policy, and compare it with the database."`
	Diff   policyDiffCmd   `cmd:"" help:"Report which rows, columns and rights agents gain and lose by another policy."`
	Test   policyTestCmd   `cmd:"" help:"Run policy_test.yaml on a throw-away database."`
	Show   policyShowCmd   `cmd:"" help:"Print the compiled policy: rules in words and in SQL, columns, writes, attributes."`
	Schema policySchemaCmd `cmd:"" help:"Print the JSON Schema of a policy, or of a configuration, for editors."`
}

type policyCheckCmd struct {
	File     string `arg:"" optional:"" help:"A policy by itself, compared with no database. Default: those of the configuration."`
	Database string `placeholder:"NAME" help:"Only this database. Default: all."`
	Offline  bool   `help:"Do not connect: unknown tables and columns are not found."`
	Strict   bool   `help:"Exit with 1 for warnings as well."`
}

func (policyCheckCmd) Help() string {
	return `Every problem is printed with its file, line and column. Exit code 1 if there is one. What stands beside an entry that
cannot be read is compared with the database all the same. Warnings are about what is allowed and unwise: rules that match
no row, missing indexes with their CREATE INDEX, tables that the policy does not mention.

  pgconsent policy check
  pgconsent policy check --offline
  pgconsent policy check worlds/arcive/policy.yaml`
}

// policyReport is the result of checking one policy. Databases with the same result share one report.
type policyReport struct {
	Databases []string        `json:"databases,omitempty"`
	Policy    string          `json:"policy"`
	Compared  bool            `json:"compared"` // a database was available to compare the policy with
	Version   string          `json:"version,omitempty"`
	Problems  []*policy.Error `json:"problems"`
	Warnings  []*policy.Error `json:"warnings"`
}

func (p policyCheckCmd) Run(s *session) error {
	if p.File != "" {
		if p.Database != "" {
			return usageError{
				errors.New("a file and --database do not go together: the configuration says which policy a database has")}
		}
		v, err := readPolicy(p.File)
		if err != nil {
			return err
		}
		return p.print(s, []policyReport{v})
	}
	c, err := s.loadConfig()
	if err != nil {
		return err
	}
	names, err := chooseDatabases(c, p.Database)
	if err != nil {
		return err
	}
	var reports []policyReport
	for _, name := range names {
		v, err := readPolicy(c.Databases[name].Policy)
		if err != nil {
			return err
		}
		v.Databases = []string{name}
		if !p.Offline {
			report := v
			err := s.forEachDatabase(c, name, asMigrate, func(t targetDatabase) error { return p.compareWithDatabase(s, t, &v) })
			switch {
			case err != nil && len(report.Problems) == 0:
				return err
			case err != nil: // errors in the policy itself are reported even if there is no database
				v = report
			}
		}
		if i := slices.IndexFunc(reports, v.equals); i >= 0 {
			reports[i].Databases = append(reports[i].Databases, name)
		} else {
			reports = append(reports, v)
		}
	}
	return p.print(s, reports)
}

// readPolicy checks a policy without a database.
func readPolicy(path string) (policyReport, error) {
	v := policyReport{Policy: path, Problems: []*policy.Error{}, Warnings: []*policy.Error{}}
	_, err := policy.Load(path)
	return v, v.addProblems(err)
}

// compareWithDatabase checks a policy against the catalog of its database.
func (policyCheckCmd) compareWithDatabase(s *session, t targetDatabase, v *policyReport) error {
	var problems policy.Errors
	doc, err := policy.LoadReadable(t.config.Policy)
	switch {
	case err != nil && doc == nil:
		return v.addProblems(err)
	case errors.As(err, &problems):
		return s.compareReadable(t, doc, problems, v)
	}
	v.Compared = true
	policyBuild, err := s.compile(t)
	if err != nil && !errors.As(err, &problems) {
		return v.addProblems(err)
	}
	lintContext, contextErr := s.readLintContext(t)
	if contextErr != nil {
		return contextErr
	}
	if err != nil { // report as many problems as possible in one run
		otherProblems, warnings := policy.LintRest(doc, policyBuild.snapshot, lintContext, problems,
			policy.WithViews(rewrite.RewriteViewQuery))
		v.Warnings = append(v.Warnings, warnings...)
		return v.addProblems(append(problems, otherProblems...))
	}
	v.Version = policyBuild.policy.Version()
	warnings, err := policy.Lint(doc, policyBuild.snapshot, lintContext, policy.WithViews(rewrite.RewriteViewQuery))
	v.Warnings = append(v.Warnings, warnings...)
	if err != nil {
		return v.addProblems(err)
	}
	waitingColumns, err := migrations.ReadWaitingColumns(s.ctx, t.conn)
	for _, r := range policyBuild.snapshot.Relations() {
		if names := waitingColumns[r.OID]; len(names) > 0 {
			v.Warnings = append(v.Warnings, &policy.Error{File: t.config.Policy,
				Message: fmt.Sprintf(
					"%s has columns since the last pgconsent migrate, which do not exist for agents: %s", r.Name,
					strings.Join(names, ", ")),
				Suggestion: "run pgconsent migrate, and agents see them as the policy says"})
		}
	}
	return v.addProblems(err)
}

// compareReadable compares with the database those parts of a policy that could be read, if other parts have errors.
func (s *session) compareReadable(t targetDatabase, doc *policy.Document, problems policy.Errors, v *policyReport) error {
	snap, err := pgcatalog.Load(s.ctx, t.conn, t.config.SearchPath)
	if err != nil {
		return err
	}
	lintContext, err := s.readLintContext(t)
	if err != nil {
		return err
	}
	otherProblems, warnings := policy.CheckReadable(doc, snap, lintContext, problems,
		policy.WithViews(rewrite.RewriteViewQuery))
	v.Compared, v.Warnings = true, append(v.Warnings, warnings...)
	return v.addProblems(append(slices.Clone(problems), otherProblems...))
}

// lintPolicy returns warnings about parts of a policy that are allowed but probably mistakes.
func (s *session) lintPolicy(t targetDatabase, doc *policy.Document, policyBuild compiledPolicy) ([]*policy.Error, error) {
	lintContext, err := s.readLintContext(t)
	if err != nil {
		return nil, err
	}
	return policy.Lint(doc, policyBuild.snapshot, lintContext, policy.WithViews(rewrite.RewriteViewQuery))
}

// readLintContext returns the facts on which warnings about a policy depend, besides the schema of the database.
func (s *session) readLintContext(t targetDatabase) (policy.LintContext, error) {
	lintContext := policy.LintContext{Agents: map[string]map[string]string{}, TokenAttributes: map[string][]string{},
		IsUnknownOperator: rewrite.IsUnknownOperator}
	for name, a := range t.agentsByName {
		if a.Database == t.name {
			lintContext.Agents[name] = a.Attributes
			if a.Auth == config.AuthToken {
				lintContext.TokenAttributes[name] = t.tokenAttributes
			}
			if a.ActsFor != nil {
				lintContext.TokenAttributes[name] = slices.Concat(lintContext.TokenAttributes[name], a.ActsFor.Attributes)
			}
		}
	}
	var err error
	if lintContext.Grants, err = pgcatalog.Grants(s.ctx, t.conn, t.config.Roles.Agent); err != nil {
		return lintContext, err
	}
	if lintContext.FunctionUses, err = pgcatalog.FunctionUses(s.ctx, t.conn); err != nil {
		return lintContext, err
	}
	if lintContext.Triggers, err = pgcatalog.Triggers(s.ctx, t.conn); err != nil {
		return lintContext, err
	}
	lintContext.Defaults, err = pgcatalog.DefinerDefaults(s.ctx, t.conn)
	return lintContext, err
}

// equals tells whether two reports would print the same.
func (v policyReport) equals(o policyReport) bool {
	equal := func(a, b *policy.Error) bool { return *a == *b }
	return v.Policy == o.Policy && v.Compared == o.Compared && v.Version == o.Version &&
		slices.EqualFunc(v.Problems, o.Problems, equal) && slices.EqualFunc(v.Warnings, o.Warnings, equal)
}

// addProblems adds the problems in an error of a policy to the result, and returns any other error.
func (v *policyReport) addProblems(err error) error {
	var problems policy.Errors
	var singleError *policy.Error
	switch {
	case err == nil:
	case errors.As(err, &problems):
		v.Problems = problems
	case errors.As(err, &singleError):
		v.Problems = []*policy.Error{singleError}
	default:
		return err
	}
	return nil
}

func (p policyCheckCmd) print(s *session, reports []policyReport) error {
	hasProblems := false
	for _, v := range reports {
		hasProblems = hasProblems || len(v.Problems) > 0 || p.Strict && len(v.Warnings) > 0
	}
	if s.jsonOutput {
		if err := s.printJSON(reports); err != nil {
			return err
		}
	} else {
		for _, v := range reports {
			v.write(s)
		}
	}
	if hasProblems {
		return errSilent
	}
	return nil
}

func (v policyReport) write(s *session) {
	databases := "database " + strings.Join(v.Databases, ", ")
	if len(v.Databases) > 1 {
		databases = "databases " + strings.Join(v.Databases, ", ")
	}
	for _, problem := range v.Problems {
		fmt.Fprintln(s.out, s.paint("31", problem.Error()))
	}
	for _, w := range v.Warnings {
		fmt.Fprintf(s.out, "%s %s\n", s.paint("33", "warning:"), w)
	}
	switch {
	case len(v.Problems) > 0 && v.Compared:
		fmt.Fprintf(s.out, "%s: %s, compared with %s\n", v.Policy, countOf(len(v.Problems), "problem"), databases)
	case len(v.Problems) > 0:
		fmt.Fprintf(s.out, "%s: %s\n", v.Policy, countOf(len(v.Problems), "problem"))
	case v.Compared:
		warningCount := ""
		if len(v.Warnings) > 0 {
			warningCount = ", " + countOf(len(v.Warnings), "warning")
		}
		fmt.Fprintf(s.out, "%s: %s for %s, version %s%s\n", v.Policy, s.paint("32", "ok"), databases, shortVersion(v.Version), warningCount)
	default:
		fmt.Fprintf(s.out, "%s: %s, not compared with a database\n", v.Policy, s.paint("32", "ok"))
	}
}

func countOf(n int, label string) string {
	if n == 1 {
		return "1 " + label
	}
	return fmt.Sprintf("%d %ss", n, label)
}
