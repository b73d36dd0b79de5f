package pgcatalog

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// PostgreSQL never changes a row of a catalog in place: DDL writes a new version of the row, with its transaction in
// xmin. So rows have changed if their xmin is not older than the oldest transaction that was running at the last
// reading. Rows that no longer exist have changed, too. TRUNCATE and VACUUM FULL write new versions without another
// content; these are read again and compared. VACUUM does change rows of pg_class in place, but only columns that are
// not read here.

// watchedCatalog is a catalog that is searched for changed rows. Each row is identified by a number, whose lower half
// is the OID of the relation that the row is about. The lower half is 0 if the row is about no relation.
type watchedCatalog struct {
	name string
	key  string // the SQL that computes the number of a row x
	// the upper half of the number is the OID of a second relation
	keyHasRelation bool
	// rows are added and deleted only together with rows of other watched catalogs
	changesWithOthers bool
	where             string
}

// rowNumberSQL returns the SQL that computes a row's number from the row's OID and the OID of its relation.
func rowNumberSQL(oid, relation string) string {
	return "x." + oid + "::int8 << 32 | " + relation + "::int8"
}

// relationCatalogs are the catalogs whose rows are about relations.
var relationCatalogs = []watchedCatalog{
	{name: "pg_class", key: rowNumberSQL("oid", "x.oid")},
	{name: "pg_attribute", key: rowNumberSQL("attnum", "x.attrelid"), changesWithOthers: true},
	{name: "pg_attrdef", key: rowNumberSQL("oid", "x.adrelid")},
	{name: "pg_constraint", key: rowNumberSQL("oid", "x.conrelid")},
	{name: "pg_index", key: rowNumberSQL("indexrelid", "x.indrelid")},
	{name: "pg_inherits", key: rowNumberSQL("inhparent", "x.inhrelid"), keyHasRelation: true},
	{name: "pg_partitioned_table", key: "x.partrelid::int8"},
	{name: "pg_foreign_table", key: "x.ftrelid::int8"},
	{name: "pg_policy", key: rowNumberSQL("oid", "x.polrelid")},
	{name: "pg_rewrite", key: rowNumberSQL("oid", "x.ev_class")},
	{name: "pg_statistic_ext", key: rowNumberSQL("oid", "x.stxrelid")},
	{name: "pg_trigger", key: rowNumberSQL("oid", "x.tgrelid")},
	{name: "pg_type", key: rowNumberSQL("oid", `CASE WHEN x.typrelid <> 0 THEN x.typrelid ELSE COALESCE((SELECT e.typrelid
		FROM pg_type AS e WHERE e.oid = x.typelem AND e.typarray = x.oid), 0) END`)},
}

// otherCatalogs are the catalogs whose changes may affect anything, so that everything is read again.
var otherCatalogs = []watchedCatalog{
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

// changesQuery returns for each catalog the number of its rows, and the rows whose xmin is not older than the
// transaction $1. Its first row has the oldest transaction that is running now. A row that was frozen very long ago may
// wrongly count as new.
var changesQuery = func() string {
	parts := []string{"SELECT '', pg_snapshot_xmin(pg_current_snapshot())::text::int8, NULL::text[]"}
	for _, c := range slices.Concat(relationCatalogs, otherCatalogs) {
		recent := "age(x.xmin) <= (SELECT age($1::xid))"
		number := fmt.Sprintf("array_agg((%s)::text || ' ' || x.xmin::text)", c.key)
		if c.changesWithOthers { // such catalogs have many rows, and counting them would take long
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

// rowNumbersQuery returns the query for the numbers of all rows of a catalog.
func (c watchedCatalog) rowNumbersQuery() string {
	return fmt.Sprintf("SELECT COALESCE(array_agg(%s), '{}') FROM %s AS x", c.key, c.name)
}

// versions describes the rows of the catalogs at the last reading.
type versions struct {
	xmin uint64 // the oldest transaction that was running at the last reading
	// the rows written by that transaction and later ones, as changesQuery returns them
	recentRows map[string]bool
	rowCounts  map[string]int64          // number of rows of each catalog
	knownRows  map[string]map[int64]bool // the rows of each of the relationCatalogs
}

// changes describes how the catalogs differ from the rows of the last reading.
type changes struct {
	readAll      bool // anything may have changed
	relations    map[uint32]bool
	types        []uint32 // rows of pg_type that were written
	droppedTypes []uint32 // OIDs of types that were dropped
	newVersions  *versions
	addedRows    map[string][]int64
	removedRows  map[string][]int64
}

// isEmpty tells whether nothing has changed.
func (c *changes) isEmpty() bool { return !c.readAll && len(c.relations) == 0 }

// concerns tells whether one of the changed relations is in these facts, which leave out temporary tables.
func (c *changes) concerns(facts *catalogFacts) bool {
	for oid := range c.relations {
		if facts.relations[oid] != nil {
			return true
		}
	}
	return false
}

// maxTransactionAge is the number of transactions after the last reading up to which ages of xmin are compared.
// Transaction numbers wrap around, so older ages would be wrong.
const maxTransactionAge = 1 << 30

// readVersions reads the state of all catalogs, in the transaction that reads everything. The field xmin of its result
// is the oldest transaction that is running.
func (r *catalogReader) readVersions(ctx context.Context) (*versions, error) {
	v := &versions{knownRows: map[string]map[int64]bool{}}
	for _, c := range relationCatalogs {
		if c.changesWithOthers {
			continue
		}
		var numbers []int64
		if err := r.tx.QueryRow(ctx, c.rowNumbersQuery()).Scan(&numbers); err != nil {
			return nil, err
		}
		rows := make(map[int64]bool, len(numbers))
		for _, n := range numbers {
			rows[n] = true
		}
		v.knownRows[c.name] = rows
	}
	if err := r.tx.QueryRow(ctx, "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::int8").Scan(&v.xmin); err != nil {
		return nil, err
	}
	found, err := r.changes(ctx, v)
	if err != nil {
		return nil, err
	}
	v.recentRows, v.rowCounts = found.newVersions.recentRows, found.newVersions.rowCounts
	return v, nil
}

// changes finds the differences between the catalogs and the versions of the last reading.
func (r *catalogReader) changes(ctx context.Context, v *versions) (*changes, error) {
	catalogChanges := &changes{relations: map[uint32]bool{}, addedRows: map[string][]int64{},
		removedRows: map[string][]int64{},
		newVersions: &versions{recentRows: map[string]bool{}, rowCounts: map[string]int64{}}}
	var (
		name   string
		count  int64
		recent []string
	)
	writtenRows := map[string][]string{}
	if err := r.each(ctx, changesQuery, []any{&name, &count, &recent}, func() error {
		catalogChanges.newVersions.rowCounts[name], writtenRows[name], recent = count, recent, nil
		return nil
	}, uint32(v.xmin)); err != nil {
		return nil, err
	}
	catalogChanges.newVersions.xmin = uint64(catalogChanges.newVersions.rowCounts[""])
	catalogChanges.readAll = catalogChanges.newVersions.xmin < v.xmin ||
		catalogChanges.newVersions.xmin-v.xmin > maxTransactionAge
	for _, c := range otherCatalogs {
		unknownRows := catalogChanges.addWrittenCatalog(c.name, writtenRows[c.name], v)
		catalogChanges.readAll = catalogChanges.readAll || len(unknownRows) > 0 ||
			catalogChanges.newVersions.rowCounts[c.name] != v.rowCounts[c.name]
	}
	for _, c := range relationCatalogs {
		rows := v.knownRows[c.name]
		for _, row := range catalogChanges.addWrittenCatalog(c.name, writtenRows[c.name], v) {
			text, _, _ := strings.Cut(row, " ")
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("a row of %s: %w", c.name, err)
			}
			catalogChanges.addRow(c, n)
			if c.name == "pg_type" {
				catalogChanges.types = append(catalogChanges.types, uint32(n>>32))
			}
			if !c.changesWithOthers && !rows[n] {
				catalogChanges.addedRows[c.name] = append(catalogChanges.addedRows[c.name], n)
			}
		}
		if !c.changesWithOthers &&
			int64(len(rows)+len(catalogChanges.addedRows[c.name])) != catalogChanges.newVersions.rowCounts[c.name] {
			if err := r.findDroppedRows(ctx, c, rows, catalogChanges); err != nil {
				return nil, err
			}
		}
	}
	return catalogChanges, nil
}

// addWrittenCatalog notes the recently written rows of a catalog, and returns those that the last reading did not have.
func (c *changes) addWrittenCatalog(catalog string, writtenRows []string, v *versions) (unknown []string) {
	for _, row := range writtenRows {
		key := catalog + " " + row
		c.newVersions.recentRows[key] = true
		if !v.recentRows[key] {
			unknown = append(unknown, row)
		}
	}
	return unknown
}

// addRow notes that a row of a catalog was written or deleted.
func (c *changes) addRow(watched watchedCatalog, number int64) {
	c.relations[uint32(number)] = true
	if watched.keyHasRelation {
		c.relations[uint32(number>>32)] = true
	}
	c.readAll = c.readAll || uint32(number) == 0
}

// findDroppedRows finds which rows of a catalog are not there any more.
func (r *catalogReader) findDroppedRows(ctx context.Context, c watchedCatalog, rows map[int64]bool,
	catalogChanges *changes) error {
	var numbers []int64
	if err := r.tx.QueryRow(ctx, c.rowNumbersQuery()).Scan(&numbers); err != nil {
		return err
	}
	exists := make(map[int64]bool, len(numbers))
	for _, n := range numbers {
		exists[n] = true
		catalogChanges.readAll = catalogChanges.readAll || !rows[n] && !slices.Contains(catalogChanges.addedRows[c.name], n)
	}
	for n := range rows {
		if !exists[n] {
			catalogChanges.addRow(c, n)
			catalogChanges.removedRows[c.name] = append(catalogChanges.removedRows[c.name], n)
			if c.name == "pg_type" {
				catalogChanges.droppedTypes = append(catalogChanges.droppedTypes, uint32(n>>32))
			}
		}
	}
	return nil
}

// update applies the changes to the versions.
func (v *versions) update(c *changes) {
	v.xmin, v.recentRows, v.rowCounts = c.newVersions.xmin, c.newVersions.recentRows, c.newVersions.rowCounts
	for name, numbers := range c.addedRows {
		for _, n := range numbers {
			v.knownRows[name][n] = true
		}
	}
	for name, numbers := range c.removedRows {
		for _, n := range numbers {
			delete(v.knownRows[name], n)
		}
	}
}
