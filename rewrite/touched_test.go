package rewrite

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// touched is what PostgreSQL reports that a statement reads and calls, after analysis and view expansion and without
// running it.
type touched struct {
	columns   map[uint32]map[int]bool // the columns that are read, by the OID of the relation; 0 stands for the whole row
	functions map[uint32]bool         // the OIDs of functions that are called by name
}

var (
	relationEntry   = regexp.MustCompile(`:relid (\d+) :relkind [a-z].*?:selectedCols \(b([ \d]*)\)`)
	permissionEntry = regexp.MustCompile(`\{(?:RTE)?PERMISSIONINFO :relid (\d+) .*?:selectedCols \(b([ \d]*)\)`) // PostgreSQL 16 and later
	functionEntry   = regexp.MustCompile(
		`:(?:aggfnoid|winfnoid) (\d+)|\{FUNCEXPR :funcid (\d+) :funcresulttype \d+ :funcretset \w+ :funcvariadic \w+ :funcformat 0`)
)

// askServer analyses a statement with debug_print_rewritten.
func askServer(t *testing.T, conn *pgx.Conn, notices *strings.Builder, sql string) touched {
	t.Helper()
	notices.Reset()
	if _, err := conn.Prepare(context.Background(), "", sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	text := strings.Join(strings.Fields(notices.String()), " ")
	out := touched{map[uint32]map[int]bool{}, map[uint32]bool{}}
	entry := relationEntry
	if fixture.snap.ServerVersion() >= 160000 {
		entry = permissionEntry
	}
	for _, m := range entry.FindAllStringSubmatch(text, -1) {
		oid, _ := strconv.ParseUint(m[1], 10, 32)
		columns := out.columns[uint32(oid)]
		if columns == nil {
			columns = map[int]bool{}
			out.columns[uint32(oid)] = columns
		}
		for _, bit := range strings.Fields(m[2]) {
			n, _ := strconv.Atoi(bit)
			columns[n-7] = true // column numbers are offset by FirstLowInvalidHeapAttributeNumber
		}
	}
	for _, m := range functionEntry.FindAllStringSubmatch(text, -1) {
		oid, _ := strconv.ParseUint(m[1]+m[2], 10, 32)
		out.functions[uint32(oid)] = true
	}
	return out
}

// The relations, columns and functions that the rewriter reports are those that PostgreSQL reports. Relations are the
// same, columns are at least PostgreSQL's, and each function that is called by name is listed.
func TestTouchedObjectsAreThoseOfPostgreSQL(t *testing.T) {
	db := database(t)
	ctx := context.Background()
	admin := db.Connect(t, "postgres")
	config, err := pgx.ParseConfig(db.DSN("postgres", ""))
	if err != nil {
		t.Fatal(err)
	}
	var notices strings.Builder
	config.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { notices.WriteString(n.Detail + n.Message) }
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "SET debug_print_rewritten = on; SET debug_pretty_print = off; SET client_min_messages = log"); err != nil {
		t.Fatal(err)
	}
	functionName := func(oid uint32) string {
		var schema, name string
		if err := admin.QueryRow(ctx,
			"SELECT pronamespace::regnamespace::text, proname::text FROM pg_proc WHERE oid = $1", oid).Scan(&schema, &name); err != nil {
			t.Fatal(err)
		}
		return schema + "." + name
	}
	r := rewriter(t, InjectedMode)
	relations, columns, functions := 0, 0, 0
	for _, q := range corpusQueries(t) {
		result, refusal := r.Rewrite(q.sql, true)
		if refusal != nil {
			t.Errorf("%s: %v", q.name, refusal)
			continue
		}
		server := askServer(t, conn, &notices, q.sql)
		reportedOIDs := map[uint32]bool{}
		for _, access := range result.Accesses {
			relation, ok := fixture.snap.Relation(access.Relation)
			if !ok {
				t.Fatalf("%s: no relation %v", q.name, access.Relation)
			}
			reportedOIDs[relation.OID] = true
			relations++
			if server.columns[relation.OID] == nil {
				t.Errorf("%s: PostgreSQL does not read %v", q.name, access.Relation)
			}
			if access.Columns == nil {
				continue
			}
			for _, column := range columnNumbers(t, admin, relation) {
				if server.columns[relation.OID][column.number] {
					columns++
					if !slices.Contains(access.Columns, column.name) && !isColumnElsewhere(result, access, column.name) {
						t.Errorf("%s: PostgreSQL reads %v.%s", q.name, access.Relation, column.name)
					}
				}
			}
			if server.columns[relation.OID][0] && !isColumnElsewhere(result, access, "") {
				t.Errorf("%s: PostgreSQL reads whole rows of %v", q.name, access.Relation)
			}
		}
		for oid := range server.columns {
			if !reportedOIDs[oid] {
				t.Errorf("%s: PostgreSQL reads relation %d besides", q.name, oid)
			}
		}
		for oid := range server.functions {
			functions++
			name := functionName(oid)
			if strings.HasPrefix(q.name, "recursive-") && (name == "pg_catalog.int8inc" || name == "pg_catalog.array_cat") {
				continue // PostgreSQL expands SEARCH and CYCLE with these functions
			}
			if !slices.Contains(result.Functions, name) {
				t.Errorf("%s: PostgreSQL calls %s besides %v", q.name, name, result.Functions)
			}
		}
	}
	t.Logf("%d relations, %d columns, %d functions", relations, columns, functions)
	if relations < 150 || columns < 150 || functions < 100 {
		t.Error("the second opinion saw too little to be worth much")
	}
}

// isColumnElsewhere returns whether another access of the relation has the column, or whether only an unused sub-select
// result names it.
func isColumnElsewhere(result *Result, access policy.Access, column string) bool {
	for _, a := range result.Accesses {
		if a.Relation == access.Relation && (a.Columns == nil || slices.Contains(a.Columns, column)) {
			return true
		}
	}
	for _, r := range result.relationUses {
		if r.name == access.Relation && (r.unusedRow || r.unusedColumns[column]) {
			return true
		}
	}
	return false
}

type numbered struct {
	name   string
	number int
}

func columnNumbers(t *testing.T, conn *pgx.Conn, r *catalog.Relation) []numbered {
	t.Helper()
	rows, err := conn.Query(context.Background(),
		"SELECT attname::text, attnum::int FROM pg_attribute WHERE attrelid = $1 AND attnum > 0 AND NOT attisdropped", r.OID)
	if err != nil {
		t.Fatal(err)
	}
	var out []numbered
	for rows.Next() {
		var n numbered
		if err := rows.Scan(&n.name, &n.number); err != nil {
			t.Fatal(err)
		}
		out = append(out, n)
	}
	return out
}
