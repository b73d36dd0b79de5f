package proxy

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	pgx3 "github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgconsent/pgconsent/test/tier"
)

// TestBadStart: a client that sends garbage before its login gets a clear error, and the proxy goes on serving other
// clients.
func TestBadStart(t *testing.T) {
	p := startProxy(t)
	packet := func(code uint32, body string) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(8+len(body)))
		return append(binary.BigEndian.AppendUint32(b, code), body...)
	}
	for name, c := range map[string]struct {
		in   []byte
		code string // "" if the connection is closed without an answer
	}{
		"http":                  {[]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "08P01"},
		"zeros":                 {make([]byte, 64), "08P01"},
		"ones":                  {bytes.Repeat([]byte{0xff}, 64), "08P01"},
		"2 GiB":                 {[]byte{0x7f, 0xff, 0xff, 0xff, 0, 3, 0, 0}, "08P01"},
		"negative":              {[]byte{0x80, 0, 0, 0, 0, 3, 0, 0}, "08P01"},
		"too short":             {[]byte{0, 0, 0, 4, 0, 3, 0, 0}, "08P01"},
		"too long":              {packet(protocol30, strings.Repeat("x", 10_000)), "08P01"},
		"protocol 2":            {packet(2<<16, "user\x00a\x00\x00"), "0A000"},
		"protocol 4":            {packet(4<<16, "user\x00a\x00\x00"), "0A000"},
		"no user":               {packet(protocol30, "\x00"), "28000"},
		"no terminator":         {packet(protocol30, "user\x00a\x00"), "08P01"},
		"value missing":         {packet(protocol30, "user\x00"), "08P01"},
		"after the terminator":  {packet(protocol30, "user\x00a\x00\x00x"), "08P01"},
		"empty":                 {packet(protocol30, ""), "08P01"},
		"SSL twice":             {append(packet(codeSSL, ""), packet(codeSSL, "")...), "0A000"},
		"SSL with a body":       {packet(codeSSL, "x"), "0A000"},
		"cancel too short":      {packet(codeCancel, "x"), "08P01"},
		"cancel too long":       {packet(codeCancel, strings.Repeat("x", 300)), "08P01"},
		"cancel long":           {packet(codeCancel, strings.Repeat("x", 36)), ""},
		"a query before login":  {appendQuery(nil, "SELECT 1"), "08P01"},
		"GSS, then SSL, then 2": {append(append(packet(codeGSS, ""), packet(codeSSL, "")...), packet(2<<16, "")...), "0A000"},
	} {
		t.Run(name, func(t *testing.T) {
			nc := p.dial(t)
			_, _ = nc.Write(c.in)
			answer, _ := io.ReadAll(nc)
			answer = bytes.TrimLeft(answer, "N") // answers to SSLRequest and GSSENCRequest
			e := readLastError(t, bytes.NewReader(answer))
			switch {
			case c.code == "" && len(answer) > 0:
				t.Errorf("answered %q", answer)
			case c.code != "" && (e == nil || e.Code != c.code || e.Severity != "FATAL"):
				t.Errorf("got %+v", e)
			}
		})
	}
	for _, bytesKept := range []int{1, 3, 4, 7, 8, 12} {
		nc := p.dial(t)
		_, _ = nc.Write(packet(protocol30, "user\x00agent\x00\x00")[:bytesKept])
		_ = nc.(*net.TCPConn).CloseWrite()
		if _, err := io.Copy(io.Discard, nc); err != nil {
			t.Errorf("cut at %d: %v", bytesKept, err)
		}
	}
	if err := p.connect(t).Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestBrokenMessages: a message whose body does not fit its type gets the same error as from PostgreSQL.
func TestBrokenMessages(t *testing.T) {
	p := startProxy(t)
	newRawMessage := func(typ byte, body string) pgx3.FrontendMessage { return rawMessage{typ, body} }
	for name, script := range map[string][]round{
		"five-byte query":    {upToReady(1, newRawMessage('Q', "")), upToReady(1, q("SELECT 1"))},
		"query with more":    {upToReady(1, newRawMessage('Q', "SELECT 1\x00 ")), upToReady(1, q("SELECT 1"))},
		"unterminated query": {upToReady(1, newRawMessage('Q', "SELECT 1")), upToReady(1, q("SELECT 1"))},
		"in a transaction":   {upToReady(1, q("BEGIN")), upToReady(1, newRawMessage('Q', "")), upToReady(1, q("ROLLBACK"))},
		"parse": {upToReady(1, newRawMessage('P', ""), q("x"), sy),
			upToReady(1, newRawMessage('P', "\x00SELECT 1\x00\x00\x09"), sy), upToReady(1, newRawMessage('P', "\x00SELECT 1\x00\x00\x00!"), sy)},
		"parse without end": {upToReady(1, newRawMessage('P', "name"), sy)},
		"bind": {upToReady(1, pa("", "SELECT 1"), newRawMessage('B', "\x00\x00"), sy),
			upToReady(1, newRawMessage('B', ""), sy), upToReady(1, pa("", "SELECT 1"),
				newRawMessage('B', "\x00\x00\x00\x00\x00\x01\xff\xff\xff\xf0"), sy)},
		"describe": {upToReady(1, newRawMessage('D', ""), sy), upToReady(1, newRawMessage('D', "X\x00"), sy),
			upToReady(1, newRawMessage('D', "S"), sy)},
		"close":   {upToReady(1, newRawMessage('C', ""), sy), upToReady(1, newRawMessage('C', "X\x00"), sy)},
		"execute": {upToReady(1, newRawMessage('E', "\x00\x00"), sy), upToReady(1, newRawMessage('E', ""), sy)},
	} {
		t.Run(name, func(t *testing.T) {
			kinds := func(lines []string) (out []string) {
				for _, l := range lines {
					if strings.HasPrefix(l, "E ERROR 08P01") || strings.HasPrefix(l, "E ERROR 22P03") {
						l = "E broken"
					}
					out = append(out, l)
				}
				return out
			}
			want := kinds(p.connectDirect(t).play(t, script))
			got := kinds(p.connectRaw(t).play(t, script))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("direct (-) and through the proxy (+):\n%s", diff)
			}
		})
	}
}

// rawMessage is a message of any type and body.
type rawMessage struct {
	typ  byte
	body string
}

func (rawMessage) Frontend()           {}
func (rawMessage) Decode([]byte) error { return nil }
func (m rawMessage) Encode(dst []byte) ([]byte, error) {
	return appendMessage(dst, m.typ, []byte(m.body)), nil
}

// TestFatalMessages: a message without a valid frame, or of a type that a client may not send, ends the session with an
// error. The answers to earlier messages come first.
func TestFatalMessages(t *testing.T) {
	p := startProxy(t)
	head := func(typ byte, n uint32) []byte { return binary.BigEndian.AppendUint32([]byte{typ}, n) }
	for name, c := range map[string]struct {
		in   []byte
		code string
	}{
		"2 GiB query":        {head('Q', 1<<31-1), "08P01"},
		"execute too long":   {head('E', maxOtherBytes+5), "08P01"},
		"negative":           {head('Q', 0xffffffff), "08P01"},
		"shorter than 4":     {head('Q', 3), "08P01"},
		"zero":               {head('S', 0), "08P01"},
		"password":           {appendMessage(nil, 'p', []byte("x\x00")), "08P01"},
		"unknown type":       {appendMessage(nil, 'z', nil), "08P01"},
		"a server's message": {appendMessage(nil, 'R', []byte{0, 0, 0, 0}), "08P01"},
		"startup again":      {[]byte{0, 0, 0, 8, 0, 3, 0, 0}, "08P01"},
		"http":               {[]byte("GET / HTTP/1.1\r\n\r\n"), "08P01"},
	} {
		t.Run(name, func(t *testing.T) {
			client := p.connectRaw(t)
			_, _ = client.Write(append(appendQuery(nil, "SELECT 'before' AS a"), c.in...))
			got := client.play(t, []round{{nil, 'Z', 1}})
			if len(got) != 4 {
				t.Errorf("before: %q", got)
			}
			if e := client.readLastError(); e == nil || e.Code != c.code || e.Severity != "FATAL" {
				t.Errorf("got %+v", e)
			}
		})
	}
	if err := p.connect(t).Ping(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestMemoryFollowsBytes: the proxy reserves memory for bytes that have arrived, not for a length that a message only
// announces.
func TestMemoryFollowsBytes(t *testing.T) {
	p := startProxy(t)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range 20 {
		nc := p.dial(t)
		_, _ = nc.Write([]byte{0x7f, 0xff, 0xff, 0xff})
		c := p.connectRaw(t)
		_, _ = c.Write(binary.BigEndian.AppendUint32([]byte{'B'}, maxBindBytes))
		_, _ = c.Write(make([]byte, 1000))
	}
	time.Sleep(200 * time.Millisecond)
	runtime.ReadMemStats(&after)
	if allocatedBytes := int64(after.TotalAlloc - before.TotalAlloc); allocatedBytes > 64<<20 {
		t.Errorf("%d MiB allocated", allocatedBytes>>20)
	}
	// The bytes of a message that is discarded are never held in memory.
	c := p.connectRaw(t)
	_, _ = c.Write(binary.BigEndian.AppendUint32([]byte{'d'}, 512<<20+4))
	chunk := make([]byte, 1<<20)
	runtime.ReadMemStats(&before)
	_ = c.SetDeadline(time.Now().Add(tier.Patience))
	for range 512 {
		if _, err := c.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.play(t, []round{upToReady(1, q("SELECT 1 AS a"))}); len(got) != 4 {
		t.Errorf("%q", got)
	}
	runtime.ReadMemStats(&after)
	if allocatedBytes := int64(after.TotalAlloc - before.TotalAlloc); allocatedBytes > 256<<20 { // a sync.Pool drops buffers under the race detector
		t.Errorf("%d MiB allocated for 512 MiB thrown away", allocatedBytes>>20)
	}
}

// TestBigBind: the value of a parameter may be large.
func TestBigBind(t *testing.T) {
	p := startProxy(t)
	text := strings.Repeat("ä", 20<<20)
	var n int
	if err := p.connect(t).QueryRow(t.Context(), "SELECT length($1::text)", text).Scan(&n); err != nil || n != 20<<20 {
		t.Errorf("%d %v", n, err)
	}
}

// TestLargeMessages: the memory for large messages is limited over all clients together, and is freed when they
// disconnect.
func TestLargeMessages(t *testing.T) {
	p := startProxy(t)
	head := func() *peer {
		c := p.connectRaw(t)
		length := uint32(60 << 20)
		if _, err := c.Write(append(binary.BigEndian.AppendUint32([]byte{'B'}, length), make([]byte, 40<<20)...)); err != nil {
			t.Error(err)
		}
		return c
	}
	var clients []*peer
	for range 8 { // eight messages of 64 MiB each
		clients = append(clients, head())
	}
	eventually(t, "all are read", func() bool { return p.server.largeBufferBytes.Load() == maxLarge })
	if e := p.readTooLongError(t); e == nil || e.Code != "54000" {
		t.Errorf("got %+v", e)
	}
	for _, c := range clients {
		c.Close()
	}
	eventually(t, "all is free", func() bool { return p.server.largeBufferBytes.Load() == 0 })
	if _, err := p.connect(t).Exec(t.Context(), "SELECT length($1::text)", strings.Repeat("x", 20<<20)); err != nil {
		t.Error(err)
	}
}

// readTooLongError sends part of a message that is too large, and returns the proxy's error.
func (p *testProxy) readTooLongError(t testing.TB) *pgx3.ErrorResponse {
	c := p.connectRaw(t)
	go func() {
		_, _ = c.Write(append(binary.BigEndian.AppendUint32([]byte{'B'}, 60<<20), make([]byte, 10<<20)...))
	}()
	return c.readLastError()
}

// TestMessagesThatAreTooLong: only the message that is too long fails. The transaction and the session go on as after
// any other error.
func TestMessagesThatAreTooLong(t *testing.T) {
	longText := "SELECT '" + strings.Repeat("x", 3<<20) + "'"
	const refused = "E ERROR 54000 message of "
	client := startProxy(t).connectRaw(t)
	for _, step := range []struct {
		send []pgx3.FrontendMessage
		want []string // the beginnings of lines
	}{
		{[]pgx3.FrontendMessage{q(longText)}, []string{refused, "Z I"}},
		{[]pgx3.FrontendMessage{q("BEGIN"), q("SELECT 1")}, []string{"C BEGIN", "Z T", "T", `D ["1"]`, "C SELECT 1", "Z T"}},
		{[]pgx3.FrontendMessage{q(longText), q("SELECT 1"), q("ROLLBACK")}, []string{refused, "Z E", "E ERROR 25P02", "Z E", "C ROLLBACK", "Z I"}},
		{[]pgx3.FrontendMessage{pa("", "SELECT 2"), pa("a", longText), bi("", ""), ex("", 0), sy, q("SELECT 3")},
			[]string{"1", refused, "Z I", "T", `D ["3"]`, "C SELECT 1", "Z I"}},
		{[]pgx3.FrontendMessage{pa("", "SELECT $1::text"), bi("", "", strings.Repeat("x", 65<<20)), ex("", 0), sy, q("SELECT 4")},
			[]string{"1", refused, "Z I", "T", `D ["4"]`, "C SELECT 1", "Z I"}},
	} {
		client.send(t, step.send...)
		for i, want := range step.want {
			m, err := client.frontend.Receive()
			if err != nil {
				t.Fatal(err)
			}
			if line, _ := transcribe(m); !strings.HasPrefix(line, want) {
				t.Errorf("answer %d to %T: %.80s, want %s", i, step.send[0], line, want)
			}
		}
	}
}

// The configuration may allow longer statements, for clients that write embeddings into their statements.
func TestLongerStatementsAreAllowed(t *testing.T) {
	client := startProxy(t, func(_ *testProxy, c *Config) { c.MaxText = 4 << 20 }).connectRaw(t)
	for length, want := range map[int]string{3 << 20: "T", 5 << 20: "E ERROR 54000 message of "} {
		client.send(t, q("SELECT length('"+strings.Repeat("x", length)+"')"))
		first := ""
		for {
			m, err := client.frontend.Receive()
			if err != nil {
				t.Fatal(err)
			}
			line, _ := transcribe(m)
			if first == "" {
				first = line
			}
			if strings.HasPrefix(line, "Z") {
				break
			}
		}
		if !strings.HasPrefix(first, want) {
			t.Errorf("%d bytes: %.80s, want %s", length, first, want)
		}
	}
}
