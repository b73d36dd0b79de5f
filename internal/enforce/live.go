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

// Row rules ask the database for live attributes, as part of the statement. What decides about a statement's shape is
// asked for here, on a connection of the proxy's own, before the statement goes upstream: for every message that is
// judged, since the answer is another one as soon as somebody has changed it.

// liveTimeout bounds that question.
const liveTimeout = 2 * time.Second

// asked are the live attributes that the state needs for each statement: those that decide about its shape, those that
// its record has, and those that name a channel.
func asked(p *policy.Policy) []string {
	shape := p.ContractAttributes()
	var out []string
	for _, a := range p.Attributes() {
		if a.Live() && (a.Audit != "" || slices.Contains(shape, a.Name) || named(p, a.Name)) {
			out = append(out, a.Name)
		}
	}
	return out
}

// identifying are the values that records have a reference of.
func identifying(p *policy.Policy, values map[string]string) map[string]string {
	out := map[string]string{}
	for name, value := range values {
		if a, _ := p.Attribute(name); a.Audit == policy.AsReference || a.Audit == policy.AsSubject || a.Audit == "" && !a.Live() {
			out[name] = value
		}
	}
	return out
}

// claims are what the session's settings claim, by the names of attributes, as fields; none where they cannot be told.
func (s *session) claims(p *policy.Policy) map[string]string {
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

// work asks the database for live attributes. What is missing is absent.
func (s *session) work(ctx context.Context, names []string, claims map[string]string) (map[string]string, error) {
	values := map[string]string{}
	if len(names) == 0 {
		return values, nil
	}
	ctx, cancel := context.WithTimeout(ctx, liveTimeout)
	defer cancel()
	err := s.db.askers.ask(ctx, s.db.control, func(ctx context.Context, conn *pgx.Conn) error {
		clear(values)
		rows, err := conn.Query(ctx,
			"SELECT a.name, pgconsent.live(a.name, $2, $3) FROM pg_catalog.unnest($1::pg_catalog.text[]) AS a (name)",
			names, seal.Fields(s.attributes), seal.Fields(claims))
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

// admit holds an allowed verdict to what the session's attributes are now: what it claims must be let through, and its
// statements must be ones that the policy allows with these attributes. It returns a verdict of its own for the
// session, with the attributes that the record has. Where nothing of the kind is to be asked, it is v itself.
func (s *session) admit(ctx context.Context, st *state, v *verdict.Verdict, p verdict.Protocol) *verdict.Verdict {
	j, ok := v.Detail.(*judgement)
	claiming := v.Allowed() && claims(v.Effects)
	if !ok || len(st.asked) == 0 && !claiming && !st.policy.HasContracts() {
		return v
	}
	now := s.claims(st.policy)
	known := now
	if verdict.ChangesOnTheWay(v.Effects) {
		known = map[string]string{}
	}
	values, err := s.work(ctx, st.asked, known)
	if err != nil {
		return refused(v, p, lost(err))
	}
	if err := s.refer(ctx, identifying(st.policy, values)); err != nil {
		return refused(v, p, err)
	}
	if !v.Allowed() {
		return s.own(v, st, values, nil, nil)
	}
	whole := maps.Clone(values)
	maps.Copy(whole, s.attributes)
	s.reminds(st.policy, whole)
	var denied *sqlstate.Error
	var contracts []audit.Contract
	quotas := make([][]*policy.Quota, len(j.statements))
	for i, statement := range j.statements {
		decisions, err := st.policy.Explain(statement, whole)
		contracts = s.recorded(st.policy, contracts, decisions)
		for _, d := range decisions {
			if d.Quota != nil {
				quotas[i] = append(quotas[i], d.Quota)
			}
		}
		if denied == nil {
			denied = err
		}
	}
	judged := st.observedContracts(s.own(v, st, values, contracts, quotas), whole)
	if err := s.mayClaim(ctx, st, v.Effects, now); err != nil {
		return refused(judged, p, err)
	}
	if denied != nil {
		return refused(judged, p, denied)
	}
	return judged
}

// recorded adds what the record has of the contracts' decisions, each once. Those that govern nothing of the statement
// are left out.
func (s *session) recorded(p *policy.Policy, list []audit.Contract, decisions []policy.ContractDecision) []audit.Contract {
	for _, d := range decisions {
		c := audit.Contract{Name: d.Contract, By: d.By, Value: d.Value, Verdict: d.Verdict}
		if a, ok := p.Attribute(d.By); ok && d.Value != "" &&
			(!a.Live() || a.Audit == policy.AsReference || a.Audit == policy.AsSubject) {
			c.Value = s.recordedAs(a, d.Value)
		}
		if d.Verdict != "none" && !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	return list
}

// own is v with what its record has of the session's live attributes and of what contracts say, and what these hold it
// to.
func (s *session) own(v *verdict.Verdict, st *state, values map[string]string, contracts []audit.Contract,
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
	with := func(v *verdict.Verdict) *verdict.Verdict {
		own, j := *v, *v.Detail.(*judgement)
		j.live, j.record.Contracts, j.quotas = recorded, contracts, quotas
		own.Detail = &j
		return &own
	}
	v = with(v)
	v.Effects = slices.Clone(v.Effects)
	for i, e := range v.Effects {
		if e.Body != nil {
			v.Effects[i].Body = with(e.Body)
		}
	}
	return v
}

// refused is a refusal of what the rewriter allowed: its record says as much of the statement.
func refused(v *verdict.Verdict, p verdict.Protocol, err *sqlstate.Error) *verdict.Verdict {
	out := refusal(v.Original, p, v.Versions, err)
	j, was := out.Detail.(*judgement), v.Detail.(*judgement)
	j.live, j.rights, j.record.Contracts = was.live, was.rights, was.record.Contracts
	j.record.Tag, j.record.Fingerprint, j.record.Tables, j.record.Functions = was.record.Tag, was.record.Fingerprint,
		was.record.Tables, was.record.Functions
	return out
}

func claims(effects []verdict.Effect) bool {
	return slices.ContainsFunc(effects, func(e verdict.Effect) bool { return e.Claim != nil })
}

// mayClaim refuses a SET to what the policy does not let through. The rows would be hidden in any case; an agent is
// told at once, and in the same words whether or not there is such a thing.
func (s *session) mayClaim(ctx context.Context, st *state, effects []verdict.Effect,
	now map[string]string) *sqlstate.Error {
	settings := st.policy.Settings()
	now = maps.Clone(now)
	for _, e := range effects {
		if e.Claim == nil || e.Claim.Reset {
			continue
		}
		if err := s.lets(ctx, e.Name, settings[e.Name], e.Claim.Value, now); err != nil {
			return err
		}
		now[settings[e.Name]] = e.Claim.Value
	}
	return nil
}

// lets tells whether a claim is let through. An empty one claims nothing.
func (s *session) lets(ctx context.Context, setting, attribute, value string, others map[string]string) *sqlstate.Error {
	if value == "" {
		return nil
	}
	others = maps.Clone(others)
	others[attribute] = value
	values, err := s.work(ctx, []string{attribute}, others)
	if err != nil {
		return lost(err)
	}
	if _, counts := values[attribute]; !counts {
		return sqlstate.New(sqlstate.InsufficientPrivilege, sqlstate.ReasonSetting,
			"parameter %q cannot be set to this value by this agent", setting).
			WithHint("The policy lets each agent claim certain values only (attribute %s, within); whether others "+
				"exist is not told.", attribute)
	}
	return nil
}

// begins refuses what the startup message claims and the policy does not let through.
func (s *session) begins(ctx context.Context, st *state) *sqlstate.Error {
	settings := st.policy.Settings()
	claimed := map[string]string{}
	for setting, attribute := range settings {
		if value, ok := s.info.Settings[setting]; ok {
			claimed[attribute] = value
		}
	}
	for _, setting := range slices.Sorted(maps.Keys(settings)) {
		if value, ok := claimed[settings[setting]]; ok {
			if err := s.lets(ctx, setting, settings[setting], value, claimed); err != nil {
				return err
			}
		}
	}
	return nil
}
