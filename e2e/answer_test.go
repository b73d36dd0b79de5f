package e2e

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// answer is everything a client learns from one message: per statement the columns, the rows and the tag, then the error,
// then the notices, all as text.
type answer struct {
	results []result
	err     string // SQLSTATE and every text field
	code    string
	notices []string
}

type result struct {
	columns []string
	rows    []string
	tag     string
}

// ask sends one simple-protocol message.
func ask(t testing.TB, c *pgconn.PgConn, sql string) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	var a answer
	reader := c.Exec(ctx, sql)
	for reader.NextResult() {
		rr := reader.ResultReader()
		var r result
		for _, f := range rr.FieldDescriptions() {
			r.columns = append(r.columns, f.Name)
		}
		for rr.NextRow() {
			var b strings.Builder
			for i, v := range rr.Values() {
				if i > 0 {
					b.WriteByte('\t')
				}
				if v == nil {
					b.WriteString(`\N`)
				} else {
					b.Write(v)
				}
			}
			r.rows = append(r.rows, b.String())
		}
		tag, _ := rr.Close()
		r.tag = tag.String()
		a.results = append(a.results, r)
	}
	a.fail(reader.Close())
	a.notices = slices.Clone(noticesOf(c))
	return a
}

func (a *answer) fail(err error) {
	if err == nil {
		return
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		a.code = pg.Code
		a.err = fmt.Sprintf("%s %s: %s|%s|%s|%d|%s|%s|%s|%s|%s", pg.Severity, pg.Code, pg.Message, pg.Detail, pg.Hint, pg.Position,
			pg.Where, pg.SchemaName, pg.TableName, pg.ColumnName, pg.ConstraintName)
		return
	}
	a.code, a.err = "client", err.Error()
}

// String is the transcript; rows in their order.
func (a answer) String() string { return a.text(false) }

// Multiset is the transcript with each result's rows sorted, for statements whose order SQL leaves open.
func (a answer) Multiset() string { return a.text(true) }

func (a answer) text(sorted bool) string {
	var b strings.Builder
	for _, r := range a.results {
		fmt.Fprintf(&b, "[%s] %s\n", strings.Join(r.columns, ","), r.tag)
		rows := r.rows
		if sorted {
			rows = slices.Sorted(slices.Values(rows))
		}
		for _, row := range rows {
			b.WriteString(row)
			b.WriteByte('\n')
		}
	}
	if a.err != "" {
		fmt.Fprintf(&b, "ERROR %s\n", a.err)
	}
	for _, n := range a.notices {
		fmt.Fprintf(&b, "NOTICE %s\n", n)
	}
	return b.String()
}

// shorten keeps failure messages readable.
func shorten(s string) string {
	if len(s) > 1500 {
		return s[:1500] + fmt.Sprintf("… (%d bytes)", len(s))
	}
	return s
}

var blank = regexp.MustCompile(`\s+`)

// oneLine folds a statement for test names and messages.
func oneLine(sql string) string {
	s := strings.TrimSpace(blank.ReplaceAllString(sql, " "))
	if len(s) > 100 {
		s = s[:100] + "…"
	}
	return s
}
