package enforce

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
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

// session makes the decisions for one connection of an agent.
type session struct {
	enforcer     *Enforcer
	db           *database
	info         SessionInfo
	agent        Agent // the agent as it was configured when the session began
	attributes   map[string]string
	expiry       *time.Timer // ends the session when its token or certificate expires; nil: it never does
	revocation   atomic.Pointer[sqlstate.Error]
	cachedLimits atomic.Pointer[policyLimits]

	openedAt                   time.Time
	lastExecution              atomic.Int64 // when the last execution began, in nanoseconds since 1970
	executedCount, deniedCount atomic.Uint64

	// The following fields are for audit records of the session. references has the reference for each value that it
	// replaces. auditAttributes is made from the credential's attributes under auditAttributesPolicy.
	references            map[string]string
	auditAttributes       auditAttributes
	auditAttributesPolicy *policy.Policy

	reminder        reminder
	representedUser representedUserState

	// The following fields are the key and the profile of the session's last seal. The database verifies signatures with
	// them.
	sealKey seal.Key
	profile string
}

var (
	_ verdict.Decider       = (*session)(nil)
	_ verdict.ChannelFilter = (*session)(nil)
	_ verdict.SealSharer    = (*session)(nil)
)

// judgement has what package enforce itself stores about a verdict, in Verdict.EnforcerDetail.
type judgement struct {
	rightsEpoch    uint64 // rightsEpoch of the state that the verdict was made under
	preparedBy     int    // number, from 1, of the PREPARE or DECLARE with this query; 0: it is the whole text
	withoutSigning bool   // the text was decided without the signed path

	// acceptsParameterTypes reports whether the text stays correct with the types that a Parse declares for its
	// parameters; nil: the text sets no condition on them.
	acceptsParameterTypes func(types []uint32) bool
	parameterTypeRefusal  func(snap *catalog.Snapshot, parameter uint32) *sqlstate.Error
	// checkValues checks the values that a Bind gives to parameters; nil: the verdict needs no such check, see
	// NeedsValueCheck.
	checkValues        func(values [][]byte, isOwnRole func(name string) bool) *sqlstate.Error
	hardenedByDeclare  bool // the text has a hardened plan because a Parse declared types for its parameters
	hardenedIfDeclared bool // the text needs a hardened plan if a Parse declares types for its parameters

	hasSideEffects bool  // the statement may do more than show rows
	keyCounts      []int // for each statement of the text: the number of keys by which it fetches rows
	// quotas has, for each statement, the quotas that contracts set for it with the session's attributes.
	quotas            [][]*policy.Quota
	statements        []policy.Statement // statements on which contracts decide with the session's attributes
	keyRecordedTables []string           // tables of the text for which the keys of returned rows are recorded
	singleTable       bool               // the statement reads one such table row by row, and no other table
	liveAttributes    map[string]string  // the live attributes for the audit record
	// userAttributes are the attributes of the user for whom the session acts when the text runs; nil: nobody.
	userAttributes           map[string]string
	representedUserParameter rewrite.RepresentedUserParameter
	sessionOnly              bool                      // the verdict is for one session only
	bindable                 []rewrite.BindableLiteral // the literals that parameters may replace
	// observedDecision is what the policy would have done to the text if it enforced the tables that it only observes.
	observedDecision *observedDecision

	record audit.Decision // audit record of the statement; Record sets the fields about the session
}

// Seal makes a new seal, whose expiry is by the database's clock.
func (s *session) Seal(ctx context.Context, b verdict.Backend) (verdict.Seal, error) {
	s.db.waitForProbe(ctx)
	v, err := s.currentServingState()
	if err != nil {
		s.enforcer.cfg.Metrics.SealRenewed(false)
		return verdict.Seal{}, err
	}
	var nonce [4]byte
	_, _ = rand.Read(nonce[:]) // rand.Read never returns an error.
	now := time.Now()
	s.sealKey, s.profile = v.state.sealKey, v.state.profile
	identity := &sealedIdentity{key: s.sealKey, profile: s.profile, attributes: s.attributes,
		representsUsers: s.representedUser.sessionID != ""}
	value := s.sealKey.Seal(seal.Claims{
		Nonce:               binary.BigEndian.Uint32(nonce[:]),
		PID:                 b.PID,
		Expires:             now.Add(v.clockOffset + seal.SealLifetime),
		Profile:             s.profile,
		Attributes:          s.attributes,
		RepresentingSession: s.representedUser.sessionID,
		OwnProcess:          true,
		Catalog:             strconv.FormatInt(v.catalogVersion, 10),
	})
	s.enforcer.cfg.Metrics.SealRenewed(true)
	var late atomic.Bool // whether the database found the seal expired: then its clock is read again
	return verdict.Seal{Setting: seal.Setting, Value: value, RepresentedUser: s.newlySignedUserValue(),
		RenewAfter:  now.Add(seal.SealLifetime / 2),
		Expires:     now.Add(seal.SealLifetime * 11 / 12),
		RightsEpoch: v.state.rightsEpoch, IsStale: func() bool {
			return late.Load() || s.db.catalogOrClockMoved(v.catalogVersion, v.clockOffset)
		},
		ReportExpired: func() {
			late.Store(true)
			s.db.requestProbe()
		}, Identity: identity}, nil
}

// sealedIdentity says which attributes and profile a seal has and with which key it was made.
type sealedIdentity struct {
	key             seal.Key
	profile         string
	attributes      map[string]string
	representsUsers bool // the signed attributes name this session, since it may act for other users
}

// CanShareSeal implements [verdict.SealSharer]. Sessions with equal attributes on one server process can share a seal
// if its key and profile are still active. A session that may act for others shares no seal, since a seal names that
// session.
func (s *session) CanShareSeal(x verdict.Seal) bool {
	identity, ok := x.Identity.(*sealedIdentity)
	v, refused := s.currentServingState()
	if !ok || refused != nil || !sameKey(identity.key, v.state.sealKey) || identity.profile != v.state.profile ||
		!maps.Equal(identity.attributes, s.attributes) || identity.representsUsers || s.representedUser.sessionID != "" {
		return false
	}
	s.sealKey, s.profile = identity.key, identity.profile
	return true
}

// currentServingState returns the serving state of the database, or the refusal of everything that this session sends.
func (s *session) currentServingState() (*servingState, *sqlstate.Error) {
	if err := s.revocation.Load(); err != nil {
		return nil, err
	}
	return s.db.current()
}

// Decide returns the verdict on an SQL text, by the policy and the catalogs as the database's state has them now.
func (s *session) Decide(ctx context.Context, text string, p verdict.Protocol) *verdict.Verdict {
	s.db.waitForProbe(ctx)
	v, refused := s.currentServingState()
	if refused != nil {
		return refusalVerdict(text, p, verdict.Versions{}, refused)
	}
	if p != verdict.Bindable {
		return s.decideForSession(ctx, v.state, s.sharedVerdict(v.state, text, p), p)
	}
	return s.decideForSession(ctx, v.state, s.boundVerdict(v.state, text), verdict.Simple)
}

// sharedVerdict returns the verdict that sessions of equal rights share.
func (s *session) sharedVerdict(st *state, text string, p verdict.Protocol) *verdict.Verdict {
	// The database verifies a signature with the key and profile of the seal. If the state has others, because they have
	// just changed, statements take the row security path until the seal is renewed.
	return s.decide(st, text, p, s.canSign(st))
}

// canSign reports whether the database would accept signatures that are made with the state's key, in this session.
func (s *session) canSign(st *state) bool {
	return s.profile == st.profile && sameKey(s.sealKey, st.sealKey)
}

// decide decides on a text, or takes the verdict from the cache. If signing is false, the text takes the row security
// path.
func (s *session) decide(st *state, text string, protocol verdict.Protocol, signing bool) *verdict.Verdict {
	v, _ := s.decideOnce(st, text, protocol, signing)
	return v
}

// decideOnce is decide for callers that also need to know whether the verdict is a new one, which the cache did not
// have.
func (s *session) decideOnce(st *state, text string, protocol verdict.Protocol, signing bool) (v *verdict.Verdict, isNew bool) {
	key := cacheKey{text: text, protocol: protocol, epoch: st.epoch, canSign: signing,
		hidesKeyOnlyColumns: s.info.HidesKeyOnlyColumns}
	if s.mayNameUser(text) {
		key.userSetting = s.agent.ActsFor.Setting
	}
	if found, ok := s.enforcer.verdictCache.get(key); ok {
		s.enforcer.cfg.Metrics.CacheHit()
		return found, false
	}
	startedAt := time.Now()
	judged := s.rewriteText(st, text, protocol, signing)
	if !judged.EnforcerDetail.(*judgement).sessionOnly {
		s.enforcer.verdictCache.put(key, judged)
	}
	s.enforcer.cfg.Metrics.CacheMiss(time.Since(startedAt))
	s.enforcer.cfg.Metrics.CacheSize(s.enforcer.verdictCache.size())
	return judged, true
}

// DeclareParameters checks the types that a Parse declares for its parameters, by the rules for type names in a text. A
// text of the signed path takes the row security path instead if it is not leak-safe with these types.
func (s *session) DeclareParameters(ctx context.Context, v *verdict.Verdict, types []uint32) *verdict.Verdict {
	now, refused := s.currentServingState()
	if refused != nil {
		return refusalVerdict(v.Original, verdict.Extended, v.Versions, refused)
	}
	j, ok := v.EnforcerDetail.(*judgement)
	declared, odd, brings := false, false, false
	for _, oid := range types {
		if oid == 0 {
			continue
		}
		declared, odd, brings = true, odd || !rewrite.IsPlainParameterType(oid), brings ||
			now.state.snapshot.TypeRunsUserCode(oid)
		err := rewrite.CheckType(now.state.snapshot, oid)
		if err == nil && ok && j.parameterTypeRefusal != nil {
			err = j.parameterTypeRefusal(now.state.snapshot, oid)
		}
		if err != nil {
			return refusalVerdict(v.Original, verdict.Extended, v.Versions, err)
		}
	}
	// The text is decided again without the signed path in two cases. The declared types may differ from those that the
	// signed path, or an index search on the other path, needs. Or a type has functions of other roles, which must not see
	// a signed text.
	if ok && v.IsAllowed() && (j.acceptsParameterTypes != nil && !j.acceptsParameterTypes(types) || brings &&
		j.record.Signed) {
		plain := *s.decideForSession(ctx, now.state, s.decide(now.state, v.Original, verdict.Extended, false),
			verdict.Extended)
		// ExpectsForms stays as it was, as if only the sizes of tables had decided against the signed path.
		plain.ExpectsForms = v.ExpectsForms
		v = &plain
		j, ok = v.EnforcerDetail.(*judgement)
	}
	if ok && v.IsAllowed() && (declared && j.hardenedIfDeclared || odd && v.Path != verdict.PathSigned) {
		return withHardenedPlan(v)
	}
	return v
}

// UseRowSecurity decides again on the text of v, for the row security path.
func (s *session) UseRowSecurity(ctx context.Context, v *verdict.Verdict, types []uint32) *verdict.Verdict {
	now, refused := s.currentServingState()
	if refused != nil {
		return refusalVerdict(v.Original, verdict.Extended, v.Versions, refused)
	}
	plain := s.decideForSession(ctx, now.state, s.decide(now.state, v.Original, verdict.Extended, false), verdict.Extended)
	if !plain.IsAllowed() || len(types) == 0 {
		return plain
	}
	return s.DeclareParameters(ctx, plain, types)
}

// CheckValues checks the values that a Bind gives to the parameters of v.
func (s *session) CheckValues(v *verdict.Verdict, values [][]byte) *verdict.Verdict {
	j, ok := v.EnforcerDetail.(*judgement)
	if !ok || j.checkValues == nil && j.representedUserParameter.Number == 0 {
		return refusalVerdict(v.Original, verdict.Extended, v.Versions,
			sqlstate.AsError(errors.New("nothing checks the values of parameters")))
	}
	original, versions, err := v.Original, v.Versions, (*sqlstate.Error)(nil)
	if j.checkValues != nil {
		err = j.checkValues(values, s.isOwnRole)
	}
	if err == nil && j.representedUserParameter.Number != 0 {
		v, err = s.bindRepresentedUser(v, j, values)
	}
	if err == nil {
		return v
	}
	refused := refusalVerdict(original, verdict.Extended, versions, err)
	r := &refused.EnforcerDetail.(*judgement).record
	r.Tag, r.Fingerprint, r.Functions = j.record.Tag, j.record.Fingerprint, j.record.Functions
	return refused
}

// isOwnRole reports whether a name is the agent's, or that of the role as which its sessions run in the database.
func (s *session) isOwnRole(name string) bool {
	return name == s.agent.Name || name == s.db.cfg.AgentRole
}

// AllowsChannel reports whether the active policy lists a channel.
func (s *session) AllowsChannel(channel string) bool {
	v, refused := s.currentServingState()
	return refused == nil && v.state.policy.HasChannel(channel)
}

// withHardenedPlan returns v with hardened plans for its statements. They need them because the server may have to
// convert parameters with declared types, and a conversion may raise an error.
func withHardenedPlan(v *verdict.Verdict) *verdict.Verdict {
	out, j := *v, *v.EnforcerDetail.(*judgement)
	j.hardenedByDeclare = true
	out.EnforcerDetail, out.Effects = &j, slices.Clone(v.Effects)
	for i := range out.Effects {
		if out.Effects[i].HardenedPlan == verdict.NotHardened {
			out.Effects[i].HardenedPlan = verdict.HardenedAtBind
		}
	}
	return &out
}

// rewriteText decides and rewrites a text. A panic in the rewriter becomes a refusal.
func (s *session) rewriteText(st *state, text string, protocol verdict.Protocol,
	signing bool) (decided *verdict.Verdict) {
	defer func() {
		if r := recover(); r != nil {
			s.enforcer.cfg.Log.Error("defect while judging a statement; it was refused", "panic", fmt.Sprintf("%T", r),
				"stack", string(debug.Stack()))
			decided = refusalVerdict(text, protocol, st.versions, sqlstate.AsError(fmt.Errorf("panic of type %T", r)))
		}
	}()
	rewriter := st.unsignedRewriter
	if signing {
		rewriter = st.activeRewriter
	}
	if s.info.HidesKeyOnlyColumns {
		rewriter = rewriter.ListsOnly()
	}
	ofSession := false
	rewriter = rewriter.WithOwnRole(func(name string) bool {
		ofSession = true
		return s.isOwnRole(name)
	})
	if s.mayNameUser(text) {
		rewriter = s.userRewriter(st, rewriter, &ofSession)
	}
	res, err := rewriter.Rewrite(text, protocol != verdict.Simple)
	switch {
	case err == nil && res == nil:
		err = sqlstate.AsError(fmt.Errorf("the rewriter said nothing"))
	case err == nil && res.NeedsSignature && !signing:
		err = sqlstate.AsError(fmt.Errorf("a text without signed views asks for a signature"))
	}
	if err == nil {
		err = st.suspension.refusal(st.policy, res)
	}
	if err != nil {
		decided = refusalVerdict(text, protocol, st.versions, err)
		j := decided.EnforcerDetail.(*judgement)
		j.rightsEpoch, j.sessionOnly = st.rightsEpoch, ofSession
		if res != nil {
			copyResult(j, res)
		}
		return decided
	}
	j := &judgement{rightsEpoch: st.rightsEpoch, withoutSigning: !signing, acceptsParameterTypes: res.MayDeclare,
		parameterTypeRefusal: res.ParameterTypeRefusal, checkValues: res.CheckValues,
		representedUserParameter: res.RepresentedUserParameter, sessionOnly: ofSession,
		hardenedIfDeclared: res.HardenedIfDeclared, bindable: res.Bindable, record: audit.Decision{
			Protocol: protocolName(protocol), Verdict: metrics.VerdictAllow, Path: string(res.Path),
			Policy: st.versions.Policy, Catalog: st.versions.Catalog, Signed: res.NeedsSignature,
			Encoding: &audit.StatementEncoding{},
		}}
	copyResult(j, res)
	j.keyCounts = res.Keys
	j.hasSideEffects = hasSideEffects(st.snapshot, res)
	j.keyRecordedTables, j.singleTable = st.keyRecordedTables(res.Statements)
	if !ofSession {
		j.observedDecision = st.decideObserved(text, protocol, res)
	}
	decided = &verdict.Verdict{
		Original: text, Text: res.Text, Rewritten: res.Rewritten, Versions: st.versions, RightsEpoch: st.rightsEpoch,
		EnforcerDetail:          j,
		RecordsKeys:             len(j.keyRecordedTables) > 0,
		UntrackedRelation:       st.untrackedRelations.untrackedReadOf(res),
		OneStatementPerMessage:  st.timeDependent.needsSeparateMessages(res),
		CallsUncheckedFunctions: isUnguarded(st.policy, res),
	}
	decided.ForeignReads = st.foreignRelations.countReads(res)
	decided.MayLeaveState, decided.KeepsSessionState = j.hasSideEffects, keepsSessionState(res)
	if len(res.Effects) > 1 {
		decided.Parts = sync.OnceValue(func() []verdict.Part { return splitStatements(res.Text) })
	}
	if res.NeedsSignature {
		decided.Text = st.sealKey.Sign(st.profile, res.Text)
		if protocol == verdict.Simple {
			decided.HardenedText = st.sealKey.Sign(st.profile, verdict.WithHardenedPlan(res.Text))
		}
		decided.Position = func(position int) int {
			if position <= seal.SignatureLen {
				return 0
			}
			return res.Position(position - seal.SignatureLen)
		}
	}
	completePreparedVerdicts(decided)
	return decided
}

// completePreparedVerdicts completes the verdicts on the queries of PREPARE and DECLARE in a text.
func completePreparedVerdicts(v *verdict.Verdict) {
	textDetail := v.EnforcerDetail.(*judgement)
	for i, e := range v.Effects {
		if e.Body == nil {
			continue
		}
		body, j := *v, *textDetail
		body.Effects, body.Parts = e.Body.Effects, nil
		body.OneStatementPerMessage, body.ForeignReads = false, e.Body.ForeignReads
		j.preparedBy, j.record.Tag, j.record.Signed, j.record.Encoding = i+1, e.BodyTag, false, &audit.StatementEncoding{}
		body.EnforcerDetail = &j
		v.Effects[i].Body = &body
	}
}

// refusalVerdict returns a verdict that refuses a text with this error.
func refusalVerdict(text string, p verdict.Protocol, versions verdict.Versions, err *sqlstate.Error) *verdict.Verdict {
	return &verdict.Verdict{
		Original: text, Refusal: err, Versions: versions,
		Rewritten: verdict.Rewritten{Path: verdict.PathRowSecurity, Position: func(int) int { return 0 }},
		EnforcerDetail: &judgement{record: audit.Decision{
			Protocol: protocolName(p), Tag: "unknown", Verdict: metrics.VerdictDeny, SQLState: string(err.Code),
			Reason: string(err.Reason),
			Policy: versions.Policy, Catalog: versions.Catalog,
		}},
	}
}

// copyResult copies what the rewriter has found out about a statement into the judgement.
func copyResult(j *judgement, res *rewrite.Result) {
	j.statements = res.Statements
	r := &j.record
	r.Tag, r.Fingerprint, r.Functions = res.Tag, res.Fingerprint, res.Functions
	for _, a := range res.Accesses {
		r.Tables = append(r.Tables, audit.Table{Name: a.Relation.String(), Columns: a.Columns, DataSource: a.Source,
			ByKey: a.ByKey, IsWritten: a.Written})
	}
}

func protocolName(p verdict.Protocol) string {
	if p == verdict.Extended {
		return "extended"
	}
	return "simple"
}

// Recheck decides again on the text of v if v was made under a state that is no longer active.
func (s *session) Recheck(ctx context.Context, v *verdict.Verdict) *verdict.Verdict {
	s.db.waitForProbe(ctx)
	now, refused := s.currentServingState()
	j, ok := v.EnforcerDetail.(*judgement)
	protocol := verdict.Extended
	if ok && j.record.Protocol == protocolName(verdict.Simple) {
		protocol = verdict.Simple
	}
	switch {
	case refused != nil:
		return refusalVerdict(v.Original, protocol, v.Versions, refused)
	case ok && j.rightsEpoch == now.state.rightsEpoch && v.IsAllowed():
		return s.decideForSession(ctx, now.state, v, protocol)
	case ok && j.rightsEpoch == now.state.rightsEpoch:
		return v
	}
	newVerdict := s.sharedVerdict(now.state, v.Original, protocol)
	if ok && j.withoutSigning {
		newVerdict = s.decide(now.state, v.Original, protocol, false)
	}
	if ok && j.preparedBy > 0 && newVerdict.IsAllowed() {
		if j.preparedBy <= len(newVerdict.Effects) && newVerdict.Effects[j.preparedBy-1].Body != nil {
			newVerdict = newVerdict.Effects[j.preparedBy-1].Body
		} else {
			newVerdict = refusalVerdict(v.Original, protocol, newVerdict.Versions,
				sqlstate.AsError(fmt.Errorf("a text prepares another number of queries than before")))
		}
	}
	if newVerdict.IsAllowed() && ok && j.hardenedByDeclare {
		newVerdict = withHardenedPlan(newVerdict)
	}
	if newVerdict.IsAllowed() && v.IsAllowed() && newVerdict.Text == v.Text {
		if v.Values != nil {
			newVerdict = withBoundValues(newVerdict, v)
		}
		return s.decideForSession(ctx, now.state, newVerdict, protocol)
	}
	if !newVerdict.IsAllowed() && newVerdict.Refusal.Code == sqlstate.ObjectNotInPrerequisiteState {
		return newVerdict // The statement can run unchanged when the table is no longer suspended.
	}
	stale := refusalVerdict(v.Original, protocol, newVerdict.Versions,
		sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonStale, "cached plan must not change result type").
			WithHint("The policy or the schema changed since the statement was prepared: prepare it again."))
	if ok {
		r := &stale.EnforcerDetail.(*judgement).record
		r.Tag, r.Fingerprint, r.Tables, r.Functions = j.record.Tag, j.record.Fingerprint, j.record.Tables, j.record.Functions
	}
	return stale
}

// Record writes the audit record of the decision on one execution, and charges the execution to limits and quotas.
// executed are the verdicts on statements that it runs by name.
func (s *session) Record(v *verdict.Verdict, executed ...*verdict.Verdict) verdict.Ticket {
	var r audit.Decision
	if j, ok := v.EnforcerDetail.(*judgement); ok {
		r = j.record
	} else {
		r = audit.Decision{Tag: "unknown", Verdict: metrics.VerdictDeny}
	}
	var live map[string]string
	if j, ok := v.EnforcerDetail.(*judgement); ok {
		live = j.liveAttributes
	}
	var actor map[string]string
	if j, ok := v.EnforcerDetail.(*judgement); ok && j.userAttributes != nil {
		actor = j.userAttributes
		live = maps.Clone(live)
		if live == nil {
			live = map[string]string{}
		}
		maps.Copy(live, actor)
	}
	identity := s.currentAuditAttributes(live)
	isOurVerdict := v.EnforcerDetail != nil || !v.IsAllowed()
	for _, run := range executed {
		j, ok := run.EnforcerDetail.(*judgement)
		if !ok {
			isOurVerdict = false
			continue
		}
		// The list is copied, since sessions share verdicts.
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
	r.Attributes, r.OnBehalfOf, r.Purpose = identity.attributes, identity.onBehalfOf, identity.purpose
	t := &execution{session: s, hasJudgement: isOurVerdict, mayReturnRows: mayReturnRows(v, executed),
		hasSideEffects: anySideEffects(v, executed),
		keys:           s.newReturnedKeys(v, executed)}
	if now, refused := s.currentServingState(); refused == nil {
		t.limits = s.limits(now.state.policy, actor)
		if r.Verdict != metrics.VerdictAllow {
			s.chargeRefused(t.limits)
		} else if t.reservedRows, t.limitRefusal = s.charge(t.limits, executionCostOf(v, executed)); t.limitRefusal != nil {
			r.Verdict, r.SQLState, r.Reason = metrics.VerdictDeny, string(t.limitRefusal.Code), string(t.limitRefusal.Reason)
		}
	}
	t.unusedRows = t.reservedRows
	if asked := quotasOf(v, executed); len(asked) > 0 && r.Verdict == metrics.VerdictAllow {
		var exceededQuota *policy.Quota
		if t.reservations, exceededQuota, t.limitRefusal = s.reserve(v, asked); t.limitRefusal != nil {
			r.Verdict, r.SQLState, r.Reason = metrics.VerdictDeny, string(t.limitRefusal.Code), string(t.limitRefusal.Reason)
			r.Contracts = withDenial(r.Contracts, exceededQuota)
		}
	}
	s.enforcer.cfg.Metrics.CountStatement(r.Verdict, r.Reason, r.Tag)
	t.record = s.enforcer.cfg.Audit.Decision(r)
	s.countExecution(r, t.record.RecordedAt(), r.Verdict == metrics.VerdictAllow)
	t.attributes = s.mergeUserAttributes(actor)
	t.noteObserved(v)
	for _, run := range executed {
		t.noteObserved(run)
	}
	return t
}

// noteObserved stores what the policy would have done to a statement of the execution if it enforced observed tables.
func (t *execution) noteObserved(v *verdict.Verdict) {
	j, ok := v.EnforcerDetail.(*judgement)
	if !ok || j.observedDecision == nil {
		return
	}
	t.observedDecision = j.observedDecision
	if now, refused := t.session.currentServingState(); refused == nil && j.observedDecision.texts != nil {
		t.claims = t.session.claimedSettings(now.state.policy)
	}
}

// execution is one execution of a statement whose decision was recorded.
type execution struct {
	session      *session
	record       *audit.Ticket
	hasJudgement bool          // package enforce made all verdicts of the execution
	keys         *returnedKeys // keys of the returned rows for the audit; nil: it records none

	mayReturnRows  bool // the execution may send rows
	hasSideEffects bool // the execution may do more than send rows

	limits                   []sessionLimit
	limitRefusal             *sqlstate.Error // the refusal of the execution by a limit or a quota
	reservedRows, unusedRows int64           // rows taken from the limits; those that moreRows can still return
	exhaustedRate            *sessionLimit   // the limit per minute that has no rows left
	retryAfter               time.Duration   // how long until this limit has rows again
	reservations             []*reservation
	returnRowsOnce           sync.Once

	observedDecision *observedDecision
	attributes       map[string]string // the attributes of the session during the execution
	claims           map[string]string // the settings with claims during the execution, for a comparison
}

func (t *execution) Release() *sqlstate.Error {
	if err := t.record.Release(); err != nil {
		return err
	}
	if err := t.session.revocation.Load(); err != nil {
		return err
	}
	if !t.hasJudgement {
		return sqlstate.AsError(fmt.Errorf("a verdict that enforcement did not make"))
	}
	return t.limitRefusal
}

// ResultBound returns how much of the result the proxy may relay.
func (t *execution) ResultBound() verdict.ResultBound {
	b := verdict.ResultBound{}
	if len(t.limits) > 0 && t.mayReturnRows {
		b = t.resultBound()
	}
	b = boundByQuotas(b, t.reservations)
	b.MustRollBack = t.hasSideEffects
	return b
}

// RowsReturned gives back the reserved rows that the execution did not return.
func (t *execution) RowsReturned(rows int64) {
	t.returnRowsOnce.Do(func() {
		settleAll(t.reservations, rows)
		if len(t.limits) == 0 {
			return
		}
		returnToRates(t.limits, t.reservedRows, max(0, t.reservedRows-rows), t.session.enforcer.limiters.now())
	})
}

func (t *execution) RecordOutcome(o verdict.Outcome) {
	t.RowsReturned(o.Rows)
	t.session.recordObserved(t.observedDecision, t.attributes, t.claims, o)
	t.record.RecordOutcome(audit.Outcome{Rows: o.Rows, Bytes: o.Bytes, SQLState: string(o.Code),
		Keys: t.keys.auditKeys(o.Rows)})
}

// revoke ends the session with this error. Statements that have no answer yet are refused.
func (s *session) revoke(err *sqlstate.Error) {
	if !s.revocation.CompareAndSwap(nil, err) {
		return
	}
	s.enforcer.cfg.Metrics.CountRevoked()
	s.enforcer.cfg.Log.Info("session ended", "session", s.info.ID, "agent", s.agent.Name, "reason", err.Message)
	s.enforcer.cfg.Audit.Session(audit.Session{
		Session: s.info.ID, Agent: s.agent.Name, Database: s.db.cfg.Name, Remote: s.info.RemoteAddr,
		Event: "revoked", SQLState: string(err.Code), Reason: string(err.Reason),
	})
	if s.info.OnRevoke != nil {
		s.info.OnRevoke(err)
	}
}

// TransactionTimeout implements [verdict.TransactionLimiter]: it returns the timeout of the active policy.
func (s *session) TransactionTimeout() time.Duration {
	if v := s.db.servingState.Load(); v != nil && v.state != nil {
		return v.state.policy.TransactionTimeout()
	}
	return 0
}

// TimeoutPassed implements [verdict.TransactionLimiter]: it ends the session.
func (s *session) TimeoutPassed() {
	s.enforcer.cfg.Metrics.CountLimited("transaction_timeout")
	s.revoke(sqlstate.New(sqlstate.TransactionTimeout, sqlstate.ReasonLimit, "the transaction has lasted too long").
		WithHint("The policy says how long a transaction may last. What it had not committed is rolled back; a " +
			"COMMIT that was under way may have taken effect. Connect again, commit between steps, and end " +
			"transactions before waiting for somebody."))
}

// Close removes the session from the enforcer and records that it has ended.
func (s *session) Close() {
	if s.expiry != nil {
		s.expiry.Stop()
	}
	s.enforcer.mu.Lock()
	delete(s.enforcer.sessions, s)
	s.enforcer.mu.Unlock()
	s.enforcer.cfg.Audit.Session(audit.Session{
		Session: s.info.ID, Agent: s.agent.Name, Database: s.db.cfg.Name, Remote: s.info.RemoteAddr, Event: "close",
	})
}
