package sqltext

import "github.com/pgconsent/pgconsent/internal/sql/sqlstate"

// ProveSameTree parses text and returns an error unless its tree is the intended tree. It ignores locations and the
// nesting of ANDs, which depends on parentheses and has no meaning. After an error the text must not be sent to
// PostgreSQL: it means something else than what pgconsent has checked.
func ProveSameTree(intended *ParseResult, text string) *sqlstate.Error {
	source, refusal := Scan(text)
	if refusal != nil {
		return unprovedRefusal(refusal)
	}
	tree, refusal := source.Parse()
	if refusal != nil {
		return unprovedRefusal(refusal)
	}
	if !equalTrees(intended, tree) {
		return unprovedRefusal(nil)
	}
	return nil
}

func unprovedRefusal(cause *sqlstate.Error) *sqlstate.Error {
	e := sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonProof, "pgconsent could not rewrite this statement safely").
		WithHint("The rewritten text did not read back as intended. Write the statement in a plainer form, and please report it.")
	if cause != nil {
		// the statement is within the bounds, but with the added predicates it is not
		if cause.Reason == sqlstate.ReasonBounds {
			return cause
		}
		return e.WithCause(cause)
	}
	return e
}
