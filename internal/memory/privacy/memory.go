package privacy

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// Memory is a memory of an agent, without its text.
type Memory struct {
	ID       string   `json:"id"`
	Kind     string   `json:"kind"`
	Store    string   `json:"store"`
	Source   string   `json:"source_entity,omitempty"`
	ToldFrom string   `json:"told_from,omitempty"`
	Subjects []string `json:"subject_ids"`
	Access   []string `json:"access_grants"`
	Consent  []string `json:"consent_grants"`
}

// NewMemory says which memory to make.
type NewMemory struct {
	Kind     string // kind of the memory; "": the first kind in the policy
	Store    string // store of the memory; "": the store of the context, or else the caller's only store
	Content  string
	Source   string // who told the memory; it counts only if the caller owns the store
	ToldFrom string // id of the memory that was told on
	Subjects []string
	// ids to which the memory is granted; nil: those that the context gives, or who told the memory; empty: none
	Access  []string
	Consent []string // ids of consents as evidence; without records of these consents they have no effect
	Context string
	Reason  string
}

// AddMemory makes a memory. If Access is nil, the policy decides to whom the memory is granted. The policy refuses an
// Access that is too wide.
func (d *Service) AddMemory(ctx context.Context, caller identity.Caller, n NewMemory) (*Memory, error) {
	subjects, err := checkIDs("subjects", n.Subjects)
	if err != nil {
		return nil, err
	}
	consent, err := checkIDs("consent", n.Consent)
	if err != nil {
		return nil, err
	}
	access, err := checkIDs("access", n.Access)
	if err != nil {
		return nil, err
	}
	if err := firstError(checkText("the content", n.Content, maxContentBytes), checkOptionalID("the store", n.Store),
		checkOptionalID("the source", n.Source), checkOptionalID("the memory that it was told from",
			n.ToldFrom)); err != nil {
		return nil, err
	}
	if strings.TrimSpace(n.Content) == "" {
		return nil, newError(NameValidation, "Say what is to be remembered.", "the content is empty")
	}
	_, section, err := d.privacySection()
	if err != nil {
		return nil, err
	}
	m := section.Memories[0]
	if n.Kind != "" {
		if m = section.MemoriesOf(n.Kind); m == nil {
			return nil, newNoKindError(section)
		}
	}
	s, err := d.openSession(ctx, caller, n.Context, n.Reason)
	if err != nil {
		return nil, err
	}
	defer s.close(ctx)
	store := n.Store
	if store == "" {
		if store, err = s.storeForMemory(ctx, n.Context); err != nil {
			return nil, err
		}
	}
	columns, values := []string{m.StoreColumn, m.Content, m.Subjects.Column},
		[]any{store, n.Content, encodeList(m.Subjects, subjects)}
	if n.Access != nil {
		columns, values = append(columns, m.Grants.Column), append(values, encodeList(m.Grants, access))
	}
	if m.Evidence.Column != "" {
		columns, values = append(columns, m.Evidence.Column), append(values, encodeList(m.Evidence, consent))
	}
	if n.Source != "" {
		if m.TellerColumn == "" {
			return nil, newError(NameValidation, "Leave the source out.", "nothing says who told memories of the kind %s",
				m.Kind)
		}
		columns, values = append(columns, m.TellerColumn), append(values, n.Source)
	}
	if n.ToldFrom != "" {
		if m.ToldFromColumn == "" {
			return nil, newError(NameValidation, "Leave told_from out.",
				"nothing says from which memory one of the kind %s was told", m.Kind)
		}
		columns, values = append(columns, m.ToldFromColumn), append(values, n.ToldFrom)
	}
	sql := "INSERT INTO " + m.Relation.Name.SQL() + " (" + quotedList(columns) + ") VALUES (" +
		parameterList(len(columns)) +
		") RETURNING " + memoryColumns(m)
	out, _, err := scanMemory(s.conn.QueryRow(ctx, sql, values...), m)
	if err != nil {
		return nil, translateDatabaseError(err)
	}
	return out, nil
}

func newNoKindError(p *policy.Privacy) error {
	return newError(NameValidation, "There are: "+strings.Join(p.Kinds(), ", ")+".", "there are no memories of this kind")
}

func quotedList(columns []string) string {
	out := make([]string, len(columns))
	for i, c := range columns {
		out[i] = catalog.QuoteIdent(c)
	}
	return strings.Join(out, ", ")
}

// parameterList returns "$1, $2" and so on, with n parameters.
func parameterList(n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = "$" + intText(i+1)
	}
	return strings.Join(out, ", ")
}

// memoryColumns returns SQL that selects the columns of a memory as texts.
func memoryColumns(m *policy.Memories) string {
	columns := []string{m.Key, m.StoreColumn, m.TellerColumn, m.ToldFromColumn, m.Subjects.Column, m.Grants.Column,
		m.Evidence.Column}
	out := make([]string, len(columns))
	for i, c := range columns {
		out[i] = "NULL::pg_catalog.text"
		if c != "" {
			out[i] = catalog.QuoteIdent(c) + "::pg_catalog.text"
		}
	}
	return strings.Join(out, ", ")
}

// scanMemory reads a row with the columns of memoryColumns. It returns false if the grants are no list.
func scanMemory(row pgx.Row, m *policy.Memories) (*Memory, bool, error) {
	out := &Memory{Kind: m.Kind}
	var store, source, toldFrom, subjects, grants, evidence *string
	if err := row.Scan(&out.ID, &store, &source, &toldFrom, &subjects, &grants, &evidence); err != nil {
		return nil, false, err
	}
	if store != nil {
		out.Store = *store
	}
	if source != nil {
		out.Source = *source
	}
	if toldFrom != nil {
		out.ToldFrom = *toldFrom
	}
	out.Subjects, _ = decodeList(m.Subjects, subjects)
	list, ok := decodeList(m.Grants, grants)
	out.Access = list
	out.Consent, _ = decodeList(m.Evidence, evidence)
	for _, l := range []*[]string{&out.Subjects, &out.Access, &out.Consent} {
		if *l == nil {
			*l = []string{}
		}
	}
	return out, ok, nil
}

// storeForMemory finds the store for a new memory if the caller names none: that of the context, or the caller's only
// one.
func (s *callerSession) storeForMemory(ctx context.Context, contextID string) (string, error) {
	const hint = "Say which with --store."
	var found []string
	if contextID == "" && s.section.ContextSetting != "" { // The connection may be in a context by its settings.
		if err := s.conn.QueryRow(ctx, "SELECT pg_catalog.current_setting("+catalog.QuoteLiteral(s.section.ContextSetting)+
			", true)").Scan(&contextID); err != nil {
			contextID = ""
			var pg *pgconn.PgError
			if errors.As(err, &pg) {
				return "", translateDatabaseError(err)
			}
		}
	}
	if contextID != "" && s.section.Contexts != nil {
		contexts, err := s.readContexts(ctx, contextID)
		if err != nil {
			return "", err
		}
		for _, x := range contexts {
			found = append(found, x.Store)
		}
	} else {
		var err error
		if found, err = s.ownStores(ctx); err != nil {
			return "", err
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", newError(NameValidation, "Enter a context of somebody's store, or say the store with --store.",
			"you have no store of your own")
	}
	return "", newError(NameValidation, hint, "there are %d stores where this could go", len(found))
}

// ownStores returns the stores that the caller owns.
func (s *callerSession) ownStores(ctx context.Context) ([]string, error) {
	x := s.section.Stores
	if x == nil {
		return []string{s.entity}, nil
	}
	rows, err := s.conn.Query(ctx, "SELECT "+catalog.QuoteIdent(x.ID)+"::pg_catalog.text FROM "+x.Relation.Name.SQL()+
		" WHERE "+catalog.QuoteIdent(x.Owner)+" = $1 ORDER BY 1 LIMIT 100", s.entity)
	if err != nil {
		return nil, translateDatabaseError(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return out, translateDatabaseError(err)
}

// findMemory finds a memory with this id that the caller sees, and locks its row. If kind is "" and the id begins with
// a kind, it searches only that kind.
func (s *callerSession) findMemory(ctx context.Context, tx pgx.Tx, kind, key string) (*policy.Memories, *Memory,
	error) {
	candidates := s.section.Memories
	prefix, _, _ := strings.Cut(key, ":")
	if kind != "" {
		m := s.section.MemoriesOf(kind)
		if m == nil {
			return nil, nil, newNoKindError(s.section)
		}
		candidates = []*policy.Memories{m}
	} else if m := s.section.MemoriesOf(prefix); m != nil {
		candidates = []*policy.Memories{m}
	}
	var foundIn *policy.Memories
	var out *Memory
	for _, m := range candidates {
		rows, err := tx.Query(ctx, "SELECT "+memoryColumns(m)+" FROM "+m.Relation.Name.SQL()+" WHERE "+
			catalog.QuoteIdent(m.Key)+" = $1 FOR UPDATE", key)
		if err != nil {
			return nil, nil, translateDatabaseError(err)
		}
		type found struct {
			memory *Memory
			ok     bool
		}
		matches, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (found, error) {
			memory, ok, err := scanMemory(row, m)
			return found{memory, ok}, err
		})
		if err != nil {
			return nil, nil, translateDatabaseError(err)
		}
		if len(matches) == 0 {
			continue
		}
		if foundIn != nil {
			return nil, nil, newError(NameConflict, "Say of which kind it is with --kind: "+foundIn.Kind+" or "+m.Kind+".",
				"there are several memories with this id")
		}
		if foundIn, out = m, matches[0].memory; !matches[0].ok {
			return nil, nil, newError(NameConflict, "Its owner writes a list there, by SQL.",
				"what this memory is granted to is no list")
		}
	}
	if foundIn == nil {
		return nil, nil, newNotFoundError("memory")
	}
	return foundIn, out, nil
}

// GrantChange says which grants of a memory to add or to remove.
type GrantChange struct {
	ID       string
	Kind     string // kind of the memory; "": the kind with which the id begins, or any kind
	Grantees []string
	Consent  []string // ids of consents that are added as evidence
	Reason   string
}

// GrantResult is the memory after a [GrantChange].
type GrantResult struct {
	Memory
	Granted []string `json:"granted"` // ids to which the memory was not granted before the change
	Revoked []string `json:"revoked"` // ids to which the memory is no longer granted
}

// Grant grants a memory to more ids. The policy refuses this unless the memory's subjects and the person who told it
// have consented.
func (d *Service) Grant(ctx context.Context, c identity.Caller, change GrantChange) (*GrantResult, error) {
	return d.changeGrants(ctx, c, change, func(list []string) []string {
		for _, grantee := range change.Grantees {
			if !slices.Contains(list, grantee) {
				list = append(list, grantee)
			}
		}
		return list
	})
}

// Revoke takes grants of a memory back.
func (d *Service) Revoke(ctx context.Context, c identity.Caller, change GrantChange) (*GrantResult, error) {
	if len(change.Consent) > 0 {
		return nil, newError(NameValidation, "Leave it out.", "who has agreed is said where a memory is granted")
	}
	return d.changeGrants(ctx, c, change, func(list []string) []string {
		return slices.DeleteFunc(list, func(s string) bool { return slices.Contains(change.Grantees, s) })
	})
}

// changeGrants replaces the ids to which a memory is granted by the list that apply returns for them.
func (d *Service) changeGrants(ctx context.Context, caller identity.Caller, change GrantChange,
	apply func([]string) []string) (*GrantResult,
	error) {
	grantees, err := checkIDs("those concerned", change.Grantees)
	if err != nil {
		return nil, err
	}
	if len(grantees) == 0 {
		return nil, newError(NameValidation, "Name an id.", "nobody is named")
	}
	consent, err := checkIDs("consent", change.Consent)
	if err != nil {
		return nil, err
	}
	if err := checkID("the memory's id", change.ID); err != nil {
		return nil, err
	}
	s, err := d.openSession(ctx, caller, "", change.Reason)
	if err != nil {
		return nil, err
	}
	defer s.close(ctx)
	tx, err := s.conn.Begin(ctx)
	if err != nil {
		return nil, translateDatabaseError(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	m, memory, err := s.findMemory(ctx, tx, change.Kind, change.ID)
	if err != nil {
		return nil, err
	}
	out := &GrantResult{Granted: []string{}, Revoked: []string{}}
	before := memory.Access
	memory.Access = apply(slices.Clone(before))
	out.Granted = append(out.Granted, idsNotIn(memory.Access, before)...)
	out.Revoked = append(out.Revoked, idsNotIn(before, memory.Access)...)
	assignments, values := []string{}, []any{change.ID}
	assign := func(column, value string) {
		values = append(values, value)
		assignments = append(assignments, catalog.QuoteIdent(column)+" = $"+intText(len(values)))
	}
	if len(out.Granted)+len(out.Revoked) > 0 {
		assign(m.Grants.Column, encodeList(m.Grants, memory.Access))
	}
	if newEvidence := idsNotIn(consent, memory.Consent); len(newEvidence) > 0 && m.Evidence.Column != "" {
		memory.Consent = append(memory.Consent, newEvidence...)
		assign(m.Evidence.Column, encodeList(m.Evidence, memory.Consent))
	}
	if len(assignments) > 0 {
		tag, err := tx.Exec(ctx, "UPDATE "+m.Relation.Name.SQL()+" SET "+strings.Join(assignments, ", ")+" WHERE "+
			catalog.QuoteIdent(m.Key)+" = $1", values...)
		if err != nil {
			return nil, translateDatabaseError(err)
		}
		if tag.RowsAffected() != 1 {
			return nil, newNotFoundError("memory")
		}
	}
	if err := tx.Commit(ctx); err != nil {
		return nil, translateDatabaseError(err)
	}
	out.Memory = *memory
	return out, nil
}

// idsNotIn returns the elements of a that are not in b.
func idsNotIn(a, b []string) []string {
	var out []string
	for _, s := range a {
		if !slices.Contains(b, s) {
			out = append(out, s)
		}
	}
	return out
}
