package serve

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

func listen(address string) (net.Listener, error) {
	network := "tcp"
	if config.IsSocketPath(address) {
		network = "unix"
	}
	l, err := net.Listen(network, address)
	if errors.Is(err, syscall.EADDRINUSE) {
		hint := "Stop the program that listens there, or name another address."
		if _, port, e := net.SplitHostPort(address); e == nil {
			hint = fmt.Sprintf("Stop the program that listens there (lsof -i :%s shows it), or name another port.", port)
		}
		return nil, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal, "%s is in use", address).
			WithHint("%s", hint).WithCause(err)
	}
	if err != nil {
		return nil, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal, "cannot listen on %s", address).WithCause(err)
	}
	return l, nil
}

func loadCertificate(t *config.TLS) (*tls.Config, error) {
	if t == nil {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal,
			"the listener's certificate cannot be used: %v", err).
			WithHint("tls.cert and tls.key must be a certificate chain and its key in PEM form.")
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}, nil
}
