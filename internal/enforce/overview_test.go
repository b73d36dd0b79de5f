package enforce

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The overview for operators counts statements that were executed and refused, and has no text of a statement.
func TestOverview(t *testing.T) {
	w := start(t, nil)
	c, other := w.client("caregiver"), w.client("other")
	c.want(titles, "lake", "sea")
	c.refused("SELECT * FROM memory_participants WHERE memory_id = 424242", "42501")
	c.refused("SELECT pg_sleep(424242)", "42501")
	other.want(titles, "moor")

	live := w.OpenSessions()
	if len(live) != 2 || live[0].Agent != "caregiver" || live[0].Executed != 3 || live[0].Denied != 2 || live[1].Executed != 1 || live[1].Denied != 0 {
		t.Errorf("sessions: %+v", live)
	}
	if live[0].Since.IsZero() || live[0].Last.Before(live[0].Since) || live[0].Remote != "test" {
		t.Errorf("the session: %+v", live[0])
	}
	denied, all := w.Denials()
	if all != 2 || len(denied) != 2 || denied[0].SQLState != "42501" || denied[0].Reason != "function" ||
		denied[1].Reason != "relation" || denied[1].Agent != "caregiver" {
		t.Errorf("denials: %d, %+v", all, denied)
	}
	stands := w.DatabaseStatuses()
	if len(stands) != 1 || !stands[0].Served || stands[0].Pending || stands[0].Policy == "" || stands[0].Tables != 2 || stands[0].Verified.IsZero() {
		t.Errorf("standing: %+v", stands)
	}
	text, err := json.Marshal([]any{live, denied, stands})
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"424242", ann, "lake"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("%q is shown: %s", secret, text)
		}
	}

	c.Close()
	if live := w.OpenSessions(); len(live) != 1 || live[0].Agent != "other" {
		t.Errorf("after one has left: %+v", live)
	}
	w.write(wider)
	if err := w.Reload(); err != nil {
		t.Fatal(err)
	}
	if s := w.DatabaseStatuses()[0]; !s.Pending || !s.Served || s.Tables != 2 {
		t.Errorf("a policy waits for migrate: %+v", s)
	}
}

// The list of denials has the newest ones, and its length is limited.
func TestDenialsAreBounded(t *testing.T) {
	var e Enforcer
	for i := range 3*maxDenials + 7 {
		e.denials.add(Denial{Tag: fmt.Sprint(i)})
	}
	list, all := e.Denials()
	if all != 3*maxDenials+7 || len(list) != maxDenials || list[0].Tag != fmt.Sprint(all-1) ||
		!slices.IsSortedFunc(list, func(a, b Denial) int { return len(b.Tag) - len(a.Tag) }) {
		t.Errorf("%d of %d, the newest %q", len(list), all, list[0].Tag)
	}
}
