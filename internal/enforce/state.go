package enforce

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/seal"
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/migrations"
	"github.com/pgconsent/pgconsent/policy"
	"github.com/pgconsent/pgconsent/rewrite"
	"github.com/pgconsent/pgconsent/rls"
)

// state is everything a decision depends on. It never changes; another one has another epoch. States of the same rights
// differ in what statements cost: what was allowed under one is allowed under the other.
type state struct {
	epoch    uint64
	rights   uint64 // the epoch of the first of these rights
	policy   *policy.Policy
	snapshot *catalog.Snapshot
	plan     *rls.Plan
	signing  *rewrite.Rewriter // may name signed gate views; plain where the gate door is shut
	door     *rewrite.Rewriter // signing where it is not
	plain    *rewrite.Rewriter // never does: for sessions whose seal is of another profile or key
	shadow   *shadow           // what the policy would do to tables that it observes only; nil: there are none
	key      seal.Key
	profile  string
	versions verdict.Versions

	asked     []string      // the live attributes that each statement is judged or recorded with
	unwatched string        // a table whose changes are not noticed, and on which others depend; "": none
	unnoticed unnoticed     // what else is not
	timed     bool          // time alone can hide a row
	clocked   clocked       // of which relations
	foreign   foreign       // which relations are read from other servers
	suspended suspended     // what is not served
	sizes     catalog.Sizes // of the tables that predicates concern; nil: not known yet
}

// rules names what decides which rows are shown: what began under others ends.
func (s *state) rules() string { return s.plan.Hash() + s.suspended.String() }

// equal tells whether two states judge alike.
func (s *state) equal(o *state) bool {
	return s.versions == o.versions && s.suspended.equal(o.suspended.roots) && s.profile == o.profile &&
		s.plan.Hash() == o.plan.Hash() && sameKey(s.key, o.key)
}

func sameKey(a, b seal.Key) bool { return a.ID == b.ID && bytes.Equal(a.Secret, b.Secret) }

// view is what is known of a database at one moment.
type view struct {
	state    *state          // nil: refusal says why
	refusal  *sqlstate.Error // why agents are not served
	verified time.Time       // when the database was last looked at with success
	told     bool            // the database tells of DDL: it refuses what was decided under other catalogs
	offset   time.Duration   // the database's clock minus ours
	catalog  int64           // the version of the catalogs that was looked at, or an older one
	server   string          // which server was looked at
	shut     string          // why statements take no signed path; "": they may, or there is none
}

// current returns the state in force, or why agents are refused.
func (d *database) current() (*view, *sqlstate.Error) {
	v := d.view.Load()
	switch {
	case v == nil:
		return nil, notServed(errors.New("the database has not been looked at yet"))
	case v.refusal != nil:
		return nil, v.refusal
	case v.stale(d.e.cfg.StaleAfter) && !(v.told && d.looking.Load()):
		return nil, lost(nil)
	default:
		return v, nil
	}
}

// stale tells whether the last look is older than this.
func (v *view) stale(after time.Duration) bool { return time.Since(v.verified) > after }

// lost is the refusal while the server does not answer.
func lost(cause error) *sqlstate.Error {
	return sqlstate.New(sqlstate.CannotConnectNow, sqlstate.ReasonUpstream,
		"pgconsent cannot verify the state of the database: it cannot be reached, or does not answer in time").
		WithHint("Statements of agents are refused until it can; try again in a few seconds.").WithCause(cause)
}

// notServed is the refusal while the database is reached and its walls cannot be vouched for.
func notServed(cause error) *sqlstate.Error {
	what := ""
	switch {
	case errors.Is(cause, migrations.ErrNotInstalled):
		what = "the policy of this database is not installed"
	case errors.Is(cause, migrations.ErrOtherPolicy):
		what = "another policy is installed in this database than the one that is configured"
	case errors.Is(cause, migrations.ErrOtherSchema):
		what = "the schema of this database has changed since its policy was installed"
	}
	if what != "" {
		return sqlstate.New(sqlstate.CannotConnectNow, sqlstate.ReasonStale, "%s", what).
			WithHint("Statements of agents are refused until the operator has run pgconsent migrate.").WithCause(cause)
	}
	return sqlstate.New(sqlstate.CannotConnectNow, sqlstate.ReasonStale,
		"this database is not in the state that its policy needs").
		WithHint("Statements of agents are refused until its operator has put it right: pgconsent doctor says " +
			"what is wrong.").WithCause(cause)
}

// profile names a set of equal rights: a signature of one is worthless under another.
func profile(c Database, p *policy.Policy, plan *rls.Plan) string {
	h := sha256.New()
	for _, part := range []string{"profile", c.AgentRole, p.Version(), plan.Hash()} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
