package proxy

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"sync"

	_ "crypto/sha256" // These packages have the hashes of channel binding.
	_ "crypto/sha512"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// alpn is the protocol name that a client must request if it starts with TLS.
const alpn = "postgresql"

// channelBinding holds the proxy's certificate in a TLS handshake, to which SCRAM can bind the password exchange.
type channelBinding struct {
	mu          sync.Mutex
	certificate *tls.Certificate
}

// serverEndPointData returns the channel binding data of type tls-server-end-point (RFC 5929). This is the certificate's
// hash by the hash function of its signature, with SHA-256 in place of MD5 and SHA-1. It returns nil where the RFC defines no
// data, as for Ed25519; then the proxy offers no channel binding.
func (b *channelBinding) serverEndPointData() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.certificate == nil || len(b.certificate.Certificate) == 0 {
		return nil
	}
	leaf, err := x509.ParseCertificate(b.certificate.Certificate[0])
	if err != nil {
		return nil
	}
	var h crypto.Hash
	switch leaf.SignatureAlgorithm {
	case x509.MD5WithRSA, x509.SHA1WithRSA, x509.DSAWithSHA1, x509.ECDSAWithSHA1,
		x509.SHA256WithRSA, x509.SHA256WithRSAPSS, x509.DSAWithSHA256, x509.ECDSAWithSHA256:
		h = crypto.SHA256
	case x509.SHA384WithRSA, x509.SHA384WithRSAPSS, x509.ECDSAWithSHA384:
		h = crypto.SHA384
	case x509.SHA512WithRSA, x509.SHA512WithRSAPSS, x509.ECDSAWithSHA512:
		h = crypto.SHA512
	default:
		return nil
	}
	sum := h.New()
	sum.Write(leaf.Raw)
	return sum.Sum(nil)
}

// watch returns a copy of base that stores the certificate of each handshake in b. As in PostgreSQL, TLS sessions
// cannot be resumed: in a resumed session the proxy would present no certificate.
func (b *channelBinding) watch(base *tls.Config) *tls.Config {
	cfg := base.Clone()
	cfg.SessionTicketsDisabled = true
	cfg.NextProtos = []string{alpn}
	if cfg.MinVersion < tls.VersionTLS12 {
		cfg.MinVersion = tls.VersionTLS12
	}
	cfg.Certificates = nil // Without certificates here, GetCertificate is always called.
	cfg.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		cert, err := chooseCertificate(base, hello)
		if err == nil {
			b.mu.Lock()
			b.certificate = cert
			b.mu.Unlock()
		}
		return cert, err
	}
	if base.GetConfigForClient != nil {
		cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			other, err := base.GetConfigForClient(hello)
			if err != nil || other == nil {
				return nil, err
			}
			other = other.Clone()
			other.GetConfigForClient = nil
			return b.watch(other), nil
		}
	}
	return cfg
}

// chooseCertificate returns the certificate that crypto/tls would choose for this ClientHello.
func chooseCertificate(cfg *tls.Config, hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	if cfg.GetCertificate != nil && (len(cfg.Certificates) == 0 || hello.ServerName != "") {
		if cert, err := cfg.GetCertificate(hello); cert != nil || err != nil {
			return cert, err
		}
	}
	for i := range cfg.Certificates {
		if hello.SupportsCertificate(&cfg.Certificates[i]) == nil {
			return &cfg.Certificates[i], nil
		}
	}
	if len(cfg.Certificates) == 0 {
		return nil, errors.New("no certificate is configured")
	}
	return &cfg.Certificates[0], nil
}

// tlsConfig returns the configuration for the next handshake, or nil if TLS is not configured.
func (s *Server) tlsConfig() *tls.Config {
	if s.config.TLS == nil {
		return nil
	}
	return s.config.TLS()
}

// offerTLS answers an SSLRequest, and starts TLS if it is configured.
func (c *conn) offerTLS() error {
	if c.server.tlsConfig() == nil {
		if err := c.write([]byte{'N'}); err != nil {
			return errPeerGone
		}
		return nil
	}
	if err := c.write([]byte{'S'}); err != nil {
		return errPeerGone
	}
	return c.startTLS(c.client, false)
}

// startTLS performs the TLS handshake. A client that started TLS without an SSLRequest (isDirect) must have requested
// the protocol "postgresql" by ALPN.
func (c *conn) startTLS(nc net.Conn, isDirect bool) error {
	cfg := c.server.tlsConfig()
	if cfg == nil {
		return errPeerGone // The client waits for a ServerHello and understands no other answer.
	}
	b := &channelBinding{}
	t := tls.Server(nc, b.watch(cfg))
	if err := t.HandshakeContext(c.ctx); err != nil {
		c.log().Debug("TLS handshake failed", "error", err)
		c.setBroken(true)
		return errPeerGone
	}
	c.binding = b
	if err := c.setClient(t); err != nil {
		return err
	}
	if isDirect && t.ConnectionState().NegotiatedProtocol != alpn {
		return sqlstate.New(sqlstate.ProtocolViolation, sqlstate.ReasonProtocol,
			"received direct SSL connection request without ALPN protocol negotiation extension")
	}
	return nil
}

// bindingData returns the channel binding data for the client's SCRAM exchange, or nil if there is none.
func (c *conn) bindingData() []byte {
	if c.binding == nil {
		return nil
	}
	return c.binding.serverEndPointData()
}
