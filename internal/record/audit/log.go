package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

const (
	// maxQueue limits the records in memory while the disk is slow or fails. If the queue is full, statements are refused.
	maxQueue = 1 << 15
	// retryInterval is the time between two attempts to write after an error.
	retryInterval = 250 * time.Millisecond
	// syncInterval is how long a written record may stay unsynced in ModeBuffered.
	syncInterval = 250 * time.Millisecond
	// gatherTime is how long ModeBuffered collects records before it writes them.
	gatherTime = 10 * time.Millisecond
	// maxBufferedLag is how old an unsynced record may be in ModeBuffered before Release waits for the disk.
	maxBufferedLag = time.Second
	// maxOpenWait is how long Open waits for a disk that does not respond. A [Store] has its own, longer limits.
	maxOpenWait = 10 * time.Second
)

// Log writes the records of one directory or store. Only one process may have the same one open.
type Log struct {
	cfg Config

	mu             sync.Mutex
	queue          []*Ticket
	isClosed       bool
	failure        error         // why the last write failed; nil: it succeeded
	waitingSince   time.Time     // when the running write began; zero: no write is running
	oldestUnsynced time.Time     // when the oldest unsynced record was made; zero: all are synced
	syncSignal     chan struct{} // closed and replaced each time records have been synced, or writing has failed
	lostRecords    uint64        // how many records were dropped since the last record was written

	wakeWriter     chan struct{}
	closeRequested chan struct{}
	writerDone     chan struct{}
	recordSink     recordSink // only the writing goroutine uses it
	heldGroup      []*Ticket  // records that the sink still holds and nobody waits for; only the writing goroutine uses it
}

// Ticket stands for a queued record. [Ticket.Release] waits until the record is written.
type Ticket struct {
	log            *Log
	kind           string
	recordedAt     time.Time
	encodedMembers *[]byte // the encoded members, without the first two of an outcome; nil: rareRecord has the record
	rareRecord     any     // a record of a rare kind, which is not encoded yet
	session        string  // the session that a decision belongs to
	decision       *Ticket // the decision that an outcome belongs to
	// a goroutine waits in Release; if the record cannot be written, it is dropped and Release refuses
	hasWaiter bool
	isDropped bool          // neither the record nor its outcome will ever be written
	state     atomic.Int32  // ticketPending, ticketGivenUp (the waiter timed out) or ticketWritten
	seq       uint64        // the record's number, which the writer sets before it closes resolved
	resolved  chan struct{} // closed when err is known; nil if nobody waits
	err       *sqlstate.Error
}

const (
	ticketPending int32 = iota
	ticketGivenUp
	ticketWritten
)

// Open locks the directory, moves an incomplete last record to a separate file, and starts the writing goroutine.
func Open(cfg Config) (*Log, error) {
	if cfg.Mode == "" {
		cfg.Mode = ModeStrict
	}
	if cfg.MaxSegment == 0 {
		cfg.MaxSegment = 64 << 20
	}
	if cfg.ReleaseTimeout == 0 {
		cfg.ReleaseTimeout = 1500 * time.Millisecond
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.openFile == nil {
		cfg.openFile = openFile
	}
	l := &Log{cfg: cfg, wakeWriter: make(chan struct{}, 1), closeRequested: make(chan struct{}),
		writerDone: make(chan struct{}),
		syncSignal: make(chan struct{})}
	switch cfg.Mode {
	case ModeOff:
		close(l.writerDone)
		return l, nil
	case ModeStrict, ModeBuffered:
	default:
		return nil, fmt.Errorf("audit mode %q is not one of strict, buffered, off", cfg.Mode)
	}
	if cfg.Store != nil {
		l.recordSink = newStoreSink(cfg)
	} else {
		if cfg.Dir == "" {
			return nil, errors.New("audit mode " + string(cfg.Mode) + " needs a directory")
		}
		l.recordSink = newFileSink(cfg)
	}
	if err := l.start(); err != nil {
		return nil, err
	}
	return l, nil
}

// start opens the sink. If that fails for a transient reason, or takes too long, the writing goroutine tries again, and
// statements are refused meanwhile.
func (l *Log) start() error {
	openResult := make(chan error, 1)
	l.waitingSince = l.cfg.Clock().Add(-2 * l.cfg.ReleaseTimeout) // no statement waits until the sink is open
	go func() {
		err := l.recordSink.open()
		if err != nil && !isTransient(err) {
			l.recordSink.close()
			l.mu.Lock()
			l.failure, l.waitingSince = err, time.Time{}
			l.mu.Unlock()
			openResult <- err
			close(l.writerDone)
			return
		}
		l.mu.Lock()
		l.failure, l.waitingSince = err, time.Time{}
		l.mu.Unlock()
		openResult <- err
		l.writeLoop()
	}()
	var err error
	openTimer := time.NewTimer(maxOpenWait)
	defer openTimer.Stop()
	select {
	case err = <-openResult:
	case <-openTimer.C:
		err = l.timeoutError()
	}
	if err != nil && (errors.Is(err, errNoAnswer) || isTransient(err)) {
		destination := l.cfg.Dir
		if l.cfg.Store != nil {
			destination = l.cfg.Store.String()
		}
		l.cfg.Log.Error("audit: records cannot be written yet; statements of agents are refused until they can",
			"to", destination, "error", err)
		return nil
	}
	return err
}

// isTransient reports whether an error may disappear without a change of the configuration: a disk that is full,
// read-only or missing, a missing permission, an unreachable database. A broken chain, or one that another process has
// locked, is not transient.
func isTransient(err error) bool {
	var errno syscall.Errno
	switch {
	case errors.Is(err, ErrUnreachable):
		return true
	case !errors.As(err, &errno):
		return false
	}
	switch errno {
	case syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP, syscall.ENAMETOOLONG, syscall.EINVAL: // no log can have this path
		return false
	default:
		return true
	}
}

// lockDir locks the directory against other processes until the file is closed.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("audit directory: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("audit directory %s is in use by another pgconsent; give each its own", dir)
		}
		return nil, fmt.Errorf("audit directory: lock: %w", err)
	}
	return f, nil
}

// Decision queues the record of a decision and returns at once. The statement may be sent to PostgreSQL only after
// [Ticket.Release] has returned nil.
func (l *Log) Decision(d Decision) *Ticket {
	t := &Ticket{kind: KindDecision, session: d.Session, hasWaiter: l.cfg.Mode == ModeStrict}
	if l.cfg.Mode != ModeOff {
		t.encodedMembers = newMemberBuffer()
		*t.encodedMembers = d.appendMembers(*t.encodedMembers)
	}
	return l.enqueue(t)
}

// Session queues the record of the beginning or the end of a session.
func (l *Log) Session(s Session) *Ticket {
	return l.enqueue(&Ticket{kind: KindSession, rareRecord: s, hasWaiter: l.cfg.Mode == ModeStrict && s.Event == "open"})
}

// Mode returns what [Ticket.Release] waits for.
func (l *Log) Mode() Mode { return l.cfg.Mode }

// Key returns the key with which records are signed and commitments made.
func (l *Log) Key() Key { return l.cfg.Key }

// WriteFailure returns the reason why records cannot be written now, or nil.
func (l *Log) WriteFailure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failureAt(l.cfg.Clock())
}

// failureAt returns the reason why a record that is queued at this time cannot be written soon, or nil. The caller
// holds mu.
func (l *Log) failureAt(now time.Time) error {
	switch {
	case l.cfg.Mode == ModeOff:
		return nil
	case l.isClosed:
		return errors.New("the log is closed")
	case l.failure != nil:
		return l.failure
	case !l.waitingSince.IsZero() && now.Sub(l.waitingSince) > l.cfg.ReleaseTimeout:
		return l.timeoutError()
	case len(l.queue) >= maxQueue:
		return fmt.Errorf("too many records wait for the %s", l.recordSink.mediumName())
	default:
		return nil
	}
}

// timeoutError returns the error for a sink that takes too long.
func (l *Log) timeoutError() error {
	return fmt.Errorf("the %s %w", l.recordSink.mediumName(), errNoAnswer)
}

var errNoAnswer = errors.New("does not answer")

func (l *Log) enqueue(t *Ticket) *Ticket {
	t.log, t.recordedAt = l, l.cfg.Clock()
	if t.hasWaiter {
		t.resolved = make(chan struct{})
	}
	if l.cfg.Mode == ModeOff {
		t.state.Store(ticketWritten)
		t.wakeWaiter()
		return t
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.failureAt(t.recordedAt)
	// A statement that has run must have its outcome recorded, so the outcome is queued even while the disk fails.
	if err != nil && t.kind != KindDecision && !t.hasWaiter && !l.isClosed && len(l.queue) < maxQueue {
		err = nil
	}
	if err != nil {
		l.lostRecords++
		t.isDropped = true
		t.resolve(l.refusal(err))
		l.countFailure(1)
		if l.cfg.Observer != nil && !l.oldestUnsynced.IsZero() {
			l.cfg.Observer.AuditSynced(t.recordedAt.Sub(l.oldestUnsynced))
		}
		return t
	}
	l.queue = append(l.queue, t)
	if l.oldestUnsynced.IsZero() {
		l.oldestUnsynced = t.recordedAt
	}
	if l.cfg.Observer != nil {
		l.cfg.Observer.SetAuditQueue(len(l.queue))
	}
	select {
	case l.wakeWriter <- struct{}{}:
	default:
	}
	return t
}

func (l *Log) countFailure(n int) {
	if l.cfg.Observer != nil && n > 0 {
		l.cfg.Observer.AuditFailed(n)
	}
}

func (t *Ticket) resolve(err *sqlstate.Error) {
	t.err = err
	t.wakeWaiter()
}

// wakeWaiter wakes the goroutine that waits in Release.
func (t *Ticket) wakeWaiter() {
	if t.resolved != nil {
		close(t.resolved)
	}
}

func (l *Log) refusal(cause error) *sqlstate.Error {
	medium := "audit directory (disk full, read-only or not answering?)"
	if l.cfg.Store != nil {
		medium = "database of the audit (not reachable, read-only, full or not answering?)"
	}
	return sqlstate.New(sqlstate.IOError, sqlstate.ReasonAudit, "the audit record of this statement could not be written").
		WithHint("No answer is given without a record: the operator of pgconsent must check the %s. It recovers by itself.", medium).
		WithCause(cause)
}

// RecordedAt returns the time in the record.
func (t *Ticket) RecordedAt() time.Time { return t.recordedAt }

// Release waits until the record is as durable as the mode requires, and returns nil. If that takes longer than
// ReleaseTimeout, or fails, it returns a refusal (58030). It may be called more than once.
func (t *Ticket) Release() *sqlstate.Error {
	if !t.hasWaiter {
		return t.log.waitForLag(t)
	}
	select {
	case <-t.resolved:
		return t.err
	default:
	}
	timer := time.NewTimer(t.recordedAt.Add(t.log.cfg.ReleaseTimeout).Sub(t.log.cfg.Clock()))
	defer timer.Stop()
	select {
	case <-t.resolved:
		return t.err
	case <-timer.C:
	}
	if t.state.CompareAndSwap(ticketPending, ticketGivenUp) {
		t.log.countFailure(1)
	}
	if t.state.Load() == ticketWritten {
		<-t.resolved // the record was written at the last moment
		return t.err
	}
	return t.log.refusal(t.log.timeoutError())
}

// waitForLag returns nil in ModeBuffered, unless writing fails or is more than a second behind.
func (l *Log) waitForLag(t *Ticket) *sqlstate.Error {
	if t.err != nil {
		return t.err
	}
	var lateTimer <-chan time.Time // made only if Release must wait, which is rare
	for t.state.Load() != ticketWritten {
		l.mu.Lock()
		err, oldest, syncSignal := l.failure, l.oldestUnsynced, l.syncSignal
		l.mu.Unlock()
		if err != nil {
			return l.refusal(err)
		}
		if oldest.IsZero() || l.cfg.Clock().Sub(oldest) < maxBufferedLag {
			return nil
		}
		if lateTimer == nil {
			lateTimer = time.After(l.cfg.ReleaseTimeout)
		}
		select {
		case <-syncSignal:
		case <-lateTimer:
			return l.refusal(fmt.Errorf("the %s does not keep up", l.recordSink.mediumName()))
		}
	}
	return nil
}

// RecordOutcome queues the record of a decision's outcome and returns at once. It must be called once.
func (t *Ticket) RecordOutcome(o Outcome) {
	if t.log.cfg.Mode == ModeOff || t.kind != KindDecision {
		return
	}
	text := newMemberBuffer()
	*text = o.appendMembers(*text)
	t.log.enqueue(&Ticket{kind: KindOutcome, encodedMembers: text, decision: t})
}

// Close writes the queued records, syncs and unlocks the directory. It waits until ctx ends for a disk that does not
// respond.
func (l *Log) Close(ctx context.Context) error {
	l.mu.Lock()
	wasClosed := l.isClosed
	l.isClosed = true
	l.mu.Unlock()
	if !wasClosed && l.cfg.Mode != ModeOff {
		close(l.closeRequested)
		close(l.wakeWriter)
	}
	select {
	case <-l.writerDone:
	case <-ctx.Done():
		return fmt.Errorf("audit: close: %w: %w", l.timeoutError(), ctx.Err())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure != nil {
		return fmt.Errorf("audit: close: %w", l.failure)
	}
	return nil
}

// writeLoop is the writing goroutine: it writes one group of queued records after the other.
func (l *Log) writeLoop() {
	defer close(l.writerDone)
	defer l.recordSink.close()
	var tick <-chan time.Time // fires again while records are unsynced or the sink has failed
	switch {
	case l.WriteFailure() != nil:
		tick = time.After(retryInterval)
	case !l.recordSink.oldestUnsynced().IsZero():
		tick = time.After(0)
	}
	for isOpen := true; isOpen; {
		select {
		case _, isOpen = <-l.wakeWriter:
			if l.cfg.Mode == ModeBuffered {
				select {
				case <-time.After(gatherTime):
				case <-l.closeRequested:
				}
			}
		case <-tick:
		}
		tick = l.writeQueued(!isOpen)
	}
}

// writeQueued writes the queued records, or tries again after an error. The returned channel says when to call it
// again.
func (l *Log) writeQueued(isLast bool) <-chan time.Time {
	l.mu.Lock()
	batch, previousFailure, lostCount := l.queue, l.failure, l.lostRecords
	l.waitingSince = l.cfg.Clock()
	l.mu.Unlock()

	startedAt := time.Now()
	isHeld, err := l.writeGroup(batch, previousFailure != nil, lostCount, isLast)

	l.mu.Lock()
	defer l.mu.Unlock()
	l.waitingSince = time.Time{}
	l.queue = l.queue[len(batch):] // only this goroutine removes records
	if err == nil || isHeld {
		l.lostRecords -= lostCount
	}
	switch {
	case err != nil && isHeld:
		l.holdGroup(batch, err)
		l.failGroup(nil, err)
	case err != nil:
		l.failGroup(batch, err)
	default:
		if previousFailure != nil {
			l.cfg.Log.Info("audit: writing works again", "lost", lostCount)
		}
		l.failure = nil
	}
	l.oldestUnsynced = l.recordSink.oldestUnsynced()
	if l.oldestUnsynced.IsZero() && len(l.queue) > 0 {
		l.oldestUnsynced = l.queue[0].recordedAt
	}
	if l.cfg.Observer != nil {
		l.cfg.Observer.SetAuditQueue(len(l.queue))
	}
	if err != nil || l.recordSink.oldestUnsynced().IsZero() {
		close(l.syncSignal)
		l.syncSignal = make(chan struct{})
	}
	switch {
	case err != nil: // the longer a failed attempt took, the later the next one begins
		return time.After(max(retryInterval, 4*time.Since(startedAt)))
	case !l.recordSink.oldestUnsynced().IsZero():
		return time.After(syncInterval)
	default:
		return nil
	}
}

// writeGroup makes a group of records durable and wakes its waiters. After an error either nothing was written, or
// (isHeld) the sink holds the group and writes it as soon as it can.
func (l *Log) writeGroup(batch []*Ticket, mustReopen bool, lostRecords uint64, isLast bool) (isHeld bool, _ error) {
	if mustReopen {
		if err := l.recordSink.reopen(); err != nil {
			return false, err
		}
		for _, t := range l.heldGroup {
			t.wakeWaiter()
		}
		l.heldGroup = nil
	}
	group := make([]*Ticket, 0, len(batch)+1)
	if lostRecords > 0 || mustReopen {
		group = append(group, &Ticket{kind: KindRecovery, recordedAt: l.cfg.Clock(),
			rareRecord: Recovery{Cause: l.recordSink.mediumName(), LostRecords: lostRecords}})
	}
	for _, t := range batch {
		switch {
		case t.state.Load() == ticketGivenUp, t.decision != nil && t.decision.isDropped:
			t.isDropped = true // the statement was refused, so it has no outcome either
		default:
			group = append(group, t)
		}
	}
	expiredRecord := l.recordSink.findExpired()
	if expiredRecord != nil {
		group = append(group, &Ticket{kind: KindCheckpoint, recordedAt: l.cfg.Clock(), rareRecord: *expiredRecord})
	}
	oldest, err := l.recordSink.append(group, l.cfg.Mode == ModeStrict || isLast || expiredRecord != nil)
	if err != nil {
		return l.recordSink.holdsGroup(), err
	}
	if expiredRecord != nil {
		l.recordSink.removeExpired(*expiredRecord)
	}
	for _, t := range group {
		// A waiter may have timed out just now and refused the statement. The record stays, and its outcome will have 58030.
		t.state.CompareAndSwap(ticketPending, ticketWritten)
		t.releaseBuffer()
		t.wakeWaiter()
	}
	if l.cfg.Observer != nil && !oldest.IsZero() {
		l.cfg.Observer.AuditSynced(l.cfg.Clock().Sub(oldest))
	}
	return false, nil
}

// holdGroup refuses the statements that wait for a group that the sink still holds. The sink will write the records,
// and their outcomes will say that the statements were refused. The caller holds mu.
func (l *Log) holdGroup(batch []*Ticket, err error) {
	for _, t := range batch {
		switch {
		case t.isDropped:
		case !t.hasWaiter:
			l.heldGroup = append(l.heldGroup, t)
		default:
			l.countFailure(1)
			t.resolve(l.refusal(err))
		}
	}
}

// failGroup refuses the statements that wait for a group that failed. It queues again the records that nobody waits
// for. The caller holds mu.
func (l *Log) failGroup(batch []*Ticket, err error) {
	if lastFailure := l.failure; lastFailure == nil || isTransient(lastFailure) && !isTransient(err) {
		l.cfg.Log.Error("audit: records cannot be written; statements of agents are refused until they can", "error", err)
	}
	l.failure = err
	remaining := make([]*Ticket, 0, len(batch)+len(l.queue))
	for _, tickets := range [][]*Ticket{batch, l.queue} {
		for _, t := range tickets {
			switch {
			case t.isDropped:
			case !t.hasWaiter:
				remaining = append(remaining, t)
			default:
				l.lostRecords++
				l.countFailure(1)
				t.isDropped = true
				t.resolve(l.refusal(err))
			}
		}
	}
	l.queue = remaining
}
