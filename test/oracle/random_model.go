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

// kind is what statements can ask of a column.
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
	kindTexts    kind = "texts" // an array of them
	kindInts     kind = "ints"
	kindRange    kind = "range"
	kindTSVector kind = "tsvector"
	kindOther    kind = "other"
)

// modelColumn is a column of a table, or of a query.
type modelColumn struct {
	name    string // as SQL writes it
	typ     string // of the base type, as SQL writes it
	oid     uint32
	kind    kind
	loose   bool     // values that are equal may look otherwise: which of them stands for a group is open
	samples []string // visible values, as text
}

// modelTable is a table or view that agents may name.
type modelTable struct {
	relation catalog.Name
	name     string // as SQL writes it
	columns  []modelColumn
	key      []string
	links    []modelLink
	vectors  []string // columns of which an index has a text search vector, NULL taken for an empty text
	base     bool
	partial  bool     // it has columns that statements are not made of: it is not read as a whole
	settable []string // by an UPDATE
	given    []string // by an INSERT
	deletes  bool
}

// modelLink is a foreign key.
type modelLink struct {
	to         catalog.Name
	from, into []string
}

// model is what statements are made of.
type model struct {
	tables []*modelTable
	words  []string // that are in the visible texts
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

// mostSamples is how many values of a column statements are made with.
const mostSamples = 14

// newModel reads what there is from the filtered copy: a statement is made without looking at any hidden row.
func newModel(t testing.TB, s Schema, filtered *pgtest.DB, pol *policy.Policy) *model {
	t.Helper()
	ctx, conn := context.Background(), filtered.Connect(t, "postgres")
	m := &model{}
	var path []string
	for _, p := range s.SearchPath {
		path = append(path, catalog.QuoteIdent(p))
	}
	if _, err := conn.Exec(ctx, "SET search_path = "+strings.Join(path, ", ")); err != nil {
		t.Fatal(err)
	}
	names := map[string]int{}
	add := func(r *catalog.Relation, visible *catalog.Relation, narrowing *policy.VisibleColumns, write *policy.Write) {
		mt := &modelTable{relation: r.Name, name: r.Name.SQL(), key: r.PrimaryKey, base: r.Kind == catalog.Table || r.Kind == catalog.PartitionedTable}
		if names[r.Name.Name]++; slices.Contains(s.SearchPath, r.Name.Schema) && names[r.Name.Name] == 1 {
			mt.name = catalog.QuoteIdent(r.Name.Name)
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
		var loose bool
		if _, err := pgx.ForEachRow(rows, []any{&name, &typ, &oid, &base, &category, &element, &loose}, func() error {
			if unlike(narrowing, name) {
				mt.partial = true
			} else if visible.Column(name) != nil {
				mt.columns = append(mt.columns,
					modelColumn{name: catalog.QuoteIdent(name), typ: typ, oid: oid, kind: kindOf(base, category, element), loose: loose})
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		mt.partial = mt.partial || narrowing != nil && narrowing.ByKey != nil
		if len(mt.columns) == 0 {
			return
		}
		for i := range mt.key {
			mt.key[i] = catalog.QuoteIdent(strings.Trim(mt.key[i], `"`))
			if !slices.ContainsFunc(mt.columns, func(c modelColumn) bool { return c.name == mt.key[i] }) {
				mt.key = nil
				break
			}
		}
		for i := range mt.columns {
			c := &mt.columns[i]
			if rows, err := conn.Query(ctx,
				fmt.Sprintf("SELECT left(x, 400) FROM (SELECT DISTINCT %s::text AS x FROM %s) s WHERE x IS NOT "+
					"NULL ORDER BY md5(x) LIMIT %d", c.name, mt.name, mostSamples)); err == nil {
				c.samples, err = pgx.CollectRows(rows, pgx.RowTo[string])
				if err != nil { // a view whose functions the copy has not
					t.Logf("%s is left out: %v", mt.name, err)
					return
				}
			}
			for _, x := range c.samples {
				if c.kind == kindText {
					m.words = append(m.words, word.FindAllString(x, 6)...)
				}
			}
		}
		for _, k := range r.ForeignKeys {
			mt.links = append(mt.links, modelLink{k.Target, quoted(k.Columns), quoted(k.TargetColumns)})
		}
		if write != nil && mt.key != nil {
			mt.deletes = write.Delete
			if write.Update {
				mt.settable = quoted(write.Updatable)
			}
			if write.Insert {
				for _, name := range write.Insertable {
					if !slices.ContainsFunc(write.Stamps, func(s policy.Stamp) bool { return s.Column == name }) {
						mt.given = append(mt.given, catalog.QuoteIdent(name))
					}
				}
			}
		}
		m.tables = append(m.tables, mt)
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

// unlike tells whether the values of a column look otherwise on the copy: hashes have a key that it has not, and JSON
// of some keys has them in an order.
func unlike(n *policy.VisibleColumns, column string) bool {
	return n != nil && slices.ContainsFunc(n.Columns, func(c policy.VisibleColumn) bool {
		return c.Name == column && (c.Mask == policy.Hash || c.Mask == policy.Keys && c.Type == "json")
	})
}

var word = regexp.MustCompile(`[A-Za-z]{3,}`)

func quoted(names []string) []string {
	var out []string
	for _, n := range names {
		out = append(out, catalog.QuoteIdent(n))
	}
	return out
}

// dress gives the tables indexes that searches are answered by, and (by the statistics alone) many rows: on small
// tables none of the forms for searches is written.
func (m *model) dress(t testing.TB, db *pgtest.DB, path []string) {
	t.Helper()
	c := instance.Super(t, db)
	var idents []string
	for _, p := range path {
		idents = append(idents, catalog.QuoteIdent(p))
	}
	instance.Ask(c, "SET search_path = "+strings.Join(idents, ", "))
	for _, table := range m.tables {
		if !table.base {
			continue
		}
		texts := 0
		for _, column := range table.columns {
			// What cannot be indexed (a type of another extension, a collation) has none.
			switch column.kind {
			case kindText:
				// A trigram index of a collation in which unlike texts are equal does not find all that are.
				if texts++; texts > 3 || column.loose {
					continue
				}
				instance.Ask(c, fmt.Sprintf("CREATE INDEX ON %s USING gin (%s gin_trgm_ops)", table.name, column.name))
				if instance.Ask(c, fmt.Sprintf(
					"CREATE INDEX ON %s USING gin (to_tsvector('simple'::regconfig, coalesce(%s, '')))", table.name, column.name)).Err == "" {
					table.vectors = append(table.vectors, column.name)
				}
			case kindJSONB, kindTexts, kindInts, kindTSVector:
				instance.Ask(c, fmt.Sprintf("CREATE INDEX ON %s USING gin (%s)", table.name, column.name))
			}
		}
	}
}
