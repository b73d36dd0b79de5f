package policy_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// comparedSnapshot is a catalog of one table with an index on one key, besides the primary key id.
func comparedSnapshot(key catalog.IndexKey, extraKeys ...catalog.IndexKey) *catalog.Snapshot {
	public := func(name string) catalog.Name { return catalog.Name{Schema: "public", Name: name} }
	pg := func(name string) catalog.Name { return catalog.Name{Schema: "pg_catalog", Name: name} }
	return catalog.NewSnapshot(catalog.Spec{
		Database: "d", ServerVersion: 150000, SearchPath: []string{"public"},
		Types: []*catalog.Type{
			{OID: 23, Name: pg("int4"), Kind: 'b'}, {OID: 25, Name: pg("text"), Kind: 'b'}, {
				OID: 114, Name: pg("json"), Kind: 'b'}, {OID: 1700, Name: pg("numeric"), Kind: 'b'},
			{OID: 600, Name: pg("point"), Kind: 'b'}, {OID: 701, Name: pg("float8"), Kind: 'b'},
			{OID: 1007, Name: pg("_int4"), Kind: 'b', Element: 23}, {
				OID: 199, Name: pg("_json"), Kind: 'b', Element: 114}, {OID: 3904, Name: pg("int4range"), Kind: 'r', Base: 23, SubtypeDiff: "int4range_subdiff"},
			{OID: 3906, Name: pg("numrange"), Kind: 'r', Base: 1700, SubtypeDiff: "numrange_subdiff"}, {
				OID: 4451, Name: pg("int4multirange"), Kind: 'm', Base: 3904}, {OID: 4532, Name: pg("nummultirange"), Kind: 'm', Base: 3906},
			{OID: 20001, Name: public("mood"), Kind: 'e'}, {OID: 20002, Name: public("plain"), Kind: 'c'}, {
				OID: 20003, Name: public("with_json"), Kind: 'c'}, {OID: 20004, Name: public("word"), Kind: 'd', Base: 25},
			{OID: 20005, Name: public("floats"), Kind: 'r', Base: 701, SubtypeDiff: "float8mi"}, {
				OID: 20006, Name: public("texts"), Kind: 'r', Base: 25},
			{OID: 20007, Name: public("others"), Kind: 'r', Base: 25, CheckFunctions: []uint32{30000}},
			{OID: 20008, Name: public("citext"), Kind: 'b', Extension: "citext"}, {
				OID: 20009, Name: public("text"), Kind: 'b'}, {OID: 20010, Name: public("spans"), Kind: 'd', Base: 3906},
		},
		Relations: []*catalog.Relation{
			{Name: public("t"), Kind: catalog.Table, PrimaryKey: []string{"id"},
				UniqueKeys: []catalog.Key{{Name: "t_pkey", Columns: []string{"id"}, EqualColumns: []string{"id"}}},
				WriteFacts: catalog.WriteFacts{FallibleIndexes: []catalog.FallibleIndex{{Index: "t_v",
					Keys: append([]catalog.IndexKey{key}, extraKeys...)}}},
				Columns: []catalog.Column{{Name: "id", Type: "uuid", Default: "gen_random_uuid()"},
					{Name: "owner", Type: "uuid"}, {Name: "v", Type: "text"}, {Name: "w", Type: "text"}, {
						Name: "secret", Type: "text"}, {Name: "title", Type: "text"},
					{Name: "kind", Type: "text", Default: "'x'"}, {Name: "g", Type: "text", Generated: true, ComputedFrom: []string{"w"}}}},
			{Name: public("plain"), Kind: catalog.Composite,
				Columns: []catalog.Column{{Name: "a", TypeOID: 20001}, {Name: "b", TypeOID: 20004}, {Name: "c", TypeOID: 1007}}},
			{Name: public("with_json"), Kind: catalog.Composite,
				Columns: []catalog.Column{{Name: "a", TypeOID: 23}, {Name: "b", TypeOID: 114}}},
		},
	})
}

func compileCompared(snap *catalog.Snapshot, table string) (*policy.Policy, error) {
	doc, err := policy.Parse("p.yaml", []byte(head+"tables:\n  t: { "+table+" }\n"))
	if err != nil {
		return nil, err
	}
	p, err := policy.Compile(doc, snap)
	return p, errorOrWarnings(p, err)
}

// errorOrWarnings returns the error of a compilation. If there is none, it returns the warnings about what is left out,
// as an error.
func errorOrWarnings(p *policy.Policy, err error) error {
	if err != nil {
		return err
	}
	var out []error
	for _, w := range p.WithheldWrites() {
		out = append(out, w)
	}
	return errors.Join(out...)
}

// If an index fails for some pair of values, the error tells agents the values of hidden rows. So agents may write only
// columns whose indexes can compare any two values.
func TestIndexesThatCompareAnything(t *testing.T) {
	for _, c := range []struct {
		class      string // the extension, access method and name of the operator class
		typeOID    uint32
		isFallible bool
	}{
		{"postgresql btree array_ops", 1007, false},
		{"postgresql btree array_ops", 199, true},
		{"postgresql btree record_ops", 20002, false},
		{"postgresql btree record_ops", 20003, true},
		{"postgresql btree record_ops", 99999, true}, // the row type of a table
		{"postgresql btree record_image_ops", 20003, false},
		{"postgresql btree range_ops", 3906, false},
		{"postgresql btree range_ops", 20005, false},
		{"postgresql btree range_ops", 20007, true},
		{"postgresql btree multirange_ops", 4532, false},
		{"postgresql btree tsquery_ops", 3615, true},
		{"postgresql btree array_ops", 600, true},
		{"postgresql hash record_ops", 20003, true}, // as in an exclusion constraint
		{"postgresql hash int4_ops", 23, false},
		{"postgresql gin array_ops", 1007, false},
		{"postgresql gin array_ops", 199, true},
		{"postgresql gin jsonb_ops", 3802, false},
		{"postgresql gin jsonb_path_ops", 3802, false},
		{"postgresql gin tsvector_ops", 3614, false},
		{"postgresql gist range_ops", 3904, false},
		{"postgresql gist range_ops", 3906, true},
		{"postgresql gist range_ops", 20010, true},
		{"postgresql gist range_ops", 20005, true},
		{"postgresql gist range_ops", 20006, false},
		{"postgresql gist multirange_ops", 4451, false},
		{"postgresql gist multirange_ops", 4532, true},
		{"postgresql gist inet_ops", 869, false},
		{"postgresql gist tsvector_ops", 3614, false},
		{"postgresql gist box_ops", 603, true},
		{"postgresql gist point_ops", 600, true},
		{"postgresql gist circle_ops", 718, true},
		{"postgresql gist poly_ops", 604, true},
		{"postgresql spgist quad_point_ops", 600, true},
		{"postgresql spgist box_ops", 603, false},
		{"postgresql spgist range_ops", 3906, false},
		{"postgresql spgist text_ops", 25, false},
		{"postgresql brin int4_minmax_ops", 23, false},
		{"postgresql brin numeric_minmax_ops", 1700, false},
		{"postgresql brin numeric_bloom_ops", 1700, false},
		{"postgresql brin numeric_minmax_multi_ops", 1700, true},
		{"postgresql brin interval_minmax_multi_ops", 1186, true},
		{"postgresql brin timestamptz_minmax_multi_ops", 1184, false},
		{"postgresql brin range_inclusion_ops", 3906, false},
		{"btree_gist gist gist_text_ops", 25, false},
		{"btree_gist gist gist_uuid_ops", 2950, false},
		{"btree_gist gist gist_date_ops", 1082, true},
		{"btree_gist gist gist_numeric_ops", 1700, true},
		{"intarray gist gist__int_ops", 1007, true},
		{"intarray gist gist__intbig_ops", 1007, false},
		{"intarray gin gin__int_ops", 1007, false},
		{"pg_trgm gin gin_trgm_ops", 25, false},
		{"pg_trgm gist gist_trgm_ops", 25, false},
		{"vector hnsw vector_l2_ops", 30001, false},
		{"vector ivfflat vector_cosine_ops", 30001, false},
		{"ltree gist gist_ltree_ops", 30001, false},
		{"hstore gin gin_hstore_ops", 30001, false},
		{"cube gist gist_cube_ops", 30001, false},
		{"citext btree citext_ops", 20008, false},
		{"postgis gist gist_geometry_ops_2d", 30001, false},
		{"postgresql gin gin_trgm_ops", 25, true},
		{"pg_trgm gist vector_l2_ops", 25, true},
		{"someones gist gist_things", 30001, true},
		{"- btree text_ops", 25, true},
		{"postgresql other box_ops", 603, true},
		{"- operator ===", 0, true},
		{"cube operator &&", 0, false},
	} {
		words := strings.Fields(c.class)
		key := catalog.IndexKey{Provider: strings.Trim(words[0], "-"), Method: words[1], Class: words[2], Type: c.typeOID,
			Columns: []string{"v"}}
		for _, writeRule := range []string{"commands: [insert], columns: [v, title]",
			"commands: [update], columns: [v, title]", "commands: [insert], columns: [title], immutable: [v]"} {
			_, err := compileCompared(comparedSnapshot(key), "rows: [ { own: { column: owner, is: user } } ], write: { "+writeRule+" }")
			isFallible := err != nil && strings.Contains(err.Error(),
				"agents cannot write public.t.v: the index t_v compares it with hidden rows, and") &&
				strings.Contains(err.Error(), words[2]+" fails for some values") &&
				strings.Contains(err.Error(), "accept: [conflicts]")
			if isFallible != c.isFallible || err != nil && !isFallible {
				t.Errorf("%s: %v", c.class, err)
			}
			if _, err := compileCompared(comparedSnapshot(key),
				"rows: [ { own: { column: owner, is: user } } ], write: { "+writeRule+", accept: [conflicts] }"); err != nil {
				t.Errorf("%s, accepted: %v", c.class, err)
			}
			if _, err := compileCompared(comparedSnapshot(key), "rows: open, write: { "+writeRule+" }"); err != nil {
				t.Errorf("%s, of a table that shows every row: %v", c.class, err)
			}
		}
	}
}

// An index that may fail also limits writes of columns beside its own, of computed columns, of defaults, and of columns
// that agents do not see.
func TestEffectsOfFallibleIndexes(t *testing.T) {
	box := func(columns ...string) catalog.IndexKey {
		return catalog.IndexKey{Provider: "postgresql", Method: "gist", Class: "box_ops", Type: 603, Columns: columns}
	}
	textKey := catalog.IndexKey{Provider: "btree_gist", Method: "gist", Class: "gist_text_ops", Type: 25,
		Columns: []string{"w"}}
	expression := box("v")
	expression.IsExpression = true
	const ownRule, visibleColumns = "rows: [ { own: { column: owner, is: user } } ], ", "columns: { id: allow, title: allow }, "
	for _, c := range []struct {
		name         string
		keys         []catalog.IndexKey
		table        string
		want         string // the error; "": the policy compiles
		acceptedLeak string
	}{
		{"a column beside it", []catalog.IndexKey{textKey, box("v")},
			ownRule + "write: { commands: [update], columns: [w] }", "agents cannot write public.t.w: the index t_v", "conflicts"},
		{"another column", []catalog.IndexKey{textKey, box("v")}, ownRule + "write: { commands: [insert, update], columns: [title] }", "", ""},
		{"what it is computed from", []catalog.IndexKey{box("g")},
			ownRule + "write: { commands: [insert], columns: [w] }", "agents cannot write public.t.w: the index t_v", "conflicts"},
		{"no list of columns", []catalog.IndexKey{box("v")}, ownRule + "write: { commands: [insert, update] }", "", ""},
		{"a default", []catalog.IndexKey{box("kind")}, ownRule + "write: { commands: [insert], columns: [title] }",
			"agents cannot insert into public.t: the index t_v compares what each new row has of kind", "conflicts"},
		{"a default that is not for inserts", []catalog.IndexKey{box("kind")}, ownRule + "write: { commands: [update], columns: [title] }", "", ""},
		{"a stamp", []catalog.IndexKey{box("w")},
			ownRule +
				"write: { commands: [insert], columns: [title], stamp: { w: { value: x } } }", "agents cannot insert into public.t", "conflicts"},
		{"a stamp beside it", []catalog.IndexKey{textKey, box("v")},
			ownRule + "write: { commands: [insert], columns: [title], stamp: { w: { value: x } } }", "", ""},
		{"an expression", []catalog.IndexKey{expression}, ownRule + "write: { commands: [insert], columns: [title] }",
			"agents cannot insert into public.t", "conflicts"},
		{"a hidden column", []catalog.IndexKey{box("secret")},
			ownRule + visibleColumns + "write: { commands: [update], columns: [title] }",
			"agents cannot update public.t.title: each update may compare secret, which is hidden or masked, with " +
				"other rows by the index t_v, and box_ops fails", "values"},
		{"a hidden column of a table that shows every row", []catalog.IndexKey{box("secret")},
			"rows: open, " + visibleColumns + "write: { commands: [update], columns: [title] }", "each update may compare secret", "values"},
		{"a hidden column and no list of columns", []catalog.IndexKey{box("secret")},
			ownRule + visibleColumns + "write: { commands: [update] }", "no column of public.t is left for agents to update: each update may compare secret", "values"},
		{"a hidden column that agents know", []catalog.IndexKey{box("owner")}, ownRule + visibleColumns + "write: { commands: [update], columns: [title] }", "", ""},
		{"a hidden column, where agents insert", []catalog.IndexKey{box("secret")},
			ownRule + visibleColumns + "write: { commands: [insert], columns: [title] }", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			snap := comparedSnapshot(c.keys[0], c.keys[1:]...)
			_, err := compileCompared(snap, c.table)
			if c.want == "" && err != nil || c.want != "" &&
				(err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "accept: ["+c.acceptedLeak+"]")) {
				t.Errorf("\n got %v\nwant %s", err, c.want)
			}
			if c.want == "" {
				return
			}
			if _, err := compileCompared(snap, strings.TrimSuffix(c.table, " }")+", accept: ["+c.acceptedLeak+"] }"); err != nil {
				t.Errorf("accepted: %v", err)
			}
		})
	}
}

// A write command is left out of the compiled policy if none of its columns may be written.
func TestCommandsWithoutColumnsAreLeftOut(t *testing.T) {
	snap := comparedSnapshot(catalog.IndexKey{Provider: "postgresql", Method: "gist", Class: "box_ops", Type: 603,
		Columns: []string{"v"}})
	const rows = "rows: [ { own: { column: owner, is: user } } ], "
	for table, want := range map[string]string{
		rows + "write: { commands: [update], columns: [v] }":                                           "",
		rows + "write: { commands: [insert, update], columns: [v] }":                                   "",
		rows + "write: { commands: [insert, update, delete], columns: [v] }":                           "DELETE",
		rows + "write: { commands: [insert, update], columns: [v, title] }":                            "INSERT UPDATE",
		rows + "columns: { id: allow, title: allow }, write: { commands: [update], columns: [title] }": "",
	} {
		p, err := compileCompared(snap, table)
		if p == nil {
			t.Errorf("%s: %v", table, err)
			continue
		}
		got, w := []string{}, p.Tables()[0].Write
		for _, command := range []string{"INSERT", "UPDATE", "DELETE"} {
			if w != nil && w.Allows(command) {
				got = append(got, command)
			}
		}
		if strings.Join(got, " ") != want || w != nil && (w.Update && len(w.Updatable) == 0 || w.Insert && len(w.Insertable) == 0) {
			t.Errorf("%s: %q, not %q: %v", table, got, want, err)
		}
	}
}

// PostgreSQL evaluates some expressions again for each update, even of other columns. If one may fail, the error tells
// about the columns that it reads. It also tells about hidden rows that the update cascades to.
func TestRecheckedExpressions(t *testing.T) {
	public := func(name string) catalog.Name { return catalog.Name{Schema: "public", Name: name} }
	base := func() *catalog.Relation {
		return &catalog.Relation{Name: public("t"), Kind: catalog.Table, PrimaryKey: []string{"id"},
			UniqueKeys: []catalog.Key{{Name: "t_pkey", Columns: []string{"id"}, EqualColumns: []string{"id"}}},
			Columns: []catalog.Column{{Name: "id", Type: "uuid", Default: "gen_random_uuid()"},
				{Name: "owner", Type: "uuid"}, {Name: "title", Type: "text"}, {Name: "kind", Type: "text"}, {
					Name: "secret", Type: "text"}, {Name: "album", Type: "uuid"}}}
	}
	compile := func(r *catalog.Relation, tables string) error {
		r.ForeignKeys = []catalog.ForeignKey{
			{Columns: []string{"album"}, Target: public("albums"), TargetColumns: []string{"id"}, OnUpdate: catalog.NoAction,
				OnDelete: catalog.SetNull}}
		snap := catalog.NewSnapshot(catalog.Spec{Database: "d", ServerVersion: 150000, SearchPath: []string{"public"}, Relations: []*catalog.Relation{r,
			{Name: public("albums"), Kind: catalog.Table, PrimaryKey: []string{"id"},
				UniqueKeys: []catalog.Key{{Name: "albums_pkey", Columns: []string{"id"}, EqualColumns: []string{"id"}}},
				Columns:    []catalog.Column{{Name: "id", Type: "uuid"}, {Name: "owner", Type: "uuid"}}}}})
		doc, err := policy.Parse("p.yaml", []byte(head+"tables:\n"+tables))
		if err != nil {
			return err
		}
		return errorOrWarnings(policy.Compile(doc, snap))
	}
	const ownRule = "rows: [ { own: { column: owner, is: user } } ]"
	update := func(otherRules, acceptedLeak string) string {
		return "  t: { " + ownRule + ", " + otherRules + "write: { commands: [update], columns: [title]" + acceptedLeak + " } }\n"
	}
	const visibleColumns = "columns: { id: allow, title: allow, kind: allow }, "
	for _, c := range []struct {
		name         string
		change       func(*catalog.Relation)
		updateError  string // the error for an update of title where secret is hidden; "": the policy compiles
		cascadeError string // the error for a DELETE from albums that sets columns here to NULL
	}{
		{"nothing", func(*catalog.Relation) {}, "", ""},
		{"a check that is asked anew", func(r *catalog.Relation) { r.RecheckedColumns = [][]string{{"kind"}, {"secret"}} },
			"asks anew what a constraint says of secret, which is hidden or masked", "is asked anew"},
		{"a check of what agents see", func(r *catalog.Relation) {
			r.RecheckedColumns = [][]string{{"kind", "title"},
				{"owner"}, {}}
		}, "", "is asked anew"},
		{"an index of what is computed anew", func(r *catalog.Relation) {
			r.Computations = []catalog.Computation{{Source: "index", Columns: []string{"secret"}, MayFailUnchanged: true}}
		}, "compute anew what an index makes of secret", "an index may be computed anew"},
		{"an index of what stays", func(r *catalog.Relation) {
			r.Computations = []catalog.Computation{{Source: "index",
				Columns: []string{"secret"}}}
		}, "", ""},
		{"a condition of a trigger", func(r *catalog.Relation) {
			r.Computations = []catalog.Computation{{Source: "trigger", Columns: []string{"secret"}, MayFailUnchanged: true}}
		}, "compute anew what a trigger's condition makes of secret", "a trigger's condition may be computed anew"},
		{"a condition of a trigger on DELETE", func(r *catalog.Relation) {
			r.Computations = []catalog.Computation{{Source: "trigger", Columns: []string{"secret"}, MayFailOnDelete: true}}
		}, "", ""},
		{"a generated column", func(r *catalog.Relation) {
			r.Computations = []catalog.Computation{{Source: "column", Columns: []string{"secret"}, MayFailUnchanged: true}}
		}, "compute anew what a generated column makes of secret", "a generated column may be computed anew"},
		{"partitions", func(r *catalog.Relation) {
			r.Computations = []catalog.Computation{{Source: "partition", Columns: []string{"secret"}, MayFailUnchanged: true}}
		}, "what says to which partition a row goes makes of secret", "may be computed anew"},
		{"an index that compares", func(r *catalog.Relation) {
			r.FallibleIndexes = []catalog.FallibleIndex{
				{Index: "x", Keys: []catalog.IndexKey{{Method: "gist", Class: "box_ops", Provider: "postgresql",
					Columns: []string{"kind"}}}}}
		}, "", "the index x compares rows anew, and box_ops fails for some"},
		{"an index that compares anything", func(r *catalog.Relation) {
			r.FallibleIndexes = []catalog.FallibleIndex{
				{Index: "x", Keys: []catalog.IndexKey{{Method: "gist", Class: "inet_ops", Provider: "postgresql",
					Columns: []string{"secret"}}}}}
		}, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			check := func(label, want, tables, acceptedTables string) {
				r := base()
				c.change(r)
				if err := compile(r, tables); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
					t.Errorf("%s:\n got %v\nwant %s", label, err, want)
				}
				if err := compile(r, acceptedTables); err != nil {
					t.Errorf("%s, accepted: %v", label, err)
				}
			}
			check("hidden", c.updateError, update(visibleColumns, ""), update(visibleColumns, ", accept: [values]"))
			check("seen", "", update("", ""), update("", ""))
			contract := "objects: { t: { table: t } }\ncontracts: { c: { by: user, values: { " +
				"6f1e0000-0000-4000-8000-00000000abcd: { allow: { t: { sources: [structured, write], columns: [id, owner, title, kind, album] } } } } } }\n"
			check("left out of a contract", strings.Replace(c.updateError, "which is hidden or masked",
				"which a contract leaves out", 1), update("", "")+contract, update("", ", accept: [values]")+contract)
			albums := "  albums: { " + ownRule + ", write: { commands: [delete]%s } }\n  t: { " + ownRule + " }\n"
			check("along", c.cascadeError, strings.Replace(albums, "%s", "", 1), strings.Replace(albums, "%s", ", accept: [references]", 1))
		})
	}
}

// The condition of a trigger may fail when a row is deleted. The error tells about columns that agents do not see, and
// about rows that the delete cascades to.
func TestTriggerConditionsOnDelete(t *testing.T) {
	public := func(name string) catalog.Name { return catalog.Name{Schema: "public", Name: name} }
	compile := func(computed catalog.Computation, onDelete catalog.Action, tables string) (*policy.Policy, error) {
		key := []catalog.Key{{Name: "key", Columns: []string{"id"}, EqualColumns: []string{"id"}}}
		snap := catalog.NewSnapshot(catalog.Spec{Database: "d", ServerVersion: 150000, SearchPath: []string{"public"}, Relations: []*catalog.Relation{
			{Name: public("t"), Kind: catalog.Table, PrimaryKey: []string{"id"}, UniqueKeys: key,
				WriteFacts: catalog.WriteFacts{Computations: []catalog.Computation{computed}},
				Columns: []catalog.Column{{Name: "id", Type: "uuid", TypeOID: 2950},
					{Name: "owner", Type: "uuid", TypeOID: 2950}, {Name: "title", Type: "text", TypeOID: 25}, {
						Name: "secret", Type: "text", TypeOID: 25},
					{Name: "made", Type: "text", TypeOID: 25, Generated: true, ComputedFrom: []string{"secret"}}, {Name: "album", Type: "uuid", TypeOID: 2950}},
				ForeignKeys: []catalog.ForeignKey{
					{Columns: []string{"album"}, Target: public("albums"), TargetColumns: []string{"id"}, OnUpdate: catalog.NoAction,
						OnDelete: onDelete}}},
			{Name: public("albums"), Kind: catalog.Table, PrimaryKey: []string{"id"}, UniqueKeys: key,
				Columns: []catalog.Column{{Name: "id", Type: "uuid", TypeOID: 2950}, {Name: "owner", Type: "uuid", TypeOID: 2950}}}}})
		doc, err := policy.Parse("p.yaml", []byte(head+"tables:\n"+tables))
		if err != nil {
			return nil, err
		}
		return policy.Compile(doc, snap)
	}
	const ownRule, visibleColumns, visibleInAlbums = "rows: [ { own: { column: owner, is: user } } ]",
		", columns: { id: allow, title: allow, made: allow, album: allow }", "rows: [ { visible: { albums: { id: album } } } ]"
	const deleteRule, acceptedRule, deleteCascade = ", write: { commands: [delete] }",
		", write: { commands: [delete], accept: [values] }", ", write: { commands: [delete], accept: [references] }"
	albums := func(albumsWrite, t string) string {
		return "  albums: { " + ownRule + albumsWrite + " }\n  t: { " + t + " }\n"
	}
	failsOnDelete, failsOnUpdate := catalog.Computation{Source: "trigger", Columns: []string{"secret"},
		MayFailOnDelete: true}, catalog.Computation{
		Source: "trigger", Columns: []string{"secret"}, MayFailUnchanged: true}
	for _, c := range []struct {
		label, table string
		computed     catalog.Computation
		action       catalog.Action
		tables       string
		want         string // the error; "": agents may delete
	}{
		{"of a hidden column", "t", failsOnDelete, catalog.NoAction, "  t: { " + ownRule + visibleColumns + deleteRule + " }\n",
			"as a row goes, a trigger's condition reads secret, which is hidden or masked"},
		{"of a hidden column, accepted", "t", failsOnDelete, catalog.NoAction, "  t: { " + ownRule + visibleColumns + acceptedRule + " }\n", ""},
		{"of what is computed from one", "t", catalog.Computation{Source: "trigger", Columns: []string{"made"}, MayFailOnDelete: true},
			catalog.NoAction, "  t: { " + ownRule + visibleColumns + deleteRule + " }\n", "reads secret"},
		{"of whose row it is", "t", catalog.Computation{Source: "trigger", Columns: []string{"owner"}, MayFailOnDelete: true},
			catalog.NoAction, "  t: { " + ownRule + visibleColumns + deleteRule + " }\n", ""},
		{"of columns that show", "t", failsOnDelete, catalog.NoAction, "  t: { " + ownRule + deleteRule + " }\n", ""},
		{"as rows change", "t", failsOnUpdate, catalog.NoAction, "  t: { " + ownRule + visibleColumns + deleteRule + " }\n", ""},
		{"of rows that go along", "albums", failsOnDelete, catalog.Cascade, albums(deleteRule, ownRule),
			"hidden rows of public.t refer to it: the condition of a trigger may fail as they go along"},
		{"of rows that go along, accepted", "albums", failsOnDelete, catalog.Cascade, albums(deleteCascade, ownRule), ""},
		{"of rows that go along, where it fails for none", "albums", failsOnUpdate, catalog.Cascade, albums(deleteRule, ownRule), ""},
		{"of rows that show as they go along", "albums", failsOnDelete, catalog.Cascade, albums(deleteRule, visibleInAlbums), ""},
		{"of rows with hidden columns as they go along", "albums", failsOnDelete, catalog.Cascade,
			albums(deleteRule, visibleInAlbums+visibleColumns), "what columns of public.t hold that agents do not see: the condition"},
		{"of rows that change along", "albums", failsOnUpdate, catalog.SetNull, albums(deleteRule, ownRule),
			"hidden rows of public.t refer to it: a trigger's condition may be computed anew"},
		{"of rows that show as they change along", "albums", failsOnUpdate, catalog.SetNull, albums(deleteRule, visibleInAlbums), ""},
		{"of rows with hidden columns as they change along", "albums", failsOnUpdate, catalog.SetNull,
			albums(deleteRule, visibleInAlbums+visibleColumns), "what columns of public.t hold that agents do not see: a trigger's condition"},
	} {
		p, err := compile(c.computed, c.action, c.tables)
		if err != nil {
			t.Errorf("%s: %v", c.label, err)
			continue
		}
		mayDelete := false
		for _, table := range p.Tables() {
			mayDelete = mayDelete || table.Relation.Name.Name == c.table && table.Write != nil && table.Write.Delete
		}
		if messages := fmt.Sprint(errorOrWarnings(p, nil)); mayDelete != (c.want == "") || !strings.Contains(messages, c.want) {
			t.Errorf("%s: deletes %t: %s", c.label, mayDelete, messages)
		}
	}
}

// A collision with a unique index that has a WHERE clause tells which rows meet that clause.
func TestPartialUniqueIndexes(t *testing.T) {
	public := func(name string) catalog.Name { return catalog.Name{Schema: "public", Name: name} }
	compile := func(predicateText string, readColumns []string, table string) error {
		snap := catalog.NewSnapshot(catalog.Spec{Database: "d", ServerVersion: 150000, SearchPath: []string{"public"}, Relations: []*catalog.Relation{{
			Name: public("t"), Kind: catalog.Table, PrimaryKey: []string{"id"},
			UniqueKeys: []catalog.Key{{Name: "t_pkey", Columns: []string{"id"}, EqualColumns: []string{"id"}},
				{Name: "some", Columns: append([]string{"owner", "title"}, readColumns...),
					EqualColumns: []string{"owner", "title"}, NullsDistinctColumns: []string{"owner", "title"}, Where: predicateText,
					WhereColumns: readColumns}},
			Columns: []catalog.Column{{Name: "id", Type: "uuid", Default: "gen_random_uuid()"},
				{Name: "owner", Type: "uuid"}, {Name: "title", Type: "text"}, {Name: "note", Type: "text"}, {
					Name: "flagged", Type: "boolean", Default: "false"}, {Name: "state", Type: "text"}, {Name: "gone", Type: "timestamp with time zone"}},
		}}})
		doc, err := policy.Parse("p.yaml", []byte(head+"tables:\n  t: { "+table+" }\n"))
		if err != nil {
			return err
		}
		return errorOrWarnings(policy.Compile(doc, snap))
	}
	const ownBlock, visibleColumns = "{ own: { column: owner, is: user } }", "columns: { id: allow, title: allow, note: allow }, "
	for _, c := range []struct {
		name, predicateText string
		readColumns         []string
		table, want         string
	}{
		{"by a hidden column", "(NOT flagged)", []string{"flagged"},
			"rows: [ " + ownBlock + " ], " + visibleColumns +
				"write: { commands: [insert, update], columns: [title] }",
			"it is part of the key some, which is for some rows only, by flagged, which is hidden or masked"},
		{"by a hidden column, updated", "(NOT flagged)", []string{"flagged"},
			"rows: [ " + ownBlock + " ], " + visibleColumns + "write: { commands: [update], columns: [title] }", "by flagged"},
		{"another column", "(NOT flagged)", []string{"flagged"},
			"rows: [ " + ownBlock + " ], " + visibleColumns + "write: { commands: [insert, update], columns: [note] }", ""},
		{"by a column that agents see", "(NOT flagged)", []string{"flagged"},
			"rows: [ " + ownBlock + " ], columns: { id: allow, title: allow, flagged: allow }, write: { commands: [insert, update], columns: [title] }", ""},
		{"no hidden columns", "(gone IS NULL)", []string{"gone"}, "rows: [ " + ownBlock + " ], write: { commands: [insert, update], columns: [title] }", ""},
		{"by whose row it is", "(owner IS NOT NULL)", []string{"owner"},
			"rows: [ " + ownBlock + " ], " + visibleColumns + "write: { commands: [insert, update], columns: [title] }", ""},
		{"by what is the same in all that show: NULL", "(gone IS NULL)", []string{"gone"},
			"rows: [ " + ownBlock + ", { sql: gone IS NULL } ], " + visibleColumns + "write: { commands: [insert, update], columns: [title], accept: [conflicts] }", ""},
		{"by what is the same in all that show: a state", "(state = 'x')", []string{"state"},
			"rows: [ " + ownBlock + ", { status: { column: state, is: x } } ], " + visibleColumns +
				"write: { commands: [insert, update], columns: [title], accept: [conflicts] }", ""},
		{"by what is the same in all that show: false", "(NOT flagged)", []string{"flagged"},
			"rows: [ " + ownBlock + ", { sql: NOT flagged AND state = 'x' } ], " + visibleColumns +
				"write: { commands: [insert, update], columns: [title], accept: [conflicts] }", ""},
		{"by what is the same in all that show, and another", "(state = 'x' AND gone IS NULL)",
			[]string{"state", "gone"}, "rows: [ " + ownBlock + ", { sql: state = 'x' } ], " + visibleColumns +
				"write: { commands: [insert, update], columns: [title], accept: [conflicts] }", "by gone"},
		{"by what is not the same in all that show", "(gone IS NULL)", []string{"gone"},
			"rows: [ " + ownBlock + ", { sql: gone > now() } ], " +
				visibleColumns + "write: { commands: [insert, update], columns: [title], accept: [conflicts] }", "by gone"},
		{"by what is one of several in all that show", "(state = 'x')", []string{"state"},
			"rows: [ " + ownBlock + ", { sql: state = 'x' OR gone IS NULL } ], " + visibleColumns +
				"write: { commands: [insert, update], columns: [title], accept: [conflicts] }", "by state"},
		{"by what is all but one in all that show", "(state = 'x')", []string{"state"},
			"rows: [ " + ownBlock + ", { sql: state <> 'y' } ], " +
				visibleColumns + "write: { commands: [insert, update], columns: [title], accept: [conflicts] }", "by state"},
		{"all of stamps and defaults", "(NOT flagged)", []string{"flagged"},
			"rows: [ " + ownBlock + " ], " + visibleColumns +
				"write: { commands: [insert], columns: [note], stamp: { owner: { attribute: user }, title: { " +
				"value: x } } }", "a collision would tell of flagged, which is hidden or masked"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := compile(c.predicateText, c.readColumns, c.table); c.want == "" && err != nil ||
				c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "accept: [values]")) {
				t.Errorf("\n got %v\nwant %s", err, c.want)
			}
			acceptedTable := strings.TrimSuffix(c.table, " }")
			if withoutAccept, ok := strings.CutSuffix(acceptedTable, ", accept: [conflicts]"); ok {
				acceptedTable = withoutAccept
			}
			if err := compile(c.predicateText, c.readColumns, acceptedTable+", accept: [conflicts, values] }"); err != nil {
				t.Errorf("accepted: %v", err)
			}
		})
	}
}

// A collision with an index, or a failed check, of a partition tells as much as one of the whole table. The same holds
// for an index on a column that is computed from a hidden one.
func TestIndexesOfPartitionsTell(t *testing.T) {
	public := func(name string) catalog.Name { return catalog.Name{Schema: "public", Name: name} }
	const ownRule, visibleColumns = "rows: [ { own: { column: owner, is: user } } ], ", "columns: { id: allow, title: allow, made: allow }, "
	const update, remove = "write: { commands: [update], columns: [title] }", "write: { commands: [delete] }"
	box := func(column string) []catalog.FallibleIndex {
		return []catalog.FallibleIndex{{Index: "part_v",
			Keys: []catalog.IndexKey{{Provider: "postgresql", Method: "gist", Class: "box_ops", Type: 603,
				Columns: []string{column}}}}}
	}
	for _, c := range []struct {
		name                             string
		partition                        catalog.Relation
		table, want                      string
		acceptedLeaks, errorIfAllVisible string // the leaks that the policy accepts, and the error where nothing is hidden
	}{
		{"an index that compares", catalog.Relation{WriteFacts: catalog.WriteFacts{FallibleIndexes: box("title")}},
			ownRule + update,
			"agents cannot write public.t.title: the index part_v", "conflicts", ""},
		{"an index that compares what is hidden", catalog.Relation{WriteFacts: catalog.WriteFacts{FallibleIndexes: box("secret")}}, ownRule + visibleColumns + update,
			"each update may compare secret", "values", ownRule + update},
		{"an index that may be computed anew",
			catalog.Relation{WriteFacts: catalog.WriteFacts{Computations: []catalog.Computation{{Source: "index",
				Columns: []string{"secret"}, MayFailUnchanged: true}}}},
			ownRule + visibleColumns + update, "compute anew what an index makes of secret", "values", ownRule + update},
		{"an index over what is computed from a hidden column",
			catalog.Relation{WriteFacts: catalog.WriteFacts{Computations: []catalog.Computation{{Source: "index",
				Columns: []string{"made"}, MayFailUnchanged: true}}}},
			ownRule + visibleColumns + update, "compute anew what an index makes of secret", "values", ownRule + update},
		{"the condition of a trigger as a row goes",
			catalog.Relation{WriteFacts: catalog.WriteFacts{Computations: []catalog.Computation{{Source: "trigger",
				Columns: []string{"secret"}, MayFailOnDelete: true}}}},
			ownRule + visibleColumns + remove, "as a row goes, a trigger's condition reads secret", "values", ownRule + remove},
	} {
		t.Run(c.name, func(t *testing.T) {
			columns := []catalog.Column{{Name: "id", Type: "uuid", Default: "gen_random_uuid()"},
				{Name: "owner", Type: "uuid"}, {Name: "title", Type: "text"}, {Name: "secret", Type: "text"}, {
					Name: "made", Type: "tsvector", Generated: true, ComputedFrom: []string{"secret"}}}
			partition := c.partition
			partition.Name, partition.Kind, partition.IsPartition, partition.Parents, partition.Columns = public("part"),
				catalog.Table, true, []catalog.Name{public("t")}, columns
			snap := catalog.NewSnapshot(catalog.Spec{
				Database: "d", ServerVersion: 150000, SearchPath: []string{"public"}, Relations: []*catalog.Relation{&partition,
					{Name: public("t"), Kind: catalog.PartitionedTable, Inheritance: catalog.Inheritance{HasChildren: true},
						PrimaryKey: []string{"id"},
						UniqueKeys: []catalog.Key{{Name: "t_pkey", Columns: []string{"id"}, EqualColumns: []string{"id"}}},
						Columns:    columns}}})
			if _, err := compileCompared(snap, c.table); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("\n got %v\nwant %s", err, c.want)
			}
			if _, err := compileCompared(snap, strings.TrimSuffix(c.table, " }")+", accept: ["+c.acceptedLeaks+"] }"); err != nil {
				t.Errorf("accepted: %v", err)
			}
			if c.errorIfAllVisible == "" {
				return
			}
			if _, err := compileCompared(snap, c.errorIfAllVisible); err != nil {
				t.Errorf("seen: %v", err)
			}
		})
	}
}

// If a key contains a column that agents do not see, a collision tells its value in a visible row, as far as the new
// row's value is known.
func TestKeysWithHiddenColumns(t *testing.T) {
	public := func(name string) catalog.Name { return catalog.Name{Schema: "public", Name: name} }
	compile := func(change func(*catalog.Key, *catalog.Relation), table string) error {
		key := catalog.Key{Name: "of", Columns: []string{"owner", "title", "secret"},
			EqualColumns: []string{"owner", "title", "secret"}, NullsDistinctColumns: []string{"owner", "title", "secret"}}
		r := &catalog.Relation{Name: public("t"), Kind: catalog.Table, PrimaryKey: []string{"id"},
			Columns: []catalog.Column{{Name: "id", Type: "uuid", Default: "gen_random_uuid()"},
				{Name: "owner", Type: "uuid"}, {Name: "title", Type: "text"}, {Name: "note", Type: "text"}, {
					Name: "secret", Type: "text", Default: "'none'::text"},
				{Name: "state", Type: "text"}, {Name: "made", Type: "text", Generated: true,
					ComputedFrom: []string{"title"}}, {Name: "number", Type: "uuid", Default: "gen_random_uuid()"}}}
		change(&key, r)
		r.UniqueKeys = []catalog.Key{{Name: "t_pkey", Columns: []string{"id"}, EqualColumns: []string{"id"}}, key}
		doc, err := policy.Parse("p.yaml", []byte(head+"tables:\n  t: { "+table+" }\n"))
		if err != nil {
			return err
		}
		return errorOrWarnings(policy.Compile(doc,
			catalog.NewSnapshot(catalog.Spec{Database: "d", ServerVersion: 150000, SearchPath: []string{"public"}, Relations: []*catalog.Relation{r}})))
	}
	withColumns := func(columns ...string) func(*catalog.Key, *catalog.Relation) {
		return func(key *catalog.Key, _ *catalog.Relation) {
			key.Columns, key.EqualColumns, key.NullsDistinctColumns = columns, columns, columns
		}
	}
	null := func(_ *catalog.Key, r *catalog.Relation) { r.Columns[4].Default = "" }
	const ownRule, visibleColumns, insertRule = "rows: [ { own: { column: owner, is: user } } ], ",
		"columns: { id: allow, owner: allow, title: allow }, ", "write: { commands: [insert], columns: [title]"
	const stampRule, leakMessage = ", stamp: { owner: { attribute: user } }",
		"agents cannot insert into public.t: the key of holds secret, which is hidden or masked"
	for _, c := range []struct {
		name        string
		change      func(*catalog.Key, *catalog.Relation)
		table, want string
	}{
		{"a default", withColumns("owner", "title", "secret"), ownRule + visibleColumns + insertRule + stampRule, leakMessage},
		{"a default, open", withColumns("title", "secret"), "rows: open, " + visibleColumns + insertRule, leakMessage},
		{"a default, of a masked column", withColumns("owner", "title", "secret"),
			ownRule + "columns: { title: allow, secret: { mask: null } }, " + insertRule + stampRule, leakMessage},
		{"a default of a column that shows", withColumns("owner", "title", "secret"), ownRule +
			"columns: { title: allow, secret: allow }, " + insertRule + stampRule, ""},
		{"a default, of a table without columns", withColumns("owner", "title", "secret"), ownRule + insertRule + stampRule, ""},
		{"NULL, which keeps apart", null, ownRule + visibleColumns + insertRule + stampRule, ""},
		{"NULL, which does not", func(key *catalog.Key,
			r *catalog.Relation) {
			null(key, r)
			key.NullsDistinctColumns = nil
		}, ownRule + visibleColumns + insertRule + stampRule, leakMessage},
		{"a number of its own", withColumns("owner", "title", "secret", "number"), ownRule + visibleColumns + insertRule + stampRule, ""},
		{"a number of its own, in an expression", func(key *catalog.Key, _ *catalog.Relation) {
			key.Columns, key.EqualColumns, key.NullsDistinctColumns = append(key.Columns, "number"), key.EqualColumns[:2],
				key.NullsDistinctColumns[:2]
		}, ownRule + visibleColumns + insertRule + stampRule, leakMessage},
		{"computed from what shows", withColumns("owner", "made"), ownRule + visibleColumns + insertRule + stampRule, ""},
		{"computed from a hidden column", func(key *catalog.Key, r *catalog.Relation) {
			key.Columns, key.EqualColumns, key.NullsDistinctColumns = []string{"owner", "mixed"}, []string{"owner", "mixed"},
				[]string{"owner", "mixed"}
			r.Columns = append(r.Columns, catalog.Column{Name: "mixed", Type: "text", Generated: true, ComputedFrom: []string{"title", "secret"}})
		}, ownRule + visibleColumns + insertRule + stampRule, leakMessage},
		{"whose row it is, hidden and stamped", withColumns("owner", "title"), ownRule + "columns: { id: allow, title: allow }, " +
			insertRule + stampRule, ""},
		{"a stamp", withColumns("owner", "title", "state"),
			ownRule + visibleColumns + insertRule +
				", stamp: { owner: { attribute: user }, state: { value: new } }", "holds state, which is hidden"},
		{"what is the same in all rows that show", withColumns("owner", "title", "state"),
			"rows: [ { own: { column: owner, is: user } }, { status: { column: state, is: new } } ], " + visibleColumns +
				insertRule + ", stamp: { owner: { attribute: user }, state: { value: new } }, accept: [conflicts]", ""},
		{"an update", withColumns("owner", "title", "secret"), ownRule + visibleColumns + "write: { commands: [update], columns: [title]", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := compile(c.change, c.table+" }"); c.want == "" && err != nil ||
				c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "accept: [values]")) {
				t.Errorf("\n got %v\nwant %s", err, c.want)
			}
			if err := compile(c.change, strings.TrimSuffix(c.table, ", accept: [conflicts]")+", accept: [conflicts, values] }"); err != nil {
				t.Errorf("accepted: %v", err)
			}
		})
	}
}

// If a foreign key refers to a hidden column of a visible row, a write tells by its failure whether a row has the
// value.
func TestKeysToHiddenColumns(t *testing.T) {
	public := func(name string) catalog.Name { return catalog.Name{Schema: "public", Name: name} }
	text := func(names ...string) (out []catalog.Column) {
		for _, name := range names {
			out = append(out, catalog.Column{Name: name, Type: "text"})
		}
		return out
	}
	topic := &catalog.Relation{Name: public("topic"), Kind: catalog.Table, Columns: text("owner", "code"),
		UniqueKeys: []catalog.Key{{Name: "topic_owner_code_key", Columns: []string{"owner", "code"},
			EqualColumns: []string{"owner", "code"}}}}
	note := &catalog.Relation{Name: public("note"), Kind: catalog.Table, Columns: text("owner", "code"),
		ForeignKeys: []catalog.ForeignKey{{Columns: []string{"owner", "code"}, Target: topic.Name,
			TargetColumns: []string{"owner", "code"}}}}
	snap := catalog.NewSnapshot(catalog.Spec{Database: "d", ServerVersion: 150000, SearchPath: []string{"public"},
		Relations: []*catalog.Relation{note, topic}})
	for target, want := range map[string]string{
		"rows: [ { own: { column: owner, is: user } } ], columns: { owner: allow }": "agents cannot write public.note.code: " +
			"it refers to public.topic by code, which is hidden or masked",
		"rows: [ { own: { column: owner, is: user } } ], columns: { owner: allow, code: { mask: hash } }":                    "by code, which is hidden or masked",
		"rows: [ { own: { column: owner, is: user } } ], columns: { code: allow }":                                           "",
		"rows: [ { own: { column: owner, is: user } } ]":                                                                     "",
		"rows: [ { own: { column: owner, is: user } }, { status: { column: code, is: shown } } ], columns: { owner: allow }": "",
	} {
		for acceptedLeak, isRefused := range map[string]bool{"": want != "", ", accept: [values]": false, ", accept: [references]": false} {
			doc, err := policy.Parse("p.yaml",
				[]byte("version: 1\nattributes: { user: { type: text, source: credential } }\ntables:\n  topic: { "+
					target+" }\n  note: { rows: [ { own: { column: owner, is: user } } ], write: { commands: "+
					"[insert], columns: [code], stamp: { owner: { attribute: user } }"+acceptedLeak+" } }\n"))
			if err != nil {
				t.Fatal(err)
			}
			if err := errorOrWarnings(policy.Compile(doc, snap)); (err != nil) != isRefused || isRefused && !strings.Contains(err.Error(), want) {
				t.Errorf("%s%s: %v, want %q", target, acceptedLeak, err, want)
			}
		}
	}
}
