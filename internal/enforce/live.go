package enforce

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/enforce/seal"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
)

// Rules for rows read live attributes in the database, as part of the statement. Other live attributes decide whether a
// statement is allowed at all. pgconsent queries these on a control connection before it sends the statement. It does
// so for every message, since the values may change at any time.

// liveAttributeTimeout limits the query for live attributes.
const liveAttributeTimeout = 2 * time.Second

// neededLiveAttributes returns the live attributes that the proxy needs for each statement: the attributes that
// contracts use, that audit records have, or that name the user or channel of reminders.
func neededLiveAttributes(p *policy.Policy) []string {
	shape := p.ContractAttributes()
	var out []string
	for _, a := range p.Attributes() {
		if a.IsLive() && (a.Audit != "" || slices.Contains(shape, a.Name) || isReminderAttribute(p, a.Name)) {
			out = append(out, a.Name)
		}
	}
	return out
}

// identifyingValues returns the values that identify a person; audit records have a reference in place of each.
func identifyingValues(p *policy.Policy, values map[string]string) map[string]string {
	out := map[string]string{}
	for name, value := range values {
		if a, _ := p.Attribute(name); a.Audit == policy.AuditReference || a.Audit == policy.AuditSubject || a.Audit == "" &&
			!a.IsLive() {
			out[name] = value
		}
	}
	return out
}

// claimedAttributes returns the attributes whose values the client claims by settings. It returns none if the proxy
// does not know the settings' values.
func (s *session) claimedAttributes(p *policy.Policy) map[string]string {
	c := verdict.Claims{Known: true, Values: s.info.Settings}
	if s.info.Claims != nil {
		c = s.info.Claims()
	}
	out := map[string]string{}
	if c.Known {
		for setting, name := range p.Settings() {
			if value, ok := c.Values[setting]; ok {
				out[name] = value
			}
		}
	}
	return out
}

// queryLiveAttributes queries the database for the live attributes in names. The database computes them from the other
// attributes and the claims. An attribute without a value is absent from the result.
func (s *session) queryLiveAttributes(ctx context.Context, names []string, attributes,
	claims map[string]string) (map[string]string,
	error) {
	values := map[string]string{}
	if len(names) == 0 {
		return values, nil
	}
	ctx, cancel := context.WithTimeout(ctx, liveAttributeTimeout)
	defer cancel()
	err := s.db.controlPool.run(ctx, s.db.control, func(ctx context.Context, conn *pgx.Conn) error {
		clear(values)
		rows, err := conn.Query(ctx,
			"SELECT a.name, pgconsent.live(a.name, $2, $3) FROM pg_catalog.unnest($1::pg_catalog.text[]) AS a (name)",
			names, seal.AttributeFields(attributes), seal.AttributeFields(claims))
		if err != nil {
			return err
		}
		var name string
		var value *string
		_, err = pgx.ForEachRow(rows, []any{&name, &value}, func() error {
			if value != nil {
				values[name] = *value
			}
			return nil
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("live attributes: %w", err)
	}
	return values, nil
}

// decideForSession decides whether a text that the rewriter allowed is also allowed with the session's present
// attributes. The policy must allow the claims that the text makes, and the contracts must allow its statements. It
// returns a verdict for this session only, with the attributes for the audit record. It returns v itself if the policy
// needs no such check.
func (s *session) decideForSession(ctx context.Context, st *state, v *verdict.Verdict,
	protocol verdict.Protocol) *verdict.Verdict {
	j, ok := v.EnforcerDetail.(*judgement)
	claiming := v.IsAllowed() && changesClaims(v.Effects)
	attributes := s.attributes
	if s.agent.ActsFor != nil && ok {
		user, refused := s.userOfVerdict(v)
		if refused == nil {
			refused = s.ensureUserReferences(ctx, st.policy, user.attributes)
		}
		if refused != nil && v.IsAllowed() {
			return refuseAllowed(v, protocol, refused)
		}
		v, attributes = withRepresentedUser(v, user), s.mergeUserAttributes(user.attributes)
		j = v.EnforcerDetail.(*judgement)
	}
	if !ok || len(st.neededLiveAttributes) == 0 && !claiming && !st.policy.HasContracts() {
		return v
	}
	now := s.claimedAttributes(st.policy)
	knownValues := now
	if verdict.ClaimsChangeWithin(v.Effects) {
		knownValues = map[string]string{}
	}
	values, err := s.queryLiveAttributes(ctx, st.neededLiveAttributes, attributes, knownValues)
	if err != nil {
		return refuseAllowed(v, protocol, unavailableRefusal(err))
	}
	if err := s.ensureReferences(ctx, identifyingValues(st.policy, values)); err != nil {
		return refuseAllowed(v, protocol, err)
	}
	if !v.IsAllowed() {
		return s.withAuditDetails(v, st, values, nil, nil)
	}
	allValues := maps.Clone(values)
	maps.Copy(allValues, attributes)
	s.setReminderKey(st.policy, allValues)
	var denied *sqlstate.Error
	var contracts []audit.Contract
	quotas := make([][]*policy.Quota, len(j.statements))
	for i, statement := range j.statements {
		decisions, err := st.policy.ExplainContracts(statement, allValues)
		contracts = s.addContracts(st.policy, contracts, decisions)
		for _, d := range decisions {
			if d.Quota != nil {
				quotas[i] = append(quotas[i], d.Quota)
			}
		}
		if denied == nil {
			denied = err
		}
	}
	judged := st.withObservedContracts(s.withAuditDetails(v, st, values, contracts, quotas), allValues)
	if err := s.checkClaims(ctx, st, v.Effects, attributes, now); err != nil {
		return refuseAllowed(judged, protocol, err)
	}
	if denied != nil {
		return refuseAllowed(judged, protocol, denied)
	}
	return judged
}

// addContracts adds the decisions of contracts to the list of an audit record, each once. It leaves out contracts that
// do not govern the statement.
func (s *session) addContracts(p *policy.Policy, list []audit.Contract,
	decisions []policy.ContractDecision) []audit.Contract {
	for _, d := range decisions {
		c := audit.Contract{Name: d.Contract, Attribute: d.By, Value: d.Value, Verdict: d.Verdict}
		if a, ok := p.Attribute(d.By); ok && d.Value != "" &&
			(!a.IsLive() || a.Audit == policy.AuditReference || a.Audit == policy.AuditSubject) {
			c.Value = s.auditValue(a, d.Value)
		}
		if d.Verdict != "none" && !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	return list
}

// withAuditDetails returns v with the live attributes and the contracts' decisions for its audit record, and with the
// contracts' quotas.
func (s *session) withAuditDetails(v *verdict.Verdict, st *state, values map[string]string, contracts []audit.Contract,
	quotas [][]*policy.Quota) *verdict.Verdict {
	recorded := map[string]string{}
	for name, value := range values {
		if a, _ := st.policy.Attribute(name); a.Audit != "" {
			recorded[name] = value
		}
	}
	if len(recorded) == 0 && len(contracts) == 0 {
		return v
	}
	addDetails := func(v *verdict.Verdict) *verdict.Verdict {
		verdictCopy, j := *v, *v.EnforcerDetail.(*judgement)
		j.liveAttributes, j.record.Contracts, j.quotas = recorded, contracts, quotas
		verdictCopy.EnforcerDetail = &j
		return &verdictCopy
	}
	v = addDetails(v)
	v.Effects = slices.Clone(v.Effects)
	for i, e := range v.Effects {
		if e.Body != nil {
			v.Effects[i].Body = addDetails(e.Body)
		}
	}
	return v
}

// refuseAllowed returns a refusal of a text that the rewriter had allowed. Its audit record has the details of the
// statement from v.
func refuseAllowed(v *verdict.Verdict, p verdict.Protocol, err *sqlstate.Error) *verdict.Verdict {
	out := refusalVerdict(v.Original, p, v.Versions, err)
	j, allowed := out.EnforcerDetail.(*judgement), v.EnforcerDetail.(*judgement)
	j.liveAttributes, j.rightsEpoch = allowed.liveAttributes, allowed.rightsEpoch
	j.record.Contracts = allowed.record.Contracts
	j.userAttributes = allowed.userAttributes
	j.record.Tag, j.record.Fingerprint, j.record.Tables, j.record.Functions = allowed.record.Tag,
		allowed.record.Fingerprint,
		allowed.record.Tables, allowed.record.Functions
	return out
}

func changesClaims(effects []verdict.Effect) bool {
	return slices.ContainsFunc(effects, func(e verdict.Effect) bool {
		return e.Claim != nil &&
			!e.Claim.NamesRepresentedUser
	})
}

// checkClaims refuses a SET to a value that the policy does not let the agent claim. Rules would hide the rows in any
// case, but the refusal tells the agent at once. It has the same words whether or not such a value exists.
func (s *session) checkClaims(ctx context.Context, st *state, effects []verdict.Effect,
	own, now map[string]string) *sqlstate.Error {
	settings := st.policy.Settings()
	now = maps.Clone(now)
	for _, e := range effects {
		if e.Claim == nil || e.Claim.IsReset || e.Claim.NamesRepresentedUser {
			continue
		}
		if err := s.checkClaim(ctx, e.Name, settings[e.Name], e.Claim.Value, own, now); err != nil {
			return err
		}
		now[settings[e.Name]] = e.Claim.Value
	}
	return nil
}

// checkClaim refuses a claim that the policy does not let the agent make. An empty value is no claim.
func (s *session) checkClaim(ctx context.Context, setting, attribute, value string,
	own, others map[string]string) *sqlstate.Error {
	if value == "" {
		return nil
	}
	others = maps.Clone(others)
	others[attribute] = value
	values, err := s.queryLiveAttributes(ctx, []string{attribute}, own, others)
	if err != nil {
		return unavailableRefusal(err)
	}
	if _, counts := values[attribute]; !counts {
		return sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonSetting,
			"parameter %q cannot be set to this value by this agent", setting).
			WithHint("The policy lets each agent claim certain values only (attribute %s, within); whether others "+
				"exist is not told.", attribute)
	}
	return nil
}

// checkStartupClaims refuses claims in the startup message that the policy does not let the agent make.
func (s *session) checkStartupClaims(ctx context.Context, st *state) *sqlstate.Error {
	settings := st.policy.Settings()
	claimed := map[string]string{}
	for setting, attribute := range settings {
		if value, ok := s.info.Settings[setting]; ok {
			claimed[attribute] = value
		}
	}
	for _, setting := range slices.Sorted(maps.Keys(settings)) {
		if value, ok := claimed[settings[setting]]; ok {
			attributes := s.mergeUserAttributes(parseRepresentedUser(s.representedUser.initialValue).attributes)
			if err := s.checkClaim(ctx, setting, settings[setting], value, attributes, claimed); err != nil {
				return err
			}
		}
	}
	return nil
}
