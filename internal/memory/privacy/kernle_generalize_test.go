//go:build unix

package privacy

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/memory/generalize"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/policy"
)

// A belief can be made once from a memory that the caller may see and change, unless the text tells whom the memory is
// about. Only the owner is told from which memory the belief was made.
func checkGeneralize(k *kernle) {
	ctx := context.Background()
	makeBelief := func(agentName string, g Generalization) (*GeneralizationResult, error) {
		return k.service.AddBelief(ctx, as(agentName), g)
	}
	counts := func() string {
		return k.value("SELECT (SELECT count(*) FROM beliefs) || ' beliefs, ' || " +
			"(SELECT count(*) FROM generalizations) || ' links'")
	}
	const belief = "Heart murmurs in small breeds need exercise" // dog:bella has the alias "breeds" in the store of si:mallory
	first := Generalization{Source: "episode:told", Belief: belief, Note: "of direct care", Access: []string{"*"},
		Reason: "to share"}
	for _, c := range []struct{ description, belief, note string }{{"an alias, in the note", "Exercise helps",
		"learned of Bellissima"}} {
		g := first
		g.Belief, g.Note, g.AcceptsWarnings = c.belief, c.note, true
		_, err := makeBelief("ash", g)
		requireRefused(k.T, c.description, err, NameBlocked, "PC422")
	}
	for id, want := range map[string][]generalize.Subject{
		"episode:told": {{ID: "dog:bella", Aliases: []string{"Bellissima"}}, {ID: "vet:smith"}},
		// the alias in the store of si:mallory is not used here
		"episode:mine": {{ID: "dog:bella", Aliases: []string{"Bellissima"}}},
		// episode:kid is about human:kid itself, so its name is not a secret from ash
		"episode:kid": {{ID: "human:kid"}, {ID: "dog:bella", Aliases: []string{"Bellissima"}}}, "episode:private": {},
	} {
		s := k.session("ash")
		tx := must[pgx.Tx](k, "begin")(s.conn.Begin(ctx))
		src := must[*sourceMemory](k, id)(s.readSource(ctx, tx, "", id, false))
		if diff := cmp.Diff(want, must[[]generalize.Subject](k, id)(s.subjectsToHide(ctx, tx, src))); diff != "" {
			k.Errorf("whom a text drawn from %s must not name: %s", id, diff)
		}
		_ = tx.Rollback(ctx)
	}
	check := first
	check.CheckOnly, check.Belief = true, "Bella needs exercise"
	if out, err := makeBelief("ash", check); err != nil || out.Memory != nil || out.Report.Verdict != generalize.VerdictBlocked ||
		!slices.Equal(out.Subjects, []string{"dog:bella"}) {
		k.Errorf("only judged: %+v, %v", out, err)
	}
	if got := counts(); got != "0 beliefs, 0 links" {
		k.Errorf("nothing was to be made: %s", got)
	}

	result := must[*GeneralizationResult](k, "a belief")(makeBelief("ash", first))
	m := result.Memory
	if m == nil || result.AlreadyExisted || m.Kind != "belief" || m.Store != "ash" || len(m.Subjects) != 0 ||
		!slices.Equal(m.Access, []string{"*"}) || !slices.Equal(result.Subjects, []string{"dog:bella"}) {
		k.Fatalf("%+v", result)
	}
	if got := k.value("SELECT concat_ws(' ', stack_id, belief_id = '" + m.ID + "', source_kind, source_id, abstraction_note) " +
		"FROM generalizations"); got != "ash t episode episode:told of direct care" {
		k.Errorf("noted %s", got)
	}
	repeatedRequest := first
	repeatedRequest.Access, repeatedRequest.Note = nil, "other"
	if out, err := makeBelief("ash", repeatedRequest); err != nil || !out.AlreadyExisted || out.Memory.ID != m.ID {
		k.Errorf("the same, whatever is granted and noted: %+v, %v", out, err)
	}
	for _, c := range []struct {
		description  string
		source       string
		belief       string
		access       []string
		isSameBelief bool
	}{
		{"the same", "episode:told", belief, []string{"*"}, true},
		{"of whatever grants", "episode:told", belief, nil, true},
		{"for nobody", "episode:told", belief, []string{}, false},
		{"for more", "episode:told", belief, []string{"*", "si:bella"}, false},
		{"for others", "episode:told", belief, []string{"si:bella"}, false},
		{"of another memory", "episode:grant", belief, nil, false},
		{"another", "episode:told", belief + ".", nil, false},
	} {
		s := k.session("ash")
		tx := must[pgx.Tx](k, "begin")(s.conn.Begin(ctx))
		src := must[*sourceMemory](k, c.source)(s.readSource(ctx, tx, "", c.source, false))
		if got, err := s.findDerived(ctx, tx, src, Generalization{Belief: c.belief}, c.access); err != nil ||
			(got != nil) != c.isSameBelief {
			k.Errorf("a belief drawn before, %s: %+v, %v", c.description, got, err)
		}
		_ = tx.Rollback(ctx)
	}
	before := counts()
	for _, c := range []struct {
		description, agentName string
		g                      Generalization
		name, code             string
	}{
		{"of what is hidden", "bella", Generalization{Source: "episode:private"}, NameNotFound, "PC404"},
		{"of what is another's", "bella", Generalization{Source: "episode:public"}, NameForbidden, "42501"},
	} {
		c.g.Belief = "Dogs rest"
		_, err := makeBelief(c.agentName, c.g)
		requireRefused(k.T, "a belief "+c.description, err, c.name, c.code)
	}
	for _, c := range []struct{ description, id, kind, name, code string }{
		{"that is not", "episode:none", "", NameNotFound, "PC404"},
		{"of a kind that it is not", "episode:told", "belief", NameNotFound, "PC404"},
		{"of no kind", "episode:told", "stacks", NameValidation, "PC422"},
		{"of two kinds", "twice", "", NameConflict, "PC409"},
		{"about nobody knows whom", "episode:unknown", "", NameConflict, "PC409"},
		{"of the kind that is said", "twice", "episode_array", "", ""},
	} {
		s := k.session("ash")
		tx := must[pgx.Tx](k, "begin")(s.conn.Begin(ctx))
		src, err := s.readSource(ctx, tx, c.kind, c.id, true)
		switch _ = tx.Rollback(ctx); {
		case c.name != "":
			requireRefused(k.T, "a source "+c.description, err, c.name, c.code)
		case err != nil || src.content != "The other of two" || src.store != "ash" ||
			!slices.Equal(src.subjects, []string{"human:kid"}):
			k.Errorf("a source %s: %+v, %v", c.description, src, err)
		}
	}
	if got := counts(); got != before {
		k.Errorf("refused, and %s became %s", before, got)
	}

	derivedBeliefs := must[*DerivedBeliefs](k, "drawn")(k.service.ListDerivedBeliefs(ctx, as("ash"), ""))
	i := slices.IndexFunc(derivedBeliefs.List, func(d DerivedBelief) bool { return d.Belief.ID == m.ID })
	if len(derivedBeliefs.List) != 1 || derivedBeliefs.Next != "" || i < 0 {
		k.Fatalf("drawn: %+v", derivedBeliefs)
	}
	if d := derivedBeliefs.List[i]; d.Text != belief || d.Source != "episode:told" || d.SourceKind != "episode" ||
		d.Note != "of direct care" || d.By != "si:ash" || d.At.IsZero() || len(d.Belief.Viewers) < 2 {
		k.Errorf("drawn: %+v", d)
	}
	if out := must[*DerivedBeliefs](k, "others")(k.service.ListDerivedBeliefs(ctx, identity.Caller{Role: identity.Subject,
		Subject: "dog:bella"}, "")); len(out.List) != 0 {
		k.Errorf("a subject is told of %+v", out)
	}
	k.Run("by another policy", func(t *testing.T) {
		k := k.in(t)
		k.differently(func(p *policy.Privacy) {
			g := *p.Generalize
			g.Aliases = nil
			p.Generalize = &g
		})
		if got, err := k.session("ash").subjectsToHide(ctx, nil, &sourceMemory{subjects: []string{"dog:bella"},
			toldBy: "dog:bella"}); err != nil || len(got) != 1 || got[0].Aliases != nil {
			t.Errorf("without aliases: %+v, %v", got, err)
		}
	})
}
