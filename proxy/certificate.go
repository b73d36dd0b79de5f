package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"time"
)

// verifyCertificate reports whether the client has shown a certificate that lets the agent in. The session lives no
// longer than the certificate.
func (c *conn) verifyCertificate(user string, judge func(*x509.Certificate) error) bool {
	leaf, expiry, err := c.clientCertificate()
	if err == nil {
		err = judge(leaf)
	}
	if err != nil {
		c.log.Info("a certificate was refused", "agent", user, "cause", err)
		return false
	}
	c.token, c.byCertificate = TokenGrant{Until: expiry}, true
	return true
}

// clientCertificate returns the certificate that the client has shown, and when it is no longer valid. That time is the
// earliest expiry in the chain up to the authority.
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
