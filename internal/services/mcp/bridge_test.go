package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pgconsent/pgconsent/internal/services/mcp"
	"github.com/pgconsent/pgconsent/test/tier"
)

// bridged is the client's side of a running bridge.
type bridged struct {
	in  *io.PipeWriter
	out *bufio.Scanner
	end chan error
}

func openBridge(t testing.TB, url, token string) *bridged {
	t.Helper()
	fromClient, in := io.Pipe()
	out, toClient := io.Pipe()
	b := &bridged{in: in, out: bufio.NewScanner(out), end: make(chan error, 1)}
	b.out.Buffer(nil, 1<<20)
	go func() {
		err := mcp.Bridge{URL: url, Token: token, HTTP: http.DefaultClient,
			Log: slog.New(slog.DiscardHandler)}.Run(context.Background(), fromClient, toClient)
		toClient.Close()
		b.end <- err
	}()
	return b
}

func (b *bridged) say(t testing.TB, line string) {
	t.Helper()
	if _, err := io.WriteString(b.in, line+"\n"); err != nil {
		t.Fatal(err)
	}
}

func (b *bridged) ask(t testing.TB, line string) string {
	t.Helper()
	b.say(t, line)
	if !b.out.Scan() {
		t.Fatalf("no answer to %s: %v", line, b.out.Err())
	}
	return b.out.Text()
}

func (b *bridged) close(t testing.TB) {
	t.Helper()
	b.in.Close()
	select {
	case err := <-b.end:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(tier.Patience):
		t.Fatal("the bridge does not end with its client")
	}
}

// The bridge passes on the server's messages unchanged, including their ids.
func TestBridge(t *testing.T) {
	d := openServer(t)
	b := openBridge(t, d.url, "chat")
	for _, c := range []struct{ line, want string }{
		{list, `"code":-32001`},
		{`{"jsonrpc":`, `"code":-32700`},
		{"[" + list + "]", `"code":-32600`},
		{`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"query","arguments":{"sql":"` +
			strings.Repeat("x", 300_000) + `"}}}`, `"code":-32600`},
		{`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"query","arguments":{"sql":"` +
			strings.Repeat("x", 300_000) + `"}},"id":"x"}`, `"id":"x"`},
		{`{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"query","arguments":{"sql":"\ud800"}}}`, `"id":"x"`},
		{initializeMessage, `"protocolVersion":"2025-06-18"`},
	} {
		if got := b.ask(t, c.line); !strings.Contains(got, c.want) {
			t.Errorf("%.100s: %.300s", c.line, got)
		}
	}
	b.say(t, initializedMessage)
	if got := b.ask(t, strings.Replace(list, `"id":2`, `"id":"ab\"c"`, 1)); !strings.Contains(got, `"id":"ab\"c"`) ||
		!strings.Contains(got, `"name":"query"`) {
		t.Errorf("tools/list: %s", got)
	}
	if got := b.ask(t, callMessage("query", `{"sql":"SELECT 1"}`)); !strings.Contains(got, "28000") ||
		!strings.Contains(got, `"isError":true`) {
		t.Errorf("query: %s", got)
	}
	b.close(t)
}

// If the session on the server has ended, the next call fails with an error that says so. The call after that succeeds.
func TestBridgeRenewsItsSession(t *testing.T) {
	d := openServer(t)
	b := openBridge(t, d.url, "chat")
	b.ask(t, initializeMessage)
	b.say(t, initializedMessage)
	b.ask(t, list)
	for range 40 { // so many sessions of the same token end the bridge's session
		begin(t, d.url, "chat")
	}
	if got := b.ask(t, list); !strings.Contains(got, `"id":2`) || !strings.Contains(got, "the session had ended") ||
		!strings.Contains(got, "make the call again") {
		t.Errorf("%s", got)
	}
	if got := b.ask(t, list); !strings.Contains(got, `"name":"query"`) {
		t.Errorf("%s", got)
	}
	d.revoke("chat")
	if got := b.ask(t, list); !strings.Contains(got, `"id":2`) || !strings.Contains(got, "a valid bearer token is required") {
		t.Errorf("%s", got)
	}
	b.close(t)
}

// If no server listens, every call gets an error that says so.
func TestBridgeWithoutServer(t *testing.T) {
	b := openBridge(t, "http://127.0.0.1:1/mcp", "chat")
	if got := b.ask(t, initializeMessage); !strings.Contains(got, `"id":1`) || !strings.Contains(got, "was not reached") {
		t.Errorf("%s", got)
	}
	b.close(t)
}

// Each of many concurrent calls is answered once.
func TestBridgeConcurrentCalls(t *testing.T) {
	d := openServer(t)
	b := openBridge(t, d.url, "chat")
	b.ask(t, initializeMessage)
	b.say(t, initializedMessage)
	const calls = 60
	go func() {
		for i := range calls {
			_, _ = fmt.Fprintf(b.in,
				`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"track_interaction","arguments":{"user_id":"u","channel_id":"c"}}}`+"\n", i+100)
		}
	}()
	seenIDs := map[int]bool{}
	for range calls {
		if !b.out.Scan() {
			t.Fatal("the bridge has ended")
		}
		var m struct{ ID int }
		if err := json.Unmarshal(b.out.Bytes(), &m); err != nil || seenIDs[m.ID] || m.ID < 100 {
			t.Errorf("%s", b.out.Text())
		}
		seenIDs[m.ID] = true
	}
	b.close(t)
}

// The client of the Go MCP SDK works over the bridge.
func TestBridgeWithAClient(t *testing.T) {
	d := openServer(t)
	fromClient, in := io.Pipe()
	out, toClient := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- mcp.Bridge{URL: d.url, Token: "chat", HTTP: http.DefaultClient,
			Log: slog.New(slog.DiscardHandler)}.Run(context.Background(), fromClient, toClient)
	}()
	s, err := sdk.NewClient(&sdk.Implementation{Name: "t", Version: "1"}, nil).Connect(t.Context(), &sdk.IOTransport{Reader: out, Writer: in}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := toolNames(t, s); len(got) != 5 {
		t.Errorf("tools %q", got)
	}
	in.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
