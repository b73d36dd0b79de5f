//go:build unix

package privacy

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/services/identity"
)

// The owner of a memory, its subjects and their guardians may ask who can see it, and get what the database itself
// shows. Others get the answer for a memory that does not exist.
func auditing(k *kernle) {
	ctx := context.Background()
	all := k.service.AgentAttributes()
	k.service.AgentAttributes = func() map[string]map[string]string {
		return map[string]map[string]string{"ash": all["ash"], "bella": all["bella"], "sean": all["sean"],
			"vet": all["vet"]}
	}
	defer func() { k.service.AgentAttributes = func() map[string]map[string]string { return all } }()
	subject := func(id string) identity.Caller { return identity.Caller{Role: identity.Subject, Subject: id} }
	control := must[*pgx.Conn](k, "connect")(k.service.ConnectControl(ctx))
	defer control.Close(ctx)
	may := func(caller, about, kind, key string) []memoryRow {
		k.Helper()
		a := auditor{controlConn: control}
		return must[[]memoryRow](k, caller)(a.readMemories(ctx, caller, about, kind, key, nil, 100))
	}
	// told returns all memories about which a caller may ask, by kind and id.
	told := func(caller string) map[string]AuditedMemory {
		k.Helper()
		p := k.service.Policy()
		a := auditor{policy: p, section: p.Privacy(), controlConn: control, stores: map[string]*storeConsents{}}
		out := map[string]AuditedMemory{}
		for _, r := range must[[]AuditedMemory](k, caller)(a.auditedMemories(ctx, k.service, caller,
			may(caller, "", "", ""))) {
			out[r.Kind+" "+r.ID] = r
		}
		return out
	}
	// viewers formats viewers as text: who, in which context, by which grants, with which consent, and whose consent is
	// missing.
	viewers := func(list []Viewer) []string {
		out := []string{}
		for _, v := range list {
			text := v.Entity
			if v.Context != "" {
				text += " in " + v.Context
			}
			if text += " " + v.Through; v.Grant != "" {
				text += " " + v.Grant
			}
			for _, c := range v.Consents {
				text += " by " + c.Record
			}
			if len(v.Missing) > 0 {
				text += " without " + strings.Join(v.Missing, " ")
			}
			out = append(out, text)
		}
		slices.Sort(out)
		return out
	}
	if _, err := k.service.Grant(ctx, as("ash"), GrantChange{ID: "episode:mine", Grantees: []string{"si:bella"},
		Reason: "first"}); err != nil {
		k.Fatal(err)
	}
	if _, err := k.db.Connect(k, "postgres").Exec(ctx,
		"UPDATE episodes SET access_grants = '[]' WHERE id = 'episode:mine';"+
			" SELECT pgconsent.audit_forget('si:bella')"); err != nil {
		k.Fatal(err)
	}
	owner, guardian := told("si:ash"), told("human:sean")
	for _, c := range []struct {
		what          string
		told          map[string]AuditedMemory
		memory        string
		sees, waiting []string
		subjects      []string
		others        int
	}{
		{"a memory, by its owner", owner, "episode episode:1",
			[]string{"human:vet in ctx:health grant ctx:health by consent:2", "si:ash owner",
				"si:bella grant si:bella by consent:1"},
			[]string{"human:sean in ctx:health grant ctx:health without dog:bella"}, []string{"dog:bella"}, 0},
		{"one about two, by the guardian of one", guardian, "episode episode:kid", []string{"si:ash owner"},
			[]string{"si:new grant si:new without dog:bella"}, []string{"dog:bella"}, 1},
		{"a public one", owner, "episode episode:public", []string{"* grant *", "human:sean grant *",
			"human:vet grant *", "si:ash owner", "si:bella grant *"}, nil, nil, 0},
		{"one that is granted to everybody and to somebody", owner, "episode episode:both",
			[]string{"* grant *", "human:sean grant *", "human:vet grant *", "si:ash owner", "si:bella grant *"}, nil,
			nil, 0},
		{"a private one", owner, "episode episode:private", []string{"si:ash owner"}, nil, nil, 0},
		{"one of another kind that has the id", owner, "episode_array twice", []string{"si:ash owner"}, nil,
			[]string{"human:kid"}, 0},
		{"one granted to what is no list", owner, "episode episode:bad", []string{"si:ash owner"}, nil, nil, 0},
	} {
		got, ok := c.told[c.memory]
		k.same("sees "+c.what, viewers(got.Viewers), c.sees...)
		k.same("waits for consent, "+c.what, viewers(got.WithoutConsent), c.waiting...)
		k.same("whom it is about, "+c.what, got.Subjects, c.subjects...)
		if !ok || got.Owner != "si:ash" || got.OtherSubjects != c.others || got.Store != "ash" {
			k.Errorf("%s: %+v", c.what, got)
		}
	}
	if _, ok := guardian["episode episode:public"]; ok {
		k.Errorf("a guardian is told of %d memories, a public one among them", len(guardian))
	}
	if list := may("human:kid", "", "", ""); len(list) != 3 || slices.ContainsFunc(list,
		func(f memoryRow) bool { return !slices.Equal(f.toldBy, []string{"human:kid"}) }) {
		k.Errorf("a subject may ask about %+v", list)
	}
	// The history of the grants, oldest first.
	h := owner["episode episode:mine"].History
	if len(h) != 2 || h[0].Action != "grant" || h[0].Reason != "first" || h[0].By != "si:ash" ||
		!slices.Equal(h[0].Grantees, []string{erasedIDText}) || h[0].At.IsZero() || h[1].Action != "revoke" ||
		h[1].By != "postgres" {
		k.Errorf("what became of it: %+v", h)
	}
	// An id with the prefix of a kind is looked for only in that kind.
	if out := must[*AuditReport](k, "both")(k.service.Audit(ctx, as("ash"), AuditQuery{ID: "twice"})); len(out.Rows) != 2 ||
		out.Next != "" {
		k.Errorf("of two memories with an id %d are told", len(out.Rows))
	}
	_, err := k.service.Audit(ctx, as("ash"), AuditQuery{ID: "episode:array"})
	refused(k.T, "by an id of another kind", err, NameNotFound, "PC404")

	// The audit of a subject comes in pages, each memory once and in order. A cursor gives other callers nothing.
	first := must[*AuditReport](k, "a page")(k.service.Audit(ctx, as("ash"), AuditQuery{Subject: "dog:page", MaxMemories: 2}))
	last := must[*AuditReport](k, "the last page")(k.service.Audit(ctx, as("ash"), AuditQuery{Subject: "dog:page", MaxMemories: 1,
		After: first.Next}))
	if len(first.Rows) != 2 || first.Rows[0].ID != "episode:page1" || first.Rows[1].ID != "episode:page2" ||
		first.Next == "" || len(last.Rows) != 1 || last.Rows[0].ID != "episode:page3" || last.Next != "" {
		k.Errorf("in pages: %+v, %+v", first, last)
	}
	if out, err := k.service.Audit(ctx, subject("si:mallory"), AuditQuery{Subject: "dog:page",
		After: first.Next}); err != nil || len(out.Rows) != 0 || out.Next != "" {
		k.Errorf("a place that somebody else was given: %+v, %v", out, err)
	}
	for what, list := range map[string][]memoryRow{
		"who sees it": may("si:bella", "", "", "episode:1"), "a guardian elsewhere": may("human:mallory", "", "",
			"episode:1"), "another subject": may("human:mira", "", "", "episode:1"),
		"the owner, of nobody there": may("si:ash", "dog:bell", "", ""), "the owner, of a longer id": may("si:ash",
			"", "", "episode:11"), "the owner, of another kind": may("si:ash", "", "belief", "episode:1"),
		"who speaks for another": may("human:sean", "human:kid", "", ""), "a role": may("role:vet", "", "",
			"episode:1"), "nobody": may("", "", "", "episode:1"),
	} {
		if len(list) != 0 {
			k.Errorf("%s may ask about %+v", what, list)
		}
	}
	_, err = k.service.Audit(ctx, as("bella"), AuditQuery{ID: "episode:1"})
	refused(k.T, "asked by who sees it", err, NameNotFound, "PC404")

	for _, c := range []struct {
		by    identity.Caller
		limit int
		want  []string
		more  bool
	}{
		{as("sean"), 5, []string{"dog:bella"}, false},
		{as("ash"), 2, []string{"dog:bella", "dog:page"}, true},
		{as("ash"), 3, []string{"dog:bella", "dog:page", "human:kid"}, false},
	} {
		got, more, err := k.service.AuditableSubjects(ctx, c.by, c.limit)
		if err != nil || more != c.more {
			k.Errorf("whom %s %s may ask about: more %v, %v", c.by.Agent, c.by.Subject, more, err)
		}
		k.same("whom "+c.by.Agent+c.by.Subject+" may ask about", got, c.want...)
	}
}
