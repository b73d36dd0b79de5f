package proxy

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	pgx3 "github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

func copyData(data string) pgx3.FrontendMessage { return &pgx3.CopyData{Data: []byte(data)} }

var (
	copyDone = &pgx3.CopyDone{}
	copyFail = &pgx3.CopyFail{Message: "changed my mind"}
)

// copyScripts are scripts that begin by creating a temporary table.
var copyScripts = map[string][]round{
	"simple": {
		{[]pgx3.FrontendMessage{q("COPY c FROM STDIN")}, 'G', 1},
		upToReady(1, copyData("1\n2\n"), copyData("3\n"), copyDone),
		upToReady(1, q("SELECT * FROM c ORDER BY n")),
	},
	"all at once": {upToReady(2, q("COPY c FROM STDIN"), copyData("1\n"), copyData("2\n"), copyDone, q("SELECT count(*) FROM c"))},
	"no rows":     {upToReady(1, q("COPY c FROM STDIN"), copyDone)},
	"given up":    {upToReady(1, q("COPY c FROM STDIN"), copyData("1\n"), copyFail), upToReady(1, q("SELECT count(*) FROM c"))},
	"a row that fails": {
		upToReady(1, q("COPY c FROM STDIN"), copyData("1\n"), copyData("x\n"), copyData("3\n"), copyDone),
		upToReady(1, q("SELECT count(*) FROM c")),
	},
	"a row that fails, more rows later": {
		{[]pgx3.FrontendMessage{q("COPY c FROM STDIN"), copyData("x\n")}, 'Z', 1},
		upToReady(1, copyData("3\n"), copyData("4\n"), copyDone, q("SELECT count(*) FROM c")),
	},
	"no such table":  {upToReady(1, q("COPY nope FROM STDIN"), copyData("1\n"), copyDone), upToReady(1, q("SELECT 1"))},
	"flush and sync": {upToReady(2, q("COPY c FROM STDIN"), fl, copyData("1\n"), sy, fl, copyData("2\n"), copyDone, q("SELECT count(*) FROM c"))},
	"several": {upToReady(2, q("COPY c FROM STDIN; SELECT 7; COPY c FROM STDIN; SELECT count(*) FROM c"),
		copyData("1\n"), copyDone, copyData("2\n3\n"), copyDone, q("SELECT 8"))},
	"several, failed": {upToReady(1, q("COPY c FROM STDIN; COPY c FROM STDIN"), copyData("x\n"), copyDone,
		copyData("2\n"), copyDone), upToReady(1, q("SELECT count(*) FROM c"))},
	"in a transaction": {
		upToReady(1, q("BEGIN")), upToReady(1, q("COPY c FROM STDIN"), copyData("1\n"), copyDone), upToReady(1,
			q("ROLLBACK")), upToReady(1, q("SELECT count(*) FROM c")),
		upToReady(1, q("BEGIN")), upToReady(1, q("COPY c FROM STDIN"), copyFail), upToReady(1, q("SELECT 1")), upToReady(1, q("ROLLBACK")),
	},
	"extended": {
		upToReady(1, pa("", "COPY c FROM STDIN"), bi("", ""), de('P', ""), ex("", 0), copyData("1\n"), copyData("2\n"), copyDone, sy),
		upToReady(1, q("SELECT count(*) FROM c")),
	},
	"extended, waiting": {
		{[]pgx3.FrontendMessage{pa("n", "COPY c FROM STDIN"), bi("", "n"), ex("", 0)}, 'G', 1},
		upToReady(1, copyData("1\n"), copyDone, sy),
		{[]pgx3.FrontendMessage{bi("", "n"), ex("", 0), fl}, 'G', 1},
		upToReady(1, copyData("2\n"), copyDone, bi("", "n"), ex("", 0), copyData("3\n"), copyDone, pa("", "SELECT count(*) FROM c"), bi("", ""), ex("", 0), sy),
	},
	"extended, a sync too early": { // as libpq sends it
		{[]pgx3.FrontendMessage{pa("", "COPY c FROM STDIN"), bi("", ""), ex("", 0), sy}, 'G', 1},
		upToReady(1, copyData("1\n"), copyDone, sy),
		upToReady(1, q("SELECT count(*) FROM c")),
		{[]pgx3.FrontendMessage{bi("", ""), pa("", "COPY c FROM STDIN"), bi("", ""), ex("", 0), sy}, 'Z', 1}, // skipped
		{[]pgx3.FrontendMessage{pa("", "COPY c FROM STDIN"), bi("", ""), ex("", 0), sy}, 'G', 1},
		upToReady(1, copyData("x\n"), copyDone, sy),
		upToReady(1, q("SELECT count(*) FROM c")),
	},
	"extended, given up": {upToReady(1, pa("", "COPY c FROM STDIN"), bi("", ""), ex("", 0), copyData("1\n"), copyFail,
		pa("", "SELECT 1"), bi("", ""), ex("", 0), sy), upToReady(1, q("SELECT count(*) FROM c"))},
	"extended, a row that fails": {
		{[]pgx3.FrontendMessage{pa("", "COPY c FROM STDIN"), bi("", ""), ex("", 0), copyData("x\n")}, 'E', 1},
		upToReady(1, copyData("1\n"), copyDone, pa("", "SELECT 1"), bi("", ""), ex("", 0), sy),
		upToReady(1, q("SELECT count(*) FROM c")),
	},
	"extended, skipped": {upToReady(2, pa("", "SELECT nope"), pa("", "COPY c FROM STDIN"), bi("", ""), ex("", 0),
		copyData("1\n"), copyDone, sy, q("SELECT count(*) FROM c"))},
	"extended, pipeline": {upToReady(2, pa("", "SELECT 1"), bi("", ""), ex("", 0), pa("", "COPY c FROM STDIN"),
		bi("", ""), ex("", 0), copyData("5\n"), copyDone,
		pa("", "SELECT * FROM c"), bi("", ""), ex("", 0), sy, q("SELECT 2"))},
	"binary": {upToReady(1, q("COPY c FROM STDIN (FORMAT binary)"),
		copyData("PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"),
		copyData("\x00\x01\x00\x00\x00\x04\x00\x00\x00\x09\xff\xff"), copyDone), upToReady(1, q("SELECT * FROM c"))},
	"empty rows": {upToReady(1, q("COPY c FROM STDIN"), copyData(""), copyData("1"), copyData(""), copyData("2\n"),
		copyDone), upToReady(1, q("SELECT * FROM c"))},
	"large": {upToReady(1, q("COPY big FROM STDIN"), copyData(strings.Repeat("x", 3<<20)+"\n"),
		copyData(strings.Repeat("y\n", 100_000)), copyDone), upToReady(1, q("SELECT count(*), max(length(t)) FROM big"))},
	"refused": {upToReady(1, q("COPY c FROM STDIN; SELECT nope_at_all"), copyData("1\n"), copyDone), upToReady(1, q("SELECT 1"))},
	"rows astray": {upToReady(2, copyData("1\n"), q("COPY c FROM STDIN"), copyData("2\n"), copyDone, copyData("3\n"),
		copyDone, copyFail, q("SELECT * FROM c"))},
}

const copyTables = "CREATE TEMP TABLE c (n int); CREATE TEMP TABLE big (t text)"

// TestCopyScripts plays each script on the server and through the proxy.
func TestCopyScripts(t *testing.T) {
	p := startProxy(t, withDecider(func(j *fakeDecider) { j.prefix = "/* p */ " }))
	for name, script := range copyScripts {
		for _, isSlow := range []bool{false, true} {
			if isSlow && name == "large" {
				continue
			}
			t.Run(fmt.Sprint(name, ", slow: ", isSlow), func(t *testing.T) {
				toServer, viaProxy := p.connectDirect(t), p.connectRaw(t)
				if isSlow {
					viaProxy.frontend = pgx3.NewFrontend(viaProxy.Conn, byteWriter{viaProxy.Conn})
				}
				toServer.play(t, []round{upToReady(1, q(copyTables))})
				viaProxy.play(t, []round{upToReady(1, q(copyTables))})
				want, got := toServer.play(t, script), viaProxy.play(t, script)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("direct (-) and through the proxy (+):\n%s", diff)
				}
			})
		}
	}
}

// TestCopyEnds: rows of a COPY that the client did not finish are not committed, however the client disconnects.
func TestCopyEnds(t *testing.T) {
	p := startProxy(t)
	admin := p.db.Connect(t, "postgres")
	if _, err := admin.Exec(t.Context(), "CREATE TABLE kept (n int); GRANT ALL ON kept TO wire_agent"); err != nil {
		t.Fatal(err)
	}
	for name, disconnect := range map[string]func(c *peer){
		"closes":         func(c *peer) { _ = c.Conn.Close() },
		"half closes":    func(c *peer) { _ = c.Conn.(*net.TCPConn).CloseWrite() },
		"terminates":     func(c *peer) { c.send(t, &pgx3.Terminate{}) },
		"sends a query":  func(c *peer) { c.send(t, q("SELECT 1")) },
		"breaks a frame": func(c *peer) { _, _ = c.Conn.Write([]byte{'d', 0, 0, 0, 1}) },
		"stops inside":   func(c *peer) { _, _ = c.Conn.Write([]byte("d\x00\x00\x00\x099")); _ = c.Conn.Close() },
	} {
		for _, isExtended := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", extended: ", isExtended), func(t *testing.T) {
				c := p.connectRaw(t)
				if isExtended {
					c.send(t, pa("", "COPY kept FROM STDIN"), bi("", ""), ex("", 0), copyData("1\n"))
				} else {
					c.send(t, q("COPY kept FROM STDIN"), copyData("1\n"))
				}
				c.play(t, []round{{nil, 'G', 1}})
				disconnect(c)
				eventually(t, "the server's session ends", func() bool {
					var n int
					if err := admin.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE usename = 'wire_agent'").Scan(&n); err != nil {
						t.Fatal(err)
					}
					return n == 0
				})
				var n int
				if err := admin.QueryRow(t.Context(), "SELECT count(*) FROM kept").Scan(&n); err != nil || n != 0 {
					t.Errorf("%d rows, %v", n, err)
				}
			})
		}
	}
}

// TestCopyIsRecorded: no row of a COPY reaches the server before its decision is durable in the audit record. The
// recorded outcome counts the client's rows, and a COPY that cannot be recorded is refused before any row.
func TestCopyIsRecorded(t *testing.T) {
	p := startProxy(t)
	c := p.connectRaw(t)
	c.play(t, []round{upToReady(1, q(copyTables)),
		upToReady(1, q("COPY c FROM STDIN"), copyData("1\n2\n"), copyData("3\n"), copyDone), upToReady(1, q("SELECT 1"))})
	j := p.lastDecider()
	j.mu.Lock()
	outcomes := strings.Join(j.outcomes, "; ")
	j.mu.Unlock()
	if !strings.Contains(outcomes, "COPY c FROM STDIN: 00000 2") {
		t.Errorf("no outcome of the COPY: %s", outcomes)
	}
	const recordingError, sql = "E ERROR 58030 the decision could not be recorded  @0", "COPY c FROM STDIN /* unrecordable */"
	got := c.play(t, []round{upToReady(1, q("TRUNCATE c")), upToReady(1, q(sql), copyData("1\n"), copyDone),
		upToReady(1, pa("", sql), bi("", ""), ex("", 0), copyData("1\n"), copyDone, sy), upToReady(1, q("SELECT count(*) FROM c"))})
	want := []string{"C TRUNCATE TABLE", "Z I", recordingError, "Z I", "1", "2", recordingError, "Z I", "T count:20:0", `D ["0"]`,
		"C SELECT 1", "Z I"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestCopyCancelled: a cancel request also ends a COPY that waits for rows.
func TestCopyCancelled(t *testing.T) {
	p := startProxy(t)
	admin := p.db.Connect(t, "postgres")
	c := p.connectRaw(t)
	c.play(t, []round{upToReady(1, q(copyTables)), {[]pgx3.FrontendMessage{q("COPY c FROM STDIN"), copyData("1\n")}, 'G', 1}})
	if _, err := admin.Exec(t.Context(), "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE usename = 'wire_agent'"); err != nil {
		t.Fatal(err)
	}
	// The server notices the cancel request when the next bytes arrive.
	time.Sleep(50 * time.Millisecond)
	got := c.play(t, []round{upToReady(1, copyData("2\n"), copyDone), upToReady(1, q("SELECT count(*) FROM c"))})
	if len(got) < 2 || !strings.HasPrefix(got[0], "E ERROR 57014") || got[len(got)-3] != `D ["0"]` {
		t.Errorf("%q", got)
	}
}

// FuzzRows: the proxy takes exactly the messages of rows that a client sends during a COPY, complete and in order.
func FuzzRows(f *testing.F) {
	f.Add([]byte("d\x00\x00\x00\x06ab"), 3)
	f.Add([]byte("d\x00\x00\x00\x04d\x00\x00\x00\x05xc\x00\x00\x00\x04"), 1)
	f.Add([]byte("d\x7f\xff\xff\xffx"), 2)
	f.Add([]byte("d\x00\x00\x00\x00"), 5)
	f.Fuzz(func(t *testing.T, input []byte, step int) {
		step = max(1, step%64)
		in := newInput(&chunkReader{input, step})
		defer in.release()
		var takenBytes []byte
		for {
			rowBytes, _, err := in.rows()
			if err != nil {
				var refusal *sqlstate.Error = err.(*sqlstate.Error)
				if refusal.Code != sqlstate.ProtocolViolation {
					t.Fatal(err)
				}
				break
			}
			takenBytes = append(takenBytes, rowBytes...)
			if len(rowBytes) > 0 {
				continue
			}
			if in.bytesToRelay == 0 && in.unreadEnd-in.unreadStart >= 5 {
				break // it belongs to another message
			}
			if err := in.fill(); err != nil {
				break
			}
		}
		if !bytes.HasPrefix(input, takenBytes) {
			t.Fatalf("%q is not the beginning of %q", takenBytes, input)
		}
		for len(takenBytes) > 0 && takenBytes[0] == 'd' && len(takenBytes) >= 5 {
			size := 1 + int(takenBytes[1])<<24 + int(takenBytes[2])<<16 + int(takenBytes[3])<<8 + int(takenBytes[4])
			takenBytes = takenBytes[min(size, len(takenBytes)):]
		}
		if len(takenBytes) > 0 {
			t.Fatalf("took %q", takenBytes)
		}
	})
}

// chunkReader returns a few bytes per Read.
type chunkReader struct {
	remaining []byte
	step      int
}

func (c *chunkReader) Read(b []byte) (int, error) {
	if len(c.remaining) == 0 {
		return 0, net.ErrClosed
	}
	n := copy(b[:min(len(b), c.step)], c.remaining)
	c.remaining = c.remaining[n:]
	return n, nil
}
