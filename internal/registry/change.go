package registry

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Result is what [Registry.Execute] did for a command.
type Result struct {
	Consent      consent.Consent // the consent after the command; the zero value if the subject has no record
	RecordNumber int64           // the number of the last record that the command made; 0: nothing had to change
	RecordedAt   time.Time       // the time of that record, or of the command
	IsRepeated   bool            // an earlier call with the same RequestKey has made the change

	// Tampered says why the registry contradicts its anchor or its codes; nil: it does not. Commands that only restrict
	// access are carried out nevertheless, but the anchor stays as it is.
	Tampered error
}

// TamperedError is the error that the registry contradicts its anchor or its codes.
type TamperedError struct {
	err    *sqlstate.Error
	Reason string
}

func (e *TamperedError) Error() string { return e.err.Message }

func (e *TamperedError) Unwrap() error { return e.err }

// Name returns the error's name, for [consent.Named].
func (*TamperedError) Name() string { return "ConsentTamperedError" }

func newTamperedError(reason string) *TamperedError {
	return &TamperedError{sqlstate.New(sqlstate.ConsentTampered, sqlstate.ReasonConsent,
		"the consent registry was tampered with: %s", reason).
		WithHint("pgconsent audit verify says where. Nothing is granted until it is repaired; withdrawals are recorded."),
		reason}
}

// onlyRestricts reports whether a command can only reduce what readers see. Execute carries out such a command even if
// the registry was tampered with.
func onlyRestricts(c consent.Command) bool {
	switch c.Action {
	case consent.ActionRevoke, consent.ActionRefuse, consent.ActionDegrade, consent.ActionExpire, consent.ActionLapse,
		consent.ActionErase,
		consent.ActionNoteDeleted, consent.ActionNoteAnonymised, consent.ActionDismiss:
		return true
	case consent.ActionDecide:
		return c.Decision == consent.DecisionReject
	default:
		return false
	}
}

// endsConsent reports whether a command ends a consent in every state, so that the state need not be known.
func endsConsent(c consent.Command) bool {
	return c.Action == consent.ActionRevoke || c.Action == consent.ActionErase
}

// Execute makes the records of a command, and returns when they are committed and the anchor is written. Its errors are
// those of package consent, *TamperedError, *AnchorError and *sqlstate.Error.
func (r *Registry) Execute(ctx context.Context, command consent.Command) (Result, error) {
	if err := command.Check(); err != nil {
		return Result{}, err
	}
	if command.RequestKey == "" {
		// The generated key lets the next attempt find the records, if the answer to the commit is lost.
		key := make([]byte, 16)
		_, _ = rand.Read(key)
		command.RequestKey = "\x01" + hex.EncodeToString(key)
	}
	var out Result
	w := &recordWriter{registry: r, command: command}
	err := r.withConnection(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		var err error
		out, err = w.writeCommand(ctx, conn)
		return err
	})
	return out, err
}

// recordWriter executes one command, in several attempts if the connection breaks.
type recordWriter struct {
	registry      *Registry
	command       consent.Command
	erasedSubject *uuid // the subject of an erasure whose commit may have succeeded without an answer

	conn             *pgx.Conn
	id               uuid
	databaseTime     time.Time
	recordTime       time.Time // the time of the new records: the database's time, but not before the last record
	lastHead         recordHead
	partyByName      map[string]party
	partyByReference map[uuid]party
	tampering        error // why the registry contradicts its anchor or its codes; nil: it does not
}

func (w *recordWriter) writeCommand(ctx context.Context, conn *pgx.Conn) (out Result, err error) {
	r := w.registry
	w.conn, w.partyByName, w.partyByReference, w.tampering = conn, map[string]party{}, map[uuid]party{}, nil
	a, err := openAnchor(ctx, r.Anchor, r.Database, r.Keys)
	if err != nil {
		if !onlyRestricts(w.command) {
			return Result{}, err
		}
		w.tampering = err
	}
	if a != nil {
		defer a.close()
	}
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted, AccessMode: pgx.ReadWrite})
	if err != nil {
		return Result{}, databaseError("begin a change of consent", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	// A committed change must survive a crash of PostgreSQL, whatever the server's settings are. remote_apply is stronger
	// than on and is left unchanged.
	if _, err := tx.Exec(ctx, `SELECT pg_catalog.set_config('synchronous_commit', 'on', true)
		WHERE pg_catalog.current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')`); err != nil {
		return Result{}, databaseError("begin a change of consent", err)
	}
	if err := w.lockAndCheck(ctx, tx, a); err != nil {
		return Result{}, err
	}
	out, entries, err := w.decideRecords(ctx, tx)
	if err != nil || len(entries) == 0 {
		return out, err
	}
	for i := range entries {
		if err := w.append(ctx, tx, entries[i]); err != nil {
			return Result{}, err
		}
	}
	anchoring := a != nil && w.tampering == nil
	if anchoring {
		if err := a.prepare(w.lastHead, w.recordTime); err != nil {
			if !onlyRestricts(w.command) {
				return Result{}, newAnchorError(false, err)
			}
			anchoring, w.tampering = false, err
		}
	}
	if w.command.Action == consent.ActionErase {
		w.erasedSubject = &entries[len(entries)-1].entry.Subject
	}
	if err := tx.Commit(ctx); err != nil {
		return Result{}, databaseError("commit a change of consent", err)
	}
	if r.afterCommit != nil {
		r.afterCommit()
	}
	if anchoring {
		if err := a.commit(); err != nil {
			return out, newAnchorError(true, err)
		}
	}
	var t *TamperedError
	switch {
	case errors.As(w.tampering, &t):
		out.Tampered = t
	case w.tampering != nil:
		return out, newAnchorError(true, w.tampering)
	}
	return out, nil
}

// lockAndCheck takes the lock that every writer takes, and checks the last record against its code and the anchor.
func (w *recordWriter) lockAndCheck(ctx context.Context, tx pgx.Tx, a *lockedAnchor) error {
	var number *int64
	var recordedAt *time.Time
	var e recordEntry
	err := tx.QueryRow(ctx, "SELECT o.id, o.clock, o.number, o.recorded_at FROM pgconsent.consent_open() AS o").
		Scan(&w.id, &w.databaseTime, &number, &recordedAt)
	if err != nil {
		return databaseError("change consent", err)
	}
	w.recordTime, w.lastHead = w.databaseTime, recordHead{w.id, 0, genesisHash(w.id)}
	if number != nil {
		if err := e.scan(tx.QueryRow(ctx, "SELECT "+recordColumns+" FROM "+fromRecords+" WHERE number = $1",
			*number)); err != nil {
			return databaseError("read the last consent record", err)
		}
		w.lastHead = recordHead{w.id, e.Number, e.Hash}
		if e.RecordedAt.After(w.recordTime) {
			w.recordTime = e.RecordedAt
		}
	}
	w.recordTime = w.recordTime.UTC()
	if w.tampering == nil {
		w.tampering = w.checkTail(ctx, tx, a, e)
	}
	if w.tampering != nil {
		if !onlyRestricts(w.command) {
			return w.tampering
		}
		return nil
	}
	// A record of a report gives nobody access, and the subject may demand a report even while the clock is wrong.
	if !onlyRestricts(w.command) && w.command.Action != consent.ActionNoteReport &&
		w.recordTime.Sub(w.databaseTime) > clockSlack {
		return consent.NewClock()
	}
	return nil
}

// clockSlack is how far the database's clock may be behind the last record, as after a correction of the clock.
const clockSlack = time.Minute

// checkTail checks the code of the last record, and that the record that the anchor names exists. Both checks are
// cheap.
func (w *recordWriter) checkTail(ctx context.Context, tx pgx.Tx, a *lockedAnchor, last recordEntry) error {
	if w.lastHead.Number > 0 {
		if reason := last.findProblem(w.registry.Keys, w.id); reason != "" {
			return newTamperedError(reason)
		}
	}
	h, ok, err := a.head()
	switch {
	case err != nil:
		return newTamperedError(err.Error())
	case !ok && w.lastHead.Number == 0:
		return nil
	case !ok:
		// The anchor has no entry for this registry yet. Before the proxy writes one, the whole registry must verify.
		export, err := readExport(ctx, tx)
		var unreadable *unreadableError
		if errors.As(err, &unreadable) {
			return newTamperedError(unreadable.Error())
		}
		if err != nil {
			return err
		}
		if found := Check(export, w.registry.Keys, nil); len(found) > 0 {
			return newTamperedError(found[0].String())
		}
		return nil
	case h.Registry != w.id:
		return newTamperedError("the database has another registry than the anchor")
	case h.Number == 0:
		return nil
	}
	var hash []byte
	err = tx.QueryRow(ctx, "SELECT hash FROM pgconsent.consent_record WHERE number = $1", h.Number).Scan(&hash)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return newTamperedError(fmt.Sprintf("record %d, which was acknowledged, is gone", h.Number))
	case err != nil:
		return databaseError("read the anchored consent record", err)
	case !bytes.Equal(hash, h.Hash):
		return newTamperedError(fmt.Sprintf("record %d is not the one that was acknowledged", h.Number))
	}
	return nil
}

// newRecord is a record to write, with its scope in clear text.
type newRecord struct {
	entry recordEntry
	scope string
}

// decideRecords decides which records the command makes, and signs them.
func (w *recordWriter) decideRecords(ctx context.Context, tx pgx.Tx) (Result, []newRecord, error) {
	command := w.command
	key := command.Key()
	subject, isKnown, err := w.findPartyByName(ctx, tx, key.Subject)
	if err != nil {
		return Result{}, nil, err
	}
	if !isKnown && w.erasedSubject != nil {
		return w.findErasure(ctx, tx)
	}
	if !isKnown {
		// a new reference without records: the queries below run as well, so a refusal takes as long as for a known subject
		subject = newParty(key.Subject)
	}
	if before, ok, err := w.findRepeated(ctx, tx, subject); err != nil || ok {
		return before, nil, err
	}
	if command.Action == consent.ActionErase {
		return w.eraseSubject(ctx, tx, subject, isKnown)
	}
	situation, err := w.readSituation(ctx, tx, key, subject)
	if err != nil {
		return Result{}, nil, err
	}
	steps, err := consent.Decide(w.registry.Settings, w.recordTime, situation, command)
	if err != nil {
		return Result{}, nil, err
	}
	out := Result{RecordedAt: w.recordTime}
	if situation.Consent != nil {
		out.Consent = *situation.Consent
	}
	if len(steps) == 0 {
		return out, nil, nil
	}
	if !isKnown {
		if err := w.insertParty(ctx, tx, subject); err != nil {
			return Result{}, nil, err
		}
	}
	entries, err := w.signSteps(ctx, tx, subject, steps)
	if err != nil {
		return Result{}, nil, err
	}
	lastStep := steps[len(steps)-1]
	if lastStep.Event != consent.EventAppointed && lastStep.Event != consent.EventDismissed {
		out.Consent = lastStep.Consent
	}
	out.RecordNumber = entries[len(entries)-1].entry.Number
	return out, entries, nil
}

// signSteps makes a signed record of each step, in order, after the last record. The last one gets the RequestKey.
func (w *recordWriter) signSteps(ctx context.Context, tx pgx.Tx, subject party, steps []consent.Step) ([]newRecord,
	error) {
	var out []newRecord
	for i, s := range steps {
		e := recordEntry{Number: w.lastHead.Number + 1, RecordedAt: w.recordTime.Truncate(time.Microsecond),
			Subject: subject.reference,
			Event:   string(s.Event), chainLink: chainLink{PreviousHash: w.lastHead.Hash}}
		e.fillFromConsent(s.Consent)
		e.Scope = subject.scope(s.Consent.Scope)
		d := recordDetails{Version: 1, Subject: subject.name, Scope: s.Consent.Scope, RecordedByRole: s.RecordedBy.Role,
			Via:   w.command.Interface,
			Names: map[string]nameProof{}}
		ref := func(partyID string) (string, error) {
			if partyID == "" || partyID == consent.AnyGrantee {
				return "", nil
			}
			p, err := w.findOrMakeParty(ctx, tx, partyID, subject)
			if err != nil {
				return "", err
			}
			id := hex.EncodeToString(p.reference[:])
			if p.reference != subject.reference {
				d.Names[id] = p.proveName()
			}
			return id, nil
		}
		grantee, err := ref(s.Consent.Grantee)
		if err != nil {
			return nil, err
		}
		if grantee != "" {
			p := w.partyByName[s.Consent.Grantee]
			e.Grantee = &p.reference
		}
		if d.RecordedByRef, err = ref(s.RecordedBy.ID); err != nil {
			return nil, err
		}
		if s.RecordedBy == w.command.Caller { // steps that the proxy adds because time has passed have no reason
			d.Reason, d.Evidence = w.command.Reason, w.command.Evidence
			if s.RecordedBy.Role == consent.RoleSubject || s.RecordedBy.Role == consent.RoleGuardian {
				d.Grantor = d.RecordedByRef
			} else if w.command.Action == consent.ActionInteract {
				d.Grantor = hex.EncodeToString(subject.reference[:])
			}
		}
		if d.Guardian, err = ref(w.command.Guardian); err != nil {
			return nil, err
		}
		if i == len(steps)-1 {
			e.Request = subject.pseudonym("request", w.command.RequestKey)
			d.Command = w.commandDigest()
		}
		if e.Sealed, err = subject.sealDetails(w.id, e.Number, d); err != nil {
			return nil, err
		}
		e.sign(w.registry.Keys, w.id)
		w.lastHead = recordHead{w.id, e.Number, e.Hash}
		out = append(out, newRecord{e, s.Consent.Scope})
	}
	return out, nil
}

// commandDigest returns a hash of the command without its RequestKey, to recognise a repeated command.
func (w *recordWriter) commandDigest() string {
	c := w.command
	c.RequestKey, c.Interface = "", ""
	text, err := json.Marshal(c)
	if err != nil {
		panic("registry: a command is plain data: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// findRepeated returns the result of an earlier command with the same RequestKey, and reports whether there is one.
func (w *recordWriter) findRepeated(ctx context.Context, tx pgx.Tx, subject party) (Result, bool, error) {
	var e recordEntry
	err := tx.QueryRow(ctx, "SELECT "+recordColumns+" FROM "+fromRecords+" WHERE request = $1 AND subject = $2",
		subject.pseudonym("request", w.command.RequestKey), subject.reference).Scan(e.fields()...)
	if errors.Is(err, pgx.ErrNoRows) {
		return Result{}, false, nil
	}
	if err != nil {
		return Result{}, false, databaseError("look for a call with the same key", err)
	}
	d, err := subject.openDetails(w.id, e.Number, e.Sealed)
	if err != nil {
		return Result{}, false, newTamperedError(err.Error())
	}
	if d.Command != w.commandDigest() {
		return Result{}, false, consent.NewConflict()
	}
	key := w.command.Key()
	key.Scope = d.Scope
	return Result{Consent: e.consent(key), RecordNumber: e.Number, RecordedAt: e.RecordedAt, IsRepeated: true}, true, nil
}

func (w *recordWriter) append(ctx context.Context, tx pgx.Tx, p newRecord) error {
	e := p.entry
	_, err := tx.Exec(ctx, `SELECT pgconsent.consent_append(ROW($1::int8, $2::timestamptz, $3::uuid, $4::text,
		$5::text, $6::text, $7::text[], $8::text[], $9::text[],
		$10::uuid, $11::bytea, $12::timestamptz, $13::timestamptz, $14::timestamptz, $15::timestamptz,
		$16::timestamptz, $17::int4, $18::timestamptz, $19::timestamptz,
		$20::text, $21::bytea, $22::bytea, $23::bytea, $24::bytea, $25::bytea, $26::int4)::pgconsent.consent_record, $27)`,
		e.Number, e.RecordedAt, e.Subject, e.Event, e.State, e.Stream, e.Categories, e.Purposes, e.Asked, e.Grantee,
		e.Scope, e.GivenAt, e.ExpiresAt, e.DueAt,
		e.DecayFrom, e.DecayedBefore, e.DecayedDays, e.VoidBefore, e.WarnedAt, e.Controller, e.Request, e.Sealed,
		e.PreviousHash, e.Hash, e.MAC, e.MACKey, p.scope)
	if err != nil {
		return databaseError("record a change of consent", err)
	}
	return nil
}

func isConnectionEOF(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
