package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/enforce/seal"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
)

type explainCmd struct {
	As  string   `required:"" placeholder:"AGENT" help:"The agent who sends it."`
	Set []string `placeholder:"NAME=VALUE" sep:"none" help:"A setting of the agent's session, or another value for an attribute; empty: the attribute is missing. May be given several times."`

	SQL string `arg:"" optional:"" name:"sql" help:"The statement. Default: read from stdin."`
}

func (explainCmd) Help() string {
	return `Prints what a statement reads and how, what each contract decides, and by which layer and rules it is enforced. The
statement itself is not sent; the database is asked only for attributes that it derives. It logs in as roles.control and is
for the DBA, since it prints rules. Exit code 1 if the statement is refused.

  pgconsent explain --as chat 'SELECT title FROM memories ORDER BY embedding <-> $1 LIMIT 5'
  pgconsent explain --as mentor --set stage=2 --json < report.sql`
}

// explainJSON is the answer of the command explain in JSON output.
type explainJSON struct {
	Agent      string            `json:"agent"`
	Database   string            `json:"database"`
	Attributes map[string]string `json:"attributes,omitempty"`
	Statements []statementJSON   `json:"statements,omitempty"`
	Tables     []rulesJSON       `json:"tables,omitempty"`
	Functions  []string          `json:"functions,omitempty"`
	Path       verdict.Path      `json:"path,omitempty"`
	PathReason string            `json:"path_reason,omitempty"`
	Above      string            `json:"above,omitempty"`
	ByKey      []string          `json:"by_key,omitempty"`
	Signed     bool              `json:"signed,omitempty"`
	Refusal    *refusalJSON      `json:"refusal,omitempty"`
}

type statementJSON struct {
	Tag       string                    `json:"tag"`
	Accesses  []accessJSON              `json:"accesses"`
	Contracts []policy.ContractDecision `json:"contracts,omitempty"`
	Refusal   *refusalJSON              `json:"refusal,omitempty"`
}

type accessJSON struct {
	Object string `json:"object,omitempty"`
	Vessel string `json:"vessel,omitempty"`
	policy.Access
}

type rulesJSON struct {
	Table string   `json:"table"`
	Rules []string `json:"rules"`
}

func (e explainCmd) Run(s *session) error {
	c, err := s.loadConfig()
	if err != nil {
		return err
	}
	agent, err := findAgent(c, e.As)
	if err != nil {
		return err
	}
	text, err := s.readStatement(e.SQL)
	if err != nil {
		return err
	}
	return s.forEachDatabase(c, agent.Database, asControl, func(t targetDatabase) error {
		policyBuild, err := s.compileServedPolicy(t)
		if err != nil {
			return err
		}
		values, err := attributeValues(s.ctx, t.conn, policyBuild.policy, agent.Attributes, e.Set)
		if err != nil {
			return err
		}
		rewriter, err := s.newRewriter(t, policyBuild)
		if err != nil {
			return err
		}
		answer := explainStatement(rewriter, policyBuild.policy, text, values)
		answer.Agent, answer.Database = e.As, t.name
		if s.jsonOutput {
			err = s.printJSON(answer)
		} else {
			s.printExplanation(answer)
		}
		if err == nil && answer.Refusal != nil {
			return errSilent
		}
		return err
	})
}

// attributeValues returns the attribute values for which contracts are evaluated: the agent's own attributes, those
// that the database computes from them and from the settings, and the given values, which replace the others.
func attributeValues(ctx context.Context, conn *pgx.Conn, p *policy.Policy, attributes map[string]string,
	assignments []string) (map[string]string, error) {
	givenValues, claims := map[string]string{}, map[string]string{}
	for _, assignment := range assignments {
		name, value, ok := strings.Cut(assignment, "=")
		if !ok || name == "" {
			return nil, usageError{errors.New("--set takes NAME=VALUE")}
		}
		if claimName, ok := p.Settings()[strings.ToLower(name)]; ok {
			claims[claimName] = value
			continue
		}
		a, isDeclared := p.Attribute(name)
		if !isDeclared {
			return nil, usageError{fmt.Errorf("the policy has no attribute %q, and no attribute that this setting claims", name)}
		}
		if value != "" {
			if err := a.Check(value); err != nil {
				return nil, usageError{err}
			}
		}
		givenValues[name] = value
	}
	values := map[string]string{}
	maps.Copy(values, attributes)
	var liveNames []string
	for _, a := range p.Attributes() {
		if _, ok := givenValues[a.Name]; a.IsLive() && !ok {
			liveNames = append(liveNames, a.Name)
		}
	}
	if len(liveNames) > 0 {
		rows, err := conn.Query(ctx,
			"SELECT a.name, pgconsent.live(a.name, $2, $3) FROM pg_catalog.unnest($1::pg_catalog.text[]) AS a (name)",
			liveNames, seal.AttributeFields(attributes), seal.AttributeFields(claims))
		if err != nil {
			return nil, err
		}
		var name string
		var value *string
		if _, err := pgx.ForEachRow(rows, []any{&name, &value}, func() error {
			if value != nil {
				values[name] = *value
			}
			return nil
		}); err != nil {
			return nil, fmt.Errorf("%w; has pgconsent migrate been run?", err)
		}
	}
	for name, value := range givenValues {
		if delete(values, name); value != "" {
			values[name] = value
		}
	}
	return values, nil
}

// explainStatement decides about a statement as serve would in a session of the agent, and collects the reasons.
func explainStatement(r *rewrite.Rewriter, p *policy.Policy, text string, values map[string]string) explainJSON {
	answer := explainJSON{Attributes: values}
	result, refusal := r.Rewrite(text, false)
	if refusal != nil {
		answer.Refusal = &refusalJSON{string(refusal.Code), refusal.Message, refusal.Hint, refusal.Position}
		return answer
	}
	answer.Functions, answer.Path, answer.PathReason, answer.Above, answer.Signed = result.Functions, result.Path,
		result.RowSecurityReason, result.AboveFenceReason, result.NeedsSignature
	answer.ByKey = tableNames(result.SearchedByKey)
	for _, statement := range result.Statements {
		out := statementJSON{Tag: statement.Tag, Accesses: []accessJSON{}}
		for _, a := range statement.Accesses {
			access := accessJSON{Access: a}
			if o := p.Object(a.Relation); o != nil {
				access.Object, access.Vessel = o.Name, o.Vessel
			}
			out.Accesses = append(out.Accesses, access)
		}
		decisions, refusal := p.ExplainContracts(statement, values)
		out.Contracts = decisions
		if refusal != nil {
			out.Refusal = &refusalJSON{string(refusal.Code), refusal.Message, refusal.Hint, 0}
			if answer.Refusal == nil {
				answer.Refusal = out.Refusal
			}
		}
		answer.Statements = append(answer.Statements, out)
	}
	seenTables := map[catalog.Name]bool{}
	for _, a := range result.Accesses {
		if t, ok := p.Table(a.Relation); ok && !seenTables[a.Relation] {
			seenTables[a.Relation] = true
			answer.Tables = append(answer.Tables, rulesJSON{Table: a.Relation.String(), Rules: describeRules(t)})
		}
	}
	return answer
}

// describeRules lists the blocks of a table's rule with their lines in the policy file, including blocks that contracts
// add.
func describeRules(t *policy.Table) []string {
	var out []string
	if t.Rule != nil {
		for _, rule := range t.Rule.Leaves() {
			out = append(out, fmt.Sprintf("%s (%s:%d)", rule.Block, filepath.Base(rule.File), rule.Line))
		}
	}
	if t.Columns != nil {
		out = append(out, "columns are narrowed")
	}
	return out
}

// printExplanation prints the answer as text.
func (s *session) printExplanation(a explainJSON) {
	for i, statement := range a.Statements {
		if len(a.Statements) > 1 {
			fmt.Fprintf(s.out, "%s\n", s.paint("1", fmt.Sprintf("statement %d, %s", i+1, statement.Tag)))
		}
		w := tabwriter.NewWriter(s.out, 0, 8, 2, ' ', 0)
		fmt.Fprintln(w, "TABLE\tOBJECT\tVESSEL\tSOURCE\tKEY\tCOLUMNS\t")
		for _, access := range statement.Accesses {
			name := access.Relation.String()
			if len(access.Aliases) > 0 {
				name += " AS " + strings.Join(access.Aliases, ", ")
			}
			if len(access.Through) > 0 {
				name += " through " + strings.Join(access.Through, ", ")
			}
			accessKind := "scan"
			if access.ByKey {
				accessKind = "key"
			}
			columns := strings.Join(access.Columns, ", ")
			switch {
			case access.Columns == nil:
				columns = "all"
			case columns == "":
				columns = "none"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t\n", name, orDash(access.Object), orDash(access.Vessel), access.Source,
				accessKind,
				columns)
		}
		_ = w.Flush()
		for _, d := range statement.Contracts {
			value := "for every session"
			switch {
			case d.AttributeMissing:
				value = "the session has no " + d.By
			case d.By != "":
				value = d.By + " " + d.Value
			}
			verdict := map[string]string{"allow": s.paint("32", "allows"), "deny": s.paint("31", "refuses"),
				"none": "governs nothing here"}[d.Verdict]
			fmt.Fprintf(s.out, "contract %s (%s): %s\n", d.Contract, value, verdict)
		}
	}
	for _, t := range a.Tables {
		fmt.Fprintf(s.out, "rows of %s: %s\n", t.Table, orNone(strings.Join(t.Rules, "; ")))
	}
	switch {
	case a.Refusal != nil:
		fmt.Fprintf(s.out, "%s  %s (SQLSTATE %s)\n", s.paint("31", "REFUSED:"), a.Refusal.Message, a.Refusal.SQLState)
		if a.Refusal.Hint != "" {
			fmt.Fprintf(s.out, "HINT:  %s\n", a.Refusal.Hint)
		}
		if a.Refusal.Position > 0 {
			fmt.Fprintf(s.out, "at character %d\n", a.Refusal.Position)
		}
	case a.Above != "":
		fmt.Fprintf(s.out,
			"path: signed, for the rows that leak-safe conditions find; the rest is computed from these: %s\n", a.Above)
	case a.Path == verdict.PathSigned:
		fmt.Fprintln(s.out, "path: signed; every expression is leak-safe")
	case len(a.ByKey) > 0:
		fmt.Fprintf(s.out,
			"path: row security, and signed for the keys of rows that searches of %s find: %s\n",
			strings.Join(a.ByKey, ", "), a.PathReason)
	case a.Signed:
		fmt.Fprintln(s.out, "enforced by row security, and by signed predicates in the text")
	case a.PathReason != "":
		fmt.Fprintf(s.out, "path: row security: %s\n", a.PathReason)
	default:
		fmt.Fprintln(s.out, "enforced by row security")
	}
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func orNone(s string) string {
	if s == "" {
		return "no rule"
	}
	return s
}
