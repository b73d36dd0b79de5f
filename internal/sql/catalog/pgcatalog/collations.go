package pgcatalog

import (
	"context"
	"maps"
	"slices"
)

// defaultCollation is the OID of the database's own collation (DEFAULT_COLLATION_OID, pg_collation.dat).
const defaultCollation = 100

type collation struct {
	name             string
	nondeterministic bool
}

// readCollationNames reads the names of those given collations that were not read before, except the database's default
// collation.
func (l *loader) readCollationNames(ctx context.Context, oids map[uint32]bool) error {
	unknown := slices.DeleteFunc(slices.Sorted(maps.Keys(oids)), func(oid uint32) bool {
		_, isKnown := l.collations[oid]
		return isKnown || oid == 0 || oid == defaultCollation
	})
	if len(unknown) == 0 {
		return nil
	}
	var (
		oid uint32
		c   collation
	)
	return l.each(ctx, `SELECT l.oid, trim('"' FROM l.oid::regcollation::text), NOT l.collisdeterministic
		FROM pg_collation AS l WHERE l.oid = ANY ($1::oid[])`,
		[]any{&oid, &c.name, &c.nondeterministic},
		func() error {
			l.collations[oid] = c
			return nil
		}, unknown)
}

// readRangeTypes reads the subtypes of ranges, the ranges of multiranges, and the collations of ranges.
func (l *loader) readRangeTypes(ctx context.Context) error {
	l.rangeTypes, l.rangeCollation = map[uint32][]uint32{}, map[uint32]uint32{}
	var rangeType, memberType, collationOID uint32
	return l.each(ctx, `SELECT r.rngtypid, r.rngsubtype, r.rngcollation FROM pg_range AS r
		UNION ALL SELECT r.rngmultitypid, r.rngtypid, 0::oid FROM pg_range AS r`,
		[]any{&rangeType, &memberType, &collationOID},
		func() error {
			l.rangeTypes[rangeType] = append(l.rangeTypes[rangeType], memberType)
			if collationOID != 0 {
				l.rangeCollation[rangeType] = collationOID
			}
			return nil
		})
}

// setTypeCollations finds for each type the collations that its values have, also those of their elements and fields.
// Of the types in pg_catalog only name has a collation of its own, and the rewriter knows that.
func (l *loader) setTypeCollations(ctx context.Context) error {
	collationsOf, containingTypes := map[uint32]map[uint32]bool{}, map[uint32][]uint32{}
	var pending []uint32 // types with a collation that was found and not yet passed on to the types that contain them
	add := func(oid, collation uint32) {
		if collation == 0 || collation == defaultCollation || collationsOf[oid][collation] {
			return
		}
		if collationsOf[oid] == nil {
			collationsOf[oid] = map[uint32]bool{}
		}
		collationsOf[oid][collation] = true
		pending = append(pending, oid)
	}
	for oid, t := range l.objects.types {
		add(oid, t.collation)
		for _, contained := range append([]uint32{t.element, t.base}, l.rangeTypes[oid]...) {
			if contained != 0 {
				containingTypes[contained] = append(containingTypes[contained], oid)
			}
		}
	}
	for oid, collation := range l.rangeCollation {
		add(oid, collation)
	}
	for oid, relation := range l.relations {
		row := l.catalogFacts.relations[oid].row.rowType
		if row == 0 || relation.Name.Schema == "pg_catalog" || relation.Name.Schema == "information_schema" {
			continue
		}
		for i, c := range relation.Columns {
			add(row, l.attributes[oid][i].collation)
			containingTypes[c.TypeOID] = append(containingTypes[c.TypeOID], row)
		}
	}
	usedCollations := map[uint32]bool{}
	for len(pending) > 0 {
		oid := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		for collation := range collationsOf[oid] {
			usedCollations[collation] = true
			for _, container := range containingTypes[oid] {
				add(container, collation)
			}
		}
	}
	if err := l.readCollationNames(ctx, usedCollations); err != nil {
		return err
	}
	l.spec.Collations = map[uint32][]string{}
	for oid, collations := range collationsOf {
		if t := l.objects.types[oid]; t == nil || t.inCatalog {
			continue
		}
		var names []string
		for collation := range collations {
			names = append(names, l.collations[collation].name)
		}
		slices.Sort(names)
		l.spec.Collations[oid] = names
	}
	return nil
}
