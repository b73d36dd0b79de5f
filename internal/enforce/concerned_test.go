package enforce

import (
	"testing"
	"time"
)

// TestChangesOfOneRelationAndOfAllAreNotedAlike: pgconsent.concerns(), which tells of one relation whether its changes
// concern agents, agrees with pgconsent.concerned(), which lists all such relations. The schema has every kind of
// dependency between relations.
func TestChangesOfOneRelationAndOfAllAreNotedAlike(t *testing.T) {
	w := start(t, func(w *world) { w.cfg.ProbeInterval, w.cfg.StaleAfter = time.Hour, time.Hour })
	w.exec(`CREATE SCHEMA elsewhere; CREATE TABLE elsewhere.alone (id serial PRIMARY KEY); CREATE TABLE elsewhere.child (more serial) INHERITS (public.memories);
		CREATE TABLE elsewhere.points (memory bigint REFERENCES public.memories); CREATE TABLE elsewhere.on_and_on (id int PRIMARY KEY);
		ALTER TABLE elsewhere.points ADD COLUMN id int REFERENCES elsewhere.on_and_on; CREATE TABLE elsewhere.read (id int);
		CREATE VIEW elsewhere.reads AS SELECT id FROM elsewhere.read;
		CREATE TABLE elsewhere.memories (id int); CREATE DOMAIN public.named AS int; CREATE TABLE elsewhere.named (id int);
		CREATE SEQUENCE elsewhere.counter; ALTER TABLE public.memories ADD COLUMN n int DEFAULT nextval('elsewhere.counter');
		CREATE TABLE elsewhere.held (id int); CREATE TABLE elsewhere.holds (whole elsewhere.held); CREATE TABLE elsewhere.asks (id int);
		CREATE TABLE elsewhere.asked (id int); CREATE POLICY asks ON elsewhere.asks USING (EXISTS (SELECT FROM elsewhere.asked));
		CREATE FUNCTION elsewhere.taken(elsewhere.asks) RETURNS int LANGUAGE sql AS 'SELECT 1'`)
	var all, others int
	var alone bool
	if err := w.dba.QueryRow(t.Context(), `SELECT count(*), count(*) FILTER (WHERE pgconsent.concerns(c.oid) <> (c.oid IN (SELECT pgconsent.concerned()))),
			bool_or(pgconsent.concerns(c.oid)) FILTER (WHERE c.relname ~ 'alone')
		FROM pg_class AS c WHERE c.relkind IN ('r', 'p', 'S', 'v', 'm', 'f', 'c')
			AND c.relnamespace IN ('elsewhere'::regnamespace, 'public'::regnamespace)`).Scan(&all, &others, &alone); err != nil {
		t.Fatal(err)
	}
	if all < 15 || others > 0 || alone {
		t.Errorf("of %d relations %d are told otherwise by themselves; one that nothing leads to concerns agents: %t", all, others, alone)
	}
	for _, name := range []string{"child", "points", "on_and_on", "read", "memories", "named", "counter", "held", "asked", "asks"} {
		var does bool
		if err := w.dba.QueryRow(t.Context(), "SELECT pgconsent.concerns($1::text::regclass)", "elsewhere."+name).Scan(&does); err != nil || !does {
			t.Errorf("elsewhere.%s concerns no agent (%v)", name, err)
		}
	}
}
