package enforce

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// A statement often reads a view of pgconsent in place of the relation that it names. The RowDescription that the
// client gets names that relation nevertheless: drivers look up in it whether a column may be NULL and which table it
// belongs to. And nobody learns which path a statement took.

// firstUserOID is the least OID that is not PostgreSQL's own (FirstNormalObjectId, access/transam.h).
const firstUserOID = 16384

// origins maps the columns of views that replace relations to the columns that agents know, and lists the relations
// that agents know by their own OID.
type origins struct {
	sources       map[verdict.Origin]verdict.Origin
	clientVisible map[uint32]bool
}

// ClientOrigin returns the column that agents are told in place of this one, and the zero Origin if the column is not
// known here.
func (s *session) ClientOrigin(o verdict.Origin) verdict.Origin {
	known := s.db.origins.Load()
	switch {
	case o == verdict.Origin{}:
		return o
	case known == nil:
		return verdict.Origin{}
	}
	if source, ours := known.sources[o]; ours {
		return source
	}
	if o.Relation < firstUserOID || known.clientVisible[o.Relation] {
		return o
	}
	return verdict.Origin{}
}

// replacementViews returns the views that statements may read in place of a relation.
func replacementViews(n catalog.Name) []catalog.Name {
	return []catalog.Name{
		predicate.SignedView(n), predicate.SignedLookupView(n), predicate.GroupView(n), predicate.RowView(n),
		predicate.FilteredRowView(n), predicate.KeyedView(n, false), predicate.KeyedView(n, true),
	}
}

// setOrigins reads the columns of the views that replace relations, and the columns of recorded keys. The caller holds
// mu.
func (d *database) setOrigins() {
	if d.state == d.originsState {
		return
	}
	sources := map[uint32]catalog.Name{} // the relations from which views read, by the OIDs of views and tables
	add := func(view, of catalog.Name) {
		if relation, ok := d.catalogs.Relation(view); ok {
			sources[relation.OID] = of
		}
	}
	keyed := map[catalog.Name]*policy.Table{}
	for _, table := range d.state.policy.Tables() {
		if table.AuditKeys {
			keyed[table.Relation.Name] = table
		}
		add(table.Relation.Name, table.Relation.Name)
		for _, view := range replacementViews(table.Relation.Name) {
			add(view, table.Relation.Name)
		}
	}
	for _, v := range d.state.policy.Views() {
		for _, view := range replacementViews(v.Relation.Name) {
			add(view, v.Relation.Name)
		}
	}
	for _, shadow := range catalog.Shadows() {
		add(shadow.View(), shadow.Source)
	}
	newOrigins := &origins{sources: map[verdict.Origin]verdict.Origin{}, clientVisible: map[uint32]bool{}}
	for _, relation := range d.state.snapshot.Relations() {
		newOrigins.clientVisible[relation.OID] = true
	}
	keys := keyColumns{}
	for view, of := range sources {
		origin, ok := d.catalogs.Relation(of)
		if !ok {
			continue
		}
		numbers := d.reader.ColumnNumbers(origin.OID)
		for name, number := range d.reader.ColumnNumbers(view) {
			source, ok := numbers[name]
			if !ok {
				continue
			}
			newOrigins.sources[verdict.Origin{Relation: view, Number: number}] = verdict.Origin{Relation: origin.OID,
				Number: source}
			table := keyed[of]
			if table == nil {
				continue
			}
			if keyPosition := slices.Index(table.Relation.PrimaryKey, name); keyPosition >= 0 {
				if keys[view] == nil {
					keys[view] = map[uint16]keyColumn{}
				}
				keys[view][uint16(number)] = keyColumn{of.String(), keyPosition, len(table.Relation.PrimaryKey)}
			}
		}
	}
	d.origins.Store(newOrigins)
	d.keyColumns.Store(&keys)
	d.originsState = d.state
}
