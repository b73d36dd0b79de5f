package proxy

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	pgx3 "github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/test/tier"
)

// For each statement, the proxy tells the decider the values of the settings that a policy maps to attributes. They are
// the server's values when the statement runs, or none. This holds in every transaction state, in both protocols, and
// for any number of messages sent at once.
func TestClaimsAreTheServers(t *testing.T) {
	tier.All(t)
	p := startProxy(t)
	w := &probeClaims{values: map[int]string{}}
	p.editRoute = func(r *Route) {
		openDecider := r.Open
		r.Open = func(ctx context.Context, info SessionInfo) (verdict.Decider, error) {
			d, err := openDecider(ctx, info)
			return &claimRecorder{d.(*fakeDecider), w}, err
		}
	}
	probes, knownProbes := 0, 0
	for seed := range conversationSeeds(100) {
		script := claimsConversation(rand.New(rand.NewPCG(uint64(seed), 3)))
		if seed == 0 { // a failure after DISCARD ALL does not undo it
			script = [][]pgx3.FrontendMessage{{q("SET app.a = '1'"), pa("", "DISCARD ALL"), bi("", ""), ex("", 0), q("SELECT 1/0"), q(probeQuery(1))}}
		}
		if seed == 1 { // two rollbacks over a savepoint of the same name, in Queries answered one by one: the value stays known
			script = nil
			for i, text := range []string{"BEGIN", "SET app.a = '1'", "SAVEPOINT s", "SET app.a = '2'", "SAVEPOINT s",
				"SET app.a = '3'", "RELEASE s", "", "ROLLBACK TO s", "", "SET app.b = '4'", "ROLLBACK TO s", "", "COMMIT", ""} {
				if text == "" {
					text = probeQuery(i)
				}
				script = append(script, []pgx3.FrontendMessage{q(text)})
			}
		}
		c := connectPeer(t, p.agentDSN()+" sslmode=disable options='-c app.a=zero'")
		for _, line := range playConversation(t, c, script) {
			id, value, ok := strings.Cut(strings.TrimPrefix(line, `D ["probe`), `" "`)
			n, err := strconv.Atoi(id)
			if !strings.HasPrefix(line, "D [") || !ok || err != nil {
				continue
			}
			probes++
			w.mu.Lock()
			judgedValue, isKnown := w.values[n]
			w.mu.Unlock()
			if isKnown {
				knownProbes++
			}
			if value = strings.TrimSuffix(value, `"]`); isKnown && judgedValue != value {
				t.Fatalf("seed %d\n%s\nprobe %d ran under %q, and was judged under %q", seed, formatScript(script), n, value, judgedValue)
			}
			if !isKnown && seed == 1 {
				t.Errorf("probe %d ran under %q, and nobody knew", n, value)
			}
		}
		w.values = map[int]string{}
	}
	if knownProbes < 200 || knownProbes < probes/2 {
		t.Errorf("of %d probes %d were judged with what was known", probes, knownProbes)
	}
}

// TestStatementsThatChangeClaims: a verdict says if a statement changes a mapped setting while later statements of the
// same text follow. Until that statement is answered, nothing is decided by the old value.
func TestStatementsThatChangeClaims(t *testing.T) {
	changedKinds := map[verdict.EffectKind]bool{}
	for kind := verdict.EffectNone; kind <= verdict.EffectDiscard; kind++ {
		for _, name := range []string{"", "app.a", "app.b", "s", "u", "missing"} {
			for _, claim := range []*verdict.Claim{nil, {Value: "9"}, {Value: "9", IsLocal: true}, {IsReset: true}} {
				for _, undoes := range []bool{false, true} {
					c := &claims{}
					c.begin(map[string]string{"app.a": "0"})
					c.setValue("app.a", &verdict.Claim{Value: "1"})
					c.endTx(false)
					c.setValue("app.a", &verdict.Claim{Value: "2"})
					c.savepoint("s")
					c.setValue("app.a", &verdict.Claim{Value: "3", IsLocal: true})
					c.savepoint("u")
					c.setValue("app.b", &verdict.Claim{Value: "4"})
					e := verdict.Effect{Kind: kind, Name: name, Claim: claim, IsRollback: undoes}
					x := &executeEntry{}
					x.verdict = &verdict.Verdict{Rewritten: verdict.Rewritten{Effects: []verdict.Effect{{}, e}}}
					mayChange := c.mayChange(x, true)
					claimsBefore, unknownBefore := c.current, c.unknown
					if c.apply(e); maps.Equal(claimsBefore, c.current) && unknownBefore == c.unknown {
						continue
					}
					changedKinds[kind] = true
					for i, text := range [][]verdict.Effect{{e, {}}, {{}, e, {}}, {e, {}, {}}, {{}, {}, e, {Kind: verdict.EffectExecute}}} {
						if !verdict.ClaimsChangeWithin(text) && kind != verdict.EffectRelease { // RELEASE of a missing savepoint fails
							t.Errorf("%v behind %d others: what is claimed changes, and nobody is told", e, i)
						}
					}
					if !mayChange {
						t.Errorf("%v: what is claimed changes, and is not waited for", e)
					}
				}
			}
		}
	}
	if len(changedKinds) < 6 {
		t.Errorf("what changes: %v", changedKinds)
	}
}

// TestClaimsAfterAFailedGroup: a SET in a group without a Sync yet is undone by any later failure in the group, on the
// server or by a refusal. A statement sent right after it is decided by the server's value at that time, or by none.
func TestClaimsAfterAFailedGroup(t *testing.T) {
	p := startProxy(t)
	w := &probeClaims{values: map[int]string{}}
	p.editRoute = func(r *Route) {
		openDecider := r.Open
		r.Open = func(ctx context.Context, info SessionInfo) (verdict.Decider, error) {
			d, err := openDecider(ctx, info)
			return &claimRecorder{d.(*fakeDecider), w}, err
		}
	}
	run := func(text string) []pgx3.FrontendMessage {
		return []pgx3.FrontendMessage{pa("", text), bi("", ""), ex("", 0)}
	}
	setClaim := run("SET app.a = '1'")
	n := 0
	for situation, prefix := range map[string][]round{
		"alone":                {{append(slices.Clone(setClaim), fl), 'C', 1}},
		"behind another group": {upToReady(1, append(run("SELECT 1"), sy)...), {append(slices.Clone(setClaim), fl), 'C', 1}},
		"behind a COMMIT":      {upToReady(1, q("BEGIN")), {append(append(run("COMMIT"), setClaim...), fl), 'C', 2}},
		"behind a ROLLBACK":    {upToReady(1, q("BEGIN; SET app.a = '2'")), {append(append(run("ROLLBACK"), setClaim...), fl), 'C', 2}},
		"behind COMMIT, alone": {upToReady(1, q("BEGIN")), {append(run("COMMIT"), fl), 'C', 1}, {append(slices.Clone(setClaim), fl), 'C', 1}},
		"behind BEGIN":         {{append(append(run("BEGIN"), setClaim...), fl), 'C', 2}},
		"RESET":                {{append(run("RESET app.a"), fl), 'C', 1}},
		"LOCAL":                {upToReady(1, q("BEGIN")), {append(append(run("COMMIT"), run("SET LOCAL app.a = '3'")...), fl), 'C', 2}},
	} {
		for description, failingMessages := range map[string][]pgx3.FrontendMessage{
			"a refused Query": {q("SELECT forbidden")}, "a misspelt Query": {q("misspelt")}, "a Query": {
				q("SELECT 1/0")}, "a Query that ends": {q("SELECT 1")}, "a Query of nothing": {q("")},
			"a refused Parse": {pa("", "SELECT forbidden"), sy}, "an Execute": append(run("SELECT 1/0"),
				sy), "a Bind": {bi("", "none"), sy}, "a Describe": {de('S', "none"), sy}, "an Execute of nothing": {ex("none", 0), sy},
			"a refused Parse, and no Sync": {pa("", "SELECT forbidden")}, "a refused one of two": {
				q("SELECT forbidden"), q("SELECT forbidden")}, "nothing": {sy},
		} {
			for _, isExtended := range []bool{false, true} {
				n++
				followingMessages := []pgx3.FrontendMessage{q(probeQuery(n))}
				if isExtended {
					followingMessages = append(run(probeQuery(n)), sy)
				}
				c := connectPeer(t, p.agentDSN()+" sslmode=disable options='-c app.a=zero'")
				c.play(t, prefix)
				c.send(t, append(append(slices.Clone(failingMessages), followingMessages...), sy, q("ROLLBACK"), q("the end"))...)
				for isFinished := false; !isFinished; {
					m, err := c.frontend.Receive()
					if err != nil {
						t.Fatal(err)
					}
					line, _ := transcribe(m)
					isFinished = strings.Contains(line, `at or near "the"`)
					value, ok := strings.CutPrefix(line, fmt.Sprintf(`D ["probe%d" "`, n))
					w.mu.Lock()
					judgedValue, isKnown := w.values[n]
					w.mu.Unlock()
					if value = strings.TrimSuffix(value, `"]`); ok && isKnown && judgedValue != value {
						t.Errorf("%s, then %s, extended %t: a statement ran under %q, and was judged under %q", situation, description, isExtended, value, judgedValue)
					}
				}
				c.Close()
			}
		}
	}
}

// TestHeldCursorsKeepTheirClaims: the rows of a cursor WITH HOLD are computed when its transaction ends, by the
// settings at that time. These must be those by which it was decided, however the cursor was opened and whatever
// statement would change them.
func TestHeldCursorsKeepTheirClaims(t *testing.T) {
	p := startProxy(t)
	p.editRoute = func(r *Route) {
		openDecider := r.Open
		r.Open = func(ctx context.Context, info SessionInfo) (verdict.Decider, error) {
			d, err := openDecider(ctx, info)
			return &claimRecorder{d.(*fakeDecider), &probeClaims{values: map[int]string{}}}, err
		}
	}
	const claimColumn = "current_setting('app.a', true) AS a"
	heldRows, changedCount := 0, 0
	for name, openMessages := range map[string][]pgx3.FrontendMessage{
		"one":            {q("DECLARE k CURSOR WITH HOLD FOR SELECT " + claimColumn)},
		"behind another": {q("DECLARE j CURSOR FOR SELECT 1; DECLARE k CURSOR WITH HOLD FOR SELECT " + claimColumn)},
		"before another": {q("DECLARE k CURSOR WITH HOLD FOR SELECT " + claimColumn + "; DECLARE j CURSOR FOR SELECT 1")},
		"in a group":     {pa("", "DECLARE k CURSOR WITH HOLD FOR SELECT "+claimColumn), bi("", ""), ex("", 0), sy},
		"and closed":     {q("DECLARE k CURSOR WITH HOLD FOR SELECT " + claimColumn), q("CLOSE k")},
		"another of them": {q("DECLARE j CURSOR WITH HOLD FOR SELECT 1"), q("DECLARE k CURSOR WITH HOLD FOR SELECT " + claimColumn),
			q("CLOSE j")},
	} {
		for _, change := range []string{"SET app.a = '2'", "SET LOCAL app.a = '2'", "RESET app.a"} {
			for description, script := range map[string][][]pgx3.FrontendMessage{
				"then":        {openMessages, {q(change)}},
				"at once":     {append(slices.Clone(openMessages), q(change))},
				"in a group":  {openMessages, append(executions(change), sy)},
				"in one text": {{q(joinTexts(openMessages) + "; " + change)}},
			} {
				c := connectPeer(t, p.agentDSN()+" sslmode=disable")
				c.play(t, []round{upToReady(2, q("SET app.a = '1'"), q("BEGIN"))})
				for _, m := range script {
					c.play(t, []round{upToReady(len(slices.DeleteFunc(slices.Clone(m), func(m pgx3.FrontendMessage) bool {
						_, isOfKind := m.(*pgx3.Query)
						return !isOfKind && m != pgx3.FrontendMessage(sy)
					})), m...)})
				}
				c.play(t, []round{upToReady(1, q("COMMIT"))})
				for _, line := range c.play(t, []round{upToReady(1, q("FETCH ALL FROM k"))}) {
					if strings.HasPrefix(line, "D ") {
						heldRows++
						if line != `D ["1"]` {
							t.Errorf("%s, %s, %s: judged under 1, and read under %s", name, change, description, line)
						}
					}
				}
				for _, line := range c.play(t, []round{upToReady(1, q("SELECT "+claimColumn))}) {
					if strings.HasPrefix(line, "D ") && line != `D ["1"]` {
						changedCount++
					}
				}
				c.Close()
			}
		}
	}
	if changedCount == 0 {
		t.Errorf("%d cursors, %d changes", heldRows, changedCount)
	}
}

// joinTexts returns the texts of all Queries of a conversation.
func joinTexts(m []pgx3.FrontendMessage) string {
	var out []string
	for _, m := range m {
		switch m := m.(type) {
		case *pgx3.Query:
			out = append(out, m.String)
		case *pgx3.Parse:
			out = append(out, m.Query)
		}
	}
	return strings.Join(out, "; ")
}

// probeClaims are the claims by which each probe was decided, where they were known.
type probeClaims struct {
	mu     sync.Mutex
	values map[int]string
}

type claimRecorder struct {
	*fakeDecider
	probes *probeClaims
}

// probeQuery returns a query that shows the claims on the server; "" means that none is set.
func probeQuery(n int) string {
	return fmt.Sprintf("SELECT 'probe%d', COALESCE(current_setting('app.a', true), '') || '/' || COALESCE(current_setting('app.b', true), '')", n)
}

// Decide gives statements the effects that the rewriter would report for them.
func (c *claimRecorder) Decide(ctx context.Context, text string, p verdict.Protocol) *verdict.Verdict {
	v := c.fakeDecider.Decide(ctx, text, p)
	for i, t := range strings.Split(text, ";") {
		if !v.IsAllowed() || i >= len(v.Effects) {
			break
		}
		e, words := &v.Effects[i], strings.Fields(t)
		switch {
		case len(words) == 0:
		case words[0] == "SAVEPOINT", words[0] == "RELEASE", strings.HasPrefix(strings.TrimSpace(t), "ROLLBACK TO"):
			e.Name = words[len(words)-1]
			if words[0] == "RELEASE" {
				e.Kind = verdict.EffectRelease
			}
		case words[0] == "ROLLBACK":
			e.IsRollback = true
		case words[0] == "SET" && strings.HasPrefix(words[len(words)-3], "app."):
			e.Kind, e.Name = verdict.EffectSet, words[len(words)-3]
			e.Claim = &verdict.Claim{Value: strings.Trim(words[len(words)-1], "'"), IsLocal: words[1] == "LOCAL"}
		case words[0] == "RESET" && words[1] != "ALL":
			e.Kind, e.Name, e.Claim = verdict.EffectSet, words[1], &verdict.Claim{IsReset: true}
		}
	}
	c.noteClaims(v)
	return v
}

func (c *claimRecorder) Recheck(_ context.Context, v *verdict.Verdict) *verdict.Verdict {
	c.noteClaims(v)
	return v
}

// noteClaims records the claims by which a probe is decided.
func (c *claimRecorder) noteClaims(v *verdict.Verdict) {
	_, afterProbe, ok := strings.Cut(v.Original, "'probe")
	if !ok {
		return
	}
	id, _, _ := strings.Cut(afterProbe, "'")
	n, _ := strconv.Atoi(id)
	claims := c.info.Claims()
	c.probes.mu.Lock()
	defer c.probes.mu.Unlock()
	delete(c.probes.values, n)
	if claims.Known && !verdict.ClaimsChangeWithin(v.Effects) {
		c.probes.values[n] = claims.Values["app.a"] + "/" + claims.Values["app.b"]
	}
}

// claimsConversation generates messages that set, undo and read claims in all ways.
func claimsConversation(r *rand.Rand) (script [][]pgx3.FrontendMessage) {
	pick := func(choices ...string) string { return choices[r.IntN(len(choices))] }
	n := 0
	nextProbe := func() string { n++; return probeQuery(n) }
	randomSet := func() string {
		return pick("SET ", "SET ", "SET LOCAL ") + pick("app.a", "app.b") + " = '" + pick("1", "2", "3") + "'"
	}
	var pendingTexts []string
	text := func() (nextText string) {
		if len(pendingTexts) > 0 {
			nextText, pendingTexts = pendingTexts[0], pendingTexts[1:]
			return nextText
		}
		switch r.IntN(9) {
		case 8: // a prepared statement runs after a change of a claim
			preparedName := fmt.Sprintf("h%d", n+1)
			pendingTexts = []string{pick("", "", randomSet()+"; ", "ROLLBACK; ", "RESET ALL; ") + "EXECUTE " + preparedName}
			return "PREPARE " + preparedName + " AS " + nextProbe()
		case 0, 1:
			return randomSet()
		case 2:
			return pick("RESET app.a", "RESET app.b", "RESET ALL", "DISCARD ALL")
		case 3, 4: // a setting in a transaction, undone or not
			pendingTexts = []string{randomSet(), nextProbe(), "SAVEPOINT s", randomSet(), pick("SAVEPOINT u", randomSet()),
				pick("ROLLBACK TO s", "RELEASE s", "SELECT 1"), nextProbe(), pick("COMMIT", "ROLLBACK"), nextProbe()}
			if r.IntN(3) == 0 { // savepoints of one name
				pendingTexts = []string{randomSet(), "SAVEPOINT s", randomSet(), "SAVEPOINT s", randomSet(),
					pick("RELEASE s", "ROLLBACK TO s"), "ROLLBACK TO s", nextProbe(), pick("COMMIT", "ROLLBACK"), nextProbe()}
			}
			return "BEGIN"
		case 5:
			return pick("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT u", "ROLLBACK TO u", "RELEASE s", "COMMIT; BEGIN", "ROLLBACK; BEGIN")
		case 6:
			return pick("SELECT 1/0", "SELEC", "SELECT forbidden", randomSet()+"; SELECT 1/0", randomSet()+"; ROLLBACK")
		default:
			return pick("", "", "", "SAVEPOINT u; ", randomSet()+"; ",
				pick("ROLLBACK TO s; ", "ROLLBACK TO u; ", "RELEASE s; ", "COMMIT; ", "ROLLBACK; ", "RESET ALL; ", "RESET app.a; ")) + nextProbe()
		}
	}
	for range 4 + r.IntN(8) {
		var m []pgx3.FrontendMessage
		for range 1 + r.IntN(5) {
			t := text()
			// A refused Parse leaves the earlier statement without a name in place. The messages after it are decided
			// as that statement, and do not run.
			isRefused := t == "SELEC" || t == "SELECT forbidden"
			if strings.Contains(t, ";") || r.IntN(2) == 0 || isRefused {
				m = append(m, q(t))
				continue
			}
			m = append(m, pa("", t), bi("", ""), ex("", 0))
			if r.IntN(3) > 0 {
				m = append(m, sy)
			}
		}
		script = append(script, m)
	}
	return script
}
