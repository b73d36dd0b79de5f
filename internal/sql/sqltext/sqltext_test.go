package sqltext

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

func TestScanRefuses(t *testing.T) {
	for _, c := range []struct {
		name, text string
		code       sqlstate.Code
	}{
		{"NUL", "select 1\x00; drop table x", sqlstate.CharacterNotInRepertoire},
		{"not UTF-8", "select '\xff'", sqlstate.CharacterNotInRepertoire},
		{"too long", strings.Repeat(" ", DefaultMaxBytes+1), sqlstate.ProgramLimitExceeded},
		{"too many tokens", strings.Repeat("1,", MaxTokens/2+1), sqlstate.ProgramLimitExceeded},
		{"a megabyte of parentheses", strings.Repeat("(", DefaultMaxBytes), sqlstate.ProgramLimitExceeded},
		{"parentheses", "select " + strings.Repeat("(", 2000), sqlstate.StatementTooComplex},
		{"unterminated string", "select 'a", sqlstate.SyntaxError},
		{"unterminated comment", "select 1 /* ", sqlstate.SyntaxError},
	} {
		if _, err := Scan(c.text); err == nil || err.Code != c.code || err.Hint == "" && c.code != sqlstate.SyntaxError {
			t.Errorf("%s: %v, want %s", c.name, err, c.code)
		}
	}
	if _, err := Scan(strings.Repeat(" ", DefaultMaxBytes)); err != nil {
		t.Errorf("a text of the full length: %v", err)
	}
}

// Bytes that are not UTF-8 are refused wherever they are in the text, and however long it is.
func TestInvalidUTF8Anywhere(t *testing.T) {
	for _, broken := range []string{"\x00", "\xff", "\xc3", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xc0\x80"} {
		for _, text := range []string{"", "SELECT 1", "SELECT 'ä', \"é\" -- €", strings.Repeat("SELECT 1;", 10_000)} {
			for _, offset := range []int{0, len(text) / 2, len(text)} {
				if _, err := Scan(text[:offset] + broken + text[offset:]); err == nil || err.Code != sqlstate.CharacterNotInRepertoire {
					t.Errorf("%q at %d of %.20q: %v", broken, offset, text, err)
				}
			}
		}
	}
}

// Whatever form a literal has, an error message does not quote it, and WithoutLiterals leaves it out. Names are not
// taken for literals.
func TestLiteralsAreLeftOut(t *testing.T) {
	for _, literal := range []string{"'4711'", "E'4711'", "N'4711'", "U&'4711'", "U&'d!0061 4711' UESCAPE '!'",
		"$$4711$$", "$a$4711$a$", "B'0100111'", "X'4711'", "4711", "47.11", "47e11", ".4711", "0x4711", "4_711", "$4711", "'4' /* x */\n'711'"} {
		for _, text := range []string{literal, "SELECT a " + literal,
			"SELECT 'ä', 1 FROM t WHERE (" + literal + "." + literal + ")", "SELECT ä, " + literal +
				" " + literal, literal + " SELECT", "INSERT INTO t (a, " + literal + ") VALUES (1)"} {
			source, err := Scan(text)
			if err != nil {
				if strings.Contains(err.Message+err.Detail+err.Hint, "711") {
					t.Errorf("%s: %v", text, err)
				}
				continue
			}
			if withoutLiterals := source.WithoutLiterals(); strings.Contains(withoutLiterals, "711") ||
				strings.Contains(withoutLiterals, "0100111") {
				t.Errorf("%s: without literals %q", text, withoutLiterals)
			}
			if _, err = source.Parse(); err != nil && (strings.Contains(err.Message+err.Detail+err.Hint, "711") || strings.Contains(err.Message, "0100111")) {
				t.Errorf("%s: %v", text, err)
			}
		}
		// The end of the literal is missing: the error message must not quote its beginning.
		for i := range literal[:len(literal)-1] {
			if _, err := Parse("SELECT " + literal[:i+1]); err != nil && strings.Contains(err.Message, "711") {
				t.Errorf("%s: %v", literal[:i+1], err)
			}
		}
	}
	for _, name := range []string{"a", "\"a\"", "U&\"a\"", "select", "date", "name", "SET", "\"4711\""} {
		source, err := Scan(name)
		if err != nil || len(source.Tokens) != 1 || !source.Tokens[0].IsName() || source.Tokens[0].IsConstant() {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TokenAt returns the token that starts at an offset, or -1. Position counts characters.
func TestPlaces(t *testing.T) {
	text := "SELECT 'ä', \"é\" FROM t -- €\nWHERE a = 'ö'"
	source, err := Scan(text)
	if err != nil {
		t.Fatal(err)
	}
	starts := map[int32]int{}
	for i, token := range source.Tokens {
		starts[token.Start] = i
	}
	for offset := int32(-2); int(offset) < len(text)+3; offset++ {
		want, ok := starts[offset]
		if !ok {
			want = -1
		}
		if got := source.TokenAt(offset); got != want {
			t.Errorf("at %d is token %d, want %d", offset, got, want)
		}
		position := 0
		if offset >= 0 && int(offset) <= len(text) {
			position = len([]rune(text[:offset])) + 1
		}
		if got := source.Position(offset); got != position {
			t.Errorf("%d is position %d, want %d", offset, got, position)
		}
	}
	for i := -2; i < len(source.Tokens)+2; i++ {
		if kind := source.KindAt(i); (kind == 0) != (i < 0 || i >= len(source.Tokens)) {
			t.Errorf("token %d is %d", i, kind)
		}
	}
}

// Syntax errors carry PostgreSQL's message and position, in characters.
func TestSyntaxError(t *testing.T) {
	_, err := Parse("SELECT 'ä' FROM FROM x")
	if err == nil || err.Code != sqlstate.SyntaxError || err.Message != `syntax error at or near "FROM"` || err.Position != 17 {
		t.Errorf("%+v", err)
	}
	_, err = Parse("SELECT ä NOT /* äöü */ IN (1), ö NOT /* € */ LIKE 'b' FROM FROM x")
	if err == nil || err.Message != `syntax error at or near "FROM"` || err.Position != 60 {
		t.Errorf("behind comments that are blanks for the parser: %+v", err)
	}
	_, err = Parse("SELECT 'ä' 'secret' 'x' 'secret'")
	if err == nil || err.Message != "syntax error at or near a literal" || err.Position != 12 {
		t.Errorf("%+v", err)
	}
}

// WithoutLiterals leaves out words in literals and comments.
func TestTextWithoutLiterals(t *testing.T) {
	s, err := Scan("SELECT a /* at local */ FROM 'json_table('")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(strings.Fields(s.WithoutLiterals()), " "); got != "SELECT a FROM" {
		t.Error(got)
	}
}

func TestSplice(t *testing.T) {
	text := "SELECT ä, b FROM t WHERE é = 1"
	offsetOf := func(part string) int32 { return int32(strings.Index(text, part)) }
	edits := []Edit{
		{offsetOf(" WHERE"), offsetOf(" WHERE"), " AS t"},
		{offsetOf("t WHERE"), offsetOf("t WHERE") + 1, "(€€)"},
		{offsetOf("b FROM"), offsetOf("b FROM"), "first "},
		{offsetOf("b FROM"), offsetOf("b FROM") + 1, "B"},
	}
	s, err := ApplyEdits(text, edits)
	if err != nil {
		t.Fatal(err)
	}
	if want := "SELECT ä, first B FROM (€€) AS t WHERE é = 1"; s.Text != want {
		t.Fatalf("got %q, want %q", s.Text, want)
	}
	chars := func(s, part string) int { return len([]rune(s[:strings.Index(s, part)])) + 1 }
	for _, c := range []struct{ spliced, original string }{
		{"SELECT", "SELECT"}, {"ä", "ä"}, {"first", "b FROM"}, {"B", "b FROM"}, {"FROM", "FROM"}, {"€", "t WHERE"}, {"€)", "t WHERE"},
		{"AS t", " WHERE"}, {"WHERE", "WHERE"}, {"é", "é"}, {"= 1", "= 1"},
	} {
		if got, want := s.Position(chars(s.Text, c.spliced)), chars(text, c.original); got != want {
			t.Errorf("%q is at %d of the original, want %d", c.spliced, got, want)
		}
	}
	if s.Position(0) != 0 || s.Position(-1) != -1 {
		t.Error("no position must stay none")
	}
	if got := s.Position(len([]rune(s.Text)) + 1); got != len([]rune(text))+1 {
		t.Errorf("the end maps to %d", got)
	}
	for _, overlapping := range [][]Edit{{{0, 3, ""}, {2, 4, ""}}, {{3, 2, ""}}, {{0, 1000, ""}}} {
		if _, err := ApplyEdits(text, overlapping); err == nil {
			t.Errorf("edits %v were taken", overlapping)
		}
	}
}

// TestSpliceAgreesWithTheModel: whatever the edits are, and in whichever order they are given, the new text is that of
// a simple model. Each of its characters is traced back to its position in the old text, or to its edit.
func TestSpliceAgreesWithTheModel(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 9))
	letters := []rune("aä€😀 b")
	word := func(limit int) string {
		out := make([]rune, random.IntN(limit+1))
		for i := range out {
			out[i] = letters[random.IntN(len(letters))]
		}
		return string(out)
	}
	for range 3000 {
		text := word(60)
		offsets := []int{}
		for offset := range text {
			offsets = append(offsets, offset)
		}
		offsets = append(offsets, len(text))
		var edits []Edit
		var want []rune
		var origins []int // for each character of the new text its position in the old one, counted from 1
		copyUntil := func(until int, start *int) {
			for _, r := range text[*start:until] {
				want, origins = append(want, r), append(origins, len([]rune(text[:*start]))+1)
				*start += len(string(r))
			}
		}
		insertText := func(s string, oldOffset int) {
			for _, r := range s {
				want, origins = append(want, r), append(origins, len([]rune(text[:oldOffset]))+1)
			}
		}
		oldOffset := 0
		for i := 0; i < len(offsets); i++ {
			var insertions []Edit
			for range random.IntN(3) * random.IntN(2) {
				insertions = append(insertions, Edit{int32(offsets[i]), int32(offsets[i]), word(3)})
			}
			endIndex := min(len(offsets)-1, i+random.IntN(3)*random.IntN(2))
			copyUntil(offsets[i], &oldOffset)
			for _, e := range insertions {
				insertText(e.Text, offsets[i])
			}
			edits = append(edits, insertions...)
			if endIndex > i { // a replacement, given at a random position in the list of edits
				e := Edit{int32(offsets[i]), int32(offsets[endIndex]), word(4)}
				insertText(e.Text, offsets[i])
				oldOffset = offsets[endIndex]
				n := len(edits) - random.IntN(len(insertions)+1)
				edits = slices.Insert(edits, n, e)
				i = endIndex - 1
			}
		}
		copyUntil(len(text), &oldOffset)
		for i := len(edits) - 1; i > 0; i-- { // insertions at one offset keep their order
			if j := random.IntN(i + 1); edits[i].Start != edits[i].End {
				e := edits[i]
				edits = slices.Insert(slices.Delete(edits, i, i+1), j, e)
			}
		}
		got, err := ApplyEdits(text, slices.Clone(edits))
		if err != nil || got.Text != string(want) {
			t.Fatalf("%q with %v is %q, want %q: %v", text, edits, got.Text, string(want), err)
		}
		for i, origin := range origins {
			if gotOrigin := got.Position(i + 1); gotOrigin != origin {
				t.Fatalf("%q with %v is %q: the character %d comes from %d, want %d", text, edits, got.Text, i+1, gotOrigin, origin)
			}
		}
	}
}

func TestProve(t *testing.T) {
	intended := func(text string) *ParseResult {
		tree, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return tree
	}
	if err := ProveSameTree(intended("SELECT (a) + 1 FROM t"), "SELECT\n a+1 /* x */ FROM t"); err != nil {
		t.Errorf("equal trees: %v", err)
	}
	// Statements whose parentheses a deparser has lost: the proof must notice each.
	for _, c := range []struct{ intended, text string }{
		{"SELECT * FROM d WHERE c AND (o = 'me' OR true)::bool", "SELECT * FROM d WHERE c AND o = 'me' OR true::bool"},
		{"SELECT * FROM d WHERE c AND (o OR true) IN (true)", "SELECT * FROM d WHERE c AND o OR true IN (true)"},
		{"SELECT * FROM d WHERE c AND (o OR true) IS NOT NULL", "SELECT * FROM d WHERE c AND o OR true IS NOT NULL"},
		{"SELECT * FROM d WHERE c AND (o OR b) COLLATE x", "SELECT * FROM d WHERE c AND o OR b COLLATE x"},
		{"SELECT 1", "SELECT 1; DROP TABLE d"},
		{"SELECT 1", "SELECT 2"},
		{"SELECT 1", "SELECT"},
		{"SELECT a FROM t", "SELECT a FROM u"},
	} {
		if err := ProveSameTree(intended(c.intended), c.text); err == nil || err.Reason != sqlstate.ReasonProof {
			t.Errorf("%q passed for %q: %v", c.text, c.intended, err)
		}
	}
	// If a text exceeds the bounds because of inserted predicates, the error says so, and the text is not proved.
	for _, text := range []string{"SELECT 1" + strings.Repeat("+1", MaxDepth),
		"SELECT 1 -- " + strings.Repeat("x", DefaultMaxBytes), "SELECT 1" +
			strings.Repeat(",1", MaxTokens/2), "SELECT 1 -- \x00", "SELECT 1 -- \xff", "SELECT " + strings.Repeat("(", DefaultMaxBytes/2)} {
		if err := ProveSameTree(intended("SELECT 1"), text); err == nil || err.Reason != sqlstate.ReasonBounds {
			t.Errorf("%.20q passed: %v", text, err)
		}
	}
	if err := ProveSameTree(intended("SELECT 1"), "SELECT ("); err == nil || err.Reason != sqlstate.ReasonProof {
		t.Errorf("a text that does not parse: %v", err)
	}
}

func TestCount(t *testing.T) {
	tree, err := Parse("SELECT f(a), (SELECT 1 FROM x) FROM t, u WHERE EXISTS (SELECT FROM v)")
	if err != nil {
		t.Fatal(err)
	}
	counts, isComplete := CountNodeKinds(tree)
	if !isComplete || counts["RangeVar"] != 4 || counts["SelectStmt"] != 3 || counts["FuncCall"] != 1 || counts["SubLink"] != 2 {
		t.Errorf("%v %v", isComplete, counts)
	}
	tree.ProtoReflect().SetUnknown([]byte{0xf8, 0xff, 0xff, 0xff, 0x0f, 1})
	if _, isComplete := CountNodeKinds(tree); isComplete {
		t.Error("an unknown field went unnoticed")
	}
}

// The parser's C code crashes when it deparses some statements. Parsing them must not crash.
func TestOddStatements(t *testing.T) {
	for _, text := range []string{"COPY t FROM STDIN (NULL 1)", "COPY t FROM STDIN (DELIMITER 5)", "COPY t TO STDOUT (FORMAT, FORCE_NULL (b))",
		"SELECT (ARRAY[1,2])[1]", "SELECT U&'\\0061' UESCAPE '!'", "SELECT $$a$$, $b$c$b$, E'\\x41', x'1f', b'01', 1_000"} {
		if source, err := Scan(text); err == nil {
			_, _ = source.Parse()
		}
	}
}

// FuzzBounds: for any text, Scan and Parse return, and the depth of the tree is within the bound.
func FuzzBounds(f *testing.F) {
	for _, s := range shapes {
		f.Add(shape{s.head, s.open, s.middle, s.close}.text(3))
		f.Add(shape{s.head, s.open, s.middle, s.close}.text(40))
	}
	f.Fuzz(func(t *testing.T, text string) {
		source, err := Scan(text)
		if err != nil {
			return
		}
		for i, token := range source.Tokens {
			if token.Start >= token.End || int(token.End) > len(text) || i > 0 && token.Start < source.Tokens[i-1].End {
				t.Fatalf("token %d of %q is at %d-%d", i, text, token.Start, token.End)
			}
		}
		tree, err := source.Parse()
		if err != nil {
			return
		}
		if depth, bound := treeDepth(tree), maxTreeDepth(source.Tokens); depth > messagesPerLevel*bound+20 {
			t.Fatalf("%q: the tree is %d deep, the bound says %d", text, depth, bound)
		}
	})
}

func BenchmarkParseAndProve(b *testing.B) {
	text := "SELECT m.title, count(*) FROM memories m JOIN people p ON p.id = m.id WHERE m.body LIKE 'x%' GROUP BY m.title ORDER BY 2 LIMIT 10"
	b.ReportAllocs()
	for b.Loop() {
		source, _ := Scan(text)
		tree, _ := source.Parse()
		if err := ProveSameTree(tree, text); err != nil {
			b.Fatal(err)
		}
	}
}

// The parser joins some pairs of words into one token. As in PostgreSQL, a comment between them counts as white space,
// and positions stay the same.
func TestCommentsBetweenPairsOfWords(t *testing.T) {
	for commented, plain := range map[string]string{
		"SELECT a NOT /* x */ LIKE b FROM t WHERE no":     "SELECT a NOT         LIKE b FROM t WHERE no",
		"SELECT a NOT -- x\n ILIKE b, c FROM t":           "SELECT a NOT       ILIKE b, c FROM t",
		"SELECT a FROM t ORDER BY a NULLS/**/FIRST, b":    "SELECT a FROM t ORDER BY a NULLS    FIRST, b",
		"SELECT '1'::timestamp WITH /* 'x' */ TIME ZONE":  "SELECT '1'::timestamp WITH           TIME ZONE",
		"SELECT 1 NOT /* /* x */ */ BETWEEN 2 AND 3":      "SELECT 1 NOT               BETWEEN 2 AND 3",
		"SELECT * FROM f() WITH /*x*/ ORDINALITY AS x(a)": "SELECT * FROM f() WITH       ORDINALITY AS x(a)",
	} {
		a, err := Parse(commented)
		if err != nil {
			t.Errorf("%s: %v", commented, err)
			continue
		}
		b, err := Parse(plain)
		if err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(a, b) {
			t.Errorf("%s: another tree than without the comment", commented)
		}
	}
	// Each of these pairs, in upper and lower case, with different comments between.
	for text, pairs := range map[string]string{
		"SELECT a NOT BETWEEN 1 AND 2": "NOT BETWEEN", "SELECT a NOT IN (1)": "NOT IN",
		"SELECT a NOT LIKE 'b'": "NOT LIKE", "SELECT a NOT ILIKE 'b'": "NOT ILIKE", "SELECT a NOT SIMILAR TO 'b'": "NOT SIMILAR",
		"SELECT a FROM t ORDER BY a NULLS FIRST": "NULLS FIRST", "SELECT a FROM t ORDER BY a NULLS LAST": "NULLS LAST",
		"SELECT a::timestamp WITH TIME ZONE": "WITH TIME", "SELECT a::timestamp WITHOUT TIME ZONE": "WITHOUT TIME",
		"SELECT a::time(3) WITHOUT TIME ZONE": "WITHOUT TIME", "SELECT * FROM f() WITH ORDINALITY": "WITH ORDINALITY",
		"SELECT U&'d!0061' UESCAPE '!'": "' UESCAPE", "SELECT json_object('a': '1' FORMAT JSON)": "FORMAT JSON", "WITH a AS (SELECT 1) SELECT 1": "AS (",
	} {
		first, second, _ := strings.Cut(pairs, " ")
		for _, gap := range []string{"/**/", " /* x */ ", "/* /* ' */ */\n", " -- '\n", "\n--\n-- b\n", "/*ä*/", " "} {
			for _, plainText := range []string{text, strings.ToLower(text)} {
				a, b := first, second
				if plainText != text {
					a, b = strings.ToLower(a), strings.ToLower(b)
				}
				commented := strings.Replace(plainText, a+" "+b, a+gap+b, 1)
				tree, err := Parse(commented)
				if err != nil {
					t.Errorf("%q: %v", commented, err)
					continue
				}
				plain, err := Parse(plainText)
				if err != nil {
					t.Fatal(plainText, err)
				}
				if !equalTrees(tree, plain) {
					t.Errorf("%q: another tree than without the comment", commented)
				}
			}
		}
	}
	// A literal that looks like a comment is not one.
	if _, err := Parse("SELECT a NOT 'x /* y */' LIKE b"); err == nil {
		t.Error("a literal between the words passes for a comment")
	}
}

// A literal that UESCAPE follows directly is parsed without changes.
func TestEscapedLiterals(t *testing.T) {
	for _, sql := range []string{"SELECT U&'d!0061t' UESCAPE '!'", "SELECT U&'d!0061t''' UESCAPE '!'", "SELECT U&'d!0061t'/* ' */UESCAPE '!'"} {
		if tree, refusal := Parse(sql); refusal != nil || !strings.Contains(tree.String(), "dat") {
			t.Errorf("%s: %v, %v", sql, tree, refusal)
		}
	}
}
