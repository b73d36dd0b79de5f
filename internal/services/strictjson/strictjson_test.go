package strictjson_test

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/services/strictjson"
)

func TestCheck(t *testing.T) {
	for text, want := range map[string]string{
		`{"a": 1, "b": {"a": [1, {"a": "x"}, {"a": null}]}, "c": [[], {}]}`: "",
		`"\ud83d\ude00 \\ud800"`:           "",
		`[{"a": 1}, {"a": 1}]`:             "",
		`{"a": "a", "b": "a"}`:             "",
		`{"a": 1, "a": 1}`:                 "twice",
		`{"a": {}, "\u0061": 1}`:           "twice",
		`{"a": [], "b": 2, "a": []}`:       "twice",
		`{"x": {"b": [{"c": 1, "c": 2}]}}`: "twice",
		`"\ud800"`:                         "surrogate",
		`"\udc00\ud800"`:                   "surrogate",
		`"\ud800\u0041"`:                   "surrogate",
		`"\ud83dx"`:                        "surrogate",
		"\"\xff\"":                         "UTF-8",
		"\"\xed\xa0\x80\"":                 "UTF-8",
		`{"a": 1} {"b": 2}`:                "one JSON value",
		`{"a": 01}`:                        "one JSON value",
		`{'a': 1}`:                         "one JSON value",
		``:                                 "one JSON value",
		`NaN`:                              "one JSON value",
		strings.Repeat("[", 32) + strings.Repeat("]", 32):           "",
		strings.Repeat("[", 33) + strings.Repeat("]", 33):           "deeper",
		strings.Repeat(`{"a":`, 33) + "1" + strings.Repeat("}", 33): "deeper",
		strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000): "JSON", // far beyond the limit of nesting
	} {
		err := strictjson.Check([]byte(text), 32)
		switch {
		case want == "" && err != nil:
			t.Errorf("%.60s: %v", text, err)
		case want != "" && err == nil:
			t.Errorf("%.60s was passed", text)
		case want != "" && want != "JSON" && !strings.Contains(err.Error(), want):
			t.Errorf("%.60s: %v, want %s", text, err, want)
		}
	}
}

func FuzzCheck(f *testing.F) {
	for _, seed := range []string{`{"a": 1}`, `"\ud800\udc00"`, `[[[`, "\xff"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_ = strictjson.Check(data, 8)
	})
}
