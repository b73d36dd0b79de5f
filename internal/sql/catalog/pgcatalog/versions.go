package pgcatalog

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A row of a catalog is never changed: DDL writes a row of another version, with its transaction in xmin. So what a
// transaction has changed are the rows with an xmin that is not older than what was under way at the last reading, and
// the rows that are gone. Versions that are written again without another content, as TRUNCATE and VACUUM FULL do, are
// read and compared. VACUUM changes rows of pg_class in place: nothing that is read of them depends on that.

// versioned is a catalog whose rows are looked at. Its rows are told apart by a number, which has the OID of the row's
// relation in its lower half; 0 is no relation.
type versioned struct {
	name string
	key  string // of a row x
	// the relation of a row in the upper half of the number counts as well
	both bool
	// rows come with others that are looked at, and go with them
	added bool
	where string
}

// half is the number of a row by its OID and its relation's OID.
func half(oid, relation string) string {
	return "x." + oid + "::int8 << 32 | " + relation + "::int8"
}

// ofRelations are the catalogs with rows about relations.
var ofRelations = []versioned{
	{name: "pg_class", key: half("oid", "x.oid")},
	{name: "pg_attribute", key: half("attnum", "x.attrelid"), added: true},
	{name: "pg_attrdef", key: half("oid", "x.adrelid")},
	{name: "pg_constraint", key: half("oid", "x.conrelid")},
	{name: "pg_index", key: half("indexrelid", "x.indrelid")},
	{name: "pg_inherits", key: half("inhparent", "x.inhrelid"), both: true},
	{name: "pg_partitioned_table", key: "x.partrelid::int8"},
	{name: "pg_foreign_table", key: "x.ftrelid::int8"},
	{name: "pg_policy", key: half("oid", "x.polrelid")},
	{name: "pg_rewrite", key: half("oid", "x.ev_class")},
	{name: "pg_statistic_ext", key: half("oid", "x.stxrelid")},
	{name: "pg_trigger", key: half("oid", "x.tgrelid")},
	{name: "pg_type", key: half("oid", `CASE WHEN x.typrelid <> 0 THEN x.typrelid ELSE COALESCE((SELECT e.typrelid
		FROM pg_type AS e WHERE e.oid = x.typelem AND e.typarray = x.oid), 0) END`)},
}

// ofOthers are the catalogs of which each change may concern everything.
var ofOthers = []versioned{
	{name: "pg_aggregate", key: "x.aggfnoid::oid::int8"},
	{name: "pg_am", key: "x.oid::int8"},
	{name: "pg_amop", key: "x.oid::int8"},
	{name: "pg_amproc", key: "x.oid::int8"},
	{name: "pg_cast", key: "x.oid::int8"},
	{name: "pg_collation", key: "x.oid::int8"},
	{name: "pg_depend", key: "x.classid::int8 << 32 | x.objid::int8",
		where: "x.refclassid = 'pg_extension'::regclass AND x.deptype = 'e'"},
	{name: "pg_enum", key: "x.oid::int8"},
	{name: "pg_extension", key: "x.oid::int8"},
	{name: "pg_foreign_server", key: "x.oid::int8"},
	{name: "pg_language", key: "x.oid::int8"},
	{name: "pg_namespace", key: "x.oid::int8", where: "x.nspname !~ '^pg_(temp|toast)'"},
	{name: "pg_opclass", key: "x.oid::int8"},
	{name: "pg_operator", key: "x.oid::int8"},
	{name: "pg_proc", key: "x.oid::int8"},
	{name: "pg_range", key: "x.rngtypid::int8"},
	{name: "pg_ts_config", key: "x.oid::int8"},
}

// scan is the query for how many rows the catalogs have, and for those whose xmin is not older than the transaction $1.
// It begins with the oldest transaction under way now. A row that was frozen very long ago may look new.
var scan = func() string {
	parts := []string{"SELECT '', pg_snapshot_xmin(pg_current_snapshot())::text::int8, NULL::text[]"}
	for _, c := range slices.Concat(ofRelations, ofOthers) {
		recent := "age(x.xmin) <= (SELECT age($1::xid))"
		number := fmt.Sprintf("array_agg((%s)::text || ' ' || x.xmin::text)", c.key)
		if c.added { // these are many, and are not counted
			parts = append(parts, fmt.Sprintf("SELECT '%[1]s', 0, %[2]s FROM %[1]s AS x WHERE %[3]s", c.name, number, recent))
			continue
		}
		part := fmt.Sprintf("SELECT '%[1]s', count(*), %[2]s FILTER (WHERE %[3]s) FROM %[1]s AS x", c.name, number, recent)
		if c.where != "" {
			part += " WHERE " + c.where
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "\nUNION ALL ")
}()

// numbers is the query for the numbers of all rows of a catalog.
func (c versioned) numbers() string {
	return fmt.Sprintf("SELECT COALESCE(array_agg(%s), '{}') FROM %s AS x", c.key, c.name)
}

// versions are the rows that the catalogs had when they were read.
type versions struct {
	xmin   uint64                    // the oldest transaction that was under way
	recent map[string]bool           // rows that transactions since then have written, as scan returns them
	counts map[string]int64          // how many rows each catalog had
	rows   map[string]map[int64]bool // the rows of each catalog of ofRelations
}

// changes is what differs from the rows that are known.
type changes struct {
	whole     bool // anything may have changed
	relations map[uint32]bool
	types     []uint32 // rows of pg_type that were written
	gone      []uint32 // rows of pg_type that are gone
	next      *versions
	added     map[string][]int64
	removed   map[string][]int64
}

// none tells whether nothing has changed.
func (c *changes) none() bool { return !c.whole && len(c.relations) == 0 }

// concern tells whether one of these relations was written. Facts leave out temporary tables.
func (c *changes) concern(of *facts) bool {
	for oid := range c.relations {
		if of.relations[oid] != nil {
			return true
		}
	}
	return false
}

// maxAge is how many transactions after the last reading the comparison of xmin is relied upon: ages are circular.
const maxAge = 1 << 30

// readVersions reads all rows, in the transaction that reads everything. xmin is the oldest transaction under way.
func (r *reader) readVersions(ctx context.Context) (*versions, error) {
	v := &versions{rows: map[string]map[int64]bool{}}
	for _, c := range ofRelations {
		if c.added {
			continue
		}
		var numbers []int64
		if err := r.tx.QueryRow(ctx, c.numbers()).Scan(&numbers); err != nil {
			return nil, err
		}
		rows := make(map[int64]bool, len(numbers))
		for _, n := range numbers {
			rows[n] = true
		}
		v.rows[c.name] = rows
	}
	if err := r.tx.QueryRow(ctx, "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::int8").Scan(&v.xmin); err != nil {
		return nil, err
	}
	found, err := r.changes(ctx, v)
	if err != nil {
		return nil, err
	}
	v.recent, v.counts = found.next.recent, found.next.counts
	return v, nil
}

// changes finds what has changed since versions were read.
func (r *reader) changes(ctx context.Context, v *versions) (*changes, error) {
	found := &changes{relations: map[uint32]bool{}, added: map[string][]int64{}, removed: map[string][]int64{},
		next: &versions{recent: map[string]bool{}, counts: map[string]int64{}}}
	var (
		name   string
		count  int64
		recent []string
	)
	written := map[string][]string{}
	if err := r.each(ctx, scan, []any{&name, &count, &recent}, func() error {
		found.next.counts[name], written[name], recent = count, recent, nil
		return nil
	}, uint32(v.xmin)); err != nil {
		return nil, err
	}
	found.next.xmin = uint64(found.next.counts[""])
	found.whole = found.next.xmin < v.xmin || found.next.xmin-v.xmin > maxAge
	for _, c := range ofOthers {
		news := found.news(c.name, written[c.name], v)
		found.whole = found.whole || len(news) > 0 || found.next.counts[c.name] != v.counts[c.name]
	}
	for _, c := range ofRelations {
		rows := v.rows[c.name]
		for _, row := range found.news(c.name, written[c.name], v) {
			text, _, _ := strings.Cut(row, " ")
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("a row of %s: %w", c.name, err)
			}
			found.add(c, n)
			if c.name == "pg_type" {
				found.types = append(found.types, uint32(n>>32))
			}
			if !c.added && !rows[n] {
				found.added[c.name] = append(found.added[c.name], n)
			}
		}
		if !c.added && int64(len(rows)+len(found.added[c.name])) != found.next.counts[c.name] {
			if err := r.findGone(ctx, c, rows, found); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// news notes the rows of a catalog that have been written lately, and returns those that are not known.
func (c *changes) news(catalog string, written []string, v *versions) (unknown []string) {
	for _, row := range written {
		key := catalog + " " + row
		c.next.recent[key] = true
		if !v.recent[key] {
			unknown = append(unknown, row)
		}
	}
	return unknown
}

// add notes that a row of a catalog was written or is gone.
func (c *changes) add(of versioned, number int64) {
	c.relations[uint32(number)] = true
	if of.both {
		c.relations[uint32(number>>32)] = true
	}
	c.whole = c.whole || uint32(number) == 0
}

// findGone finds which rows of a catalog are not there any more.
func (r *reader) findGone(ctx context.Context, c versioned, rows map[int64]bool, found *changes) error {
	var numbers []int64
	if err := r.tx.QueryRow(ctx, c.numbers()).Scan(&numbers); err != nil {
		return err
	}
	there := make(map[int64]bool, len(numbers))
	for _, n := range numbers {
		there[n] = true
		found.whole = found.whole || !rows[n] && !slices.Contains(found.added[c.name], n)
	}
	for n := range rows {
		if !there[n] {
			found.add(c, n)
			found.removed[c.name] = append(found.removed[c.name], n)
			if c.name == "pg_type" {
				found.gone = append(found.gone, uint32(n>>32))
			}
		}
	}
	return nil
}

// apply takes changes over.
func (v *versions) apply(c *changes) {
	v.xmin, v.recent, v.counts = c.next.xmin, c.next.recent, c.next.counts
	for name, numbers := range c.added {
		for _, n := range numbers {
			v.rows[name][n] = true
		}
	}
	for name, numbers := range c.removed {
		for _, n := range numbers {
			delete(v.rows[name], n)
		}
	}
}
