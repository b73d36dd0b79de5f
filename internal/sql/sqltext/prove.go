package sqltext

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Prove parses text and requires that its tree is the intended one, locations aside. The intended tree loses its
// locations. After an error the text must not be sent: it does not mean what was decided.
func Prove(intended *ParseResult, text string) *sqlstate.Error {
	source, refusal := Scan(text)
	if refusal != nil {
		return unproved(refusal)
	}
	tree, refusal := source.Parse()
	if refusal != nil {
		return unproved(refusal)
	}
	StripLocations(intended)
	StripLocations(tree)
	if !proto.Equal(intended, tree) {
		return unproved(nil)
	}
	return nil
}

func unproved(cause *sqlstate.Error) *sqlstate.Error {
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

// StripLocations sets to zero each field that says at which byte of a text a node stood, or how long it was.
func StripLocations(m proto.Message) {
	Walk(m, func(m proto.Message) bool {
		r := m.ProtoReflect()
		for _, name := range []protoreflect.Name{"location", "stmt_location", "stmt_len"} {
			if field := r.Descriptor().Fields().ByName(name); field != nil {
				r.Clear(field)
			}
		}
		return true
	})
}
