package privacy

import (
	"context"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/memory/generalize"
	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// These are limits for drawing and judging a belief.
const (
	maxBeliefBytes = 16384   // bytes of a belief
	maxNoteBytes   = 4096    // bytes of a note
	maxCorpusTexts = 2000    // how many memories of the caller are read to find which words are rare
	maxCorpusBytes = 4 << 20 // bytes of these memories
	maxAliases     = 1000    // how many aliases the persons in the source may have
)

// Generalization asks to draw a belief from a private memory.
type Generalization struct {
	Source  string // the id of the private memory
	Kind    string // kind of the private memory; "": the kind with which the id begins, or any kind
	Belief  string
	Note    string   // how the caller has abstracted the belief
	Access  []string // ids to which the belief is granted; nil: those that the context gives; empty: none
	Context string
	Reason  string

	AcceptsWarnings bool // also draw the belief if the check has found uncertain forms of a name
	CheckOnly       bool // judge the text and make no belief
}

// GeneralizationResult is the result of a [Generalization].
type GeneralizationResult struct {
	Memory         *Memory  // the belief; nil: the text was only judged
	AlreadyExisted bool     // the caller has drawn the same belief from the same memory before: Memory is that belief
	Subjects       []string // ids of the persons whom the private memory is about
	Report         generalize.Report
}

// BlockedError is the error that a belief may reveal whom its source is about, so that no belief was made. It wraps an
// *Error.
type BlockedError struct {
	refused *Error
	Report  generalize.Report
}

func (e *BlockedError) Error() string { return e.refused.Error() }

// Unwrap returns the *Error.
func (e *BlockedError) Unwrap() error { return e.refused }

// Name returns the error's name, like [Error.Name].
func (e *BlockedError) Name() string { return e.refused.Name() }

// refusalOfReport returns the refusal that follows from a report, or nil. A certain name is always refused, and an
// uncertain one unless the caller accepts warnings. Dates and rare words are for the caller to judge.
func refusalOfReport(r generalize.Report, acceptsWarnings bool) error {
	switch {
	case r.Verdict == generalize.VerdictBlocked:
		return &BlockedError{newError(NameBlocked,
			"Say it without what the report calls block: names of those whom the memory is about, in whatever form, and its id.",
			"the text tells whom the private memory is about: nothing was made"), r}
	case !acceptsWarnings && slices.ContainsFunc(r.Findings, func(f generalize.Finding) bool {
		return f.Check == generalize.CheckEntityName && f.Level == generalize.LevelWarn
	}):
		return &BlockedError{newError(NameBlocked,
			"Say it in other words; or, if what the report warns of as a name is none, ask again with accept_warnings.",
			"the text may tell whom the private memory is about: nothing was made"), r}
	}
	return nil
}

// AddBelief makes a belief from a private memory that the caller sees, unless the belief may reveal whom the memory is
// about. The memory itself stays private. A link records from which memory the belief was drawn; only the owner of the
// store sees it.
func (d *Service) AddBelief(ctx context.Context, caller identity.Caller, g Generalization) (*GeneralizationResult,
	error) {
	access, err := checkIDs("access", g.Access)
	if err != nil {
		return nil, err
	}
	if err := firstError(checkID("the source", g.Source), checkText("the belief", g.Belief, maxBeliefBytes),
		checkText("the note", g.Note, maxNoteBytes)); err != nil {
		return nil, err
	}
	if strings.TrimSpace(g.Belief) == "" {
		return nil, newError(NameValidation, "Say what was learned.", "the belief is empty")
	}
	_, section, err := d.privacySection()
	if err != nil {
		return nil, err
	}
	if section.Generalize == nil {
		return nil, newError(NameNotFound, "The DBA writes generalize: under privacy in the policy.",
			"nothing says where beliefs go that are drawn from memories")
	}
	s, err := d.openSession(ctx, caller, g.Context, g.Reason)
	if err != nil {
		return nil, err
	}
	defer s.close(ctx)
	if s.section.Generalize == nil { // The policy was replaced since the check above.
		return nil, newError(NameConflict, "Try again.", "the policy has changed")
	}
	tx, err := s.conn.Begin(ctx)
	if err != nil {
		return nil, translateDatabaseError(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	src, err := s.readSource(ctx, tx, g.Kind, g.Source, !g.CheckOnly)
	if err != nil {
		return nil, err
	}
	subjects, err := s.subjectsToHide(ctx, tx, src)
	if err != nil {
		return nil, err
	}
	corpus := &generalize.Corpus{}
	if err := s.addToCorpus(ctx, tx, corpus, src); err != nil {
		return nil, err
	}
	in := generalize.Input{SourceID: src.id, Source: src.content, Subjects: subjects, Texts: []string{g.Belief},
		TextsWithWord: corpus.TextsWith, CorpusSize: corpus.DocumentCount()}
	if g.Note != "" {
		in.Texts = append(in.Texts, g.Note)
	}
	out := &GeneralizationResult{Subjects: src.subjects, Report: generalize.CheckTexts(in)}
	if g.CheckOnly {
		return out, nil
	}
	if err := refusalOfReport(out.Report, g.AcceptsWarnings); err != nil {
		return nil, err
	}
	if g.Access == nil {
		access = nil
	}
	if out.Memory, err = s.findDerived(ctx, tx, src, g, access); err != nil || out.Memory != nil {
		out.AlreadyExisted = true
		return out, err
	}
	if out.Memory, err = s.insertDerived(ctx, tx, src, g, access); err != nil {
		return nil, err
	}
	if err := tx.Commit(ctx); err != nil {
		return nil, translateDatabaseError(err)
	}
	return out, nil
}

// sourceMemory is the private memory from which a belief is drawn.
type sourceMemory struct {
	memories *policy.Memories
	id       string
	store    string
	content  string
	toldBy   string
	subjects []string
}

// readSource reads a memory as the caller sees it. With lock it also locks the row, so that the same belief is drawn
// only once. The lock fails if the caller may not change the memory.
func (s *callerSession) readSource(ctx context.Context, tx pgx.Tx, kind, key string, lock bool) (*sourceMemory, error) {
	candidates := s.section.Memories
	prefix, _, _ := strings.Cut(key, ":")
	if kind != "" {
		m := s.section.MemoriesOf(kind)
		if m == nil {
			return nil, newNoKindError(s.section)
		}
		candidates = []*policy.Memories{m}
	} else if m := s.section.MemoriesOf(prefix); m != nil {
		candidates = []*policy.Memories{m}
	}
	var out *sourceMemory
	for _, m := range candidates {
		sql := "SELECT " + memoryColumns(m) + ", " + catalog.QuoteIdent(m.Content) + "::pg_catalog.text FROM " +
			m.Relation.Name.SQL() + " WHERE " + catalog.QuoteIdent(m.Key) + " = $1"
		rows, err := tx.Query(ctx, sql, key)
		if err != nil {
			return nil, translateDatabaseError(err)
		}
		found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*sourceMemory, error) {
			return scanSource(row,
				m)
		})
		if err != nil {
			return nil, translateDatabaseError(err)
		}
		if len(found) == 0 {
			continue
		}
		if out != nil {
			return nil, newError(NameConflict, "Say of which kind it is: "+out.memories.Kind+" or "+m.Kind+".",
				"there are several memories with this id")
		}
		out = found[0]
	}
	if out == nil {
		return nil, newNotFoundError("memory")
	}
	if out.subjects == nil {
		return nil, newError(NameConflict, "Its owner writes a list there, by SQL.", "whom this memory is about is no list")
	}
	if lock {
		m := out.memories
		if _, err := tx.Exec(ctx, "SELECT 1 FROM "+m.Relation.Name.SQL()+" WHERE "+catalog.QuoteIdent(m.Key)+
			" = $1 FOR UPDATE", key); err != nil {
			return nil, translateDatabaseError(err)
		}
	}
	return out, nil
}

// scanSource reads a row that readSource has selected. If the memory's subjects are no list, subjects is nil.
func scanSource(row pgx.CollectableRow, m *policy.Memories) (*sourceMemory, error) {
	out := &sourceMemory{memories: m}
	var store, teller, toldFrom, subjects, grants, evidence, content *string
	if err := row.Scan(&out.id, &store, &teller, &toldFrom, &subjects, &grants, &evidence, &content); err != nil {
		return nil, err
	}
	for into, value := range map[*string]*string{&out.store: store, &out.toldBy: teller, &out.content: content} {
		if value != nil {
			*into = *value
		}
	}
	out.subjects, _ = decodeList(m.Subjects, subjects)
	return out, nil
}

// subjectsToHide returns the persons whom the belief must not name, with the aliases that the caller sees: the subjects
// of the memory, and the person who told it.
func (s *callerSession) subjectsToHide(ctx context.Context, tx pgx.Tx, src *sourceMemory) ([]generalize.Subject,
	error) {
	persons := slices.Clone(src.subjects)
	if src.toldBy != "" && !slices.Contains(s.ids, src.toldBy) && !slices.Contains(persons, src.toldBy) {
		persons = append(persons, src.toldBy)
	}
	out := []generalize.Subject{}
	for _, w := range persons {
		out = append(out, generalize.Subject{ID: w})
	}
	a := s.section.Generalize.Aliases
	if a == nil || len(persons) == 0 {
		return out, nil
	}
	rows, err := tx.Query(ctx, "SELECT "+catalog.QuoteIdent(a.Subject)+"::pg_catalog.text, "+
		catalog.QuoteIdent(a.Alias)+"::pg_catalog.text FROM "+a.Relation.Name.SQL()+
		" WHERE "+catalog.QuoteIdent(a.Store)+"::pg_catalog.text = $1 AND "+catalog.QuoteIdent(a.Subject)+
		" = ANY ($2::pg_catalog.text[]) LIMIT $3", src.store, persons, maxAliases+1)
	if err != nil {
		return nil, translateDatabaseError(err)
	}
	var subject, alias *string
	n := 0
	if _, err := pgx.ForEachRow(rows, []any{&subject, &alias}, func() error {
		n++
		for i := range out {
			if subject != nil && alias != nil && out[i].ID == *subject {
				out[i].Aliases = append(out[i].Aliases, *alias)
			}
		}
		return nil
	}); err != nil {
		return nil, translateDatabaseError(err)
	}
	if n > maxAliases {
		return nil, newError(NameValidation, "Write only names there that somebody is called.",
			"those whom the memory is about have more than %d other names", maxAliases)
	}
	return out, nil
}

// addToCorpus adds memories that the caller sees to the corpus, the source first, to find which words are rare.
func (s *callerSession) addToCorpus(ctx context.Context, tx pgx.Tx, corpus *generalize.Corpus,
	src *sourceMemory) error {
	corpus.Add(src.content)
	bytes := len(src.content)
	for _, m := range s.section.Memories {
		remaining := maxCorpusTexts - corpus.DocumentCount()
		if remaining <= 0 || bytes > maxCorpusBytes {
			break
		}
		key := catalog.QuoteIdent(m.Key)
		rows, err := tx.Query(ctx, "SELECT "+key+"::pg_catalog.text, "+catalog.QuoteIdent(m.Content)+
			"::pg_catalog.text FROM "+m.Relation.Name.SQL()+" ORDER BY "+key+" LIMIT $1", remaining)
		if err != nil {
			return translateDatabaseError(err)
		}
		for rows.Next() && bytes <= maxCorpusBytes {
			var id, content *string
			if err := rows.Scan(&id, &content); err != nil {
				rows.Close()
				return translateDatabaseError(err)
			}
			if content != nil && (m != src.memories || id == nil || *id != src.id) {
				corpus.Add(*content)
				bytes += len(*content)
			}
		}
		rows.Close()
		if err := rows.Err(); err != nil {
			return translateDatabaseError(err)
		}
	}
	return nil
}

// findDerived returns a belief with the same text and grants that was drawn from the same memory before, or nil.
func (s *callerSession) findDerived(ctx context.Context, tx pgx.Tx, src *sourceMemory, g Generalization,
	access []string) (*Memory, error) {
	m, l := s.section.Generalize.BeliefKind, s.section.Generalize.Link
	from, values := catalog.QuoteIdent(l.Source)+" = $2 AND "+catalog.QuoteIdent(l.Store)+
		"::pg_catalog.text = $3", []any{g.Belief, src.id, src.store}
	if l.Kind != "" {
		from, values = from+" AND "+catalog.QuoteIdent(l.Kind)+" = $4", append(values, src.memories.Kind)
	}
	rows, err := tx.Query(ctx, "SELECT "+memoryColumns(m)+" FROM "+m.Relation.Name.SQL()+
		" WHERE "+catalog.QuoteIdent(m.Content)+" = $1 AND "+catalog.QuoteIdent(m.Key)+
		" IN (SELECT "+catalog.QuoteIdent(l.Made)+" FROM "+l.Relation.Name.SQL()+" WHERE "+from+") ORDER BY "+
		catalog.QuoteIdent(m.Key)+" LIMIT 100", values...)
	if err != nil {
		return nil, translateDatabaseError(err)
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*Memory, error) {
		memory, _, err := scanMemory(row, m)
		return memory, err
	})
	if err != nil {
		return nil, translateDatabaseError(err)
	}
	for _, f := range found {
		if access == nil || len(idsNotIn(access, f.Access))+len(idsNotIn(f.Access, access)) == 0 {
			return f, nil
		}
	}
	return nil, nil
}

// insertDerived inserts the belief, without subjects, and the link to the memory from which it was drawn.
func (s *callerSession) insertDerived(ctx context.Context, tx pgx.Tx, src *sourceMemory, g Generalization,
	access []string) (*Memory, error) {
	m, l := s.section.Generalize.BeliefKind, s.section.Generalize.Link
	columns, values := []string{m.StoreColumn, m.Content, m.Subjects.Column},
		[]any{src.store, g.Belief, encodeList(m.Subjects, nil)}
	if access != nil {
		columns, values = append(columns, m.Grants.Column), append(values, encodeList(m.Grants, access))
	}
	out, _, err := scanMemory(tx.QueryRow(ctx, "INSERT INTO "+m.Relation.Name.SQL()+" ("+quotedList(columns)+") VALUES ("+
		parameterList(len(columns))+") RETURNING "+memoryColumns(m), values...), m)
	if err != nil {
		return nil, translateDatabaseError(err)
	}
	columns, values = []string{l.Store, l.Made, l.Source}, []any{src.store, out.ID, src.id}
	if l.Kind != "" {
		columns, values = append(columns, l.Kind), append(values, src.memories.Kind)
	}
	if l.Note != "" {
		columns, values = append(columns, l.Note), append(values, g.Note)
	}
	if _, err := tx.Exec(ctx, "INSERT INTO "+l.Relation.Name.SQL()+" ("+quotedList(columns)+") VALUES ("+
		parameterList(len(columns))+")", values...); err != nil {
		return nil, translateDatabaseError(err)
	}
	return out, nil
}
