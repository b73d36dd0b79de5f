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

// state has everything on which a decision depends. It is immutable; each new state has a new epoch. States with the
// same rightsEpoch allow the same statements and differ only in estimates of cost.
type state struct {
	epoch       uint64
	rightsEpoch uint64 // the epoch of the first state with the same rights
	policy      *policy.Policy
	snapshot    *catalog.Snapshot
	plan        *rls.Plan
	// rewriter that may name signed views; unsignedRewriter while the signed path is off
	activeRewriter  *rewrite.Rewriter
	signingRewriter *rewrite.Rewriter // rewriter that makes texts of the signed path if possible
	// rewriter that never makes texts of the signed path: for sessions with a seal of another profile or key
	unsignedRewriter *rewrite.Rewriter
	observedPolicy   *observedPolicy // what the policy would do to tables that it only observes; nil: there are none
	sealKey          seal.Key
	profile          string
	versions         verdict.Versions

	neededLiveAttributes []string               // the live attributes that each statement is judged or recorded with
	untrackedTable       string                 // a table of attributes without change triggers; "": none
	untrackedRelations   untrackedRelations     // other relations whose changes no trigger records
	timeHidesRows        bool                   // time alone can hide a row of some relation
	timeDependent        timeDependentRelations // the relations in which time alone can hide a row
	foreignRelations     foreignRelations       // the relations that are read from other servers
	suspension           suspension             // the tables and functions that are suspended
	sizes                catalog.Sizes          // the sizes of the tables that predicates read; nil: not known yet
}

// rulesVersion returns a name for the rules that decide which rows are shown. Transactions and cursors that began under
// another version end.
func (s *state) rulesVersion() string { return s.plan.Hash() + s.suspension.String() }

// equal reports whether two states allow the same statements.
func (s *state) equal(o *state) bool {
	return s.versions == o.versions && s.suspension.equal(o.suspension.suspensionCauses) && s.profile == o.profile &&
		s.plan.Hash() == o.plan.Hash() && sameKey(s.sealKey, o.sealKey)
}

func sameKey(a, b seal.Key) bool { return a.ID == b.ID && bytes.Equal(a.Secret, b.Secret) }

// servingState is what is known of a database at one time; it does not change.
type servingState struct {
	state               *state          // the active state; nil: refusal says why there is none
	refusal             *sqlstate.Error // why agents are not served
	verified            time.Time       // when the last successful probe of the database began
	tracksDDL           bool            // event triggers count DDL: the database refuses statements decided before it
	clockOffset         time.Duration   // the database's clock minus the proxy's
	catalogVersion      int64           // the version of the catalogs that the probe read, or an older version
	server              string          // start time of the server that was probed, which identifies it
	signedPathOffReason string          // why statements take no signed path; "": they may take it, or there is none
}

// current returns the current view, whose state is set, or the refusal that says why agents are refused.
func (d *database) current() (*servingState, *sqlstate.Error) {
	v := d.servingState.Load()
	switch {
	case v == nil:
		return nil, notServedRefusal(errors.New("the database has not been looked at yet"))
	case v.refusal != nil:
		return nil, v.refusal
	case v.isStale(d.enforcer.cfg.StaleAfter) && !(v.tracksDDL && d.probing.Load()):
		return nil, unavailableRefusal(nil)
	default:
		return v, nil
	}
}

// isStale reports whether the last successful probe is longer ago than after.
func (v *servingState) isStale(after time.Duration) bool { return time.Since(v.verified) > after }

// unavailableRefusal is the refusal while the server does not answer.
func unavailableRefusal(cause error) *sqlstate.Error {
	return sqlstate.New(sqlstate.CannotConnectNow, sqlstate.ReasonUpstream,
		"pgconsent cannot verify the state of the database: it cannot be reached, or does not answer in time").
		WithHint("Statements of agents are refused until it can; try again in a few seconds.").WithCause(cause)
}

// notServedRefusal is the refusal while the database answers and its enforcement layers cannot be verified.
func notServedRefusal(cause error) *sqlstate.Error {
	message := ""
	switch {
	case errors.Is(cause, migrations.ErrNotInstalled):
		message = "the policy of this database is not installed"
	case errors.Is(cause, migrations.ErrOtherPolicy):
		message = "another policy is installed in this database than the one that is configured"
	case errors.Is(cause, migrations.ErrOtherSchema):
		message = "the schema of this database has changed since its policy was installed"
	}
	if message != "" {
		return sqlstate.New(sqlstate.CannotConnectNow, sqlstate.ReasonStale, "%s", message).
			WithHint("Statements of agents are refused until the operator has run pgconsent migrate.").WithCause(cause)
	}
	return sqlstate.New(sqlstate.CannotConnectNow, sqlstate.ReasonStale,
		"this database is not in the state that its policy needs").
		WithHint("Statements of agents are refused until its operator has put it right: pgconsent doctor says " +
			"what is wrong.").WithCause(cause)
}

// profileName returns the name of a set of rights. The database rejects a signature that was made for another profile.
func profileName(c Database, p *policy.Policy, plan *rls.Plan) string {
	h := sha256.New()
	for _, part := range []string{"profile", c.AgentRole, p.Version(), plan.Hash()} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
