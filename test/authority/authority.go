// Package authority makes certificates for tests: certificate authorities, and certificates that they sign. It imports
// the standard library only.
package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority is a certificate authority.
type Authority struct {
	Certificate *x509.Certificate
	Key         *ecdsa.PrivateKey
}

// New makes a certificate authority. signer signs its certificate; if signer is nil, the certificate signs itself.
func New(t testing.TB, name string, signer *Authority, until time.Time) *Authority {
	t.Helper()
	a := &Authority{&x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: until,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, newKey(t)}
	if signer == nil {
		signer = a
	}
	a.Certificate = signer.sign(t, a.Certificate, a.Key)
	return a
}

// Issue makes a client's certificate with the Common Name name, valid for an hour. The functions in edit may change it
// before it is signed.
func (a *Authority) Issue(t testing.TB, name string, edit ...func(*x509.Certificate)) *tls.Certificate {
	t.Helper()
	template := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	for _, e := range edit {
		e(template)
	}
	key := newKey(t)
	leaf := a.sign(t, template, key)
	return &tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}
}

// ForServer is a function for Issue that makes the certificate one of a server on this machine.
func ForServer(c *x509.Certificate) {
	c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	c.DNSNames, c.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
}

// Pool returns a pool with this authority only.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.Certificate)
	return pool
}

// Write writes the authority's certificate to a file in PEM form.
func (a *Authority) Write(t testing.TB, path string) {
	t.Helper()
	write(t, path, "CERTIFICATE", a.Certificate.Raw)
}

// WritePair writes a certificate and its key to files in PEM form, and returns their paths.
func WritePair(t testing.TB, c *tls.Certificate, folder, name string) (certificate, key string) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	certificate, key = filepath.Join(folder, name+".crt"), filepath.Join(folder, name+".key")
	write(t, certificate, "CERTIFICATE", c.Certificate[0])
	write(t, key, "PRIVATE KEY", der)
	return certificate, key
}

func write(t testing.TB, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (a *Authority) sign(t testing.TB, template *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, a.Certificate, &key.PublicKey, a.Key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}
