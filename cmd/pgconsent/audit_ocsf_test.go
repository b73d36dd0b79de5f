package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pgconsent/pgconsent/internal/record/audit"
	"github.com/pgconsent/pgconsent/test/tier"
)

// Every kind of record, whatever its content, is exported as an event that is valid by the OCSF schema.
func TestOCSF(t *testing.T) {
	text, err := os.ReadFile("../../docs/schema/ocsf.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("ocsf.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("ocsf.json")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "audit")
	key, err := audit.NewKey(bytes.Repeat([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	log, err := audit.Open(audit.Config{Dir: dir, Key: key, ReleaseTimeout: tier.Patience})
	if err != nil {
		t.Fatal(err)
	}
	log.Session(audit.Session{Session: "s", Agent: "chat", Database: "app", Remote: "127.0.0.1:1234", Event: "open"})
	log.Session(audit.Session{Session: "u", Agent: "chat", Database: "app", Remote: "@", Event: "refused", SQLState: "28000", Reason: "identity"})
	for _, tag := range []string{"SELECT", "INSERT", "UPDATE", "DELETE", "MERGE", "COPY FROM", "BEGIN"} {
		d := log.Decision(audit.Decision{Session: "s", Agent: "chat", AccessedBy: "chat", OnBehalfOf: "ref:x",
			Database: "app", Tag: tag, Fingerprint: "f", Verdict: "allow", Tables: []audit.Table{{Name: "public.t"}}})
		d.RecordOutcome(audit.Outcome{Rows: 1, Bytes: 2, SQLState: "00000"})
	}
	log.Decision(audit.Decision{Session: "s", Agent: `c"<>h`, Database: "app", Tag: "SELECT", Verdict: "deny", SQLState: "42501", Reason: "relation"})
	log.Observation(audit.Observation{Agent: "chat", Database: "app", Fingerprint: "f", Tag: "SELECT", Tables: []string{"public.t"}})
	for _, c := range []audit.Call{
		{Interface: "http", CallerName: "auditor", Role: "admin", Database: "app", Operation: "consent.history", Subjects: []string{"ref:x"},
			Outcome: audit.OutcomeDone},
		{Interface: "mcp", CallerName: "ref:x", Role: "subject", Database: "app", Operation: "consent.grant", MayChangeData: true, Outcome: audit.OutcomeRefused,
			Code: "PC404"},
		{Interface: "http", Role: "subject", Operation: "consent.status", AboutEverybody: true, Outcome: audit.OutcomeFailed},
	} {
		log.Call(c)
	}
	log.Session(audit.Session{Session: "s", Agent: "chat", Database: "app", Event: "close"})
	if err := log.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	x := exporter{recordFilter: recordFilter{auditFilter{Verdict: "any"}, map[uint64]bool{}}, out: &out, usesOCSF: true,
		sessionAddresses: map[string]string{}, pendingDecisions: map[uint64]auditRecord{}}
	if _, err := audit.Walk(dir, x.addRecord); err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(out.String()) {
		n++
		event, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(event); err != nil {
			t.Errorf("%s%v", line, err)
		}
		checkOCSFMembers(t, event)
		var e struct {
			Activity int `json:"activity_id"`
			Type     int `json:"type_uid"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.Type != 600500+e.Activity {
			t.Errorf("type %d of activity %d", e.Type, e.Activity)
		}
	}
	if n != 22 {
		t.Errorf("%d events", n)
	}
}

// checkOCSFMembers checks an event against OCSF 1.3 itself. It checks the required members of the class and of each
// object, and those of which one is enough. The schema above checks what else pgconsent promises.
func checkOCSFMembers(t *testing.T, event any) {
	t.Helper()
	requiredMembers := map[string][]string{ // by the object's name; "": of the event
		"":         {"activity_id", "category_uid", "class_uid", "type_uid", "time", "severity_id", "metadata", "actor", "src_endpoint"},
		"metadata": {"version", "product"}, "product": {"vendor_name"}, "query_info": {"query_string"}, "database": {"type_id"},
	}
	alternativeMembers := map[string][]string{
		"": {"database", "databucket", "table"}, "actor": {
			"user", "process", "invoked_by", "session", "app_name", "app_uid"}, "user": {"name", "uid", "account"},
		"src_endpoint": {"ip", "uid", "name", "hostname", "svc_name", "instance_uid", "interface_uid", "interface_name"},
		"database":     {"name", "uid"}, "table": {"name", "uid"}, "product": {"name", "uid"}, "query_info": {"name", "uid"},
	}
	var checkObject func(name string, o map[string]any)
	checkObject = func(name string, o map[string]any) {
		for _, member := range requiredMembers[name] {
			if o[member] == nil {
				t.Errorf("OCSF asks for %s in %q: %v", member, name, o)
			}
		}
		if alternatives := alternativeMembers[name]; len(alternatives) > 0 && !slices.ContainsFunc(alternatives,
			func(member string) bool { return o[member] != nil }) {
			t.Errorf("OCSF asks for one of %v in %q: %v", alternatives, name, o)
		}
		for member, value := range o {
			if innerObject, ok := value.(map[string]any); ok && member != "unmapped" {
				checkObject(member, innerObject)
			}
		}
	}
	checkObject("", event.(map[string]any))
}
