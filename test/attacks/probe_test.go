package attacks

import (
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/test/instance"
)

// A check or a generated column may read an agent's column together with a hidden one. Agents must not update such a
// column, unless the policy accepts it. Then they learn whether the check holds and whether the computation fails, but
// not the values that an error quotes.
func TestHiddenColumnsAreNotProbed(t *testing.T) {
	s := schemaNamed(t, "payroll")
	const writeColumns = "columns: [phone, skills, langs, note, desk], accept: [conflicts], check:"
	for _, c := range []struct {
		write   string
		refused bool
	}{{"accept: [conflicts], check:", true}, {"accept: [conflicts, values], check:", false}} {
		d := s.BehindProxy(t)
		instance.Exec(t, d.DB, `ALTER TABLE hr.employee ADD CHECK (phone IS DISTINCT FROM substr(iban, 3, 2)),
			ADD code integer GENERATED ALWAYS AS ((substr(iban, 3, 2) || coalesce(substr(note, 30), ''))::int) STORED`)
		if !strings.Contains(d.Policy, writeColumns) {
			t.Fatal("the policy has changed")
		}
		d.Policy = strings.Replace(d.Policy, writeColumns, c.write, 1)
		agent := instance.Start(t, instance.Auto, d, s.Attributes).Agent(t, "agent", s.Name)
		// Where the policy accepts it, the answers say that the statement fails. They must not quote the hidden IBAN
		// DE00HIDDENMARK.
		for message, want := range map[string]string{
			"UPDATE employee SET phone = '00' WHERE id = 6":                                    "the row violates a check",
			"UPDATE employee SET note = 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaxx' WHERE id = 6":        "22P02: a value that the statement computes does not fit",
			"UPDATE employee SET langs = '{de}' WHERE id = 6 RETURNING id":                     "6",
			"UPDATE employee SET desk = '(1,1)' WHERE id = 6 AND phone IS NULL RETURNING desk": "(1,1)",
		} {
			got := instance.Ask(agent, message)
			readsHidden := strings.Contains(message, "phone =") || strings.Contains(message, "note =")
			if refused := got.Refused() && got.Code == "42501"; refused != (readsHidden && c.refused) ||
				!refused && !strings.Contains(got.SortedString(), want) {
				t.Errorf("%s: %s\n%s", c.write, message, got.SortedString())
			}
		}
	}
}
