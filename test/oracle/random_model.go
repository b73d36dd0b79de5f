package oracle

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/test/instance"
)

// kind is a kind of column types that have the same operators.
type kind string

const (
	kindInt      kind = "int"
	kindNumeric  kind = "numeric"
	kindFloat    kind = "float"
	kindText     kind = "text"
	kindBool     kind = "bool"
	kindDate     kind = "date"
	kindTime     kind = "timestamp"
	kindUUID     kind = "uuid"
	kindEnum     kind = "enum"
	kindJSONB    kind = "jsonb"
	kindTexts    kind = "texts" // array of texts
	kindInts     kind = "ints"
	kindRange    kind = "range"
	kindTSVector kind = "tsvector"
	kindOther    kind = "other"
)

// modelColumn is a column of a table or of a query.
type modelColumn struct {
	name              string // quoted name
	typ               string // name of the base type in SQL
	oid               uint32
	kind              kind
	equalValuesDiffer bool     // equal values may be written differently, as in citext
	samples           []string // some visible values, as text
}

// modelTable is a table or a view that agents may read.
type modelTable struct {
	relation         catalog.Name
	name             string // quoted name
	columns          []modelColumn
	key              []string
	links            []modelLink
	vectorColumns    []string // columns with an index on to_tsvector, in which NULL counts as an empty text
	isBaseTable      bool
	hasUnusedColumns bool     // some columns are hidden or differ on the copy: no whole rows
	updatableColumns []string // columns that agents may update
	insertedColumns  []string // columns that agents may set in an INSERT
	allowsDelete     bool
}

// modelLink is a foreign key to another table.
type modelLink struct {
	target                 catalog.Name
	columns, targetColumns []string
}

// statementModel has the tables, and the words of texts, from which statements are made.
type statementModel struct {
	tables []*modelTable
	words  []string // words in visible texts
}

func kindOf(typ, category, element string) kind {
	switch typ {
	case "int2", "int4", "int8":
		return kindInt
	case "numeric":
		return kindNumeric
	case "float4", "float8":
		return kindFloat
	case "text", "varchar", "bpchar", "citext", "name":
		return kindText
	case "bool":
		return kindBool
	case "date":
		return kindDate
	case "timestamp", "timestamptz":
		return kindTime
	case "uuid":
		return kindUUID
	case "jsonb":
		return kindJSONB
	case "tsvector":
		return kindTSVector
	}
	switch {
	case category == "E":
		return kindEnum
	case category == "R":
		return kindRange
	case category == "A" && (element == "text" || element == "varchar"):
		return kindTexts
	case category == "A" && strings.HasPrefix(element, "int"):
		return kindInts
	}
	return kindOther
}

// maxSamples is the number of values of each column from which statements are made.
const maxSamples = 14

// newStatementModel reads the model from the filtered copy, so that statements do not depend on hidden rows.
func newStatementModel(t testing.TB, s Schema, filtered *pgtest.DB, pol *policy.Policy) *statementModel {
	t.Helper()
	ctx, conn := context.Background(), filtered.Connect(t, "postgres")
	m := &statementModel{}
	var path []string
	for _, p := range s.SearchPath {
		path = append(path, catalog.QuoteIdent(p))
	}
	if _, err := conn.Exec(ctx, "SET search_path = "+strings.Join(path, ", ")); err != nil {
		t.Fatal(err)
	}
	names := map[string]int{}
	add := func(r *catalog.Relation, visible *catalog.Relation, narrowing *policy.VisibleColumns, write *policy.Write) {
		table := &modelTable{relation: r.Name, name: r.Name.SQL(), key: r.PrimaryKey,
			isBaseTable: r.Kind == catalog.Table || r.Kind == catalog.PartitionedTable}
		if names[r.Name.Name]++; slices.Contains(s.SearchPath, r.Name.Schema) && names[r.Name.Name] == 1 {
			table.name = catalog.QuoteIdent(r.Name.Name)
		}
		rows, err := conn.Query(ctx, `SELECT a.attname, format_type(b.oid, CASE WHEN b.oid = a.atttypid THEN a.atttypmod ELSE -1 END), b.oid, b.typname,
			b.typcategory::text, coalesce(e.typname, ''), b.typname IN ('citext', 'interval') OR coalesce(NOT c.collisdeterministic, false)
			FROM pg_attribute a JOIN pg_type y ON y.oid = a.atttypid JOIN pg_type b ON b.oid = CASE WHEN y.typtype = 'd' THEN y.typbasetype ELSE y.oid END
			LEFT JOIN pg_type e ON e.oid = b.typelem LEFT JOIN pg_collation c ON c.oid = a.attcollation
			WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped AND b.typtype <> 'd' ORDER BY a.attnum`, r.Name.SQL())
		if err != nil {
			t.Fatal(err)
		}
		var name, typ, base, category, element string
		var oid uint32
		var equalDiffer bool
		if _, err := pgx.ForEachRow(rows, []any{&name, &typ, &oid, &base, &category, &element, &equalDiffer}, func() error {
			if differsOnCopy(narrowing, name) {
				table.hasUnusedColumns = true
			} else if visible.Column(name) != nil {
				table.columns = append(table.columns,
					modelColumn{name: catalog.QuoteIdent(name), typ: typ, oid: oid, kind: kindOf(base, category, element), equalValuesDiffer: equalDiffer})
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		table.hasUnusedColumns = table.hasUnusedColumns || narrowing != nil && narrowing.ByKey != nil
		if len(table.columns) == 0 {
			return
		}
		for i := range table.key {
			table.key[i] = catalog.QuoteIdent(strings.Trim(table.key[i], `"`))
			if !slices.ContainsFunc(table.columns, func(c modelColumn) bool { return c.name == table.key[i] }) {
				table.key = nil
				break
			}
		}
		for i := range table.columns {
			c := &table.columns[i]
			if rows, err := conn.Query(ctx,
				fmt.Sprintf("SELECT left(x, 400) FROM (SELECT DISTINCT %s::text AS x FROM %s) s WHERE x IS NOT "+
					"NULL ORDER BY md5(x) LIMIT %d", c.name, table.name, maxSamples)); err == nil {
				c.samples, err = pgx.CollectRows(rows, pgx.RowTo[string])
				if err != nil { // the copy does not have functions that this view calls
					t.Logf("%s is left out: %v", table.name, err)
					return
				}
			}
			for _, x := range c.samples {
				if c.kind == kindText {
					m.words = append(m.words, wordPattern.FindAllString(x, 6)...)
				}
			}
		}
		for _, k := range r.ForeignKeys {
			table.links = append(table.links, modelLink{k.Target, quoteAll(k.Columns), quoteAll(k.TargetColumns)})
		}
		if write != nil && table.key != nil {
			table.allowsDelete = write.Delete
			if write.Update {
				table.updatableColumns = quoteAll(write.Updatable)
			}
			if write.Insert {
				for _, name := range write.Insertable {
					if !slices.ContainsFunc(write.Stamps, func(s policy.Stamp) bool { return s.Column == name }) {
						table.insertedColumns = append(table.insertedColumns, catalog.QuoteIdent(name))
					}
				}
			}
		}
		m.tables = append(m.tables, table)
	}
	for _, table := range pol.Tables() {
		if table.Aggregate == nil && table.Observed == nil {
			add(table.Relation, table.VisibleRelation(), table.Columns, table.Write)
		}
	}
	for _, v := range pol.Views() {
		if v.Listed {
			add(v.Relation, v.Relation, nil, nil)
		}
	}
	m.words = slices.Compact(slices.Sorted(slices.Values(m.words)))
	return m
}

// differsOnCopy reports whether agents see other values in a column than the copy has. Hashes are made with another key
// there, and a mask of JSON keys may change their order.
func differsOnCopy(n *policy.VisibleColumns, column string) bool {
	return n != nil && slices.ContainsFunc(n.Columns, func(c policy.VisibleColumn) bool {
		return c.Name == column && (c.Mask == policy.Hash || c.Mask == policy.Keys && c.Type == "json")
	})
}

var wordPattern = regexp.MustCompile(`[A-Za-z]{3,}`)

func quoteAll(names []string) []string {
	var out []string
	for _, n := range names {
		out = append(out, catalog.QuoteIdent(n))
	}
	return out
}

// addIndexesAndSizes creates an index for each search, and sets statistics so that the tables look large. On small
// tables, the rewriter does not use the forms of searches that are to be tested.
func (m *statementModel) addIndexesAndSizes(t testing.TB, db *pgtest.DB, path []string) {
	t.Helper()
	c := instance.ConnectSuperuser(t, db)
	var idents []string
	for _, p := range path {
		idents = append(idents, catalog.QuoteIdent(p))
	}
	instance.Ask(c, "SET search_path = "+strings.Join(idents, ", "))
	for _, table := range m.tables {
		if !table.isBaseTable {
			continue
		}
		texts := 0
		for _, column := range table.columns {
			// Columns whose type or collation no index supports get no index.
			switch column.kind {
			case kindText:
				// With a collation in which different texts can be equal, a trigram index would not find all equal texts.
				if texts++; texts > 3 || column.equalValuesDiffer {
					continue
				}
				instance.Ask(c, fmt.Sprintf("CREATE INDEX ON %s USING gin (%s gin_trgm_ops)", table.name, column.name))
				if instance.Ask(c, fmt.Sprintf(
					"CREATE INDEX ON %s USING gin (to_tsvector('simple'::regconfig, coalesce(%s, '')))", table.name, column.name)).Err == "" {
					table.vectorColumns = append(table.vectorColumns, column.name)
				}
			case kindJSONB, kindTexts, kindInts, kindTSVector:
				instance.Ask(c, fmt.Sprintf("CREATE INDEX ON %s USING gin (%s)", table.name, column.name))
			}
		}
	}
}
