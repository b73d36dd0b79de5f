package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/internal/tool/observe"
	"github.com/pgconsent/pgconsent/test/tier"
)

// Another policy is applied to the recorded statements of an audit. If a record has enough information, the verdict is
// printed; otherwise the output says that it is unknown.
func TestObserveReplayOfTheAudit(t *testing.T) {
	tier.All(t)
	config, logs := observedWorld(t)
	log, err := audit.Open(audit.Config{Mode: audit.ModeStrict, Dir: logs, ReleaseTimeout: tier.Patience})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []audit.Decision{
		{Fingerprint: "counts", Tables: []audit.Table{{Name: "public.Session", Columns: []string{"id"}, DataSource: "structured"}}},
		{Fingerprint: "unlisted", Tables: []audit.Table{{Name: "public.nowhere"}}},
		{Fingerprint: "writes", Tag: "UPDATE", Tables: []audit.Table{{Name: "public.Session", DataSource: "write", IsWritten: true}}},
		{Fingerprint: "unlisted function", Functions: []string{"public.nothing"}},
		{Fingerprint: "events in stage 2", Tables: []audit.Table{
			{Name: "public.UserEvent", Columns: []string{"content"}, DataSource: "structured"}}, Attributes: map[string]string{"role": "agent", "stage": "2"}},
		{Fingerprint: "events in stage 4", Tables: []audit.Table{
			{Name: "public.UserEvent", Columns: []string{"content"}, DataSource: "structured"}}, Attributes: map[string]string{"role": "agent", "stage": "4"}},
		{Fingerprint: "events, known", Tables: []audit.Table{{Name: "public.UserEvent", Columns: []string{"content"}, DataSource: "structured"}},
			Attributes: map[string]string{"role": "planner", "stage": "2", "intent": "stage_default", "phase": "planning"}},
		{Fingerprint: "events without a stage", Verdict: "deny", Reason: "contract",
			Tables:    []audit.Table{{Name: "public.UserEvent", Columns: []string{"content"}, DataSource: "structured"}},
			Contracts: []audit.Contract{{Name: "retrieval", Attribute: "stage", Verdict: "deny"}}},
		{Fingerprint: "synthesis of an agent",
			Tables:     []audit.Table{{Name: "public.AISynthesis", Columns: []string{"map"}, DataSource: "structured"}},
			Attributes: map[string]string{"role": "agent"}},
		{Fingerprint: "events of nobody", Tables: []audit.Table{
			{Name: "public.UserEvent", Columns: []string{"content"}, DataSource: "structured"}}, Attributes: map[string]string{"role": "ref:1"}},
		{Fingerprint: "synthesis", Verdict: "deny", SQLState: "42501", Reason: "contract",
			Tables: []audit.Table{{Name: "public.AISynthesis", Columns: []string{"map"}, DataSource: "structured"}}},
		{Fingerprint: "", Tag: "unknown", Verdict: "deny", SQLState: "0A000", Reason: "unsupported"},
		{Fingerprint: "elsewhere", Database: "other", Tables: []audit.Table{{Name: "public.nowhere"}}},
	} {
		if d.Agent = "ana"; d.Tag == "" {
			d.Tag = "SELECT"
		}
		if d.Verdict == "" {
			d.Verdict = "allow"
		}
		if d.Database == "" {
			d.Database = "app"
		}
		if err := log.Decision(d).Release(); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	replayAudit := func(want int, args ...string) map[string]observe.StatementClass {
		t.Helper()
		out, stderr, code := call(t, "", append([]string{"observe", "replay", "--audit", "-c", config, "--json"}, args...)...)
		if code != want {
			t.Fatalf("%v: exit %d\n%s%s", args, code, out, stderr)
		}
		var r observe.AuditReplay
		if out == "" {
			t.Fatal(stderr)
		}
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatal(err)
		}
		classes := map[string]observe.StatementClass{}
		for _, c := range r.Classes {
			classes[c.Fingerprint] = *c
		}
		return classes
	}
	checkClasses := func(label string, got map[string]observe.StatementClass, want map[string][2]string) {
		t.Helper()
		for fingerprint, w := range want {
			if c := got[fingerprint]; c.NewOutcome != w[0] || !strings.Contains(c.Reason, w[1]) || c.Count != 1 {
				t.Errorf("%s: %q: %+v, want %q", label, fingerprint, c, w)
			}
		}
		if _, ok := got["elsewhere"]; ok {
			t.Errorf("%s: what was asked of another database is judged", label)
		}
	}
	got := replayAudit(exitError)
	checkClasses("the world's policy", got, map[string][2]string{
		"unlisted":               {observe.OutcomeBecomesRefused, "public.nowhere does not exist any more"},
		"writes":                 {observe.OutcomeBecomesRefused, "agents may not write public.Session"},
		"unlisted function":      {observe.OutcomeBecomesRefused, "the policy does not list the function public.nothing"},
		"events of nobody":       {observe.OutcomeUnknown, "of which the record has no value"},
		"events in stage 2":      {observe.OutcomeUnknown, "contract intent asks for intent"},
		"events in stage 4":      {observe.OutcomeBecomesRefused, "contract retrieval, stage 4: event is not allowed"},
		"events, known":          {observe.OutcomeStaysAllowed, ""},
		"events without a stage": {observe.OutcomeStaysRefused, "the session has no stage"},
		"synthesis of an agent":  {observe.OutcomeBecomesRefused, "contract role, role agent: synthesis is not allowed"},
		"synthesis":              {observe.OutcomeUnknown, "of which the record has no value"},
		"":                       {observe.OutcomeUnknown, "0A000 unsupported"},
	})
	// A policy without contracts that hides a column.
	plainPolicy := filepath.Join(filepath.Dir(config), "plain.yaml")
	if err := os.WriteFile(plainPolicy, []byte(`version: 1
attributes: { user: { type: text, source: credential } }
tables:
  Session: { rows: open }
  UserEvent: { rows: open, columns: { id: allow } }
  AISynthesis: { rows: open }
`), 0o600); err != nil {
		t.Fatal(err)
	}
	got = replayAudit(exitError, "--policy", plainPolicy)
	checkClasses("a plain policy", got, map[string][2]string{
		"counts":            {observe.OutcomeStaysAllowed, ""},
		"events in stage 2": {observe.OutcomeLosesColumns, "no column public.UserEvent.content"},
		"events of nobody":  {observe.OutcomeLosesColumns, "no column public.UserEvent.content"},
		"synthesis":         {observe.OutcomeBecomesAllowed, ""},
		"":                  {observe.OutcomeUnknown, ""},
	})
	if out, _, code := call(t, "", "observe", "replay", "--audit", "-c", config, "--policy", plainPolicy, "--since",
		"1ns"); code != exitOK || !strings.Contains(out, "no decision") {
		t.Errorf("since now: %d %s", code, out)
	}
	if out, _, _ := call(t, "", "observe", "replay", "--audit", "-c", config, "--policy",
		plainPolicy); !strings.Contains(out, "Records have no texts") || !strings.Contains(out, "1 would be allowed") {
		t.Errorf("for people: %s", out)
	}
	for _, args := range [][]string{{"--audit", "x.log"}, {"--audit", "--as", "ana"}, {}, {"--since", "1h", "-"}} {
		if _, stderr, code := call(t, "", append([]string{"observe", "replay", "-c", config}, args...)...); code != exitUsage || stderr == "" {
			t.Errorf("%v: exit %d, %s", args, code, stderr)
		}
	}
}
