package rls_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/dev/pgtest"
	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/test/tier"
)

const oddTable = `
CREATE DOMAIN mail AS text CHECK (VALUE LIKE '%@%');
CREATE DOMAIN filled AS text NOT NULL;
CREATE TABLE odd (id int PRIMARY KEY, user_id uuid, secret text DEFAULT 'SECRET', none varchar(10), hashed text, key uuid, domain_text mail, strict filled,
  day date, stamp timestamp(3), zoned timestamptz, short varchar(20), small smallint, big bigint, amount numeric(5,2), ratio float8, doc jsonb, old_doc json,
  UNIQUE (secret), FOREIGN KEY (user_id, key) REFERENCES odd_other (a, b));
CREATE INDEX odd_shown ON odd (id, hashed); CREATE INDEX odd_hidden ON odd (id) INCLUDE (secret); CREATE INDEX odd_partial ON odd (id) WHERE secret <> 'sekret';
INSERT INTO odd SELECT 1, '00000000-0000-0000-0000-000000000001', 's1', 'x', 'same', '00000000-0000-0000-0000-000000000009', 'a@b', 'f',
  '2024-02-29', '2024-02-29 12:13:14.123', '2024-03-01 00:30:00+02', 'abcdef', 1234, 20, 123.45, 8.5,
  '{"title": "t", "score": 1.50, "ok": true, "ssn": "SECRET", "more": {"title": "SECRET"}}', '{"title": "t", "score": "SECRET", "ssn": "SECRET", "title": 7}';
INSERT INTO odd SELECT 2, '00000000-0000-0000-0000-000000000001', 's2', NULL, NULL, NULL, NULL, 'f', 'infinity', '-infinity', 'infinity',
  'é', -32768, -9223372036854775808, -999.99, 'NaN',
  '{"title": {"SECRET": 1}, "score": "SECRET", "ok": null}', '["SECRET"]';
INSERT INTO odd SELECT 3, '00000000-0000-0000-0000-000000000001', 's3', NULL, 'same', NULL, NULL, 'f', '4713-11-25 BC', '4713-11-25 BC', '294276-12-31',
  '', 32767, 9223372036854775807, 'NaN', '-infinity',
  '"SECRET"', '{"\u0000": "SECRET"}';
INSERT INTO odd SELECT 4, '00000000-0000-0000-0000-000000000001', 's4', NULL, '', NULL, NULL, 'f', '5874897-12-31', NULL, NULL, NULL, NULL,
  NULL, NULL, 1e-320, '[1]', '{"title": "\ud83d\ude00"}';
INSERT INTO odd SELECT 5, '00000000-0000-0000-0000-000000000001', 's5', NULL, 'other', NULL, NULL, 'f', NULL, NULL, NULL, NULL, NULL,
  NULL, NULL, 1.7e308, 'null', '{"title": "\ud83d"}';
INSERT INTO odd SELECT 6, '00000000-0000-0000-0000-000000000002', 'SECRET', 'SECRET', 'SECRET', NULL, 'SECRET@', 'SECRET', NULL, NULL, NULL, 'SECRET', NULL,
  NULL, NULL, NULL, '{"title": "SECRET"}', '{"title": "SECRET"}';
`

// oddWorld returns a database with a table on which every kind of mask has an effect.
func oddWorld(t *testing.T, o rls.Options, before ...string) *world {
	t.Helper()
	w := newWorld(t, append([]string{
		"SET ROLE app_owner; CREATE TABLE odd_other (a uuid, b uuid, UNIQUE (a, b)); " +
			"INSERT INTO odd_other VALUES ('" + user1 + "', '00000000-0000-0000-0000-000000000009');" + oddTable + "RESET ROLE"}, before...)...)
	w.compile("testdata/columns.yaml", o)
	return w
}

// Every mask returns what the documentation says, also for the smallest and largest values of a type, and raises no
// error.
func TestMasks(t *testing.T) {
	w := oddWorld(t, rls.Options{}).migrate()
	agent := w.agent(user1)
	for _, view := range []string{"pgconsent_rows.public_odd", "pgconsent_rows.filtered_public_odd"} {
		for column, want := range map[string]string{
			"none":    "NULL,NULL,NULL,NULL,NULL",
			"strict":  "NULL,NULL,NULL,NULL,NULL",
			"day":     "2024-02-01,NULL,NULL,NULL,NULL",
			"stamp":   "2024-01-01 00:00:00,NULL,NULL,NULL,NULL",
			"short":   "ab,é,,NULL,NULL",
			"small":   "1000,-32768,32000,NULL,NULL",
			"big":     "14,-9223372036854775808,9223372036854775807,NULL,NULL",
			"amount":  "100,-1000,NULL,NULL,NULL",
			"ratio":   "6,NULL,NULL,0,NULL",
			"doc":     `{"ok": true, "score": 1.50, "title": "t"},{"ok": null, "score": null, "title": null},NULL,NULL,NULL`,
			"old_doc": `{ "title" : "t", "score" : null, "title" : null },NULL,NULL,{ "title" : "\ud83d\ude00" },NULL`,

			"domain_text IS NULL":       "f,t,t,t,t",
			"length(hashed)":            "32,NULL,32,32,32",
			"extract(epoch FROM zoned)": "1706745600.000000,NULL,NULL,NULL,NULL", // the beginning of February, in UTC
			"pg_typeof(short)":          strings.Repeat(",character varying", 5)[1:],
			"hashed = (SELECT hashed FROM " + view + " WHERE id = 1)": "t,NULL,t,f,f",
		} {
			w.want(agent, "SELECT "+column+" FROM "+view+" ORDER BY id", want)
		}
		for _, zone := range []string{"Pacific/Kiritimati", "Etc/GMT+12"} {
			w.want(agent, "SET TimeZone = '"+zone+"'; SELECT extract(epoch FROM zoned) FROM "+view+" WHERE id = 1; RESET TimeZone", "1706745600.000000")
		}
		text, err := query(agent, "SELECT x::text FROM "+view+" AS x ORDER BY id")
		if err != nil || strings.Contains(text, "SECRET") || strings.Contains(text, "a@b") || strings.Contains(text, "same") {
			t.Errorf("%s shows %s, %v", view, text, err)
		}
		w.wantRefusal(agent, "42703", "SELECT secret FROM "+view)
		w.wantRefusal(agent, "42703", "SELECT user_id FROM "+view)
	}
	// A hash has a key, which agents can neither read nor use.
	firstHash, _ := query(agent, "SELECT hashed FROM pgconsent_rows.public_odd WHERE id = 1")
	w.want(w.super, "SELECT pgconsent.mask('same')", firstHash)
	w.want(w.super, "SELECT left(encode(sha256('same'), 'hex'), 32) = '"+firstHash+"'", "f")
	w.wantRefusal(agent, "42501", "SELECT pgconsent.mask('same')")
	w.wantRefusal(agent, "42501", "SELECT * FROM pgconsent.mask_key")
	other := oddWorld(t, rls.Options{}).migrate()
	if secondHash, _ := query(other.agent(user1), "SELECT hashed FROM pgconsent_rows.public_odd WHERE id = 1"); secondHash == firstHash ||
		secondHash == "" {
		t.Errorf("two databases hash alike: %s, %s", firstHash, secondHash)
	}
}

// A masked value appears in the rows that meet the column's condition, and in no other, whichever mask it has. This
// holds for each of pgconsent's views and functions.
func TestNoMaskShowsWithoutItsCondition(t *testing.T) {
	tier.All(t)
	masks := map[policy.Mask]bool{}
	worldWithCondition := func(condition predicate.Node) *world {
		w := oddWorld(t, rls.Options{})
		odd, _ := w.pol.Table(catalog.Name{Schema: "public", Name: "odd"})
		odd.Columns.Columns = append(odd.Columns.Columns, policy.VisibleColumn{Name: "secret", Type: "text"})
		for i := range odd.Columns.Columns {
			if c := &odd.Columns.Columns[i]; c.Name != "id" {
				c.Condition, c.GroupCondition, masks[c.Mask] = condition, condition, true
			}
		}
		odd.Columns.ByKey = &policy.ByKey{Key: []string{"id"}, MaxKeys: 5, Columns: odd.Columns.Columns,
			AllColumns: odd.Columns.Columns}
		w.plan = rls.Generate(w.pol, w.snap, rls.Options{SignedViews: true})
		return w.migrate()
	}
	unconditional := worldWithCondition(nil)
	for m := policy.Plain; m <= policy.Keys; m++ {
		if !masks[m] {
			t.Errorf("no column has mask %d", m)
		}
	}
	unconditionalAgent := unconditional.agent(user1)
	for _, visibleIDs := range [][]string{{"1", "3"}, {"2", "4", "5"}} {
		var condition predicate.Any
		for _, id := range visibleIDs {
			condition = append(condition, predicate.Status{Column: "id", Value: id})
		}
		w := worldWithCondition(condition)
		odd, _ := w.pol.Table(catalog.Name{Schema: "public", Name: "odd"})
		agent := w.agent(user1)
		// Leak-safe statements read columns without a condition on a value, and so none of these columns.
		if got, err := query(w.super,
			"SELECT string_agg(attname, ' ') FROM pg_attribute WHERE attrelid = "+
				"'pgconsent_signed.visible_public_odd'::regclass AND attnum > 0"); err != nil || got != "id" {
			t.Errorf("the signed view has %s, %v", got, err)
		}
		for _, source := range []string{
			"pgconsent_rows.public_odd", "pgconsent_rows.filtered_public_odd",
			"pgconsent_rows.key_public_odd(true, ARRAY[1,2,3,4,5])", "pgconsent_rows.filtered_key_public_odd(true, ARRAY[1,2,3,4,5])",
		} {
			for _, c := range odd.Columns.Columns {
				if c.Name == "id" {
					continue
				}
				value := c.Name
				if c.Mask == policy.Hash { // the key of each database is its own
					value += " IS NOT NULL"
				}
				queryFormat := "SELECT CASE WHEN id IN (" + strings.Join(visibleIDs, ", ") + ") THEN (" + value + ")::text ELSE %s END FROM " +
					source + " ORDER BY id"
				want, err := query(unconditionalAgent, fmt.Sprintf(queryFormat, "'NULL'"))
				if err != nil {
					t.Fatal(err)
				}
				got, err := query(agent, fmt.Sprintf(queryFormat, "COALESCE("+c.Name+"::text, 'NULL')"))
				if err != nil || got != want {
					t.Errorf("%s of %s: %s, %v; want %s", c.Name, source, got, err, want)
				}
			}
		}
	}
}

// The database enforces row views: agents have no right on the table, and row security restricts the role that has.
func TestRowViews(t *testing.T) {
	w := oddWorld(t, rls.Options{}).migrate()
	agent := w.agent(user1)
	w.wantRefusal(agent, "42501", "SELECT id FROM public.odd")
	w.wantRefusal(agent, "42501", "SELECT FROM public.memories")
	w.want(agent, "SELECT count(*) FROM pgconsent_rows.public_odd", "5")
	w.want(w.agent(user2), "SELECT id FROM pgconsent_rows.filtered_public_odd", "6")
	w.want(w.agent(""), "SELECT count(*) FROM pgconsent_rows.public_odd", "0")
	w.want(w.agent(""), "SELECT count(*) FROM pgconsent_rows.filtered_public_odd", "0")
	// The rule reads columns that are hidden, and tables that agents may not read at all.
	w.want(agent, "SELECT title || ' ' || body FROM pgconsent_rows.public_memories ORDER BY 1", "alone bod,with Ada bod")
	w.want(agent, "SELECT title FROM pgconsent_rows.filtered_public_memories ORDER BY 1", visibleTitles)
	// A column that is added later is hidden, and operators that are not leak-proof run on visible rows only.
	w.exec(w.owner, "ALTER TABLE odd ADD COLUMN later text DEFAULT 'SECRET'")
	w.wantRefusal(agent, "42703", "SELECT later FROM pgconsent_rows.public_odd")
	w.want(agent, "SELECT count(*) FROM pgconsent_rows.public_odd WHERE (1 / (id - 6)) IS NOT NULL AND (short || 'x')::text <> 'SEx'", "3")

	// Each enforcement layer works without the other.
	w.exec(w.owner, "ALTER TABLE odd DISABLE ROW LEVEL SECURITY")
	w.want(agent, "SELECT count(*) FROM pgconsent_rows.public_odd", "6")
	w.want(agent, "SELECT count(*) FROM pgconsent_rows.filtered_public_odd", "5")
	if err := migrations.Down(context.Background(), w.owner, migrations.Options{}); err != nil {
		t.Fatal(err)
	}
	w.want(w.super, "SELECT count(*) FROM pg_attribute WHERE attacl IS NOT NULL AND attrelid = 'public.odd'::regclass", "0")
}

func TestRowViewsWithoutPolicies(t *testing.T) {
	w := oddWorld(t, rls.Options{Mode: rls.SealOnly}).migrate()
	agent := w.agent(user1)
	w.want(agent, "SELECT count(*) FROM pgconsent_rows.public_odd", "6")
	w.want(agent, "SELECT count(*) FROM pgconsent_rows.filtered_public_odd", "5")
	w.want(agent, "SELECT title FROM pgconsent_rows.filtered_public_memories ORDER BY 1", visibleTitles)
}

// The catalogs show the table under its own name with its visible columns, and do not show pgconsent's view.
func TestShadowsOfNarrowedTables(t *testing.T) {
	tier.All(t)
	w := oddWorld(t, rls.Options{}).migrate()
	agent := w.agent(user1)
	constraints := "odd_pkey"
	if pgtest.Binaries().Major >= 18 {
		constraints = "odd_id_not_null,odd_pkey" // NOT NULL of a visible column; that of a hidden column is absent
	}
	const shownColumns = "id,none,hashed,key,domain_text,strict,day,stamp,zoned,short,small,big,amount,ratio,doc,old_doc"
	for sql, want := range map[string]string{
		"SELECT attname FROM pgconsent_catalog.pg_attribute WHERE attrelid = 'public.odd'::regclass AND attnum > " +
			"0 ORDER BY attnum": shownColumns,
		"SELECT column_name FROM pgconsent_catalog.is_columns WHERE table_schema = 'public' AND table_name = " +
			"'odd' ORDER BY ordinal_position": shownColumns,
		"SELECT column_name FROM pgconsent_catalog.is_column_privileges WHERE table_name = 'odd' AND column_name " +
			"IN ('id', 'secret')": "id",
		"SELECT table_name || ' ' || table_type FROM pgconsent_catalog.is_tables WHERE table_schema NOT IN " +
			"('pg_catalog', 'information_schema') ORDER BY 1": "memories BASE TABLE,odd BASE TABLE",
		"SELECT is_nullable FROM pgconsent_catalog.is_columns WHERE table_name = 'odd' AND column_name IN ('id', " +
			"'none') ORDER BY column_name": "NO,YES",
		"SELECT data_type FROM pgconsent_catalog.is_columns WHERE table_name = 'odd' AND column_name IN " +
			"('domain_text', 'amount') ORDER BY 1": "numeric,text",
		"SELECT atttypid::regtype::text || atttypmod FROM pgconsent_catalog.pg_attribute WHERE attrelid = " +
			"'public.odd'::regclass AND attname IN ('domain_text', 'amount', 'short') ORDER BY 1": "character varying24,numeric-1,text-1",
		"SELECT relname FROM pgconsent_catalog.pg_class WHERE relname LIKE 'odd%' ORDER BY 1":                    "odd,odd_pkey,odd_shown",
		"SELECT indexname FROM pgconsent_catalog.pg_indexes WHERE tablename = 'odd' ORDER BY 1":                  "odd_pkey,odd_shown",
		"SELECT conname FROM pgconsent_catalog.pg_constraint WHERE conrelid = 'public.odd'::regclass ORDER BY 1": constraints,
		"SELECT count(*) FROM pgconsent_catalog.pg_attrdef WHERE adrelid = 'public.odd'::regclass":               "0",
		"SELECT count(*) FROM pgconsent_catalog.pg_namespace WHERE nspname LIKE 'pgconsent%'":                    "0",
		"SELECT count(*) FROM pgconsent_catalog.pg_class WHERE relname LIKE '%public_odd'":                       "0",
		"SELECT count(*) FROM pgconsent_catalog.pg_type WHERE typname LIKE '%public_odd'":                        "0",
	} {
		w.want(agent, sql, want)
	}
	for _, view := range []string{"is_tables", "is_columns", "is_column_privileges", "is_table_privileges",
		"is_role_table_grants", "is_role_column_grants", "is_column_udt_usage", "is_column_domain_usage",
		"is_element_types", "pg_attribute", "pg_class", "pg_index", "pg_constraint"} {
		text, err := query(agent, "SELECT t::pg_catalog.text FROM pgconsent_catalog."+view+" AS t")
		if err != nil || strings.Contains(text, "pgconsent_rows,") || strings.Contains(text, "public_odd") ||
			strings.Contains(text, "secret") || strings.Contains(text, "user_id,") {
			t.Errorf("%s tells of what is hidden: %v", view, err)
		}
	}
}
