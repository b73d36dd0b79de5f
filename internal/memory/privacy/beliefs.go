package privacy

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/policy"
)

// DerivedBelief is a belief that was drawn from a private memory. Only the owner of the memory's store sees this.
type DerivedBelief struct {
	Belief     AuditedMemory `json:"belief"` // who sees the belief, and how its grants changed
	Text       string        `json:"text"`
	Source     string        `json:"source"`                // the id of the private memory, which may be deleted now
	SourceKind string        `json:"source_kind,omitempty"` // the kind of the private memory in the policy
	Note       string        `json:"abstraction_note,omitempty"`
	At         time.Time     `json:"at,omitzero"` // when the belief was drawn; zero: that was not recorded
	// who drew the belief: the entity or, if no agent did, the database role; "": that was not recorded
	By string `json:"by,omitempty"`
}

// DerivedBeliefs is a page of beliefs, the newest first.
type DerivedBeliefs struct {
	List []DerivedBelief `json:"generalizations"`
	Next string          `json:"next,omitempty" doc:"There are more than are listed: ask again with after set to this."`
}

// maxBeliefsPerPage is how many beliefs a page has at most.
const maxBeliefsPerPage = 50

// ListDerivedBeliefs lists the beliefs that were drawn from memories in the caller's own stores, and who sees them.
// Only the owner of a store may know from which memory a belief was drawn.
func (d *Service) ListDerivedBeliefs(ctx context.Context, c identity.Caller, after string) (*DerivedBeliefs, error) {
	cursor, err := parseCursor(after)
	if err != nil {
		return nil, err
	}
	p, section, err := d.privacySection()
	if err != nil {
		return nil, err
	}
	caller, err := d.auditCaller(section, c)
	if err != nil {
		return nil, err
	}
	control, err := d.ConnectControl(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = control.Close(context.WithoutCancel(ctx)) }()
	a := auditor{policy: p, section: section, controlConn: control, stores: map[string]*storeConsents{}}
	rows, err := control.Query(ctx,
		"SELECT kind, key, store, coalesce(text, ''), source, source_kind, note, at FROM "+
			"pgconsent.privacy_drawn($1, $2, $3)", caller, cursor, maxBeliefsPerPage+1)
	if err != nil {
		return nil, fmt.Errorf("look at what was drawn from memories: %w", err)
	}
	type link struct {
		kind, key, store, cursor string
		DerivedBelief
	}
	links, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (l link, err error) {
		err = row.Scan(&l.kind, &l.key, &l.store, &l.Text, &l.Source, &l.SourceKind, &l.Note, &l.cursor)
		l.At, _ = time.Parse(time.RFC3339Nano, l.cursor)
		return l, err
	})
	if err != nil {
		return nil, fmt.Errorf("look at what was drawn from memories: %w", err)
	}
	out := &DerivedBeliefs{List: []DerivedBelief{}}
	if len(links) > maxBeliefsPerPage {
		links = links[:maxBeliefsPerPage]
		lastLink := links[maxBeliefsPerPage-1]
		out.Next = encodeCursor(lastLink.cursor, lastLink.key, lastLink.Source)
	}
	var beliefs []memoryRow
	for _, l := range links {
		sources, err := a.readMemories(ctx, caller, "", l.kind, l.key, nil, 2)
		if err != nil {
			return nil, err
		}
		beliefs = append(beliefs, sources...)
	}
	reports, err := a.auditedMemories(ctx, d, caller, beliefs)
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, l := range links {
		keys = append(keys, l.key)
	}
	makers, err := a.beliefMakers(ctx, section.Generalize, keys)
	if err != nil {
		return nil, err
	}
	for _, l := range links {
		i := slices.IndexFunc(reports, func(r AuditedMemory) bool { return r.Kind == l.kind && r.ID == l.key && r.Store == l.store })
		if i < 0 {
			continue // The belief has been deleted since it was read.
		}
		l.Belief = reports[i]
		l.By = makers[[2]string{l.key, l.store}]
		// Of a belief whose drawing was not recorded, the entity of its first grant counts as the one that drew it.
		if h := l.Belief.History; l.By == "" && len(h) > 0 {
			l.By = h[0].By
		}
		out.List = append(out.List, l.DerivedBelief)
	}
	return out, nil
}

// beliefMakers returns who drew each belief, by the belief's key and store.
func (a auditor) beliefMakers(ctx context.Context, g *policy.Generalize, keys []string) (map[[2]string]string, error) {
	out := map[[2]string]string{}
	if g == nil || len(keys) == 0 {
		return out, nil
	}
	rows, err := a.controlConn.Query(ctx, `SELECT e.key, coalesce(e.store, ''), `+changedBySQL+`
		FROM pgconsent.privacy_event AS e WHERE e.relation = $1 AND e.key = ANY ($2) AND e.did = 'draw'
		ORDER BY e.number DESC`, g.Link.Relation.Name.String(), keys, erasedIDText)
	if err == nil {
		var key, store, maker string
		_, err = pgx.ForEachRow(rows, []any{&key, &store, &maker}, func() error { // The oldest row comes last and wins.
			out[[2]string{key, store}] = maker
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("look at who has drawn what: %w", err)
	}
	return out, nil
}
