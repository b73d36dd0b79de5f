package enforce

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/seal"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/run/metrics"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
)

// session decides for one agent's connection.
type session struct {
	e          *Enforcer
	db         *database
	info       SessionInfo
	agent      Agent // as it was when the session began
	attributes map[string]string
	expiry     *time.Timer // of the token it began with; nil: none
	revoked    atomic.Pointer[sqlstate.Error]
	limited    atomic.Pointer[sessionLimits]

	since            time.Time
	last             atomic.Int64 // nanoseconds since 1970
	executed, denied atomic.Uint64

	// What records say of the session: references by the values that they stand for, and of the credential's attributes
	// what this policy has records say.
	references map[string]string
	says0      spoken
	saidBy     *policy.Policy

	reminder reminder

	// What the last seal was made with: the database verifies a signature with the seal's key and profile.
	sealedBy seal.Key
	profile  string
}

var _ verdict.Decider = (*session)(nil)

// judgement is what enforcement keeps of a verdict.
type judgement struct {
	rights uint64 // of the state
	part   int    // 1 for the first statement of the text, if it is about the query that this one prepares
	plain  bool   // it was judged without signing

	mayDeclare func(types []uint32) bool // of a text that counts on something in its parameters
	mayCast    func(snap *catalog.Snapshot, parameter uint32) *sqlstate.Error
	declared   bool // it is planned with care since types were declared for its parameters
	careful    bool // it is where they are

	acts       bool               // it may do more than show rows
	keys       []int              // of each statement of the text, how many keys it fetches by
	quotas     [][]*policy.Quota  // of each, the contracts' for rows, with the session's attributes
	statements []policy.Statement // what the policy judges with the session's attributes
	keyed      []string           // tables that it reads, the keys of whose rows are recorded
	single     bool               // it reads one of these, row by row, and nothing else
	live       map[string]string  // those that the record has
	observed   *wouldBe           // what the policy would have done, where tables are observed only

	record audit.Decision // of the statement; the session's members are filled in for each execution
}

// Seal makes a fresh seal by the database's clock.
func (s *session) Seal(ctx context.Context, b verdict.Backend) (verdict.Seal, error) {
	s.db.settle(ctx)
	v, err := s.standing()
	if err != nil {
		s.e.cfg.Metrics.SealRenewed(false)
		return verdict.Seal{}, err
	}
	var nonce [4]byte
	_, _ = rand.Read(nonce[:]) // never fails
	now := time.Now()
	s.sealedBy, s.profile = v.state.key, v.state.profile
	value := s.sealedBy.Seal(seal.Claims{
		Nonce:      binary.BigEndian.Uint32(nonce[:]),
		PID:        b.PID,
		Expires:    now.Add(v.offset + seal.TTL),
		Profile:    s.profile,
		Attributes: s.attributes,
		Catalog:    strconv.FormatInt(v.catalog, 10),
	})
	s.e.cfg.Metrics.SealRenewed(true)
	var late atomic.Bool // a look at the database's clock is due
	return verdict.Seal{Setting: seal.Setting, Value: value, Renew: now.Add(seal.TTL / 2),
		Expires: now.Add(seal.TTL * 11 / 12),
		Rights:  v.state.rights, Stale: func() bool { return late.Load() || s.db.moved(v.catalog, v.offset) },
		Late: func() {
			late.Store(true)
			s.db.notice()
		}}, nil
}

// standing returns what is known of the database, or why this session may do nothing.
func (s *session) standing() (*view, *sqlstate.Error) {
	if err := s.revoked.Load(); err != nil {
		return nil, err
	}
	return s.db.current()
}

// Decide judges a text by the state in force.
func (s *session) Decide(ctx context.Context, text string, p verdict.Protocol) *verdict.Verdict {
	s.db.settle(ctx)
	v, refused := s.standing()
	if refused != nil {
		return refusal(text, p, verdict.Versions{}, refused)
	}
	return s.admit(ctx, v.state, s.shared(v.state, text, p), p)
}

// shared is the verdict that sessions of equal rights share.
func (s *session) shared(st *state, text string, p verdict.Protocol) *verdict.Verdict {
	// A seal of another profile or key than the state's (both changed a moment ago) does not vouch for a signature made
	// now: until it is renewed the row policies hold alone.
	return s.decide(st, text, p, s.profile == st.profile && sameKey(s.sealedBy, st.key))
}

// decide judges a text, or finds it judged. Without signing the row policies hold alone.
func (s *session) decide(st *state, text string, p verdict.Protocol, signing bool) *verdict.Verdict {
	key := cacheKey{text: text, protocol: p, epoch: st.epoch, signing: signing, lists: s.info.Lists}
	if found, ok := s.e.cache.get(key); ok {
		s.e.cfg.Metrics.CacheHit()
		return found
	}
	began := time.Now()
	judged := s.judge(st, text, p, signing)
	s.e.cache.put(key, judged)
	s.e.cfg.Metrics.CacheMiss(time.Since(began))
	s.e.cfg.Metrics.CacheSize(s.e.cache.size())
	return judged
}

// Declare holds the types that a Parse declares for its parameters to what their names in a text are held to. A text of
// the signed path takes the other one where it was leak-safe for other types.
func (s *session) Declare(ctx context.Context, v *verdict.Verdict, types []uint32) *verdict.Verdict {
	now, refused := s.standing()
	if refused != nil {
		return refusal(v.Original, verdict.Extended, v.Versions, refused)
	}
	j, ok := v.Detail.(*judgement)
	declared, odd, brings := false, false, false
	for _, oid := range types {
		if oid == 0 {
			continue
		}
		declared, odd, brings = true, odd || !rewrite.PlainParameter(oid), brings || now.state.snapshot.TypeRunsUserCode(oid)
		err := rewrite.CheckType(now.state.snapshot, oid)
		if err == nil && ok && j.mayCast != nil {
			err = j.mayCast(now.state.snapshot, oid)
		}
		if err != nil {
			return refusal(v.Original, verdict.Extended, v.Versions, err)
		}
	}
	// What the signed path counts on in parameters, or the search of a text that takes the other; and functions of others
	// see no text that is signed.
	if ok && v.Allowed() && (j.mayDeclare != nil && !j.mayDeclare(types) || brings && j.record.Signed) {
		plain := *s.admit(ctx, now.state, s.decide(now.state, v.Original, verdict.Extended, false), verdict.Extended)
		plain.ExpectsForms = v.ExpectsForms // as where it is the size of tables that keeps it from the door
		v = &plain
		j, ok = v.Detail.(*judgement)
	}
	if ok && v.Allowed() && (declared && j.careful || odd && v.Path != verdict.PathSigned) {
		return carefully(v)
	}
	return v
}

// ByRowSecurity judges the text of v again as one of the other door.
func (s *session) ByRowSecurity(ctx context.Context, v *verdict.Verdict, types []uint32) *verdict.Verdict {
	now, refused := s.standing()
	if refused != nil {
		return refusal(v.Original, verdict.Extended, v.Versions, refused)
	}
	plain := s.admit(ctx, now.state, s.decide(now.state, v.Original, verdict.Extended, false), verdict.Extended)
	if !plain.Allowed() || len(types) == 0 {
		return plain
	}
	return s.Declare(ctx, plain, types)
}

// carefully is a verdict on a statement whose parameters may have to be converted, since types are declared for them.
func carefully(v *verdict.Verdict) *verdict.Verdict {
	out, j := *v, *v.Detail.(*judgement)
	j.declared = true
	out.Detail, out.Effects = &j, slices.Clone(v.Effects)
	for i := range out.Effects {
		if out.Effects[i].HardenedPlan == verdict.NotHardened {
			out.Effects[i].HardenedPlan = verdict.HardenedAtBind
		}
	}
	return &out
}

// judge rewrites a text. A defect that panics is a refusal.
func (s *session) judge(st *state, text string, p verdict.Protocol, signing bool) (judged *verdict.Verdict) {
	defer func() {
		if r := recover(); r != nil {
			s.e.cfg.Log.Error("defect while judging a statement; it was refused", "panic", fmt.Sprintf("%T", r),
				"stack", string(debug.Stack()))
			judged = refusal(text, p, st.versions, sqlstate.From(fmt.Errorf("panic of type %T", r)))
		}
	}()
	rewriter := st.plain
	if signing {
		rewriter = st.signing
	}
	if s.info.Lists {
		rewriter = rewriter.ListsOnly()
	}
	res, err := rewriter.Rewrite(text, p == verdict.Extended)
	switch {
	case err == nil && res == nil:
		err = sqlstate.From(fmt.Errorf("the rewriter said nothing"))
	case err == nil && res.NeedsSignature && !signing:
		err = sqlstate.From(fmt.Errorf("a text without gate views asks for a signature"))
	}
	if err == nil {
		err = st.suspended.in(st.policy, res)
	}
	if err != nil {
		judged = refusal(text, p, st.versions, err)
		j := judged.Detail.(*judgement)
		j.rights = st.rights
		if res != nil {
			describe(j, res)
		}
		return judged
	}
	j := &judgement{rights: st.rights, plain: !signing, mayDeclare: res.MayDeclare, mayCast: res.MayCast,
		careful: res.HardenedIfDeclared, record: audit.Decision{
			Protocol: protocolName(p), Verdict: metrics.Allow, Door: string(res.Path),
			Policy: st.versions.Policy, Catalog: st.versions.Catalog, Signed: res.NeedsSignature,
		}}
	describe(j, res)
	j.keys = res.Keys
	j.acts = acts(st.snapshot, res)
	j.keyed, j.single = st.keyed(res.Statements)
	j.observed = st.observe(text, p, res)
	judged = &verdict.Verdict{
		Original: text, Text: res.Text, Path: res.Path, Versions: st.versions, Rights: st.rights,
		Effects: res.Effects, Forms: res.Forms, ExpectsForms: res.ExpectsForms, Position: res.Position, Renamed: res.Renamed,
		Detail: j, RecordsKeys: len(j.keyed) > 0,
		UntrackedRelation: st.unnoticed.in(res), OneStatementPerMessage: st.clocked.apart(res),
		MultiWriteCTE: res.MultiWriteCTE, HardenBeforeParse: res.HardenBeforeParse,
		Unguarded: unguarded(st.policy, res),
	}
	judged.ForeignReads = st.foreign.count(res)
	if len(res.Effects) > 1 {
		judged.Parts = sync.OnceValue(func() []verdict.Part { return parts(res.Text) })
	}
	if res.NeedsSignature {
		judged.Text = st.key.Sign(st.profile, res.Text)
		if p == verdict.Simple {
			judged.HardenedText = st.key.Sign(st.profile, verdict.WithHardenedPlan(res.Text))
		}
		judged.Position = func(at int) int {
			if at <= seal.SignatureLen {
				return 0
			}
			return res.Position(at - seal.SignatureLen)
		}
	}
	bodies(judged)
	return judged
}

// bodies completes the verdicts on queries that the text prepares.
func bodies(v *verdict.Verdict) {
	whole := v.Detail.(*judgement)
	for i, e := range v.Effects {
		if e.Body == nil {
			continue
		}
		body, j := *v, *whole
		body.Effects, body.Parts = e.Body.Effects, nil
		body.OneStatementPerMessage, body.ForeignReads = false, e.Body.ForeignReads
		j.part, j.record.Tag, j.record.Signed = i+1, e.Tag, false
		body.Detail = &j
		v.Effects[i].Body = &body
	}
}

// refusal is a verdict that refuses.
func refusal(text string, p verdict.Protocol, versions verdict.Versions, err *sqlstate.Error) *verdict.Verdict {
	return &verdict.Verdict{
		Original: text, Refusal: err, Path: verdict.PathRowSecurity, Versions: versions,
		Position: func(int) int { return 0 },
		Detail: &judgement{record: audit.Decision{
			Protocol: protocolName(p), Tag: "unknown", Verdict: metrics.Deny, SQLState: string(err.Code), Reason: string(err.Reason),
			Policy: versions.Policy, Catalog: versions.Catalog,
		}},
	}
}

// describe takes over what the rewriter found in a statement.
func describe(j *judgement, res *rewrite.Result) {
	j.statements = res.Statements
	r := &j.record
	r.Tag, r.Fingerprint, r.Functions = res.Tag, res.Fingerprint, res.Functions
	for _, a := range res.Accesses {
		r.Tables = append(r.Tables, audit.Table{Name: a.Relation.String(), Columns: a.Columns, Source: a.Source,
			ByKey: a.ByKey, Written: a.Written})
	}
}

func protocolName(p verdict.Protocol) string {
	if p == verdict.Simple {
		return "simple"
	}
	return "extended"
}

// Recheck judges again what was judged under a state that is no longer in force.
func (s *session) Recheck(ctx context.Context, v *verdict.Verdict) *verdict.Verdict {
	s.db.settle(ctx)
	now, refused := s.standing()
	j, ok := v.Detail.(*judgement)
	p := verdict.Extended
	if ok && j.record.Protocol == protocolName(verdict.Simple) {
		p = verdict.Simple
	}
	switch {
	case refused != nil:
		return refusal(v.Original, p, v.Versions, refused)
	case ok && j.rights == now.state.rights && v.Allowed():
		return s.admit(ctx, now.state, v, p)
	case ok && j.rights == now.state.rights:
		return v
	}
	again := s.shared(now.state, v.Original, p)
	if ok && j.plain {
		again = s.decide(now.state, v.Original, p, false)
	}
	if ok && j.part > 0 && again.Allowed() {
		if j.part <= len(again.Effects) && again.Effects[j.part-1].Body != nil {
			again = again.Effects[j.part-1].Body
		} else {
			again = refusal(v.Original, p, again.Versions,
				sqlstate.From(fmt.Errorf("a text prepares another number of queries than before")))
		}
	}
	if again.Allowed() && ok && j.declared {
		again = carefully(again)
	}
	if again.Allowed() && v.Allowed() && again.Text == v.Text {
		return s.admit(ctx, now.state, again, p)
	}
	if !again.Allowed() && again.Refusal.Code == sqlstate.ObjectNotInPrerequisiteState {
		return again // it is the same statement when the table is served again
	}
	stale := refusal(v.Original, p, again.Versions,
		sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonStale, "cached plan must not change result type").
			WithHint("The policy or the schema changed since the statement was prepared: prepare it again."))
	if ok {
		r := &stale.Detail.(*judgement).record
		r.Tag, r.Fingerprint, r.Tables, r.Functions = j.record.Tag, j.record.Fingerprint, j.record.Tables, j.record.Functions
	}
	return stale
}

// Record writes the decision of one execution.
func (s *session) Record(v *verdict.Verdict, runs ...*verdict.Verdict) verdict.Ticket {
	var r audit.Decision
	if j, ok := v.Detail.(*judgement); ok {
		r = j.record
	} else {
		r = audit.Decision{Tag: "unknown", Verdict: metrics.Deny}
	}
	var live map[string]string
	if j, ok := v.Detail.(*judgement); ok {
		live = j.live
	}
	says := s.says(live)
	known := v.Detail != nil || !v.Allowed()
	for _, run := range runs {
		j, ok := run.Detail.(*judgement)
		if !ok {
			known = false
			continue
		}
		// Copied, since verdicts are shared.
		r.Tables = append(slices.Clone(r.Tables), j.record.Tables...)
		r.Functions = append(slices.Clone(r.Functions), j.record.Functions...)
		for _, c := range j.record.Contracts {
			if !slices.Contains(r.Contracts, c) {
				r.Contracts = append(slices.Clip(r.Contracts), c)
			}
		}
	}
	r.Session, r.Agent, r.AccessedBy, r.Database, r.Epoch = s.info.ID, s.agent.Name, s.agent.Name, s.db.cfg.Name,
		s.db.epoch.Load()
	r.Attributes, r.OnBehalfOf, r.Purpose = says.attributes, says.onBehalfOf, says.purpose
	t := &ticket{s: s, known: known, returns: returns(v, runs), acts: actsAny(v, runs), keys: s.keysOf(v, runs)}
	if now, refused := s.standing(); refused == nil {
		t.limits = s.limits(now.state.policy)
		if r.Verdict != metrics.Allow {
			s.attempted(t.limits)
		} else if t.rows, t.refused = s.charge(t.limits, demanded(v, runs)); t.refused != nil {
			r.Verdict, r.SQLState, r.Reason = metrics.Deny, string(t.refused.Code), string(t.refused.Reason)
		}
	}
	t.offered = t.rows
	if asked := quotasOf(v, runs); len(asked) > 0 && r.Verdict == metrics.Allow {
		var over *policy.Quota
		if t.reserved, over, t.refused = s.reserve(v, asked); t.refused != nil {
			r.Verdict, r.SQLState, r.Reason = metrics.Deny, string(t.refused.Code), string(t.refused.Reason)
			r.Contracts = denies(r.Contracts, over)
		}
	}
	s.e.cfg.Metrics.Statement(r.Verdict, r.Reason, r.Tag)
	s.saw(r, r.Verdict == metrics.Allow)
	t.record = s.e.cfg.Audit.Decision(r)
	t.observes(v)
	for _, run := range runs {
		t.observes(run)
	}
	return t
}

// observes notes what the policy would have done to what is run.
func (t *ticket) observes(v *verdict.Verdict) {
	j, ok := v.Detail.(*judgement)
	if !ok || j.observed == nil {
		return
	}
	t.observed = j.observed
	if now, refused := t.s.standing(); refused == nil && j.observed.pair != nil {
		t.claims = t.s.claimed(now.state.policy)
	}
}

// ticket is the receipt of one execution's record.
type ticket struct {
	s      *session
	record *audit.Ticket
	known  bool      // the verdict is one of ours
	keys   *returned // nil: nothing is recorded of its rows

	returns bool // it may send rows
	acts    bool // it may do more

	limits        []applied
	refused       *sqlstate.Error // by a limit, or a quota
	rows, offered int64           // taken of the rates; of these, not asked for yet
	short         *applied        // the rate that had no more
	wait          time.Duration   // until it may
	reserved      []*reservation
	settled       sync.Once

	observed *wouldBe
	claims   map[string]string // that it runs with, by settings, where it may be compared
}

func (t *ticket) Release() *sqlstate.Error {
	if err := t.record.Release(); err != nil {
		return err
	}
	if err := t.s.revoked.Load(); err != nil {
		return err
	}
	if !t.known {
		return sqlstate.From(fmt.Errorf("a verdict that enforcement did not make"))
	}
	return t.refused
}

// Bound is how much of the result may be relayed.
func (t *ticket) Bound() verdict.Bound {
	b := verdict.Bound{}
	if len(t.limits) > 0 && t.returns {
		b = t.bound()
	}
	b = bounded(b, t.reserved)
	b.Undoes = t.acts
	return b
}

// Returned gives back what was reserved and not returned.
func (t *ticket) Returned(rows int64) {
	t.settled.Do(func() {
		settle(t.reserved, rows)
		if len(t.limits) == 0 {
			return
		}
		giveRows(t.limits, t.rows, max(0, t.rows-rows), t.s.e.limiters.now())
	})
}

func (t *ticket) Done(o verdict.Outcome) {
	t.Returned(o.Rows)
	t.s.observed(t.observed, t.claims, o)
	t.record.Done(audit.Outcome{Rows: o.Rows, Bytes: o.Bytes, SQLState: string(o.Code), Keys: t.keys.recorded(o.Rows)})
}

// revoke ends the session: what it has not been answered yet is refused.
func (s *session) revoke(err *sqlstate.Error) {
	if !s.revoked.CompareAndSwap(nil, err) {
		return
	}
	s.e.cfg.Metrics.Revoked()
	s.e.cfg.Log.Info("session ended", "session", s.info.ID, "agent", s.agent.Name, "reason", err.Message)
	s.e.cfg.Audit.Session(audit.Session{
		Session: s.info.ID, Agent: s.agent.Name, Database: s.db.cfg.Name, Remote: s.info.RemoteAddr,
		Event: "revoked", SQLState: string(err.Code), Reason: string(err.Reason),
	})
	if s.info.OnRevoke != nil {
		s.info.OnRevoke(err)
	}
}

// TransactionTimeout implements [verdict.Timekeeper]: it is that of the policy in force.
func (s *session) TransactionTimeout() time.Duration {
	if v := s.db.view.Load(); v != nil && v.state != nil {
		return v.state.policy.TransactionTimeout()
	}
	return 0
}

// Overdue implements [verdict.Timekeeper].
func (s *session) Overdue() {
	s.e.cfg.Metrics.Limited("transaction_timeout")
	s.revoke(sqlstate.New(sqlstate.TransactionTimeout, sqlstate.ReasonLimit, "the transaction has lasted too long").
		WithHint("The policy says how long a transaction may last. What it had not committed is rolled back; a " +
			"COMMIT that was under way may have taken effect. Connect again, commit between steps, and end " +
			"transactions before waiting for somebody."))
}

// Close ends the session for enforcement.
func (s *session) Close() {
	if s.expiry != nil {
		s.expiry.Stop()
	}
	s.e.mu.Lock()
	delete(s.e.sessions, s)
	s.e.mu.Unlock()
	s.e.cfg.Audit.Session(audit.Session{
		Session: s.info.ID, Agent: s.agent.Name, Database: s.db.cfg.Name, Remote: s.info.RemoteAddr, Event: "close",
	})
}
