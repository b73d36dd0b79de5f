// Package network is a network between two programs that a test can break. It accepts connections and passes what is
// sent on to a server, until a [Fault] says otherwise. Tests put it between clients and a proxy, and between a proxy
// and its server, so that both have real sockets.
package network
