package pgcatalog

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// The bits of pg_trigger.tgtype.
const (
	forEachRow = 1 << 0
	before     = 1 << 1
	onDelete   = 1 << 3
	onUpdate   = 1 << 4
	insteadOf  = 1 << 6
)

const (
	// timeOfAStatement is an expression that a trigger may set a column to and still do no more than write the time: the
	// time of the transaction or of the statement, which every row gets alike. The clock's time differs from row to row.
	timeOfAStatement = `(?:(?:(?:pg_catalog\.)?(?:now|transaction_timestamp|statement_timestamp)` + space + `*\(` +
		space + `*\)|current_timestamp|localtimestamp)(?:` + space + `+at` + space + `+time` + space + `+zone` +
		space + `+'utc')?` +
		`|(?:pg_catalog\.)?timezone` + space + `*\(` + space + `*'utc'(?:::text)?` + space + `*,` +
		space + `*(?:pg_catalog\.)?now` + space + `*\(` + space + `*\)` + space + `*\))`
	// setColumn is the column, as a statement of PL/pgSQL sets it.
	setColumn = `new\.("[a-z0-9_]+"|[a-z_][a-z0-9_]*)` + space + `*:?=`
)

// These expressions are for texts in lower case.
var (
	lineComment   = regexp.MustCompile(`--[^\n\r]*`)
	timesOnlyBody = regexp.MustCompile(`^` + space + `*begin` + space + `+(?:` + setColumn + space +
		`*` + timeOfAStatement + space + `*;` + space + `*)+return` + space + `+new` + space + `*;` + space +
		`*end` + space + `*;?` + space + `*$`)
	columnsSet = regexp.MustCompile(setColumn)
)

// timesByName are the functions that timeOfAStatement calls.
var timesByName = []string{"now", "transaction_timestamp", "statement_timestamp", "timezone"}

// trigger is a row of pg_trigger.
type trigger struct {
	relation                uint32
	functionOID             uint32
	schema                  string // the schema of the function
	kind                    int16
	internal                bool
	when                    *tree
	keys, dependencyColumns []int16
	timedKeyColumns         []int16 // the key columns of the table, if the trigger may write the time
	body                    string  // the body of the trigger's function in PL/pgSQL
	language                uint32
	arguments               string
}

// readTriggers reads the triggers that have a condition, or whose function is not PostgreSQL's own.
func (r *relationReader) readTriggers(ctx context.Context) error {
	var (
		t    trigger
		when *string
		body []byte
	)
	return r.each(ctx, `SELECT t.tgrelid, p.oid, n.nspname, t.tgtype, t.tgisinternal, t.tgqual::text,
		  t.tgattr::int2[], `+depends("pg_trigger", "t.oid", "t.tgrelid")+`,
		  CASE WHEN t.tgtype & 83 = 19 THEN ARRAY(SELECT unnest(i.indkey::int2[])
		    FROM pg_index AS i WHERE i.indrelid = t.tgrelid AND i.indisunique
		    UNION SELECT unnest(k.conkey) FROM pg_constraint AS k WHERE k.conrelid = t.tgrelid AND k.contype IN ('p', 'u', 'f', 'x')) END,
		  CASE WHEN l.lanname = 'plpgsql' THEN convert_to(p.prosrc, 'SQL_ASCII') END, l.oid, replace(encode(t.tgargs, 'escape'), '\000', '')
		FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = t.tgfoid
		JOIN pg_namespace AS n ON n.oid = p.pronamespace JOIN pg_language AS l ON l.oid = p.prolang
		WHERE (t.tgqual IS NOT NULL OR p.oid >= 16384 OR p.pronamespace <> 'pg_catalog'::regnamespace)
		  AND `+r.only("t.tgrelid")+" ORDER BY t.oid",
		[]any{&t.relation, &t.functionOID, &t.schema, &t.kind, &t.internal, &when, &t.keys, &t.dependencyColumns, &t.timedKeyColumns,
			&body, &t.language, &t.arguments},
		func() error {
			t.when, t.body = newTree(when), string(body)
			r.of(t.relation).triggers = append(r.of(t.relation).triggers, t)
			when, body, t.keys, t.dependencyColumns, t.timedKeyColumns = nil, nil, nil, nil, nil
			return nil
		}, r.args()...)
}

// writesTime tells whether all that a trigger does before an update of a row is to write the time into columns such as
// updated_at: columns of date or timestamp types that are in no key. Its body in PL/pgSQL consists of such assignments,
// or its function is moddatetime of the extension. No function of other roles, in whatever schema, has a name that such
// a body calls. The assignments need no cast but PostgreSQL's own, which nobody replaces.
func (l *loader) writesTime(t trigger) bool {
	if t.kind&(forEachRow|before|onUpdate|insteadOf) != forEachRow|before|onUpdate {
		return false
	}
	columns, only := l.timesSet(t)
	r := l.relations[t.relation]
	return only && r != nil && !slices.ContainsFunc(columns, func(name string) bool {
		i := slices.IndexFunc(r.Columns, func(c catalog.Column) bool { return c.Name == name })
		return i < 0 || r.Columns[i].Generated ||
			!slices.Contains([]uint32{pgtype.TimestamptzOID, pgtype.TimestampOID, pgtype.DateOID}, r.Columns[i].TypeOID) ||
			slices.Contains(t.timedKeyColumns, l.attributes[t.relation][i].number)
	})
}

// timesSet are the columns that the function of a trigger writes the time into, if it does nothing else.
func (l *loader) timesSet(t trigger) (columns []string, only bool) {
	k, f := &l.known, l.known.functions[t.functionOID]
	if f.language == "c" {
		return []string{t.arguments}, f.name == "moddatetime" && k.extensionOf("pg_proc", f.oid) == "moddatetime"
	}
	text := lineComment.ReplaceAllString(t.body, " ")
	if f.language != "plpgsql" || k.extensionOf("pg_language", t.language) != "plpgsql" || f.hasOtherSettings ||
		k.timeOfOthers || !timesOnlyBody.MatchString(lower(text)) {
		return nil, false
	}
	for _, at := range columnsSet.FindAllStringSubmatchIndex(lower(text), -1) {
		name := text[at[2]:at[3]]
		if !strings.HasPrefix(name, `"`) {
			name = lower(name)
		}
		columns = append(columns, strings.Trim(name, `"`))
	}
	return columns, true
}
