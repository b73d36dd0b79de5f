package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pgconsent/pgconsent/internal/run/config"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/tool/bench"
)

type benchCmd struct {
	As           string        `required:"" placeholder:"AGENT" help:"The agent that is measured. Its password is in $PGPASSWORD or --password-file."`
	Table        string        `xor:"what" placeholder:"NAME" help:"Look up rows of this table by its primary key, one at a time."`
	Query        string        `xor:"what" placeholder:"SQL" help:"Measure this query, which may only read."`
	Clients      int           `default:"8" placeholder:"N" help:"How many clients send at a time. Default: ${default}."`
	Time         time.Duration `default:"2s" placeholder:"TIME" help:"How long a round lasts. Default: ${default}."`
	Rounds       int           `default:"3" placeholder:"N" help:"How many rounds each way has with each protocol. Default: ${default}."`
	Protocol     []string      `enum:"simple,extended,prepared" default:"simple,extended,prepared" placeholder:"NAME" help:"simple, extended or prepared; may be repeated. Default: all."`
	PasswordFile string        `placeholder:"FILE" help:"The agent's password, in a file with mode 0600."`
	Address      string        `placeholder:"ADDRESS" help:"Where serve listens. Default: the first address of listen in the configuration."`
}

func (benchCmd) Help() string {
	return `Sends one statement over three ways in turn, as fast as the clients can, and prints what each way reaches:

  direct   to the server, as roles.migrate with the password secrets.migrate
  owner    through the running serve, as the same role
  agent    through the running serve, as the agent

All ways get the same text. The owner reads all rows, and the agent those that it may see: with --table both look up
rows that the agent sees, so the difference is what pgconsent costs. The ratios are to direct within the same round, and the
figures are medians of the rounds. simple: the values are in the text; extended: the statement is sent with its
parameters each time; prepared: it is prepared once.

Nothing is written to tables: the connections are read-only. The agent's statements are decided, limited and recorded
as always, so the audit grows; with strict records each statement waits for the disk. Before a round counts, it runs for a
quarter of --time. A busy machine gives figures of little worth: lowest and highest tell how far the ratios are apart.

  pgconsent agent add bench --password-file bench.pw
  pgconsent bench --as bench --password-file bench.pw --table memories
  PGPASSWORD=… pgconsent bench --as chat --query 'SELECT count(*) FROM memories' --clients 1 --time 10s --json`
}

// benchJSON is what the command bench prints in JSON output.
type benchJSON struct {
	Agent    string      `json:"agent"`
	Database string      `json:"database"`
	Text     string      `json:"text"`
	Clients  int         `json:"clients"`
	Audit    string      `json:"audit"` // the mode of the audit
	Seconds  float64     `json:"seconds"`
	Rounds   int         `json:"rounds"`
	Results  []benchLine `json:"results"`
}

type benchLine struct {
	Protocol string             `json:"protocol"`
	Way      string             `json:"way"`
	TPS      float64            `json:"tps"`
	P50      float64            `json:"p50_ms"`
	P99      float64            `json:"p99_ms"`
	Ratio    float64            `json:"ratio"` // transactions per second, divided by those of a direct connection
	Low      float64            `json:"ratio_low"`
	High     float64            `json:"ratio_high"`
	Rounds   []benchRoundResult `json:"turns"`
}

type benchRoundResult struct {
	TPS float64 `json:"tps"`
	P50 float64 `json:"p50_ms"`
	P99 float64 `json:"p99_ms"`
}

func (b benchCmd) Run(s *session) error {
	if b.Table == "" && b.Query == "" {
		return usageError{errors.New("what is to be measured: --table NAME or --query SQL")}
	}
	if b.Clients < 1 || b.Rounds < 1 || b.Time < 10*time.Millisecond {
		return usageError{errors.New("--clients and --rounds must be at least 1, and --time at least 10ms")}
	}
	c, err := s.loadConfig()
	if err != nil {
		return err
	}
	agent := c.Agents[b.As]
	if agent == nil {
		return usageError{fmt.Errorf("there is no agent %q in the configuration", b.As)}
	}
	if agent.Auth == config.AuthCertificate {
		return sqlstate.New(sqlstate.InvalidAuthorization, sqlstate.ReasonIdentity,
			"agent %s logs in by a certificate, which bench does not have", b.As).
			WithHint("Name an agent with auth: scram or jwt, of the same attributes, with --as.")
	}
	targets, err := b.benchTargets(c, agent)
	if err != nil {
		return err
	}
	statement, err := b.prepareStatement(s, targets)
	if err != nil {
		return err
	}
	plan := bench.Plan{Targets: targets, Statement: statement, Clients: b.Clients, RoundTime: b.Time, Rounds: b.Rounds}
	for _, p := range b.Protocol {
		if !slices.Contains(plan.Protocols, bench.Protocol(p)) {
			plan.Protocols = append(plan.Protocols, bench.Protocol(p))
		}
	}
	if isTerminal(s.err) {
		fmt.Fprintf(s.err, "%s\n%d clients, records: %s\n", statement.Text, b.Clients, c.Audit.Mode)
		plan.ReportStep = func(step bench.RoundStep) {
			remainingTime := time.Duration(step.Total-step.Number+1) * plan.RoundDuration()
			fmt.Fprintf(s.err, "round %d of %d: %s, %s (%s left)\n", step.Round, b.Rounds, step.Protocol, step.Target,
				max(remainingTime.Round(time.Second), time.Second))
		}
	}
	results, err := bench.Run(s.ctx, plan)
	if err != nil {
		return explainBench(err)
	}
	if s.jsonOutput {
		return s.printJSON(b.jsonResults(c, statement, results))
	}
	return b.printResults(s, results)
}

// benchTargets returns the three ways to connect to the agent's database. The direct connection is the first.
func (b benchCmd) benchTargets(c *config.Config, agent *config.Agent) ([]bench.Target, error) {
	db := c.Databases[agent.Database]
	if db.Secrets.Migrate == "" {
		return nil, sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal,
			"the configuration has no password of %s, as which the direct way logs in", db.Roles.Migrate).
			WithHint("Name a file with it: databases: { %s: { secrets: { migrate: owner.pw } } }", agent.Database)
	}
	dsn, err := c.ConnString(db, db.Roles.Migrate, db.Secrets.Migrate)
	if err != nil {
		return nil, err
	}
	directConfig, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	targets := []bench.Target{{Name: "direct", Connect: directConfig}}
	if slices.Contains(db.Owners, db.Roles.Migrate) {
		owner, err := b.proxyConnConfig(c, db.Roles.Migrate, directConfig.Password, agent.Database)
		if err != nil {
			return nil, err
		}
		targets = append(targets, bench.Target{Name: "owner", Connect: owner})
	}
	password := os.Getenv("PGPASSWORD")
	if b.PasswordFile != "" {
		if password, err = config.ReadSecret(b.PasswordFile); err != nil {
			return nil, err
		}
	}
	if password == "" {
		return nil, sqlstate.New(sqlstate.InvalidAuthorization, sqlstate.ReasonIdentity,
			"there is no password for agent %s", b.As).
			WithHint("Set PGPASSWORD, or name a file with --password-file. For a new password: "+
				"pgconsent agent add %s --password-file FILE", b.As)
	}
	proxyConfig, err := b.proxyConnConfig(c, b.As, password, agent.Database)
	return append(targets, bench.Target{Name: "agent", Connect: proxyConfig}), err
}

// proxyConnConfig returns how a user connects to a database through serve. With TLS, it accepts only the configured
// certificate of serve.
func (b benchCmd) proxyConnConfig(c *config.Config, user, password, database string) (*pgconn.Config, error) {
	proxyConfig, err := pgconn.ParseConfig("host=localhost port=5432 sslmode=disable connect_timeout=10")
	if err != nil {
		return nil, err
	}
	proxyConfig.User, proxyConfig.Password, proxyConfig.Database, proxyConfig.Fallbacks, proxyConfig.RuntimeParams = user,
		password, database, nil, map[string]string{}
	network, address := "tcp", cmp.Or(b.Address, c.Listen.First())
	if config.IsSocketPath(address) {
		network = "unix"
	} else {
		host, port, err := net.SplitHostPort(address)
		if err != nil || port == "0" {
			return nil, usageError{fmt.Errorf("--address is host:port, or the path of a unix socket: here it is %s", address)}
		}
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			address = net.JoinHostPort("localhost", port)
		}
	}
	dial := proxyConfig.DialFunc
	proxyConfig.DialFunc = func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, network, address) }
	// DialFunc ignores the address, so no name is resolved
	proxyConfig.LookupFunc = func(context.Context, string) ([]string, error) { return []string{"127.0.0.1"}, nil }
	if c.TLS != nil && network == "tcp" {
		if proxyConfig.TLSConfig, err = pinnedTLS(c.TLS.Cert); err != nil {
			return nil, err
		}
	}
	return proxyConfig, nil
}

// pinnedTLS returns a TLS configuration that accepts the first certificate in a file and no other certificate.
func pinnedTLS(file string) (*tls.Config, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s has no certificate in PEM form", file)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true,
		VerifyPeerCertificate: func(rawCertificates [][]byte, _ [][]*x509.Certificate) error {
			if len(rawCertificates) == 0 || !bytes.Equal(rawCertificates[0], block.Bytes) {
				return errors.New("the server does not show the certificate of the configuration")
			}
			return nil
		}}, nil
}

// prepareStatement returns the statement to measure. It first runs the statement once over every target.
func (b benchCmd) prepareStatement(s *session, targets []bench.Target) (bench.Statement, error) {
	var conns []*pgconn.PgConn
	for _, w := range targets {
		conn, err := bench.ConnectTo(s.ctx, w.Connect)
		if err != nil {
			return bench.Statement{}, explainBench(fmt.Errorf("%s: %w", w.Name, err))
		}
		defer conn.Close(s.ctx)
		conns = append(conns, conn)
	}
	if b.Query != "" {
		return bench.Statement{Text: b.Query, Texts: []string{b.Query}}, nil
	}
	statement, err := bench.PrimaryKeyStatement(s.ctx, conns[0], conns[len(conns)-1], b.Table)
	switch {
	case errors.Is(err, bench.ErrNoTable):
		return statement, sqlstate.New(sqlstate.UndefinedTable, sqlstate.ReasonNone, "there is no table %s", b.Table).
			WithHint("Write it as in SQL, with its schema if that is not in the owner's search_path.")
	case errors.Is(err, bench.ErrNoKey):
		return statement, sqlstate.New(sqlstate.UndefinedObject, sqlstate.ReasonNone,
			"%s has no primary key to look rows up by", b.Table).WithHint("Measure a query of your own: --query 'SELECT …'")
	case errors.Is(err, bench.ErrNoRows):
		return statement, sqlstate.New(sqlstate.UndefinedObject, sqlstate.ReasonNone,
			"agent %s sees no row of %s, so there is none to look up", b.As, b.Table).
			WithHint("Name another agent with --as, or another table. pgconsent why says why a row is not seen.")
	}
	return statement, explainBench(err)
}

// explainBench adds to an error of a server a hint that says what to do.
func explainBench(err error) error {
	var server *pgconn.PgError
	hint := ""
	switch {
	case err == nil:
		return nil
	case errors.As(err, &server) && server.Code == "25006":
		hint = "bench measures statements that only read."
	case errors.As(err, &server) && server.Code == string(sqlstate.TooManyConnections):
		hint = "Measure with fewer --clients. " + server.Hint
	case errors.As(err, &server) && server.Code == string(sqlstate.LimitExceeded):
		hint = "The policy limits this agent: give one without such limits with --as. " + server.Hint
	case errors.As(err, &server):
		hint = server.Hint
	default:
		var networkErr *net.OpError
		if errors.As(err, &networkErr) {
			hint = "Is the server running, and pgconsent serve with this configuration? --address says where serve listens."
		}
	}
	if hint == "" {
		return err
	}
	code := sqlstate.ConnectionFailure
	if server != nil {
		code = sqlstate.Code(server.Code)
	}
	return sqlstate.New(code, sqlstate.ReasonUpstream, "%v", err).WithHint("%s", strings.TrimSpace(hint))
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// jsonResults returns the results in the form of the JSON output.
func (b benchCmd) jsonResults(c *config.Config, statement bench.Statement, results []bench.Result) benchJSON {
	out := benchJSON{Agent: b.As, Database: c.Agents[b.As].Database, Text: statement.Text, Clients: b.Clients,
		Audit: c.Audit.Mode, Seconds: b.Time.Seconds(), Rounds: b.Rounds}
	for _, r := range results {
		line := benchLine{Protocol: string(r.Protocol), Way: r.Target, TPS: r.TPS, P50: milliseconds(r.P50),
			P99: milliseconds(r.P99), Ratio: r.Ratio, Low: r.LowestRatio, High: r.HighestRatio}
		for _, t := range r.Rounds {
			line.Rounds = append(line.Rounds, benchRoundResult{t.TPS, milliseconds(t.P50), milliseconds(t.P99)})
		}
		out.Results = append(out.Results, line)
	}
	return out
}

// printResults prints the results: aligned on a terminal, and otherwise separated by tabs.
func (b benchCmd) printResults(s *session, results []bench.Result) error {
	header := "protocol\tway\ttps\tp50 ms\tp99 ms\t/ direct\tlowest\thighest"
	lines := []string{header}
	for _, r := range results {
		lines = append(lines, fmt.Sprintf("%s\t%s\t%.0f\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f", r.Protocol, r.Target, r.TPS,
			milliseconds(r.P50), milliseconds(r.P99), r.Ratio, r.LowestRatio, r.HighestRatio))
	}
	if !s.stdoutIsTerminal {
		_, err := fmt.Fprintln(s.out, strings.Join(lines, "\n"))
		return err
	}
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	for _, line := range lines {
		fmt.Fprintln(w, line)
	}
	return w.Flush()
}
