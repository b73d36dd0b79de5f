package serve

import (
	"net"
	"slices"
	"strings"

	"github.com/coreos/go-systemd/v22/activation"

	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// passedSockets has the sockets that the parent of this process has opened for it, as systemd does for a .socket unit
// (sd_listen_fds(3)). While one process ends and the next begins, clients wait in the queue of such a socket.
type passedSockets struct{ listeners []net.Listener }

// findPassedSockets takes the passed sockets. Later calls in the same process find none.
func findPassedSockets() (*passedSockets, error) {
	listeners, err := activation.Listeners()
	if err != nil {
		return nil, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal, "the sockets that were passed cannot be used").
			WithCause(err)
	}
	return &passedSockets{slices.DeleteFunc(listeners, func(l net.Listener) bool { return l == nil })}, nil
}

// listen returns the passed socket that is bound to the address, or else opens a new one.
func (p *passedSockets) listen(address string) (net.Listener, error) {
	index := slices.IndexFunc(p.listeners, func(l net.Listener) bool { return isAddress(l.Addr(), address) })
	if index < 0 {
		return listen(address)
	}
	l := p.listeners[index]
	p.listeners = slices.Delete(p.listeners, index, index+1)
	return l, nil
}

// checkAllUsed returns an error if a passed socket is at an address that the configuration does not name: nobody would
// answer there.
func (p *passedSockets) checkAllUsed() error {
	if len(p.listeners) == 0 {
		return nil
	}
	var addresses []string
	for _, l := range p.listeners {
		addresses = append(addresses, l.Addr().String())
	}
	return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal,
		"the configuration does not listen on %s, for which a socket was passed", strings.Join(addresses, ", ")).
		WithHint("ListenStream= of the .socket unit must be an address of listen, or that of http.listen.")
}

// isAddress reports whether a socket is bound to an address of the configuration.
func isAddress(listened net.Addr, address string) bool {
	boundAddress, ok := listened.(*net.TCPAddr)
	if !ok {
		return listened.String() == address
	}
	want, err := net.ResolveTCPAddr("tcp", address)
	if config.IsSocketPath(address) || err != nil || want.Port != boundAddress.Port {
		return false
	}
	return want.IP.Equal(boundAddress.IP) || (want.IP == nil || want.IP.IsUnspecified()) && boundAddress.IP.IsUnspecified()
}

// close closes the passed sockets that listen has not returned.
func (p *passedSockets) close() {
	for _, l := range p.listeners {
		_ = l.Close()
	}
}
