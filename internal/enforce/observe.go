package enforce

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
)

// Statements on tables that the policy only observes run as if the policy did not list these tables. Audit records say
// what the policy would have done. No function in this file refuses or hides anything.

// observedPolicy is the policy as it would be if it also enforced the tables that it only observes.
type observedPolicy struct {
	policy   *policy.Policy
	checker  *rewrite.Rewriter // finds the statements that the policy would refuse
	injector *rewrite.Rewriter // writes the predicates into the text, or says why it cannot
}

// newObservedPolicy returns nil if the policy observes no table.
func (s *state) newObservedPolicy() *observedPolicy {
	if len(s.policy.Observed()) == 0 {
		return nil
	}
	enforced := s.policy.Enforced()
	return &observedPolicy{enforced, rewrite.New(s.snapshot, enforced, rewrite.RowSecurityMode),
		rewrite.New(s.snapshot, enforced, rewrite.AlwaysInjectedMode)}
}

// observedDecision is what the policy would have done to a text.
type observedDecision struct {
	// the audit record, without the session's fields and the result of the execution, which are filled in later
	record audit.Observation
	// queries that count the rows with and without the observed rules; nil: the statement cannot be compared
	texts *comparedTexts
}

// decideObserved computes what the policy would have done to an allowed text. It returns nil if the text reads no
// observed table.
func (st *state) decideObserved(text string, protocol verdict.Protocol, res *rewrite.Result) *observedDecision {
	if st.observedPolicy == nil {
		return nil
	}
	o := &observedDecision{record: audit.Observation{Policy: st.versions.Policy, Fingerprint: res.Fingerprint,
		Tag: res.Tag}}
	r := &o.record
	for _, a := range res.Accesses {
		table, ok := st.policy.Table(a.Relation)
		if !ok || table.Observed == nil {
			continue
		}
		name := a.Relation.String()
		if !slices.Contains(r.Tables, name) {
			r.Tables = append(r.Tables, name)
		}
		hidden, masked := table.Observed.HiddenAndMasked(a.Columns)
		for _, c := range hidden {
			r.HiddenColumns = appendNew(r.HiddenColumns, name+"."+c)
		}
		for _, c := range masked {
			r.MaskedColumns = appendNew(r.MaskedColumns, name+"."+c)
		}
	}
	if len(r.Tables) == 0 {
		return nil
	}
	if _, refused := st.observedPolicy.checker.Rewrite(text, protocol != verdict.Simple); refused != nil {
		r.SQLState, r.Reason = string(refused.Code), string(refused.Reason)
		r.SkipReason = "it would be refused"
		return o
	}
	o.texts, r.SkipReason = st.comparedTexts(text, res)
	return o
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// comparedTexts has two queries that count the rows of a statement: once as it runs, and once with the policy's rules.
type comparedTexts struct{ plain, filtered string }

// countAndHashQuery is the beginning of a query that counts the rows of a subquery and adds up a 64-bit hash of each
// row. Equal sums almost certainly mean equal rows. No row leaves the database.
const countAndHashQuery = `SELECT pg_catalog.count(*),
		COALESCE(pg_catalog.sum(pg_catalog.hashtextextended(pgconsent_q::pg_catalog.text, 0)), 0)::pg_catalog.text FROM (`

// comparedTexts makes the two queries of a comparison, or returns the reason why the text cannot be compared.
func (st *state) comparedTexts(text string, res *rewrite.Result) (*comparedTexts, string) {
	switch {
	case len(res.Effects) != 1 || !res.Effects[0].ReadsRows || res.Effects[0].Kind != verdict.EffectNone ||
		res.Effects[0].WritesRows || res.Tag != "SELECT":
		return nil, "only a single SELECT is compared"
	// A dollar sign may begin a parameter. If it is in a literal, only this comparison is skipped.
	case strings.Contains(text, "$"):
		return nil, "it has parameters"
	}
	for _, a := range res.Accesses {
		if _, view := st.policy.View(a.Relation); view {
			return nil, "it reads a view"
		}
		if slices.ContainsFunc(st.policy.Children(), func(c *policy.Child) bool { return c.Relation.Name == a.Relation }) {
			return nil, "it reads a partition by its name"
		}
		if table, ok := st.policy.Table(a.Relation); ok && table.Observed != nil && table.Observed.Columns != nil {
			return nil, "columns of a table would be hidden or masked"
		}
	}
	filtered, refused := st.observedPolicy.injector.Rewrite(text, true)
	if refused != nil {
		return nil, "the predicates cannot be put into its text"
	}
	return &comparedTexts{st.countingQuery(res), st.countingQuery(filtered)}, ""
}

// countingQuery returns a query that counts the rows of the text in res, with a signature if the text needs one.
func (st *state) countingQuery(res *rewrite.Result) string {
	inner := strings.TrimRight(strings.TrimSpace(res.Text), "; \t\r\n")
	text := countAndHashQuery + "\n" + inner + "\n) AS pgconsent_q"
	if res.NeedsSignature {
		return st.sealKey.Sign(st.profile, text)
	}
	return text
}

// claimedSettings returns the values of the session's settings that the policy maps to attributes, so that a comparison
// can set the same values. An empty value claims nothing. The result is nil if the proxy does not know the values.
func (s *session) claimedSettings(p *policy.Policy) map[string]string {
	c := verdict.Claims{Known: true, Values: s.info.Settings}
	if s.info.Claims != nil {
		c = s.info.Claims()
	}
	if !c.Known {
		return nil
	}
	out := map[string]string{}
	for setting := range p.Settings() {
		out[setting] = c.Values[setting]
	}
	return out
}

// recordObserved records what the policy would have done to an execution that has ended, and queues some executions for
// comparison. The execution ran with these attributes and claims.
func (s *session) recordObserved(o *observedDecision, attributes, claims map[string]string, outcome verdict.Outcome) {
	if o == nil || outcome.Code != sqlstate.SuccessfulCompletion {
		return
	}
	r := o.record
	r.Session, r.Agent, r.Database, r.Rows = s.info.ID, s.agent.Name, s.db.cfg.Name, outcome.Rows
	switch {
	case o.texts == nil:
	case claims == nil:
		r.SkipReason = "what the session claims cannot be told"
	case s.db.comparisons.enqueue(s.agent.Name+"\x00"+r.Fingerprint, comparison{o.texts, r, attributes, claims}):
		r.SkipReason = audit.ComparedSeparately
	default:
		r.SkipReason = "not in the sample"
	}
	s.enforcer.cfg.Audit.Observation(r)
}

// warnUnprotected logs a warning with the names of the tables that the policy only observes. The caller holds mu.
func (d *database) warnUnprotected(s *state) {
	var names []string
	for _, t := range s.policy.Observed() {
		names = append(names, t.Relation.Name.String())
	}
	d.enforcer.cfg.Metrics.SetObservedTables(d.cfg.Name, len(names))
	if len(names) > 0 {
		d.enforcer.cfg.Log.Warn("these tables are NOT PROTECTED: the policy only observes them, and agents read every row",
			"database", d.cfg.Name, "tables", strings.Join(names, ", "))
	}
}

// withObservedContracts returns v with the refusal by which contracts over observed tables would have denied it.
// Contracts over enforced tables have already decided.
func (st *state) withObservedContracts(v *verdict.Verdict, values map[string]string) *verdict.Verdict {
	j := v.EnforcerDetail.(*judgement)
	if st.observedPolicy == nil || j.observedDecision == nil || j.observedDecision.record.SQLState != "" {
		return v
	}
	for _, statement := range j.statements {
		if decisions, err := st.observedPolicy.policy.ExplainContracts(statement, values); err != nil {
			// Sessions share verdicts, so only copies are changed.
			judged, judgementCopy, observed := *v, *j, *j.observedDecision
			if i := slices.IndexFunc(decisions, func(d policy.ContractDecision) bool { return d.Verdict == "deny" }); i >= 0 {
				observed.record.Contract = decisions[i].Contract
			}
			observed.record.SQLState, observed.record.Reason, observed.record.SkipReason, observed.texts = string(err.Code),
				string(err.Reason), "it would be refused", nil
			judgementCopy.observedDecision, judged.EnforcerDetail = &observed, &judgementCopy
			return &judged
		}
	}
	return v
}
