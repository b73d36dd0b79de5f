package sqltext

import "github.com/pgconsent/pgconsent/internal/sql/sqlstate"

// ProveSameTree parses text and requires that its tree is the intended one, apart from locations, and from how ANDs are
// nested, which depends on parentheses and means nothing. After an error the text must not be sent: it does not mean
// what was decided.
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
		if cause.Reason == sqlstate.ReasonBounds { // the statement fits, with its predicates it does not
			return cause
		}
		return e.WithCause(cause)
	}
	return e
}
