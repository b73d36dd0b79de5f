package serve

import (
	"net"
	"testing"
)

func TestAddressesOfPassedSockets(t *testing.T) {
	tcp := func(ip string, port int) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: port} }
	for _, c := range []struct {
		boundAddress net.Addr
		address      string
		want         bool
	}{
		{tcp("127.0.0.1", 7432), "127.0.0.1:7432", true},
		{tcp("127.0.0.1", 7432), "127.0.0.1:7433", false},
		{tcp("127.0.0.1", 7432), "127.0.0.2:7432", false},
		{tcp("0.0.0.0", 7432), "127.0.0.1:7432", false}, // the socket is reachable from other machines
		{tcp("127.0.0.1", 7432), "0.0.0.0:7432", false},
		{tcp("::", 7432), ":7432", true},
		{tcp("::", 7432), "0.0.0.0:7432", true},
		{tcp("127.0.0.1", 7432), "/run/pgconsent/.s.PGSQL.7432", false},
		{&net.UnixAddr{Name: "/run/pgconsent/.s.PGSQL.7432", Net: "unix"}, "/run/pgconsent/.s.PGSQL.7432", true},
		{&net.UnixAddr{Name: "/run/pgconsent/.s.PGSQL.7432", Net: "unix"}, "127.0.0.1:7432", false},
	} {
		if got := isAddress(c.boundAddress, c.address); got != c.want {
			t.Errorf("a socket at %v for %s: %t", c.boundAddress, c.address, got)
		}
	}
}
