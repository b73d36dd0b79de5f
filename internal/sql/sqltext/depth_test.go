package sqltext

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/pgconsent/pgconsent/test/tier"
)

// treeDepth returns how deeply messages are nested, over which the parser's C functions recurse.
func treeDepth(m proto.Message) int { return messageDepth(m.ProtoReflect()) }

func messageDepth(m protoreflect.Message) int {
	deepest := 0
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				deepest = max(deepest, messageDepth(v.List().Get(i).Message()))
			}
		default:
			deepest = max(deepest, messageDepth(v.Message()))
		}
		return true
	})
	return deepest + 1
}

// messagesPerLevel is an upper bound of the nested messages for one counted level. A sub-select counts as four levels
// (a parenthesis, and three for SELECT) and has some ten messages.
const messagesPerLevel = 6

// shapes are texts that nest in all ways of the grammar: head, open repeated, middle, and close repeated.
var shapes = []struct{ name, head, open, middle, close string }{
	{"plus", "SELECT 1", "+1", "", ""},
	{"casts", "SELECT 1", "::int", "", ""},
	{"union", "SELECT 1", " UNION SELECT 1", "", ""},
	{"union with lists", "SELECT 1,1", " UNION SELECT 1,1", "", ""},
	{"except in parentheses", "SELECT 1 WHERE EXISTS (SELECT 1", " EXCEPT SELECT 1", ")", ""},
	{"join", "SELECT 1 FROM a", " JOIN a ON true", "", ""},
	{"join with commas", "SELECT 1 FROM a", " JOIN a USING (x, y)", "", ""},
	{"nested join", "SELECT 1 FROM ", "(a JOIN ", "a", " ON true)"},
	{"right join", "SELECT 1 FROM a", " JOIN a", "", " ON true"},
	{"parentheses", "SELECT ", "(", "1", ")"},
	{"operators behind parentheses", "SELECT ", "(", "1", "+1+1+1+1+1+1+1+1+1+1)"},
	{"operators behind calls", "SELECT ", "f(1,", "1", ",1)+1+1+1+1+1+1+1+1+1+1"},
	{"not", "SELECT ", "NOT ", "a", ""},
	{"minus", "SELECT ", "- ", "1", ""},
	{"between not", "SELECT ", "1 BETWEEN 2 AND NOT ", "3", ""},
	{"is distinct from not", "SELECT ", "1 IS DISTINCT FROM NOT ", "3", ""},
	{"case", "SELECT ", "CASE WHEN ", "1", " THEN 1 END"},
	{"case and", "SELECT ", "CASE WHEN a AND ", "b", " THEN 1 END"},
	{"case else", "SELECT ", "CASE WHEN a THEN 1 ELSE ", "b", " END"},
	{"case with labels", "SELECT ", "CASE WHEN a.end AND ", "b", " THEN 1 END"},
	{"sub-select", "SELECT ", "(SELECT ", "1", ")"},
	{"sub-select in from", "SELECT * FROM ", "(SELECT * FROM ", "a", ") x"},
	{"calls", "SELECT ", "f(", "1", ")"},
	{"calls with lists", "SELECT ", "f(1,2,", "1", ",3)"},
	{"arrays", "SELECT ", "ARRAY[", "1", "]"},
	{"bare arrays", "SELECT ARRAY", "[", "1", "]"},
	{"subscripts", "SELECT a", "[1]", "", ""},
	{"in lists", "SELECT ", "1 IN (2, ", "3", ")"},
	{"with", "", "WITH x AS (", "SELECT 1", ") SELECT 1"},
	{"collate", "SELECT a", " COLLATE c", "", ""},
	{"time zones", "SELECT a", " AT TIME ZONE b", "", ""},
	{"json", "SELECT ", "JSON_OBJECT('a': ", "1", ")"},
	{"xml", "SELECT ", "XMLELEMENT(NAME a, ", "1", ")"},
	{"label union", "SELECT 1", "+1+1+1+1 + a.union", "", ""},
	{"function join", "SELECT 1", "+1+1+1+1 + join(1)", "", ""},
	{"time zone join", "SELECT 1", " AT TIME ZONE join(1)", "", ""},
	{"and or", "SELECT a", " AND a OR a", "", ""},
	{"and", "SELECT 1 WHERE a = 1", " AND a = 1", "", ""},
	{"list", "SELECT 1", ", 1", "", ""},
	{"values", "VALUES (1, 2)", ", (1, 2)", "", ""},
	{"statements", "SELECT 1", "; SELECT 1", "", ""},
	{"atomic", "", "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC ", "SELECT 1;", " END;"},
	{"atomic statements", "CREATE FUNCTION f() RETURNS int BEGIN ATOMIC ", "SELECT 1;", "", ""},
	{"grouping sets", "SELECT 1 GROUP BY ", "GROUPING SETS (", "a", ")"},
	{"rows", "SELECT ", "ROW(", "1", ")"},
	{"isnull", "SELECT ", "(a ISNULL) = (", "b", ")"},
	{"copy", "COPY t FROM STDIN (NULL 1", ", NULL 1", ")", ""},
	{"rule", "CREATE RULE r AS ON INSERT TO t DO ALSO (SELECT 1", "; SELECT 1 + 1", ")", ""},
}

func (s shape) text(n int) string {
	return s.head + strings.Repeat(s.open, n) + s.middle + strings.Repeat(s.close, n)
}

type shape struct{ head, open, middle, close string }

// Every text that Scan accepts has a tree within the bound, however it is nested, and parsing it does not end the
// process.
func TestDepthBound(t *testing.T) {
	tier.All(t)
	for _, s := range shapes {
		for _, n := range []int{1, 90, 900, 24_000, 200_000} {
			text := shape{s.head, s.open, s.middle, s.close}.text(n)
			source, refusal := Scan(text)
			if refusal != nil {
				continue
			}
			tree, refusal := source.Parse()
			if refusal != nil {
				continue
			}
			bound := maxTreeDepth(source.Tokens)
			if depth := treeDepth(tree); depth > messagesPerLevel*bound+20 {
				t.Errorf("%s × %d: the tree is %d deep, the bound says %d", s.name, n, depth, bound)
			}
		}
	}
}

// Long texts without nesting are not refused.
func TestDepthOfFlatText(t *testing.T) {
	for _, c := range []struct {
		name string
		n    int
		s    shape
	}{
		{"and", 10_000, shape{"SELECT 1 WHERE a = 1", " AND b = 2", "", ""}},
		{"or", 10_000, shape{"SELECT 1 WHERE a = 1", " OR b LIKE 'x' || c", "", ""}},
		{"in", 20_000, shape{"SELECT 1 WHERE a IN (1", ", 2", ")", ""}},
		{"between", 5_000, shape{"SELECT 1 WHERE a BETWEEN 1 AND 2", " AND a BETWEEN 1 AND 2", "", ""}},
		{"values", 20_000, shape{"VALUES (1, 'a')", ", (1, 'a')", "", ""}},
		{"union", 900, shape{"SELECT a, b FROM t WHERE a = 1 ORDER BY 1", "", "", ""}},
		{"union all", 900, shape{"SELECT a FROM t WHERE b = 1", " UNION ALL SELECT a FROM t WHERE b = 1", "", ""}},
		{"joins", 300, shape{"SELECT 1 FROM t", " LEFT JOIN t AS u ON u.a = t.a AND u.b = t.b", "", ""}},
		{"plus", 900, shape{"SELECT 1", " + 1", "", ""}},
		{"concatenation", 900, shape{"SELECT 'a'", " || b", "", ""}},
		{"case", 2_000, shape{"SELECT CASE", " WHEN a = 1 THEN 2", " END", ""}},
		{"columns", 1_600, shape{"SELECT a", ", coalesce(b, c) AS d", " FROM t", ""}},
		{"statements", 5_000, shape{"SELECT 1", "; SELECT a FROM b WHERE c = 1", "", ""}},
	} {
		if _, err := Parse(c.s.text(c.n)); err != nil {
			t.Errorf("%s × %d: %v", c.name, c.n, err)
		}
	}
}

// The tests of depth pass in a process with a stack of one megabyte.
func TestSmallStack(t *testing.T) {
	tier.All(t)
	if os.Getenv("SQLTEXT_SMALL_STACK") != "" {
		t.Skip("already there")
	}
	cmd := exec.Command("/bin/sh", "-c", `ulimit -s 1024 && exec "$0" -test.run '^TestDepth' -test.count=1`, os.Args[0])
	cmd.Env = append(os.Environ(), "SQLTEXT_SMALL_STACK=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// Random texts that Scan accepts have trees within the bound.
func TestDepthOfRandomText(t *testing.T) {
	tier.All(t)
	words := strings.Fields("( ) ( ) [ ] , ; 1 a 'x' + - * :: int NOT AND OR BETWEEN CASE WHEN THEN ELSE END " +
		"SELECT FROM WHERE UNION JOIN ON t IN IS NULL AS . f( ARRAY[ LEFT GROUP BY COLLATE LIKE ESCAPE AT TIME ZONE INTERVAL DISTINCT")
	random := rand.New(rand.NewPCG(1, 2))
	parsedCount := 0
	for range 20_000 {
		var b strings.Builder
		b.WriteString("SELECT ")
		for range 1 + random.IntN(14) {
			b.WriteString(words[random.IntN(len(words))])
			b.WriteByte(' ')
		}
		// Repeating a piece of text makes chains of operators.
		text := b.String()
		if random.IntN(3) == 0 {
			text += strings.Repeat(strings.TrimPrefix(b.String(), "SELECT "), 1+random.IntN(40))
		}
		source, refusal := Scan(text)
		if refusal != nil {
			continue
		}
		tree, refusal := source.Parse()
		if refusal != nil {
			continue
		}
		parsedCount++
		if depth, bound := treeDepth(tree), maxTreeDepth(source.Tokens); depth > messagesPerLevel*bound+20 {
			t.Fatalf("%s: the tree is %d deep, the bound says %d", text, depth, bound)
		}
	}
	if parsedCount < 100 {
		t.Errorf("only %d random texts parsed", parsedCount)
	}
}
