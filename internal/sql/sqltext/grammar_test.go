package sqltext

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// messageTypes returns all types of messages that a tree can contain.
func messageTypes() (out []protoreflect.MessageType) {
	file := (&ParseResult{}).ProtoReflect().Descriptor().ParentFile()
	types := file.Messages()
	for i := range types.Len() {
		if name := string(types.Get(i).FullName()); !strings.HasPrefix(string(types.Get(i).Name()), "Scan") {
			if m, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(name)); err == nil {
				out = append(out, m)
			}
		}
	}
	return out
}

// sampleValue returns a value for a field that is not its default; for a field of messages it returns m.
func sampleValue(f protoreflect.FieldDescriptor, m protoreflect.Message) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.MessageKind:
		return protoreflect.ValueOfMessage(m)
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.StringKind:
		return protoreflect.ValueOfString("x")
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(f.Enum().Values().Get(f.Enum().Values().Len() - 1).Number())
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(7)
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(7)
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(7)
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(7)
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(7)
	}
	panic(f.Kind().String())
}

// equalTrees ignores the positions of nodes and nothing else. For every field of every kind of message, two trees that
// differ in that field are not equal.
func TestTreesAreComparedWithoutPositions(t *testing.T) {
	positionFields := map[protoreflect.Name]bool{"location": true, "stmt_location": true, "stmt_len": true}
	comparedCount, ignoredCount := 0, 0
	for _, kind := range messageTypes() {
		fields := kind.Descriptor().Fields()
		for i := range fields.Len() {
			f := fields.Get(i)
			if f.Message() != nil && f.Message().ParentFile() != kind.Descriptor().ParentFile() {
				continue
			}
			nonEmptyMessage := func() protoreflect.Message { // some fields of it are set
				m, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(string(f.Message().FullName())))
				if err != nil {
					t.Fatal(err)
				}
				value := m.New()
				for j := range value.Descriptor().Fields().Len() {
					if g := value.Descriptor().Fields().Get(j); g.Message() == nil && !g.IsList() && !positionFields[g.Name()] {
						value.Set(g, sampleValue(g, nil))
					}
				}
				return value
			}
			m := kind.New()
			switch {
			case f.IsMap():
				continue
			case f.IsList():
				for range 2 {
					var element protoreflect.Message
					if f.Message() != nil {
						element = nonEmptyMessage()
					}
					m.Mutable(f).List().Append(sampleValue(f, element))
				}
			case f.Message() != nil:
				m.Set(f, sampleValue(f, nonEmptyMessage()))
			default:
				m.Set(f, sampleValue(f, nil))
			}
			isPosition := positionFields[f.Name()] && f.Kind() == protoreflect.Int32Kind // the folder of a tablespace is called location, too
			switch isEqual := equalTrees(kind.New().Interface(), m.Interface()); {
			case !equalTrees(m.Interface(), proto.Clone(m.Interface())):
				t.Errorf("%s of %s is not as it is", f.Name(), kind.Descriptor().Name())
			case isPosition && !isEqual:
				t.Errorf("%s of %s is a place, and is compared", f.Name(), kind.Descriptor().Name())
			case isPosition:
				ignoredCount++
			case isEqual:
				t.Errorf("%s of %s is not compared", f.Name(), kind.Descriptor().Name())
			case f.Message() != nil && len(nonEmptyMessage().GetUnknown()) == 0 && hasValue(nonEmptyMessage()) &&
				equalTrees(m.Interface(), messageOfEmpties(kind, f)):
				t.Errorf("%s of %s is not compared to its end", f.Name(), kind.Descriptor().Name())
			default:
				comparedCount++
			}
		}
	}
	if comparedCount < 800 || ignoredCount < 50 {
		t.Errorf("%d fields, and %d places", comparedCount, ignoredCount)
	}
}

// hasValue tells whether any field of a message is set.
func hasValue(m protoreflect.Message) (yes bool) {
	m.Range(func(protoreflect.FieldDescriptor, protoreflect.Value) bool {
		yes = true
		return false
	})
	return yes
}

// messageOfEmpties returns a message whose field f contains empty messages, as many as the test uses, and whose other
// fields are not set.
func messageOfEmpties(kind protoreflect.MessageType, f protoreflect.FieldDescriptor) proto.Message {
	m := kind.New()
	if f.IsList() {
		for range 2 {
			m.Mutable(f).List().AppendMutable()
		}
	} else {
		m.Mutable(f)
	}
	return m.Interface()
}

// TestWalkVisitsEveryField: a message in any field of any kind of message, and at any index of a list, is found and
// counted. Unknown fields in it are noticed.
func TestWalkVisitsEveryField(t *testing.T) {
	table := func(name string) *Node {
		return &Node{Node: &Node_RangeVar{RangeVar: &RangeVar{Relname: name}}}
	}
	fieldCount := 0
	for _, kind := range messageTypes() {
		fields := kind.Descriptor().Fields()
		for i := range fields.Len() {
			f := fields.Get(i)
			if f.Message() == nil || f.IsMap() {
				continue
			}
			var list []protoreflect.Message
			want := []string{"a"}
			switch f.Message().Name() {
			case "Node":
				list = append(list, table("a").ProtoReflect(), table("b").ProtoReflect(), table("c").ProtoReflect())
				if f.IsList() {
					want = []string{"a", "b", "c"}
				}
			case "RangeVar":
				list = append(list, (&RangeVar{Relname: "a"}).ProtoReflect())
			case "SelectStmt": // a message that is a field without a Node around it
				list = append(list, (&SelectStmt{FromClause: []*Node{table("a")}}).ProtoReflect())
			case "WithClause":
				list = append(list, (&WithClause{Ctes: []*Node{table("a")}}).ProtoReflect())
			default:
				continue
			}
			m := kind.New()
			if f.IsList() {
				for _, element := range list {
					m.Mutable(f).List().Append(protoreflect.ValueOfMessage(element))
				}
			} else {
				m.Set(f, protoreflect.ValueOfMessage(list[0]))
			}
			fieldCount++
			fieldName := string(kind.Descriptor().Name()) + "." + string(f.Name())
			var got []string
			relations, _ := RangeVars(m.Interface())
			for _, r := range relations {
				if r.Relname != "" {
					got = append(got, r.Relname)
				}
			}
			if strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("%s: the relations %q, want %q", fieldName, got, want)
			}
			counts, isComplete := CountNodeKinds(m.Interface())
			if ownCount := map[bool]int{true: 1}[kind.Descriptor().Name() == "RangeVar"]; counts["RangeVar"] != len(want)+ownCount || !isComplete {
				t.Errorf("%s: %d relations of %d, %t", fieldName, counts["RangeVar"], len(want), isComplete)
			}
			for n := range want {
				element := list[n]
				element.SetUnknown([]byte{0xf8, 0xff, 0xff, 0xff, 0x0f, 1})
				if _, isComplete := CountNodeKinds(m.Interface()); isComplete {
					t.Errorf("%s: what is not known goes unnoticed at %d", fieldName, n)
				}
				element.SetUnknown(nil)
			}
		}
	}
	if fieldCount < 300 {
		t.Errorf("%d fields", fieldCount)
	}
	tree, refusal := Parse("WITH a AS (SELECT 1), b (x) AS (SELECT 1) SELECT (WITH RECURSIVE c AS (SELECT 1) SELECT 1 FROM c) FROM a")
	if refusal != nil {
		t.Fatal(refusal)
	}
	if _, queries := RangeVars(tree); len(queries) != 3 || !queries["a"] || !queries["b"] || !queries["c"] {
		t.Errorf("the WITH queries %v", queries)
	}
}

// The constants and types of the parser that this package exports have the parser's own names.
func TestNamesOfTheParser(t *testing.T) {
	values := []struct {
		constant fmt.Stringer
		name     string
	}{
		{SETOP_NONE, "SETOP_NONE"},
		{SETOP_UNION, "SETOP_UNION"},
		{JOIN_INNER, "JOIN_INNER"},
		{JOIN_LEFT, "JOIN_LEFT"},
		{JOIN_RIGHT, "JOIN_RIGHT"},
		{COERCE_EXPLICIT_CALL, "COERCE_EXPLICIT_CALL"},
		{COERCE_SQL_SYNTAX, "COERCE_SQL_SYNTAX"},
		{TRANS_STMT_BEGIN, "TRANS_STMT_BEGIN"},
		{TRANS_STMT_START, "TRANS_STMT_START"},
		{TRANS_STMT_COMMIT, "TRANS_STMT_COMMIT"},
		{TRANS_STMT_ROLLBACK, "TRANS_STMT_ROLLBACK"},
		{TRANS_STMT_SAVEPOINT, "TRANS_STMT_SAVEPOINT"},
		{TRANS_STMT_RELEASE, "TRANS_STMT_RELEASE"},
		{TRANS_STMT_ROLLBACK_TO, "TRANS_STMT_ROLLBACK_TO"},
		{TRANS_STMT_PREPARE, "TRANS_STMT_PREPARE"},
		{TRANS_STMT_COMMIT_PREPARED, "TRANS_STMT_COMMIT_PREPARED"},
		{TRANS_STMT_ROLLBACK_PREPARED, "TRANS_STMT_ROLLBACK_PREPARED"},
		{VAR_SET_VALUE, "VAR_SET_VALUE"},
		{VAR_SET_DEFAULT, "VAR_SET_DEFAULT"},
		{VAR_SET_CURRENT, "VAR_SET_CURRENT"},
		{VAR_SET_MULTI, "VAR_SET_MULTI"},
		{VAR_RESET, "VAR_RESET"},
		{VAR_RESET_ALL, "VAR_RESET_ALL"},
		{AEXPR_OP, "AEXPR_OP"},
		{AEXPR_OP_ANY, "AEXPR_OP_ANY"},
		{AEXPR_OP_ALL, "AEXPR_OP_ALL"},
		{AEXPR_DISTINCT, "AEXPR_DISTINCT"},
		{AEXPR_NOT_DISTINCT, "AEXPR_NOT_DISTINCT"},
		{AEXPR_NULLIF, "AEXPR_NULLIF"},
		{AEXPR_IN, "AEXPR_IN"},
		{AEXPR_LIKE, "AEXPR_LIKE"},
		{AEXPR_ILIKE, "AEXPR_ILIKE"},
		{AEXPR_SIMILAR, "AEXPR_SIMILAR"},
		{AEXPR_BETWEEN, "AEXPR_BETWEEN"},
		{AEXPR_NOT_BETWEEN, "AEXPR_NOT_BETWEEN"},
		{AEXPR_BETWEEN_SYM, "AEXPR_BETWEEN_SYM"},
		{AEXPR_NOT_BETWEEN_SYM, "AEXPR_NOT_BETWEEN_SYM"},
		{ONCONFLICT_NOTHING, "ONCONFLICT_NOTHING"},
		{ONCONFLICT_UPDATE, "ONCONFLICT_UPDATE"},
		{CMD_INSERT, "CMD_INSERT"},
		{CMD_UPDATE, "CMD_UPDATE"},
		{CMD_DELETE, "CMD_DELETE"},
		{LCS_NONE, "LCS_NONE"},
		{LCS_UNDEFINED, "LOCK_CLAUSE_STRENGTH_UNDEFINED"},
		{CMD_NOTHING, "CMD_NOTHING"},
		{ALL_SUBLINK, "ALL_SUBLINK"},
		{ANY_SUBLINK, "ANY_SUBLINK"},
		{EXISTS_SUBLINK, "EXISTS_SUBLINK"},
		{EXPR_SUBLINK, "EXPR_SUBLINK"},
		{ARRAY_SUBLINK, "ARRAY_SUBLINK"},
		{LIMIT_OPTION_DEFAULT, "LIMIT_OPTION_DEFAULT"},
		{LIMIT_OPTION_COUNT, "LIMIT_OPTION_COUNT"},
		{AND_EXPR, "AND_EXPR"},
		{DISCARD_ALL, "DISCARD_ALL"},
		{DISCARD_PLANS, "DISCARD_PLANS"},
		{DISCARD_SEQUENCES, "DISCARD_SEQUENCES"},
		{DISCARD_TEMP, "DISCARD_TEMP"},
		{DEFELEM_UNSPEC, "DEFELEM_UNSPEC"},
		{OR_EXPR, "OR_EXPR"},
		{NOT_EXPR, "NOT_EXPR"},
		{IS_NULL, "IS_NULL"},
		{IS_NOT_NULL, "IS_NOT_NULL"},
		{IS_TRUE, "IS_TRUE"},
		{IS_NOT_TRUE, "IS_NOT_TRUE"},
		{IS_FALSE, "IS_FALSE"},
		{IS_NOT_FALSE, "IS_NOT_FALSE"},
		{IS_UNKNOWN, "IS_UNKNOWN"},
		{IS_NOT_UNKNOWN, "IS_NOT_UNKNOWN"},
		{IS_GREATEST, "IS_GREATEST"},
		{SVFOP_CURRENT_DATE, "SVFOP_CURRENT_DATE"},
		{SVFOP_CURRENT_TIMESTAMP, "SVFOP_CURRENT_TIMESTAMP"},
		{SVFOP_LOCALTIMESTAMP, "SVFOP_LOCALTIMESTAMP"},
	}
	for _, v := range values {
		if v.constant.String() != v.name {
			t.Errorf("%s is %s", v.name, v.constant)
		}
	}
	tokens := []struct {
		constant TokenKind
		name     string
	}{
		{Ident, "IDENT"},
		{Sconst, "SCONST"},
		{Table, "TABLE"},
		{Only, "ONLY"},
		{Treat, "TREAT"},
		{Binary, "BINARY"},
		{Copy, "COPY"},
		{Group, "GROUP_P"},
		{By, "BY"},
		{Distinct, "DISTINCT"},
		{All, "ALL"},
		{Arrow, "EQUALS_GREATER"},
		{Assign, "COLON_EQUALS"},
		{unicodeIdent, "UIDENT"},
		{floatConst, "FCONST"},
		{unicodeStringConst, "USCONST"},
		{bitConst, "BCONST"},
		{hexConst, "XCONST"},
		{integerConst, "ICONST"},
		{paramToken, "PARAM"},
		{sqlComment, "SQL_COMMENT"},
		{cComment, "C_COMMENT"},
		{kwAnd, "AND"},
		{kwAs, "AS"},
		{kwAtomic, "ATOMIC"},
		{kwBetween, "BETWEEN"},
		{kwCase, "CASE"},
		{kwCross, "CROSS"},
		{kwDistinct, "DISTINCT"},
		{kwElse, "ELSE"},
		{kwEnd, "END_P"},
		{kwExcept, "EXCEPT"},
		{kwFrom, "FROM"},
		{kwFull, "FULL"},
		{kwInner, "INNER_P"},
		{kwIntersect, "INTERSECT"},
		{kwJoin, "JOIN"},
		{kwLeft, "LEFT"},
		{kwNatural, "NATURAL"},
		{kwOr, "OR"},
		{kwOuter, "OUTER_P"},
		{kwRight, "RIGHT"},
		{kwReturning, "RETURNING"},
		{kwSelect, "SELECT"},
		{kwSet, "SET"},
		{kwIn, "IN_P"},
		{kwThen, "THEN"},
		{kwUnion, "UNION"},
		{kwWhen, "WHEN"},
		{kwWhere, "WHERE"},
		{kwGroup, "GROUP_P"},
		{kwHaving, "HAVING"},
		{kwWindow, "WINDOW"},
		{kwOrder, "ORDER"},
		{kwLimit, "LIMIT"},
		{kwOffset, "OFFSET"},
		{kwFetch, "FETCH"},
		{kwFor, "FOR"},
	}
	for _, v := range tokens {
		if constant := pg_query.Token(v.constant).String(); constant != v.name {
			t.Errorf("%s is %s", v.name, constant)
		}
	}
	// The lists above contain every exported constant.
	constantCounts := map[string]int{}
	for _, file := range []string{"ast.go", "ast_expression.go", "tokens.go"} {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 {
				if call, ok := v.Values[0].(*ast.CallExpr); ok && len(call.Args) == 1 {
					v.Values[0] = call.Args[0]
				}
				if selector, ok := v.Values[0].(*ast.SelectorExpr); ok {
					constantCounts[map[bool]string{true: "tokens", false: "values"}[strings.HasPrefix(selector.Sel.Name, "Token_")]]++
				}
			}
			return true
		})
	}
	if constantCounts["values"] != len(values) || constantCounts["tokens"] != len(tokens) {
		t.Errorf("%v are given on, and %d and %d looked at", constantCounts, len(values), len(tokens))
	}
}

// TestConditionsOfGroups: a condition that is inserted where HavingClause says becomes the HAVING of the SELECT, and
// changes nothing else.
func TestConditionsOfGroups(t *testing.T) {
	textCount := 0
	for _, fromItem := range []string{"t", "t x (a, b)", "(SELECT a FROM t GROUP BY a HAVING a > 1 ORDER BY a LIMIT 1) x",
		"t, f(ARRAY[1, 2]) WITH ORDINALITY", "t JOIN u ON t.having = u.order"} {
		for _, whereClause := range []string{"", " WHERE a IN (SELECT b FROM u GROUP BY b HAVING b > 1)", " WHERE t.limit > ARRAY[(SELECT 1 LIMIT 1)]"} {
			for _, groupClause := range []string{"", " GROUP BY a", " GROUP BY (t.window), t.fetch", " GROUP BY a[(SELECT 1 ORDER BY 1)]"} {
				for _, havingClause := range []string{"", " HAVING a > 1", " HAVING t.order > (SELECT 1 LIMIT 1) OR a = ANY (ARRAY[1])"} {
					for _, tail := range []string{
						"", ";", " WINDOW w AS (ORDER BY a)", " ORDER BY a", " LIMIT 1", " OFFSET 1",
						" FETCH FIRST ROW ONLY", " FOR UPDATE", " ORDER BY t.limit LIMIT 1;", " -- x"} {
						text := "SELECT a, (SELECT 1 FROM u HAVING true ORDER BY 1) FROM " + fromItem + whereClause + groupClause + havingClause + tail
						source, err := Scan(text)
						if err != nil {
							t.Fatal(text, err)
						}
						fromToken := source.TokenAt(int32(len("SELECT a, (SELECT 1 FROM u HAVING true ORDER BY 1) ")))
						keyword, end := source.HavingClause(fromToken + 1)
						if (keyword >= 0) != (havingClause != "") {
							t.Errorf("%s: HAVING is at token %d", text, keyword)
							continue
						}
						edited := text[:end] + " HAVING false" + text[end:]
						if keyword >= 0 {
							edited = text[:source.Tokens[keyword].End] + " false" + text[end:]
						}
						originalTree, err := Parse(text)
						if err != nil {
							t.Fatal(text, err)
						}
						tree, err := Parse(edited)
						if err != nil {
							t.Errorf("%s: %v", edited, err)
							continue
						}
						query := tree.Stmts[0].Stmt.GetSelectStmt()
						if c := query.GetHavingClause().GetAConst(); c == nil || c.GetBoolval() == nil || c.GetBoolval().Boolval {
							t.Errorf("%s: its HAVING is another", edited)
						}
						query.HavingClause = nil
						originalTree.Stmts[0].Stmt.GetSelectStmt().HavingClause = nil
						if !equalTrees(tree, originalTree) {
							t.Errorf("%s: something else has changed", edited)
						}
						textCount++
					}
				}
			}
		}
	}
	if textCount < 1000 {
		t.Errorf("%d texts", textCount)
	}
	for text, want := range map[string]int{"(a)": 2, "(a (b) [c] (d))": 11, "((": -1, "(a, ((b)))": 8, "f(a)": 3} {
		source, err := Scan(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := source.ClosingParen(0); got != want {
			t.Errorf("%s closes at %d, want %d", text, got, want)
		}
	}
}
