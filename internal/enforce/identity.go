package enforce

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xdg-go/scram"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
)

// Agent is an agent of the configuration: the name by which it logs in, its credential and its attributes.
type Agent struct {
	Name          string
	Database      string
	Credential    *scram.StoredCredentials // nil: the agent cannot log in by a password
	LogsInByToken bool                     // the agent logs in by a token, whose claims also give attributes
	// the name that the agent's client certificate must have, as the proxy writes it; "": the agent does not log in by a
	// certificate
	CertificateName string
	Attributes      map[string]string // the attributes that the credential gives
	Claims          map[string]string // the name of a token's claim that gives an attribute, by attribute
	ActsFor         *ActsFor          // which users the agent's sessions may act for; nil: for none
	// how many sessions the agent may have at a time; 0: only the server's room for connections limits them
	MaxSessions int
}

// SessionInfo is what the proxy tells about a session that starts. It has the same fields as proxy.SessionInfo, so that
// Go can convert one to the other.
type SessionInfo struct {
	ID         string
	Agent      string
	Database   string
	RemoteAddr string
	BackendPID uint32
	Server     string // the time at which the server says it was started, which identifies the server

	Settings map[string]string     // settings of the startup message, by their names in lower case
	Claims   func() verdict.Claims // the current values of the settings that the policy maps to attributes

	TokenAttributes        map[string]string // attributes from the token by which the agent logged in; nil: no token
	ExpiresAt              time.Time         // when the token or certificate expires and the session ends; zero: never
	ExpiresWithCertificate bool              // ExpiresAt is the expiry of a certificate, not of a token
	HidesKeyOnlyColumns    bool              // hide columns that the policy shows by key only

	// OnRevoke ends the session with this error. It returns at once and may be called from any goroutine.
	OnRevoke func(*sqlstate.Error)
}

// expiringCredential names the credential whose expiry ends the session.
func (i SessionInfo) expiringCredential() string {
	if i.ExpiresWithCertificate {
		return "certificate"
	}
	return "token"
}

// AgentAccess tells the proxy how to treat the connections of an agent.
type AgentAccess struct {
	Credential    *scram.StoredCredentials
	LogsInByToken bool // the agent logs in by a token instead of a password
	// the name that the agent's client certificate must have; "": the agent does not log in by a certificate
	CertificateName string
	MaxSessions     int // how many sessions the agent may have at a time; 0: no limit of its own
	// Params are settings that the proxy's startup packet to the server fixes. A role can change its own defaults, but not
	// these.
	Params map[string]string

	// CheckSetting checks a setting of the client's startup packet; where is "startup" or "options". keep says that the
	// proxy passes the setting on, with the value normalised.
	CheckSetting func(name, value, where string) (normalised string, keep bool, err *sqlstate.Error)

	// OpenSession begins a session after the agent has logged in. The error is a *sqlstate.Error.
	OpenSession func(ctx context.Context, info SessionInfo) (verdict.Decider, error)
}

// Agent returns how the proxy treats this user on this database. It returns false if the user is no agent of the
// database or cannot log in.
func (e *Enforcer) Agent(user, database string) (AgentAccess, bool) {
	e.mu.Lock()
	a, ok := e.agents[user]
	e.mu.Unlock()
	d := e.databases[database]
	if !ok || d == nil || a.Database != database || !a.canLogIn() {
		return AgentAccess{}, false
	}
	params, timeout := d.pinnedSettings(), d.timeout()
	startup := map[string]string{} // the value of the setting by which the client names the session's user
	if timeout > 0 {
		params[statementTimeout] = strconv.FormatInt(timeout.Milliseconds(), 10)
	}
	return AgentAccess{
		Credential:      a.Credential,
		LogsInByToken:   a.LogsInByToken,
		CertificateName: a.CertificateName,
		MaxSessions:     a.MaxSessions,
		Params:          params,
		CheckSetting: func(name, value, where string) (string, bool, *sqlstate.Error) {
			if a.ActsFor != nil && strings.EqualFold(name, a.ActsFor.Setting) {
				startup[a.ActsFor.Setting] = value
				return "", false, nil
			}
			var claims map[string]string
			if v, refused := d.current(); refused == nil {
				claims = v.state.policy.Settings()
			}
			normalised, keep, err := rewrite.CheckSetting(name, value, where, d.cfg.SearchPath, claims)
			if err == nil {
				err = rewrite.CheckTimeout(name, value, timeout)
			}
			if err == nil && timeout > 0 && strings.EqualFold(name, statementTimeout) {
				params[statementTimeout] = value // A session may set a timeout below the policy's.
			}
			return normalised, keep, err
		},
		OpenSession: func(ctx context.Context, info SessionInfo) (verdict.Decider, error) {
			if d.timeout() != timeout {
				return nil, sqlstate.New(sqlstate.CannotConnectNow, sqlstate.ReasonStale,
					"the policy has changed while this session began").
					WithHint("Connect again.")
			}
			return e.openSession(ctx, d, info, startup)
		},
	}, true
}

const statementTimeout = "statement_timeout"

// timeout returns how long a statement may take by the active policy; 0: there is no limit or no active policy.
func (d *database) timeout() time.Duration {
	if v := d.servingState.Load(); v != nil && v.state != nil {
		return v.state.policy.Timeout()
	}
	return 0
}

// pinnedSettings returns settings that the proxy fixes for agents' sessions. They change how PostgreSQL reads a text,
// resolves names, or runs the policy's rules.
func (d *database) pinnedSettings() map[string]string {
	path := make([]string, len(d.cfg.SearchPath))
	for i, schema := range d.cfg.SearchPath {
		path[i] = catalog.QuoteIdent(schema)
	}
	return map[string]string{
		"search_path":                   strings.Join(path, ", "),
		"client_encoding":               "UTF8",
		"standard_conforming_strings":   "on",
		"backslash_quote":               "safe_encoding",
		"transform_null_equals":         "off",
		"row_security":                  "on",
		"default_transaction_isolation": "read committed",
		// Row policies make plans look more expensive than they are: JIT compilation took 200 ms of a 300 ms scan.
		"jit": "off",
		// pgvector 0.8 and later continues an index search until it has found enough visible rows; without pgvector these
		// settings have no effect. A higher ef_search makes up for the rows that are not visible: recall rises from 0.97 to
		// 0.99.
		"hnsw.iterative_scan":    "strict_order",
		"hnsw.ef_search":         "200",
		"ivfflat.iterative_scan": "relaxed_order",
		// An ivfflat index then searches all its lists. So the rows are in the exact order, which does not depend on where
		// hidden rows have put the lists.
		"ivfflat.probes": "32768",
		// Row policies build hash tables of lookup tables. If a lookup table does not fit into this memory, PostgreSQL scans
		// it for each row. The server takes the memory only where it needs it.
		"work_mem":            strconv.Itoa(rewrite.WorkMemMB) + "MB",
		"hash_mem_multiplier": strconv.Itoa(rewrite.HashMemMultiplier),
		// PostgreSQL counts the tables that rules read towards these limits, although the statement does not name them.
		"from_collapse_limit": strconv.Itoa(rewrite.JoinLimit),
		"join_collapse_limit": strconv.Itoa(rewrite.JoinLimit),
	}
}

// SetAgents replaces the agents. A session ends if its agent is no longer configured, cannot log in any more, or now
// has other attributes or another database.
func (e *Enforcer) SetAgents(agents []Agent) {
	next := make(map[string]Agent, len(agents))
	for _, a := range agents {
		a.Attributes = maps.Clone(a.Attributes)
		next[a.Name] = a
	}
	for _, name := range slices.Sorted(maps.Keys(next)) {
		a := next[name]
		d := e.databases[a.Database]
		if d == nil {
			e.cfg.Log.Error("agent refused: its database is not configured", "agent", a.Name, "database", a.Database)
			continue
		}
		if v, refused := d.current(); refused == nil {
			e.logClaimError(a, v.state.policy)
			if _, err := agentAttributes(v.state.policy, a); err != nil && !a.LogsInByToken {
				e.cfg.Log.Error("agent refused until its attributes are put right in the configuration", "agent",
					a.Name, "database", a.Database, "error", err)
			}
		}
	}
	e.mu.Lock()
	e.agents = next
	var endedSessions []*session
	for s := range e.sessions {
		if !isUnchangedAgent(next, s.agent) {
			endedSessions = append(endedSessions, s)
		}
	}
	e.mu.Unlock()
	for _, s := range endedSessions {
		s.revoke(sqlstate.New(sqlstate.AdminShutdown, sqlstate.ReasonIdentity, "this agent was disabled or its rights changed").
			WithHint("Connect again if the agent is still allowed to."))
	}
}

// isUnchangedAgent reports whether a session that began for the agent atStart may continue under this configuration.
func isUnchangedAgent(agents map[string]Agent, atStart Agent) bool {
	now, ok := agents[atStart.Name]
	return ok && now.canLogIn() && now.LogsInByToken == atStart.LogsInByToken &&
		now.CertificateName == atStart.CertificateName && now.Database == atStart.Database &&
		maps.Equal(now.Attributes, atStart.Attributes) && maps.Equal(now.Claims, atStart.Claims) &&
		now.ActsFor.equal(atStart.ActsFor)
}

func (a Agent) canLogIn() bool {
	return a.Credential != nil || a.LogsInByToken || a.CertificateName != ""
}

// withTokenAttributes returns the agent with the attributes that its token gives. A token must not give an attribute
// that the configuration gives.
func (a Agent) withTokenAttributes(granted map[string]string) (Agent, error) {
	all := maps.Clone(granted)
	// These attributes are the user's: the client names the user by a setting.
	maps.DeleteFunc(all, func(name, _ string) bool { return a.ActsFor.givesAttribute(name) })
	if len(all) == 0 {
		return a, nil
	}
	if !a.LogsInByToken {
		return a, errors.New("a token gives attributes to an agent without auth: jwt")
	}
	for name, value := range a.Attributes {
		if _, twice := all[name]; twice {
			return a, fmt.Errorf("attribute %s is given by the configuration and by the token", name)
		}
		all[name] = value
	}
	a.Attributes = all
	return a, nil
}

// agentAttributes returns the attributes of an agent's sessions, or an error that says which attributes are wrong. The
// error contains no value.
func agentAttributes(p *policy.Policy, a Agent) (map[string]string, error) {
	if err := a.checkTokenClaims(p); err != nil {
		return nil, err
	}
	var problems []error
	if err := a.ActsFor.check(p); err != nil {
		problems = append(problems, err)
	}
	attributes := map[string]string{}
	for _, declared := range p.Attributes() {
		value, ok := a.Attributes[declared.Name]
		switch {
		case a.ActsFor.givesAttribute(declared.Name) && ok:
			problems = append(problems, fmt.Errorf("attribute %s is given by the configuration and by acts_for", declared.Name))
		case a.ActsFor.givesAttribute(declared.Name):
		case declared.IsLive() && ok:
			problems = append(problems, fmt.Errorf(
				"attribute %s has the source %s in the policy, and is no agent's to be given", declared.Name, declared.Source))
		case declared.IsLive(), declared.Optional && !ok:
		case !ok:
			problems = append(problems, fmt.Errorf("attribute %s is missing", declared.Name))
		default:
			if err := declared.Check(value); err != nil {
				problems = append(problems, err)
			}
			attributes[declared.Name] = value
		}
	}
	if len(attributes) > 0 && maps.Equal(attributes, a.Attributes) {
		attributes = a.Attributes // so that the agent's sessions share one map
	}
	for _, name := range slices.Sorted(maps.Keys(a.Attributes)) {
		if _, ok := p.Attribute(name); !ok {
			problems = append(problems, fmt.Errorf("attribute %s is not one that the policy declares", name))
		}
	}
	if err := policy.CheckAttributes(attributes); err != nil {
		problems = append(problems, err)
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return attributes, nil
}

// openSession begins a session for an agent that has authenticated.
func (e *Enforcer) openSession(ctx context.Context, d *database, info SessionInfo, startup map[string]string) (verdict.Decider, error) {
	e.mu.Lock()
	agent, ok := e.agents[info.Agent]
	e.mu.Unlock()
	record := audit.Session{Session: info.ID, Agent: info.Agent, Database: d.cfg.Name, Remote: info.RemoteAddr, Event: "open"}
	refuse := func(err *sqlstate.Error) (verdict.Decider, error) {
		record.Event, record.SQLState, record.Reason = "refused", string(err.Code), string(err.Reason)
		e.cfg.Audit.Session(record)
		return nil, err
	}
	if !ok || !isUnchangedAgent(map[string]Agent{agent.Name: agent}, agent) || agent.Database != d.cfg.Name {
		return refuse(identityRefusal(errors.New("the agent was disabled while it logged in")))
	}
	v, refused := d.servingStateForServer(ctx, info.Server)
	if refused != nil {
		return refuse(refused)
	}
	fullAgent, err := agent.withTokenAttributes(info.TokenAttributes)
	var attributes map[string]string
	if err == nil {
		attributes, err = agentAttributes(v.state.policy, fullAgent)
	}
	if err == nil && !info.ExpiresAt.IsZero() && !time.Now().Before(info.ExpiresAt) {
		err = fmt.Errorf("the %s expired while the agent logged in", info.expiringCredential())
	}
	if err != nil {
		e.cfg.Log.Error("agent refused: put its attributes right in the configuration", "agent", agent.Name,
			"database", d.cfg.Name, "error", err)
		return refuse(identityRefusal(err))
	}
	s := &session{enforcer: e, db: d, info: info, agent: agent, attributes: attributes, references: map[string]string{},
		openedAt: time.Now()}
	if err := s.initRepresentedUser(ctx, v.state, startup); err != nil {
		return refuse(err)
	}
	user := parseRepresentedUser(s.representedUser.initialValue).attributes
	if err := s.ensureUserReferences(ctx, v.state.policy, user); err != nil {
		return refuse(err)
	}
	record.Attributes = s.currentAuditAttributes(user).attributes
	if err := e.cfg.Audit.Session(record).Release(); err != nil {
		return nil, err
	}
	if err := s.checkStartupClaims(ctx, v.state); err != nil {
		return refuse(err)
	}
	s.setReminderKey(v.state.policy, s.mergeUserAttributes(user))
	e.mu.Lock()
	// SetAgents may have run since the agents were read above. Either SetAgents finds this session registered and ends it,
	// or this check finds the change.
	still := isUnchangedAgent(e.agents, agent)
	if still {
		e.sessions[s] = struct{}{}
	}
	e.mu.Unlock()
	if !still {
		return refuse(identityRefusal(errors.New("the agent was disabled while it logged in")))
	}
	if now, refused := d.current(); refused == nil && now.state != v.state {
		e.recheckIdentities(d, now.state)
	}
	e.endSessionsOnOtherServers(d)
	if !info.ExpiresAt.IsZero() {
		s.expiry = time.AfterFunc(time.Until(info.ExpiresAt), func() {
			s.revoke(sqlstate.New(sqlstate.AdminShutdown, sqlstate.ReasonIdentity,
				"the %s of this session has expired", info.expiringCredential()).WithHint("Connect again with a new one."))
		})
	}
	return s, nil
}

// recheckIdentities ends the sessions of a database whose agents' attributes are not valid, or are other ones, under a
// new state.
func (e *Enforcer) recheckIdentities(d *database, st *state) {
	e.mu.Lock()
	var endedSessions []*session
	for s := range e.sessions {
		if s.db != d {
			continue
		}
		whole, err := s.agent.withTokenAttributes(s.info.TokenAttributes)
		var attributes map[string]string
		if err == nil {
			attributes, err = agentAttributes(st.policy, whole)
		}
		if err != nil || !maps.Equal(attributes, s.attributes) {
			endedSessions = append(endedSessions, s)
		}
	}
	e.mu.Unlock()
	for _, s := range endedSessions {
		s.revoke(sqlstate.New(sqlstate.AdminShutdown, sqlstate.ReasonIdentity, "the policy changed what an agent must be").
			WithHint("Connect again; if that fails, ask the operator of pgconsent to look at its log."))
	}
}

// identityRefusal is the refusal of a login. It does not say which attribute is wrong: that is in the operator's log.
func identityRefusal(cause error) *sqlstate.Error {
	return sqlstate.New(sqlstate.InvalidAuthorization, sqlstate.ReasonIdentity,
		"this agent's identity does not fit the policy").
		WithHint("The operator of pgconsent finds in its log which attribute of the agent is wrong.").WithCause(cause)
}
