package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// A statement that is being answered when a consent is withdrawn may finish. It shows the rows that were visible when
// it began, all of them, however slowly it is read. Statements after it begin later, and show nothing more, although
// the withdrawal came while they waited. A cursor that is read in parts ends with 40001 (TestHistory).
func TestARunningStatementFinishes(t *testing.T) {
	const rows = 60000
	const wide = "SELECT m.id, m.id, m.id, m.id, m.id, m.id, m.id, m.id, g FROM memories m, generate_series(1, 60000) g WHERE m.id = '" + historyID + "'"
	in := start(t, options{after: historySetup})
	owner := in.ownerConn(t)
	ctx := context.Background()
	for name, sql := range map[string]string{"select": wide, "copy": "COPY (" + wide + ") TO STDOUT"} {
		if _, err := owner.Exec(ctx, "UPDATE people SET consent_status = 'granted' WHERE id = $1", historyPerson); err != nil {
			t.Fatal(err)
		}
		c := in.agent(t)
		frontend := c.Frontend()
		send := func(sql string) {
			frontend.Send(&pgproto3.Query{String: sql})
			if err := frontend.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		// Bytes are counted, answers are told apart by their ReadyForQuery.
		var shown [2]int
		answer := 0
		receive := func() bool {
			m, err := c.ReceiveMessage(ctx)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			switch m := m.(type) {
			case *pgproto3.DataRow:
				shown[answer]++
			case *pgproto3.CopyData:
				shown[answer] += strings.Count(string(m.Data), "\n")
			case *pgproto3.ErrorResponse:
				t.Fatalf("%s: %s %s", name, m.Code, m.Message)
			case *pgproto3.ReadyForQuery:
				answer++
			}
			return answer < 2
		}
		send(sql)
		for shown[0] == 0 {
			receive()
		}
		if _, err := owner.Exec(ctx, "UPDATE people SET consent_status = 'refused' WHERE id = $1", historyPerson); err != nil {
			t.Fatal(err)
		}
		send(sql)
		for receive() {
		}
		if shown != [2]int{rows, 0} {
			t.Errorf("%s: the answers have %d rows, want %d and 0", name, shown, rows)
		}
	}
}
