package config

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// ConnString returns the connection string with which pgconsent connects to a database as a role. secret says where the
// password of the role is, as in [Secrets].
func (c *Config) ConnString(db *Database, role, secret string) (string, error) {
	password, err := ReadSecret(secret)
	if err != nil {
		return "", err
	}
	quote := func(s string) string { return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'" }
	parts := []string{
		"host=" + quote(c.Upstream.Host), "port=" + strconv.Itoa(c.Upstream.Port), "user=" + quote(role), "dbname=" +
			quote(db.Name),
		"sslmode=" + c.Upstream.TLS, "connect_timeout=10",
	}
	if password != "" {
		parts = append(parts, "password="+quote(password))
	}
	if c.Upstream.CA != "" {
		parts = append(parts, "sslrootcert="+quote(c.Upstream.CA))
	}
	return strings.Join(parts, " "), nil
}

// NetworkAddress returns the network and address of the PostgreSQL server, as arguments for net.Dial.
func (u Upstream) NetworkAddress() (network, address string) {
	if u.isUnixSocket() {
		return "unix", filepath.Join(u.Host, fmt.Sprintf(".s.PGSQL.%d", u.Port))
	}
	return "tcp", joinHostPort(u.Host, u.Port)
}

func joinHostPort(host string, port int) string {
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + ":" + strconv.Itoa(port)
}

// ClientTLS returns the TLS configuration for connections to the PostgreSQL server, and nil if they do not use TLS.
func (u Upstream) ClientTLS() (*tls.Config, error) {
	switch u.TLS {
	case "disable":
		return nil, nil
	case "require":
		return &tls.Config{MinVersion: tls.VersionTLS12, ServerName: u.Host, InsecureSkipVerify: true}, nil
	case "verify-full":
		t := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: u.Host}
		if u.CA != "" {
			pem, err := os.ReadFile(u.CA)
			if err != nil {
				return nil, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonUpstream, "upstream.ca cannot be read: %v", err)
			}
			t.RootCAs = x509.NewCertPool()
			if !t.RootCAs.AppendCertsFromPEM(pem) {
				return nil, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonUpstream, "%s has no certificate in PEM form", u.CA)
			}
		}
		return t, nil
	default:
		return nil, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonUpstream, "upstream.tls: %q is not known", u.TLS)
	}
}
