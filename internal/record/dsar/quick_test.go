package dsar

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// The quick parser, which does not decode the JSON, returns the same as decoding. The lines are the writer's own, and
// others.
func TestQuickParserAgreesWithDecoder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	texts := []string{"", "a", "public.notes", `with "quotes"`, `back\slash`, "ü表", "\x00",
		`"keys":[{"table":"x","exact":true,"rows":["y"]}]`, `,"rows":["`, "<&>", `"verdict":"deny"`, "]},{"}
	randomText := func() string {
		if random.IntN(3) > 0 {
			return fmt.Sprintf("%x", random.Uint32())
		}
		return texts[random.IntN(len(texts))]
	}
	record := func(kind string, body any) []byte {
		b, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Appendf(nil,
			`{"v":2,"seq":7,"time":"2026-01-01T00:00:00.000000Z","prev":"%s","kind":"%s",%s,"hash":"%s","kid":"00000000","mac":"%s"}`+"\n",
			strings.Repeat("0", 64), kind, b[1:len(b)-1], strings.Repeat("0", 64), strings.Repeat("0", 64))
	}
	body := func(line []byte, kind string) auditLine {
		_, afterKind, _ := bytes.Cut(line, []byte(`"kind":"`+kind+`",`))
		return auditLine{text: line, body: afterKind, kind: kind}
	}
	quickCounts := map[string]int{}
	for range 20000 {
		type recordedKeys struct {
			Table string   `json:"table"`
			Exact bool     `json:"exact"`
			Rows  []string `json:"rows,omitempty"`
		}
		o := struct {
			Decision uint64         `json:"decision"`
			Session  string         `json:"session"`
			Rows     int64          `json:"rows"`
			Bytes    int64          `json:"bytes"`
			SQLState string         `json:"sqlstate"`
			Keys     []recordedKeys `json:"keys,omitempty"`
		}{random.Uint64() >> 11, randomText(), random.Int64N(1000), random.Int64N(1000), "00000", nil}
		for range random.IntN(3) {
			k := recordedKeys{Table: randomText(), Exact: random.IntN(2) == 0}
			for range random.IntN(4) {
				k.Rows = append(k.Rows, randomText())
			}
			o.Keys = append(o.Keys, k)
		}
		line := record("outcome", o)
		if random.IntN(4) == 0 { // in another form than the writer's
			index := random.IntN(len(line) - 1)
			line = slices.Delete(slices.Clone(line), index, min(index+1+random.IntN(3), len(line)-1))
		}
		if l := body(line, "outcome"); json.Valid(line) {
			quick, ok := splitOutcome(l)
			slow, decoded := decodeOutcome(l)
			if ok && decoded && !reflect.DeepEqual(quick, slow) {
				t.Fatalf("%s\nquick %+v\nslow  %+v", line, quick, slow)
			}
			if ok {
				quickCounts["outcome"]++
			}
		}
		type table struct {
			Name string `json:"name"`
		}
		type contract struct {
			Name    string `json:"name"`
			Verdict string `json:"verdict"`
		}
		d := struct {
			Session     string            `json:"session"`
			Agent       string            `json:"agent"`
			AccessedBy  string            `json:"accessed_by,omitempty"`
			OnBehalfOf  string            `json:"on_behalf_of,omitempty"`
			Database    string            `json:"database"`
			Attributes  map[string]string `json:"attributes,omitempty"`
			Purpose     string            `json:"purpose,omitempty"`
			Protocol    string            `json:"protocol"`
			Tag         string            `json:"tag"`
			Fingerprint string            `json:"fingerprint,omitempty"`
			Tables      []table           `json:"tables,omitempty"`
			Contracts   []contract        `json:"contracts,omitempty"`
			Verdict     string            `json:"verdict"`
		}{randomText(), randomText(), randomText(), randomText(), randomText(), map[string]string{
			randomText(): randomText()}, randomText(), randomText(), randomText(), randomText(),
			[]table{{randomText()}, {randomText()}}, nil, []string{"allow", "deny"}[random.IntN(2)]}
		if random.IntN(3) == 0 {
			d.Contracts = []contract{{randomText(), []string{"allow", "deny"}[random.IntN(2)]}}
		}
		line = record("decision", d)
		if !bytes.Contains(line, allowedVerdict) { // the quick parser looks for this first
			continue
		}
		quick, names, ok := splitDecision(body(line, "decision"))
		if !ok {
			continue
		}
		quickCounts["decision"]++
		var slow decisionRecord
		if err := json.Unmarshal(line, &slow); err != nil {
			t.Fatal(err)
		}
		quick.Tables = append(quick.Tables, slow.Tables...)
		if !reflect.DeepEqual(quick, slow) || names[0] != slow.Tables[0].Name || names[1] != slow.Tables[1].Name {
			t.Fatalf("%s\nquick %+v %q\nslow  %+v", line, quick, names, slow)
		}
	}
	if quickCounts["outcome"] < 1000 || quickCounts["decision"] < 500 {
		t.Errorf("only %v were read quickly: the test proves little", quickCounts)
	}
}
