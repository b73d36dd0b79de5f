package proxy

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// An agent may send a token as its password over TLS or a unix socket. The session gets the attributes in the token.
func TestTokenAsPassword(t *testing.T) {
	expiry := time.Now().Add(time.Hour)
	p := startProxy(t, func(p *testProxy, _ *Config) {
		p.editRoute = func(r *Route) {
			if r.Kind == Agent {
				r.Credential = nil
				r.Password = func(_ context.Context, password string) (TokenGrant, error) {
					if password != agentPassword {
						return TokenGrant{}, errors.New("no such token")
					}
					return TokenGrant{Attributes: map[string]string{"user": "u1"}, Until: expiry}, nil
				}
			}
		}
	})
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, ".s.PGSQL.5432"))
	if err != nil {
		t.Fatal(err)
	}
	serveResult := make(chan error, 1)
	go func() { serveResult <- p.server.Serve(l) }()
	t.Cleanup(func() { l.Close(); <-serveResult })
	dsn := "host=" + dir + " port=5432 dbname=" + p.db.Name + " user=" + agentName + " password="
	conn, err := pgx.Connect(t.Context(), dsn+"'"+agentPassword+"'")
	if err != nil {
		t.Fatal(err)
	}
	if info := p.lastDecider().info; info.TokenAttributes["user"] != "u1" || !info.ExpiresAt.Equal(expiry) {
		t.Errorf("enforcement was told %+v", info)
	}
	conn.Close(t.Context())
	var pgErr *pgconn.PgError
	for name, password := range map[string]string{"another": "another", "a longer one": agentPassword + "x"} {
		if _, err := pgx.Connect(t.Context(), dsn+"'"+password+"'"); !errors.As(err, &pgErr) || pgErr.Code != "28P01" {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Over TCP without TLS, the proxy asks for no token, even on loopback.
	if _, err := pgx.Connect(t.Context(), p.agentDSN()+" sslmode=disable"); !errors.As(err, &pgErr) || pgErr.Code != "28000" {
		t.Errorf("in the open: %v", err)
	}
}
