package pgcatalog

import (
	"context"
	"maps"
	"reflect"
	"slices"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// dependentsQuery finds the relations whose facts must be read again after the relations $1 have changed. The result
// includes the relations $1 themselves. Most facts depend only on a relation's own rows in the catalogs. But views,
// defaults, checks and indexes contain names of other relations, and whether a view can be written depends on the
// relations that it reads. The second column is true if more than relations may have changed: something uses the row
// type of a changed relation. OFFSET 0 and LIMIT make the planner use the indexes of the catalogs, since it does not
// know how few relations have changed.
const dependentsQuery = `
WITH RECURSIVE changed (oid) AS (
  SELECT unnest($1::oid[])
  UNION SELECT w.ev_class FROM changed AS c CROSS JOIN LATERAL (SELECT w.ev_class FROM pg_depend AS d
    JOIN pg_rewrite AS w ON w.oid = d.objid WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid
      AND d.classid = 'pg_rewrite'::regclass OFFSET 0) AS w
), dependent AS MATERIALIZED (
  SELECT c.oid AS of, d.classid, d.objid FROM changed AS c CROSS JOIN LATERAL (SELECT d.classid, d.objid
    FROM pg_depend AS d WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = c.oid
      AND d.classid <> 'pg_rewrite'::regclass OFFSET 0) AS d
)
SELECT c.oid, COALESCE(r.relkind = 'c', false) FROM changed AS c
  LEFT JOIN LATERAL (SELECT r.relkind FROM pg_class AS r WHERE r.oid = c.oid OFFSET 0) AS r ON true
UNION ALL SELECT c.oid, true FROM changed AS c CROSS JOIN LATERAL (SELECT
  FROM pg_class AS r JOIN pg_type AS t ON t.oid = r.reltype
  CROSS JOIN LATERAL (VALUES (t.oid), (t.typarray)) AS o (oid) CROSS JOIN LATERAL (SELECT FROM pg_depend AS d
    WHERE d.refclassid = 'pg_type'::regclass AND d.refobjid = o.oid
      AND NOT (d.classid = 'pg_type'::regclass AND d.objid = t.typarray) OFFSET 0) AS d
  WHERE r.oid = c.oid AND r.reltype <> 0 AND o.oid <> 0 LIMIT 1) AS used
UNION ALL SELECT i.indrelid, false FROM changed AS c CROSS JOIN LATERAL (SELECT i.indrelid FROM pg_index AS i
  WHERE i.indexrelid = c.oid OFFSET 0) AS i
UNION ALL SELECT f.adrelid, false FROM dependent AS d CROSS JOIN LATERAL (SELECT f.adrelid FROM pg_attrdef AS f
  WHERE f.oid = d.objid OFFSET 0) AS f WHERE d.classid = 'pg_attrdef'::regclass
UNION ALL SELECT k.conrelid, k.conrelid = 0 FROM dependent AS d CROSS JOIN LATERAL (SELECT k.conrelid
  FROM pg_constraint AS k WHERE k.oid = d.objid AND k.contype = 'c' OFFSET 0) AS k WHERE d.classid = 'pg_constraint'::regclass
UNION ALL SELECT i.indrelid, false FROM dependent AS d CROSS JOIN LATERAL (SELECT i.indrelid FROM pg_index AS i
  WHERE i.indexrelid = d.objid OFFSET 0) AS i WHERE d.classid = 'pg_class'::regclass
UNION ALL SELECT d.of, t.typrelid <> d.of FROM dependent AS d CROSS JOIN LATERAL (SELECT t.typrelid FROM pg_type AS t
  WHERE t.oid = d.objid OFFSET 0) AS t WHERE d.classid = 'pg_type'::regclass
UNION ALL SELECT d.of, true FROM dependent AS d WHERE d.classid NOT IN ('pg_attrdef'::regclass, 'pg_class'::regclass,
  'pg_constraint'::regclass, 'pg_policy'::regclass, 'pg_proc'::regclass, 'pg_publication_rel'::regclass,
  'pg_statistic_ext'::regclass, 'pg_trigger'::regclass, 'pg_type'::regclass)`

// addDependents adds to the changes the relations whose facts depend on changed relations.
func (r *Reader) addDependents(ctx context.Context, source catalogReader, catalogChanges *changes) error {
	if catalogChanges.readAll {
		return nil
	}
	for oid := range catalogChanges.relations {
		if f := r.facts.relations[oid]; f != nil && f.row.Kind == catalog.Composite {
			catalogChanges.readAll = true
			return nil
		}
	}
	var (
		oid           uint32
		othersChanged bool
	)
	return source.each(ctx, dependentsQuery, []any{&oid, &othersChanged}, func() error {
		catalogChanges.relations[oid] = true
		catalogChanges.readAll = catalogChanges.readAll || othersChanged
		return nil
	}, sortedKeys(catalogChanges.relations))
}

// ownersRenamed tells whether a role that owns relations has been renamed since the facts were read.
func (r *catalogReader) ownersRenamed(ctx context.Context, f *catalogFacts) (renamed bool, err error) {
	owners := map[uint32]string{}
	for _, facts := range f.relations {
		owners[facts.row.owner] = facts.row.Owner
	}
	var names []string
	oids := sortedKeys(owners)
	for _, oid := range oids {
		names = append(names, owners[oid])
	}
	return renamed, r.tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM unnest($1::oid[], $2::text[]) AS o (oid, name)
		WHERE pg_get_userbyid(o.oid)::text <> o.name)`, oids, names).Scan(&renamed)
}

// readChanged reads the facts about changed relations again. It returns f itself if no fact has changed.
func (f *catalogFacts) readChanged(ctx context.Context, source catalogReader,
	catalogChanges *changes) (*catalogFacts, error) {
	newFacts := *f
	oids := sortedKeys(catalogChanges.relations)
	relations := relationReader{catalogReader: source, oids: oids, objects: &newFacts.objects}
	if err := relations.read(ctx); err != nil {
		return nil, err
	}
	l := &loader{catalogReader: source, catalogFacts: &newFacts}
	if err := l.readPolicies(ctx); err != nil {
		return nil, err
	}
	isUnchanged := reflect.DeepEqual(f.policies, newFacts.policies)
	for _, oid := range oids {
		isUnchanged = isUnchanged && reflect.DeepEqual(f.relations[oid], relations.facts[oid])
	}
	if len(catalogChanges.types)+len(catalogChanges.droppedTypes) > 0 {
		types := maps.Clone(f.objects.types)
		for _, oid := range slices.Concat(catalogChanges.droppedTypes, catalogChanges.types) {
			delete(types, oid)
		}
		if err := l.readTypeFacts(ctx, types, "t.oid = ANY ($1::oid[])", catalogChanges.types); err != nil {
			return nil, err
		}
		if !reflect.DeepEqual(types, f.objects.types) {
			newFacts.objects.setTypes(types)
			isUnchanged = false
		}
	}
	if isUnchanged {
		return f, nil
	}
	newFacts.relations = maps.Clone(f.relations)
	for _, oid := range oids {
		delete(newFacts.relations, oid)
	}
	maps.Copy(newFacts.relations, relations.facts)
	return &newFacts, newLoader(source, &newFacts).readCalledFunctions(ctx)
}

// sortedKeys returns the keys of a map by OID, in ascending order.
func sortedKeys[V any](keys map[uint32]V) []uint32 { return slices.Sorted(maps.Keys(keys)) }
