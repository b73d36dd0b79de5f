package sqltext

import (
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// Prove parses text and requires that its tree is the intended one, apart from locations, and from how ANDs are nested,
// which depends on parentheses and means nothing. The intended tree loses its locations and nested ANDs. After an error
// the text must not be sent: it does not mean what was decided.
func Prove(intended *ParseResult, text string) *sqlstate.Error {
	source, refusal := Scan(text)
	if refusal != nil {
		return unprovedRefusal(refusal)
	}
	tree, refusal := source.Parse()
	if refusal != nil {
		return unprovedRefusal(refusal)
	}
	StripLocations(intended)
	StripLocations(tree)
	flattenAnds(intended)
	flattenAnds(tree)
	if !proto.Equal(intended, tree) {
		return unprovedRefusal(nil)
	}
	return nil
}

// flattenAnds makes one AND of an AND inside another.
func flattenAnds(m proto.Message) {
	Walk(m, func(m proto.Message) bool {
		and, is := m.(*BoolExpr)
		if !is || and.Boolop != AND_EXPR || !slices.ContainsFunc(and.Args, isAnd) {
			return true
		}
		var args []*Node
		var add func(nodes []*Node)
		add = func(nodes []*Node) {
			for _, n := range nodes {
				if isAnd(n) {
					add(n.GetBoolExpr().Args)
				} else {
					args = append(args, n)
				}
			}
		}
		add(and.Args)
		and.Args = args
		return true
	})
}

func isAnd(n *Node) bool { return n.GetBoolExpr().GetBoolop() == AND_EXPR && n.GetBoolExpr() != nil }

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
