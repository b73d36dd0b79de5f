package sqltext

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pgconsent/pgconsent/test/property"
)

func TestShape(t *testing.T) {
	for text, want := range map[string]string{
		"SELECT * FROM t WHERE id = 12 AND name='a b';": "SELECT * FROM t WHERE id = ? AND name=?;|12|a b",
		"SELECT 1 FROM t WHERE id IN (1,2 , 3)":         "SELECT ? FROM t WHERE id IN (?,? , ?)|1|1|2|3",
		"SELECT t1.a2 FROM t1 WHERE x<5":                "SELECT t1.a2 FROM t1 WHERE x<?|5",
		"SELECT 2147483648, 5.0, 5::text, -5, 0x1F, 1e": "|", // longer numbers, parts of others, casts
		"SELECT 5.0, 6":         "SELECT 5.0, ?|6",
		"SELECT 'it''s'":        "|",
		`SELECT 'a\b'`:          "|",
		"SELECT E'a'":           "|",
		"SELECT 'a":             "|",
		"SELECT 'a'::text":      "|",
		"SELECT $1, 5":          "|",
		"SELECT $$a$$, 5":       "|",
		"SELECT a":              "|",
		"SELECT '\x00'":         "|",
		"SELECT 'über', 7 -- x": "SELECT ?, ? -- x|über|7",
	} {
		shape, literals := TextShape(text)
		got := strings.NewReplacer("\x000", "?", "\x00'", "?").Replace(shape)
		for _, l := range literals {
			got += "|" + l.Value(text)
		}
		if len(literals) == 0 {
			got += "|"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if shape, _ := TextShape(strings.Repeat("1, ", maxLiterals+1)); shape != "" {
		t.Error("a text has too many literals")
	}
	if a, _ := TextShape("x = 1"); a == "" {
		t.Error("no shape")
	} else if b, _ := TextShape("x = '1'"); a == b {
		t.Error("a number has the shape of a string")
	}
}

// Characters inside a comment or a quoted name are no literal, even if they look like one.
func TestHasLiterals(t *testing.T) {
	for text, want := range map[string]bool{
		"SELECT * FROM t WHERE id = 12 AND name = 'a'":      true,
		"SELECT * FROM t /* 12 */ WHERE id = 12":            false,
		"SELECT * FROM t WHERE id = 12 -- 'a'":              false,
		`SELECT "a 12 " FROM t WHERE id = 12`:               false,
		`SELECT "it's" FROM t WHERE "it's" = 12`:            false,
		"SELECT * FROM t WHERE id = 12 AND name = 'a'\n'b'": false,
	} {
		_, literals := TextShape(text)
		source, err := Scan(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(literals) > 0 && source.HasLiterals(literals); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

// Two texts of one shape have the same tokens, except for the literals, if the literals of one of them are tokens.
func TestTextsOfOneShape(t *testing.T) {
	pieces := []string{"SELECT", " ", " a", "=", "(", ")", ",", ";", "12", "7", "'x'", "'a b'", "''", "'", `"`, `\`, "--", "/*", "*/", "\n",
		"E'", "U&'", "x.5", "1e5", "<", ">", "-", "::text", "é", "'é'"}
	other := []string{"'; DROP TABLE a'", "'--'", "'*/'", "'/*'", `'"'`, "'1'", "' '"}
	comparedCount := 0
	property.CheckMore(t, 20, func(r *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 14).Draw(r, "pieces"), "")
		shape, literals := TextShape(text)
		source, refusal := Scan(text)
		if shape == "" || refusal != nil || !source.HasLiterals(literals) {
			return
		}
		var changed strings.Builder
		copiedEnd := 0
		for _, l := range literals {
			literal := rapid.SampledFrom([]string{"0", "5", "007", "123456789", "2147483647", "0000000001"}).Draw(r, "number")
			if l.IsString(text) {
				literal = rapid.SampledFrom(other).Draw(r, "string")
			}
			changed.WriteString(text[copiedEnd:l.Start] + literal)
			copiedEnd = l.End
		}
		changed.WriteString(text[copiedEnd:])
		changedShape, changedLiterals := TextShape(changed.String())
		if changedShape != shape {
			r.Fatalf("%q and %q have other shapes", text, changed.String())
		}
		changedSource, refusal := Scan(changed.String())
		if refusal != nil || !changedSource.HasLiterals(changedLiterals) ||
			!slices.EqualFunc(source.Tokens, changedSource.Tokens, func(a, b Token) bool { return a.Kind == b.Kind && a.Keyword == b.Keyword }) {
			r.Fatalf("%q has other tokens than %q: %v", changed.String(), text, refusal)
		}
		comparedCount++
	})
	if comparedCount == 0 {
		t.Error("no text has plain literals")
	}
}
