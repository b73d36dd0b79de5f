package proxy

import (
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// nameUses is what a text that is about to run does with the names of the session's statements and portals.
type nameUses struct {
	namedVerdicts      []*verdict.Verdict // verdicts on the statements that the text runs by name
	preparedStatements []*statement       // the statements that PREPARE makes, by the verdict's effects
	declaredPortals    []*portal          // the portals that DECLARE makes, by the verdict's effects
	fetchedPortals     []*portal          // the portals that FETCH and MOVE run
	dropsSeal          bool
	ticket             verdict.Ticket // ticket for the record of a refusal
}

// setNames gives an execution what its text does with names.
func (x *execution) setNames(n *nameUses) {
	x.namedVerdicts, x.preparedStatements, x.declaredPortals, x.dropsSeal = n.namedVerdicts, n.preparedStatements,
		n.declaredPortals, n.dropsSeal
}

// nameResolver finds what the effects of a text mean for names. Each statement and portal that the text names must
// exist, be allowed by the current policy and catalog, and be a query.
type nameResolver struct {
	nameUses

	r              *requests
	verdict        *verdict.Verdict
	group          uint64                // the group of the message
	madeStatements map[string]*statement // statements that the same text made; nil where it has deallocated one
	allDeallocated bool                  // the same text has deallocated all other statements
	openedPortals  map[string]*portal    // portals that the same text opened
}

// resolveNames finds what the text of verdict v does with names. group is the group of its message.
func (r *requests) resolveNames(v *verdict.Verdict, group uint64) (n nameUses, refusal *sqlstate.Error, err error) {
	if len(v.Effects) == 0 {
		return n, nil, nil
	}
	// Statements that the text runs by name may run with other claims than the current ones.
	r.claimsUnknown = verdict.ClaimsChangeWithin(v.Effects)
	defer func() { r.claimsUnknown = false }()
	resolver := nameResolver{r: r, verdict: v, group: group}
	for i, e := range v.Effects {
		if refusal, err := resolver.resolve(i, e); refusal != nil || err != nil {
			return resolver.nameUses, refusal, err
		}
	}
	for i, st := range resolver.preparedStatements {
		if st != nil {
			r.ledger.addPendingStatement(v.Effects[i].Name, st)
		}
	}
	for i, p := range resolver.declaredPortals {
		if p != nil {
			r.ledger.addPendingPortal(v.Effects[i].Name, p)
		}
	}
	return resolver.nameUses, nil, nil
}

// resolve handles the i-th effect of the text.
func (n *nameResolver) resolve(i int, e verdict.Effect) (refusal *sqlstate.Error, err error) {
	switch e.Kind {
	case verdict.EffectPrepare:
		return n.prepare(i, e), nil
	case verdict.EffectDeallocate:
		n.deallocate(e.Name)
	case verdict.EffectExecute:
		return n.execute(e.Name)
	case verdict.EffectExplain:
		st, err := n.statement(e.Name)
		if st == nil && err == nil {
			return noStatementError(e.Name), nil
		}
		return nil, err
	case verdict.EffectDeclare:
		return n.declare(i, e), nil
	case verdict.EffectFetch:
		return n.fetch(e.Name)
	case verdict.EffectSet, verdict.EffectNone:
		if e.Claim != nil {
			return n.changeClaim(e.Name, e.Claim.NamesRepresentedUser)
		}
	case verdict.EffectResetAll:
		return n.changeClaim("all", e.Claim != nil && e.Claim.NamesRepresentedUser)
	case verdict.EffectDiscard:
		return n.dropSeal()
	}
	return nil, nil
}

// prepare notes the statement that a PREPARE makes.
func (n *nameResolver) prepare(i int, e verdict.Effect) *sqlstate.Error {
	st := newStatement(e.Body, n.group)
	st.inSQL = true
	if !n.r.ledger.mayPrepare(st) {
		return tooManyStatementsError()
	}
	if n.preparedStatements == nil {
		n.preparedStatements, n.madeStatements = make([]*statement, len(n.verdict.Effects)), map[string]*statement{}
	}
	n.preparedStatements[i], n.madeStatements[e.Name] = st, st
	return nil
}

// deallocate notes that a statement is removed.
func (n *nameResolver) deallocate(name string) {
	if n.madeStatements == nil {
		n.madeStatements = map[string]*statement{}
	}
	if name == "" {
		clear(n.madeStatements)
		n.allDeallocated = true
	} else {
		n.madeStatements[name] = nil
	}
}

// statement returns the prepared statement with a name as it is when the text comes to it; nil: there is none.
func (n *nameResolver) statement(name string) (*statement, error) {
	if st, isKnown := n.madeStatements[name]; isKnown || n.allDeallocated {
		return st, nil
	}
	return n.r.ledger.statement(name, n.r.group.number, n.r.flush)
}

// execute adds a prepared statement to the runs, or returns the reason why it may not run.
func (n *nameResolver) execute(name string) (*sqlstate.Error, error) {
	st, err := n.statement(name)
	if err != nil {
		return nil, err
	}
	if st == nil {
		return noStatementError(name), nil
	}
	v, refusal, t := n.r.recheck(st.verdict)
	if refusal != nil {
		n.ticket = t
		return refusal, nil
	}
	st.verdict = v
	if !v.IsRunnable() {
		return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonStatement,
			"prepared statement \"%s\" is no query: EXECUTE cannot run it", name).
			WithHint("Bind and execute it in the extended protocol, where it was prepared."), nil
	}
	if v.ExpectsForms {
		return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonStatement,
			"prepared statement \"%s\" was prepared by the protocol and takes a pattern, a search, a document or a setting "+
				"as a parameter: EXECUTE cannot run it", name).
			WithHint("Bind and execute it in the extended protocol, or prepare it with PREPARE."), nil
	}
	n.namedVerdicts = append(n.namedVerdicts, v)
	return nil, nil
}

// declare notes the portal that a DECLARE makes.
func (n *nameResolver) declare(i int, e verdict.Effect) *sqlstate.Error {
	if !n.r.ledger.mayBind() {
		return tooManyPortalsError()
	}
	if n.declaredPortals == nil {
		n.declaredPortals, n.openedPortals = make([]*portal, len(n.verdict.Effects)), map[string]*portal{}
	}
	p := &portal{verdict: e.Body, group: n.group, isCursor: true, withHold: e.WithHold, fetchedInBinary: e.Binary,
		inputPart: n.r.snapshots.inputPart}
	n.declaredPortals[i], n.openedPortals[e.Name] = p, p
	return nil
}

// fetch adds the query of a cursor to the runs, or returns the reason why it may not run.
func (n *nameResolver) fetch(name string) (*sqlstate.Error, error) {
	p := n.openedPortals[name]
	if p == nil {
		var err error
		if p, err = n.r.portal(name); err != nil {
			return nil, err
		}
	}
	if p == nil {
		return sqlstate.New(invalidCursorName, sqlstate.ReasonNone, "cursor \"%s\" does not exist", name), nil
	}
	if !n.r.ledger.isUsable(p) {
		return notRunnableError(name), nil
	}
	v, refusal, t := n.r.recheck(p.verdict)
	if refusal != nil {
		n.ticket = t
		return refusal, nil
	}
	if !v.IsRunnable() {
		return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonStatement,
			"portal \"%s\" is no query: FETCH cannot run it", name).
			WithHint("Execute it in the extended protocol, where it was bound."), nil
	}
	p.verdict = v
	n.namedVerdicts, n.fetchedPortals = append(n.namedVerdicts, v), append(n.fetchedPortals, p)
	return nil, nil
}

// changeClaim refuses to change a setting that decides which rows an open cursor WITH HOLD will read. Where the setting
// says for whom the session acts, no cursor may be open: the next user would get rows of this one.
func (n *nameResolver) changeClaim(setting string, acts bool) (*sqlstate.Error, error) {
	for _, p := range n.openedPortals {
		if p.withHold || acts {
			return openHoldCursorError(setting), nil
		}
	}
	isQuery := n.group == noGroup // a Query drops the unnamed portal
	if acts && n.r.ledger.hasOpenResult(isQuery) {
		if err := n.r.flush(); err != nil {
			return nil, err
		}
		n.r.ledger.waitOutsideTx()
		if n.r.ledger.hasOpenResult(isQuery) {
			return openResultError(setting), nil
		}
	}
	if isPrefix, err := n.r.hasUnreadHold(); err != nil {
		return nil, err
	} else if isPrefix {
		return openHoldCursorError(setting), nil
	}
	return nil, nil
}

// hasUnreadHold reports whether a cursor WITH HOLD is open whose rows are not read yet. The server reads them when its
// transaction ends, with the claims of that time.
func (r *requests) hasUnreadHold() (bool, error) {
	if !r.ledger.hasUnreadHold() {
		return false, nil
	}
	if err := r.flush(); err != nil {
		return false, err
	}
	r.ledger.waitOutsideTx()
	return r.ledger.hasUnreadHold(), nil
}

// dropSeal refuses to take the seal away inside a transaction.
func (n *nameResolver) dropSeal() (*sqlstate.Error, error) {
	if err := n.r.flush(); err != nil {
		return nil, err
	}
	if n.r.group.executes > 0 || !n.r.ledger.waitTxStatus() {
		return discardInTxError(), nil
	}
	n.dropsSeal = true
	return nil, nil
}

func openResultError(setting string) *sqlstate.Error {
	return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonSetting,
		"parameter %q cannot be changed while a cursor of this transaction is open", setting).
		WithHint("It shows rows of the user for whom it was opened: close it, or end the transaction, first.")
}

func openHoldCursorError(setting string) *sqlstate.Error {
	return sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonSetting,
		"parameter %q cannot be changed while a cursor WITH HOLD of this transaction is open", setting).
		WithHint("Its rows are read when the transaction commits: commit first, or close the cursor.")
}
