package why

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// explainDerived finds the rows from which a row was made, and lists first those because of which it is hidden.
func (e *explainer) explainDerived(ctx context.Context, b *Block, n predicate.Derived, row explainedRow) error {
	if n.ExceptIf != nil {
		var hasException bool
		err := e.tx.QueryRow(ctx, fmt.Sprintf("SELECT %s FROM %s AS r WHERE %s",
			predicate.DirectCondition(n.ExceptIf, "r", e.values), row.relation.Name.SQL(),
			row.findCondition("r"))).Scan(&hasException)
		if err != nil {
			return err
		}
		if hasException {
			b.Says = "it was made from no other row"
			return nil
		}
	}
	source := n.SourceTable()
	key := keyColumns(source)
	var selectList []string
	for _, name := range key {
		selectList = append(selectList, "s."+catalog.QuoteIdent(name)+"::pg_catalog.text")
	}
	condition := predicate.DirectCondition(n.SourceCondition(), "s", e.values)
	rows, err := e.tx.Query(ctx, fmt.Sprintf(
		"SELECT %s, %s FROM %s AS r JOIN %s AS s ON %s WHERE %s ORDER BY %[2]s, %[1]s LIMIT %[7]d",
		strings.Join(selectList, ", "), condition, row.relation.Name.SQL(), source.Name.SQL(), n.DerivedFromCondition("r",
			"s"), row.findCondition("r"), maxRecords+1))
	if err != nil {
		return err
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
	if err != nil {
		return err
	}
	hidingCount := 0
	for i, values := range found {
		if i == maxRecords {
			b.More = true
			break
		}
		record := Record{Table: source.Name.String()}
		for j, name := range key {
			value, ok := values[j].(string)
			v := Value{name, nil}
			if ok {
				v = Value{name, &value}
			}
			record.Key = append(record.Key, v)
		}
		record.Holds, _ = values[len(values)-1].(bool)
		record.Says = "what its own rule asks of what is made from it holds"
		if !record.Holds {
			hidingCount++
			record.Says = "what its own rule asks of what is made from it does not hold"
		}
		b.Records = append(b.Records, record)
	}
	switch {
	case hidingCount > 0:
		b.Says = "a row that it was made from hides it"
	case b.Holds:
		b.Says = "every row that it was made from is there, and none hides it"
	case len(found) == 0:
		b.Says = "nothing is there that it was made from"
	default:
		b.Says = "something that it was made from is not there"
	}
	return nil
}
