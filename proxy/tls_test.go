package proxy

import (
	"crypto/tls"
	"testing"
)

// TestTLSOfOldVersions: whatever the configuration allows for a client, no handshake uses a version before TLS 1.2.
func TestTLSOfOldVersions(t *testing.T) {
	cert, _ := makeCertificate(t, "rsa")
	oldTLSConfig := func() *tls.Config {
		return &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS10}
	}
	chosenConfig := oldTLSConfig()
	chosenConfig.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return oldTLSConfig(), nil }
	p := startProxy(t, func(p *testProxy, c *Config) {
		cfg := oldTLSConfig()
		p.tlsConf = nil
		c.TLS = func() *tls.Config { return cfg }
	})
	q := startProxy(t, func(_ *testProxy, c *Config) { c.TLS = func() *tls.Config { return chosenConfig } })
	for _, server := range []*testProxy{p, q} {
		for version, valuesFit := range map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
			nc := server.dial(t)
			if _, err := nc.Write([]byte{0, 0, 0, 8, 4, 210, 22, 47}); err != nil {
				t.Fatal(err)
			}
			var sslAnswer [1]byte
			if _, err := nc.Read(sslAnswer[:]); err != nil || sslAnswer[0] != 'S' {
				t.Fatalf("%q, %v", sslAnswer, err)
			}
			client := tls.Client(nc, &tls.Config{InsecureSkipVerify: true, MinVersion: version, MaxVersion: version})
			if err := client.HandshakeContext(t.Context()); (err == nil) != valuesFit {
				t.Errorf("%s: %v", tls.VersionName(version), err)
			}
			nc.Close()
		}
	}
}
