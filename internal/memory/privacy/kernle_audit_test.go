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
func checkAudit(k *kernle) {
	ctx := context.Background()
	agentAttributes := k.service.AgentAttributes()
	k.service.AgentAttributes = func() map[string]map[string]string {
		return map[string]map[string]string{"ash": agentAttributes["ash"], "bella": agentAttributes["bella"], "sean": agentAttributes["sean"],
			"vet": agentAttributes["vet"]}
	}
	defer func() { k.service.AgentAttributes = func() map[string]map[string]string { return agentAttributes } }()
	subject := func(id string) identity.Caller { return identity.Caller{Role: identity.Subject, Subject: id} }
	control := must[*pgx.Conn](k, "connect")(k.service.ConnectControl(ctx))
	defer control.Close(ctx)
	auditableRows := func(caller, subject, kind, key string) []memoryRow {
		k.Helper()
		a := auditor{controlConn: control}
		return must[[]memoryRow](k, caller)(a.readMemories(ctx, caller, subject, kind, key, nil, 100))
	}
	// told returns all memories about which a caller may ask, by kind and id.
	auditedMemories := func(caller string) map[string]AuditedMemory {
		k.Helper()
		p := k.service.Policy()
		a := auditor{policy: p, section: p.Privacy(), controlConn: control, stores: map[string]*storeConsents{}}
		out := map[string]AuditedMemory{}
		for _, r := range must[[]AuditedMemory](k, caller)(a.auditedMemories(ctx, k.service, caller,
			auditableRows(caller, "", "", ""))) {
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
	owner, guardian := auditedMemories("si:ash"), auditedMemories("human:sean")
	for _, c := range []struct {
		description                       string
		auditedMemories                   map[string]AuditedMemory
		memory                            string
		viewersWithAccess, waitingViewers []string
		subjects                          []string
		othersCount                       int
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
		got, ok := c.auditedMemories[c.memory]
		k.same("sees "+c.description, viewers(got.Viewers), c.viewersWithAccess...)
		k.same("waits for consent, "+c.description, viewers(got.WithoutConsent), c.waitingViewers...)
		k.same("whom it is about, "+c.description, got.Subjects, c.subjects...)
		if !ok || got.Owner != "si:ash" || got.OtherSubjects != c.othersCount || got.Store != "ash" {
			k.Errorf("%s: %+v", c.description, got)
		}
	}
	if _, ok := guardian["episode episode:public"]; ok {
		k.Errorf("a guardian is told of %d memories, a public one among them", len(guardian))
	}
	if list := auditableRows("human:kid", "", "", ""); len(list) != 3 || slices.ContainsFunc(list,
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
	requireRefused(k.T, "by an id of another kind", err, NameNotFound, "PC404")

	// The audit of a subject comes in pages, each memory once and in order. A cursor gives other callers nothing.
	firstPage := must[*AuditReport](k, "a page")(k.service.Audit(ctx, as("ash"), AuditQuery{Subject: "dog:page", MaxMemories: 2}))
	lastPage := must[*AuditReport](k, "the last page")(k.service.Audit(ctx, as("ash"), AuditQuery{Subject: "dog:page", MaxMemories: 1,
		After: firstPage.Next}))
	if len(firstPage.Rows) != 2 || firstPage.Rows[0].ID != "episode:page1" || firstPage.Rows[1].ID != "episode:page2" ||
		firstPage.Next == "" || len(lastPage.Rows) != 1 || lastPage.Rows[0].ID != "episode:page3" || lastPage.Next != "" {
		k.Errorf("in pages: %+v, %+v", firstPage, lastPage)
	}
	if out, err := k.service.Audit(ctx, subject("si:mallory"), AuditQuery{Subject: "dog:page",
		After: firstPage.Next}); err != nil || len(out.Rows) != 0 || out.Next != "" {
		k.Errorf("a place that somebody else was given: %+v, %v", out, err)
	}
	for description, list := range map[string][]memoryRow{
		"who sees it": auditableRows("si:bella", "", "", "episode:1"), "a guardian elsewhere": auditableRows("human:mallory", "", "",
			"episode:1"), "another subject": auditableRows("human:mira", "", "", "episode:1"),
		"the owner, of nobody there": auditableRows("si:ash", "dog:bell", "", ""), "the owner, of a longer id": auditableRows("si:ash",
			"", "", "episode:11"), "the owner, of another kind": auditableRows("si:ash", "", "belief", "episode:1"),
		"who speaks for another": auditableRows("human:sean", "human:kid", "", ""), "a role": auditableRows("role:vet", "", "",
			"episode:1"), "nobody": auditableRows("", "", "", "episode:1"),
	} {
		if len(list) != 0 {
			k.Errorf("%s may ask about %+v", description, list)
		}
	}
	_, err = k.service.Audit(ctx, as("bella"), AuditQuery{ID: "episode:1"})
	requireRefused(k.T, "asked by who sees it", err, NameNotFound, "PC404")

	for _, c := range []struct {
		caller  identity.Caller
		limit   int
		want    []string
		hasMore bool
	}{
		{as("sean"), 5, []string{"dog:bella"}, false},
		{as("ash"), 2, []string{"dog:bella", "dog:page"}, true},
		{as("ash"), 3, []string{"dog:bella", "dog:page", "human:kid"}, false},
	} {
		got, hasMore, err := k.service.AuditableSubjects(ctx, c.caller, c.limit)
		if err != nil || hasMore != c.hasMore {
			k.Errorf("whom %s %s may ask about: more %v, %v", c.caller.Agent, c.caller.Subject, hasMore, err)
		}
		k.same("whom "+c.caller.Agent+c.caller.Subject+" may ask about", got, c.want...)
	}
}
