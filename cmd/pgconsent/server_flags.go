package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// serverFlags say how a command reaches a running serve. Commands that call the HTTP API embed them.
type serverFlags struct {
	URL       string `name:"url" placeholder:"URL" help:"Where pgconsent serves HTTP. Default: http.listen of the configuration."`
	TokenFile string `placeholder:"FILE" help:"A file with the token, which only you can read. Default: $PGCONSENT_TOKEN."`
	CA        string `name:"ca" placeholder:"FILE" help:"Certificates to trust besides the system's, in PEM form."`
}

// runningServer is the address of a running serve, with the token for calls of its API.
type runningServer struct {
	baseURL string // the base URL, without / at the end
	token   string
	http    *http.Client
}

// resolve evaluates the flags. It does not connect.
func (r serverFlags) resolve(s *session) (runningServer, error) {
	base := r.URL
	if base == "" {
		c, err := s.loadConfig()
		if err != nil {
			return runningServer{}, err
		}
		if base, err = listenURL(c.HTTP.Listen); err != nil {
			return runningServer{}, err
		}
	}
	u, err := url.Parse(strings.TrimRight(base, "/"))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" {
		return runningServer{}, usageError{fmt.Errorf("--url is of the form http://127.0.0.1:7433")}
	}
	if u.Scheme == "http" && !isLocalHost(u.Hostname()) {
		return runningServer{}, usageError{fmt.Errorf("a token is not sent without TLS to another machine: use https for %s",
			u.Hostname())}
	}
	token, err := r.readToken()
	if err != nil {
		return runningServer{}, err
	}
	tlsConfig, err := r.tlsConfig()
	if err != nil {
		return runningServer{}, err
	}
	return runningServer{u.String(), token, &http.Client{
		Transport: &http.Transport{TLSClientConfig: tlsConfig, MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute},
		// a redirect could send the token to another server
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func (r serverFlags) readToken() (string, error) {
	token := os.Getenv("PGCONSENT_TOKEN")
	if r.TokenFile != "" {
		if err := config.CheckPrivate(r.TokenFile); err != nil {
			return "", err
		}
		text, err := os.ReadFile(r.TokenFile)
		if err != nil {
			return "", err
		}
		token = string(text)
	}
	if token = strings.TrimSpace(token); token == "" {
		return "", sqlstate.New(sqlstate.InvalidAuthorization, sqlstate.ReasonIdentity, "there is no token").
			WithHint("Set PGCONSENT_TOKEN, or name a file with --token-file; pgconsent token add makes one.")
	}
	return token, nil
}

func (r serverFlags) tlsConfig() (*tls.Config, error) {
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	if r.CA == "" {
		return out, nil
	}
	text, err := os.ReadFile(r.CA)
	if err != nil {
		return nil, err
	}
	if out.RootCAs, err = x509.SystemCertPool(); err != nil {
		out.RootCAs = x509.NewCertPool()
	}
	if !out.RootCAs.AppendCertsFromPEM(text) {
		return nil, usageError{fmt.Errorf("%s has no certificate in PEM form", r.CA)}
	}
	return out, nil
}

// listenURL returns the URL by which programs on this machine reach an address on which serve listens.
func listenURL(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal,
			"the configuration has no address for HTTP (%s)", address).
			WithHint("Set http.listen, or say --url.")
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	scheme := "https"
	if isLocalHost(host) {
		scheme = "http"
	}
	return scheme + "://" + net.JoinHostPort(host, port), nil
}

// isLocalHost tells whether a host name means this machine.
func isLocalHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
