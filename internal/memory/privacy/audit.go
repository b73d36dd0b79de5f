package privacy

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/enforce/seal"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// AuditQuery is a question about who sees the memories about a subject, or one memory.
type AuditQuery struct {
	Subject     string
	ID          string
	Kind        string // kind of the memory; "": the kind that its id begins with, and any kind if it begins with none
	After       string // value of Next in the report before; "": the report starts with the first memory
	MaxMemories int    // how many memories the report has at most; 0: as many as a report may have
}

// AuditReport tells who sees which memories.
type AuditReport struct {
	Subject string          `json:"subject,omitempty"`
	Rows    []AuditedMemory `json:"memories"`
	Next    string          `json:"next,omitempty" doc:"There are more memories than are listed: ask again with after set to this." jsonschema:"there are more: ask again with after set to this"`
}

// AuditedMemory is a memory without its text, and who sees it.
type AuditedMemory struct {
	ID    string `json:"id"`
	Kind  string `json:"kind"`
	Store string `json:"store"`
	Owner string `json:"owner"`
	// the subjects of the memory; callers other than the owner get only subjects for whom they may ask
	Subjects       []string `json:"subject_ids"`
	OtherSubjects  int      `json:"other_subjects,omitempty"` // the number of subjects whose ids the report leaves out
	Access         []string `json:"access_grants"`            // ids to which the memory is granted
	Viewers        []Viewer `json:"sees"`
	WithoutConsent []Viewer `json:"granted_without_consent"` // entities that have a grant of the memory and do not see it
	History        []Event  `json:"history"`
}

// Viewer is an entity that sees a memory, or to which it is granted.
type Viewer struct {
	Entity  string   `json:"entity"`            // the word for everybody: anybody at all
	Agents  []string `json:"agents"`            // logins of the configuration with this entity
	Context string   `json:"context,omitempty"` // the entity sees the memory in this context only
	// owner, grant or rule; with rule, the policy shows the memory for another reason
	Through  string      `json:"through"`
	Grant    string      `json:"grant,omitempty"` // what the memory is granted to
	Consents []Agreement `json:"consents,omitempty"`
	Missing  []string    `json:"missing_consent,omitempty"` // the subjects without a consent that counts
}

// Agreement is a record of consent that lets somebody see a memory.
type Agreement struct {
	Subject  string `json:"subject"`
	Grantor  string `json:"grantor"`            // the subject, or its guardian
	Guardian bool   `json:"guardian,omitempty"` // a guardian recorded the consent for the subject
	Grantee  string `json:"grantee"`
	Scope    string `json:"scope"`
	Record   string `json:"record"`
	Given    string `json:"given_at,omitempty"` // when the consent was recorded
}

// Event is a grant or a revocation of a grant.
type Event struct {
	At       time.Time `json:"at"`
	Action   string    `json:"did"` // the word grant or revoke
	Grantees []string  `json:"who"`
	By       string    `json:"by"` // entity that made the change; a role of the database, if no agent made it
	Reason   string    `json:"reason,omitempty"`
}

// erasedIDText is shown for an id whose reference was deleted.
const erasedIDText = "(forgotten)"

// maxRows is how many memories one report has.
const maxRows = 200

// memoryRow is a memory as the control role reads it from the database.
type memoryRow struct {
	kind, key, store, owner            string
	source                             *string
	subjects, grants, evidence, toldBy []string // evidence: ids in the column of consents
}

// nextCursor says where a report ended, so that the next one can continue. A forged cursor shows nothing that the
// caller may not know.
func (f memoryRow) nextCursor() string { return encodeCursor(f.store, f.kind, f.key) }

func encodeCursor(parts ...string) string {
	b, _ := json.Marshal(parts) // Texts can always be encoded.
	return base64.RawURLEncoding.EncodeToString(b)
}

func parseCursor(after string) ([]string, error) {
	if after == "" {
		return nil, nil
	}
	var out []string
	b, err := base64.RawURLEncoding.DecodeString(after)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	if err != nil || len(out) != 3 || !utf8.Valid(b) ||
		slices.ContainsFunc(out, func(s string) bool { return strings.Contains(s, "\x00") }) {
		return nil, newError(NameValidation, "Leave it out, or give what next of the answer before was.",
			"this is no place in a report")
	}
	return out, nil
}

// storeConsents are the consent records, guardians and contexts of a store.
type storeConsents struct {
	consents  []consentRow
	guardians [][2]string // pairs of a subject and its guardian
	contexts  map[string][]string
}

type consentRow struct{ key, grantor, grantee, scope, recordedAt string }

// possibleViewer is an entity that may see a memory.
type possibleViewer struct {
	entity     string // the name of the entity in the report
	agents     []string
	ids        []string // the entity and its roles; no ids if the candidate stands for everybody
	attributes map[string]string
}

// Audit tells who sees a memory, or the memories about a subject: The owner, the subject and its guardian may ask. It
// does not compute who sees what. It reads under row security for each agent of the configuration, for each id to which
// a memory is granted, and for an unknown entity. The grant and the consents behind it come from the rows and records.
func (d *Service) Audit(ctx context.Context, c identity.Caller, q AuditQuery) (*AuditReport, error) {
	if (q.Subject == "") == (q.ID == "") {
		return nil, newError(NameValidation, "Ask about a subject, or about a memory by its id.",
			"a question is about one of the two")
	}
	if err := firstError(checkOptionalID("the subject", q.Subject), checkOptionalID("the memory's id", q.ID),
		checkOptionalID("the kind", q.Kind)); err != nil {
		return nil, err
	}
	after, err := parseCursor(q.After)
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
	kind := q.Kind
	if prefix, _, _ := strings.Cut(q.ID, ":"); kind == "" && section.MemoriesOf(prefix) != nil {
		kind = prefix
	}
	if kind != "" && section.MemoriesOf(kind) == nil {
		return nil, newNoKindError(section)
	}
	control, err := d.ConnectControl(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = control.Close(context.WithoutCancel(ctx)) }()
	a := auditor{policy: p, section: section, controlConn: control, stores: map[string]*storeConsents{}}
	limit := maxRows
	if q.MaxMemories > 0 {
		limit = min(limit, q.MaxMemories)
	}
	rows, err := a.readMemories(ctx, caller, q.Subject, kind, q.ID, after, limit+1)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 && after == nil {
		return nil, newNotFoundError("memory or subject")
	}
	out := &AuditReport{Subject: q.Subject, Rows: []AuditedMemory{}}
	if len(rows) > limit {
		rows = rows[:limit]
		out.Next = rows[limit-1].nextCursor()
	}
	out.Rows, err = a.auditedMemories(ctx, d, caller, rows)
	return out, err
}

// auditedMemories tells who sees each of these memories.
func (a auditor) auditedMemories(ctx context.Context, d *Service, caller string, rows []memoryRow) ([]AuditedMemory,
	error) {
	out := []AuditedMemory{}
	if len(rows) == 0 {
		return out, nil
	}
	for _, r := range rows {
		if a.stores[r.store] == nil {
			m, err := a.loadStore(ctx, r.store)
			if err != nil {
				return nil, err
			}
			a.stores[r.store] = m
		}
	}
	agentConn, err := d.ConnectAgentRole(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = agentConn.Close(context.WithoutCancel(ctx)) }()
	keys, err := seal.LoadKeyring(ctx, a.controlConn)
	if err != nil {
		return nil, err
	}
	candidates := a.possibleViewers(d.AgentAttributes(), rows)
	visibleByViewer, err := a.visibleRows(ctx, agentConn, keys, candidates, rows)
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		row, err := a.auditedMemory(ctx, caller, r, candidates, visibleByViewer)
		if err != nil {
			return nil, err
		}
		out = append(out, *row)
	}
	return out, nil
}

// auditCaller returns the id of the caller of an audit.
func (d *Service) auditCaller(section *policy.Privacy, c identity.Caller) (string, error) {
	caller := ""
	switch c.Role {
	case identity.Subject:
		caller = c.Subject
	case identity.Agent:
		caller, _ = entityAndRoles(section, d.attributesOf(c))
	}
	if caller == "" {
		return "", newError(NameForbidden, "Ask as the owner's agent, as the subject or as its guardian.",
			"a %s is told nothing of who sees what", c.Role)
	}
	return caller, nil
}

// auditor answers one question of an audit.
type auditor struct {
	policy      *policy.Policy
	section     *policy.Privacy
	controlConn *pgx.Conn
	stores      map[string]*storeConsents
}

// nilIfEmpty returns nil for the empty text.
func nilIfEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// readMemories returns the memories about which the caller may ask. A function of the database decides about which it
// may.
func (a auditor) readMemories(ctx context.Context, caller, subject, kind, key string, after []string,
	limit int) ([]memoryRow,
	error) {
	rows, err := a.controlConn.Query(ctx,
		"SELECT kind, key, store, owner, source, subjects, grants, evidence, speaks FROM "+
			"pgconsent.privacy_rows($1, $2, $3, $4, $5, $6)", caller, nilIfEmpty(subject), nilIfEmpty(kind), nilIfEmpty(key), after,
		limit)
	if err != nil {
		return nil, fmt.Errorf("look at grants: %w", err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (memoryRow, error) {
		var f memoryRow
		var subjects, grants, evidence, toldBy []*string
		err := row.Scan(&f.kind, &f.key, &f.store, &f.owner, &f.source, &subjects, &grants, &evidence, &toldBy)
		f.subjects, f.grants, f.evidence, f.toldBy = withoutNulls(subjects), withoutNulls(grants), withoutNulls(evidence),
			withoutNulls(toldBy)
		return f, err
	})
	if err != nil {
		return nil, fmt.Errorf("look at grants: %w", err)
	}
	return out, nil
}

func withoutNulls(list []*string) []string {
	out := []string{}
	for _, s := range list {
		if s != nil {
			out = append(out, *s)
		}
	}
	return out
}

func (a auditor) loadStore(ctx context.Context, store string) (*storeConsents, error) {
	m := &storeConsents{contexts: map[string][]string{}}
	rows, err := a.controlConn.Query(ctx,
		"SELECT key, coalesce(grantor, ''), coalesce(grantee, ''), coalesce(scope, ''), coalesce(given, '') FROM "+
			// Where several consents show a memory, the report has the first.
			"pgconsent.privacy_consents($1) ORDER BY given, key", store)
	if err == nil {
		var r consentRow
		_, err = pgx.ForEachRow(rows, []any{&r.key, &r.grantor, &r.grantee, &r.scope, &r.recordedAt}, func() error {
			m.consents = append(m.consents, r)
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("look at consents: %w", err)
	}
	rows, err = a.controlConn.Query(ctx,
		"SELECT coalesce(subject, ''), coalesce(guardian, '') FROM pgconsent.privacy_guardians($1)", store)
	if err == nil {
		var subject, guardian string
		_, err = pgx.ForEachRow(rows, []any{&subject, &guardian}, func() error {
			m.guardians = append(m.guardians, [2]string{subject, guardian})
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("look at guardians: %w", err)
	}
	rows, err = a.controlConn.Query(ctx, "SELECT name, participants FROM pgconsent.privacy_contexts($1)", store)
	if err == nil {
		var name *string
		var participants []*string
		_, err = pgx.ForEachRow(rows, []any{&name, &participants}, func() error {
			if name != nil {
				m.contexts[*name] = append(m.contexts[*name], withoutNulls(participants)...)
			}
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("look at contexts: %w", err)
	}
	return m, nil
}

// possibleViewers returns the agents of the configuration, the other ids to which a memory is granted, the participants
// of contexts to which it is granted, and an unknown entity.
func (a auditor) possibleViewers(logins map[string]map[string]string, rows []memoryRow) []*possibleViewer {
	var out []*possibleViewer
	seenEntities := map[string]bool{}
	for _, login := range slices.Sorted(keysOfMap(logins)) {
		entity, entityWithRoles := entityAndRoles(a.section, logins[login])
		if entity == "" {
			continue
		}
		seenEntities[entity] = true
		for _, id := range entityWithRoles[1:] {
			seenEntities[id] = true
		}
		if i := slices.IndexFunc(out, func(c *possibleViewer) bool {
			return equalAttributes(c.attributes,
				logins[login])
		}); i >= 0 {
			out[i].agents = append(out[i].agents, login)
			continue
		}
		out = append(out, &possibleViewer{entity: entity, agents: []string{login}, ids: entityWithRoles,
			attributes: logins[login]})
	}
	add := func(id string) {
		if seenEntities[id] || id == a.section.EverybodyWord {
			return
		}
		seenEntities[id] = true
		out = append(out, &possibleViewer{entity: id, agents: []string{}, ids: []string{id},
			attributes: a.attributesOfUnknownEntity(id)})
	}
	for _, r := range rows {
		for _, id := range r.grants {
			participants, isContext := a.stores[r.store].contexts[id]
			if isContext {
				for _, p := range participants {
					add(p)
				}
				continue
			}
			add(id)
		}
	}
	anybody := a.attributesOfUnknownEntity("(anybody)")
	return append(out, &possibleViewer{entity: cmp.Or(a.section.EverybodyWord, "*"), agents: []string{},
		attributes: anybody})
}

func keysOfMap(m map[string]map[string]string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func equalAttributes(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			return false
		}
	}
	return true
}

// attributesOfUnknownEntity returns the attributes for an entity of which only an id is known. The id may be that of a
// role: it is taken for the entity and for its only role.
func (a auditor) attributesOfUnknownEntity(id string) map[string]string {
	out := map[string]string{a.section.CallerAttribute: id}
	for _, name := range a.section.RoleAttributes {
		if attribute, ok := a.policy.Attribute(name); ok && strings.HasSuffix(attribute.Type, "[]") {
			out[name] = "{}"
		}
	}
	return out
}

// visibleKeys are the kinds and keys of the memories that a candidate sees in a context.
type visibleKeys map[string]bool

func (s visibleKeys) contains(r memoryRow) bool { return s[r.kind+"\x00"+r.key] }

// visibleRows reads under row security which of the rows each candidate sees. It reads without a context, and in each
// context in which the candidate participates and to which a row is granted. For each, the session of the agent's role
// is sealed with the candidate's attributes for one transaction.
func (a auditor) visibleRows(ctx context.Context, agentConn *pgx.Conn, keys *seal.Keyring, candidates []*possibleViewer,
	rows []memoryRow) (map[*possibleViewer]map[string]visibleKeys, error) {
	out := map[*possibleViewer]map[string]visibleKeys{}
	for _, c := range candidates {
		out[c] = map[string]visibleKeys{}
		contexts := []string{""}
		for _, r := range rows {
			for _, id := range r.grants {
				participants, isContext := a.stores[r.store].contexts[id]
				if isContext && !slices.Contains(contexts, id) &&
					slices.ContainsFunc(c.ids, func(id string) bool { return slices.Contains(participants, id) }) {
					contexts = append(contexts, id)
				}
			}
		}
		for _, in := range contexts {
			s, err := a.visibleRowsInContext(ctx, agentConn, keys, c, in, rows)
			if err != nil {
				return nil, err
			}
			out[c][in] = s
		}
	}
	return out, nil
}

func (a auditor) visibleRowsInContext(ctx context.Context, agentConn *pgx.Conn, keys *seal.Keyring, c *possibleViewer,
	in string,
	rows []memoryRow) (visibleKeys, error) {
	tx, err := agentConn.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, fmt.Errorf("ask row security: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	var now time.Time
	if err := tx.QueryRow(ctx, "SELECT pg_catalog.transaction_timestamp()").Scan(&now); err != nil {
		return nil, fmt.Errorf("ask row security: %w", err)
	}
	settings := [][2]string{{seal.Setting, keys.NewestKey().
		Seal(seal.Claims{PID: agentConn.PgConn().PID(), Expires: now.Add(seal.SealLifetime), Profile: "privacy",
			Attributes: c.attributes})}}
	if in != "" && a.section.ContextSetting != "" {
		settings = append(settings, [2]string{a.section.ContextSetting, in})
	}
	for _, s := range settings {
		if _, err := tx.Exec(ctx, "SELECT pg_catalog.set_config($1, $2, true)", s[0], s[1]); err != nil {
			return nil, fmt.Errorf("ask row security: %w", err)
		}
	}
	out := visibleKeys{}
	for _, m := range a.section.Memories {
		var queriedKeys []string
		for _, r := range rows {
			if r.kind == m.Kind {
				queriedKeys = append(queriedKeys, r.key)
			}
		}
		if len(queriedKeys) == 0 {
			continue
		}
		from := m.Relation.Name
		if table, ok := a.policy.Table(from); ok && table.Columns != nil {
			from = predicate.RowView(from)
		}
		// The keys are compared in the column's own type, so that its index can be used.
		key := catalog.QuoteIdent(m.Key)
		keyRows, err := tx.Query(ctx, "SELECT "+key+"::pg_catalog.text FROM "+from.SQL()+" WHERE "+
			key+" OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.text[]::"+m.Relation.Column(m.Key).Type+"[])", queriedKeys)
		var foundKeys []string
		if err == nil {
			foundKeys, err = pgx.CollectRows(keyRows, pgx.RowTo[string])
		}
		var pg *pgconn.PgError
		if errors.As(err, &pg) && pg.Code == "42501" { // This candidate can have no session.
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("ask row security: %w", err)
		}
		for _, k := range foundKeys {
			out[m.Kind+"\x00"+k] = true
		}
	}
	return out, nil
}

// auditedMemory tells who sees a memory, and why.
func (a auditor) auditedMemory(ctx context.Context, caller string, r memoryRow, candidates []*possibleViewer,
	visibleByViewer map[*possibleViewer]map[string]visibleKeys) (*AuditedMemory, error) {
	owner := r.owner == caller
	visibleSubjects := r.subjects
	if !owner {
		visibleSubjects = r.toldBy
	}
	out := &AuditedMemory{ID: r.key, Kind: r.kind, Store: r.store, Owner: r.owner, Subjects: visibleSubjects,
		OtherSubjects: len(idsNotIn(r.subjects, visibleSubjects)), Access: r.grants, Viewers: []Viewer{},
		WithoutConsent: []Viewer{}}
	isVisibleToAll := visibleByViewer[candidates[len(candidates)-1]][""].contains(r)
	for _, c := range candidates {
		contexts := slices.Sorted(func(yield func(string) bool) {
			for in := range visibleByViewer[c] {
				if !yield(in) {
					return
				}
			}
		})
		isVisible := false
		for _, in := range contexts {
			if !visibleByViewer[c][in].contains(r) || isVisible && in != "" {
				continue
			}
			isVisible = true
			if isVisibleToAll && c.ids != nil && len(c.agents) == 0 && c.entity != r.owner {
				continue // The candidate for everybody includes this one.
			}
			out.Viewers = append(out.Viewers, a.viewerEntry(c, in, r, visibleSubjects))
			if in == "" {
				break
			}
		}
		if isVisible {
			continue
		}
		if grant, in := a.grantForViewer(c, "", r); grant != "" {
			v := a.viewerEntry(c, in, r, visibleSubjects)
			if len(v.Missing) > 0 {
				out.WithoutConsent = append(out.WithoutConsent, v)
			}
		}
	}
	var err error
	out.History, err = a.readHistory(ctx, r)
	return out, err
}

// grantForViewer finds the grant of a memory to a candidate: to the candidate, a role of it, everybody, or a context in
// which it participates.
func (a auditor) grantForViewer(c *possibleViewer, in string, r memoryRow) (grant, inContext string) {
	for _, id := range c.ids {
		if slices.Contains(r.grants, id) {
			return id, ""
		}
	}
	if a.section.EverybodyWord != "" && slices.Contains(r.grants, a.section.EverybodyWord) {
		return a.section.EverybodyWord, ""
	}
	for _, id := range r.grants {
		participants, isContext := a.stores[r.store].contexts[id]
		if isContext && (in == "" || in == id) &&
			slices.ContainsFunc(c.ids, func(id string) bool { return slices.Contains(participants, id) }) {
			return id, id
		}
	}
	return "", ""
}

// viewerEntry returns the entry of a viewer, with its grant and its consents, but without consents of subjects for whom
// the caller may not ask.
func (a auditor) viewerEntry(c *possibleViewer, in string, r memoryRow, visibleSubjects []string) Viewer {
	v := Viewer{Entity: c.entity, Agents: c.agents, Context: in, Through: "rule"}
	if c.entity == r.owner && c.ids != nil {
		v.Through, v.Context = "owner", ""
		return v
	}
	if v.Grant, _ = a.grantForViewer(c, in, r); v.Grant == "" {
		return v
	}
	v.Through = "grant"
	for _, subject := range visibleSubjects {
		if slices.Contains(c.ids, subject) && subject == c.entity {
			continue // A subject needs no consent to see a memory about itself.
		}
		if agreed, ok := a.findConsent(subject, c, r); ok {
			v.Consents = append(v.Consents, agreed)
		} else {
			v.Missing = append(v.Missing, subject)
		}
	}
	return v
}

func (a auditor) findConsent(subject string, c *possibleViewer, r memoryRow) (Agreement, bool) {
	m := a.stores[r.store]
	for _, x := range m.consents {
		guardian := slices.Contains(m.guardians, [2]string{subject, x.grantor})
		if x.grantor != subject && !guardian {
			continue
		}
		if x.grantee != a.section.EverybodyWord && !slices.Contains(c.ids, x.grantee) {
			continue
		}
		if a.section.Consents.Scope != "" && x.scope != a.section.EverybodyWord && x.scope != r.key &&
			!slices.Contains(r.grants, x.scope) {
			continue
		}
		return Agreement{Subject: subject, Grantor: x.grantor, Guardian: x.grantor != subject, Grantee: x.grantee,
			Scope: x.scope, Record: x.key, Given: x.recordedAt}, true
	}
	return Agreement{}, false
}

// changedBySQL is an SQL expression for who caused event e: the entity, or the role of the database if no agent did it.
// $3 is shown for an erased id.
const changedBySQL = "CASE WHEN e.entity IS NULL THEN e.login ELSE coalesce((SELECT s.subject FROM " +
	"pgconsent.audit_subject AS s WHERE s.ref = e.entity), $3) END"

// readHistory returns the grants and revocations of a memory, the oldest first.
func (a auditor) readHistory(ctx context.Context, r memoryRow) ([]Event, error) {
	rows, err := a.controlConn.Query(ctx, `SELECT e.at, e.did, ARRAY(SELECT coalesce(s.subject, $3)
		FROM unnest(e.who) WITH ORDINALITY AS u (ref, n) LEFT JOIN pgconsent.audit_subject AS s USING (ref) ORDER BY u.n),
		`+changedBySQL+`, coalesce(e.reason, '')
		FROM pgconsent.privacy_event AS e WHERE e.relation = $1 AND e.key = $2 ORDER BY e.number DESC LIMIT 100`,
		a.section.MemoriesOf(r.kind).Relation.Name.String(), r.key, erasedIDText)
	if err != nil {
		return nil, fmt.Errorf("look at what became of grants: %w", err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Event, error) {
		var e Event
		return e, row.Scan(&e.At, &e.Action, &e.Grantees, &e.By, &e.Reason)
	})
	if err != nil {
		return nil, fmt.Errorf("look at what became of grants: %w", err)
	}
	slices.Reverse(out)
	if out == nil {
		out = []Event{}
	}
	return out, nil
}
