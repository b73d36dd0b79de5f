package serve

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// loadCertificate returns the TLS configuration of the listeners, and nil if they do not use TLS.
func loadCertificate(t *config.TLS) (*tls.Config, error) {
	if t == nil {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal,
			"the listener's certificate cannot be used: %v", err).
			WithHint("tls.cert and tls.key must be a certificate chain and its key in PEM form.")
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	if t.ClientCA == "" {
		return c, nil
	}
	text, err := os.ReadFile(t.ClientCA)
	if err == nil {
		c.ClientCAs = x509.NewCertPool()
		if !c.ClientCAs.AppendCertsFromPEM(text) {
			err = errors.New(t.ClientCA + " has no certificate")
		}
	}
	if err != nil {
		return nil, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal, "tls.client_ca cannot be used: %v", err).
			WithHint("tls.client_ca must be a file with the certificates of authorities in PEM form.")
	}
	c.ClientAuth = tls.VerifyClientCertIfGiven // agents with passwords and owners need no certificate
	return c, nil
}

// Prefixes for the types of names in a certificate.
const (
	commonName = "CN="
	dnsName    = "DNS="
	uriName    = "URI="
)

// wantedCertificateName returns the name that the certificate of an agent must have, with the prefix of its type.
func wantedCertificateName(agent, certName string) string {
	switch {
	case certName == "":
		return commonName + agent
	case strings.Contains(certName, ":"):
		return uriName + certName
	default:
		return dnsName + strings.ToLower(certName)
	}
}

var idCommonName = asn1.ObjectIdentifier{2, 5, 4, 3}

// certificateNames returns the names in a certificate, each with the prefix of its type. It ignores Common Names if
// there are several, since readers of certificates do not agree which of them is the name.
func certificateNames(c *x509.Certificate) (names []string) {
	for _, attribute := range c.Subject.Names {
		if attribute.Type.Equal(idCommonName) {
			names = append(names, commonName+c.Subject.CommonName)
		}
	}
	if len(names) > 1 {
		names = nil
	}
	for _, name := range c.DNSNames {
		names = append(names, dnsName+strings.ToLower(name))
	}
	for _, name := range c.URIs {
		names = append(names, uriName+name.String())
	}
	return names
}

// certificateCheck returns a function that checks whether an agent's certificate has the name. It returns nil for the
// name "".
func certificateCheck(name string) func(*x509.Certificate) error {
	if name == "" {
		return nil
	}
	return func(c *x509.Certificate) error {
		if !slices.Contains(certificateNames(c), name) {
			return errors.New("it has not the name " + name)
		}
		return nil
	}
}
