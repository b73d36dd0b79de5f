package world

import (
	"testing"

	"github.com/goccy/go-yaml"
)

func TestAttributesOfAgents(t *testing.T) {
	for text, want := range map[string]string{
		`{ a: 7 }`:                "7",
		`{ a: -7 }`:               "-7",
		`{ a: true }`:             "true",
		`{ a: 6f1e }`:             "6f1e",
		`{ a: [1, 2] }`:           `{"1","2"}`,
		`{ a: [x, 'y "\'] }`:      `{"x","y \"\\"}`,
		`{ a: [] }`:               `{}`,
		`{ a: 1.5 }`:              "error",
		`{ a: [[1]] }`:            "error",
		`{ a: { b: c } }`:         "error",
		`{ a: null }`:             "error",
		`{ a: [x, null] }`:        "error",
		`{ a: 2026-01-01 }`:       "2026-01-01",
		`{ a: "ctx:x, ctx:y" }`:   "ctx:x, ctx:y",
		`{ a: ['ctx:x, ctx:y'] }`: `{"ctx:x, ctx:y"}`,
	} {
		var agent Agent
		err := yaml.Unmarshal([]byte("attributes: "+text), &agent)
		got := agent.Attributes["a"]
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%s: %s, want %s (%v)", text, got, want, err)
		}
	}
}
