package registry

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
)

// Export holds the tables of a registry that [Check] reads.
type Export struct {
	registries []uuid
	entries    []recordEntry
	subjects   []subjectRow
	current    []currentRow
	guardians  []guardianRow
}

// RecordCount returns the number of consent records.
func (x *Export) RecordCount() int { return len(x.entries) }

// subjectRow is a row of pgconsent.subject, the table of the persons whom records name by references.
type subjectRow struct {
	Reference    uuid
	Name         *string
	Key          []byte
	PseudonymKey []byte
	ErasedAt     *time.Time
}

// currentRow is a row of pgconsent.consent_current, the table of current consents that policies read.
type currentRow struct {
	Subject, Grantee, Scope                             string
	Number                                              int64
	State                                               string
	Stream                                              *string
	Categories, Purposes, Asked                         []string
	GivenAt, ExpiresAt, DueAt, DecayFrom, DecayedBefore *time.Time
	DecayedDays                                         *int32
	VoidBefore, WarnedAt                                *time.Time
	DecayCategories                                     []string // the categories when DecayFrom was set
}

// guardianRow is a row of pgconsent.consent_guardian, the table of guardians that policies read.
type guardianRow struct {
	Subject, Guardian string
	Number            int64
}

// readExport reads all tables of the registry. The caller's transaction has one snapshot or holds the lock of writers.
func readExport(ctx context.Context, q querier) (*Export, error) {
	x := &Export{}
	var err error
	if x.registries, err = queryAll[uuid](ctx, q, "SELECT id FROM pgconsent.consent_registry", pgx.RowTo[uuid]); err != nil {
		return nil, err
	}
	if x.entries, err = queryAll(ctx, q, "SELECT "+recordColumns+" FROM "+fromRecords+" ORDER BY number",
		scanEntry); err != nil {
		return nil, err
	}
	if x.subjects, err = queryAll(ctx, q, "SELECT ref, subject, key, pseudonym_key, erased_at FROM pgconsent.subject",
		pgx.RowToStructByPos[subjectRow]); err != nil {
		return nil, err
	}
	if x.current, err = queryAll(ctx, q, `SELECT subject, grantee, scope, number, state, stream, categories,
		purposes, asked, given_at, expires_at, due_at, decay_from,
		decayed_before, decayed_days, void_before, warned_at, decay_categories
		FROM pgconsent.consent_current`, pgx.RowToStructByPos[currentRow]); err != nil {
		return nil, err
	}
	x.guardians, err = queryAll(ctx, q, "SELECT subject, guardian, number FROM pgconsent.consent_guardian",
		pgx.RowToStructByPos[guardianRow])
	return x, err
}

func queryAll[T any](ctx context.Context, q querier, sql string, f pgx.RowToFunc[T]) ([]T, error) {
	rows, err := q.Query(ctx, sql)
	if err != nil {
		return nil, databaseError("verify the consent registry", err)
	}
	out, err := pgx.CollectRows(rows, f)
	var pgErr *pgconn.PgError
	switch {
	case err == nil:
		return out, nil
	case errors.As(err, &pgErr), isTransient(err), ctx.Err() != nil:
		return nil, databaseError("verify the consent registry", err)
	default:
		return nil, &unreadableError{err} // the row has a value that pgconsent never writes, such as infinity
	}
}

// unreadableError is the error that a row has a value that pgconsent never writes.
type unreadableError struct{ cause error }

func (u *unreadableError) Error() string {
	return "the registry has a row that pgconsent did not write: " + u.cause.Error()
}

// Finding is something that is wrong in a registry.
type Finding struct {
	RecordNumber int64 // the number of the record with the problem; 0: it is not about a single record
	Problem      string
}

func (f Finding) String() string {
	if f.RecordNumber == 0 {
		return f.Problem
	}
	return fmt.Sprintf("record %d: %s", f.RecordNumber, f.Problem)
}

// maxFindings is how many findings are reported at most.
const maxFindings = 100

// Check verifies an export against the codes of its records and the anchored head. If there are no findings, pgconsent
// has signed all records, they are in order, and none is missing up to the anchor. The current consents follow from
// them.
func Check(x *Export, k Keys, anchoredHead *recordHead) []Finding {
	c := &checker{keys: k, subjects: map[uuid]*subjectRow{}, openedParties: map[uuid]party{},
		erasedSubjects: map[uuid]bool{},
		currentRows:    map[consent.Key]currentRow{}, guardians: map[[2]string]int64{}}
	if len(x.registries) != 1 {
		c.addFinding(0, "the database has %d registries", len(x.registries))
		return c.findings
	}
	c.id = x.registries[0]
	if anchoredHead != nil && anchoredHead.Registry != c.id {
		c.addFinding(0, "the database has another registry than the anchor")
	}
	c.openParties(x.subjects)
	c.checkChain(x.entries, anchoredHead)
	c.compareTables(x)
	return c.findings
}

type checker struct {
	keys           Keys
	id             uuid
	subjects       map[uuid]*subjectRow
	openedParties  map[uuid]party
	erasedSubjects map[uuid]bool
	currentRows    map[consent.Key]currentRow
	guardians      map[[2]string]int64
	findings       []Finding
}

func (c *checker) addFinding(number int64, format string, args ...any) {
	if len(c.findings) < maxFindings {
		c.findings = append(c.findings, Finding{number, fmt.Sprintf(format, args...)})
	}
}

func (c *checker) openParties(people []subjectRow) {
	names := map[string]bool{}
	for i := range people {
		p := &people[i]
		if c.subjects[p.Reference] != nil {
			c.addFinding(0, "two subjects have one reference")
		}
		c.subjects[p.Reference] = p
		switch {
		case p.Name == nil && p.Key == nil && p.PseudonymKey == nil && p.ErasedAt != nil:
		case p.Name == nil || p.Key == nil || p.ErasedAt != nil:
			c.addFinding(0, "a subject has no name and is not erased")
		default:
			if names[*p.Name] {
				c.addFinding(0, "two subjects have one name")
			}
			names[*p.Name] = true
			key, err := c.keys.unwrap(c.id, p.Reference, p.Key, p.PseudonymKey)
			if err != nil {
				c.addFinding(0, "%v", err)
				continue
			}
			c.openedParties[p.Reference] = party{p.Reference, *p.Name, key, p.PseudonymKey}
		}
	}
}

// checkChain checks that the records form a chain, and computes the current consents from them.
func (c *checker) checkChain(entries []recordEntry, anchoredHead *recordHead) {
	prev, number, lastTime := genesisHash(c.id), int64(0), time.Time{}
	for i := range entries {
		e := &entries[i]
		if e.Number != number+1 {
			c.addFinding(e.Number, "it follows record %d", number)
		}
		if !bytes.Equal(e.PreviousHash, prev) {
			c.addFinding(e.Number, "the record before it is not the one it names")
		}
		if e.RecordedAt.Before(lastTime) {
			c.addFinding(e.Number, "it is older than the record before it")
		}
		if reason := e.findProblem(c.keys, c.id); reason != "" {
			c.addFinding(e.Number, "%s", reason)
		}
		if anchoredHead != nil && anchoredHead.Number == e.Number && !bytes.Equal(anchoredHead.Hash, e.Hash) {
			c.addFinding(e.Number, "it is not the one that was acknowledged")
		}
		c.applyRecord(e)
		prev, number, lastTime = e.Hash, e.Number, e.RecordedAt
	}
	if anchoredHead != nil && anchoredHead.Number > number {
		c.addFinding(0, "the records after %d, up to %d, which was acknowledged, are missing", number, anchoredHead.Number)
	}
}

// applyRecord computes the consent after a record, and checks the record's sealed details.
func (c *checker) applyRecord(e *recordEntry) {
	person := c.subjects[e.Subject]
	if person == nil {
		c.addFinding(e.Number, "its subject is missing")
		return
	}
	if c.erasedSubjects[e.Subject] {
		c.addFinding(e.Number, "its subject was erased before")
	}
	if e.Event == string(consent.EventErased) {
		c.applyErasure(e)
		return
	}
	p, ok := c.openedParties[e.Subject]
	if !ok {
		return // the subject was erased later, or openParties has reported the problem
	}
	d, err := p.openDetails(c.id, e.Number, e.Sealed)
	switch {
	case err != nil:
		c.addFinding(e.Number, "%v", err)
		return
	case d.Subject != p.name:
		c.addFinding(e.Number, "its subject had another name")
	case !bytes.Equal(p.scope(d.Scope), e.Scope):
		c.addFinding(e.Number, "its scope is not the one that is sealed")
	}
	for ref, proof := range d.Names {
		id, err := hex.DecodeString(ref)
		if err != nil || len(id) != 16 || c.subjects[uuid(id)] == nil {
			c.addFinding(e.Number, "a person that it names is missing")
		} else if otherParty, ok := c.openedParties[uuid(id)]; ok && otherParty.proveName() != proof {
			c.addFinding(e.Number, "a person that it names had another name")
		}
	}
	grantee := consent.AnyGrantee
	if e.Grantee != nil {
		otherParty, ok := c.openedParties[*e.Grantee]
		if !ok {
			if p := c.subjects[*e.Grantee]; p == nil {
				c.addFinding(e.Number, "its grantee is missing")
			}
			return
		}
		grantee = otherParty.name
	}
	switch consent.Event(e.Event) {
	case consent.EventAppointed:
		c.guardians[[2]string{p.name, grantee}] = e.Number
	case consent.EventDismissed:
		delete(c.guardians, [2]string{p.name, grantee})
	default:
		key := consent.Key{Subject: p.name, Grantee: grantee, Scope: d.Scope}
		f := currentRow{
			p.name, grantee, d.Scope, e.Number, e.State, e.Stream, e.Categories, e.Purposes, e.Asked, e.GivenAt,
			e.ExpiresAt, e.DueAt, e.DecayFrom,
			e.DecayedBefore, e.DecayedDays, e.VoidBefore, e.WarnedAt, nil,
		}
		if before, ok := c.currentRows[key]; ok && f.DecayFrom != nil {
			switch {
			case before.DecayFrom != nil:
				f.DecayCategories = before.DecayCategories
			case before.State == string(consent.StateGiven):
				f.DecayCategories = before.Categories
			}
		}
		c.currentRows[key] = f
	}
}

// applyErasure notes that a subject was erased, and checks that its name and keys are gone.
func (c *checker) applyErasure(e *recordEntry) {
	c.erasedSubjects[e.Subject] = true
	switch p := c.subjects[e.Subject]; {
	case p.Name != nil || p.Key != nil || p.PseudonymKey != nil:
		c.addFinding(e.Number, "its subject was erased and has a name again")
	case p.ErasedAt != nil && !p.ErasedAt.Equal(e.RecordedAt):
		c.addFinding(e.Number, "its subject was erased at another time")
	}
}

// compareTables compares the tables of current consents, guardians and subjects with what follows from the records.
func (c *checker) compareTables(x *Export) {
	for _, p := range x.subjects {
		if p.ErasedAt != nil && !c.erasedSubjects[p.Reference] {
			c.addFinding(0, "a subject was erased without a record of it")
		}
	}
	seenKeys := map[consent.Key]bool{}
	for _, f := range x.current {
		key := consent.Key{Subject: f.Subject, Grantee: f.Grantee, Scope: f.Scope}
		want, ok := c.currentRows[key]
		switch {
		case seenKeys[key]:
			c.addFinding(f.Number, "consent_current has it twice")
		case !ok:
			c.addFinding(f.Number, "consent_current has a consent that the records do not have")
		case !equalRows(f, want):
			c.addFinding(f.Number, "consent_current differs from the records")
		}
		seenKeys[key] = true
	}
	for key, f := range c.currentRows {
		if !seenKeys[key] {
			c.addFinding(f.Number, "consent_current lacks a consent of the records")
		}
	}
	for _, g := range x.guardians {
		key := [2]string{g.Subject, g.Guardian}
		if number, ok := c.guardians[key]; !ok || number != g.Number {
			c.addFinding(g.Number, "consent_guardian has a guardian that the records do not have")
		}
		delete(c.guardians, key)
	}
	for _, number := range c.guardians {
		c.addFinding(number, "consent_guardian lacks a guardian")
	}
	slices.SortStableFunc(c.findings, func(a, b Finding) int { return strings.Compare(a.Problem, b.Problem) })
	slices.SortStableFunc(c.findings, func(a, b Finding) int { return int(a.RecordNumber - b.RecordNumber) })
}

// equalRows reports whether two rows are equal. Times are equal if they are the same instant.
func equalRows(a, b currentRow) bool {
	for _, f := range []*currentRow{&a, &b} {
		for _, t := range []**time.Time{&f.GivenAt, &f.ExpiresAt, &f.DueAt, &f.DecayFrom, &f.DecayedBefore,
			&f.VoidBefore, &f.WarnedAt} {
			if *t != nil {
				u := (*t).UTC()
				*t = &u
			}
		}
	}
	return reflect.DeepEqual(a, b)
}
