package attacks

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgconsent/pgconsent/test/instance"
	"github.com/pgconsent/pgconsent/test/tier"
)

// Messages in an order that no driver uses must get the same bytes from both twins: portals read in parts, unknown
// formats, a Describe of nothing, data without a COPY. Each Sync must be answered, or the connection be closed.
func TestUnusualMessageOrders(t *testing.T) {
	tier.All(t)
	s := schemaNamed(t, "estate")
	visible, changes := "test/oracle/testdata/estate/visible.sql", "test/attacks/testdata/estate.sql"
	one, two := s.BehindProxy(t), s.TwinBehindProxy(t, instance.ReadRepoFile(t, visible)+instance.ReadRepoFile(t, changes))
	proxies := []*instance.Proxy{instance.Start(t, instance.Auto, one, s.Attributes), instance.Start(t, instance.Auto, two, s.Attributes)}
	rows := 0
	for i, messages := range messageSequences() {
		var got [2]string
		for k, proxy := range proxies {
			got[k] = strings.ReplaceAll(converse(t, proxy, s.Name, messages), []string{one.DB.Name, two.DB.Name}[k], "DATABASE")
		}
		if got[0] != got[1] {
			t.Errorf("%d: %T %+v\none:\n%s\ntwin:\n%s", i, messages[0], messages[0], got[0], got[1])
		}
		rows += strings.Count(got[0], "\n\"D")
		if strings.Contains(got[0], "internal error") {
			t.Errorf("%d: %+v: %s", i, messages[0], got[0])
		}
	}
	if rows < 200 {
		t.Errorf("only %d rows came", rows)
	}
	for _, proxy := range proxies {
		proxy.Tap().RequireNoMarker(t)
	}
}

// converse sends messages on a connection of its own and returns the answering messages, one per line.
func converse(t *testing.T, proxy *instance.Proxy, database string, messages []pgproto3.FrontendMessage) string {
	t.Helper()
	h, err := proxy.Agent(t, "agent", database).Hijack()
	if err != nil {
		t.Fatal(err)
	}
	defer h.Conn.Close()
	pending := 0
	for _, m := range messages {
		h.Frontend.Send(m)
		switch m.(type) {
		case *pgproto3.Sync, *pgproto3.Query:
			pending++
		}
	}
	if err := h.Frontend.Flush(); err != nil {
		t.Fatal(err)
	}
	_ = h.Conn.SetReadDeadline(time.Now().Add(tier.Patience))
	var out strings.Builder
	for pending > 0 {
		m, err := h.Frontend.Receive()
		if err != nil {
			out.WriteString("end\n")
			break
		}
		switch m := m.(type) {
		case *pgproto3.ReadyForQuery:
			pending--
		case *pgproto3.RowDescription: // the OID of a table differs between the databases
			for i := range m.Fields {
				m.Fields[i].TableOID = 0
			}
		}
		encoded, err := m.Encode(nil)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%q\n", encoded)
	}
	return out.String()
}

// messageSequences returns lists of messages, each to be sent on a connection of its own.
func messageSequences() [][]pgproto3.FrontendMessage {
	type messages = []pgproto3.FrontendMessage
	parse := func(name, sql string, types ...uint32) pgproto3.FrontendMessage {
		return &pgproto3.Parse{Name: name, Query: sql, ParameterOIDs: types}
	}
	bind := func(portal, name string, formats, results []int16, values ...[]byte) pgproto3.FrontendMessage {
		return &pgproto3.Bind{DestinationPortal: portal, PreparedStatement: name, ParameterFormatCodes: formats,
			ResultFormatCodes: results, Parameters: values}
	}
	execute := func(portal string, rows uint32) pgproto3.FrontendMessage {
		return &pgproto3.Execute{Portal: portal, MaxRows: rows}
	}
	describe := func(objectType byte, name string) pgproto3.FrontendMessage {
		return &pgproto3.Describe{ObjectType: objectType, Name: name}
	}
	sync := &pgproto3.Sync{}
	var out []messages
	for _, sql := range []string{
		"SELECT no, name FROM party ORDER BY no", "SELECT home FROM party ORDER BY no", "SELECT people FROM event ORDER BY stream, version",
		"SELECT term, paid, rent FROM lease ORDER BY no, version", "SELECT 1 / (no - 500) FROM party ORDER BY no", "SELECT * FROM core.audit_row",
		"SELECT tax FROM party", "COPY party TO STDOUT",
		"SELECT * FROM leases_of(4)", "SELECT books, speaks FROM party ORDER BY no", "SELECT raster FROM file ORDER BY id",
		"SELECT * FROM entity ORDER BY party", "", "BEGIN", "SELECT no FROM party WHERE name::int > 0",
		// The order of rows after an UPDATE is not promised. These come last, and each returns equal rows.
		"DELETE FROM folder RETURNING 1", "UPDATE party SET score = 1 RETURNING score",
	} {
		for _, format := range []int16{0, 1, 7} {
			results := []int16{format}
			out = append(out,
				messages{parse("", sql), describe('S', ""), bind("", "", nil, results), describe('P', ""),
					execute("", 2), execute("", 3), execute("", 0), execute("", 1), sync},
				messages{parse("n", sql), bind("c", "n", nil, results), execute("c", 1), sync, execute("c", 0),
					sync, &pgproto3.Close{ObjectType: 'S', Name: "n"}, sync})
		}
	}
	text, binary := []int16{0}, []int16{1}
	for _, value := range []string{"4", "10", "x", "", "501"} {
		parameter := []byte(value)
		out = append(out,
			messages{parse("a", "SELECT name FROM party WHERE no = $1"), bind("", "a", text, nil, parameter), execute("", 0), sync},
			messages{parse("", "SELECT name FROM party WHERE no = $1"), bind("", "", binary, nil, parameter), execute("", 0), sync},
			messages{parse("", "SELECT name FROM party WHERE no = $1 AND 1 / ($1 - 500) < 5"),
				bind("", "", text, nil, parameter), execute("", 0), parse("", "SELECT count(*) FROM lease"), sync},
			messages{parse("", "INSERT INTO flat (code, house, keeper) VALUES ('Z' || $1::int, 'h', $1)"),
				bind("", "", text, nil, parameter), execute("", 0), sync},
			messages{parse("", "SELECT name FROM party WHERE no = $1", 600), bind("", "", nil, nil, parameter), sync},
			messages{parse("", "SELECT $1::core.party", 0), describe('S', ""), sync})
	}
	return append(out,
		messages{&pgproto3.FunctionCall{Function: 1598}, sync},
		messages{bind("", "nosuch", nil, nil), execute("nosuch", 0), sync},
		messages{describe('S', "nosuch"), describe('P', "nosuch"), sync},
		messages{parse("", "SELECT 1; SELECT no FROM party"), sync},
		messages{parse("", "SELECT $1", 16384), sync},
		messages{bind("", "", nil, []int16{0, 1, 0}), sync},
		messages{&pgproto3.CopyData{Data: []byte("x")}, &pgproto3.CopyDone{}, &pgproto3.Query{String: "SELECT count(*) FROM party"}},
		messages{&pgproto3.Query{String: "SELECT no FROM party\x00; SELECT 1"}},
		messages{parse("", "COPY setting (key, value) FROM STDIN"), bind("", "", nil, nil), execute("", 0),
			&pgproto3.CopyData{Data: []byte("THEME\t{}\n")}, &pgproto3.CopyDone{}, sync},
		messages{parse("", "SELECT name FROM party WHERE name = $1"), bind("", "", nil, nil, []byte("\xff\xfe")), execute("", 0), sync})
}
