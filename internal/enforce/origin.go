package enforce

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// A statement often reads a view of pgconsent in place of the relation that it names. Its RowDescription names that
// relation all the same: drivers look up there whether a column may be NULL and which table it belongs to. And nobody
// learns which path a statement took.

// firstUserOID is the least OID that is not PostgreSQL's own (FirstNormalObjectId, access/transam.h).
const firstUserOID = 16384

// origins maps the columns of these views to the columns that agents know, and lists the relations that agents know by
// their own OID.
type origins struct {
	sources       map[verdict.Origin]verdict.Origin
	clientVisible map[uint32]bool
}

// Origin is the column that agents are told in place of this one; the zero Origin if it is not known here.
func (s *session) Origin(o verdict.Origin) verdict.Origin {
	known := s.db.origins.Load()
	switch {
	case o == verdict.Origin{}:
		return o
	case known == nil:
		return verdict.Origin{}
	}
	if of, ours := known.sources[o]; ours {
		return of
	}
	if o.Relation < firstUserOID || known.clientVisible[o.Relation] {
		return o
	}
	return verdict.Origin{}
}

// replacementViews are the views that statements may read in place of a relation.
func replacementViews(n catalog.Name) []catalog.Name {
	return []catalog.Name{
		predicate.SignedView(n), predicate.SignedHelperView(n), predicate.GroupView(n), predicate.RowView(n),
		predicate.FilteredRowView(n), predicate.KeyedView(n, false), predicate.KeyedView(n, true),
	}
}

// readOrigins reads the columns of these views, and the columns of recorded keys. The caller holds mu.
func (d *database) readOrigins(ctx context.Context) error {
	if d.state == d.originsState {
		return nil
	}
	var schemas, names, ofSchemas, ofNames []string
	add := func(view, of catalog.Name) {
		schemas, names, ofSchemas, ofNames = append(schemas, view.Schema), append(names, view.Name), append(ofSchemas,
			of.Schema), append(ofNames, of.Name)
	}
	keyed := map[catalog.Name]*policy.Table{}
	for _, t := range d.state.policy.Tables() {
		if t.AuditKeys {
			keyed[t.Relation.Name] = t
		}
		add(t.Relation.Name, t.Relation.Name)
		for _, view := range replacementViews(t.Relation.Name) {
			add(view, t.Relation.Name)
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
	rows, err := d.conn.Query(ctx, `SELECT w.of_schema, w.of_name, c.oid, a.attnum, a.attname::pg_catalog.text, o.oid, b.attnum
		FROM ROWS FROM (pg_catalog.unnest($1::pg_catalog.text[]), pg_catalog.unnest($2::pg_catalog.text[]),
			pg_catalog.unnest($3::pg_catalog.text[]), pg_catalog.unnest($4::pg_catalog.text[])) AS w (schema, name, of_schema, of_name)
		JOIN pg_catalog.pg_namespace AS s ON s.nspname = w.schema JOIN pg_catalog.pg_class AS c ON c.relnamespace = s.oid AND c.relname = w.name
		JOIN pg_catalog.pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		JOIN pg_catalog.pg_namespace AS p ON p.nspname = w.of_schema
		JOIN pg_catalog.pg_class AS o ON o.relnamespace = p.oid AND o.relname = w.of_name
		JOIN pg_catalog.pg_attribute AS b ON b.attrelid = o.oid AND b.attname = a.attname
			AND b.attnum > 0 AND NOT b.attisdropped`, schemas, names, ofSchemas, ofNames)
	if err != nil {
		return fmt.Errorf("columns of views: %w", err)
	}
	known := &origins{sources: map[verdict.Origin]verdict.Origin{}, clientVisible: map[uint32]bool{}}
	for _, r := range d.state.snapshot.Relations() {
		known.clientVisible[r.OID] = true
	}
	keys := keyColumns{}
	var of catalog.Name
	var name string
	var view, origin verdict.Origin
	_, err = pgx.ForEachRow(rows, []any{&of.Schema, &of.Name, &view.Relation, &view.Number, &name, &origin.Relation,
		&origin.Number}, func() error {
		known.sources[view] = origin
		t := keyed[of]
		if t == nil {
			return nil
		}
		if part := slices.Index(t.Relation.PrimaryKey, name); part >= 0 {
			if keys[view.Relation] == nil {
				keys[view.Relation] = map[uint16]keyPart{}
			}
			keys[view.Relation][uint16(view.Number)] = keyPart{of.String(), part, len(t.Relation.PrimaryKey)}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("columns of views: %w", err)
	}
	d.origins.Store(known)
	d.keyColumns.Store(&keys)
	d.originsState = d.state
	return nil
}
