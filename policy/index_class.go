package policy

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// infallibleClasses lists the operator classes whose comparisons never fail, by extension and access method. For a
// class with *, this also depends on the types that it compares.
//
// An index compares a new value with the entries of other rows, including hidden rows. If a comparison can fail, a
// failure tells that a hidden row exists, and the error may quote a number computed from its value.
//
// A class that is not listed may fail. Areas of boxes, circles and polygons may overflow, and so may distances of
// numeric values and of numeric ranges. Sums of points may have no quadrant. btree_gist subtracts dates, which fails
// for infinite dates. gist__int_ops can store only as many ranges as fit into a page. A tsquery may be nested too deep.
var infallibleClasses = map[string]map[string]string{
	"postgresql": {
		"btree": "array_ops* record_ops* range_ops* multirange_ops* record_image_ops bit_ops bool_ops bpchar_ops " +
			"bpchar_pattern_ops bytea_ops char_ops cidr_ops date_ops enum_ops float4_ops float8_ops inet_ops " +
			"int2_ops int4_ops int8_ops " +
			"interval_ops jsonb_ops macaddr8_ops macaddr_ops money_ops name_ops numeric_ops oid_ops oidvector_ops " +
			"pg_lsn_ops text_ops text_pattern_ops tid_ops time_ops timestamp_ops timestamptz_ops timetz_ops tsvector_ops uuid_ops " +
			"varbit_ops varchar_ops varchar_pattern_ops xid8_ops",
		"hash": "array_ops* record_ops* range_ops* multirange_ops* aclitem_ops bool_ops bpchar_ops " +
			"bpchar_pattern_ops bytea_ops char_ops cid_ops cidr_ops date_ops enum_ops float4_ops float8_ops " +
			"inet_ops int2_ops int4_ops int8_ops interval_ops jsonb_ops " +
			"macaddr8_ops macaddr_ops name_ops numeric_ops oid_ops oidvector_ops pg_lsn_ops text_ops " +
			"text_pattern_ops tid_ops time_ops timestamp_ops timestamptz_ops timetz_ops uuid_ops varchar_ops " +
			"varchar_pattern_ops xid8_ops xid_ops",
		"gin":    "array_ops* jsonb_ops jsonb_path_ops tsvector_ops",
		"gist":   "range_ops* multirange_ops* inet_ops tsvector_ops tsquery_ops",
		"spgist": "range_ops* inet_ops text_ops box_ops poly_ops",
		"brin": "range_inclusion_ops* inet_inclusion_ops box_inclusion_ops " +
			"bit_minmax_ops bpchar_minmax_ops bytea_minmax_ops char_minmax_ops date_minmax_ops float4_minmax_ops " +
			"float8_minmax_ops inet_minmax_ops int2_minmax_ops int4_minmax_ops int8_minmax_ops " +
			"interval_minmax_ops macaddr8_minmax_ops " +
			"macaddr_minmax_ops name_minmax_ops numeric_minmax_ops oid_minmax_ops pg_lsn_minmax_ops " +
			"text_minmax_ops tid_minmax_ops time_minmax_ops timestamp_minmax_ops timestamptz_minmax_ops " +
			"timetz_minmax_ops uuid_minmax_ops varbit_minmax_ops " +
			"bpchar_bloom_ops bytea_bloom_ops char_bloom_ops date_bloom_ops float4_bloom_ops float8_bloom_ops " +
			"inet_bloom_ops int2_bloom_ops int4_bloom_ops int8_bloom_ops interval_bloom_ops macaddr8_bloom_ops " +
			"macaddr_bloom_ops name_bloom_ops " +
			"numeric_bloom_ops oid_bloom_ops pg_lsn_bloom_ops text_bloom_ops tid_bloom_ops time_bloom_ops " +
			"timestamp_bloom_ops timestamptz_bloom_ops timetz_bloom_ops uuid_bloom_ops " +
			"date_minmax_multi_ops float4_minmax_multi_ops float8_minmax_multi_ops inet_minmax_multi_ops " +
			"int2_minmax_multi_ops int4_minmax_multi_ops int8_minmax_multi_ops macaddr8_minmax_multi_ops " +
			"macaddr_minmax_multi_ops oid_minmax_multi_ops " +
			"pg_lsn_minmax_multi_ops tid_minmax_multi_ops time_minmax_multi_ops timestamp_minmax_multi_ops " +
			"timestamptz_minmax_multi_ops timetz_minmax_multi_ops uuid_minmax_multi_ops",
	},
	"bloom": {"bloom": "int4_ops text_ops"},
	"btree_gin": {"gin": "bit_ops bool_ops bpchar_ops bytea_ops char_ops cidr_ops date_ops enum_ops float4_ops " +
		"float8_ops inet_ops int2_ops int4_ops int8_ops interval_ops macaddr8_ops macaddr_ops money_ops name_ops " +
		"numeric_ops oid_ops text_ops " +
		"time_ops timestamp_ops timestamptz_ops timetz_ops uuid_ops varbit_ops varchar_ops"},
	"btree_gist": {"gist": "gist_bit_ops gist_bool_ops gist_bpchar_ops gist_bytea_ops gist_cash_ops gist_cidr_ops " +
		"gist_enum_ops gist_float4_ops gist_float8_ops gist_inet_ops gist_int2_ops gist_int4_ops gist_int8_ops " +
		"gist_interval_ops " +
		"gist_macaddr8_ops gist_macaddr_ops gist_oid_ops gist_text_ops gist_time_ops gist_timestamp_ops " +
		"gist_timestamptz_ops gist_timetz_ops gist_uuid_ops gist_vbit_ops"},
	"citext":   {"btree": "citext_ops citext_pattern_ops", "hash": "citext_ops"},
	"cube":     {"btree": "cube_ops", "gist": "gist_cube_ops"},
	"hstore":   {"btree": "btree_hstore_ops", "hash": "hash_hstore_ops", "gin": "gin_hstore_ops", "gist": "gist_hstore_ops"},
	"intarray": {"gin": "gin__int_ops", "gist": "gist__intbig_ops"},
	"isn": {"btree": "ean13_ops isbn13_ops isbn_ops ismn13_ops ismn_ops issn13_ops issn_ops upc_ops",
		"hash": "ean13_ops isbn13_ops isbn_ops ismn13_ops ismn_ops issn13_ops issn_ops upc_ops"},
	"ltree":   {"btree": "ltree_ops", "hash": "hash_ltree_ops", "gist": "gist_ltree_ops gist__ltree_ops"},
	"pg_trgm": {"gin": "gin_trgm_ops", "gist": "gist_trgm_ops"},
	"postgis": {"gist": "gist_geometry_ops_2d"},
	"seg":     {"btree": "seg_ops", "gist": "gist_seg_ops"},
	"vector": {
		"btree": "vector_ops halfvec_ops sparsevec_ops",
		"hnsw": "vector_l2_ops vector_ip_ops vector_cosine_ops vector_l1_ops halfvec_l2_ops halfvec_ip_ops " +
			"halfvec_cosine_ops halfvec_l1_ops sparsevec_l2_ops sparsevec_ip_ops sparsevec_cosine_ops " +
			"sparsevec_l1_ops bit_hamming_ops " +
			"bit_jaccard_ops",
		"ivfflat": "vector_l2_ops vector_ip_ops vector_cosine_ops halfvec_l2_ops halfvec_ip_ops " +
			"halfvec_cosine_ops bit_hamming_ops",
	},
}

// infallibleTypes lists, by extension, the types whose values a btree index can always compare.
var infallibleTypes = map[string]string{
	"": "bool bytea char name int8 int2 int4 text oid tid xid8 jsonb money float4 float8 macaddr macaddr8 inet " +
		"cidr bpchar varchar date time timetz timestamp timestamptz interval numeric bit varbit uuid tsvector pg_lsn oidvector " +
		"regclass regtype regproc regprocedure regrole regnamespace regconfig regdictionary regoper regoperator regcollation",
	"citext": "citext", "cube": "cube", "hstore": "hstore", "ltree": "ltree", "vector": "vector halfvec sparsevec",
}

// infallibleSubtractions are the functions that subtract the bounds of a range and never fail. numrange_subdiff is not
// among them. It converts numeric to float8, which may be out of range, and then calls float8mi, which may overflow.
var infallibleSubtractions = []string{"", "int4range_subdiff", "int8range_subdiff", "daterange_subdiff", "tsrange_subdiff",
	"tstzrange_subdiff"}

// indexComparisons finds the indexes in which a comparison of two values may fail.
type indexComparisons struct {
	snap  *catalog.Snapshot
	graph keyGraph
}

// comparesAnything tells whether an index can compare any two values of one of its keys without an error.
func (c *indexComparisons) comparesAnything(key catalog.IndexKey) bool {
	if key.Method == "operator" {
		return infallibleClasses[key.Provider] != nil
	}
	classes := strings.Fields(infallibleClasses[key.Provider][key.Method])
	switch {
	case slices.Contains(classes, key.Class):
		return true
	case !slices.Contains(classes, key.Class+"*"):
		return false
	case key.Method == "gist" && !slices.Contains(infallibleSubtractions, c.rangeSubtraction(key.Type)):
		return false
	}
	return c.typeComparesAnything(key.Type, nil)
}

// typeComparesAnything tells whether a btree can compare any two values of a type without an error.
func (c *indexComparisons) typeComparesAnything(oid uint32, enclosing []uint32) bool {
	t := c.snap.TypeByOID(oid)
	if t == nil || slices.Contains(enclosing, oid) {
		return false
	}
	enclosing = append(enclosing, oid)
	switch t.Kind {
	case 'e':
		return true
	case 'd', 'm':
		return c.typeComparesAnything(t.Base, enclosing)
	case 'r':
		return len(t.CheckFunctions) == 0 && c.typeComparesAnything(t.Base, enclosing)
	case 'c':
		r, ok := c.snap.Relation(t.Name)
		return ok && !slices.ContainsFunc(r.Columns,
			func(column catalog.Column) bool { return !c.typeComparesAnything(column.TypeOID, enclosing) })
	}
	if t.Element != 0 {
		return c.typeComparesAnything(t.Element, enclosing)
	}
	return (t.Extension != "" || t.Name.Schema == "pg_catalog") &&
		slices.Contains(strings.Fields(infallibleTypes[t.Extension]), t.Name.Name)
}

// rangeSubtraction returns the name of the function that subtracts the bounds of a range or multirange.
func (c *indexComparisons) rangeSubtraction(oid uint32) string {
	t := c.snap.TypeByOID(oid)
	for t != nil && (t.Kind == 'd' || t.Kind == 'm') {
		t = c.snap.TypeByOID(t.Base)
	}
	if t == nil {
		return ""
	}
	return t.SubtypeDiff
}

// fallibleIndexKey is a key of an index whose comparison of two rows may fail, with all columns that the index reads.
type fallibleIndexKey struct {
	index   string
	key     catalog.IndexKey
	columns []string
}

// comparedBy names the key that compares: its column or its expression.
func (t fallibleIndexKey) comparedBy() string {
	if t.key.Method == "operator" {
		return "the operator " + t.key.Class
	}
	return t.key.Class
}

// fallibleIndexKeys returns the keys of indexes on a table and its partitions whose comparison may fail.
func (c *indexComparisons) fallibleIndexKeys(r *catalog.Relation) []fallibleIndexKey {
	var out []fallibleIndexKey
	for _, partition := range c.graph.withParts(r) {
		for _, index := range partition.FallibleIndexes {
			var columns []string
			for _, key := range index.Keys {
				columns = append(columns, withSources(partition, key.Columns)...)
			}
			for _, key := range index.Keys {
				if !c.comparesAnything(key) {
					out = append(out, fallibleIndexKey{index.Index, key, columns})
				}
			}
		}
	}
	return out
}
