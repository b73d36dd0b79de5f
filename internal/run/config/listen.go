package config

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
)

// AddressList lists the addresses at which clients connect: each is host:port, or the path of a unix socket. The file
// may have one address as a text, or a list.
type AddressList []string

var addressesType = reflect.TypeFor[AddressList]()

// First returns the first address, for messages to people. A configuration from [Load] has at least one.
func (a AddressList) First() string {
	if len(a) == 0 {
		return ""
	}
	return a[0]
}

// ProxyProtocol says which load balancers send the addresses of clients in the PROXY protocol. By default, none do.
type ProxyProtocol struct {
	From []string `yaml:"from"` // networks of the load balancers
}

// Networks returns the networks of the load balancers.
func (p ProxyProtocol) Networks() (out []netip.Prefix) {
	for _, network := range p.From {
		out = append(out, netip.MustParsePrefix(network)) // Load has checked the text.
	}
	return out
}

// IsSocketPath reports whether an address is the path of a unix socket.
func IsSocketPath(address string) bool { return strings.HasPrefix(address, "/") }

// parseAddresses parses addresses that are separated by commas, as in an environment variable.
func parseAddresses(text string) (out AddressList) {
	for address := range strings.SplitSeq(text, ",") {
		out = append(out, strings.TrimSpace(address))
	}
	return out
}

// decodeAddresses decodes one address, or a list of addresses.
func (d *decoder) decodeAddresses(path string, n *yamlfile.Node, v reflect.Value) {
	switch n.Kind {
	case yamlfile.ScalarNode:
		v.Set(reflect.ValueOf(AddressList{n.SourceText}))
		d.textByPath[itemPath(path, 0)] = n.SourceText
	case yamlfile.ListNode:
		d.decodeItems(path, n, v)
	default:
		d.addProblemAt(n.Place, path+": 127.0.0.1:7432", "%s must be an address or a list of addresses", keyName(path))
	}
}

func (c *Config) checkListeners(d *decoder) {
	if len(c.Listen) == 0 {
		d.addProblem("listen", "listen: 127.0.0.1:7432", "listen is an empty list")
	}
	for i, address := range c.Listen {
		path := itemPath("listen", i)
		switch {
		case slices.Index(c.Listen, address) != i && !choosesPort(address):
			d.addProblem(path, "", "listen names %s twice", address)
		case IsSocketPath(address):
		case !isHostPort(address):
			d.addProblem(path, "listen: 127.0.0.1:7432", "listen must be host:port or the path of a unix socket")
		case c.TLS == nil && !isLoopback(address):
			d.addProblem(path, "Add tls: { cert: server.crt, key: server.key }, or listen on 127.0.0.1.",
				"without tls pgconsent listens on loopback and unix sockets only, not on %s", address)
		}
	}
	for i, network := range c.Proxies.From {
		if p, err := netip.ParsePrefix(network); err != nil || p != p.Masked() || p.Bits() == 0 || p.Addr().Is4In6() {
			d.addProblem(itemPath("proxy_protocol.from", i),
				"proxy_protocol: { from: [10.0.0.0/8] }; one address is 10.0.0.7/32.",
				"proxy_protocol.from must have networks of load balancers, and not all addresses")
		}
	}
	if c.TLS != nil && (c.TLS.Cert == "" || c.TLS.Key == "") {
		d.addProblem("tls", "tls: { cert: server.crt, key: server.key }", "tls needs a certificate and a key")
	}
	switch {
	case c.HTTP.Listen == "off":
	case !isHostPort(c.HTTP.Listen):
		d.addProblem("http.listen", "http: { listen: 127.0.0.1:7433 }, or listen: off", "http.listen must be host:port")
	case c.TLS == nil && !isLoopback(c.HTTP.Listen):
		d.addProblem("http.listen", "Add tls: { cert: server.crt, key: server.key }, or listen on 127.0.0.1.",
			"without tls http listens on loopback only, not on %s", c.HTTP.Listen)
	case slices.Contains(c.Listen, c.HTTP.Listen) && !choosesPort(c.HTTP.Listen):
		d.addProblem("http.listen", "", "listen and http.listen are the same address")
	}
}

// choosesPort reports whether the operating system chooses the port of an address. Such an address may occur twice.
func choosesPort(address string) bool { return strings.HasSuffix(address, ":0") }

// itemPath returns the path of the item with index i in the list at path.
func itemPath(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
