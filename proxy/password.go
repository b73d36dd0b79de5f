package proxy

import (
	"bytes"
	"context"
	"errors"
	"net"

	"github.com/jackc/pgproto3/v2"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// verifyPassword asks the client for a token as its password, in plain text. Since anybody who reads a token can use
// it, the proxy asks only over TLS or a Unix socket.
func (c *conn) verifyPassword(user string, verify func(context.Context, string) (TokenGrant, error)) error {
	if _, local := c.client.RemoteAddr().(*net.UnixAddr); c.binding == nil && !local {
		return sqlstate.New(sqlstate.InvalidAuthorization, sqlstate.ReasonIdentity, "an encrypted connection is required").
			WithHint("This agent shows a token as its password: connect with sslmode=require or stricter.")
	}
	request, _ := (&pgproto3.AuthenticationCleartextPassword{}).Encode(nil)
	if err := c.write(request); err != nil {
		return errPeerGone
	}
	body, err := c.readPassword()
	if errors.Is(err, errLongLogin) || len(body) > maxTokenBytes+1 {
		return wrongPasswordError(user).WithHint(
			"A token that is shown as the password may have %d KiB: have the provider put fewer claims into it.", maxTokenBytes>>10)
	}
	if err != nil {
		return err
	}
	password, rest, ok := bytes.Cut(body, []byte{0})
	if !ok || len(rest) != 0 {
		return sqlstate.New(sqlstate.ProtocolViolation, sqlstate.ReasonIdentity, "malformed password message")
	}
	token, err := verify(c.ctx, string(password))
	if err != nil {
		c.log().Info("a token was refused", "agent", user, "cause", err)
		return wrongPasswordError(user)
	}
	c.token = token
	return nil
}
