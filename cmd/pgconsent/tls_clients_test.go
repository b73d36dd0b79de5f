package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/test/tier"
)

// selfSigned writes a certificate of localhost and its key.
func selfSigned(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"server.crt": {Type: "CERTIFICATE", Bytes: der}, "server.key": {Type: "EC PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// By TLS an operator's login is bound to the channel, and bench takes the certificate of the configuration and no other.
func TestClientsByTLS(t *testing.T) {
	tier.All(t)
	i := install(t).withOperators(t, "ops")
	selfSigned(t, i.dir())
	i.editConfig(t, "audit: {", "tls: { cert: server.crt, key: server.key }\naudit: {")
	_, address := i.serving(t)
	ops := strings.Replace(consoleDSN("ops", address), "sslmode=disable", "sslmode=verify-ca&channel_binding=require&sslrootcert="+
		filepath.Join(i.dir(), "server.crt"), 1)
	if out, stderr := psql(t, ops, "-At", "-c", "SHOW VERSION", "-c", "PAUSE", "-c", "RESUME"); out != readVersion().String()+"\nPAUSE\nRESUME\n" {
		t.Errorf("%s%s", out, stderr)
	}
	bench := []string{"bench", "-c", i.config, "--address", address, "--password-file", filepath.Join(i.dir(), "pw"), "--clients", "1",
		"--time", "20ms", "--rounds", "1", "--protocol", "simple", "--as", "chat", "--table", "memories"}
	if out, stderr, code := call(t, "", bench...); code != exitOK || !strings.Contains(out, "simple\tagent\t") {
		t.Errorf("bench: %s%s", out, stderr)
	}
	selfSigned(t, i.dir()) // another server's certificate, as if an attacker listened there
	if _, stderr, code := call(t, "", bench...); code != exitError || !strings.Contains(stderr, "does not show the certificate of the configuration") {
		t.Errorf("bench with another certificate: %d %s", code, stderr)
	}
}
