package rls_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/enforce/seal"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/rls"
)

// prepare prepares statements as the proxy does, and returns a function that checks the answer of each.
func (w *world) prepare(conn *pgx.Conn, statements map[string]string) (checkAnswer func(name, answer string)) {
	w.t.Helper()
	for name, sql := range statements {
		if _, err := conn.PgConn().Prepare(context.Background(), name, sql, nil); err != nil {
			w.t.Fatal(err)
		}
	}
	return func(name, answer string) {
		w.t.Helper()
		result := conn.PgConn().ExecPrepared(context.Background(), name, nil, nil, nil).Read()
		var got []string
		for _, row := range result.Rows {
			got = append(got, string(row[0]))
		}
		if s := strings.Join(got, ","); result.Err != nil || s != answer {
			w.t.Errorf("%s: got %q and error %v, want %q", name, s, result.Err, answer)
		}
	}
}

// ownProcessClaims returns the claims of a session that has a server process of its own.
func ownProcessClaims(conn *pgx.Conn, user string) seal.Claims {
	c := claims(conn, user)
	c.OwnProcess = true
	return c
}

// planOf returns the verbose plan of a prepared statement.
func (w *world) planOf(conn *pgx.Conn, name string) string {
	w.t.Helper()
	plan, err := query(conn, "EXPLAIN (VERBOSE, COSTS OFF) EXECUTE "+name)
	if err != nil {
		w.t.Fatal(err)
	}
	return plan
}

// A cached plan contains the verified seal as a constant, and returns no rows under any other seal.
func TestSealInPlan(t *testing.T) {
	w := migrated(t)
	agent, other := w.agent(""), w.agent("")
	key := w.key()
	validSeal := key.Seal(ownProcessClaims(agent, user1))
	w.setSeal(agent, validSeal)
	checkAnswer := w.prepare(agent, map[string]string{
		"titles": titlesQuery + verdict.PreparedMark, "names": namesQuery + verdict.PreparedMark, "links": linksQuery + verdict.PreparedMark,
		"found": "SELECT title FROM public.memories WHERE title = 'alone'" + verdict.PreparedMark,
	})
	checkShown := func() {
		t.Helper()
		checkAnswer("titles", visibleTitles)
		checkAnswer("names", "Ada")
		checkAnswer("links", "1")
		checkAnswer("found", "alone")
	}
	checkShown()
	for _, name := range []string{"titles", "names", "links", "found"} {
		if plan := w.planOf(agent, name); !strings.Contains(plan, validSeal) {
			t.Errorf("%s: the seal is not in the plan:\n%s", name, plan)
		}
	}
	for name, value := range badSeals(key, ownProcessClaims(agent, user1), ownProcessClaims(other, user1)) {
		t.Run(name, func(t *testing.T) {
			w.t = t
			w.setSeal(agent, value)
			checkAnswer("titles", "")
			checkAnswer("names", "")
			checkAnswer("links", "0")
			checkAnswer("found", "")
		})
	}
	w.t = t
	w.setSeal(agent, validSeal)
	checkShown()
	// The user changes, and changes back.
	w.setSeal(agent, key.Seal(ownProcessClaims(agent, user2)))
	checkAnswer("titles", "of user 2")
	checkAnswer("found", "")
	w.setSeal(agent, key.Seal(claims(agent, user1)))
	checkShown()
	// The rows that consent permits are not part of the plan.
	w.exec(w.owner, "UPDATE people SET consent_status = 'revoked' WHERE name = 'Ada'")
	checkAnswer("titles", "alone")
	w.exec(w.owner, "UPDATE people SET consent_status = 'granted' WHERE name = 'Ada'")
	// A new seal is in the plan after DISCARD PLANS.
	renewedSeal := key.Seal(ownProcessClaims(agent, user2))
	w.setSeal(agent, renewedSeal)
	w.exec(agent, "DISCARD PLANS")
	checkAnswer("titles", "of user 2")
	if plan := w.planOf(agent, "titles"); !strings.Contains(plan, renewedSeal) || strings.Contains(plan, validSeal) {
		t.Errorf("the plan is not of the new seal:\n%s", plan)
	}
	w.setSeal(agent, validSeal)
	checkShown()
}

// The plans of attr and sealed contain the verified seal as a constant, also for statements that are not prepared. They
// accept no other seal, and none that is too old.
func TestSealInPlansOfFunctions(t *testing.T) {
	w := migrated(t)
	agent, other := w.agent(""), w.agent("")
	key := w.key()
	wantAnswers := func(titles, names, sealed string) {
		t.Helper()
		w.want(agent, titlesQuery, titles)
		w.want(agent, namesQuery, names)
		w.want(agent, "SELECT pgconsent_signed.sealed()::text", sealed)
	}
	for name, value := range badSeals(key, ownProcessClaims(agent, user1), ownProcessClaims(other, user1)) {
		t.Run("planned with "+name, func(t *testing.T) {
			w.t = t
			w.setSeal(agent, value)
			w.exec(agent, "DISCARD PLANS")
			w.want(agent, titlesQuery, "")
			w.exec(agent, `SET pgconsent."user" = '`+user1+"'")
			w.want(agent, titlesQuery, "")
			w.setSeal(agent, key.Seal(ownProcessClaims(agent, user2)))
			w.want(agent, titlesQuery, "of user 2")
		})
	}
	w.t = t
	validSeal := key.Seal(ownProcessClaims(agent, user1))
	w.setSeal(agent, validSeal)
	w.exec(agent, "DISCARD PLANS")
	wantAnswers(visibleTitles, "Ada", "true")
	// the seals that are valid, but do not have the attribute of the rules
	isOfAnotherContent := map[string]bool{
		"no attribute": true, "another attribute": true, "forged in a value": true, "forged in profile": true,
	}
	for name, value := range badSeals(key, ownProcessClaims(agent, user1), ownProcessClaims(other, user1)) {
		t.Run("planned with a valid one, "+name, func(t *testing.T) {
			w.t = t
			w.setSeal(agent, value)
			w.want(agent, titlesQuery, "")
			w.want(agent, namesQuery, "")
			w.want(agent, "SELECT pgconsent_signed.sealed()::text", strconv.FormatBool(isOfAnotherContent[name]))
		})
	}
	w.t = t
	w.setSeal(agent, key.Seal(ownProcessClaims(agent, user2))) // another valid seal
	w.want(agent, titlesQuery, "of user 2")
	w.setSeal(agent, validSeal)
	wantAnswers(visibleTitles, "Ada", "true")

	// Without a key, only the seal in the plans can still be found valid: so the functions have not verified it again.
	w.exec(w.owner, "ALTER TABLE pgconsent.keys DISABLE TRIGGER pgconsent_drop_plans; DELETE FROM pgconsent.keys")
	wantAnswers(visibleTitles, "Ada", "true")
	w.exec(agent, "DISCARD PLANS")
	wantAnswers("", "", "false")
}

// A session that shares its server process with others has no seal in the plans of functions.
func TestSealInNoPlanOfSharedProcess(t *testing.T) {
	w := migrated(t)
	agent := w.agent("")
	w.setSeal(agent, w.key().Seal(claims(agent, user1)))
	w.want(agent, titlesQuery, visibleTitles)
	w.want(agent, "SELECT pgconsent_signed.sealed()::text", "true")
	w.exec(w.owner, "ALTER TABLE pgconsent.keys DISABLE TRIGGER pgconsent_drop_plans; DELETE FROM pgconsent.keys")
	w.want(agent, titlesQuery, "")
	w.want(agent, "SELECT pgconsent_signed.sealed()::text", "false")
}

// A plan that is made without a valid seal contains no seal. The attribute may be one that an agent wrote, or the seal
// another session's.
func TestForgedSealIsNotInPlan(t *testing.T) {
	w := migrated(t)
	agent, other := w.agent(""), w.agent("")
	key := w.key()
	for name, value := range badSeals(key, ownProcessClaims(agent, user1), ownProcessClaims(other, user1)) {
		t.Run(name, func(t *testing.T) {
			w.t = t
			w.setSeal(agent, value)
			checkAnswer := w.prepare(agent, map[string]string{"titles": titlesQuery + verdict.PreparedMark})
			checkAnswer("titles", "")
			w.exec(agent, `SET pgconsent."user" = '`+user1+"'")
			checkAnswer("titles", "")
			w.setSeal(agent, key.Seal(ownProcessClaims(agent, user2)))
			checkAnswer("titles", "of user 2")
			w.setSeal(agent, value)
			checkAnswer("titles", "")
			w.exec(agent, "DEALLOCATE titles")
		})
	}
}

// A rule that reads no attribute asks only whether the session is sealed.
func TestSealInPlanOfRuleWithoutAttributes(t *testing.T) {
	w := newWorld(t)
	w.compile("testdata/policy.yaml", rls.Options{Mode: rls.SealOnly})
	w.migrate()
	agent, other := w.agent(""), w.agent("")
	key := w.key()
	validSeal := key.Seal(ownProcessClaims(agent, user1))
	w.setSeal(agent, validSeal)
	checkAnswer := w.prepare(agent, map[string]string{"count": "SELECT count(*) FROM public.people" + verdict.PreparedMark})
	peopleCount, err := query(w.owner, "SELECT count(*) FROM people")
	if err != nil {
		t.Fatal(err)
	}
	checkAnswer("count", peopleCount)
	if plan := w.planOf(agent, "count"); !strings.Contains(plan, validSeal) {
		t.Errorf("the seal is not in the plan:\n%s", plan)
	}
	invalidSeals := badSeals(key, ownProcessClaims(agent, user1), ownProcessClaims(other, user1))
	for _, name := range []string{
		"missing", "garbage", "another user", "another process", "expired", "far future", "another key", "a signature",
	} {
		w.setSeal(agent, invalidSeals[name])
		checkAnswer("count", "0")
	}
	w.setSeal(agent, key.Seal(ownProcessClaims(agent, user2))) // another valid seal
	checkAnswer("count", peopleCount)
}

// A seal in a plan expires. If the clock is moved back, it is not valid for longer than the lifetime of a seal.
func TestSealInPlanExpires(t *testing.T) {
	w := migrated(t)
	agent := w.agent("")
	c := ownProcessClaims(agent, user1)
	c.Expires = time.Now().Add(5 * time.Second).Truncate(time.Second)
	w.setSeal(agent, w.key().Seal(c))
	checkAnswer := w.prepare(agent, map[string]string{
		"titles": titlesQuery + verdict.PreparedMark,
		"time": "SELECT extract(epoch FROM lower(r))::int8 || ' ' || extract(epoch FROM upper(r))::int8 " +
			"|| lower_inc(r) || upper_inc(r) FROM pgconsent_signed.plan_time() AS r" + verdict.PreparedMark,
	})
	checkAnswer("titles", visibleTitles)
	w.want(agent, titlesQuery, visibleTitles)
	w.want(agent, "SELECT pgconsent_signed.sealed()::text", "true")
	checkAnswer("time", unix(c.Expires.Add(-2*seal.SealLifetime))+" "+unix(c.Expires)+"falsefalse")
	time.Sleep(time.Until(c.Expires) + 200*time.Millisecond)
	checkAnswer("titles", "")
	w.want(agent, titlesQuery, "")
	w.want(agent, "SELECT pgconsent_signed.sealed()::text", "false")
}

func unix(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

// When a key is deleted, seals made with it become invalid at once, also in a cached plan.
func TestSealInPlanOfDeletedKey(t *testing.T) {
	w := migrated(t)
	agent := w.agent("")
	w.setSeal(agent, w.key().Seal(ownProcessClaims(agent, user1)))
	checkAnswer := w.prepare(agent, map[string]string{"titles": titlesQuery + verdict.PreparedMark})
	checkAnswer("titles", visibleTitles)
	w.exec(w.owner, "DELETE FROM pgconsent.keys WHERE kid = 0")
	checkAnswer("titles", visibleTitles)
	for _, sql := range []string{"DELETE FROM pgconsent.keys", "TRUNCATE pgconsent.keys"} {
		w.exec(w.owner, "SELECT pgconsent.make_key()")
		w.setSeal(agent, w.key().Seal(ownProcessClaims(agent, user1)))
		w.exec(agent, "DISCARD PLANS")
		checkAnswer("titles", visibleTitles)
		w.want(agent, titlesQuery, visibleTitles)
		w.want(agent, "SELECT pgconsent_signed.sealed()::text", "true")
		version, err := query(w.owner, "SELECT pgconsent.catalog_version()")
		if err != nil {
			t.Fatal(err)
		}
		w.exec(w.owner, sql)
		checkAnswer("titles", "")
		w.want(agent, titlesQuery, "")
		w.want(agent, "SELECT pgconsent_signed.sealed()::text", "false")
		w.want(w.owner, "SELECT pgconsent.catalog_version()", version)
	}
}

// A plan contains no seal if other sessions of the server process may run it, or if it is not cached.
func TestSealIsInNoOtherPlan(t *testing.T) {
	w := migrated(t)
	agent := w.agent("")
	for name, c := range map[string]struct {
		claims seal.Claims
		sql    string
	}{
		"shared process": {claims(agent, user1), titlesQuery + verdict.PreparedMark},
		"not kept":       {ownProcessClaims(agent, user1), titlesQuery},
	} {
		value := w.key().Seal(c.claims)
		w.setSeal(agent, value)
		checkAnswer := w.prepare(agent, map[string]string{"titles": c.sql})
		checkAnswer("titles", visibleTitles)
		plan := w.planOf(agent, "titles")
		if strings.Contains(plan, "#") || strings.Contains(plan, user1) || strings.Contains(plan, "plan_") {
			t.Errorf("%s: %s", name, plan)
		}
		w.exec(agent, "DEALLOCATE titles")
	}
}
