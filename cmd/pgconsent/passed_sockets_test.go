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

// startServeOnSockets starts serve with sockets that are already open, as systemd does.
func (i *installation) startServeOnSockets(t *testing.T, listen string, sockets ...*os.File) *program {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", `LISTEN_PID=$$ exec "$0" "$@"`, os.Args[0], "serve", "-c", i.config, "--log-format", "json", "--drain", "1s")
	cmd.ExtraFiles = sockets
	return startProgram(t, cmd, []string{"LISTEN_FDS=" + string('0'+rune(len(sockets))), "PGCONSENT_LISTEN=" + listen})
}

// An upgrade refuses no login: after one process ends and before the next starts, clients wait in the queue of the
// socket that both get.
func TestPassedSockets(t *testing.T) {
	tier.All(t)
	i := installDatabase(t)
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

			var loginCount, upgradeCount atomic.Int64
			stopClients := make(chan struct{})
			var clients sync.WaitGroup
			currentServe := i.startServeOnSockets(t, address, socket)
			for range 3 {
				clients.Go(func() {
					for {
						select {
						case <-stopClients:
							return
						default:
						}
						conn, err := pgx.ConnectConfig(t.Context(), config)
						if err != nil {
							t.Errorf("after %d logins and %d upgrades: %v", loginCount.Load(), upgradeCount.Load(), err)
							return
						}
						loginCount.Add(1)
						_ = conn.Close(t.Context())
					}
				})
			}
			for range 3 {
				loginsBefore := loginCount.Load()
				waitFor(t, "agents log in", func() bool { return loginCount.Load() > loginsBefore+5 || t.Failed() })
				currentServe.signal(t, syscall.SIGTERM)
				if code := currentServe.awaitEnd(t); code != exitOK {
					t.Errorf("it ends with %d", code)
				}
				currentServe = i.startServeOnSockets(t, address, socket)
				upgradeCount.Add(1)
			}
			loginsBefore := loginCount.Load()
			waitFor(t, "agents log in", func() bool { return loginCount.Load() > loginsBefore+5 || t.Failed() })
			close(stopClients)
			clients.Wait()
		})
	}
}

// serve refuses a socket whose address is not in the configuration, because it would not answer there.
func TestPassedSocketsOfOthers(t *testing.T) {
	i := installDatabase(t)
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
	p := i.startServeOnSockets(t, "127.0.0.1:0", socket)
	if code := p.awaitEnd(t); code != exitError || !strings.Contains(p.errs.String(), "does not listen on "+l.Addr().String()) {
		t.Errorf("it ends with %d", code)
	}
}
