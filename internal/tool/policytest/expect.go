package policytest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// Failure describes an expectation that the answer did not meet.
type Failure struct {
	Place
	As      string   `json:"as"`
	What    string   `json:"what"` // the expectation, in words
	Problem string   `json:"says"` // a sentence that says how the answer differs
	Want    []string `json:"want,omitempty"`
	Got     []string `json:"got,omitempty"`
}

// statementAnswer is the proxy's answer to the last statement of a text.
type statementAnswer struct {
	columns     []string
	rows        [][]*string
	tag         pgconn.CommandTag
	serverError *pgconn.PgError
}

// runAs sends a text as a caller through the proxy, or as the owner.
func (d *testDatabase) runAs(ctx context.Context, caller, sql string, login credential) (statementAnswer, error) {
	conn := d.ownerConn.PgConn()
	if caller != "owner" {
		var err error
		if conn, err = d.callerSession(ctx, caller, login); err != nil {
			var a statementAnswer
			if errors.As(err, &a.serverError) {
				return a, nil
			}
			return a, fmt.Errorf("log in as %s: %w", caller, err)
		}
	}
	var a statementAnswer
	results := conn.Exec(ctx, sql)
	for results.NextResult() {
		a = readResult(results.ResultReader())
	}
	err := results.Close()
	if err != nil && !errors.As(err, &a.serverError) {
		return a, err
	}
	return a, nil
}

func readResult(r *pgconn.ResultReader) statementAnswer {
	var a statementAnswer
	for _, f := range r.FieldDescriptions() {
		a.columns = append(a.columns, f.Name)
	}
	for r.NextRow() {
		var values []*string
		for _, v := range r.Values() {
			if v == nil {
				values = append(values, nil)
				continue
			}
			text := string(v)
			values = append(values, &text)
		}
		a.rows = append(a.rows, values)
	}
	a.tag, _ = r.Close() // Close returns the last statement's tag, and the error of the whole text.
	return a
}

func (a statementAnswer) errorText() string {
	out := fmt.Sprintf("%s: %s", a.serverError.Code, a.serverError.Message)
	if a.serverError.Hint != "" {
		out += " (" + a.serverError.Hint + ")"
	}
	return out
}

// checkExpectation sends what an expectation needs and compares the answers. It returns policy.Errors if the file is
// wrong.
func (d *testDatabase) checkExpectation(ctx context.Context, e Expectation, login credential) ([]Failure, error) {
	for _, setting := range e.Settings {
		a, err := d.runAs(ctx, e.Caller, "SET "+quoteSetting(setting.Name)+" = "+catalog.QuoteLiteral(setting.Value), login)
		if err != nil {
			return nil, err
		}
		if a.serverError != nil {
			return []Failure{{Place: e.Place, As: e.Caller, What: "SET " + setting.Name, Problem: "it is refused",
				Got: []string{a.errorText()}}}, nil
		}
	}
	var failures []Failure
	for _, group := range []struct {
		label string
		rows  []RowExpectation
		f     func(context.Context, Expectation, RowExpectation, credential) (*Failure, error)
	}{{"sees", e.ExactRows, d.checkExactRows}, {"shows", e.VisibleRows, d.checkVisibleRows}, {"hides", e.HiddenRows,
		d.checkHiddenRows},
		{"columns", e.Columns, d.checkColumns}} {
		for _, rows := range group.rows {
			failure, err := group.f(ctx, e, rows, login)
			if err != nil {
				return nil, err
			}
			if failure != nil {
				failure.Place, failure.As, failure.What = rows.Place, e.Caller, group.label+" "+rows.Table
				failures = append(failures, *failure)
			}
		}
	}
	if e.Query != "" {
		a, err := d.runAs(ctx, e.Caller, e.Query, login)
		if err != nil {
			return nil, err
		}
		if failure := e.checkAnswer(a); failure != nil {
			failure.Place, failure.As, failure.What = e.Place, e.Caller, singleLine(e.Query)
			failures = append(failures, *failure)
		}
	}
	return failures, nil
}

func quoteSetting(name string) string {
	var parts []string
	for _, part := range strings.Split(name, ".") {
		parts = append(parts, catalog.QuoteIdent(part))
	}
	return strings.Join(parts, ".")
}

func singleLine(sql string) string {
	s := strings.Join(strings.Fields(sql), " ")
	if len(s) > 120 {
		s = strings.ToValidUTF8(s[:117], "") + "…"
	}
	return s
}

// checkAnswer compares the answer to a query with the expectation.
func (e Expectation) checkAnswer(a statementAnswer) *Failure {
	if e.Error != "" {
		switch {
		case a.serverError == nil:
			return &Failure{Problem: "it is answered and should fail", Want: []string{e.Error + " " + e.Message},
				Got: a.rowTexts()}
		case e.Error != "any" && a.serverError.Code != e.Error,
			!strings.Contains(a.serverError.Message+"\n"+a.serverError.Hint+"\n"+a.serverError.Detail, e.Message):
			return &Failure{Problem: "it fails otherwise", Want: []string{strings.TrimSpace(e.Error + " " + e.Message)},
				Got: []string{a.errorText()}}
		}
		return nil
	}
	if a.serverError != nil {
		return &Failure{Problem: "it fails and should be answered", Got: []string{a.errorText()}}
	}
	switch {
	case e.Value != nil:
		if len(a.rows) != 1 || len(a.columns) != 1 {
			return &Failure{Problem: fmt.Sprintf("the answer has %d rows of %d columns, not one value", len(a.rows),
				len(a.columns)), Want: []string{nodeText(e.Value)}, Got: a.rowTexts()}
		}
		if !equalsValue(e.Value, a.rows[0][0]) {
			return &Failure{Problem: "the value is another", Want: []string{nodeText(e.Value)},
				Got: []string{valueText(a.rows[0][0])}}
		}
	case e.Rows != nil:
		return e.compareRows(a)
	case e.Count >= 0 && len(a.rows) != e.Count:
		return &Failure{Problem: "the number of rows is another", Want: []string{fmt.Sprint(e.Count)},
			Got: append([]string{fmt.Sprint(len(a.rows))}, a.rowTexts()...)}
	case e.ChangedRows >= 0 && a.tag.RowsAffected() != int64(e.ChangedRows):
		return &Failure{Problem: "the number of changed rows is another", Want: []string{fmt.Sprint(e.ChangedRows)},
			Got: []string{a.tag.String()}}
	}
	return nil
}

func (e Expectation) compareRows(a statementAnswer) *Failure {
	got, want := a.rowTexts(), []string{}
	for _, row := range e.Rows.Items {
		var values []string
		for i, v := range row.Items {
			text := nodeText(v)
			if v.ScalarType == yamlfile.BoolScalar && len(a.rows) > 0 && i < len(a.rows[0]) {
				text = text[:1]
			}
			values = append(values, text)
		}
		want = append(want, strings.Join(values, " | "))
	}
	if !e.InOrder {
		slices.Sort(got)
		slices.Sort(want)
	}
	if slices.Equal(got, want) {
		return nil
	}
	return &Failure{Problem: "the rows are others", Want: want, Got: got}
}

// rowTexts returns the rows of an answer, each as one line of text.
func (a statementAnswer) rowTexts() []string {
	out := []string{}
	for _, row := range a.rows {
		var values []string
		for _, v := range row {
			values = append(values, valueText(v))
		}
		out = append(out, strings.Join(values, " | "))
	}
	if len(a.columns) == 0 && a.tag.String() != "" {
		out = append(out, a.tag.String())
	}
	return out
}

func valueText(v *string) string {
	if v == nil {
		return "NULL"
	}
	return *v
}

// nodeText returns a value of the test file in the spelling that PostgreSQL's answers have.
func nodeText(n *node) string {
	if n.Kind == yamlfile.NullNode {
		return "NULL"
	}
	return n.Value
}

// equalsValue reports whether a value of the test file equals a value that PostgreSQL returned.
func equalsValue(n *node, v *string) bool {
	switch {
	case v == nil || n.Kind == yamlfile.NullNode:
		return v == nil && n.Kind == yamlfile.NullNode
	case n.ScalarType == yamlfile.BoolScalar:
		return *v == n.Value || *v == n.Value[:1]
	default:
		return *v == n.Value
	}
}

// rowIdentity is a table and the columns by which a test identifies its rows.
type rowIdentity struct {
	relation *catalog.Relation
	columns  []string
}

// rowIdentityOf chooses the columns that identify a row: the primary key if the caller can read it, or else the columns
// that the test names.
func (d *testDatabase) rowIdentityOf(rows RowExpectation) (rowIdentity, error) {
	relation, err := d.findRelation(rows.Place, rows.Table)
	if err != nil {
		return rowIdentity{}, err
	}
	id := rowIdentity{relation: relation, columns: relation.PrimaryKey}
	isKeyReadable := len(relation.PrimaryKey) > 0
	if table, ok := d.policy.Table(relation.Name); ok && table.Columns != nil {
		for _, name := range relation.PrimaryKey {
			isKeyReadable = isKeyReadable && table.Columns.IsPlain(name)
		}
	}
	if isKeyReadable {
		return id, nil
	}
	id.columns = nil
	for _, key := range rows.Keys {
		if key.Kind != yamlfile.MappingNode {
			return id, policy.Errors{key.Place.Errorf("write { column: value } with columns that the caller can read",
				"%s has no primary key that the caller can read", relation.Name)}
		}
		if id.columns == nil {
			id.columns = key.Keys
		} else if !slices.Equal(id.columns, key.Keys) {
			return id, policy.Errors{key.Place.Errorf("", "the rows of %s must be named by the same columns", relation.Name)}
		}
	}
	if id.columns == nil {
		for _, c := range relation.Columns {
			id.columns = append(id.columns, c.Name)
		}
	}
	return id, nil
}

func (id rowIdentity) selectSQL() string {
	var out []string
	for _, c := range id.columns {
		out = append(out, catalog.QuoteIdent(c))
	}
	return "SELECT " + strings.Join(out, ", ") + " FROM " + id.relation.Name.SQL()
}

// findRows finds, as the owner, the rows that a test names: by a key value, by a list if the key has several columns,
// or by { column: value }. A row that does not exist is an error, since a test that it is hidden would prove nothing.
func (d *testDatabase) findRows(ctx context.Context, id rowIdentity, keys []*node) ([]string, error) {
	out := []string{}
	for _, key := range keys {
		var names []string
		values := []*node{key}
		switch key.Kind {
		case yamlfile.MappingNode:
			names, values = key.Keys, key.Values
		case yamlfile.ListNode:
			names, values = id.relation.PrimaryKey, key.Items
		default:
			names = id.relation.PrimaryKey
		}
		if len(names) != len(values) {
			return nil, policy.Errors{key.Place.Errorf("write a list of as many values, or { column: value }",
				"the primary key of %s has %d columns: %s", id.relation.Name, len(names), strings.Join(names, ", "))}
		}
		var conditions []string
		for i, name := range names {
			column, err := findColumn(id.relation, key.Place, name)
			if err != nil {
				return nil, err
			}
			if values[i].Kind == yamlfile.NullNode {
				conditions = append(conditions, catalog.QuoteIdent(name)+" IS NULL")
				continue
			}
			conditions = append(conditions, catalog.QuoteIdent(name)+" = "+literalOf(column.Type, values[i]))
		}
		a, err := d.runAs(ctx, "owner", id.selectSQL()+" WHERE "+strings.Join(conditions, " AND "), credential{})
		switch {
		case err != nil:
			return nil, err
		case a.serverError != nil:
			return nil, policy.Errors{key.Place.Errorf("", "%s", a.serverError.Message)}
		case len(a.rows) == 0:
			return nil, policy.Errors{key.Place.Errorf("what a caller does not see must be there for the owner, else nothing is tested",
				"%s has no such row", id.relation.Name)}
		}
		out = append(out, a.rowTexts()...)
	}
	slices.Sort(out)
	return out, nil
}

// visibleRows reads, as a caller, the rows of a table.
func (d *testDatabase) visibleRows(ctx context.Context, caller string, id rowIdentity, login credential) ([]string,
	*Failure,
	error) {
	a, err := d.runAs(ctx, caller, id.selectSQL(), login)
	if err != nil {
		return nil, nil, err
	}
	if a.serverError != nil {
		return nil, &Failure{Problem: "the table cannot be read", Got: []string{a.errorText()}}, nil
	}
	got := a.rowTexts()
	slices.Sort(got)
	return got, nil, nil
}

func (d *testDatabase) checkExactRows(ctx context.Context, e Expectation, rows RowExpectation,
	login credential) (*Failure, error) {
	id, err := d.rowIdentityOf(rows)
	if err != nil {
		return nil, err
	}
	got, failure, err := d.visibleRows(ctx, e.Caller, id, login)
	if err != nil || failure != nil {
		return failure, err
	}
	switch {
	case rows.AllRows:
		a, err := d.runAs(ctx, "owner", id.selectSQL(), login)
		if err != nil {
			return nil, err
		}
		want := a.rowTexts()
		slices.Sort(want)
		return compareRowTexts(got, want), nil
	case rows.Count >= 0:
		if len(got) != rows.Count {
			return &Failure{Problem: "the number of rows is another", Want: []string{fmt.Sprint(rows.Count)},
				Got: []string{fmt.Sprint(len(got))}}, nil
		}
		return nil, nil
	}
	want, err := d.findRows(ctx, id, rows.Keys)
	if err != nil {
		return nil, err
	}
	return compareRowTexts(got, want), nil
}

// compareRowTexts returns a failure that names the missing and the unexpected rows, or nil. Both lists are sorted.
func compareRowTexts(got, want []string) *Failure {
	missing, extra := rowsNotIn(want, got), rowsNotIn(got, want)
	switch {
	case len(missing) == 0 && len(extra) == 0:
		return nil
	case len(extra) == 0:
		return &Failure{Problem: fmt.Sprintf("%s not visible", countText(len(missing), "row is", "rows are")), Want: missing,
			Got: []string{}}
	case len(missing) == 0:
		return &Failure{Problem: fmt.Sprintf("%s visible besides", countText(len(extra), "row is", "rows are")),
			Want: []string{}, Got: extra}
	default:
		return &Failure{Problem: fmt.Sprintf("%s not visible, %s besides", countText(len(missing), "row is", "rows are"),
			countText(len(extra), "row is", "rows are")), Want: missing, Got: extra}
	}
}

func countText(n int, singular, plural string) string {
	if n == 1 {
		return "1 " + singular
	}
	return fmt.Sprintf("%d %s", n, plural)
}

func rowsNotIn(a, b []string) []string {
	out := []string{}
	remaining := slices.Clone(b)
	for _, x := range a {
		if i := slices.Index(remaining, x); i >= 0 {
			remaining = slices.Delete(remaining, i, i+1)
			continue
		}
		out = append(out, x)
	}
	return out
}

func (d *testDatabase) checkVisibleRows(ctx context.Context, e Expectation, rows RowExpectation,
	login credential) (*Failure, error) {
	got, namedRows, failure, err := d.visibleAndNamedRows(ctx, e, rows, login)
	if err != nil || failure != nil {
		return failure, err
	}
	return compareRowTexts(nil, rowsNotIn(namedRows, got)), nil
}

func (d *testDatabase) checkHiddenRows(ctx context.Context, e Expectation, rows RowExpectation,
	login credential) (*Failure, error) {
	got, namedRows, failure, err := d.visibleAndNamedRows(ctx, e, rows, login)
	if err != nil {
		return failure, err
	}
	if failure != nil {
		return failure, nil
	}
	visible := rowsNotIn(namedRows, rowsNotIn(namedRows, got))
	if len(visible) == 0 {
		return nil, nil
	}
	return &Failure{Problem: fmt.Sprintf("%s visible and should be hidden", countText(len(visible), "row is", "rows are")),
		Want: []string{}, Got: visible}, nil
}

func (d *testDatabase) visibleAndNamedRows(ctx context.Context, e Expectation, rows RowExpectation,
	login credential) (got, namedRows []string,
	failure *Failure, err error) {
	id, err := d.rowIdentityOf(rows)
	if err != nil {
		return nil, nil, nil, err
	}
	if namedRows, err = d.findRows(ctx, id, rows.Keys); err != nil {
		return nil, nil, nil, err
	}
	got, failure, err = d.visibleRows(ctx, e.Caller, id, login)
	return got, namedRows, failure, err
}

// checkColumns compares the columns that a caller sees in a table with the expected ones.
func (d *testDatabase) checkColumns(ctx context.Context, e Expectation, rows RowExpectation,
	login credential) (*Failure, error) {
	relation, err := d.findRelation(rows.Place, rows.Table)
	if err != nil {
		return nil, err
	}
	var want []string
	for _, key := range rows.Keys {
		if _, err := findColumn(relation, key.Place, key.Value); err != nil {
			return nil, err
		}
		want = append(want, key.Value)
	}
	a, err := d.runAs(ctx, e.Caller, "SELECT * FROM "+relation.Name.SQL()+" LIMIT 0", login)
	if err != nil {
		return nil, err
	}
	if a.serverError != nil {
		return &Failure{Problem: "the table cannot be read", Got: []string{a.errorText()}}, nil
	}
	missing, extra := rowsNotIn(want, a.columns), rowsNotIn(a.columns, want)
	if len(missing)+len(extra) == 0 {
		return nil, nil
	}
	return &Failure{Problem: "the columns are others", Want: want, Got: a.columns}, nil
}
