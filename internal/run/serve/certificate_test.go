package serve

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/test/authority"
)

// An agent's certificate must have the agent's name as Common Name, or the configured name among its DNS names and
// URIs. A similar name is not enough.
func TestNamesOfCertificates(t *testing.T) {
	ca := authority.New(t, "agents", nil, time.Now().Add(time.Hour))
	issue := func(edit func(*x509.Certificate)) *x509.Certificate { return ca.Issue(t, "", edit).Leaf }
	spiffe, err := url.Parse("spiffe://example.org/agents/chat")
	if err != nil {
		t.Fatal(err)
	}
	commonNameOnly := issue(func(c *x509.Certificate) { c.Subject.CommonName = "chat" })
	twoCommonNames := issue(func(c *x509.Certificate) {
		c.Subject.ExtraNames = []pkix.AttributeTypeAndValue{{Type: idCommonName, Value: "other"}, {Type: idCommonName, Value: "chat"}}
	})
	certificateWithNames := issue(func(c *x509.Certificate) {
		c.Subject.CommonName, c.DNSNames, c.URIs = "holder", []string{"Chat.agents.example.org", "chat", "*.example.org"}, []*url.URL{spiffe}
	})
	certificateWithEmail := issue(func(c *x509.Certificate) {
		c.Subject.CommonName, c.EmailAddresses = "holder", []string{"chat@example.org"}
	})
	for _, c := range []struct {
		description string
		certificate *x509.Certificate
		certName    string
		want        bool
	}{
		{"the Common Name", commonNameOnly, "", true},
		{"two Common Names", twoCommonNames, "", false},
		{"a DNS name is no Common Name", certificateWithNames, "", false},
		{"the Common Name is no DNS name", commonNameOnly, "chat", false},
		{"a DNS name", certificateWithNames, "chat.agents.example.org", true},
		{"a DNS name as short as the agent's", certificateWithNames, "chat", true},
		{"a part of a DNS name", certificateWithNames, "agents.example.org", false},
		{"a DNS name that a wildcard has", certificateWithNames, "web.example.org", false},
		{"a URI", certificateWithNames, "spiffe://example.org/agents/chat", true},
		{"a part of a URI", certificateWithNames, "spiffe://example.org/agents", false},
		{"a URI in another case", certificateWithNames, "spiffe://example.org/agents/Chat", false},
		{"an address of email", certificateWithEmail, "chat@example.org", false},
	} {
		if err := certificateCheck(wantedCertificateName("chat", c.certName))(c.certificate); (err == nil) != c.want {
			t.Errorf("%s: %v", c.description, err)
		}
	}
	if certificateCheck("") != nil {
		t.Error("an agent without a certificate is judged by one")
	}
}

// The HTTP listener does not ask clients for a certificate, even if agents must have one.
func TestCallersOfHTTPShowNoCertificate(t *testing.T) {
	ca, dir := authority.New(t, "agents", nil, time.Now().Add(time.Hour)), t.TempDir()
	certificate, key := authority.WritePair(t, ca.Issue(t, "localhost", authority.ForServer), dir, "server")
	ca.Write(t, filepath.Join(dir, "ca.crt"))
	loaded, err := loadCertificate(&config.TLS{Cert: certificate, Key: key, ClientCA: filepath.Join(dir, "ca.crt")})
	if err != nil {
		t.Fatal(err)
	}
	s := &Service{}
	s.config.Store(&config.Config{HTTP: config.HTTP{Listen: "0.0.0.0:7433"}})
	s.certificate.Store(loaded)
	if s.http, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	defer s.http.Close()
	isCertificateRequested := func(l net.Listener) (isCertificateRequested bool) {
		serveResult := make(chan error, 1)
		go func() {
			conn, err := l.Accept()
			if err == nil {
				defer conn.Close()
				err = conn.(*tls.Conn).HandshakeContext(t.Context())
			}
			serveResult <- err
		}()
		conn, err := tls.Dial("tcp", s.http.Addr().String(), &tls.Config{RootCAs: ca.Pool(), ServerName: "localhost",
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				isCertificateRequested = true
				return &tls.Certificate{}, nil
			}})
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
		if err := <-serveResult; err != nil {
			t.Fatal(err)
		}
		return isCertificateRequested
	}
	if isCertificateRequested(s.httpListener()) {
		t.Error("a caller of HTTP is asked for a certificate")
	}
	if !isCertificateRequested(tls.NewListener(s.http, loaded)) {
		t.Error("an agent is asked for none")
	}
}
