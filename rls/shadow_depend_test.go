package rls_test

import "testing"

// Drivers find the key to which a foreign key refers in pg_depend. A dependency is shown only if both sides are visible
// relations, columns or constraints.
func TestDependenciesShowIfBothSidesAreVisible(t *testing.T) {
	w := newWorld(t,
		"CREATE TABLE hidden_table (id uuid PRIMARY KEY REFERENCES memories, CHECK (id IS NOT NULL))",
		"ALTER TABLE memories ADD COLUMN c text, ADD UNIQUE (title, c), ADD EXCLUDE USING btree (id WITH =)",
	).migrate()
	agent := w.agent(user1)
	isVisibleSide := func(class, object, column string) string {
		return "((" + class + " = 'pg_catalog.pg_class'::regclass AND (" +
			object + " IN (SELECT r.oid FROM pgconsent_catalog.pg_class AS r) AND (" + column +
			" = 0 OR (" + object + ", " + column + ") IN (SELECT a.attrelid, a.attnum FROM pgconsent_catalog.pg_attribute AS a))))" +
			" OR (" + class + " = 'pg_catalog.pg_constraint'::regclass AND " + object + " IN (SELECT k.oid FROM pgconsent_catalog.pg_constraint AS k)))"
	}
	areBothVisible := isVisibleSide("d.classid", "d.objid", "d.objsubid") + " AND " +
		isVisibleSide("d.refclassid", "d.refobjid", "d.refobjsubid")
	w.want(agent, "SELECT count(*) FROM (SELECT * FROM pg_catalog.pg_depend AS d WHERE "+
		areBothVisible+" EXCEPT SELECT * FROM pgconsent_catalog.pg_depend) AS x", "0")
	w.want(agent, "SELECT count(*) FROM pgconsent_catalog.pg_depend AS d WHERE NOT ("+areBothVisible+")", "0")
	w.want(agent, `SELECT f.conname || ' ' || i.relname || ' ' || u.conname FROM pgconsent_catalog.pg_constraint AS f
		JOIN pgconsent_catalog.pg_depend AS d ON d.classid = 'pg_catalog.pg_constraint'::regclass AND d.objid = f.oid
			AND d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjsubid = 0 AND d.deptype = 'n'
		JOIN pgconsent_catalog.pg_class AS i ON i.oid = d.refobjid AND i.relkind = 'i'
		JOIN pgconsent_catalog.pg_depend AS e ON e.classid = 'pg_catalog.pg_class'::regclass AND e.objid = i.oid
			AND e.refclassid = 'pg_catalog.pg_constraint'::regclass AND e.deptype = 'i'
		JOIN pgconsent_catalog.pg_constraint AS u ON u.oid = e.refobjid WHERE f.contype = 'f'`,
		"memory_participants_memory_id_fkey memories_pkey memories_pkey")
}
