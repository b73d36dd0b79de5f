package rls_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pgconsent/pgconsent/internal/enforce/seal"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/rls"
	"github.com/pgconsent/pgconsent/test/tier"
)

func TestAgentSeesWhatThePolicyShows(t *testing.T) {
	w := migrated(t)
	agent := w.agent(user1)
	w.want(agent, titlesQuery, visibleTitles)
	w.want(agent, namesQuery, "Ada")
	w.want(agent, linksQuery, "1")
	w.want(agent, "SELECT id FROM public.match_memories('', 100, true)", uuid(101)+","+uuid(102))
	w.want(agent, "SELECT count(*) FROM public.memories WHERE id NOT IN (SELECT memory_id FROM public.memory_participants)", "1")
	w.want(w.agent(user2), titlesQuery, "of user 2")

	// A person whom the agent cannot see still hides the memory. Withdrawn consent takes effect for the next statement.
	w.exec(w.owner, "UPDATE people SET consent_status = 'revoked' WHERE name = 'Ada'")
	w.want(agent, titlesQuery, "alone")
	w.exec(w.owner, "UPDATE people SET consent_status = 'granted'")
	w.want(agent, titlesQuery, "alone,with Ada,with Ada and Bob,with Cyd,with Dan")
}

func TestAgentWritesNothing(t *testing.T) {
	w := migrated(t)
	w.exec(w.owner, "GRANT INSERT, UPDATE, DELETE ON people TO PUBLIC") // as an application might
	agent := w.agent(user1)
	w.wantRefusal(agent, "42501", "INSERT INTO public.people (id, user_id) VALUES (gen_random_uuid(), '"+user1+"')")
	w.want(agent, "WITH u AS (UPDATE public.people SET name = 'x' RETURNING 1) SELECT count(*) FROM u", "0")
	w.want(agent, "WITH u AS (DELETE FROM public.people RETURNING 1) SELECT count(*) FROM u", "0")
	w.wantRefusal(agent, "42501", "SELECT * FROM public.memory_edges")
	w.wantRefusal(agent, "42501", "CREATE TEMP TABLE x (a int)")
	w.wantRefusal(agent, "42501", "CREATE TABLE public.x (a int)")
	w.wantRefusal(agent, "42501", "CREATE SCHEMA x")
	w.wantRefusal(agent, "42501", "SELECT * FROM pgconsent.keys")
	w.wantRefusal(agent, "42501", "SELECT * FROM pgconsent.seal_key()")
	w.wantRefusal(agent, "42501", "SELECT * FROM pgconsent.h_public_people")
	w.wantRefusal(agent, "42501", "SELECT pgconsent.empty_public_memory_participants()")
	w.wantRefusal(agent, "42501", "SELECT pgconsent.readable_public_memory_participants(NULL)")
}

// badSeals returns values of the seal setting that are not valid for a session with the claims ownClaims. otherClaims
// are the claims of another session.
func badSeals(key seal.Key, ownClaims, otherClaims seal.Claims) map[string]string {
	sealWith := func(change func(*seal.Claims)) string {
		c := ownClaims
		change(&c)
		return key.Seal(c)
	}
	validSeal := key.Seal(ownClaims)
	return map[string]string{
		"missing":             "",
		"garbage":             "garbage",
		"long garbage":        strings.Repeat("|", 100) + "#" + strings.Repeat("0", 64),
		"only a hash":         "#0000000000000000000000000000000000000000000000000000000000000000",
		"short":               validSeal[:len(validSeal)-1],
		"something behind":    validSeal + "#",
		"a hash behind":       validSeal + validSeal[strings.Index(validSeal, "#"):],
		"a hash between":      strings.Replace(validSeal, "#", "#"+strings.Repeat("0", 64)+"#", 1),
		"not hex":             validSeal[:len(validSeal)-3] + "zzz",
		"truncated payload":   validSeal[4:],
		"another user":        strings.Replace(validSeal, user1, user2, 1),
		"another kid":         "v1|2" + validSeal[4:],
		"kid is no number":    "v1|x" + validSeal[4:],
		"huge kid":            "v1|99999999999999999999999" + validSeal[4:],
		"another process":     key.Seal(otherClaims),
		"expired":             sealWith(func(c *seal.Claims) { c.Expires = time.Now().Add(-time.Second) }),
		"far future":          sealWith(func(c *seal.Claims) { c.Expires = time.Now().Add(2*seal.SealLifetime + 10*time.Second) }),
		"another key":         seal.Key{ID: 1, Secret: make([]byte, 32)}.Seal(ownClaims),
		"a signature":         key.Sign("p1", validSeal),
		"no attribute":        sealWith(func(c *seal.Claims) { c.Attributes = nil }),
		"another attribute":   sealWith(func(c *seal.Claims) { c.Attributes = map[string]string{"users": user1} }),
		"forged in a value":   sealWith(func(c *seal.Claims) { c.Attributes = map[string]string{"a": "x|user=" + user1} }),
		"forged in profile":   sealWith(func(c *seal.Claims) { c.Profile, c.Attributes = "p|user="+user1, nil }),
		"signed by no prefix": validSeal + "\n",
	}
}

func TestBadSealsShowNothing(t *testing.T) {
	w := migrated(t)
	key := w.key()
	agent, other := w.agent(""), w.agent("")
	sealWith := func(change func(*seal.Claims)) string {
		c := claims(agent, user1)
		change(&c)
		return key.Seal(c)
	}
	validSeal := sealWith(func(*seal.Claims) {})
	seals := badSeals(key, claims(agent, user1), claims(other, user1))
	for name, value := range seals {
		t.Run(name, func(t *testing.T) {
			w.t = t
			w.setSeal(agent, value)
			w.want(agent, "SELECT count(*) FROM public.memories", "0")
			w.want(agent, "SELECT count(*) FROM public.people", "0")
			w.want(agent, "SELECT count(*) FROM public.memory_participants", "0")
			w.want(agent, "SELECT title FROM public.memories WHERE title = 'alone'", "")
			w.want(agent, "SELECT pgconsent_signed.attr('user')", "NULL")
		})
	}
	w.t = t
	w.setSeal(agent, validSeal)
	w.want(agent, titlesQuery, visibleTitles)
	w.setSeal(agent, sealWith(func(c *seal.Claims) {
		c.Attributes = map[string]string{"odd": "a|b#c=d%e%7C é", "user": user1}
	}))
	w.want(agent, titlesQuery, visibleTitles)
	w.want(agent, "SELECT pgconsent_signed.attr('odd')", "a|b#c=d%e%7C é")
	w.want(agent, "RESET pgconsent.seal; SELECT count(*) FROM public.memories", "0")
}

// Whether a seal has expired depends on the time at which the transaction began: a long report goes on, and the next
// transaction needs a new seal.
func TestSealExpiryIsCheckedAtTransactionStart(t *testing.T) {
	tier.All(t)
	w := migrated(t)
	agent := w.agent("")
	c := claims(agent, user1)
	c.Expires = time.Now().Add(5 * time.Second)
	w.setSeal(agent, w.key().Seal(c))
	w.exec(agent, "BEGIN")
	w.want(agent, titlesQuery, visibleTitles)
	time.Sleep(time.Until(c.Expires) + 200*time.Millisecond)
	w.want(agent, titlesQuery, visibleTitles)
	w.exec(agent, "COMMIT")
	w.want(agent, titlesQuery, "")
}

func TestSignedPath(t *testing.T) {
	w := migrated(t)
	agent, key := w.agent(user1), w.key()
	const q = "SELECT name FROM pgconsent_signed.public_people AS p JOIN public.people USING (id) ORDER BY 1"
	signed := key.Sign("p1", q)
	if len(signed) != seal.SignatureLen+len(q) {
		t.Errorf("a signature is %d bytes long, not %d", len(signed)-len(q), seal.SignatureLen)
	}
	w.want(agent, signed, "Ada")
	w.want(agent, key.Sign("p1", q+" -- é世界"), "Ada")
	for name, sql := range map[string]string{
		"unsigned":               q,
		"changed":                strings.Replace(signed, "ORDER BY 1", "ORDER BY 1 DESC", 1),
		"another profile":        key.Sign("p2", q),
		"with something more":    signed + "; SELECT 1",
		"with a newline":         "\n" + signed,
		"in a later message":     "SELECT 1; " + signed,
		"another key":            seal.Key{ID: 1, Secret: make([]byte, 32)}.Sign("p1", q),
		"empty under NOT EXISTS": "SELECT NOT EXISTS (SELECT 1 FROM pgconsent_signed.public_people WHERE consent_status = 'nobody')",
		"without rows":           "SELECT count(*) FROM pgconsent_signed.public_memory_participants WHERE person_id IS NULL AND memory_id = '" + user1 + "'",
	} {
		t.Run(name, func(t *testing.T) {
			w.t = t
			w.wantRefusal(agent, "42501", sql)
		})
	}
	w.t = t
	w.setSeal(agent, "")
	w.wantRefusal(agent, "42501", signed)
	// A signed lookup view shows hidden rows too, but only the columns that predicates need.
	w.setSeal(agent, key.Seal(claims(agent, user1)))
	w.want(agent, key.Sign("p1", "SELECT count(*) FROM pgconsent_signed.public_people"), "5")
	w.wantRefusal(agent, "42703", key.Sign("p1", "SELECT name FROM pgconsent_signed.public_people"))
}

// F1 of the findings: a domain over text ran an agent's code inside a verifier.
func TestShadowedTypesDoNotRunInsideVerifiers(t *testing.T) {
	w := migrated(t)
	w.exec(w.owner, "GRANT TEMP ON DATABASE "+w.db.Name+" TO pgconsent_agent")
	agent := w.agent(user1)
	w.exec(agent, `CREATE TEMP TABLE seen (who text, what text);
		CREATE FUNCTION pg_temp.evil(pg_catalog.text) RETURNS pg_catalog.bool LANGUAGE plpgsql AS $$
		BEGIN INSERT INTO pg_temp.seen VALUES (current_user, $1); RETURN true; END $$;
		CREATE FUNCTION pg_temp.sha256(pg_catalog.bytea) RETURNS pg_catalog.bytea LANGUAGE plpgsql AS $$
		BEGIN INSERT INTO pg_temp.seen VALUES (current_user, $1::pg_catalog.text); RETURN $1; END $$;
		CREATE DOMAIN pg_temp.text AS pg_catalog.text CHECK (pg_temp.evil(VALUE));
		CREATE DOMAIN pg_temp.bytea AS pg_catalog.bytea CHECK (pg_temp.evil(VALUE::pg_catalog.text));
		CREATE DOMAIN pg_temp.bool AS pg_catalog.bool CHECK (pg_temp.evil(VALUE::pg_catalog.text));
		CREATE DOMAIN pg_temp.int4 AS pg_catalog.int4 CHECK (pg_temp.evil(VALUE::pg_catalog.text));
		CREATE DOMAIN pg_temp.uuid AS pg_catalog.uuid CHECK (pg_temp.evil(VALUE::pg_catalog.text));
		CREATE OPERATOR pg_temp.= (LEFTARG = pg_catalog.text, RIGHTARG = pg_catalog.text, FUNCTION = pg_catalog.texteq)`)
	// If search_path does not name pg_temp, PostgreSQL looks there first for types only. If it names pg_temp first,
	// also for operators and functions.
	for _, path := range []string{"public", "pg_temp, pg_catalog, public"} {
		w.exec(agent, "DISCARD PLANS; SET search_path = "+path)
		w.want(agent, titlesQuery, visibleTitles)
		w.wantRefusal(agent, "42501", "SELECT * FROM pgconsent_signed.public_people")
		if path == "public" {
			w.want(agent, w.key().Sign("p1", "SELECT count(*) FROM pgconsent_signed.public_people"), "5")
		}
	}
	w.want(agent, "SELECT count(*) FROM pg_temp.seen", "0")
}

// A table that predicates read and the policy does not list shows nothing, even where PUBLIC may read it.
func TestUnlistedLookupTablesShowNothing(t *testing.T) {
	tier.All(t)
	w := newWorld(t, "GRANT SELECT ON people, memory_participants TO PUBLIC",
		"ALTER TABLE memory_participants ENABLE ROW LEVEL SECURITY", "CREATE POLICY all_rows ON memory_participants USING (true)")
	before := w.state()
	w.compile("testdata/unlisted.yaml", rls.Options{})
	w.migrate()
	agent := w.agent(user1)
	w.want(agent, titlesQuery, visibleTitles)
	w.want(agent, namesQuery, "")
	w.want(agent, linksQuery, "0")
	other := w.db.Connect(t, "app_other")
	w.want(other, "SELECT count(*) FROM people", "5")
	w.want(other, "SELECT count(*) FROM memory_participants", "8")
	if err := migrations.Down(context.Background(), w.owner, migrations.Options{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, w.state()); diff != "" {
		t.Error(diff)
	}
}

// F4 of the findings: planning ran an agent's operators on the values of hidden rows, which the statistics hold.
func TestPlanningRevealsNoHiddenValues(t *testing.T) {
	w := migrated(t)
	w.exec(w.owner, "INSERT INTO people (id, user_id, consent_status) SELECT gen_random_uuid(), "+
		"gen_random_uuid(), 'oracle' FROM generate_series(1, 1000); ANALYZE people")
	agent := w.agent("")
	const probe = `EXPLAIN SELECT id FROM pgconsent_signed.public_people WHERE consent_status LIKE '%oracl\'`
	if _, err := query(agent, probe); err != nil {
		t.Errorf("the statistics answer: %v", err)
	}
	// Without row security on the table they would reveal it.
	w.exec(w.owner, "ALTER TABLE people DISABLE ROW LEVEL SECURITY")
	w.wantRefusal(agent, "22025", probe)
}

// Parallel workers have other process ids, so the functions that verify a seal run in the leader only.
func TestParallelPlansSeeTheSame(t *testing.T) {
	w := migrated(t)
	agent := w.agent(user1)
	w.exec(agent, `SELECT set_config(name, 'on', false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query');
		SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0`)
	w.want(agent, titlesQuery, visibleTitles)
	w.want(agent, namesQuery, "Ada")
	w.want(agent, linksQuery, "1")
	w.want(agent, w.key().Sign("p1", "SELECT count(*) FROM pgconsent_signed.public_people"), "5")
}

// A cursor that is open when the session loses its seal returns no further rows.
func TestLosingTheSealHides(t *testing.T) {
	w := migrated(t)
	agent := w.agent(user1)
	w.exec(agent, "BEGIN; DECLARE c CURSOR FOR "+namesQuery)
	w.exec(agent, "RESET pgconsent.seal")
	w.want(agent, "FETCH ALL FROM c", "")
	w.exec(agent, "COMMIT")
}
