package proxy

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pgconsent/pgconsent/internal/enforce/verdict"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// heldRecords is a fakeDecider whose records become durable only when the test says so.
type heldRecords struct {
	*fakeDecider
	release chan *sqlstate.Error
}

func (h *heldRecords) Record(v *verdict.Verdict, _ ...*verdict.Verdict) verdict.Ticket {
	return &heldTicket{h.fakeDecider.Record(v), h.release}
}

type heldTicket struct {
	verdict.Ticket
	release chan *sqlstate.Error
}

func (h *heldTicket) Release() *sqlstate.Error { return <-h.release }

// TestNothingIsSentBeforeItsRecord: no message of an execution, and none after it in its batch, reaches the server
// before the decision is durable.
func TestNothingIsSentBeforeItsRecord(t *testing.T) {
	p := startProxy(t)
	release := make(chan *sqlstate.Error)
	p.editRoute = func(r *Route) {
		openDecider := r.Open
		r.Open = func(ctx context.Context, info SessionInfo) (verdict.Decider, error) {
			d, err := openDecider(ctx, info)
			return &heldRecords{d.(*fakeDecider), release}, err
		}
	}
	admin := p.db.Connect(t, "postgres")
	if _, err := admin.Exec(t.Context(), "CREATE TABLE done (n int); GRANT ALL ON done TO wire_agent"); err != nil {
		t.Fatal(err)
	}
	count := func() (n int) {
		if err := admin.QueryRow(t.Context(), "SELECT count(*) FROM done").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	c := p.connectRaw(t)
	c.send(t, q("INSERT INTO done VALUES (1)"), pa("", "INSERT INTO done VALUES (2)"), bi("", ""), ex("", 0), sy)
	time.Sleep(100 * time.Millisecond)
	if n := count(); n != 0 {
		t.Fatalf("%d statements ran before they were recorded", n)
	}
	release <- nil
	time.Sleep(50 * time.Millisecond)
	if n := count(); n != 0 {
		t.Fatalf("%d statements ran before the batch was recorded", n)
	}
	release <- sqlstate.New(sqlstate.IOError, sqlstate.ReasonAudit, "disk full")
	got := c.play(t, []round{{nil, 'Z', 2}})
	if diff := cmp.Diff([]string{"C INSERT 0 1", "Z I", "1", "2", "E ERROR 58030 disk full  @0", "Z I"}, got); diff != "" {
		t.Error(diff)
	}
	if n := count(); n != 1 {
		t.Errorf("%d rows", n)
	}
}
