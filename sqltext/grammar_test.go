package sqltext

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// messages are all kinds of message that a tree can have.
func messages() (all []protoreflect.MessageType) {
	file := (&ParseResult{}).ProtoReflect().Descriptor().ParentFile()
	types := file.Messages()
	for i := range types.Len() {
		if name := string(types.Get(i).FullName()); !strings.HasPrefix(string(types.Get(i).Name()), "Scan") {
			if m, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(name)); err == nil {
				all = append(all, m)
			}
		}
	}
	return all
}

// one is a value of a field that is not its default, and of a message field the one that is given.
func one(f protoreflect.FieldDescriptor, m protoreflect.Message) protoreflect.Value {
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

// The proof compares trees without the places of their nodes, and with all else: whatever a field says, of whatever kind of message and however
// deep, two trees that differ in it are not equal.
func TestOnlyPlacesAreStripped(t *testing.T) {
	places := map[protoreflect.Name]bool{"location": true, "stmt_location": true, "stmt_len": true}
	seen, stripped := 0, 0
	for _, kind := range messages() {
		fields := kind.Descriptor().Fields()
		for i := range fields.Len() {
			f := fields.Get(i)
			if f.Message() != nil && f.Message().ParentFile() != kind.Descriptor().ParentFile() {
				continue
			}
			inner := func() protoreflect.Message { // which has something to lose
				m, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(string(f.Message().FullName())))
				if err != nil {
					t.Fatal(err)
				}
				value := m.New()
				for j := range value.Descriptor().Fields().Len() {
					if g := value.Descriptor().Fields().Get(j); g.Message() == nil && !g.IsList() && !places[g.Name()] {
						value.Set(g, one(g, nil))
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
					var in protoreflect.Message
					if f.Message() != nil {
						in = inner()
					}
					m.Mutable(f).List().Append(one(f, in))
				}
			case f.Message() != nil:
				m.Set(f, one(f, inner()))
			default:
				m.Set(f, one(f, nil))
			}
			before := proto.Clone(m.Interface())
			StripLocations(m.Interface())
			switch is := proto.Equal(before, m.Interface()); {
			case places[f.Name()] && m.Has(f):
				t.Errorf("%s of %s is a place, and stays", f.Name(), kind.Descriptor().Name())
			case places[f.Name()]:
				stripped++
			case !is:
				t.Errorf("%s of %s is lost", f.Name(), kind.Descriptor().Name())
			default:
				seen++
			}
		}
	}
	if seen < 800 || stripped < 50 {
		t.Errorf("%d fields, and %d places", seen, stripped)
	}
}

// TestWalksMissNothing: what stands in any field of any kind of message, first or last of a list, is counted, found and looked at for what this parser
// does not know.
func TestWalksMissNothing(t *testing.T) {
	table := func(name string) *Node {
		return &Node{Node: &Node_RangeVar{RangeVar: &RangeVar{Relname: name}}}
	}
	tried := 0
	for _, kind := range messages() {
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
			case "SelectStmt": // any other message that is a field by itself
				list = append(list, (&SelectStmt{FromClause: []*Node{table("a")}}).ProtoReflect())
			case "WithClause":
				list = append(list, (&WithClause{Ctes: []*Node{table("a")}}).ProtoReflect())
			default:
				continue
			}
			m := kind.New()
			if f.IsList() {
				for _, in := range list {
					m.Mutable(f).List().Append(protoreflect.ValueOfMessage(in))
				}
			} else {
				m.Set(f, protoreflect.ValueOfMessage(list[0]))
			}
			tried++
			where := string(kind.Descriptor().Name()) + "." + string(f.Name())
			var got []string
			relations, _ := Relations(m.Interface())
			for _, r := range relations {
				if r.Relname != "" {
					got = append(got, r.Relname)
				}
			}
			if strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("%s: the relations %q, want %q", where, got, want)
			}
			counts, known := Count(m.Interface())
			if own := map[bool]int{true: 1}[kind.Descriptor().Name() == "RangeVar"]; counts["RangeVar"] != len(want)+own || !known {
				t.Errorf("%s: %d relations of %d, %t", where, counts["RangeVar"], len(want), known)
			}
			for n := range want {
				in := list[n]
				in.SetUnknown([]byte{0xf8, 0xff, 0xff, 0xff, 0x0f, 1})
				if _, known := Count(m.Interface()); known {
					t.Errorf("%s: what is not known goes unnoticed at %d", where, n)
				}
				in.SetUnknown(nil)
			}
		}
	}
	if tried < 300 {
		t.Errorf("%d fields", tried)
	}
	tree, refused := Parse("WITH a AS (SELECT 1), b (x) AS (SELECT 1) SELECT (WITH RECURSIVE c AS (SELECT 1) SELECT 1 FROM c) FROM a")
	if refused != nil {
		t.Fatal(refused)
	}
	if _, queries := Relations(tree); len(queries) != 3 || !queries["a"] || !queries["b"] || !queries["c"] {
		t.Errorf("the WITH queries %v", queries)
	}
}

// Each of the parser's names that is given on is given on under its own name.
func TestNamesOfTheParser(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	plain := func(name string) string {
		return strings.TrimSuffix(strings.TrimPrefix(strings.ToLower(strings.ReplaceAll(name, "_", "")), "kw"), "p")
	}
	tokens := map[string]string{ // that have no word of their own
		"OpenParen": "", "CloseParen": "", "Arrow": "EQUALS_GREATER", "Assign": "COLON_EQUALS", "Group": "GROUP_P", "LCS_UNDEFINED": "LOCK_CLAUSE_STRENGTH_UNDEFINED",
	}
	aliases := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		check := func(own string, e ast.Expr) {
			if call, ok := e.(*ast.CallExpr); ok && len(call.Args) == 1 {
				e = call.Args[0]
			}
			of, ok := e.(*ast.SelectorExpr)
			if !ok {
				return
			}
			if of, is := of.X.(*ast.Ident); !is || of.Name != "pg_query" {
				return
			}
			aliases++
			theirs := of.Sel.Name
			if other, ok := tokens[own]; ok {
				own = other
			}
			_, theirs, found := strings.Cut(theirs, "_")
			if !found {
				theirs = of.Sel.Name
			}
			// Token_IDENT, SetOperation_SETOP_NONE, A_Expr_Kind_AEXPR_OP, Node_AConst: their last part is the name.
			if a, b := plain(own), plain(of.Sel.Name); a != b && plain(theirs) != a && !strings.HasSuffix(strings.ToUpper(of.Sel.Name), "_"+strings.ToUpper(own)) {
				t.Errorf("%s: %s is %s", file, own, of.Sel.Name)
			}
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				check(n.Name.Name, n.Type)
			case *ast.ValueSpec:
				for i, value := range n.Values {
					check(n.Names[i].Name, value)
				}
			}
			return true
		})
	}
	if aliases < 200 {
		t.Errorf("%d names", aliases)
	}
}
