package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/catalog/pgcatalog"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
)

type rewriteCmd struct {
	As      string `required:"" placeholder:"AGENT" help:"The agent who sends it."`
	Verbose bool   `short:"v" help:"Print the statement's path and why it takes it, on stderr."`

	SQL string `arg:"" optional:"" name:"sql" help:"The statement. Default: read from stdin."`
}

func (rewriteCmd) Help() string {
	return `Reads the catalog of the agent's database as roles.control; the statement itself is not sent. Exit code 1 if it is
refused.

  pgconsent rewrite --as chat 'SELECT count(*) FROM memories'
  pgconsent rewrite --as chat --json < report.sql`
}

// rewriteJSON is the answer of the command rewrite in JSON output.
type rewriteJSON struct {
	Agent          string       `json:"agent"`
	Database       string       `json:"database"`
	Text           string       `json:"text,omitempty"`
	NeedsSignature bool         `json:"needs_signature,omitempty"`
	Path           verdict.Path `json:"path,omitempty"`
	PathReason     string       `json:"path_reason,omitempty"`
	Above          string       `json:"above,omitempty"`
	// why the statement needs a hardened plan; "": it does not need one
	HardenedPlan string          `json:"hardened_plan,omitempty"`
	UseHash      bool            `json:"use_hash,omitempty"`
	UseIndex     bool            `json:"use_index,omitempty"`
	ByKey        []string        `json:"by_key,omitempty"`
	EstimateRows []string        `json:"estimate_rows,omitempty"`
	Tag          string          `json:"tag,omitempty"`
	Accesses     []policy.Access `json:"accesses,omitempty"`
	Functions    []string        `json:"functions,omitempty"`
	Refusal      *refusalJSON    `json:"refusal,omitempty"`
}

type refusalJSON struct {
	SQLState string `json:"sqlstate"`
	Message  string `json:"message"`
	Hint     string `json:"hint,omitempty"`
	Position int    `json:"position,omitempty"`
}

// readStatement returns the SQL from the command line, or reads it from stdin.
func (s *session) readStatement(givenSQL string) (string, error) {
	if givenSQL != "" {
		return givenSQL, nil
	}
	statement, err := io.ReadAll(s.in)
	return string(statement), err
}

// newRewriter returns a rewriter that works as that of serve would now.
func (s *session) newRewriter(t targetDatabase, policyBuild compiledPolicy) (*rewrite.Rewriter, error) {
	mode := rewrite.InjectedMode
	if t.autoPath {
		mode = rewrite.AutoMode
	}
	sizes, err := pgcatalog.Sizes(s.ctx, t.conn, rls.PredicateTables(policyBuild.policy))
	if err != nil {
		return nil, fmt.Errorf("%w; has pgconsent migrate been run?", err)
	}
	return rewrite.New(policyBuild.snapshot, policyBuild.policy, mode).WithSizes(sizes), nil
}

func (r rewriteCmd) Run(s *session) error {
	c, err := s.loadConfig()
	if err != nil {
		return err
	}
	agent, err := findAgent(c, r.As)
	if err != nil {
		return err
	}
	text, err := s.readStatement(r.SQL)
	if err != nil {
		return err
	}
	return s.forEachDatabase(c, agent.Database, asControl, func(t targetDatabase) error {
		policyBuild, err := s.compileServedPolicy(t)
		if err != nil {
			return err
		}
		rewriter, err := s.newRewriter(t, policyBuild)
		if err != nil {
			return err
		}
		result, refusal := rewriter.Rewrite(text, false)
		answer := rewriteJSON{Agent: r.As, Database: t.name}
		if refusal != nil {
			answer.Refusal = &refusalJSON{string(refusal.Code), refusal.Message, refusal.Hint, refusal.Position}
		} else {
			answer.Text, answer.NeedsSignature, answer.Tag = result.Text, result.NeedsSignature, result.Tag
			answer.Accesses, answer.Functions = result.Accesses, result.Functions
			answer.Path, answer.PathReason, answer.Above, answer.UseHash, answer.UseIndex, answer.HardenedPlan = result.Path,
				result.RowSecurityReason, result.AboveFenceReason, result.UseHash, result.UseIndex, result.HardenedReason
			answer.ByKey, answer.EstimateRows = tableNames(result.SearchedByKey), tableNames(result.EstimateRows)
		}
		switch {
		case s.jsonOutput:
			if err := s.printJSON(answer); err != nil {
				return err
			}
		case refusal != nil:
			fmt.Fprintf(s.err, "%s  %s\n", s.paint("31", "ERROR:"), refusal.Message+" (SQLSTATE "+string(refusal.Code)+")")
			if refusal.Hint != "" {
				fmt.Fprintf(s.err, "HINT:  %s\n", refusal.Hint)
			}
			if refusal.Position > 0 {
				fmt.Fprintf(s.err, "at character %d\n", refusal.Position)
			}
		default:
			fmt.Fprintln(s.out, result.Text)
			if r.Verbose {
				s.printPath(t, result)
			}
		}
		if refusal != nil {
			return errSilent
		}
		return nil
	})
}

// printPath prints on which path (signed or row security) serve would run a statement, and why.
func (s *session) printPath(t targetDatabase, result *rewrite.Result) {
	switch {
	case result.AboveFenceReason != "":
		fmt.Fprintf(s.err,
			"path:  signed, for the rows that leak-safe conditions find; the rest is computed from these: %s\n",
			result.AboveFenceReason)
	case result.Path == verdict.PathSigned:
		fmt.Fprintln(s.err, "path:  signed: every expression is leak-safe")
	case t.autoPath:
		fmt.Fprintf(s.err, "path:  row security: %s\n", result.RowSecurityReason)
	case result.NeedsSignature:
		fmt.Fprintln(s.err, "path:  row security, and signed predicates in the text (enforcement: both)")
	default:
		fmt.Fprintln(s.err, "path:  row security (enforcement: both)")
	}
	if len(result.SearchedByKey) > 0 {
		fmt.Fprintf(s.err,
			"keys:  the rows that searches of %s find are looked up by key on the signed path\n",
			strings.Join(tableNames(result.SearchedByKey), ", "))
	}
	switch {
	case result.HardenedReason != "":
		fmt.Fprintf(s.err, "plan:  hardened: %s\n", result.HardenedReason)
	case result.HardenedIfDeclared:
		fmt.Fprintln(s.err, "plan:  hardened where the client declares types for its parameters")
	}
	if result.UseIndex {
		fmt.Fprintln(s.err, "hint:  useIndex: the statement's own conditions find few rows by an index")
	}
	if len(result.EstimateRows) > 0 {
		fmt.Fprintf(s.err, "hint:  estimateRows: searches of %s find few rows by an index\n", strings.Join(tableNames(result.EstimateRows), ", "))
	}
	if result.UseHash {
		fmt.Fprintln(s.err, "hint:  useHash: it reads so many rows that row policies hash the tables they look up")
	}
}

func tableNames(tables []catalog.Name) []string {
	var out []string
	for _, table := range tables {
		out = append(out, table.String())
	}
	return out
}
