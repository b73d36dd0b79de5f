package e2e

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// A statement that is being answered when a consent is withdrawn may finish. It returns all rows that were visible when
// it began, however slowly the client reads. A statement that was sent meanwhile begins later and returns nothing more.
// A cursor that is read in parts ends with 40001 (TestHistory).
func TestARunningStatementFinishes(t *testing.T) {
	const rows = 60000
	const wideQuery = "SELECT m.id, m.id, m.id, m.id, m.id, m.id, m.id, m.id, g FROM memories m, generate_series(1, 60000) g WHERE m.id = '" + historyID + "'"
	in := start(t, options{afterMigrate: historySetup})
	owner := in.ownerConn(t)
	ctx := context.Background()
	for name, sql := range map[string]string{"select": wideQuery, "copy": "COPY (" + wideQuery + ") TO STDOUT"} {
		if _, err := owner.Exec(ctx, "UPDATE people SET consent_status = 'granted' WHERE id = $1", historyPerson); err != nil {
			t.Fatal(err)
		}
		c := in.agent(t)
		frontend := c.Frontend()
		sendQuery := func(sql string) {
			frontend.Send(&pgproto3.Query{String: sql})
			if err := frontend.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		// Rows are counted per answer, and each ReadyForQuery ends an answer.
		var shownRows [2]int
		answerIndex := 0
		receiveMessage := func() bool {
			m, err := c.ReceiveMessage(ctx)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			switch m := m.(type) {
			case *pgproto3.DataRow:
				shownRows[answerIndex]++
			case *pgproto3.CopyData:
				shownRows[answerIndex] += strings.Count(string(m.Data), "\n")
			case *pgproto3.ErrorResponse:
				t.Fatalf("%s: %s %s", name, m.Code, m.Message)
			case *pgproto3.ReadyForQuery:
				answerIndex++
			}
			return answerIndex < 2
		}
		sendQuery(sql)
		for shownRows[0] == 0 {
			receiveMessage()
		}
		if _, err := owner.Exec(ctx, "UPDATE people SET consent_status = 'refused' WHERE id = $1", historyPerson); err != nil {
			t.Fatal(err)
		}
		sendQuery(sql)
		for receiveMessage() {
		}
		if shownRows != [2]int{rows, 0} {
			t.Errorf("%s: the answers have %d rows, want %d and 0", name, shownRows, rows)
		}
	}
}
