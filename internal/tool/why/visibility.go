package why

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/record/dsar"
	"github.com/pgconsent/pgconsent/internal/record/dsar/pgrows"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// Visibility says how much of a subject's data an agent can see now.
type Visibility struct {
	Agent      string
	Attributes map[string]string // the credential's attributes, and those that the database computes from them
	Missing    []string          // attributes that have no value here; a session that has one may see more
	Tables     []TableVisibility // the tables that have rows of the subject
}

// TableVisibility says how much of a subject's data in one table an agent can see.
type TableVisibility struct {
	Table    string
	Rows     int64 // the number of the subject's rows
	Visible  int64 // the number of those rows that the agent can read
	Counted  int64 // rows that only aggregates count, whether or not their groups are large enough
	Observed bool  // the policy only observes the table's rule, so agents read every row
	Columns  []ColumnVisibility
}

// ColumnVisibility is a column, and the number of visible rows in which the agent sees its value.
type ColumnVisibility struct {
	Name    string
	Mask    string // how the policy masks the column's value; "": it does not
	Visible int64
}

// VisibleToAgents counts how many of a subject's rows each agent can see. conn is a connection of the owner of the
// tables, and all counts are of one snapshot. agents has the attributes of each agent's credential. An agent may see
// less than counted, since contracts and limits are not evaluated.
func VisibleToAgents(ctx context.Context, conn *pgx.Conn, p *policy.Policy, subject string,
	agents map[string]map[string]string) ([]Visibility, error) {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	// With row_security off, PostgreSQL raises an error if it would have to hide rows from the owner, so no count is
	// wrong.
	if _, err := tx.Exec(ctx,
		"SET LOCAL row_security = off; SET LOCAL jit = off; SET LOCAL plan_cache_mode = force_generic_plan"); err != nil {
		return nil, err
	}
	var counts []subjectCount
	for _, t := range dsar.SubjectTables(p) {
		table, ok := p.Table(t.Relation.Name)
		if !ok {
			continue
		}
		condition, err := pgrows.SubjectCondition(ctx, tx, t, subject)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Relation.Name, err)
		}
		if condition == "" {
			continue
		}
		// A table without rows of the subject is skipped: planning the rules for one agent may take longer than everything
		// else.
		var hasRows bool
		if err := tx.QueryRow(ctx, "SELECT EXISTS (SELECT 1 FROM "+table.Relation.Name.SQL()+" AS r WHERE "+condition+")",
			subject).Scan(&hasRows); err != nil {
			return nil, fmt.Errorf("%s: %w", t.Relation.Name, err)
		}
		if hasRows {
			counts = append(counts, newSubjectCount(table, condition))
		}
	}
	var out []Visibility
	for _, agent := range slices.Sorted(maps.Keys(agents)) {
		visibility := Visibility{Agent: agent}
		if visibility.Attributes, err = agentAttributes(ctx, tx, p, agents[agent]); err != nil {
			return nil, err
		}
		for _, a := range p.Attributes() {
			if _, ok := visibility.Attributes[a.Name]; !ok {
				visibility.Missing = append(visibility.Missing, a.Name)
			}
		}
		sameIndex := slices.IndexFunc(out, func(s Visibility) bool { return maps.Equal(s.Attributes, visibility.Attributes) })
		if sameIndex >= 0 {
			visibility.Tables = out[sameIndex].Tables
			out = append(out, visibility)
			continue
		}
		for _, count := range counts {
			t, err := count.countFor(ctx, tx, subject, visibility.Attributes)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", count.result.Table, err)
			}
			visibility.Tables = append(visibility.Tables, t)
		}
		out = append(out, visibility)
	}
	return out, nil
}

// agentAttributes returns the attributes of one agent. Its seal ends with a savepoint, so that the next agent has its
// own.
func agentAttributes(ctx context.Context, tx pgx.Tx, p *policy.Policy, credential map[string]string) (map[string]string,
	error) {
	innerTx, err := tx.Begin(ctx)
	if err != nil {
		return nil, err
	}
	// The functions that compute attributes read as pgconsent's reader role, to whom a row policy shows every row. With
	// row_security off, PostgreSQL would raise an error for a table with row security.
	values, err := map[string]string(nil), error(nil)
	if _, err = innerTx.Exec(ctx, "SET LOCAL row_security = on"); err == nil {
		values, err = AttributeValues(ctx, innerTx, p, credential, nil)
	}
	if e := innerTx.Rollback(ctx); err == nil {
		err = e
	}
	return values, err
}

// subjectCount is a statement that counts the subject's rows of a table as an agent sees them. It is the same statement
// for each agent, so that PostgreSQL plans it once.
type subjectCount struct {
	sql          string
	parameters   predicate.Parameters // the attributes that are parameters of the statement, after the subject
	columnCounts []int                // indexes of columns that only some visible rows show
	result       TableVisibility      // the result except for its numbers
}

func newSubjectCount(table *policy.Table, condition string) subjectCount {
	c := subjectCount{parameters: predicate.Parameters{FirstNumber: 2},
		result: TableVisibility{Table: table.Relation.Name.String(), Observed: table.Observed != nil}}
	directSQL := func(node predicate.Node) string {
		if node == nil {
			return "true"
		}
		return c.parameters.Condition(node, "r")
	}
	countedCondition := "false"
	if table.Aggregate != nil {
		countedCondition = directSQL(table.Aggregate.Rows)
	}
	innerSelectList := []string{directSQL(table.Rows) + " AS visible", countedCondition + " AS counted"}
	selectList := []string{"count(*)", "count(*) FILTER (WHERE visible)",
		"count(*) FILTER (WHERE counted AND NOT visible)"}
	if table.Columns == nil {
		for _, column := range table.Relation.Columns {
			c.result.Columns = append(c.result.Columns, ColumnVisibility{Name: column.Name})
		}
	} else {
		for _, column := range table.Columns.Columns {
			c.result.Columns = append(c.result.Columns, ColumnVisibility{Name: column.Name, Mask: column.DescribeMask()})
		}
		if k := table.Columns.ByKey; k != nil {
			for _, column := range k.AllColumns {
				if !slices.ContainsFunc(c.result.Columns, func(s ColumnVisibility) bool { return s.Name == column.Name }) {
					c.result.Columns = append(c.result.Columns,
						ColumnVisibility{Name: column.Name, Mask: "only in a row that is fetched by its key"})
				}
			}
		}
		for i, column := range table.Columns.Columns {
			if column.Condition == nil {
				continue
			}
			name := catalog.QuoteIdent(fmt.Sprintf("column %d", i))
			innerSelectList = append(innerSelectList, directSQL(column.Condition)+" AS "+name)
			selectList = append(selectList, "count(*) FILTER (WHERE visible AND "+name+")")
			c.columnCounts = append(c.columnCounts, i)
		}
	}
	c.sql = "SELECT " + strings.Join(selectList, ", ") + " FROM (SELECT " + strings.Join(innerSelectList, ", ") +
		" FROM " +
		table.Relation.Name.SQL() + " AS r WHERE " + condition + ") AS s"
	return c
}

// countFor runs the statement with the attributes of one agent.
func (c subjectCount) countFor(ctx context.Context, tx pgx.Tx, subject string,
	attributes map[string]string) (TableVisibility, error) {
	out := c.result
	out.Columns = slices.Clone(out.Columns)
	into := []any{&out.Rows, &out.Visible, &out.Counted}
	for _, i := range c.columnCounts {
		into = append(into, &out.Columns[i].Visible)
	}
	arguments := []any{subject}
	for _, name := range c.parameters.AttributeNames {
		var value *string
		if attribute, exists := attributes[name]; exists {
			value = &attribute
		}
		arguments = append(arguments, value)
	}
	if err := tx.QueryRow(ctx, c.sql, arguments...).Scan(into...); err != nil {
		return out, err
	}
	for i := range out.Columns {
		if !slices.Contains(c.columnCounts, i) {
			out.Columns[i].Visible = out.Visible
		}
	}
	return out, nil
}
