package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/services/strictjson"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
)

// Limits of the result of a statement. When a limit is reached, the rest of the result is not read.
const (
	defaultRows    = 100
	maxRows        = 1000
	maxResultBytes = 256 << 10
	maxRowBytes    = 1 << 20 // size of the largest accepted message of the proxy
)

type queryInput struct {
	SQL        string `json:"sql" jsonschema:"one SQL statement of PostgreSQL; $1, $2, … stand for parameters"`
	Parameters []any  `json:"parameters,omitempty" jsonschema:"values for $1, $2, …: texts, numbers, booleans, null; objects and arrays are passed as JSON"`
	MaxRows    int    `json:"max_rows,omitempty" jsonschema:"how many rows to return at most, 1 to 1000; 100 if left out"`
	ReadOnly   bool   `json:"read_only,omitempty" jsonschema:"true: refuse the statement (25006) if it would change anything"`
}

// queryResult is the result of a statement. Each row is an array, since two columns may have the same name.
type queryResult struct {
	Columns   []column `json:"columns"`
	Rows      [][]any  `json:"rows" jsonschema:"one array for each row, its values in the order of columns. json and jsonb are JSON values; numbers that JSON parsers would round, and all other types, are texts."`
	RowCount  int      `json:"row_count" jsonschema:"rows returned here"`
	Truncated bool     `json:"truncated" jsonschema:"there were more rows: a statement that changes something was not carried out"`
	Command   string   `json:"command,omitempty" jsonschema:"PostgreSQL's command tag, such as INSERT 0 1; left out if truncated"`
	Note      string   `json:"note,omitempty"`
}

type column struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

type noInput struct{}

func statementTools() []Tool {
	agents := []identity.Role{identity.Agent}
	return []Tool{
		NewTool(Tool{
			Name: "list_tables", Title: "List tables", ReadOnly: true, RunsStatements: true, Roles: agents,
			Description: "Lists the tables and views that query can read, with their columns and types. Call it " +
				"before the first query: tables that are not listed do not exist here.",
		}, listTables),
		NewTool(Tool{
			Name: "query", Title: "Run one SQL statement", IsDestructive: true, ReadsOrWrites: true, RunsStatements: true,
			Roles: agents, adaptToDatabase: setReadOnly,
			Description: "Runs one SQL statement on the PostgreSQL database, as the agent of this session, and " +
				"returns its rows. You see only rows whose people have consented; rows without consent do not exist: they are " +
				"in no count, join or search. Use parameters ($1) for values, LIMIT and aggregates for large " +
				"tables; at most max_rows rows come back. " +
				"What is not allowed fails with an SQLSTATE, a message and a hint that says what to do instead " +
				"(42501: not allowed; 0A000: unsupported statement or construct; 53400: over a limit). " +
				"Table and column names: list_tables.",
		}, runQuery),
	}
}

// setReadOnly marks the tool "query" as read-only if the policy does not let agents write to any table.
func setReadOnly(t *Tool, d *Database) {
	p := d.Policy()
	if p == nil || hasWritableTables(p) {
		return
	}
	t.ReadOnly, t.IsDestructive = true, false
	t.Description += " Agents change nothing in this database."
}

func hasWritableTables(p *policy.Policy) bool {
	for _, table := range p.Tables() {
		if table.Write != nil {
			return true
		}
	}
	for _, v := range p.Views() {
		if v.Write != nil {
			return true
		}
	}
	for _, function := range p.Functions() {
		for _, o := range function.Overloads {
			if o.Volatility == 'v' {
				return true
			}
		}
	}
	return false
}

func runQuery(ctx context.Context, c *Call, in queryInput) (queryResult, error) {
	limit := in.MaxRows
	switch {
	case limit == 0:
		limit = defaultRows
	case limit < 0 || limit > maxRows:
		return queryResult{}, sqlstate.New(sqlstate.InvalidParameterValue, sqlstate.ReasonBounds, "max_rows is from 1 to %d",
			maxRows).WithHint("Leave it out for %d.", defaultRows)
	}
	parameters := make([][]byte, len(in.Parameters))
	for i, p := range in.Parameters {
		text, err := parameterText(p)
		if err != nil {
			return queryResult{}, err
		}
		parameters[i] = text
	}
	return c.runStatement(ctx, in.SQL, parameters, limit, in.ReadOnly)
}

// tablesSQL lists the tables that the agent sees, in a way that is open to every client.
const tablesSQL = `SELECT table_schema AS schema, table_name AS table, column_name AS column, data_type AS type, is_nullable AS nullable
FROM information_schema.columns WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ` +
	`ORDER BY table_schema, table_name, ordinal_position`

func listTables(ctx context.Context, c *Call, _ noInput) (queryResult, error) {
	return c.runStatement(ctx, tablesSQL, nil, maxRows, true)
}

// runStatement runs one statement as the caller's agent, through the proxy.
func (c *Call) runStatement(ctx context.Context, sql string, parameters [][]byte, limit int,
	readOnly bool) (queryResult,
	error) {
	conn, err := c.Connect(ctx)
	if err != nil {
		return queryResult{}, err
	}
	defer closeConnection(conn)
	if readOnly {
		if _, err := conn.Exec(ctx, "BEGIN READ ONLY"); err != nil {
			return queryResult{}, err
		}
	}
	out, err := readResult(ctx, conn, sql, parameters, limit)
	var tooLong *pgproto3.ExceededMaxBodyLenErr
	if errors.As(err, &tooLong) {
		return queryResult{}, sqlstate.New(sqlstate.ProgramLimitExceeded, sqlstate.ReasonBounds,
			"a row of the result is longer than %d bytes", maxRowBytes).
			WithHint("Select fewer columns, or part of a value: substr(column, 1, 1000).")
	}
	if ctx.Err() != nil {
		return queryResult{}, ctx.Err()
	}
	return out, err
}

// readResult runs a statement and reads its result. It sends Sync only after it has read the whole result, so that a
// statement with a truncated result is not committed.
func readResult(ctx context.Context, conn *pgx.Conn, sql string, parameters [][]byte, limit int) (queryResult, error) {
	p := conn.PgConn().StartPipeline(ctx)
	p.SendQueryParams(sql, parameters, nil, nil, nil)
	p.SendFlushRequest()
	if err := p.Flush(); err != nil {
		return queryResult{}, err
	}
	result, err := p.GetResults()
	if err != nil {
		return queryResult{}, explainCopy(err)
	}
	reader, ok := result.(*pgconn.ResultReader)
	if !ok {
		return queryResult{}, fmt.Errorf("mcp: a statement was answered with %T", result)
	}
	out := queryResult{Columns: []column{}, Rows: [][]any{}}
	types := conn.TypeMap()
	fields := reader.FieldDescriptions()
	for _, f := range fields {
		name := "unknown"
		if t, ok := types.TypeForOID(f.DataTypeOID); ok {
			name = t.Name
		}
		out.Columns = append(out.Columns, column{f.Name, name})
	}
	bytes := 0
	for reader.NextRow() {
		values := reader.Values()
		for _, v := range values {
			bytes += len(v) + 2
		}
		if len(out.Rows) == limit || bytes > maxResultBytes {
			out.Truncated = true
			out.Note = fmt.Sprintf(
				"There are more rows than these %d. Narrow the statement, aggregate, or use LIMIT and OFFSET; a "+
					"statement that changes something was not carried out.", len(out.Rows))
			out.RowCount = len(out.Rows)
			return out, nil // The caller closes the connection, so that PostgreSQL rolls the statement back.
		}
		row := make([]any, len(values))
		for i, v := range values {
			row[i] = jsonValue(fields[i].DataTypeOID, v)
		}
		out.Rows = append(out.Rows, row)
	}
	tag, err := reader.Close()
	if err != nil {
		return queryResult{}, err
	}
	if err := p.Sync(); err != nil {
		return queryResult{}, err
	}
	if _, err := p.GetResults(); err != nil { // Deferred constraints, for example, can fail at the commit.
		return queryResult{}, err
	}
	out.RowCount, out.Command = len(out.Rows), tag.String()
	return out, nil
}

// explainCopy replaces the driver's error for COPY, which returns no rows.
func explainCopy(err error) error {
	var serverError *pgconn.PgError
	if !errors.As(err, &serverError) && (strings.Contains(err.Error(), "CopyOutResponse") ||
		strings.Contains(err.Error(), "CopyInResponse")) {
		return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonStatement, "COPY is not for this tool").
			WithHint("Use SELECT, or INSERT.")
	}
	return err
}

// closeConnection closes the connection. It tries for at most a second to send the message Terminate.
func closeConnection(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx)
}

// maxExactInteger is the largest integer that every JSON parser reads exactly.
const maxExactInteger = 1 << 53

// jsonValue converts a value from PostgreSQL's text format to JSON.
func jsonValue(oid uint32, text []byte) any {
	if text == nil {
		return nil
	}
	switch oid {
	case pgtype.BoolOID:
		return string(text) == "t"
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID:
		if n, err := strconv.ParseInt(string(text), 10, 64); err == nil && n > -maxExactInteger && n < maxExactInteger {
			return n
		}
	case pgtype.Float4OID, pgtype.Float8OID:
		if n, err := strconv.ParseFloat(string(text), 64); err == nil && !math.IsInf(n, 0) && !math.IsNaN(n) {
			return json.Number(strconv.FormatFloat(n, 'g', -1, 64))
		}
	case pgtype.JSONOID, pgtype.JSONBOID:
		if strictjson.Check(text, strictjson.MaxDepth) == nil {
			return json.RawMessage(append([]byte(nil), text...))
		}
	}
	return string(text)
}

// parameterText converts a JSON value to PostgreSQL's text format.
func parameterText(v any) ([]byte, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case string:
		return []byte(v), nil
	case bool:
		return strconv.AppendBool(nil, v), nil
	case json.Number:
		return []byte(v), nil
	default:
		return json.Marshal(v)
	}
}
