package policytest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/tool/why"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
)

// BlockCoverage tells whether the result for the checked rows depended on a block of a table's rule. HasShown: a
// visible row would be hidden if the block were false for every row. Hidden: a hidden row would be visible if the block
// were true for every row.
type BlockCoverage struct {
	Place
	Table    string `json:"table"`
	Block    string `json:"block"`
	HasShown bool   `json:"shown"`
	Hidden   bool   `json:"hidden"`
	rule     *policy.Rule
}

// IsComplete reports whether the tests have a row that the block shows and one that it hides. A block "open" hides
// none.
func (c BlockCoverage) IsComplete() bool { return c.HasShown && (c.Hidden || c.Block == "open") }

// coverage counts the coverage of each block while the tests of a file run.
type coverage struct {
	rules       map[catalog.Name][]*BlockCoverage
	countedRows map[string]bool // keys of the rows that were counted already
}

func newCoverage(p *policy.Policy) *coverage {
	c := &coverage{rules: map[catalog.Name][]*BlockCoverage{}, countedRows: map[string]bool{}}
	for _, t := range p.Tables() {
		for _, r := range t.Rule.WithoutContracts().Leaves() {
			c.rules[t.Relation.Name] = append(c.rules[t.Relation.Name],
				&BlockCoverage{Place: Place{File: r.File, Line: r.Line, Column: r.Column}, Table: t.Relation.Name.String(), Block: r.Block, rule: r})
		}
	}
	return c
}

// blocks returns the coverage of all blocks, in the order of the policy's files.
func (c *coverage) blocks() []BlockCoverage {
	out := []BlockCoverage{}
	for _, rules := range c.rules {
		for _, r := range rules {
			out = append(out, *r)
		}
	}
	slices.SortFunc(out, func(a, b BlockCoverage) int {
		if n := strings.Compare(a.File, b.File); n != 0 {
			return n
		}
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return out
}

// countCoverage counts the rows that an expectation has checked: those that it names, or all rows of a table. A query
// counts for all rows of the tables that it reads. A query that a contract refuses counts for hidden rows only: the
// contract refuses before any block is evaluated.
func (d *testDatabase) countCoverage(ctx context.Context, c *coverage, e Expectation, settings []Setting) error {
	if e.Caller == "owner" {
		return nil
	}
	for _, rows := range e.ExactRows {
		id, err := d.rowIdentityOf(rows)
		if err != nil {
			return err
		}
		if err := d.countRows(ctx, c, e.Caller, settings, id.relation.Name, "true", nil); err != nil {
			return err
		}
	}
	for _, rows := range slices.Concat(e.VisibleRows, e.HiddenRows) {
		id, err := d.rowIdentityOf(rows)
		if err != nil {
			return err
		}
		namedRows, err := d.findRows(ctx, id, rows.Keys)
		if err != nil {
			return err
		}
		var columns []string
		for _, name := range id.columns {
			columns = append(columns, "coalesce(r."+catalog.QuoteIdent(name)+"::text, 'NULL')")
		}
		condition := strings.Join(columns, " || ' | ' || ") + " = ANY (" +
			catalog.QuoteLiteral(predicate.WriteArray(namedRows)) + "::text[])"
		if err := d.countRows(ctx, c, e.Caller, settings, id.relation.Name, condition, nil); err != nil {
			return err
		}
	}
	if e.Query == "" {
		return nil
	}
	result, refused := rewrite.New(d.snapshot, d.policy, rewrite.InjectedMode).Rewrite(e.Query, false)
	if refused != nil {
		return nil
	}
	var failingStatements []policy.Statement
	if e.Error != "" {
		failingStatements = result.Statements
		if len(failingStatements) == 0 {
			return nil
		}
	}
	for _, a := range result.Accesses {
		if err := d.countRows(ctx, c, e.Caller, settings, a.Relation, "true", failingStatements); err != nil {
			return err
		}
	}
	return nil
}

// countRows counts the coverage by the rows of a table that meet a condition. A failed statement counts only if a
// contract refused it; then no row counts as visible.
func (d *testDatabase) countRows(ctx context.Context, c *coverage, caller string, settings []Setting,
	table catalog.Name,
	condition string, failedStatements []policy.Statement) error {
	t, ok := d.policy.Table(table)
	id := fmt.Sprint(d.name, d.changeCount, caller, settings, table, condition, failedStatements)
	if !ok || c.countedRows[id] {
		return nil
	}
	c.countedRows[id] = true
	var openBlocks []*BlockCoverage
	for _, r := range c.rules[table] {
		if !r.IsComplete() {
			openBlocks = append(openBlocks, r)
		}
	}
	if len(openBlocks) == 0 {
		return nil
	}
	tx, err := d.adminConn.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	var sealedSettings []why.Setting
	for _, s := range slices.Concat(d.caller(caller).Settings, settings) {
		sealedSettings = append(sealedSettings, why.Setting(s))
	}
	values, err := why.AttributeValues(ctx, tx, d.policy, d.caller(caller).Attributes, sealedSettings)
	if err != nil {
		return err
	}
	refused := func(s policy.Statement) bool { return d.policy.Judge(s, values) != nil }
	if failedStatements != nil && !slices.ContainsFunc(failedStatements, refused) {
		return nil
	}
	rule := t.Rule.WithoutContracts()
	columns := []string{predicate.DirectCondition(rule.Node, "r", values) + " AS v"}
	var counts []string
	for i, r := range openBlocks {
		alwaysFalse, alwaysTrue := rule.Replace(r.rule, predicate.Any{}), rule.Replace(r.rule, predicate.Open{})
		columns = append(columns, fmt.Sprintf("%s AS n%d, %s AS y%d", predicate.DirectCondition(alwaysFalse, "r", values),
			i, predicate.DirectCondition(alwaysTrue, "r", values), i))
		counts = append(counts, fmt.Sprintf("count(*) FILTER (WHERE v AND NOT n%d), count(*) FILTER (WHERE NOT v AND y%d)", i, i))
	}
	sql := "SELECT " + strings.Join(counts, ", ") + " FROM (SELECT " + strings.Join(columns, ", ") + " FROM " +
		table.SQL() + " AS r WHERE " + condition + ") AS t"
	found := make([]int64, 2*len(openBlocks))
	into := make([]any, len(found))
	for i := range found {
		into[i] = &found[i]
	}
	if err := tx.QueryRow(ctx, sql).Scan(into...); err != nil {
		return fmt.Errorf("coverage of %s: %w", table, err)
	}
	for i, r := range openBlocks {
		r.HasShown, r.Hidden = r.HasShown || failedStatements == nil && found[2*i] > 0, r.Hidden || found[2*i+1] > 0
	}
	return nil
}
