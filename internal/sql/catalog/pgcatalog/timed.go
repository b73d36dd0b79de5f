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
	triggerForEachRow = 1 << 0
	triggerBefore     = 1 << 1
	triggerOnDelete   = 1 << 3
	triggerOnUpdate   = 1 << 4
	triggerInsteadOf  = 1 << 6
)

const (
	// statementTimePattern matches the expressions that a trigger may assign to a column so that onlyWritesTime still
	// holds. They are the time of the transaction or of the statement, which is the same for every row. The time of
	// clock_timestamp() differs from row to row.
	statementTimePattern = `(?:(?:(?:pg_catalog\.)?(?:now|transaction_timestamp|statement_timestamp)` + spacePattern + `*\(` +
		spacePattern + `*\)|current_timestamp|localtimestamp)(?:` + spacePattern + `+at` + spacePattern + `+time` + spacePattern + `+zone` +
		spacePattern + `+'utc')?` +
		`|(?:pg_catalog\.)?timezone` + spacePattern + `*\(` + spacePattern + `*'utc'(?:::text)?` + spacePattern + `*,` +
		spacePattern + `*(?:pg_catalog\.)?now` + spacePattern + `*\(` + spacePattern + `*\)` + spacePattern + `*\))`
	// assignedColumnPattern matches the beginning of an assignment to a column of NEW in PL/pgSQL, such as new.updated_at
	// :=.
	assignedColumnPattern = `new\.("[a-z0-9_]+"|[a-z_][a-z0-9_]*)` + spacePattern + `*:?=`
)

// These regular expressions are for texts in lower case.
var (
	lineComment         = regexp.MustCompile(`--[^\n\r]*`)
	timeAssignmentsBody = regexp.MustCompile(`^` + spacePattern + `*begin` + spacePattern + `+(?:` + assignedColumnPattern + spacePattern +
		`*` + statementTimePattern + spacePattern + `*;` + spacePattern + `*)+return` +
		spacePattern + `+new` + spacePattern + `*;` + spacePattern +
		`*end` + spacePattern + `*;?` + spacePattern + `*$`)
	assignedColumn = regexp.MustCompile(assignedColumnPattern)
)

// statementTimeFunctions are the functions that expressions of statementTimePattern call.
var statementTimeFunctions = []string{"now", "transaction_timestamp", "statement_timestamp", "timezone"}

// trigger is a row of pg_trigger.
type trigger struct {
	relation                uint32
	functionOID             uint32
	schema                  string // the schema of the function
	typeBits                int16
	isInternal              bool
	whenTree                *tree
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
		  t.tgattr::int2[], `+dependencyColumnsSQL("pg_trigger", "t.oid", "t.tgrelid")+`,
		  CASE WHEN t.tgtype & 83 = 19 THEN ARRAY(SELECT unnest(i.indkey::int2[])
		    FROM pg_index AS i WHERE i.indrelid = t.tgrelid AND i.indisunique
		    UNION SELECT unnest(k.conkey) FROM pg_constraint AS k WHERE k.conrelid = t.tgrelid AND k.contype IN ('p', 'u', 'f', 'x')) END,
		  CASE WHEN l.lanname = 'plpgsql' THEN convert_to(p.prosrc, 'SQL_ASCII') END, l.oid, replace(encode(t.tgargs, 'escape'), '\000', '')
		FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = t.tgfoid
		JOIN pg_namespace AS n ON n.oid = p.pronamespace JOIN pg_language AS l ON l.oid = p.prolang
		WHERE (t.tgqual IS NOT NULL OR p.oid >= 16384 OR p.pronamespace <> 'pg_catalog'::regnamespace)
		  AND `+r.relationCondition("t.tgrelid")+" ORDER BY t.oid",
		[]any{&t.relation, &t.functionOID, &t.schema, &t.typeBits, &t.isInternal, &when, &t.keys, &t.dependencyColumns,
			&t.timedKeyColumns,
			&body, &t.language, &t.arguments},
		func() error {
			t.whenTree, t.body = newTree(when), string(body)
			r.factsOf(t.relation).triggers = append(r.factsOf(t.relation).triggers, t)
			when, body, t.keys, t.dependencyColumns, t.timedKeyColumns = nil, nil, nil, nil, nil
			return nil
		}, r.conditionArgs()...)
}

// onlyWritesTime tells whether a trigger before the update of a row does nothing but write the time into columns such
// as updated_at. The columns have date or timestamp types and are in no key. The body in PL/pgSQL consists of such
// assignments, or the function is moddatetime of the extension of that name. No schema has a function of another role
// with the name of a function that such a body calls. The assignments need only casts of PostgreSQL's own, which nobody
// can replace.
func (l *loader) onlyWritesTime(t trigger) bool {
	if t.typeBits&(triggerForEachRow|triggerBefore|triggerOnUpdate|triggerInsteadOf) != triggerForEachRow|triggerBefore|triggerOnUpdate {
		return false
	}
	columns, onlyTime := l.assignedTimeColumns(t)
	relation := l.relations[t.relation]
	return onlyTime && relation != nil && !slices.ContainsFunc(columns, func(name string) bool {
		i := slices.IndexFunc(relation.Columns, func(c catalog.Column) bool { return c.Name == name })
		return i < 0 || relation.Columns[i].Generated ||
			!slices.Contains([]uint32{pgtype.TimestamptzOID, pgtype.TimestampOID, pgtype.DateOID},
				relation.Columns[i].TypeOID) ||
			slices.Contains(t.timedKeyColumns, l.attributes[t.relation][i].number)
	})
}

// assignedTimeColumns returns the columns into which a trigger's function writes the time. onlyTime is false if the
// function may do anything else.
func (l *loader) assignedTimeColumns(t trigger) (columns []string, onlyTime bool) {
	k, f := &l.objects, l.objects.functions[t.functionOID]
	if f.language == "c" {
		return []string{t.arguments}, f.name == "moddatetime" && k.extensionOf("pg_proc", f.oid) == "moddatetime"
	}
	text := lineComment.ReplaceAllString(t.body, " ")
	if f.language != "plpgsql" || k.extensionOf("pg_language", t.language) != "plpgsql" || f.hasOtherSettings ||
		k.hasForeignTimeFunction || !timeAssignmentsBody.MatchString(lowerASCII(text)) {
		return nil, false
	}
	for _, match := range assignedColumn.FindAllStringSubmatchIndex(lowerASCII(text), -1) {
		name := text[match[2]:match[3]]
		if !strings.HasPrefix(name, `"`) {
			name = lowerASCII(name)
		}
		columns = append(columns, strings.Trim(name, `"`))
	}
	return columns, true
}
