package yamlfile_test

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
)

var format = yamlfile.Format{
	RefuseOther: "no aliases", SecondDocument: "a second document", SecondDocumentFix: "divide it",
	CheckText: func(place yamlfile.Place, text string) *yamlfile.Error {
		if strings.Contains(text, "${") {
			return place.Errorf("", "a variable")
		}
		return nil
	},
}

func TestNodes(t *testing.T) {
	root, errs := format.Parse("f.yaml", []byte("a: [1, '1', 1.5, True, null]\nb:\n  c: x\n"))
	if errs != nil || root.Kind != yamlfile.MappingNode {
		t.Fatalf("%v, %v", root, errs)
	}
	want := []yamlfile.Node{
		{Kind: yamlfile.ScalarNode, Value: "1", SourceText: "1", ScalarType: yamlfile.IntegerScalar},
		{Kind: yamlfile.ScalarNode, Value: "1", SourceText: "1", ScalarType: yamlfile.StringScalar},
		{Kind: yamlfile.ScalarNode, Value: "1.5", SourceText: "1.5", ScalarType: yamlfile.FloatScalar},
		{Kind: yamlfile.ScalarNode, Value: "true", SourceText: "True", ScalarType: yamlfile.BoolScalar},
		{Kind: yamlfile.NullNode},
	}
	for i, n := range root.Get("a").Items {
		if w := want[i]; n.Kind != w.Kind || n.Value != w.Value || n.SourceText != w.SourceText || n.ScalarType != w.ScalarType {
			t.Errorf("entry %d is %+v, want %+v", i, n, w)
		}
	}
	if c := root.Get("b").Get("c"); c.At().String() != "f.yaml:3:6" || root.Get("b").KeyPlaces[0].Column != 3 {
		t.Errorf("c is at %s, its key at %s", c.Place, root.Get("b").KeyPlaces[0])
	}
	if root.Get("d") != nil {
		t.Error("a key that is not there has a value")
	}
}

// The position of an error inside a YAML text takes into account how the text is quoted or indented.
func TestPlacesWithinTexts(t *testing.T) {
	for text, want := range map[string]string{
		"a: one two":              "f:1:8",
		"a: 'one two'":            "f:1:9",
		"a: |\n  one\n  two":      "f:3:3",
		"a: \"one\n  two\"":       "f:2:3",
		"a: >\n  one two\n  more": "f:2:7",
	} {
		root, errs := format.Parse("f", []byte(text))
		if errs != nil {
			t.Fatal(errs)
		}
		n := root.Get("a")
		if got := n.PlaceOfByte(strings.Index(n.Value, "two")).String(); got != want {
			t.Errorf("%q: two is at %s, want %s", text, got, want)
		}
	}
}

func TestRefused(t *testing.T) {
	deepNesting := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	for text, want := range map[string]string{
		"a: 1\na: 2":        "is there twice",
		"a: &x 1":           "f:1:4: no aliases",
		"a: 1\n---\nb: 2":   "a second document (divide it)",
		"a: ${X}":           "f:1:4: a variable",
		"a:\n\t- b":         "tabs",
		"a: \xff":           "is not UTF-8",
		"\xff\xfea":         "UTF-16",
		"a: \x01":           "control character",
		"a: " + deepNesting: "more than 64 deep",
		"\u00a0a: 1":        "a space of another kind",
		"[a]: 1":            "invalid key",
		"a: [1":             "f:1:",
		"? {a: 1}\n: b\nc":  "f:",
	} {
		root, errs := format.Parse("f", []byte(text))
		if len(errs) == 0 || !strings.Contains(errs.Error(), want) {
			t.Errorf("%.40q: %v, %v, want %q", text, root, errs, want)
		}
	}
}

func TestEmptyFiles(t *testing.T) {
	for _, text := range []string{"", "\n", "# nothing\n"} {
		if root, errs := format.Parse("f", []byte(text)); root != nil || errs != nil {
			t.Errorf("%q: %v, %v", text, root, errs)
		}
	}
}

func TestNearest(t *testing.T) {
	words := []string{"columns", "rows", "write"}
	for misspelt, want := range map[string]string{"colums": "columns", "rwos": "rows", "wirte": "write", "lifecycle": ""} {
		if got, ok := yamlfile.NearestWord(misspelt, words); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v, want %q", misspelt, got, ok, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("a: {b: [1, *x]}\n")
	f.Add("? [a]\n: b\n")
	f.Add("a: |\n  one\n")
	f.Fuzz(func(t *testing.T, text string) {
		root, errs := format.Parse("f", []byte(text))
		for _, e := range errs {
			if e.Message == "" {
				t.Errorf("an error without a message: %v", errs)
			}
		}
		if root != nil && len(errs) == 0 {
			_ = root.PlaceOfByte(1)
		}
	})
}
