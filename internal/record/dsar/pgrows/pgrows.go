// Package pgrows finds the rows of a database that belong to a subject, as the owner of the tables.
//
// It reads only keys, or whole rows if a copy is requested. It reads in one snapshot and changes nothing.
package pgrows

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/record/dsar"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// ReadRows finds the subject's rows in each table; if data is true, it also returns a copy of them. If runAtEnd is not
// nil, ReadRows calls it at the end, in the same snapshot.
func ReadRows(ctx context.Context, conn *pgx.Conn, tables []dsar.SubjectTable, subject string, data bool,
	runAtEnd func(pgx.Tx) error) ([]dsar.SubjectRows, error) {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, fmt.Errorf("read the subject's rows: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	// With row_security off, PostgreSQL raises an error if it would have to hide a row from this role.
	if _, err := tx.Exec(ctx, "SET LOCAL row_security = off; SET LOCAL search_path = pg_catalog, pg_temp"); err != nil {
		return nil, fmt.Errorf("read the subject's rows: %w", err)
	}
	out := make([]dsar.SubjectRows, 0, len(tables))
	for _, t := range tables {
		rows, err := readTable(ctx, tx, t, subject, data)
		if err != nil {
			return nil, fmt.Errorf("read the subject's rows of %s: %w", t.Relation.Name, err)
		}
		out = append(out, rows)
	}
	if runAtEnd != nil {
		if err := runAtEnd(tx); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// readTable finds the subject's rows in one table.
func readTable(ctx context.Context, tx pgx.Tx, t dsar.SubjectTable, subject string, data bool) (dsar.SubjectRows,
	error) {
	out := dsar.SubjectRows{Table: t, Key: t.Relation.PrimaryKey, Keys: [][]string{}}
	condition, err := SubjectCondition(ctx, tx, t, subject)
	if err != nil || condition == "" {
		return out, err
	}
	var key, order []string
	for _, c := range out.Key {
		key = append(key, "r."+catalog.QuoteIdent(c)+"::pg_catalog.text")
		order = append(order, "r."+catalog.QuoteIdent(c))
	}
	copied := "NULL::pg_catalog.text"
	if data {
		copied = "pg_catalog.to_jsonb(r)::pg_catalog.text"
	}
	sql := "SELECT ARRAY[" + strings.Join(key, ", ") + "]::pg_catalog.text[], " + copied + " FROM " +
		t.Relation.Name.SQL() + " AS r WHERE " + condition
	if len(order) > 0 {
		sql += " ORDER BY " + strings.Join(order, ", ")
	}
	rows, err := tx.Query(ctx, sql, subject)
	if err != nil {
		return out, err
	}
	var parts []string
	var row *string
	_, err = pgx.ForEachRow(rows, []any{&parts, &row}, func() error {
		out.Count++
		if len(out.Key) > 0 {
			out.Keys = append(out.Keys, slices.Clone(parts))
		}
		if row != nil {
			out.Copy = append(out.Copy, []byte(*row))
		}
		return nil
	})
	return out, err
}

// SubjectCondition returns the SQL condition that a row r belongs to the subject with the id $1. It returns "" if no
// column can hold such an id.
func SubjectCondition(ctx context.Context, tx pgx.Tx, t dsar.SubjectTable, subject string) (string, error) {
	var conditions []string
	for _, l := range t.Links {
		condition, err := linkCondition(ctx, tx, l, t.Relation, subject)
		if err != nil {
			return "", err
		}
		if condition != "" {
			conditions = append(conditions, condition)
		}
	}
	if len(conditions) == 0 {
		return "", nil
	}
	return "(" + strings.Join(conditions, " OR ") + ")", nil
}

// linkCondition returns the SQL condition that a link leads from a row r to the subject $1. It returns "" if the link's
// column cannot hold such an id.
func linkCondition(ctx context.Context, tx pgx.Tx, l dsar.SubjectLink, from *catalog.Relation,
	subject string) (string, error) {
	lastTable := from
	row := "r"
	var openingSQL, closingSQL string
	for i, h := range l.Steps {
		alias := fmt.Sprintf("h%d", i)
		switch {
		case h.Recursive:
			openingSQL += "(" + keySQL(row, h.Relation) + ") IN (WITH RECURSIVE m AS (SELECT " + keySQL(alias, h.Relation) +
				" FROM " + h.Relation.Name.SQL() + " AS " + alias + " WHERE ("
			closingSQL = ") UNION " + recursiveStepSQL(h) + ") SELECT * FROM m)" + closingSQL
		case len(h.MadeFrom) > 0:
			products, condition := h.MadeFrom[0].DerivedRowsSQL(lastTable, row, alias)
			openingSQL += "EXISTS (SELECT 1 FROM " + strings.Join(append(products[1:], h.Relation.Name.SQL()+" AS "+alias),
				" CROSS JOIN ") + " WHERE " + condition + " AND "
			closingSQL = ")" + closingSQL
		default:
			var conditions []string
			for _, p := range h.Pairs() {
				conditions = append(conditions,
					alias+"."+catalog.QuoteIdent(p.Column)+" = "+row+"."+catalog.QuoteIdent(p.FromColumn))
			}
			openingSQL += "EXISTS (SELECT 1 FROM " + h.Relation.Name.SQL() + " AS " + alias + " WHERE " +
				strings.Join(conditions, " AND ") + " AND "
			closingSQL = ")" + closingSQL
		}
		row, lastTable = alias, h.Relation
	}
	if l.Column == "" {
		return openingSQL + inListSQL("$1::pg_catalog.text", l.List, row) + closingSQL, nil
	}
	column := lastTable.Column(l.Column)
	if column == nil {
		return "", fmt.Errorf("%s has no column %s", lastTable.Name, l.Column)
	}
	equalsSQL, err := equalsSubjectSQL(ctx, tx, row, column, subject)
	if err != nil || equalsSQL == "" {
		return "", err
	}
	return openingSQL + equalsSQL + closingSQL, nil
}

// keySQL returns the columns of a row's primary key as SQL.
func keySQL(row string, r *catalog.Relation) string {
	parts := make([]string, len(r.PrimaryKey))
	for i, c := range r.PrimaryKey {
		parts[i] = row + "." + catalog.QuoteIdent(c)
	}
	return strings.Join(parts, ", ")
}

// recursiveStepSQL returns a query for the keys of rows that were made from rows of the same table whose keys are in m.
func recursiveStepSQL(h dsar.LinkStep) string {
	columns := make([]string, len(h.Relation.PrimaryKey))
	conditions := make([]string, len(columns))
	for i, c := range h.Relation.PrimaryKey {
		columns[i] = fmt.Sprintf("p%d", i)
		conditions[i] = "s." + catalog.QuoteIdent(c) + " = g." + columns[i]
	}
	names := strings.Join(columns, ", ")
	var ways []string
	for _, o := range h.MadeFrom {
		products, condition := o.DerivedRowsSQL(h.Relation, "t", "s")
		ways = append(ways, "SELECT "+keySQL("t", h.Relation)+" FROM g JOIN "+h.Relation.Name.SQL()+" AS s ON "+
			strings.Join(conditions, " AND ")+" CROSS JOIN "+strings.Join(products, " CROSS JOIN ")+" WHERE "+condition)
	}
	return "SELECT f.* FROM (WITH g (" + names + ") AS MATERIALIZED (SELECT * FROM m) " +
		strings.Join(ways, " UNION ALL ") + ") AS f"
}

// equalsSubjectSQL returns a comparison of a column with $1. It compares in the column's type, so that an index is
// used, and as text, so that ids match exactly. It returns "" if the type cannot hold the id.
func equalsSubjectSQL(ctx context.Context, tx pgx.Tx, row string, column *catalog.Column, subject string) (string,
	error) {
	name := row + "." + catalog.QuoteIdent(column.Name)
	condition := name + "::pg_catalog.text = $1::pg_catalog.text"
	cast := map[string]string{"uuid": "uuid", "smallint": "int8", "integer": "int8", "bigint": "int8"}[column.Type]
	if cast == "" {
		return condition, nil
	}
	attempt, err := tx.Begin(ctx)
	if err != nil {
		return "", err
	}
	var ok bool
	err = attempt.QueryRow(ctx, "SELECT $1::pg_catalog.text::pg_catalog."+cast+" IS NOT NULL", subject).Scan(&ok)
	if e := attempt.Rollback(ctx); e != nil {
		return "", e
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) && strings.HasPrefix(pg.Code, "22") {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return "(" + name + " = $1::pg_catalog.text::pg_catalog." + cast + " AND " + condition + ")", nil
}

// inListSQL returns the SQL condition that an id is in a list column.
func inListSQL(id string, l predicate.List, row string) string {
	c := row + "." + catalog.QuoteIdent(l.Column)
	switch l.Form {
	case predicate.GrantJSONB:
		return id + " = ANY (" + predicate.JSONBIDs + "(" + c + "))"
	case predicate.GrantJSON:
		return id + " = ANY (" + predicate.JSONIDs + "(" + c + "::pg_catalog.text))"
	default:
		return id + " = ANY (" + c + "::pg_catalog.text[])"
	}
}
