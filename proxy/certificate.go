package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"time"
)

// verifyCertificate reports whether the client's TLS certificate is valid and judge accepts it for the agent. The
// session ends when the certificate expires.
func (c *conn) verifyCertificate(user string, judge func(*x509.Certificate) error) bool {
	leaf, expiry, err := c.clientCertificate()
	if err == nil {
		err = judge(leaf)
	}
	if err != nil {
		c.log().Info("a certificate was refused", "agent", user, "cause", err)
		return false
	}
	c.token, c.byCertificate = TokenGrant{Until: expiry}, true
	return true
}

// clientCertificate returns the client's certificate and the time from which it is no longer valid. That is the
// earliest expiry in the chain up to the authority; of several chains, the one valid for longest counts.
func (c *conn) clientCertificate() (leaf *x509.Certificate, until time.Time, err error) {
	tlsConn, ok := c.client.(*tls.Conn)
	if !ok {
		return nil, until, errors.New("the connection has no TLS")
	}
	for _, chain := range tlsConn.ConnectionState().VerifiedChains {
		ends := chain[0].NotAfter
		for _, signer := range chain {
			if signer.NotAfter.Before(ends) {
				ends = signer.NotAfter
			}
		}
		if leaf = chain[0]; ends.After(until) {
			until = ends
		}
	}
	if leaf == nil {
		return nil, until, errors.New("the client has shown none")
	}
	return leaf, until, nil
}
