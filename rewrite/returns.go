package rewrite

import "github.com/pgconsent/pgconsent/internal/sql/sqltext"

// mayReturnRows tells whether a statement may return rows. For PREPARE and DECLARE it tells that of the statement
// inside. It is true for kinds of statements that it does not know.
func mayReturnRows(n *sqltext.Node) bool {
	switch kind := n.GetNode().(type) {
	case *sqltext.Node_InsertStmt:
		return len(kind.InsertStmt.ReturningList) > 0
	case *sqltext.Node_UpdateStmt:
		return len(kind.UpdateStmt.ReturningList) > 0
	case *sqltext.Node_DeleteStmt:
		return len(kind.DeleteStmt.ReturningList) > 0
	case *sqltext.Node_MergeStmt: // MERGE has no RETURNING in the parser's grammar
		return false
	case *sqltext.Node_CopyStmt:
		return !kind.CopyStmt.IsFrom
	case *sqltext.Node_PrepareStmt:
		return mayReturnRows(kind.PrepareStmt.Query)
	case *sqltext.Node_FetchStmt:
		return !kind.FetchStmt.Ismove
	case *sqltext.Node_TransactionStmt, *sqltext.Node_VariableSetStmt, *sqltext.Node_DeallocateStmt,
		*sqltext.Node_ClosePortalStmt,
		*sqltext.Node_DiscardStmt, *sqltext.Node_UnlistenStmt, *sqltext.Node_ListenStmt, *sqltext.Node_NotifyStmt, *sqltext.Node_DoStmt:
		return false
	}
	return true
}
