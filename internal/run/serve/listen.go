package serve

import (
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
