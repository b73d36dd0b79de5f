//go:build unix

package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/test/tier"
)

// servingOn starts serve with sockets that are open already, as systemd does.
func (i *installation) servingOn(t *testing.T, listen string, sockets ...*os.File) *program {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`, os.Args[0], "serve", "-c", i.config, "--log-format", "json", "--drain", "1s")
	cmd.ExtraFiles = sockets
	return startProgram(t, cmd, []string{"LISTEN_FDS=" + string('0'+rune(len(sockets))), "PGCONSENT_LISTEN=" + listen})
}

// An upgrade refuses no login: while one process ends and the next begins, clients wait in the queue of the socket that
// both were passed.
func TestPassedSockets(t *testing.T) {
	tier.All(t)
	i := install(t)
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			address := "127.0.0.1:0"
			if network == "unix" {
				address = filepath.Join(t.TempDir(), ".s.PGSQL.7432")
			}
			l, err := net.Listen(network, address)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			address = l.Addr().String()
			socket, err := l.(interface{ File() (*os.File, error) }).File()
			if err != nil {
				t.Fatal(err)
			}
			defer socket.Close()
			config, err := pgx.ParseConfig(i.dsn("chat", "127.0.0.1:7432"))
			if err != nil {
				t.Fatal(err)
			}
			if host, port, err := net.SplitHostPort(address); err == nil {
				if config, err = pgx.ParseConfig(i.dsn("chat", net.JoinHostPort(host, port))); err != nil {
					t.Fatal(err)
				}
			} else {
				config.Host = filepath.Dir(address)
			}
			config.ConnectTimeout = tier.Patience

			var logins, upgrades atomic.Int64
			stop := make(chan struct{})
			var clients sync.WaitGroup
			current := i.servingOn(t, address, socket)
			for range 3 {
				clients.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						conn, err := pgx.ConnectConfig(t.Context(), config)
						if err != nil {
							t.Errorf("after %d logins and %d upgrades: %v", logins.Load(), upgrades.Load(), err)
							return
						}
						logins.Add(1)
						_ = conn.Close(t.Context())
					}
				})
			}
			for range 3 {
				loginsBefore := logins.Load()
				waitFor(t, "agents log in", func() bool { return logins.Load() > loginsBefore+5 || t.Failed() })
				current.signal(t, syscall.SIGTERM)
				if code := current.awaitEnd(t); code != exitOK {
					t.Errorf("it ends with %d", code)
				}
				current = i.servingOn(t, address, socket)
				upgrades.Add(1)
			}
			loginsBefore := logins.Load()
			waitFor(t, "agents log in", func() bool { return logins.Load() > loginsBefore+5 || t.Failed() })
			close(stop)
			clients.Wait()
		})
	}
}

// A socket at an address that the configuration does not name is refused, since nobody would answer there.
func TestPassedSocketsOfOthers(t *testing.T) {
	i := install(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	socket, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	p := i.servingOn(t, "127.0.0.1:0", socket)
	if code := p.awaitEnd(t); code != exitError || !strings.Contains(p.errs.String(), "does not listen on "+l.Addr().String()) {
		t.Errorf("it ends with %d", code)
	}
}
