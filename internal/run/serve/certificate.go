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

// loadCertificate returns how the listener speaks TLS; nil: not at all.
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
	c.ClientAuth = tls.VerifyClientCertIfGiven // Agents with passwords, and owners, show none.
	return c, nil
}

// The kinds of names that a certificate has.
const (
	commonName = "CN="
	dnsName    = "DNS="
	uriName    = "URI="
)

// wantedCertificateName returns the name that an agent's certificate must have, with its kind.
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

// certificateNames returns the names of a certificate, each with its kind. Of several Common Names none counts, since
// readers of certificates do not agree on which it is.
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

// certificateCheck returns a function that checks whether an agent's certificate has this name; nil for "".
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
