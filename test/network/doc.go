// Package network simulates faults of a network between two programs. A [Relay] accepts connections and passes their
// bytes on to a server, until a [Fault] ends or slows a connection. Tests put relays between clients and a proxy, and
// between a proxy and its server, so that all of them use real sockets.
package network
