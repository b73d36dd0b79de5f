package policy

import (
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// compileCall compiles attribute('name'), now() and calls of the permitted functions.
func (x *sqlExpression) compileCall(n *sqltext.FuncCall) (operand, bool) {
	names := stringsOf(n.Funcname)
	if len(names) == 2 && names[0] == "pg_catalog" {
		names = names[1:]
	}
	if len(n.AggOrder) > 0 || n.AggFilter != nil || n.Over != nil || n.AggWithinGroup || n.AggStar || n.AggDistinct ||
		n.FuncVariadic || len(names) != 1 {
		return x.fail(n.Location, "docs/reference/policy.md lists the functions", "this call is not part of sql expressions")
	}
	switch name := names[0]; name {
	case "attribute":
		return x.compileAttributeCall(n)
	case "now", "statement_timestamp", "transaction_timestamp":
		if len(n.Args) == 0 {
			return operand{predicate.ClockTime{Kind: predicate.TimestampTZ}, predicate.TimestampTZ, n.Location}, true
		}
		return x.fail(n.Location, "", "%s takes no argument", name)
	case "cardinality":
		return x.compileCardinality(n)
	default:
		return x.compileFunction(name, n.Args, n.Location)
	}
}

func (x *sqlExpression) compileAttributeCall(n *sqltext.FuncCall) (operand, bool) {
	var name *sqltext.A_Const_Sval
	if len(n.Args) == 1 {
		name, _ = n.Args[0].GetAConst().GetVal().(*sqltext.A_Const_Sval)
	}
	if name == nil {
		correction := "user"
		if len(n.Args) == 1 {
			if names := stringsOf(n.Args[0].GetColumnRef().GetFields()); len(names) == 1 {
				correction = names[0]
			}
		}
		return x.fail(n.Location, "write attribute('"+correction+"')", "attribute takes the name of an attribute")
	}
	attribute := x.names.findAttribute(x.placeOf(n.Location), name.Sval.Sval)
	if attribute == nil {
		return operand{}, false
	}
	kind := map[string]predicate.Kind{"text": predicate.Text, "uuid": predicate.UUID,
		"integer": predicate.Number}[typeFamily(attribute.elementType())]
	out := predicate.Attribute{Name: attribute.Name, Type: attribute.SQLType(), Optional: attribute.Optional}
	if attribute.IsList() {
		kind = kind.List()
		if attribute.elementType() == "integer" {
			out.Type = "pg_catalog.int8[]" // lists of numbers are compared as int8[]
		}
	}
	out.Kind = kind
	x.namesColumnOrAttribute = true
	return operand{out, kind, n.Location}, true
}

func (x *sqlExpression) compileCardinality(n *sqltext.FuncCall) (operand, bool) {
	if len(n.Args) != 1 {
		return x.fail(n.Location, "", "cardinality takes one list")
	}
	o, ok := x.compile(n.Args[0])
	if !ok {
		return o, false
	}
	if o.kind == o.kind.Element() {
		return x.fail(o.at, "", "cardinality takes one list")
	}
	return operand{predicate.Call{Name: "cardinality", Args: []predicate.Expr{o.Expr}}, predicate.Number, n.Location}, true
}

// compileFunction compiles a call of a permitted function.
func (x *sqlExpression) compileFunction(name string, nodes []*sqltext.Node, location int32) (operand, bool) {
	f, ok := predicate.Functions[name]
	if !ok {
		return x.fail(location, closest(name, sortedKeys(predicate.Functions)),
			"%s is not a function that sql expressions may call", name)
	}
	if len(nodes) > len(f.Args) || len(nodes) < len(f.Args)-f.TrailingOptional {
		return x.fail(location, "", "%s takes %d arguments", name, len(f.Args))
	}
	out := predicate.Call{Name: name}
	for i, n := range nodes {
		arg, ok := x.compile(n)
		if !ok {
			return operand{}, false
		}
		if arg, ok = x.convert(arg, f.Args[i]); !ok {
			return operand{}, false
		}
		if i >= len(f.Args)-f.TrailingConstants {
			c, isConst := arg.Expr.(predicate.Constant)
			if isConst && arg.kind == predicate.Number {
				c.Type = "pg_catalog.int4"
				isConst = len(strings.TrimPrefix(c.Value, "-")) <= 4 && !strings.Contains(c.Value, ".")
			}
			if !isConst {
				return x.fail(arg.at, "other values could raise an error on some row",
					"argument %d of %s must be a constant, a number less than 10000", i+1, name)
			}
			arg.Expr = c
		}
		out.Args = append(out.Args, arg.Expr)
	}
	return operand{out, f.Result, location}, true
}
