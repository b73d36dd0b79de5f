package proxy

import (
	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// nameUses says what a text that is about to run does by name with prepared statements and portals (PREPARE, EXECUTE,
// DECLARE, FETCH …).
type nameUses struct {
	namedVerdicts      []*verdict.Verdict // verdicts on the statements that the text runs by name
	preparedStatements []*statement       // the statement that the i-th effect of the verdict, a PREPARE, makes
	declaredPortals    []*portal          // the portal that the i-th effect of the verdict, a DECLARE, makes
	fetchedPortals     []*portal          // the portals that FETCH and MOVE run
	dropsSeal          bool
	ticket             verdict.Ticket // the audit's ticket for a refusal
}

// setNames copies the uses of names from n to the execution.
func (x *execution) setNames(n *nameUses) {
	x.namedVerdicts, x.preparedStatements, x.declaredPortals, x.dropsSeal = n.namedVerdicts, n.preparedStatements,
		n.declaredPortals, n.dropsSeal
}

// nameResolver resolves the names in a text to statements and portals. Each one that the text runs must exist, be
// allowed by the current policy and catalogs, and be a query.
type nameResolver struct {
	nameUses

	r              *requests
	verdict        *verdict.Verdict
	group          uint64                // the number of the message's group
	madeStatements map[string]*statement // statements that the same text has made; nil value: deallocated
	allDeallocated bool                  // the same text has run DEALLOCATE ALL before
	openedPortals  map[string]*portal    // cursors that the same text has declared
}

// resolveNames resolves the names in the text of v, and notes the statements and portals that the text makes as
// pending. group is the number of its message's group (messages up to a Sync).
func (r *requests) resolveNames(v *verdict.Verdict, group uint64) (n nameUses, refusal *sqlstate.Error, err error) {
	if len(v.Effects) == 0 {
		return n, nil, nil
	}
	// The text may change claims before it runs a statement by name, so the current claims may not be right.
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

// resolve handles e, the i-th effect of the text.
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

// deallocate notes that the text removes a statement, or all if name is "".
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

// statement returns the prepared statement that a name means at this point of the text, or nil.
func (n *nameResolver) statement(name string) (*statement, error) {
	if st, isKnown := n.madeStatements[name]; isKnown || n.allDeallocated {
		return st, nil
	}
	return n.r.ledger.statement(name, n.r.group.number, n.r.flush)
}

// execute adds the statement that an EXECUTE names to namedVerdicts, or returns the reason why it may not run.
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

// fetch adds the query of the cursor that a FETCH or MOVE names to namedVerdicts, or returns the reason why it may not
// run.
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
	if p.hasFailed.Load() {
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

// changeClaim handles a change of a setting that the policy maps to an attribute. It refuses the change while an open
// cursor WITH HOLD has yet to read its rows, which depend on the setting. A setting that says for whom the session acts
// (acts) cannot change while any cursor is open: the next user could get rows of this one.
func (n *nameResolver) changeClaim(setting string, acts bool) (*sqlstate.Error, error) {
	for _, p := range n.openedPortals {
		if p.withHold || acts {
			return openHoldCursorError(setting), nil
		}
	}
	isQuery := n.group == noGroup // a Query drops the unnamed portal, so that portal does not count
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

// hasUnreadHold reports whether a cursor WITH HOLD is open whose rows the server has not read yet. The server reads
// them when the transaction commits, with the claims of that time.
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

// dropSeal notes that the text, a DISCARD ALL, removes the session's seal (signed identity). It refuses that inside a
// transaction.
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
