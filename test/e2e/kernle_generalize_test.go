package e2e

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pgconsent/pgconsent/internal/memory/generalize"
	"github.com/pgconsent/pgconsent/internal/memory/privacy"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	harness "github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// A belief shares the knowledge of a private memory without revealing the memory. Point g. seeds/003:67-84, 87-89.
func TestKernleG_BeliefsTellNobody(t *testing.T) {
	k, d := startPrivacy(t, `INSERT INTO aliases (stack_id, subject, alias) VALUES ('ash', 'dog:bella', 'Müsli'), ('ash', 'dog:bella', '小黑')`,
		`INSERT INTO aliases (stack_id, subject, alias) VALUES ('mallory', 'dog:bella', 'breeds')`, // an alias in mallory's own stack that is a word of the belief
		`INSERT INTO episodes (id, stack_id, content, source_entity, subject_ids) `+
			`VALUES ('episode:private_health_incident', 'ash', 'Bella has a heart murmur since last Tuesday, says Dr. Smith', 'vet:dr_smith', '["dog:bella"]')`)
	ctx := context.Background()
	super := harness.ConnectSuperuser(t, k.db)
	const belief = "Heart murmurs in small breeds need exercise monitoring"
	seedRequest := privacy.Generalization{Source: "episode:private_health_incident", Belief: belief, Access: withIDs("*"),
		Note: "Generalized from direct care experience. No identifying details — applies to breed, not individual."}
	storedState := func() string {
		var out []string
		for _, sql := range []string{"SELECT * FROM beliefs ORDER BY id", "SELECT * FROM generalizations ORDER BY id",
			"SELECT * FROM episodes ORDER BY id", "SELECT count(*) FROM pgconsent.privacy_event"} {
			out = append(out, harness.Ask(super, sql).SortedString())
		}
		return strings.Join(out, "\n")
	}
	checkUnchanged := func(description, before string) {
		t.Helper()
		if storedState() != before {
			t.Errorf("%s: something was made or changed", description)
		}
	}

	// A check alone stores nothing.
	before := storedState()
	checkRequest := seedRequest
	checkRequest.CheckOnly = true
	checkResult := mustSucceed[*privacy.GeneralizationResult](t, "a check")(d.AddBelief(ctx, agentCaller("ash"), checkRequest))
	if checkResult.Memory != nil || checkResult.Report.Verdict == generalize.VerdictBlocked {
		t.Errorf("judged %+v", checkResult)
	}
	checkUnchanged("a check", before)

	// A name in any form, in the belief or in the note, blocks it: nothing is stored.
	names := map[string]string{
		"the name": "Bella needs exercise monitoring", "in lower case": "monitor bella",
		"with accents": "monitor BÉLLÀ", "with zero width": "monitor Be\u200bl\u200dla", "possessive": "Bella's murmur",
		"Cyrillic look-alikes": "monitor Веllа", "an alias": "Müsli needs monitoring",
		"an alias, folded": "muesli needs monitoring", "an alias of few letters": "小黑 needs monitoring",
		"the world's alias": "B-e-l-l-i-s-s-i-m-a needs monitoring", "who told it": "Dr. Smith recommends monitoring",
		"the source's id": "see episode:private_health_incident",
	}
	for i, description := range slices.Sorted(maps.Keys(names)) {
		if !tier.IsPicked(i, 2) { // package generalize tests each case
			continue
		}
		text := names[description]
		for _, isInNote := range []bool{false, true} {
			if isInNote && tier.Quick() {
				continue
			}
			g := seedRequest
			if g.Belief = text; isInNote {
				g.Belief, g.Note = belief, text
			}
			g.AcceptsWarnings = true // accepts possible names, not certain ones
			_, err := d.AddBelief(ctx, agentCaller("ash"), g)
			wantError(t, description, err, privacy.NameBlocked)
			var blockedError *privacy.BlockedError
			if !errors.As(err, &blockedError) || blockedError.Report.Verdict != generalize.VerdictBlocked || strings.Contains(err.Error(), text) {
				t.Errorf("%s: %v", description, err)
			}
		}
	}
	checkUnchanged("names", before)

	// The seed's example is stored. The alias in mallory's own stack, which the caller may not see, has no effect.
	generalized := mustSucceed[*privacy.GeneralizationResult](t, "the seed's line")(d.AddBelief(ctx, agentCaller("ash"), seedRequest))
	m := generalized.Memory
	if m == nil || generalized.AlreadyExisted || m.Kind != "belief" || m.Store != "ash" || m.Source != "" ||
		len(m.Subjects) != 0 || !slices.Equal(m.Access, withIDs("*")) {
		t.Fatalf("made %+v", generalized)
	}
	if got := harness.Ask(super, "SELECT belief_id, source_kind, source_id, abstraction_note FROM generalizations").
		Results[0].Rows; len(got) != 1 || !strings.Contains(got[0], m.ID) ||
		!strings.Contains(got[0], "\tepisode\t"+seedRequest.Source+"\t") || !strings.Contains(got[0], seedRequest.Note) {
		t.Errorf("the link is %q", got)
	}
	if got := harness.Ask(super, "SELECT subject_ids, access_grants, source_entity FROM episodes WHERE id = '"+
		seedRequest.Source+"'").Results[0].Rows; len(got) != 1 || !strings.Contains(got[0], `["dog:bella"]`) || !strings.Contains(got[0], "[]") {
		t.Errorf("the source is %q", got)
	}
	// Everybody sees the belief. Only the owner sees its source, the aliases and the link between both.
	for _, user := range []string{"bella", "rex", "sean", "vet", "mallory", "ashley", "ash_as_guest"} {
		c := k.connectAs(user, "")
		if got := k.queryList(c, "SELECT content FROM beliefs WHERE id = '"+m.ID+"'"); len(got) != 1 {
			t.Errorf("%s sees %v of the belief", user, got)
		}
		if got := k.queryList(c, "SELECT id FROM episodes WHERE id = '"+seedRequest.Source+"'"); len(got) != 0 {
			t.Errorf("%s sees the source", user)
		}
		for _, sql := range []string{
			"SELECT id FROM generalizations", "SELECT source_id FROM generalizations WHERE belief_id = '" + m.ID +
				"'", "SELECT b.id FROM beliefs b JOIN generalizations g ON g.belief_id = b.id",
			"SELECT id FROM beliefs WHERE EXISTS (SELECT FROM generalizations)",
			"SELECT g.id FROM generalizations g FULL JOIN episodes e ON e.id = g.source_id WHERE g.id IS NOT NULL",
			"SELECT alias FROM aliases WHERE stack_id = 'ash'",
			"WITH g AS (SELECT * FROM generalizations) SELECT id FROM g UNION SELECT id FROM g", "SELECT id FROM generalizations ORDER BY 1 FOR SHARE",
		} {
			if a := harness.Ask(c, sql); a.Code == "" && len(a.Results[0].Rows) > 0 {
				t.Errorf("%s: %s: %v", user, sql, a.Results[0].Rows)
			}
		}
		for _, sql := range []string{
			"INSERT INTO generalizations (stack_id, belief_id, source_id) VALUES ('ash', '" + m.ID +
				"', 'x') RETURNING id", "DELETE FROM generalizations", "UPDATE generalizations SET source_id = 'x'", "DELETE FROM aliases WHERE stack_id = 'ash'",
			"COPY generalizations TO STDOUT", "TRUNCATE generalizations",
		} {
			if a := harness.Ask(c, sql); a.Code == "" && a.Results[0].Tag != "DELETE 0" && a.Results[0].Tag != "COPY 0" {
				t.Errorf("%s: %s: %s", user, sql, a)
			}
		}
		harness.Close(c)
	}
	if got := k.queryList(k.connectAs("ash", ""), "SELECT source_id FROM generalizations"); !slices.Equal(got, withIDs(seedRequest.Source)) {
		t.Errorf("the owner sees %v", got)
	}

	// The same belief is stored once, also by calls at the same time; with other grants it is another belief.
	repeatedResult := mustSucceed[*privacy.GeneralizationResult](t, "again")(d.AddBelief(ctx, agentCaller("ash"), seedRequest))
	if !repeatedResult.AlreadyExisted || repeatedResult.Memory.ID != m.ID {
		t.Errorf("again %+v", repeatedResult)
	}
	// A memory of another kind with the same id is another source.
	if a := harness.Ask(super,
		"INSERT INTO notes (id, stack_id, content, subject_ids) SELECT id, stack_id, content, subject_ids FROM "+
			"episodes WHERE id = '"+seedRequest.Source+"'"); a.Err != "" {
		t.Fatal(a)
	}
	noteRequest := seedRequest
	noteRequest.Kind = "note"
	if generalized := mustSucceed[*privacy.GeneralizationResult](t, "of a note")(d.AddBelief(ctx, agentCaller("ash"), noteRequest)); generalized.AlreadyExisted ||
		generalized.Memory.ID == m.ID {
		t.Errorf("of a note with the same id: %+v", generalized)
	}
	otherRequest := seedRequest
	otherRequest.Belief = "Small breeds need exercise monitoring"
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			if _, err := d.AddBelief(ctx, agentCaller("ash"), otherRequest); err != nil {
				t.Errorf("at once: %v", err)
			}
		})
	}
	workers.Wait()
	if got := harness.Ask(super,
		"SELECT count(*) FROM beliefs b JOIN generalizations g ON g.belief_id = b.id WHERE content = '"+otherRequest.Belief+
			"'").Results[0].Rows; !slices.Equal(got, withIDs("1")) {
		t.Errorf("at once: %v", got)
	}
	narrowedRequest := seedRequest
	narrowedRequest.Access = withIDs()
	if generalized := mustSucceed[*privacy.GeneralizationResult](t,
		"for nobody")(d.AddBelief(ctx, agentCaller("ash"), narrowedRequest)); generalized.AlreadyExisted ||
		len(generalized.Memory.Access) != 0 {
		t.Errorf("for nobody: %+v", generalized)
	}
	// Details such as a date cause a warning, and the belief is stored: the caller decides.
	warnedRequest := seedRequest
	warnedRequest.Belief = "Heart murmurs that are found on a Tuesday need monitoring"
	if generalized := mustSucceed[*privacy.GeneralizationResult](t, "a date")(
		d.AddBelief(ctx, agentCaller("ash"), warnedRequest)); generalized.Memory == nil ||
		generalized.Report.Verdict != generalize.VerdictWarned {
		t.Errorf("a date: %+v", generalized)
	}
	// Words that may be names need the caller's explicit acceptance.
	unsureRequest := seedRequest
	unsureRequest.Belief = "Belladonna is no food"
	if report := mustSucceed[*privacy.GeneralizationResult](t,
		"unsure")(d.AddBelief(ctx, agentCaller("ash"),
		privacy.Generalization{Source: seedRequest.Source, Belief: unsureRequest.Belief,
			CheckOnly: true})).Report; report.Verdict != generalize.VerdictWarned {
		t.Errorf("unsure: %+v", report)
	}
	_, err := d.AddBelief(ctx, agentCaller("ash"), unsureRequest)
	wantError(t, "unsure", err, privacy.NameBlocked)
	unsureRequest.AcceptsWarnings = true
	mustSucceed[*privacy.GeneralizationResult](t, "accepted")(d.AddBelief(ctx, agentCaller("ash"), unsureRequest))

	before = storedState()
	// For a caller who does not see the source memory, it does not exist, also for a check.
	var answers []string
	for _, user := range []string{"rex", "mallory", "bella", "ash_as_guest", "sean"} {
		for _, source := range []string{seedRequest.Source, "episode:none", "none", "belief:none"} {
			for _, isCheck := range []bool{false, true} {
				g := seedRequest
				g.Source, g.CheckOnly = source, isCheck
				_, err := d.AddBelief(ctx, agentCaller(user), g)
				wantError(t, user+" of "+source, err, privacy.NameNotFound)
				answers = append(answers, err.Error())
			}
		}
	}
	if slices.Sort(answers); len(slices.Compact(answers)) != 1 {
		t.Errorf("the answers differ: %v", answers)
	}
	for description, c := range map[string]struct {
		caller string
		g      privacy.Generalization
		name   string
	}{
		"one sees it, in another's store": {"bella", privacy.Generalization{Source: "episode:1004", Belief: "Dogs rest"}, privacy.NameForbidden},
		"nothing is learned":              {"ash", privacy.Generalization{Source: seedRequest.Source, Belief: "\u2003"}, privacy.NameValidation},
		"a belief, not UTF-8":             {"ash", privacy.Generalization{Source: seedRequest.Source, Belief: "a\xff"}, privacy.NameValidation},
		"a note, not UTF-8":               {"ash", privacy.Generalization{Source: seedRequest.Source, Belief: "a", Note: "\xc3"}, privacy.NameValidation},
		"a source, not UTF-8":             {"ash", privacy.Generalization{Source: "episode:\xff", Belief: "a"}, privacy.NameValidation},
		"a NUL":                           {"ash", privacy.Generalization{Source: seedRequest.Source, Belief: "a\x00"}, privacy.NameValidation},
		"much":                            {"ash", privacy.Generalization{Source: seedRequest.Source, Belief: strings.Repeat("a ", 8193)}, privacy.NameValidation},
		"a source like SQL":               {"ash", privacy.Generalization{Source: "x' OR ''='", Belief: "a"}, privacy.NameValidation},
		"a grant like JSON":               {"ash", privacy.Generalization{Source: seedRequest.Source, Belief: "a", Access: withIDs(`["*"]`)}, privacy.NameValidation},
		"no kind":                         {"ash", privacy.Generalization{Source: seedRequest.Source, Kind: "stacks", Belief: "a"}, privacy.NameValidation},
		"about nobody knows whom":         {"ash", privacy.Generalization{Source: "episode:bad_1", Belief: "Dogs rest"}, privacy.NameConflict},
		"a broken list of subjects":       {"ash", privacy.Generalization{Source: "episode:bad_6", Belief: "Dogs rest"}, privacy.NameConflict},
		"a context of others": {"ash", privacy.Generalization{Source: seedRequest.Source, Belief: "Dogs rest",
			Context: "ctx:none"}, privacy.NameNotFound},
	} {
		_, err := d.AddBelief(ctx, agentCaller(c.caller), c.g)
		wantError(t, description, err, c.name)
	}
	_, err = d.AddBelief(ctx, identity.Caller{Role: identity.Subject, Subject: "human:sean"}, seedRequest)
	wantError(t, "a subject's token", err, privacy.NameForbidden)
	checkUnchanged("refusals", before)
	// The same holds for each form of a list.
	for _, kind := range []string{"episode_array", "episode_jsonb"} {
		g := privacy.Generalization{Source: "episode:1001", Kind: kind, Belief: "Bella rests"}
		_, err := d.AddBelief(ctx, agentCaller("ash"), g)
		wantError(t, kind, err, privacy.NameBlocked)
		g.Belief = "Resting helps " + kind
		mustSucceed[*privacy.GeneralizationResult](t, kind)(d.AddBelief(ctx, agentCaller("ash"), g))
	}
}
