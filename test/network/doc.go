// Package network simulates a network between two programs, with faults. A [Relay] accepts connections and passes the
// bytes on to a server, until a [Fault] ends or slows the connection. Tests put relays between clients and a proxy, and
// between a proxy and its server, so that both have real sockets.
package network
