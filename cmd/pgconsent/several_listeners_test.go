//go:build unix

package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/test/tier"
)

// Agents can log in at each address of a list, whether serve has opened it or was passed its socket. A drain ends the
// sessions of all.
func TestSeveralListeners(t *testing.T) {
	i := installDatabase(t)
	path := filepath.Join(t.TempDir(), ".s.PGSQL.7432")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	passedAddress := l.Addr().String()
	socket, err := l.(*net.TCPListener).File()
	l.Close()
	if err != nil {
		t.Fatal(err)
	}
	p := i.startServeOnSockets(t, "127.0.0.1:0,"+path+","+passedAddress, socket)
	socket.Close()
	addresses := strings.Split(p.listenAddress(t), ", ")
	if len(addresses) != 3 || addresses[1] != path || addresses[2] != passedAddress {
		t.Fatalf("serve listens at %q", addresses)
	}
	var agents []*pgx.Conn
	for _, address := range addresses {
		host, port := filepath.Dir(address), "7432"
		if !config.IsSocketPath(address) {
			host, port, _ = net.SplitHostPort(address)
		}
		c, err := pgx.ParseConfig("host=" + host + " port=" + port + " user=chat password=secret dbname=app sslmode=disable")
		if err != nil {
			t.Fatal(err)
		}
		c.ConnectTimeout = tier.Patience
		conn, err := pgx.ConnectConfig(t.Context(), c)
		if err != nil {
			t.Fatalf("%s: %v", address, err)
		}
		if n := queryInt(t, conn, "SELECT count(*) FROM memories"); n != 1 {
			t.Errorf("at %s the agent sees %d memories", address, n)
		}
		agents = append(agents, conn)
	}
	p.signal(t, syscall.SIGTERM)
	if code := p.awaitEnd(t); code != exitOK {
		t.Errorf("it ends with %d", code)
	}
	for n, conn := range agents {
		if _, err := conn.Exec(t.Context(), "SELECT 1"); err == nil {
			t.Errorf("the session at %s goes on", addresses[n])
		}
	}
	for _, address := range addresses[:2] {
		network := "tcp"
		if config.IsSocketPath(address) {
			network = "unix"
		}
		if conn, err := net.Dial(network, address); err == nil {
			conn.Close()
			t.Errorf("%s is open", address)
		}
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the socket stays behind: %v", err)
	}
}

// If one address cannot be opened, serve does not start, and closes the others.
func TestOneOfSeveralInUse(t *testing.T) {
	i := installDatabase(t)
	path := filepath.Join(t.TempDir(), ".s.PGSQL.7432")
	occupied, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer occupied.Close()
	p := launch(t, []string{"PGCONSENT_LISTEN=" + path + "," + occupied.Addr().String()}, "serve", "-c", i.config)
	if code := p.awaitEnd(t); code != exitError || !strings.Contains(p.errs.String(), occupied.Addr().String()+" is in use") {
		t.Errorf("it ends with %d", code)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the socket stays behind: %v", err)
	}
}

// If serve listens on several addresses, the first is printed for clients.
func TestFirstAddressIsPrinted(t *testing.T) {
	for _, c := range []struct {
		listen config.AddressList
		want   string
	}{
		{config.AddressList{"127.0.0.1:1", "/run/p/.s.PGSQL.2"}, "postgres://chat@127.0.0.1:1/app"},
		{config.AddressList{"/run/p/.s.PGSQL.2", "127.0.0.1:1"}, "postgres://chat@/app?host=%2Frun%2Fp&port=2"},
		{config.AddressList{":1"}, "postgres://chat@localhost:1/app"},
	} {
		if got := clientDSN(&config.Config{Listen: c.listen}, "chat", "", "app"); got != c.want {
			t.Errorf("%v: %s, want %s", c.listen, got, c.want)
		}
	}
}
