package enforce

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/test/tier"
)

// forReading is a policy with every way to record an attribute.
const forReading = `version: 1
attributes:
  user: { type: uuid, source: credential, audit: subject }
  purposes: { type: "text[]", source: credential, audit: purpose }
  groups: { type: "text[]", source: credential }
  stage: { type: integer, source: credential, audit: true }
tables:
  memories: { rows: [ { own: { column: user_id, is: user } } ] }
  people: { rows: [ { own: { column: user_id, is: user } } ] }
`

// Records have a reference in place of a person's id. When the database forgets the reference, the records no longer
// reveal whose they were.
func TestRecordsAreForgotten(t *testing.T) {
	w := start(t, func(w *world) {
		if err := install(t.Context(), w.dba, forReading); err != nil {
			t.Fatal(err)
		}
		w.write(forReading)
		a := agent("caregiver", ann)
		a.Attributes["purposes"], a.Attributes["groups"], a.Attributes["stage"] = "{research}", "{marker-of-a-group,other}", "4"
		b := agent("other", bob)
		b.Attributes["purposes"], b.Attributes["groups"], b.Attributes["stage"] = "{}", "{other}", "1"
		w.cfg.Agents = []Agent{a, b}
	})
	for _, name := range []string{"caregiver", "caregiver", "other"} {
		c := w.client(name)
		if _, err := c.query("SELECT count(*) FROM memories"); err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	refs := map[string]string{}
	rows, err := w.dba.Query(t.Context(), "SELECT subject, 'ref:' || ref FROM pgconsent.audit_subject")
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var name, ref string
		if err := rows.Scan(&name, &ref); err != nil {
			t.Fatal(err)
		}
		refs[name] = ref
	}
	if rows.Err() != nil || len(refs) != 4 {
		t.Fatalf("references of %v (%v), want those of two users and two groups", refs, rows.Err())
	}
	// A person who is erased from the registry is forgotten, too. What is not in the registry can be forgotten by a call.
	w.exec("INSERT INTO pgconsent.subject VALUES (gen_random_uuid(), '" + ann + "', '\\x00')")
	w.exec("UPDATE pgconsent.subject SET subject = NULL, key = NULL, erased_at = now()")
	w.exec("SELECT pgconsent.audit_forget('marker-of-a-group')")
	var left int
	if err := w.dba.QueryRow(t.Context(), "SELECT count(*) FROM pgconsent.audit_subject").Scan(&left); err != nil || left != 2 {
		t.Errorf("%d references are left (%v), want those of the other", left, err)
	}
	// A person who comes back gets a new reference.
	c := w.client("caregiver")
	c.want("SELECT count(*) FROM memories", "3")
	c.Close()

	found := w.records("decision")
	if len(found) != 4 {
		t.Fatalf("%d decisions", len(found))
	}
	for i, want := range []struct{ behalf, purpose, groups string }{
		{refs[ann], "{research}", "{" + refs["marker-of-a-group"] + "," + refs["other"] + "}"},
		{refs[ann], "{research}", "{" + refs["marker-of-a-group"] + "," + refs["other"] + "}"},
		{refs[bob], "{}", "{" + refs["other"] + "}"},
	} {
		d := found[i]
		attributes := d["attributes"].(map[string]any)
		groups := strings.ReplaceAll(fmt.Sprint(attributes["groups"]), `"`, "")
		if d["on_behalf_of"] != want.behalf || fmt.Sprint(d["purpose"]) != want.purpose || groups != want.groups || attributes["user"] != want.behalf {
			t.Errorf("record %d is of %v for %v with %v, want %+v", i, d["on_behalf_of"], d["purpose"], attributes, want)
		}
	}
	if found[0]["attributes"].(map[string]any)["stage"] != "4" {
		t.Errorf("attributes %v", found[0]["attributes"])
	}
	if again := found[3]["on_behalf_of"]; again == refs[ann] || !strings.HasPrefix(fmt.Sprint(again), "ref:") {
		t.Errorf("after they were forgotten they are %v, before %v", again, refs[ann])
	}
	raw, err := os.ReadFile(w.audit + "/audit-000001.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for _, marker := range []string{ann, bob, "marker-of-a-group"} {
		if bytes.Contains(raw, []byte(marker)) {
			t.Errorf("%s is in the audit", marker)
		}
	}
}

// A session whose user gets no reference for the records is refused.
func TestSessionsNeedReferences(t *testing.T) {
	w := start(t, nil)
	c := w.client("caregiver")
	c.want("SELECT title FROM memories WHERE id = 1", "lake")
	w.exec("REVOKE EXECUTE ON FUNCTION pgconsent.audit_ref(text) FROM pgconsent_control")
	if _, err := w.open("caregiver"); err == nil || !strings.Contains(err.Error(), "58030") {
		t.Errorf("a session whose person cannot be recorded: %v", err)
	}
}

// A record has the consent epoch that its statement has seen.
func TestRecordsNameTheConsentEpoch(t *testing.T) {
	w := start(t, func(w *world) { w.cfg.ProbeInterval = time.Hour }) // so that only the notification has an effect
	c := w.client("caregiver")
	c.want("SELECT title FROM memories WHERE id = 1", "lake")
	w.exec("INSERT INTO pgconsent.subject VALUES (gen_random_uuid(), 'somebody', '\\x00')")
	for n := range 3 {
		w.exec(fmt.Sprintf(`INSERT INTO pgconsent.consent_record (number, recorded_at, subject, event, state, categories, purposes, sealed, prev, hash, mac, kid)
			SELECT %d, now(), ref, 'given', 'given', '{}', '{}', '', sha256(''), sha256(''), sha256(''), 1 FROM pgconsent.subject`, n+1))
	}
	d := w.databases["memories"]
	for deadline := time.Now().Add(tier.Patience); d.epoch.Load() != 3; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the epoch is %d, want 3", d.epoch.Load())
		}
	}
	c.want("SELECT title FROM memories WHERE id = 1", "lake")
	c.Close()
	found := w.records("decision")
	if found[0]["epoch"] != 0.0 || found[len(found)-1]["epoch"] != 3.0 {
		t.Errorf("epochs %v and %v, want 0 and 3", found[0]["epoch"], found[len(found)-1]["epoch"])
	}
}
