package why

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
)

// Question asks which of the rows with a key an agent sees, and why.
type Question struct {
	Policy     *policy.Policy
	Snapshot   *catalog.Snapshot
	Agent      string
	Attributes map[string]string // the attributes of the agent's credential
	Settings   []Setting
	Table      string   // the table's name, with or without its schema
	Key        []string // the values of the primary key, in its order, or column=value for each column
	AgentRole  string

	// ConnectAgent connects as the agent role; nil: the answer is not compared with row security.
	ConnectAgent func(context.Context) (*pgx.Conn, error)
}

const (
	maxRows    = 10 // how many rows with the key an answer shows
	maxRecords = 10 // how many records of one block an answer shows
)

// Explain answers a question. conn is a connection of the owner of the tables; Explain only reads, in one snapshot.
func Explain(ctx context.Context, conn *pgx.Conn, q Question) (*Answer, error) {
	relation, err := q.findRelation()
	if err != nil {
		return nil, err
	}
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	values, err := AttributeValues(ctx, tx, q.Policy, q.Attributes, q.Settings)
	if err != nil {
		return nil, err
	}
	// With row_security off, PostgreSQL raises an error if it would have to hide rows from the owner, so no answer is
	// wrong. Compiling a plan (jit) would take longer than running it.
	if _, err := tx.Exec(ctx, "SET LOCAL row_security = off; SET LOCAL jit = off"); err != nil {
		return nil, err
	}
	a := &Answer{Agent: q.Agent, Table: relation.Name.String(), Attributes: values, Missing: []string{},
		Rows: []Row{}, Columns: []Column{}, ForeignPolicies: []string{}}
	for _, attribute := range q.Policy.Attributes() {
		if _, ok := values[attribute.Name]; !ok {
			a.Missing = append(a.Missing, attribute.Name)
		}
	}
	keyText, condition, err := q.keyCondition(relation)
	if err != nil {
		return nil, err
	}
	a.KeyCondition = keyText
	e := explainer{tx: tx, policy: q.Policy, values: values}
	table, isListed := q.Policy.Table(relation.Name)
	a.Listed = isListed
	a.Observed = isListed && table.Observed != nil
	if !isListed {
		table = &policy.Table{Relation: relation}
	}
	if a.Rows, a.More, err = e.explainRows(ctx, table, condition, nil, maxRows); err != nil {
		return nil, err
	}
	if !isListed {
		return a, nil
	}
	a.Columns = changedColumns(table)
	if a.ForeignPolicies, err = foreignPolicies(ctx, tx, relation, q.AgentRole); err != nil {
		return nil, err
	}
	if len(a.Rows) > 0 {
		if err := q.compareWithRowSecurity(ctx, conn, tx, table, condition, a); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// findRelation finds the table that the question names.
func (q Question) findRelation() (*catalog.Relation, error) {
	schema, name := "", q.Table
	if before, after, ok := strings.Cut(q.Table, "."); ok {
		schema, name = before, after
	}
	if resolvedName, ok := q.Snapshot.ResolveRelation(schema, name); ok {
		relation, _ := q.Snapshot.Relation(resolvedName)
		switch relation.Kind {
		case catalog.Table, catalog.PartitionedTable, catalog.MaterializedView, catalog.ForeignTable:
			return relation, nil
		case catalog.View:
			return nil, sqlstate.New(sqlstate.UndefinedTable, sqlstate.ReasonInternal,
				"%s is a view: it has no rows of its own", relation.Name).
				WithHint("Ask for a row of a table that it reads.")
		}
	}
	var names []string
	for _, table := range q.Policy.Tables() {
		names = append(names, table.Relation.Name.String())
	}
	hint := "The policy lists " + strings.Join(names, ", ")
	for _, name := range names { // The table may be in a schema outside the search path.
		if schema == "" && strings.HasSuffix(name, "."+q.Table) {
			return nil, sqlstate.New(sqlstate.UndefinedTable, sqlstate.ReasonInternal,
				"the database has no table %q on the search path", q.Table).WithHint("Did you mean %q?", name)
		}
	}
	if s := policy.Suggest(q.Table, names); s != "" {
		hint = strings.ToUpper(s[:1]) + s[1:]
	}
	return nil, sqlstate.New(sqlstate.UndefinedTable, sqlstate.ReasonInternal, "the database has no table %q",
		q.Table).WithHint("%s", hint)
}

// keyCondition returns the key of the question as a text for the answer and as an SQL condition.
func (q Question) keyCondition(relation *catalog.Relation) (keyText, condition string, err error) {
	var columns, values []string
	hasNames := len(q.Key) > 0
	for _, k := range q.Key {
		name, value, ok := strings.Cut(k, "=")
		if !ok || relation.Column(name) == nil {
			hasNames = false
			break
		}
		columns, values = append(columns, name), append(values, value)
	}
	if !hasNames {
		columns, values = relation.PrimaryKey, q.Key
	}
	if len(columns) == 0 || len(columns) != len(values) {
		key := "it has no primary key: write column=value"
		if len(relation.PrimaryKey) > 0 {
			key = "its primary key is (" + strings.Join(relation.PrimaryKey, ", ") + "): give a value for each, or column=value"
		}
		return "", "", sqlstate.New(sqlstate.SyntaxError, sqlstate.ReasonInternal, "this is no key of %s", relation.Name).
			WithHint("%s", strings.ToUpper(key[:1])+key[1:])
	}
	var texts, sql []string
	for i, name := range columns {
		texts = append(texts, name+"="+values[i])
		sql = append(sql, "r."+catalog.QuoteIdent(name)+" = "+catalog.QuoteLiteral(values[i]))
	}
	return strings.Join(texts, ", "), strings.Join(sql, " AND "), nil
}

// changedColumns returns the columns that the policy hides from agents or masks.
func changedColumns(table *policy.Table) []Column {
	out := []Column{}
	if table.Columns == nil {
		return out
	}
	for _, c := range table.Relation.Columns {
		treatment := "hidden"
		if table.Columns.ByKey.Has(c.Name) {
			treatment = "by key only, as columns of " + strings.Join(table.Columns.ByKey.Key, ", ") + " name it"
		}
		for _, s := range table.Columns.Columns {
			if s.Name == c.Name {
				treatment = s.Describe()
			}
		}
		if treatment != "" {
			out = append(out, Column{c.Name, treatment})
		}
	}
	return out
}

// foreignPolicies returns the names of restrictive row policies that pgconsent has not made and that apply to the agent
// role.
func foreignPolicies(ctx context.Context, tx pgx.Tx, r *catalog.Relation, role string) ([]string, error) {
	rows, err := tx.Query(ctx, `SELECT p.policyname::text FROM pg_catalog.pg_policies AS p
		WHERE p.schemaname = $1 AND p.tablename = $2 AND p.permissive = 'RESTRICTIVE' AND p.cmd IN ('ALL', 'SELECT')
		  AND p.policyname !~ '^pgconsent_' AND p.roles && ARRAY['public', $3]::pg_catalog.name[] ORDER BY 1`, r.Name.Schema, r.Name.Name, role)
	if err != nil {
		return nil, err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return append([]string{}, names...), err
}

// compareWithRowSecurity counts the rows that the agent role sees under row security, in the same snapshot as the
// answer.
func (q Question) compareWithRowSecurity(ctx context.Context, owner *pgx.Conn, tx pgx.Tx, table *policy.Table,
	condition string,
	a *Answer) error {
	from := table.Relation.Name.SQL()
	if table.Columns != nil {
		from = predicate.RowView(table.Relation.Name).SQL()
		for _, c := range table.Relation.Columns {
			if strings.Contains(condition, "r."+catalog.QuoteIdent(c.Name)+" = ") && !table.Columns.IsPlain(c.Name) {
				a.RowSecurityNotAsked = "agents cannot read " + c.Name
				return nil
			}
		}
	}
	if q.ConnectAgent == nil {
		a.RowSecurityNotAsked = "there is no login of the agent's role"
		return nil
	}
	conn, err := q.ConnectAgent(ctx)
	if err != nil {
		a.RowSecurityNotAsked = "the agent's role cannot log in: " + err.Error()
		return nil
	}
	defer conn.Close(context.WithoutCancel(ctx))
	// The owner's transaction exports its snapshot. Another connection of the owner uses this snapshot to read the keys.
	var snapshot string
	if err := tx.QueryRow(ctx, "SELECT pg_catalog.pg_export_snapshot()").Scan(&snapshot); err != nil {
		return err
	}
	agentTx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return err
	}
	defer func() { _ = agentTx.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := agentTx.Exec(ctx, "SET TRANSACTION SNAPSHOT "+catalog.QuoteLiteral(snapshot)); err != nil {
		return err
	}
	if err := beginSealed(ctx, agentTx, owner, q.Attributes, q.Settings); err != nil {
		return err
	}
	var visibleCount int
	if err := agentTx.QueryRow(ctx,
		"SELECT pg_catalog.count(*) FROM "+from+" AS r WHERE "+condition).Scan(&visibleCount); err != nil {
		var pg *pgconn.PgError
		if errors.As(err, &pg) {
			a.RowSecurityNotAsked = "row security answers: " + pg.Message
			return nil
		}
		return err
	}
	a.RowSecurity = &visibleCount
	return nil
}

// explainer explains rows in one transaction, with the attribute values of one agent's session.
type explainer struct {
	tx     pgx.Tx
	policy *policy.Policy
	values map[string]string
}

// explainRows explains up to limit rows of a table that meet the SQL condition where. If condition is not nil, it is
// the block's additional condition: [Row.Besides] tells which rows do not meet it.
func (e *explainer) explainRows(ctx context.Context, table *policy.Table, where string, condition predicate.Node,
	limit int) (out []Row, hasMore bool, err error) {
	relation := table.Relation
	var names []string
	add := func(columns []string) {
		for _, c := range columns {
			if !slices.Contains(names, c) && relation.Column(c) != nil {
				names = append(names, c)
			}
		}
	}
	key := relation.PrimaryKey
	if len(key) == 0 {
		for _, c := range relation.Columns {
			key = append(key, c.Name)
		}
	}
	add(key)
	var blocks []*policy.Rule
	if table.Rule != nil {
		if columns, isKnown := predicate.RowColumns(table.Rows); isKnown {
			add(columns)
		} else {
			for _, c := range relation.Columns {
				add([]string{c.Name})
			}
		}
		blocks = flattenRule(table.Rule)
	}
	var selectList []string
	for _, name := range names {
		selectList = append(selectList, "r."+catalog.QuoteIdent(name)+"::pg_catalog.text")
	}
	for _, b := range blocks {
		selectList = append(selectList, predicate.DirectCondition(b.Node, "r", e.values),
			predicate.DirectCondition(predicate.Not{Node: b.Node}, "r", e.values))
	}
	isAsked := condition == nil
	if isAsked {
		condition = predicate.Open{}
	}
	selectList = append(selectList, predicate.DirectCondition(condition, "r", e.values))
	rows, err := e.tx.Query(ctx, fmt.Sprintf("SELECT %s FROM %s AS r WHERE %s LIMIT %d", strings.Join(selectList, ", "),
		relation.Name.SQL(), where, limit+1))
	var found [][]any
	if err == nil {
		found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
	}
	if err != nil {
		var pg *pgconn.PgError
		if errors.As(err, &pg) && pg.Code == "22P02" {
			return nil, false, sqlstate.New(sqlstate.SyntaxError, sqlstate.ReasonInternal, "this is no key of %s: %s",
				relation.Name, pg.Message)
		}
		return nil, false, err
	}
	out = []Row{}
	for i, values := range found {
		if i == limit {
			return out, true, nil
		}
		row := map[string]*string{}
		for j, name := range names {
			if text, ok := values[j].(string); ok {
				row[name] = &text
			} else {
				row[name] = nil
			}
		}
		explained := Row{Table: relation.Name.String(), Key: pickValues(row, key)}
		isVisible, _ := values[len(values)-1].(bool)
		explained.Besides = !isVisible
		if table.Rule != nil {
			resultByRule := map[*policy.Rule][2]bool{}
			for j, b := range blocks {
				isTrue, _ := values[len(names)+2*j].(bool)
				isFalse, _ := values[len(names)+2*j+1].(bool)
				resultByRule[b] = [2]bool{isTrue, isFalse}
			}
			if explained.Rule, err = e.explainBlock(ctx, explainedRow{relation, key, row}, table.Rule,
				resultByRule); err != nil {
				return nil, false, err
			}
			explained.Visible = explained.Rule.Holds
		}
		if isAsked && table.Aggregate != nil && !explained.Visible {
			if explained.Group, err = e.explainGroup(ctx, table, explainedRow{relation, key, row}); err != nil {
				return nil, false, err
			}
		}
		out = append(out, explained)
	}
	return out, false, nil
}

// flattenRule returns a rule and all rules inside it, at any depth.
func flattenRule(r *policy.Rule) []*policy.Rule {
	out := []*policy.Rule{r}
	for _, part := range r.Parts {
		out = append(out, flattenRule(part)...)
	}
	return out
}

// explainedRow is the row whose visibility is explained.
type explainedRow struct {
	relation *catalog.Relation
	key      []string
	values   map[string]*string
}

// findCondition returns the SQL condition that only this row meets.
func (p explainedRow) findCondition(alias string) string {
	var parts []string
	for _, name := range p.key {
		column := alias + "." + catalog.QuoteIdent(name)
		if v := p.values[name]; v != nil {
			parts = append(parts, column+"::pg_catalog.text = "+catalog.QuoteLiteral(*v))
		} else {
			parts = append(parts, column+" IS NULL")
		}
	}
	return strings.Join(parts, " AND ")
}

func pickValues(row map[string]*string, names []string) []Value {
	out := []Value{}
	for _, name := range names {
		out = append(out, Value{name, row[name]})
	}
	return out
}
