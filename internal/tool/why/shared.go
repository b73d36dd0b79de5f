package why

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// explainShared explains a shared record: it finds the rows of other tables to which the row refers, and says what
// decides in each.
func (e *explainer) explainShared(ctx context.Context, b *Block, parts predicate.All, row map[string]*string) error {
	var text []string
	for _, part := range parts {
		switch n := part.(type) {
		case predicate.Visible:
			if err := e.explainSharedRecord(ctx, b, n, row); err != nil {
				return err
			}
		case predicate.Status:
			value := row[n.Column]
			text = append(text, columnValueText(row, n.Column)+requiredValueText(value != nil && *value == n.Value, n.Value))
		}
	}
	agreed := true
	for _, r := range b.Records {
		agreed = agreed && r.Holds
	}
	if agreed {
		text = append([]string{"what the row points to is granted"}, text...)
	} else {
		text = append([]string{"it points to what is not granted"}, text...)
	}
	b.Says = strings.Join(text, ", ")
	return nil
}

// explainSharedRecord explains one row of another table to which the row refers.
func (e *explainer) explainSharedRecord(ctx context.Context, b *Block, n predicate.Visible,
	row map[string]*string) error {
	pairs := append([]predicate.ColumnPair{{Column: n.Column, FromColumn: n.FromColumn}}, n.MorePairs...)
	record := Record{Table: n.Relation.Name.String()}
	condition, ok := linkCondition(pairs, "r", row)
	if !ok {
		null := slices.IndexFunc(pairs, func(p predicate.ColumnPair) bool { return row[p.FromColumn] == nil })
		record.Says = "there is no such row: " + pairs[null].FromColumn + " is NULL"
		b.Records = append(b.Records, record)
		return nil
	}
	for _, p := range pairs {
		record.Key = append(record.Key, Value{p.Column, row[p.FromColumn]})
	}
	conditions, _ := n.Rows.(predicate.All)
	var columns []string
	for _, part := range conditions {
		found, _ := predicate.RowColumns(part)
		columns = append(columns, found...)
	}
	selectList := make([]string, 0, len(columns))
	for _, c := range columns {
		selectList = append(selectList, "r."+catalog.QuoteIdent(c)+"::pg_catalog.text")
	}
	rows, err := e.tx.Query(ctx, fmt.Sprintf("SELECT ARRAY[%s]::pg_catalog.text[] FROM %s AS r WHERE %s",
		strings.Join(selectList, ", "), n.Relation.Name.SQL(), condition))
	if err != nil {
		return err
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[[]*string])
	if err != nil {
		return err
	}
	if len(found) == 0 {
		record.Says = "there is no such row: the link leads nowhere"
		b.Records = append(b.Records, record)
		return nil
	}
	values := map[string]*string{}
	for i, c := range columns {
		values[c] = found[0][i]
	}
	record.Holds = true
	var text []string
	for _, part := range conditions {
		switch p := part.(type) {
		case predicate.Status:
			isEqual := values[p.Column] != nil && *values[p.Column] == p.Value
			record.Holds = record.Holds && isEqual
			text = append(text, columnValueText(values, p.Column)+requiredValueText(isEqual, p.Value))
		case predicate.SQL: // The condition compares the time of a withdrawal.
			columns, _ := predicate.RowColumns(p)
			for _, c := range columns {
				value := columnValueText(values, c)
				if values[c] != nil {
					record.Holds = false
					value += ", must be NULL"
				}
				text = append(text, value)
			}
		}
	}
	record.Says = strings.Join(text, ", ")
	b.Records = append(b.Records, record)
	return nil
}
