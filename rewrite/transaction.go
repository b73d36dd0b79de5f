package rewrite

import (
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// transactionStmt visits BEGIN, COMMIT, ROLLBACK and savepoints.
func (w *walker) transactionStmt(t *sqltext.TransactionStmt) verdict.Effect {
	w.countNode("TransactionStmt")
	if t.Chain {
		w.refuse(refusalOf("TransactionStmt.chain"))
	}
	if t.Gid != "" {
		w.refuse(refusalOf("TransactionStmt.gid"))
	}
	hold := w.checkTransactionModes(t.Options)
	switch t.Kind {
	case sqltext.TRANS_STMT_BEGIN, sqltext.TRANS_STMT_START:
		return verdict.Effect{Kind: verdict.EffectBegin, SnapshotHold: hold}
	case sqltext.TRANS_STMT_COMMIT:
		return verdict.Effect{Kind: verdict.EffectEnd}
	case sqltext.TRANS_STMT_ROLLBACK:
		return verdict.Effect{Kind: verdict.EffectEnd, IsRollback: true}
	case sqltext.TRANS_STMT_SAVEPOINT:
		return verdict.Effect{Kind: verdict.EffectSavepoint, Name: t.SavepointName}
	case sqltext.TRANS_STMT_RELEASE:
		return verdict.Effect{Kind: verdict.EffectRelease, Name: t.SavepointName}
	case sqltext.TRANS_STMT_ROLLBACK_TO:
		return verdict.Effect{Kind: verdict.EffectRollbackTo, Name: t.SavepointName}
	case sqltext.TRANS_STMT_PREPARE, sqltext.TRANS_STMT_COMMIT_PREPARED, sqltext.TRANS_STMT_ROLLBACK_PREPARED:
		w.refuse(refusalOf("TransactionStmt.gid"))
	default:
		w.refuse(refusalOf("TransactionStmt.kind"))
	}
	return verdict.Effect{}
}

// checkTransactionModes checks ISOLATION LEVEL, READ ONLY and DEFERRABLE. It tells whether all statements of the
// transaction share one snapshot.
func (w *walker) checkTransactionModes(options []*sqltext.Node) (hold verdict.SnapshotHold) {
	for _, n := range options {
		d := n.GetDefElem()
		if d == nil || d.Defnamespace != "" {
			w.refuse(refusalOf("TransactionStmt.options"))
			return verdict.NoSnapshotHold
		}
		w.countNode("DefElem")
		w.countNode("A_Const")
		c := d.GetArg().GetAConst()
		switch d.Defname {
		case "transaction_isolation":
			switch level := c.GetSval().GetSval(); {
			case isReadCommitted(level):
			case holdsSnapshot(level):
				hold = verdict.HoldForTransaction
			default:
				w.refuseAt(refusalOf("TransactionStmt.options"), d.Location)
			}
		case "transaction_read_only", "transaction_deferrable":
			if c == nil {
				w.refuseAt(refusalOf("TransactionStmt.options"), d.Location)
			}
		default:
			w.refuseAt(refusalOf("TransactionStmt.options"), d.Location)
		}
	}
	return hold
}

// holdsSnapshot tells whether all statements of a transaction share one snapshot at this isolation level.
func holdsSnapshot(level string) bool {
	level = strings.ToLower(level)
	return level == "repeatable read" || level == "serializable"
}

// isReadCommitted tells whether each statement gets its own snapshot at this isolation level. PostgreSQL treats READ
// UNCOMMITTED as READ COMMITTED.
func isReadCommitted(level string) bool {
	level = strings.ToLower(level)
	return level == "read committed" || level == "read uncommitted"
}
