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

// AuditQuery asks who sees the memories about a subject, or who sees one memory.
type AuditQuery struct {
	Subject     string
	ID          string
	Kind        string // kind of the memory; "": the kind with which the id begins, or any kind
	After       string // value of Next in the previous report; "": the report begins with the first memory
	MaxMemories int    // how many memories the report has at most; 0: maxRows
}

// AuditReport says for some memories who sees them.
type AuditReport struct {
	Subject string          `json:"subject,omitempty"`
	Rows    []AuditedMemory `json:"memories"`
	Next    string          `json:"next,omitempty" doc:"There are more memories than are listed: ask again with after set to this." jsonschema:"there are more: ask again with after set to this"`
}

// AuditedMemory is a memory without its text, with the entities that see it.
type AuditedMemory struct {
	ID    string `json:"id"`
	Kind  string `json:"kind"`
	Store string `json:"store"`
	Owner string `json:"owner"`
	// the subjects of the memory; if the caller is not the owner, only those about whom the caller may ask
	Subjects       []string `json:"subject_ids"`
	OtherSubjects  int      `json:"other_subjects,omitempty"` // how many subjects Subjects leaves out
	Access         []string `json:"access_grants"`            // the ids to which the memory is granted
	Viewers        []Viewer `json:"sees"`
	WithoutConsent []Viewer `json:"granted_without_consent"` // entities with a grant that see nothing for lack of consent
	History        []Event  `json:"history"`
}

// Viewer is an entity that sees a memory, or to which the memory is granted.
type Viewer struct {
	Entity  string   `json:"entity"`            // the entity's id; the policy's word for everybody means everybody
	Agents  []string `json:"agents"`            // the agents of the configuration that log in as this entity
	Context string   `json:"context,omitempty"` // the entity sees the memory only in this context; "": in every context
	// owner, grant or rule; rule: the policy shows the memory for another reason than a grant
	Through  string      `json:"through"`
	Grant    string      `json:"grant,omitempty"` // the entity, role, context or word for everybody in the grant
	Consents []Agreement `json:"consents,omitempty"`
	Missing  []string    `json:"missing_consent,omitempty"` // the subjects who have not consented
}

// Agreement is a recorded consent that lets an entity see a memory.
type Agreement struct {
	Subject  string `json:"subject"`
	Grantor  string `json:"grantor"`            // who recorded the consent: the subject or its guardian
	Guardian bool   `json:"guardian,omitempty"` // the grantor is a guardian of the subject
	Grantee  string `json:"grantee"`
	Scope    string `json:"scope"`
	Record   string `json:"record"`
	Given    string `json:"given_at,omitempty"` // when the consent was recorded
}

// Event is a change of the grants of a memory.
type Event struct {
	At       time.Time `json:"at"`
	Action   string    `json:"did"` // grant or revoke
	Grantees []string  `json:"who"`
	By       string    `json:"by"` // the entity that made the change; if no agent made it, the database role
	Reason   string    `json:"reason,omitempty"`
}

// erasedIDText stands for an id of a person who was erased.
const erasedIDText = "(forgotten)"

// maxRows is how many memories a report has at most.
const maxRows = 200

// memoryRow is a memory as the control role reads it from the database.
type memoryRow struct {
	kind, key, store, owner            string
	source                             *string
	subjects, grants, evidence, toldBy []string // toldBy: subjects about whom the caller may ask
}

// nextCursor returns the position after this memory, from which the next report continues. A forged cursor shows the
// caller nothing that it may not see.
func (f memoryRow) nextCursor() string { return encodeCursor(f.store, f.kind, f.key) }

func encodeCursor(parts ...string) string {
	b, _ := json.Marshal(parts) // Strings can always be encoded.
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

// storeConsents has the consent records, guardians and contexts of one store.
type storeConsents struct {
	consents  []consentRow
	guardians [][2]string // pairs of a subject and a guardian of that subject
	contexts  map[string][]string
}

type consentRow struct{ key, grantor, grantee, scope, recordedAt string }

// possibleViewer is an entity of which Audit finds out which memories it sees.
type possibleViewer struct {
	entity     string // the entity's id; for everybody, the policy's word
	agents     []string
	ids        []string // the entity and its roles; nil: the viewer stands for everybody
	attributes map[string]string
}

// Audit says who sees a memory, or the memories about a subject. The owner of a memory's store, a subject and its
// guardian may ask. Audit does not evaluate the policy itself: it reads under row security, as each agent of the
// configuration, as each id to which a memory is granted, and as an unknown entity. The grants and consents come from
// rows and records.
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

// auditedMemories says for each of these memories who sees it.
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

// auditCaller returns the entity id of the caller of an audit, or an error if the caller may not ask at all.
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

// auditor collects the data for one answer of Audit.
type auditor struct {
	policy      *policy.Policy
	section     *policy.Privacy
	controlConn *pgx.Conn
	stores      map[string]*storeConsents
}

// nilIfEmpty returns nil for the empty string.
func nilIfEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// readMemories returns the memories about which the caller may ask. A function in the database decides that.
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
			// If several consents show a memory, the report names the first of them.
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

// possibleViewers returns the agents of the configuration, the other ids to which a memory is granted, and the
// participants of contexts to which one is granted. The last one stands for everybody: it has the attributes of an
// unknown entity.
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

// attributesOfUnknownEntity returns attributes for an entity of which only the id is known. Its roles are empty lists.
func (a auditor) attributesOfUnknownEntity(id string) map[string]string {
	out := map[string]string{a.section.CallerAttribute: id}
	for _, name := range a.section.RoleAttributes {
		if attribute, ok := a.policy.Attribute(name); ok && strings.HasSuffix(attribute.Type, "[]") {
			out[name] = "{}"
		}
	}
	return out
}

// visibleKeys has the kinds and keys of the memories that a viewer sees in a context.
type visibleKeys map[string]bool

func (s visibleKeys) contains(r memoryRow) bool { return s[r.kind+"\x00"+r.key] }

// visibleRows reads under row security which of the rows each candidate sees: without a context, and in each context in
// which the candidate participates and to which a row is granted. Each reading is a transaction of the agent role,
// sealed with the candidate's attributes.
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
		// The keys are compared in the column's own type, so that PostgreSQL can use the column's index.
		key := catalog.QuoteIdent(m.Key)
		keyRows, err := tx.Query(ctx, "SELECT "+key+"::pg_catalog.text FROM "+from.SQL()+" WHERE "+
			key+" OPERATOR(pg_catalog.=) ANY ($1::pg_catalog.text[]::"+m.Relation.Column(m.Key).Type+"[])", queriedKeys)
		var foundKeys []string
		if err == nil {
			foundKeys, err = pgx.CollectRows(keyRows, pgx.RowTo[string])
		}
		var pg *pgconn.PgError
		if errors.As(err, &pg) && pg.Code == "42501" { // PostgreSQL refuses a session with these attributes.
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

// auditedMemory says who sees one memory, and why.
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
				continue // The entry for everybody includes this candidate.
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

// grantForViewer returns the grant by which a candidate may see a memory: to the candidate's id, to one of its roles,
// to everybody, or to a context in which it participates.
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

// viewerEntry returns the report's entry for a viewer, with its grant and the consents. It leaves out subjects about
// whom the caller may not ask.
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
			continue // A subject sees memories about itself without a consent.
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

// changedBySQL is an SQL expression for who made the change in event e: the entity or, if no agent made it, the
// database role. $3 stands for an erased id.
const changedBySQL = "CASE WHEN e.entity IS NULL THEN e.login ELSE coalesce((SELECT s.subject FROM " +
	"pgconsent.audit_subject AS s WHERE s.ref = e.entity), $3) END"

// readHistory returns the last 100 changes of a memory's grants, oldest first.
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
