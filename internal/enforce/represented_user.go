package enforce

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/seal"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
)

// A session of an agent that acts for others has some attributes of the user for whom it acts. While it acts for
// nobody, these attributes are missing. The client names the user by a setting: by the user's token, or by attributes
// of the user if the configuration trusts the agent's program. The proxy does not send that value to the database, but
// a value that it has signed for this session (see [seal.RepresentedUser]). See docs/decisions/0110.

// representedUserState is the state of a session that may act for others.
type representedUserState struct {
	sessionID    string // the session's id in its seal and in signed values
	initialValue string // the signed value at the beginning of the session; "": the session began without a user
}

// initRepresentedUser makes the session's id, and signs a value for the user that the startup message names.
func (s *session) initRepresentedUser(ctx context.Context, st *state, startup map[string]string) *sqlstate.Error {
	if s.agent.ActsFor == nil {
		return nil
	}
	var id [16]byte
	_, _ = rand.Read(id[:]) // rand.Read never returns an error.
	s.representedUser.sessionID = hex.EncodeToString(id[:])
	value, ok := startup[s.agent.ActsFor.Setting]
	if !ok || value == "" {
		return nil
	}
	signedUser, refused := s.signedUserValue(ctx, st, value)
	s.representedUser.initialValue = signedUser
	return refused
}

// signedUserValue returns the signed value for the value that a client gives to the setting, or a refusal. With the
// value "" the session acts for nobody.
func (s *session) signedUserValue(ctx context.Context, st *state, value string) (string, *sqlstate.Error) {
	if value == "" {
		return "", nil
	}
	how := s.agent.ActsFor
	a := seal.RepresentedUser{Session: s.representedUser.sessionID}
	var refused *sqlstate.Error
	if how.ByToken {
		a.Attributes, a.Expires, refused = s.userOfToken(ctx, value)
	} else {
		a.Attributes, refused = how.parseTrustedUser(value)
	}
	if refused != nil {
		return "", refused
	}
	if err := how.checkUser(st.policy, a.Attributes, s.attributes); err != nil {
		s.enforcer.cfg.Log.Info("a user was refused for whom a session was to act", "agent", s.agent.Name, "database",
			s.db.cfg.Name, "error", err)
		return "", representedUserError(how, err)
	}
	if !a.Expires.IsZero() {
		a.Expires = a.Expires.Add(s.clockOffset() + expiryGrace)
	}
	return st.sealKey.SealRepresentedUser(a), nil
}

// expiryGrace is how long after the expiry of a token the database still accepts transactions that begin. The proxy
// refuses new statements from the expiry on, but statements that it has sent may still wait for others.
const expiryGrace = 30 * time.Second

// clockOffset returns the database's clock minus the proxy's.
func (s *session) clockOffset() time.Duration {
	if v := s.db.servingState.Load(); v != nil {
		return v.clockOffset
	}
	return 0
}

// userOfToken verifies a token, and returns the attributes that the token gives and when it expires.
func (s *session) userOfToken(ctx context.Context, token string) (map[string]string, time.Time, *sqlstate.Error) {
	verify := s.enforcer.cfg.VerifyUser
	if verify == nil {
		return nil, time.Time{}, userTokenError(errors.New("no tokens are accepted"))
	}
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	attributes, until, err := verify(ctx, token, s.agent.Name, s.db.cfg.Name)
	if err == nil && until.IsZero() {
		err = errors.New("the token does not expire")
	}
	if err != nil {
		s.enforcer.cfg.Log.Info("a token was refused by which a session was to act for a user", "agent", s.agent.Name,
			"database",
			s.db.cfg.Name, "error", err)
		return nil, time.Time{}, userTokenError(err)
	}
	return attributes, until, nil
}

// tokenTimeout limits how long the verification of a token waits for the keys of the identity provider.
const tokenTimeout = 6 * time.Second

// mayNameUser reports whether a text may change for whom the session acts; the verdict on such a text may be for this
// session only. If the name of the setting is written in a form that mayNameUser does not find, the statement is
// refused.
func (s *session) mayNameUser(text string) bool {
	if s.agent.ActsFor == nil {
		return false
	}
	text = strings.ToLower(text)
	return strings.Contains(text, s.agent.ActsFor.Setting[strings.LastIndexByte(s.agent.ActsFor.Setting, '.')+1:]) ||
		strings.Contains(text, "reset")
}

// userRewriter returns a rewriter for a text that may change for whom the session acts. The rewriter sets
// usesSessionValue to true if its result is for this session only.
func (s *session) userRewriter(st *state, r *rewrite.Rewriter, usesSessionValue *bool) *rewrite.Rewriter {
	return r.WithRepresentedUser(&rewrite.RepresentedUser{
		Setting: s.agent.ActsFor.Setting,
		Initial: func() string {
			*usesSessionValue = *usesSessionValue || s.representedUser.initialValue != ""
			return s.representedUser.initialValue
		},
		Replace: func(value string) (string, *sqlstate.Error) {
			*usesSessionValue = true
			return s.signedUserValue(context.Background(), st, value)
		},
	})
}

// newlySignedUserValue returns the value that the proxy sends to the server process together with a new seal. It names
// the present user and is signed with the newest key. It is nil, and the old value stays, if the session's agent acts
// for nobody or the user is not certain.
func (s *session) newlySignedUserValue() *string {
	if s.agent.ActsFor == nil {
		return nil
	}
	value, known := s.currentUserValue()
	if !known {
		return nil
	}
	if a, ok := seal.ParseRepresentedUser(value); ok {
		value = s.sealKey.SealRepresentedUser(a)
	}
	return &value
}

// mergeUserAttributes returns the session's own attributes together with those of the user for whom it acts.
func (s *session) mergeUserAttributes(user map[string]string) map[string]string {
	if len(user) == 0 {
		return s.attributes
	}
	merged := maps.Clone(s.attributes)
	if merged == nil {
		merged = map[string]string{}
	}
	maps.Copy(merged, user)
	return merged
}

// maxReferences is how many references a session remembers: it may act for many users, one after another.
const maxReferences = 4096

// ensureUserReferences makes sure that the database has references for the attributes of the session and this user.
func (s *session) ensureUserReferences(ctx context.Context, p *policy.Policy, user map[string]string) *sqlstate.Error {
	if len(s.references) >= maxReferences {
		clear(s.references)
	}
	return s.ensureReferences(ctx, identifyingValues(p, s.mergeUserAttributes(user)))
}

// currentUserValue returns the signed value that names the user for whom the session acts now. known is false if this
// is not certain.
func (s *session) currentUserValue() (value string, known bool) {
	c := verdict.Claims{Known: true}
	if s.info.Claims != nil {
		c = s.info.Claims()
	}
	values := c.Values
	if !c.Known {
		if c.Expected == nil {
			return "", false
		}
		values = c.Expected
	}
	value, ok := values[s.agent.ActsFor.Setting]
	if !ok {
		value = s.representedUser.initialValue
	}
	return value, true
}

// representedUser is the user for whom a session acts; the zero value means nobody.
type representedUser struct {
	attributes map[string]string
	expiresAt  time.Time // expiry of the token by the database's clock, plus expiryGrace; zero: never
}

func parseRepresentedUser(value string) representedUser {
	a, ok := seal.ParseRepresentedUser(value)
	if !ok {
		return representedUser{}
	}
	return representedUser{a.Attributes, a.Expires}
}

// hasExpired reports whether the user's token has expired. offset is the database's clock minus the proxy's.
func (a representedUser) hasExpired(offset time.Duration) bool {
	return !a.expiresAt.IsZero() && !time.Now().Add(offset+expiryGrace).Before(a.expiresAt)
}

// userOfVerdict returns the user for whom the statements of a text that may show or change rows run. If the text has no
// such statement, it is the user after the text. It refuses if this user is not certain, not the same for all these
// statements, or has expired.
func (s *session) userOfVerdict(v *verdict.Verdict) (representedUser, *sqlstate.Error) {
	value, known := s.currentUserValue()
	setting := s.agent.ActsFor.Setting
	var reading *string
	for i, e := range v.Effects {
		switch {
		case e.Claim != nil && e.Claim.NamesRepresentedUser:
			value, known = e.Claim.Value, true
			if e.Claim.IsReset {
				value = s.representedUser.initialValue
			}
			continue
		case e.Kind == verdict.EffectEnd, e.Kind == verdict.EffectRollbackTo, e.Kind == verdict.EffectResetAll,
			e.Kind == verdict.EffectDiscard:
			known = known && i+1 == len(v.Effects)
			continue
		case e.Kind == verdict.EffectDeclare && e.WithHold:
			return representedUser{}, heldCursorError()
		case !readsRows(v, i):
			continue
		case !known:
			return representedUser{}, unknownUserError(setting)
		case reading != nil && *reading != value:
			return representedUser{}, severalUsersError(setting)
		}
		now := value
		reading = &now
	}
	if reading != nil {
		value = *reading
	}
	now := parseRepresentedUser(value)
	if reading != nil && now.hasExpired(s.clockOffset()) {
		return representedUser{}, expiredUserError(setting)
	}
	return now, nil
}

// readsRows reports whether the i-th statement of a text may show or change rows, so that its result depends on the
// user for whom the session acts.
func readsRows(v *verdict.Verdict, i int) bool {
	j, ok := v.EnforcerDetail.(*judgement)
	switch e := v.Effects[i]; e.Kind {
	case verdict.EffectExecute, verdict.EffectFetch, verdict.EffectCopyIn:
		return true
	case verdict.EffectNone:
		if !e.ReadsRows && !e.WritesRows {
			return false
		}
	default:
		return false
	}
	return !ok || j.preparedBy > 0 || i >= len(j.statements) || len(j.statements[i].Accesses) > 0 ||
		slices.ContainsFunc(j.record.Functions, func(name string) bool { return !strings.HasPrefix(name, "pg_catalog.") })
}

// withRepresentedUser returns the verdict with the attributes of the user for whom the session acts, which its audit
// record has.
func withRepresentedUser(v *verdict.Verdict, a representedUser) *verdict.Verdict {
	verdictCopy, j := *v, *v.EnforcerDetail.(*judgement)
	j.userAttributes = a.attributes
	verdictCopy.EnforcerDetail = &j
	if slices.ContainsFunc(verdictCopy.Effects, func(e verdict.Effect) bool { return e.Body != nil }) {
		verdictCopy.Effects = slices.Clone(verdictCopy.Effects)
		for i, e := range verdictCopy.Effects {
			if e.Body != nil {
				verdictCopy.Effects[i].Body = withRepresentedUser(e.Body, a)
			}
		}
	}
	return &verdictCopy
}

// bindRepresentedUser returns the verdict on a Bind message in which the value of a parameter names the user for whom
// the session acts.
func (s *session) bindRepresentedUser(v *verdict.Verdict, j *judgement, values [][]byte) (*verdict.Verdict,
	*sqlstate.Error) {
	i := int(j.representedUserParameter.Number) - 1
	now, refused := s.currentServingState()
	switch {
	case refused != nil:
		return nil, refused
	case i >= len(values) || values[i] == nil || s.agent.ActsFor == nil:
		return nil, sqlstate.New(sqlstate.InvalidParameterValue, sqlstate.ReasonSetting,
			"the user for whom the session acts must not be NULL").WithHint("An empty text stands for nobody.")
	}
	signedUser, refused := s.signedUserValue(context.Background(), now.state, string(values[i]))
	if refused != nil {
		return nil, refused
	}
	out := *v
	out.Values = slices.Clone(values)
	out.Values[i] = []byte(signedUser)
	out.Effects = slices.Clone(v.Effects)
	for i, e := range out.Effects {
		if e.Claim != nil && e.Claim.NamesRepresentedUser {
			out.Effects[i].Claim = &verdict.Claim{Value: signedUser, IsLocal: j.representedUserParameter.Local,
				NamesRepresentedUser: true}
		}
	}
	return withRepresentedUser(&out, parseRepresentedUser(signedUser)), nil
}

// withBoundValues returns v with the Values and Effects of source, which come from the values of a Bind. Both verdicts
// are on the same text.
func withBoundValues(v, source *verdict.Verdict) *verdict.Verdict {
	out := *v
	out.Values, out.Effects = source.Values, source.Effects
	return &out
}
