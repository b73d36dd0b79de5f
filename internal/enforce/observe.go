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

// Tables that the policy observes only are open: statements over them run as if it did not list them, and what it would
// have done is worked out beside them. Nothing in here decides anything.

// shadow is the policy as it would be.
type shadow struct {
	policy *policy.Policy
	judge  *rewrite.Rewriter // says what would be refused
	filter *rewrite.Rewriter // puts predicates into texts, or says that it cannot
}

// newShadow returns nil for a policy that observes nothing.
func (s *state) newShadow() *shadow {
	if len(s.policy.Observed()) == 0 {
		return nil
	}
	enforced := s.policy.Enforced()
	return &shadow{enforced, rewrite.New(s.snapshot, enforced, rewrite.RLS),
		rewrite.New(s.snapshot, enforced, rewrite.AlwaysInjected)}
}

// wouldBe is what the policy would have done to a text.
type wouldBe struct {
	record audit.Observation // the session's members, and what became of an execution, are filled in
	pair   *pair             // nil: it cannot be compared
}

// observe works out what the policy would have done to a text that it allows as it is; nil where that is the same.
func (st *state) observe(text string, p verdict.Protocol, res *rewrite.Result) *wouldBe {
	if st.shadow == nil {
		return nil
	}
	o := &wouldBe{record: audit.Observation{Policy: st.versions.Policy, Fingerprint: res.Fingerprint, Tag: res.Tag}}
	r := &o.record
	for _, a := range res.Accesses {
		t, ok := st.policy.Table(a.Relation)
		if !ok || t.Observed == nil {
			continue
		}
		name := a.Relation.String()
		if !slices.Contains(r.Tables, name) {
			r.Tables = append(r.Tables, name)
		}
		hidden, masked := t.Observed.HiddenAndMasked(a.Columns)
		for _, c := range hidden {
			r.Hidden = add(r.Hidden, name+"."+c)
		}
		for _, c := range masked {
			r.Masked = add(r.Masked, name+"."+c)
		}
	}
	if len(r.Tables) == 0 {
		return nil
	}
	if _, refused := st.shadow.judge.Rewrite(text, p == verdict.Extended); refused != nil {
		r.SQLState, r.Reason = string(refused.Code), string(refused.Reason)
		r.Skipped = "it would be refused"
		return o
	}
	o.pair, r.Skipped = st.pair(text, res)
	return o
}

func add(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// pair is a statement as it runs and as the policy would have it, each made one that counts its rows.
type pair struct{ plain, filtered string }

// counted counts the rows of a query and adds up a hash of each: two answers with equal sums are, as far as 64 bits
// tell, the same rows. Nothing of them leaves the database.
const counted = `SELECT pg_catalog.count(*), COALESCE(pg_catalog.sum(pg_catalog.hashtextextended(pgconsent_q::pg_catalog.text, 0)), 0)::pg_catalog.text FROM (`

// pair makes the two texts, or says why there are none.
func (st *state) pair(text string, res *rewrite.Result) (*pair, string) {
	switch {
	case len(res.Effects) != 1 || !res.Effects[0].Reads || res.Effects[0].Kind != verdict.NoEffect ||
		res.Effects[0].Writes || res.Tag != "SELECT":
		return nil, "only a single SELECT is compared"
	case strings.Contains(text, "$"): // parameters; a dollar in a literal costs a comparison
		return nil, "it has parameters"
	}
	for _, a := range res.Accesses {
		if _, view := st.policy.View(a.Relation); view {
			return nil, "it reads a view"
		}
		if slices.ContainsFunc(st.policy.Children(), func(c *policy.Child) bool { return c.Relation.Name == a.Relation }) {
			return nil, "it reads a partition by its name"
		}
		if t, ok := st.policy.Table(a.Relation); ok && t.Observed != nil && t.Observed.Columns != nil {
			return nil, "columns of a table would be hidden or masked"
		}
	}
	filtered, refused := st.shadow.filter.Rewrite(text, true)
	if refused != nil {
		return nil, "the predicates cannot be put into its text"
	}
	return &pair{st.wrap(res), st.wrap(filtered)}, ""
}

// wrap makes a text count its rows, and signs it where it must be.
func (st *state) wrap(res *rewrite.Result) string {
	inner := strings.TrimRight(strings.TrimSpace(res.Text), "; \t\r\n")
	text := counted + "\n" + inner + "\n) AS pgconsent_q"
	if res.NeedsSignature {
		return st.key.Sign(st.profile, text)
	}
	return text
}

// claimed are the session's settings that the policy maps to attributes, for a comparison to claim the same. An empty
// one claims nothing. It is nil where they cannot be told.
func (s *session) claimed(p *policy.Policy) map[string]string {
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

// observed records what the policy would have done to an execution that has ended, and has a sample of them compared.
// claims are those that it ran with.
func (s *session) observed(o *wouldBe, claims map[string]string, outcome verdict.Outcome) {
	if o == nil || outcome.Code != sqlstate.SuccessfulCompletion {
		return
	}
	r := o.record
	r.Session, r.Agent, r.Database, r.Rows = s.info.ID, s.agent.Name, s.db.cfg.Name, outcome.Rows
	switch {
	case o.pair == nil:
	case claims == nil:
		r.Skipped = "what the session claims cannot be told"
	case s.db.compares.take(s.agent.Name+"\x00"+r.Fingerprint, comparing{o.pair, r, s.attributes, claims}):
		r.Skipped = audit.ComparedSeparately
	default:
		r.Skipped = "not in the sample"
	}
	s.e.cfg.Audit.Observation(r)
}

// unprotected says loudly which tables are observed only. The caller holds mu.
func (d *database) unprotected(s *state) {
	var names []string
	for _, t := range s.policy.Observed() {
		names = append(names, t.Relation.Name.String())
	}
	d.e.cfg.Metrics.Observed(d.cfg.Name, len(names))
	if len(names) > 0 {
		d.e.cfg.Log.Warn("these tables are NOT PROTECTED: the policy only observes them, and agents read every row",
			"database", d.cfg.Name, "tables", strings.Join(names, ", "))
	}
}

// observedContracts adds what contracts over observed tables would have said. Those over enforced ones have been asked.
func (st *state) observedContracts(v *verdict.Verdict, values map[string]string) *verdict.Verdict {
	j := v.Detail.(*judgement)
	if st.shadow == nil || j.observed == nil || j.observed.record.SQLState != "" {
		return v
	}
	for _, statement := range j.statements {
		if decisions, err := st.shadow.policy.Explain(statement, values); err != nil {
			judged, own, would := *v, *j, *j.observed // verdicts are shared
			if i := slices.IndexFunc(decisions, func(d policy.ContractDecision) bool { return d.Verdict == "deny" }); i >= 0 {
				would.record.Contract = decisions[i].Contract
			}
			would.record.SQLState, would.record.Reason, would.record.Skipped, would.pair = string(err.Code),
				string(err.Reason), "it would be refused", nil
			own.observed, judged.Detail = &would, &own
			return &judged
		}
	}
	return v
}
