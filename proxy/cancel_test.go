package proxy

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	pgx3 "github.com/jackc/pgx/v5/pgproto3"

	"github.com/pgconsent/pgconsent/test/tier"
)

// TestCancelKeys: an agent's cancel key is never equal to an owner's, and cannot be guessed from another. It must match
// completely, and is void after its session. The client does not learn the server's own key.
func TestCancelKeys(t *testing.T) {
	var c cancelKeys
	sessions := map[uint32]*session{}
	var keys []cancelKey
	secrets := map[string]bool{}
	const n = 2000
	for i := range n {
		s, length := &session{}, []int{4, 32}[i%2]
		key := c.add(s, length)
		if key.pid < 1<<30 || key.pid >= 1<<31 || len(key.secret) != length {
			t.Fatalf("the key %v: its process id may be one of the system's, or it has another length than %d", key, length)
		}
		sessions[key.pid], secrets[string(key.secret)] = s, true
		keys = append(keys, key)
	}
	if len(secrets) < n-n/10 || len(sessions) != n {
		t.Errorf("of %d keys %d secrets and %d process ids are different", n, len(secrets), len(sessions))
	}
	for i, key := range keys {
		if c.find(key) != sessions[key.pid] {
			t.Fatal("a key finds another session")
		}
		wrongSecret := slices.Clone(key.secret)
		wrongSecret[len(wrongSecret)-1]++
		for _, wrongKey := range []cancelKey{
			{key.pid, wrongSecret}, {key.pid, nil}, {key.pid, key.secret[:len(key.secret)-1]}, {key.pid, append(slices.Clone(key.secret), 0)},
			{key.pid, make([]byte, len(key.secret))}, {key.pid, keys[(i+2)%n].secret}, {0, key.secret},
			{binary.BigEndian.Uint32(key.secret), binary.BigEndian.AppendUint32(nil, key.pid)},
		} {
			if c.find(wrongKey) != nil {
				t.Fatalf("a part of the key %v finds a session: %v", key, wrongKey)
			}
		}
	}
	for _, key := range keys {
		c.remove(key)
		if c.find(key) != nil {
			t.Fatal("a key outlives its session")
		}
	}

	p := startProxy(t)
	conn := p.connect(t)
	var pid uint32
	if err := conn.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		t.Fatal(err)
	}
	if toldPID := conn.PgConn().PID(); toldPID == pid || toldPID < 1<<30 {
		t.Errorf("the client is told the process id %d, and the server's is %d", toldPID, pid)
	}
}

// The secret part of a cancel key has 4 bytes, and 32 from protocol version 3.2 on.
func TestLengthOfCancelKeys(t *testing.T) {
	p := startProxy(t)
	for version, want := range map[uint32]int{
		protocol30: 4, protocol30 + 1: 4, protocol32: 32, protocol32 + 1: 32, protocol30 + 9999: 32,
	} {
		if got := p.cancelKeyIn(t, version); len(got.SecretKey) != want || got.ProcessID < 1<<30 {
			t.Errorf("%x: %d bytes, want %d", version, len(got.SecretKey), want)
		}
	}
}

// cancelKeyIn logs an agent in with a protocol version, and returns the cancel key.
func (p *testProxy) cancelKeyIn(t *testing.T, version uint32) *pgx3.BackendKeyData {
	t.Helper()
	config, err := pgx.ParseConfig(p.agentDSN() + " sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	// The driver pgx asks for 3.0 or 3.2 only.
	nc := &versionConn{Conn: p.dial(t), version: version}
	config.DialFunc = func(context.Context, string, string) (net.Conn, error) { return nc, nil }
	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return &pgx3.BackendKeyData{ProcessID: conn.PgConn().PID(), SecretKey: slices.Clone(conn.PgConn().SecretKey())}
}

// versionConn is a connection whose startup message asks for another version.
type versionConn struct {
	net.Conn
	version      uint32
	isVersionSet bool
}

func (o *versionConn) Write(b []byte) (int, error) {
	if !o.isVersionSet {
		o.isVersionSet = true
		b = slices.Clone(b)
		binary.BigEndian.PutUint32(b[4:], o.version)
	}
	return o.Conn.Write(b)
}

// Cancel keys of owners are the server's own. Whatever their length, the proxy relays them to the client, and back to
// the server, unchanged.
func TestLongCancelKeysOfOwners(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	p := startProxy(t, func(p *testProxy, _ *Config) {
		p.editRoute = func(r *Route) {
			if r.Kind == Owner {
				r.Upstream = Upstream{Network: "tcp", Address: server.Addr().String()}
			}
		}
	})
	acceptConnection := func() net.Conn {
		nc, err := server.Accept()
		if err != nil {
			t.Fatal(err)
		}
		_ = nc.SetDeadline(time.Now().Add(tier.Patience))
		t.Cleanup(func() { nc.Close() })
		return nc
	}
	for _, length := range []int{4, 32, 256} {
		client := p.dial(t)
		hello, _ := (&pgx3.StartupMessage{ProtocolVersion: protocol32, Parameters: map[string]string{"user": "wire_owner"}}).Encode(nil)
		if _, err := client.Write(hello); err != nil {
			t.Fatal(err)
		}
		upstream := acceptConnection()
		if got := make([]byte, len(hello)); !readsEqual(upstream, got, hello) {
			t.Fatalf("the server is sent %q, want %q", got, hello)
		}
		key, _ := (&pgx3.BackendKeyData{ProcessID: 4711, SecretKey: bytes.Repeat([]byte{7}, length)}).Encode(nil)
		if _, err := upstream.Write(key); err != nil {
			t.Fatal(err)
		}
		if got := make([]byte, len(key)); !readsEqual(client, got, key) {
			t.Errorf("the client gets the key %q, want %q", got, key)
		}
		cancelClient := p.dial(t)
		cancel, _ := (&pgx3.CancelRequest{ProcessID: 4711, SecretKey: bytes.Repeat([]byte{7}, length)}).Encode(nil)
		if _, err := cancelClient.Write(cancel); err != nil {
			t.Fatal(err)
		}
		cancelUpstream := acceptConnection()
		if got := make([]byte, len(cancel)); !readsEqual(cancelUpstream, got, cancel) {
			t.Errorf("the server is sent the request %q, want %q", got, cancel)
		}
		cancelUpstream.Close()
		if n, err := cancelClient.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Error("a cancel request was answered")
		}
		upstream.Close()
		client.Close()
	}
}

// readsEqual reads len(want) bytes into got, and returns whether they equal want.
func readsEqual(r io.Reader, got, want []byte) bool {
	_, err := io.ReadFull(r, got)
	return err == nil && bytes.Equal(got, want)
}
