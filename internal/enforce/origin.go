package enforce

import (
	"slices"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// A rewritten statement often reads a view of pgconsent in place of the relation that the client named. The
// RowDescription that the client gets still names the client's relation: drivers use it to find a column's table and
// whether the column may be NULL. So the client also cannot tell which path a statement took.

// firstUserOID is the lowest OID of objects that are not PostgreSQL's own (FirstNormalObjectId, access/transam.h).
const firstUserOID = 16384

// origins maps the columns of pgconsent's views to the columns of the relations that they replace. It also lists the
// relations whose own OIDs agents may see.
type origins struct {
	sources       map[verdict.Origin]verdict.Origin
	clientVisible map[uint32]bool
}

// ClientOrigin returns the column that the client's RowDescription names in place of o. It returns the zero Origin if o
// is not known.
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

// replacementViews returns the names of the views that a rewritten statement may read in place of a relation.
func replacementViews(n catalog.Name) []catalog.Name {
	return []catalog.Name{
		predicate.SignedView(n), predicate.SignedLookupView(n), predicate.GroupView(n), predicate.RowView(n),
		predicate.FilteredRowView(n), predicate.KeyedView(n, false), predicate.KeyedView(n, true),
	}
}

// setOrigins computes origins and keyColumns for the present state, from the columns of the views that replace
// relations. The caller holds mu.
func (d *database) setOrigins() {
	if d.state == d.originsState {
		return
	}
	sources := map[uint32]catalog.Name{} // the relations that clients know, by the OIDs of the tables and views read
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
