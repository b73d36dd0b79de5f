package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// maxKeys is how many keys are used at most, and so how many different texts the statement has.
const maxKeys = 100

// Errors of [PrimaryKeyStatement].
var (
	ErrNoTable = errors.New("there is no such table")
	ErrNoKey   = errors.New("the table has no primary key")
	ErrNoRows  = errors.New("the agent sees no row of the table")
)

// PrimaryKeyStatement returns a statement that looks up one row of a table by its primary key, for keys of rows that
// the agent sees. The statement reads only columns that the agent sees, so that the owner's connection and the agent's
// read the same ones. The table is named as in SQL.
func PrimaryKeyStatement(ctx context.Context, owner, agent *pgconn.PgConn, table string) (Statement, error) {
	keys, name, err := primaryKey(ctx, owner, table)
	if err != nil {
		return Statement{}, err
	}
	description := agent.ExecParams(ctx, "SELECT * FROM "+name+" LIMIT 0", nil, nil, nil, nil)
	var columns []string
	for _, f := range description.FieldDescriptions() {
		columns = append(columns, quoteIdent(f.Name))
	}
	if _, err := description.Close(); err != nil {
		return Statement{}, err
	}
	list := make([]string, len(keys))
	conditions := make([]string, len(keys))
	for i, k := range keys {
		list[i], conditions[i] = quoteIdent(k), fmt.Sprintf("%s = $%d", quoteIdent(k), i+1)
	}
	visibleRows := agent.ExecParams(ctx, fmt.Sprintf("SELECT %s FROM %s LIMIT %d", strings.Join(list, ", "), name,
		maxKeys),
		nil, nil, nil, nil).Read()
	if visibleRows.Err != nil {
		return Statement{}, visibleRows.Err
	}
	if len(visibleRows.Rows) == 0 {
		return Statement{}, ErrNoRows
	}
	from := "SELECT " + strings.Join(columns, ", ") + " FROM " + name + " WHERE "
	out := Statement{Text: from + strings.Join(conditions, " AND ")}
	for _, row := range visibleRows.Rows {
		literals := make([]string, len(keys))
		for i, k := range keys {
			literals[i] = quoteIdent(k) + " = " + quoteLiteral(row[i])
		}
		out.Texts = append(out.Texts, from+strings.Join(literals, " AND "))
		out.Values = append(out.Values, row)
	}
	return out, nil
}

// primaryKey returns the columns of a table's primary key, and the table's name with its schema.
func primaryKey(ctx context.Context, owner *pgconn.PgConn, table string) (keys []string, name string, err error) {
	found := owner.ExecParams(ctx, `SELECT pg_catalog.format('%I.%I', n.nspname, c.relname), a.attname
		FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
		LEFT JOIN pg_catalog.pg_index i ON i.indrelid = c.oid AND i.indisprimary
		LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey)
		WHERE c.oid = pg_catalog.to_regclass($1) ORDER BY pg_catalog.array_position(i.indkey::int2[], a.attnum)`,
		[][]byte{[]byte(table)}, nil, nil, nil).Read()
	if found.Err != nil {
		return nil, "", found.Err
	}
	if len(found.Rows) == 0 {
		return nil, "", ErrNoTable
	}
	for _, row := range found.Rows {
		if name = string(row[0]); row[1] != nil {
			keys = append(keys, string(row[1]))
		}
	}
	if len(keys) == 0 {
		return nil, "", ErrNoKey
	}
	return keys, name, nil
}

func quoteIdent(name string) string { return pgx.Identifier{name}.Sanitize() }

// quoteLiteral returns a value as an SQL literal that is right whatever standard_conforming_strings is.
func quoteLiteral(value []byte) string {
	text := strings.ReplaceAll(string(value), "'", "''")
	if strings.Contains(text, `\`) {
		return "E'" + strings.ReplaceAll(text, `\`, `\\`) + "'"
	}
	return "'" + text + "'"
}
