package rewrite

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// fingerprint returns a hash of the shape of a text: its tokens in lower case, with one sign for a literal, a parameter
// or a list of them. The value of a literal cannot be found out from the hash.
func fingerprint(source *sqltext.Source) string {
	var shape strings.Builder
	constant := false // true after a literal
	for i, t := range source.Tokens {
		switch {
		case t.IsConstant():
			if !constant {
				shape.WriteString(" ?")
			}
			constant = true
			continue
		case t.Kind == sqltext.Comma && constant && i+1 < len(source.Tokens) && source.Tokens[i+1].IsConstant():
			continue
		}
		constant = false
		shape.WriteByte(' ')
		if s := source.TokenText(t); s[0] == '"' {
			shape.WriteString(s)
		} else {
			shape.WriteString(strings.ToLower(s))
		}
	}
	sum := sha256.Sum256([]byte(shape.String()))
	return hex.EncodeToString(sum[:8])
}

// tagOf returns the kind of a text for the audit record and the metrics. It is one of a fixed set of words.
func tagOf(tree *sqltext.ParseResult) string {
	switch len(tree.Stmts) {
	case 0:
		return ""
	case 1:
	default:
		return "multi"
	}
	return tagOfStatement(tree.Stmts[0].GetStmt())
}

func tagOfStatement(stmt *sqltext.Node) string {
	switch n := stmt.GetNode().(type) {
	case *sqltext.Node_SelectStmt:
		return "SELECT"
	case *sqltext.Node_InsertStmt:
		return "INSERT"
	case *sqltext.Node_UpdateStmt:
		return "UPDATE"
	case *sqltext.Node_DeleteStmt:
		return "DELETE"
	case *sqltext.Node_MergeStmt:
		return "MERGE"
	case *sqltext.Node_CopyStmt:
		return "COPY"
	case *sqltext.Node_PrepareStmt:
		return "PREPARE"
	case *sqltext.Node_ExecuteStmt:
		return "EXECUTE"
	case *sqltext.Node_DeallocateStmt:
		return "DEALLOCATE"
	case *sqltext.Node_DeclareCursorStmt:
		return "DECLARE"
	case *sqltext.Node_FetchStmt:
		if n.FetchStmt.Ismove {
			return "MOVE"
		}
		return "FETCH"
	case *sqltext.Node_ClosePortalStmt:
		return "CLOSE"
	case *sqltext.Node_ExplainStmt:
		return "EXPLAIN"
	case *sqltext.Node_DiscardStmt:
		return "DISCARD"
	case *sqltext.Node_UnlistenStmt:
		return "UNLISTEN"
	case *sqltext.Node_ListenStmt:
		return "LISTEN"
	case *sqltext.Node_NotifyStmt:
		return "NOTIFY"
	case *sqltext.Node_VariableShowStmt:
		return "SHOW"
	case *sqltext.Node_VariableSetStmt:
		if n.VariableSetStmt.Kind == sqltext.VAR_RESET || n.VariableSetStmt.Kind == sqltext.VAR_RESET_ALL {
			return "RESET"
		}
		return "SET"
	case *sqltext.Node_TransactionStmt:
		switch n.TransactionStmt.Kind {
		case sqltext.TRANS_STMT_BEGIN, sqltext.TRANS_STMT_START:
			return "BEGIN"
		case sqltext.TRANS_STMT_COMMIT:
			return "COMMIT"
		case sqltext.TRANS_STMT_ROLLBACK, sqltext.TRANS_STMT_ROLLBACK_TO:
			return "ROLLBACK"
		case sqltext.TRANS_STMT_SAVEPOINT:
			return "SAVEPOINT"
		case sqltext.TRANS_STMT_RELEASE:
			return "RELEASE"
		}
		return "TRANSACTION"
	}
	if r := refusalIndex[sqltext.NodeKind(stmt)]; r != nil {
		verb, _, _ := strings.Cut(r.Construct, " ")
		return strings.TrimSuffix(verb, ",")
	}
	return "other"
}
