package sqltext

import (
	"reflect"
	"testing"

	pg_query "github.com/pganalyze/pg_query_go/v5"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// For each kind of message, readFields finds the fields of the grammar, in its order.
func TestFieldsAreThoseOfTheGrammar(t *testing.T) {
	n := 0
	protoregistry.GlobalTypes.RangeMessages(func(kind protoreflect.MessageType) bool {
		if kind.Descriptor().ParentFile() != (&pg_query.ParseResult{}).ProtoReflect().Descriptor().ParentFile() {
			return true
		}
		n++
		m := kind.New().Interface()
		fields, v := messageFieldsOf(m)
		if fields.kind != string(kind.Descriptor().Name()) {
			t.Errorf("%s is %s", kind.Descriptor().Name(), fields.kind)
		}
		got := map[string]bool{}
		var last protoreflect.FieldNumber
		for _, f := range fields.messages {
			if f.name == "" {
				got[string(kind.Descriptor().Oneofs().Get(0).Name())] = true
				continue
			}
			d := kind.Descriptor().Fields().ByName(protoreflect.Name(f.name))
			if d == nil || d.IsList() != f.isList || d.Number() < last {
				t.Fatalf("%s.%s is not as in the grammar", fields.kind, f.name)
			}
			got[f.name], last = true, d.Number()
		}
		for _, i := range append(fields.scalars, fields.scalarLists...) {
			got[protobufName(v.Type().Field(i))] = true
		}
		for i := range kind.Descriptor().Fields().Len() {
			d := kind.Descriptor().Fields().Get(i)
			name := string(d.Name())
			if d.ContainingOneof() != nil {
				name = string(d.ContainingOneof().Name())
			}
			isLocation := d.Kind() == protoreflect.Int32Kind && (name == "location" || name == "stmt_location" || name == "stmt_len")
			if isLocation == got[name] {
				t.Errorf("%s.%s: read %t", fields.kind, name, got[name])
			}
		}
		return true
	})
	if n < 200 {
		t.Errorf("%d kinds of messages", n)
	}
}

// EachMessage finds the same messages as protobuf's own reflection.
func TestMessagesAreThoseOfReflection(t *testing.T) {
	for _, text := range []string{
		"SELECT a.b[1:2], 'x'::text, 1.5, B'1', true, NULL, count(*) FILTER (WHERE c) OVER w FROM t a JOIN LATERAL f($1) ON true " +
			"WHERE x IN (1, 2) AND NOT (y AND z) GROUP BY ROLLUP (a) HAVING sum(d) > 0 WINDOW w AS (PARTITION BY e) ORDER BY 1 LIMIT 3",
		"WITH RECURSIVE q AS (SELECT 1 UNION ALL SELECT n + 1 FROM q) INSERT INTO t (a) SELECT * FROM q ON CONFLICT (a) DO UPDATE SET a = 1 RETURNING a",
		"BEGIN; SET TimeZone = 'UTC'; DECLARE c CURSOR FOR SELECT 1; COPY t TO STDOUT (FORMAT csv); COMMIT",
	} {
		tree, err := pg_query.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		Walk(tree, func(m proto.Message) bool {
			var got, want []proto.Message
			EachMessage(m, func(_ string, child proto.Message) { got = append(got, child) })
			r := m.ProtoReflect()
			for i := range r.Descriptor().Fields().Len() {
				field := r.Descriptor().Fields().Get(i)
				switch {
				case field.Message() == nil || !r.Has(field):
				case field.IsList():
					for k := range r.Get(field).List().Len() {
						want = append(want, r.Get(field).List().Get(k).Message().Interface())
					}
				default:
					want = append(want, r.Get(field).Message().Interface())
				}
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%T: %v, want %v", m, got, want)
			}
			return true
		})
	}
}

// A nil message contains no messages.
func TestMessagesOfNil(t *testing.T) {
	if NodeContent(nil) != nil || NodeContent(&Node{}) != nil || NodeKind(nil) != "Node" {
		t.Error("nothing has a content")
	}
	EachMessage((*SelectStmt)(nil), func(string, proto.Message) { t.Error("nothing has a message") })
}
