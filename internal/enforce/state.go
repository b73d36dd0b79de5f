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

// state has everything on which decisions depend. It never changes; each new state has a new epoch. States with the
// same rightsEpoch allow the same statements and differ only in the sizes of tables, by which the rewriter estimates
// costs.
type state struct {
	epoch       uint64
	rightsEpoch uint64 // the epoch of the first state with the same rights
	policy      *policy.Policy
	snapshot    *catalog.Snapshot
	plan        *rls.Plan
	// activeRewriter is signingRewriter, or unsignedRewriter while the signed path is off.
	activeRewriter  *rewrite.Rewriter
	signingRewriter *rewrite.Rewriter // makes texts of the signed path where possible
	// unsignedRewriter never makes texts of the signed path. It is also for sessions whose seal has another profile or
	// key.
	unsignedRewriter *rewrite.Rewriter
	observedPolicy   *observedPolicy // what the policy would do to the tables that it only observes; nil: there are none
	sealKey          seal.Key
	profile          string
	versions         verdict.Versions

	neededLiveAttributes []string               // live attributes that decisions or audit records of each statement need
	untrackedTable       string                 // a table that attributes come from and no trigger records; "": none
	untrackedRelations   untrackedRelations     // the other relations whose changes no trigger records
	timeHidesRows        bool                   // time alone can hide a row of some relation
	timeDependent        timeDependentRelations // the relations in which time alone can hide a row
	foreignRelations     foreignRelations       // the relations whose rows come from other servers
	suspension           suspension             // the tables and functions that are suspended
	sizes                catalog.Sizes          // the sizes of the tables that predicates read; nil: not known yet
}

// rulesVersion returns a name for the rules that decide which rows are shown. If it changes, reading on in an older
// transaction snapshot or cursor is refused.
func (s *state) rulesVersion() string { return s.plan.Hash() + s.suspension.String() }

// equal reports whether two states have the same versions, key, profile and suspensions, so that they allow the same
// statements.
func (s *state) equal(o *state) bool {
	return s.versions == o.versions && s.suspension.equal(o.suspension.suspensionCauses) && s.profile == o.profile &&
		s.plan.Hash() == o.plan.Hash() && sameKey(s.sealKey, o.sealKey)
}

func sameKey(a, b seal.Key) bool { return a.ID == b.ID && bytes.Equal(a.Secret, b.Secret) }

// servingState says how agents of a database are served at one time: by which state, or why not. It never changes.
type servingState struct {
	state               *state          // the active state; nil: agents are refused
	refusal             *sqlstate.Error // why agents are refused; nil: they are served
	verified            time.Time       // when the last successful probe of the database began
	tracksDDL           bool            // the database refuses statements decided before the last DDL
	clockOffset         time.Duration   // the database's clock minus the proxy's
	catalogVersion      int64           // the version of the catalogs that the last probe read, or an older one
	server              string          // when the probed server was started, which identifies it
	signedPathOffReason string          // why the signed path is off; "": it is on, or not configured
}

// current returns the serving state, whose field state is set, or the refusal if agents are refused.
func (d *database) current() (*servingState, *sqlstate.Error) {
	v := d.servingState.Load()
	switch {
	case v == nil:
		return nil, notServedRefusal(errors.New("the catalogs of the database have not been read yet"))
	case v.refusal != nil:
		return nil, v.refusal
	case v.isStale(d.enforcer.cfg.StaleAfter) && !(v.tracksDDL && d.probing.Load()):
		return nil, unavailableRefusal(nil)
	default:
		return v, nil
	}
}

// isStale reports whether more time than after has passed since the last successful probe began.
func (v *servingState) isStale(after time.Duration) bool { return time.Since(v.verified) > after }

// unavailableRefusal is the refusal of statements while the server does not answer.
func unavailableRefusal(cause error) *sqlstate.Error {
	return sqlstate.New(sqlstate.CannotConnectNow, sqlstate.ReasonUpstream,
		"pgconsent cannot verify the state of the database: it cannot be reached, or does not answer in time").
		WithHint("Statements of agents are refused until it can; try again in a few seconds.").WithCause(cause)
}

// notServedRefusal is the refusal of statements if the database answers but pgconsent cannot verify its enforcement
// layers.
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

// profileName returns a name for the rights that agents have under a policy. The database rejects a signature that was
// made for another profile.
func profileName(c Database, p *policy.Policy, plan *rls.Plan) string {
	h := sha256.New()
	for _, part := range []string{"profile", c.AgentRole, p.Version(), plan.Hash()} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
