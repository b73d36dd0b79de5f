package registry

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
)

// uuid is the reference by which records name a person.
type uuid = [16]byte

// recordEntry is a row of pgconsent.consent_record, the table of consent records.
type recordEntry struct {
	Number        int64
	RecordedAt    time.Time
	Subject       uuid
	Event         string
	State         string
	Stream        *string
	Categories    []string
	Purposes      []string
	Asked         []string // nil: NULL
	Grantee       *uuid
	Scope         []byte // nil: NULL
	GivenAt       *time.Time
	ExpiresAt     *time.Time
	DueAt         *time.Time
	DecayFrom     *time.Time
	DecayedBefore *time.Time
	DecayedDays   *int32
	VoidBefore    *time.Time
	WarnedAt      *time.Time
	Controller    *string
	Request       []byte // nil: NULL
	Sealed        []byte
	chainLink
}

// chainLink says how a record belongs to the chain: the hash of the record before it, its own hash, and codes (MACs) of
// its own hash.
type chainLink struct {
	PreviousHash   []byte
	Hash           []byte
	MAC            []byte
	MACKey         int32  // the number of the key with which MAC was made
	CodeKey        *int32 // the number of the key of the code that rekey added in place of MAC; nil: there is none
	ReplacementMAC []byte
}

// fromRecords is a FROM clause of consent_record, joined with the codes that rekey has added.
const fromRecords = "pgconsent.consent_record LEFT JOIN pgconsent.consent_code USING (number)"

// recordColumns are the columns of fromRecords, in the order of [recordEntry.fields]. If a later column has an invalid
// value, the first ones can still be read.
const recordColumns = "number, hash, recorded_at, subject, event, state, stream, categories, purposes, asked, grantee, " +
	"scope, given_at, expires_at, due_at, " +
	"decay_from, decayed_before, decayed_days, void_before, warned_at, controller, request, sealed, prev, mac, " +
	"kid, code_kid, code"

func (e *recordEntry) fields() []any {
	return []any{&e.Number, &e.Hash, &e.RecordedAt, &e.Subject, &e.Event, &e.State, &e.Stream, &e.Categories,
		&e.Purposes, &e.Asked, &e.Grantee, &e.Scope, &e.GivenAt,
		&e.ExpiresAt, &e.DueAt, &e.DecayFrom, &e.DecayedBefore, &e.DecayedDays, &e.VoidBefore, &e.WarnedAt,
		&e.Controller, &e.Request, &e.Sealed, &e.PreviousHash, &e.MAC, &e.MACKey, &e.CodeKey, &e.ReplacementMAC}
}

// scan reads a record. A value that pgconsent never writes, such as infinity, is no error: the record then does not
// verify.
func (e *recordEntry) scan(row pgx.Row) error {
	err := row.Scan(e.fields()...)
	if errors.As(err, new(pgx.ScanArgError)) {
		return nil
	}
	return err
}

// computeHash returns the hash of all fields except the hash and the codes. It hashes each field with its length, so
// that different records never give the same input.
func (e *recordEntry) computeHash() [sha256.Size]byte {
	h := sha256.New()
	h.Write([]byte("pgconsent consent record 1\n"))
	var n [8]byte
	number := func(i int64) {
		binary.BigEndian.PutUint64(n[:], uint64(i))
		h.Write(n[:])
	}
	text := func(b []byte) {
		number(int64(len(b)))
		h.Write(b)
	}
	null := func() { number(-1) }
	optional := func(b []byte) {
		if b == nil {
			null()
			return
		}
		text(b)
	}
	word := func(s *string) {
		if s == nil {
			null()
			return
		}
		text([]byte(*s))
	}
	instant := func(t *time.Time) {
		if t == nil {
			null()
			return
		}
		number(8)
		number(t.UnixMicro())
	}
	list := func(l []string) {
		if l == nil {
			null()
			return
		}
		number(int64(len(l)))
		for _, s := range l {
			text([]byte(s))
		}
	}
	number(e.Number)
	instant(&e.RecordedAt)
	text(e.Subject[:])
	text([]byte(e.Event))
	text([]byte(e.State))
	word(e.Stream)
	list(e.Categories)
	list(e.Purposes)
	list(e.Asked)
	if e.Grantee == nil {
		null()
	} else {
		text(e.Grantee[:])
	}
	optional(e.Scope)
	for _, t := range []*time.Time{e.GivenAt, e.ExpiresAt, e.DueAt, e.DecayFrom, e.DecayedBefore} {
		instant(t)
	}
	if e.DecayedDays == nil {
		null()
	} else {
		number(8)
		number(int64(*e.DecayedDays))
	}
	instant(e.VoidBefore)
	instant(e.WarnedAt)
	word(e.Controller)
	optional(e.Request)
	text(e.Sealed)
	text(e.PreviousHash)
	number(int64(e.MACKey))
	return [sha256.Size]byte(h.Sum(nil))
}

// sign links the record to the one before it, and signs it for this registry.
func (e *recordEntry) sign(k Keys, registry uuid) {
	e.MACKey, _ = k.signingKey()
	sum := e.computeHash()
	e.Hash = sum[:]
	e.MAC = k.recordMAC(e.MACKey, registry, e.Hash)
}

// recordMAC returns the code (MAC) of a record under a key, or nil if the key is missing.
func (k Keys) recordMAC(kid int32, registry uuid, hash []byte) []byte {
	return k.macFor("record|", kid, registry, hash)
}

// replacementMAC returns the code that replaces a record's code after its key was retired.
func (k Keys) replacementMAC(kid int32, registry uuid, hash []byte) []byte {
	return k.macFor("again|", kid, registry, hash)
}

func (k Keys) macFor(use string, kid int32, registry uuid, hash []byte) []byte {
	s, ok := k.keyByNumber(kid)
	if !ok {
		return nil
	}
	h := hmac.New(sha256.New, s.mac[:])
	h.Write([]byte(use))
	h.Write(registry[:])
	h.Write(hash)
	return h.Sum(nil)
}

// findProblem returns what is wrong with a record by itself, or "" if nothing is.
func (e *recordEntry) findProblem(k Keys, registry uuid) string {
	sum := e.computeHash()
	if !bytes.Equal(sum[:], e.Hash) {
		return "the record was changed: its hash does not fit"
	}
	isReplacementValid := false
	if e.CodeKey != nil {
		code := k.replacementMAC(*e.CodeKey, registry, e.Hash)
		if isReplacementValid = code != nil && hmac.Equal(code, e.ReplacementMAC); !isReplacementValid {
			return "the code that the record was given with another key does not fit"
		}
	}
	switch code := k.recordMAC(e.MACKey, registry, e.Hash); {
	case code == nil && isReplacementValid: // the key of MAC was retired, and the replacement is valid
	case code == nil:
		return "the record is signed with a key that is not in the key file"
	case !hmac.Equal(code, e.MAC):
		return "the record was not signed by the key file's key: the chain was worked out anew"
	}
	return ""
}

// genesisHash returns the hash that the first record has in place of the hash of a record before it.
func genesisHash(registry uuid) []byte {
	sum := sha256.Sum256(append([]byte("pgconsent consent registry 1\n"), registry[:]...))
	return sum[:]
}

// consent returns the consent after the record. The caller knows its key in clear text.
func (e *recordEntry) consent(key consent.Key) consent.Consent {
	c := consent.Consent{
		Key: key, State: consent.State(e.State), Categories: slices.Clone(e.Categories),
		Purposes: slices.Clone(e.Purposes), RequestedCategories: slices.Clone(e.Asked),
		GivenAt: timeOrZero(e.GivenAt), ExpiresAt: timeOrZero(e.ExpiresAt), DueAt: timeOrZero(e.DueAt), DecayFrom: timeOrZero(e.DecayFrom),
		DecayedBefore: timeOrZero(e.DecayedBefore),
		VoidBefore:    timeOrZero(e.VoidBefore), WarnedAt: timeOrZero(e.WarnedAt),
	}
	if e.Stream != nil {
		c.Stream = consent.Stream(*e.Stream)
	}
	if e.DecayedDays != nil {
		c.DecayedDays = int(*e.DecayedDays)
	}
	if e.Controller != nil {
		c.Controller = *e.Controller
	}
	return c
}

// fillFromConsent sets the fields of the record that hold the consent after it.
func (e *recordEntry) fillFromConsent(c consent.Consent) {
	e.State, e.Categories, e.Purposes, e.Asked = string(c.State), c.Categories, c.Purposes, c.RequestedCategories
	if e.Categories == nil {
		e.Categories = []string{}
	}
	if e.Purposes == nil {
		e.Purposes = []string{}
	}
	if c.Stream != "" {
		e.Stream = (*string)(&c.Stream)
	}
	e.GivenAt, e.ExpiresAt, e.DueAt, e.DecayFrom, e.DecayedBefore = toMicroseconds(c.GivenAt),
		toMicroseconds(c.ExpiresAt), toMicroseconds(c.DueAt),
		toMicroseconds(c.DecayFrom), toMicroseconds(c.DecayedBefore)
	e.VoidBefore, e.WarnedAt = toMicroseconds(c.VoidBefore), toMicroseconds(c.WarnedAt)
	if c.DecayedDays != 0 {
		days := int32(c.DecayedDays)
		e.DecayedDays = &days
	}
	if c.Controller != "" {
		e.Controller = &c.Controller
	}
}

func timeOrZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// toMicroseconds returns a time in PostgreSQL's precision, microseconds, or nil for the zero time.
func toMicroseconds(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Microsecond)
	return &t
}
