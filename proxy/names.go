package proxy

import (
	"strings"
	"sync/atomic"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
)

// The limits on a session's prepared statements and portals.
const (
	maxStatements     = 10_000
	maxStatementBytes = 64 << 20
	maxPortals        = 10_000
	maxName           = 1 << 10 // longest name in bytes; PostgreSQL compares 63 of them
)

// statement is a prepared statement of the client, from when the proxy handles its Parse or PREPARE.
type statement struct {
	verdict          *verdict.Verdict // only the goroutine that handles the client's messages uses the verdict
	byteSize         int              // size in bytes, which counts against maxStatementBytes
	group            uint64           // the group of its Parse, or of the Execute of its PREPARE
	parameterTypes   []byte           // the parameter types that its Parse declared, if it may be prepared again
	cached           *cachedStatement // the statement in the proxy's cache that stands for it; nil: none
	hiddenFromServer bool             // the server does not know the statement by the client's name
	inSQL            bool             // PREPARE made it, and not a Parse
	previous         *statement       // an earlier statement of the same name whose Parse or PREPARE is also in flight
	connection       uint64           // number of the session's connection on which its Parse was sent

	// Only the goroutine that handles the client's messages uses these fields.
	closeSent  bool   // the client has sent a Close for it
	closeGroup uint64 // the group of that Close
}

// noGroup is the group number of a Query. After a failed Query the server skips no messages, so a later message must
// not rely on what the Query makes before the server has answered it.
const noGroup = ^uint64(0)

func newStatement(v *verdict.Verdict, group uint64) *statement {
	return &statement{verdict: v, byteSize: 256 + len(v.Original) + len(v.Text), group: group}
}

// portal is a portal or cursor of the client, from when the proxy handles its Bind or DECLARE.
type portal struct {
	verdict         *verdict.Verdict
	group           uint64      // the group of its Bind, or of the Execute of its DECLARE
	formats         []int16     // the formats of its results, if the audit records keys of rows
	hasFailed       atomic.Bool // an error ended it while it ran
	withHold        bool        // the portal is a cursor WITH HOLD, which outlives its transaction
	isCursor        bool        // the portal is a cursor of DECLARE
	fetchedInBinary bool        // the cursor was declared BINARY, so a FETCH by a Query returns binary values
	txEnded         bool        // the portal's transaction has ended
	droppedByQuery  bool        // a Query behind its Bind has removed it

	// Only the goroutine that handles the client's messages uses these fields.
	fetchedInParts  bool          // an Execute has asked for only some of the rows
	inputPart       uint64        // the number of the input part in which the portal was opened
	completeExecute *executeEntry // the Execute in the same input part that runs the portal to its end; nil: none
	snapshot        *heldSnapshot // the lasting snapshot that the portal reads; nil: none is tracked
}

// names maps a session's names to statements and portals. The ledger's lock guards it.
type names struct {
	statements        byName[statement]
	portals           byName[portal]
	pendingStatements byName[statement] // the statements of the last Parse or PREPARE in flight
	pendingPortals    byName[portal]    // the portals of the last Bind or DECLARE in flight
	cache             *statementCache   // the statements that the proxy keeps prepared on the connection
	statementBytes    int               // the size of all statements, pending ones included
}

// removePending removes the statements and portals that e makes from the pending ones.
func (n *names) removePending(e entry) {
	switch e := e.(type) {
	case *parseEntry:
		if e.statement != nil && n.pendingStatements.get(e.name) == e.statement {
			n.pendingStatements.remove(e.name)
		}
	case *bindEntry:
		if e.portal != nil && n.pendingPortals.get(e.name) == e.portal {
			n.pendingPortals.remove(e.name)
		}
	}
	x := e.asExecution()
	if x == nil {
		return
	}
	for i, s := range x.preparedStatements {
		if s != nil {
			x.preparedStatements[i] = nil
			n.statementBytes -= s.byteSize
			n.removePendingStatement(x.verdict.Effects[i].Name, s)
		}
	}
	for i, p := range x.declaredPortals {
		if p != nil {
			x.declaredPortals[i] = nil
			n.removePendingPortal(x.verdict.Effects[i].Name, p)
		}
	}
}

func (n *names) removePendingStatement(name string, s *statement) {
	if n.pendingStatements.get(name) == s {
		n.pendingStatements.remove(name)
	}
}

func (n *names) removePendingPortal(name string, p *portal) {
	if n.pendingPortals.get(name) == p {
		n.pendingPortals.remove(name)
	}
}

// confirm applies the effect on names of a Parse, Bind or Close that the server has confirmed.
func (n *names) confirm(e entry) {
	n.removePending(e)
	if p, ok := e.(*parseEntry); ok && p.cached != nil {
		n.cache.confirm(p.cached)
	}
	if e.base().fromProxy {
		return
	}
	switch e := e.(type) {
	case *parseEntry:
		if e.statement != nil {
			n.dropStatement(e.name)
			e.statement.previous = nil
			n.statements.set(e.name, e.statement)
		}
	case *bindEntry:
		if e.portal != nil && !e.portal.droppedByQuery {
			n.portals.set(e.name, e.portal)
		}
	case *closeEntry:
		if e.object == 'S' {
			n.dropStatement(e.name)
		} else {
			n.portals.remove(e.name)
		}
	}
}

// confirmPrepared notes that the server has run the i-th statement of x, a PREPARE, so that its statement exists.
func (n *names) confirmPrepared(x *execution, i int) {
	if i >= len(x.preparedStatements) || x.preparedStatements[i] == nil {
		return
	}
	name, s := x.verdict.Effects[i].Name, x.preparedStatements[i]
	x.preparedStatements[i] = nil
	n.removePendingStatement(name, s)
	n.dropStatement(name)
	s.previous = nil
	n.statements.set(name, s)
}

// confirmDeclared notes that the server has run the i-th statement of x, a DECLARE, so that its cursor exists.
func (n *names) confirmDeclared(x *execution, i int) {
	if i >= len(x.declaredPortals) || x.declaredPortals[i] == nil {
		return
	}
	name, p := x.verdict.Effects[i].Name, x.declaredPortals[i]
	x.declaredPortals[i] = nil
	n.removePendingPortal(name, p)
	n.portals.set(name, p)
}

// undo applies the effect on names of a message that has failed. A failed Parse without a name has still removed the
// unnamed statement.
func (n *names) undo(e entry) {
	n.skip(e)
	if _, isParse := e.(*parseEntry); isParse && e.base().name == "" {
		n.dropStatement("")
	}
}

// skip forgets the pending statements and portals of e, which the server has skipped.
func (n *names) skip(e entry) {
	n.removePending(e)
	switch e := e.(type) {
	case *parseEntry:
		if e.statement != nil {
			n.statementBytes -= e.statement.byteSize
		}
		if e.cached != nil {
			n.cache.fail(e.cached)
		}
	case *queryEntry:
		if e.cached != nil {
			n.cache.fail(e.cached)
		}
	case *closeEntry:
		if e.fromProxy && strings.HasPrefix(e.upstreamName, cachedPrefix) {
			n.cache.namesToClose = append(n.cache.namesToClose, e.upstreamName)
		}
	}
}

func (n *names) dropStatement(name string) {
	if s := n.statements.get(name); s != nil {
		n.statementBytes -= s.byteSize
		n.statements.remove(name)
	}
}

// dropUnnamed removes the statement and the portal without a name, as a Query does.
func (n *names) dropUnnamed() {
	n.dropStatement("")
	n.portals.remove("")
}

// deallocate applies DEALLOCATE of a name, or DEALLOCATE ALL if name is empty. ALL does not remove the unnamed
// statement.
func (n *names) deallocate(name string) {
	if name != "" {
		n.dropStatement(name)
		return
	}
	for name := range n.statements.all() {
		if name != "" {
			n.dropStatement(name)
		}
	}
}

// closePortal applies CLOSE of a name, or CLOSE ALL if name is empty.
func (n *names) closePortal(name string) {
	if name == "" {
		n.dropPortals(true)
		return
	}
	n.portals.remove(name)
}

// dropPortals removes the portals that end with a transaction. Cursors WITH HOLD stay, unless withHoldToo is set. A
// rollback ends those as well, but the proxy leaves it to the server to refuse their use.
func (n *names) dropPortals(withHoldToo bool) {
	for name, p := range n.portals.all() {
		p.txEnded = true
		if withHoldToo || !p.withHold {
			n.portals.remove(name)
		}
	}
}
