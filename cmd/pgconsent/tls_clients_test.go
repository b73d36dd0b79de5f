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

// writeSelfSigned writes a self-signed certificate of localhost, and its key.
func writeSelfSigned(t *testing.T, dir string) {
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
	keyBytes, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"server.crt": {Type: "CERTIFICATE", Bytes: der}, "server.key": {Type: "EC PRIVATE KEY", Bytes: keyBytes}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Over TLS, an operator's login uses channel binding. bench accepts only the configured certificate.
func TestClientsByTLS(t *testing.T) {
	tier.All(t)
	i := installDatabase(t).withOperators(t, "ops")
	writeSelfSigned(t, i.dir())
	i.editConfig(t, "audit: {", "tls: { cert: server.crt, key: server.key }\naudit: {")
	_, address := i.startServe(t)
	opsDSN := strings.Replace(consoleDSN("ops", address), "sslmode=disable", "sslmode=verify-ca&channel_binding=require&sslrootcert="+
		filepath.Join(i.dir(), "server.crt"), 1)
	if out, stderr := psql(t, opsDSN, "-At", "-c", "SHOW VERSION", "-c", "PAUSE", "-c", "RESUME"); out != readVersion().String()+"\nPAUSE\nRESUME\n" {
		t.Errorf("%s%s", out, stderr)
	}
	benchArgs := []string{"bench", "-c", i.config, "--address", address, "--password-file", filepath.Join(i.dir(), "pw"), "--clients", "1",
		"--time", "20ms", "--rounds", "1", "--protocol", "simple", "--as", "chat", "--table", "memories"}
	if out, stderr, code := call(t, "", benchArgs...); code != exitOK || !strings.Contains(out, "simple\tagent\t") {
		t.Errorf("bench: %s%s", out, stderr)
	}
	writeSelfSigned(t, i.dir()) // a certificate of another server, as an attacker would have
	if _, stderr, code := call(t, "", benchArgs...); code != exitError || !strings.Contains(stderr, "does not show the certificate of the configuration") {
		t.Errorf("bench with another certificate: %d %s", code, stderr)
	}
}
