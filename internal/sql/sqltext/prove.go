package sqltext

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Prove parses text and requires that its tree is the intended one, locations aside. The intended tree loses its
// locations. An error means that the edit does not say what was decided, and that the text must not leave.
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

// StripLocations sets everything that tells where in a text a node stood to zero.
func StripLocations(m proto.Message) { strip(m.ProtoReflect()) }

func strip(m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsList():
			if f.Message() != nil {
				list := v.List()
				for i := range list.Len() {
					strip(list.Get(i).Message())
				}
			}
		case f.Message() != nil:
			strip(v.Message())
		case isLocation(f.Name()):
			m.Clear(f)
		}
		return true
	})
}

func isLocation(name protoreflect.Name) bool {
	return name == "location" || name == "stmt_location" || name == "stmt_len"
}
