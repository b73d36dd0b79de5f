package doctor

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Upstream says how the proxy connects to the server of a database.
type Upstream struct {
	Network, Address string
	TLS              *tls.Config // nil: no TLS
	Database         string      // name of the database on the server
}

// CheckLogins tries to log in without a password, as the proxy would for a client.
//
// The proxy relays an owner's connection, so to PostgreSQL the connection comes from the proxy's machine and operating
// system user. Where pg_hba.conf trusts these (trust, ident, or peer with a matching map), every client of the proxy's
// listener could log in as an owner without a password. A client cannot tell trust and peer apart: PostgreSQL accepts
// the login with both. The owner is safe if PostgreSQL asks for a password, or refuses the login, as peer does for
// another user. The proxy does not relay logins of the agent and control roles: if these need no password, programs on
// this machine can log in as them, but clients of the proxy cannot.
//
// CheckLogins tests only the authentication method: it sends no password, and reads none from the environment
// (PGPASSWORD, ~/.pgpass). It returns an error if the server cannot be reached.
func CheckLogins(ctx context.Context, u Upstream, owners []string, s Target) ([]Finding, error) {
	s = s.withDefaultRoles()
	var found []Finding
	for _, owner := range owners {
		result, err := u.tryLogin(ctx, owner, false)
		if err != nil {
			return found, fmt.Errorf("log in as %s without a password: %w", owner, err)
		}
		if result != loginRefused {
			found = append(found, Finding{"owner_login", SeverityUnsafe,
				"the server lets the owner " + owner +
					" in without a password: whoever reaches pgconsent's listener is the owner",
				hbaLine(u, "\""+u.Database+"\"", owner)})
			continue
		}
		// pg_hba.conf has separate lines for replication. PostgreSQL first authenticates a role and then checks its
		// REPLICATION attribute.
		if result, err = u.tryLogin(ctx, owner, true); err != nil {
			return found, fmt.Errorf("log in as %s for replication without a password: %w", owner, err)
		}
		if result == loginSucceeded {
			found = append(found, Finding{"owner_replication", SeverityUnsafe,
				"the server lets the owner " + owner +
					" replicate without a password: whoever reaches pgconsent's listener can copy the cluster", hbaLine(u,
					"replication", owner)})
		}
	}
	if len(found) == 0 {
		found = append(found, Finding{ID: "owner_login", Severity: SeverityOK,
			Problem: "the server asks owners for a password"})
	}
	for _, r := range []struct{ id, role, effect string }{
		{"agent_login", s.AgentRole, "ends other agents' sessions, and has only row security against it"},
		{"control_login", s.ControlRole, "reads the keys of seals"},
	} {
		result, err := u.tryLogin(ctx, r.role, false)
		if err != nil {
			return found, fmt.Errorf("log in as %s without a password: %w", r.role, err)
		}
		if result != loginRefused {
			found = append(found, Finding{r.id, SeverityWarning,
				"the server lets " + r.role +
					" in without a password: what runs on this machine, if it is trusted like pgconsent, " + r.effect,
				hbaLine(u, "\""+u.Database+"\"", r.role)})
		}
	}
	return found, nil
}

// hbaLine returns the line that pg_hba.conf needs, so that PostgreSQL asks for a password.
func hbaLine(u Upstream, database, role string) string {
	kind := "local   " + database + "   \"" + role + "\"   scram-sha-256"
	if u.Network != "unix" {
		kind = "host   " + database + "   \"" + role + "\"   all   scram-sha-256"
	}
	return "Put this line before the others in pg_hba.conf, give the role a password, and SELECT pg_reload_conf(): " + kind
}

// loginResult says how far a login gets without a password.
type loginResult int

const (
	loginRefused         loginResult = iota // the server asks for a password, or refuses the login
	loginWithoutPassword                    // the server asked for nothing, but refused the login for another reason
	loginSucceeded                          // the server accepted the login
)

// loginTimeout limits how long one login may take.
const loginTimeout = 5 * time.Second

// tryLogin sends a startup message and reads what the server requests next.
func (u Upstream) tryLogin(ctx context.Context, role string, replication bool) (loginResult, error) {
	ctx, cancel := context.WithTimeout(ctx, loginTimeout)
	defer cancel()
	nc, err := u.dial(ctx)
	if err != nil {
		return loginRefused, err
	}
	defer nc.Close()
	defer context.AfterFunc(ctx, func() { nc.Close() })()

	params := []string{"user", role, "database", u.Database, "application_name", "pgconsent doctor"}
	if replication {
		params = append(params, "replication", "true")
	}
	packet := binary.BigEndian.AppendUint32(make([]byte, 4), 3<<16)
	for _, p := range params {
		packet = append(append(packet, p...), 0)
	}
	packet = append(packet, 0)
	binary.BigEndian.PutUint32(packet, uint32(len(packet)))
	if _, err := nc.Write(packet); err != nil {
		return loginRefused, fmt.Errorf("write the startup message: %w", err)
	}

	result := loginRefused
	for {
		kind, body, err := readMessage(nc)
		switch {
		case err != nil:
			return loginRefused, err
		case kind == 'E' && result == loginWithoutPassword:
			return result, nil
		case kind == 'E':
			// SQLSTATE class 28 refuses this login. Any other error, such as a server that is starting or full, is no result.
			if e := decodeServerError(body); !strings.HasPrefix(e.Code, "28") {
				return loginRefused, e
			}
			return loginRefused, nil
		case kind == 'Z':
			_, _ = nc.Write([]byte{'X', 0, 0, 0, 4})
			return loginSucceeded, nil
		case kind == 'R' && len(body) >= 4 && binary.BigEndian.Uint32(body) != 0:
			return loginRefused, nil // PostgreSQL asks for a password or another proof.
		case kind == 'R' && len(body) == 4:
			result = loginWithoutPassword
		// PostgreSQL has let the role in and sends a setting, the key for cancelling, or a notice.
		case result == loginWithoutPassword && slices.Contains([]byte("SKN"), kind):
		default:
			return loginRefused, fmt.Errorf("the server answers a startup message with %q", kind)
		}
	}
}

// dial connects to the server as the proxy does for owners.
func (u Upstream) dial(ctx context.Context) (net.Conn, error) {
	nc, err := (&net.Dialer{}).DialContext(ctx, u.Network, u.Address)
	if err != nil || u.TLS == nil {
		return nc, err
	}
	stopClosing := context.AfterFunc(ctx, func() { nc.Close() })
	defer stopClosing()
	var answer [1]byte
	if _, err = nc.Write([]byte{0, 0, 0, 8, 4, 210, 22, 47}); err == nil { // The message is an SSLRequest.
		_, err = io.ReadFull(nc, answer[:])
	}
	if err == nil && answer[0] != 'S' {
		err = errors.New("the server does not speak TLS")
	}
	secured := tls.Client(nc, u.TLS)
	if err == nil {
		err = secured.HandshakeContext(ctx)
	}
	if err != nil {
		nc.Close()
		return nil, err
	}
	return secured, nil
}

// readMessage reads one message of the server; messages are short before the first query.
func readMessage(r io.Reader) (kind byte, body []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, fmt.Errorf("read the server's answer: %w", err)
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n < 4 || n > 1<<16 {
		return 0, nil, fmt.Errorf("the server's answer has a length of %d", n)
	}
	body = make([]byte, n-4)
	if _, err := io.ReadFull(r, body); err != nil {
		return 0, nil, fmt.Errorf("read the server's answer: %w", err)
	}
	return head[0], body, nil
}

// decodeServerError reads an ErrorResponse.
func decodeServerError(body []byte) *pgconn.PgError {
	e := &pgconn.PgError{}
	for _, field := range bytes.Split(body, []byte{0}) {
		if len(field) == 0 {
			continue
		}
		switch value := string(field[1:]); field[0] {
		case 'S':
			e.Severity = value
		case 'C':
			e.Code = value
		case 'M':
			e.Message = value
		}
	}
	return e
}
