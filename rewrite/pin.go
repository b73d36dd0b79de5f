package rewrite

import (
	"google.golang.org/protobuf/proto"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
	"github.com/pgconsent/pgconsent/policy"
)

// pinArguments puts the policy's values in the place of the arguments that the policy pins. The client's value stays in
// the text where PostgreSQL never evaluates it, so that parameters keep their numbers and types.
func (w *walker) pinArguments(f *sqltext.FuncCall, policyFunction *policy.Function) {
	if w.refused != nil {
		return
	}
	refuse := func(reason string) {
		w.refuseAt(sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonFunction,
			"function %s cannot be called like this", policyFunction.Name.Name).
			WithHint("The policy fixes an argument of it, which is not possible with %s. Pass plain arguments, by "+
				"position or by name.", reason), f.Location)
	}
	if f.AggStar || f.AggDistinct || f.AggWithinGroup || f.FuncVariadic || len(f.AggOrder) > 0 ||
		f.AggFilter != nil || f.Over != nil {
		refuse("VARIADIC, DISTINCT, ORDER BY, FILTER, OVER or *")
		return
	}
	arguments, closing := w.argumentTokens(f)
	if closing < 0 || len(arguments) != len(f.Args) {
		refuse("this notation")
		return
	}
	positional := 0
	for positional < len(f.Args) && f.Args[positional].GetNamedArgExpr() == nil {
		positional++
	}
	appended := len(f.Args) > 0
	for _, pin := range policyFunction.Pins {
		value := w.pins[pin.Value]
		if value == nil {
			w.refuse(sqlstate.AsError(errPolicyExpression))
			return
		}
		index := pinnedIndex(policyFunction, pin.Arg)
		if index < 0 {
			refuse("overloads that take the argument in different places")
			return
		}
		if index < positional {
			w.pinExpression(pin, value, arguments[index], f.Args[index], func(n *sqltext.Node) { f.Args[index] = n })
			continue
		}
		nameCount := -1
		for i := positional; i < len(f.Args); i++ {
			if f.Args[i].GetNamedArgExpr().GetName() == pin.Arg {
				nameCount = i
			}
		}
		if nameCount >= 0 {
			argument := f.Args[nameCount].GetNamedArgExpr()
			// the value is behind the name and =>
			value2 := tokenRange{arguments[nameCount].first + 2, arguments[nameCount].last}
			if kind := w.source.KindAt(arguments[nameCount].first + 1); kind != sqltext.Arrow && kind != sqltext.Assign ||
				argument == nil {
				refuse("this notation")
				return
			}
			w.pinExpression(pin, value, value2, argument.Arg, func(n *sqltext.Node) { argument.Arg = n })
			continue
		}
		text := catalog.QuoteIdent(pin.Arg) + " => " + pin.Value
		if appended {
			text = ", " + text
		}
		appended = true
		location := w.source.Tokens[closing].Start
		w.replace(location, location, text, func() {
			f.Args = append(f.Args, &sqltext.Node{Node: &sqltext.Node_NamedArgExpr{NamedArgExpr: &sqltext.NamedArgExpr{
				Name: pin.Arg, Arg: proto.Clone(value).(*sqltext.Node), Argnumber: -1,
			}}})
		})
	}
}

// pinExpression replaces the argument e by CASE WHEN true THEN value ELSE (e) END.
func (w *walker) pinExpression(pin policy.Pin, value *sqltext.Node, tokens tokenRange, e *sqltext.Node,
	setNode func(*sqltext.Node)) {
	start, end := w.source.Tokens[tokens.first].Start, w.source.Tokens[tokens.last].End
	w.replace(start, start, "CASE WHEN true THEN "+pin.Value+" ELSE (", func() {
		setNode(&sqltext.Node{Node: &sqltext.Node_CaseExpr{CaseExpr: &sqltext.CaseExpr{
			Args: []*sqltext.Node{{Node: &sqltext.Node_CaseWhen{CaseWhen: &sqltext.CaseWhen{
				Expr: &sqltext.Node{Node: &sqltext.Node_A_Const{AConst: &sqltext.A_Const{
					Val: &sqltext.A_Const_Boolval{Boolval: &sqltext.Boolean{Boolval: true}},
				}}},
				Result: proto.Clone(value).(*sqltext.Node),
			}}}},
			Defresult: e,
		}}})
	})
	w.replace(end, end, ") END", func() {})
}

// pinnedIndex returns the position of the argument with this name if it is the same in every overload, else -1.
func pinnedIndex(policyFunction *policy.Function, name string) int {
	index := -1
	for _, overload := range policyFunction.Overloads {
		position := -1
		for i, arg := range overload.ArgNames {
			if arg == name {
				position = i
			}
		}
		if position < 0 || index >= 0 && position != index || overload.Variadic {
			return -1
		}
		index = position
	}
	return index
}

// tokenRange is a range of tokens, from first to last, both included.
type tokenRange struct{ first, last int }

// argumentTokens returns the ranges of tokens of a call's arguments, and the index of the call's closing parenthesis,
// or -1.
func (w *walker) argumentTokens(f *sqltext.FuncCall) ([]tokenRange, int) {
	i := w.source.TokenAt(f.Location) + 1
	for w.source.KindAt(i) != sqltext.OpenParen {
		if i++; i >= len(w.source.Tokens) {
			return nil, -1
		}
	}
	var arguments []tokenRange
	depth, first := 0, i+1
	for i++; i < len(w.source.Tokens); i++ {
		switch w.source.Tokens[i].Kind {
		case sqltext.OpenParen, sqltext.OpenBracket:
			depth++
		case sqltext.CloseBracket:
			depth--
		case sqltext.Comma:
			if depth == 0 {
				arguments, first = append(arguments, tokenRange{first, i - 1}), i+1
			}
		case sqltext.CloseParen:
			if depth > 0 {
				depth--
				continue
			}
			if i > first {
				arguments = append(arguments, tokenRange{first, i - 1})
			}
			return arguments, i
		}
	}
	return nil, -1
}
