package proxy

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"

	"github.com/jackc/pgproto3/v2"
	"github.com/xdg-go/scram"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// The mechanisms of SASL authentication.
const (
	mechanism     = "SCRAM-SHA-256"
	mechanismPlus = "SCRAM-SHA-256-PLUS"
)

// authenticate runs a SCRAM exchange with the client and checks its password against credential. It offers channel
// binding over TLS if the server's certificate allows that. The client cannot tell a wrong password from a user that
// does not exist.
func (c *conn) authenticate(user string, credential scram.StoredCredentials) error {
	server, err := scram.SHA256.NewServer(func(string) (scram.StoredCredentials, error) { return credential, nil })
	if err != nil {
		return sqlstate.AsError(err)
	}
	conversation := server.NewConversation()
	offers := []string{mechanism}
	channel := c.bindingData()
	if channel != nil {
		conversation = server.NewConversationWithChannelBinding(scram.ChannelBinding{
			Type: scram.ChannelBindingTLSServerEndpoint, Data: channel})
		offers = []string{mechanismPlus, mechanism}
	}
	request, _ := (&pgproto3.AuthenticationSASL{AuthMechanisms: offers}).Encode(nil)
	if err := c.write(request); err != nil {
		return errPeerGone
	}

	first, err := c.readFirst(channel != nil)
	if err != nil {
		return err
	}
	challenge, err := answerFirst(conversation, first)
	if err != nil {
		return err
	}
	next, _ := (&pgproto3.AuthenticationSASLContinue{Data: []byte(challenge)}).Encode(nil)
	if err := c.write(next); err != nil {
		return errPeerGone
	}

	body, err := c.readPassword()
	if err != nil {
		return err
	}
	proof, err := verifyFinal(conversation, user, string(body))
	if err != nil {
		return err
	}
	done, _ := (&pgproto3.AuthenticationSASLFinal{Data: []byte(proof)}).Encode(nil)
	if err := c.write(done); err != nil {
		return errPeerGone
	}
	return nil
}

// readFirst reads the client's choice of a mechanism and its first SCRAM message. bindable says that the proxy has
// offered channel binding.
func (c *conn) readFirst(bindable bool) (first string, err error) {
	body, err := c.readPassword()
	if err != nil {
		return "", err
	}
	chosen, first, ok := saslInitial(body)
	if !ok {
		return "", malformedError("The first SASL message is incomplete.")
	}
	switch {
	case chosen == mechanismPlus && bindable:
		if !strings.HasPrefix(first, "p=") {
			return "", malformedError("The client selected SCRAM-SHA-256-PLUS, but the message has no channel binding data.")
		}
	case chosen == mechanism:
		if strings.HasPrefix(first, "p=") {
			return "", malformedError("The client selected SCRAM-SHA-256 without channel binding, but the message has " +
				"channel binding data.")
		}
	default:
		return "", sqlstate.New(sqlstate.ProtocolViolation, sqlstate.ReasonIdentity,
			"client selected an invalid SASL authentication mechanism")
	}
	return first, nil
}

// answerFirst returns the server's challenge to the client's first message.
func answerFirst(conversation *scram.ServerConversation, first string) (challenge string, err error) {
	challenge, err = conversation.Step(first)
	if err != nil {
		if challenge == scram.ErrServerDoesSupportChannelBinding {
			return "", sqlstate.New(sqlstate.InvalidAuthorization, sqlstate.ReasonIdentity,
				"SCRAM channel binding negotiation error").
				WithDetail("The client supports SCRAM channel binding but thinks the server does not. However, " +
					"this server does support channel binding.")
		}
		return "", malformedError("The client's first SCRAM message is not understood.")
	}
	if conversation.AuthzID() != "" {
		return "", sqlstate.New(sqlstate.FeatureNotSupported, sqlstate.ReasonIdentity,
			"client uses authorization identity, but it is not supported")
	}
	return challenge, nil
}

// verifyFinal checks the client's final message and returns the proxy's proof that it knows the password verifier.
func verifyFinal(conversation *scram.ServerConversation, user, message string) (proof string, err error) {
	proof, err = conversation.Step(message)
	if err == nil && conversation.Valid() {
		return proof, nil
	}
	switch proof {
	case scram.ErrChannelBindingsDontMatch:
		return "", sqlstate.New(sqlstate.InvalidAuthorization, sqlstate.ReasonIdentity, "SCRAM channel binding check failed")
	case "":
		return "", malformedError("The client's final SCRAM message is not understood.")
	}
	return "", wrongPasswordError(user)
}

func wrongPasswordError(user string) *sqlstate.Error {
	return sqlstate.New(sqlstate.InvalidPassword, sqlstate.ReasonIdentity,
		"password authentication failed for user \"%s\"", user)
}

func malformedError(detail string) *sqlstate.Error {
	return sqlstate.New(sqlstate.ProtocolViolation, sqlstate.ReasonIdentity, "malformed SCRAM message").
		WithDetail("%s", detail)
}

// errLongLogin is the error of a password message that is longer than maxPasswordBytes.
var errLongLogin = sqlstate.New(sqlstate.ProtocolViolation, sqlstate.ReasonProtocol, "invalid message length")

// readPassword reads one password message of at most maxPasswordBytes bytes.
func (c *conn) readPassword() ([]byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(c.client, head[:]); err != nil {
		// Clients such as psql close the connection here, ask the user for a password, and connect again.
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if head[0] != 'p' {
		return nil, sqlstate.New(sqlstate.ProtocolViolation, sqlstate.ReasonProtocol,
			"expected SASL response, got message type %d", head[0])
	}
	if n > maxPasswordBytes {
		_, _ = io.CopyN(io.Discard, c.client, min(int64(n)-4, maxDiscardedBytes))
		return nil, errLongLogin
	}
	if n < 4 {
		return nil, sqlstate.New(sqlstate.ProtocolViolation, sqlstate.ReasonProtocol, "invalid message length")
	}
	body := make([]byte, n-4) // The length is at most maxPasswordBytes.
	if _, err := io.ReadFull(c.client, body); err != nil {
		return nil, err
	}
	return body, nil
}

// saslInitial decodes the body of a SASLInitialResponse.
func saslInitial(body []byte) (mechanism, data string, ok bool) {
	i := bytes.IndexByte(body, 0)
	if i < 0 || len(body) < i+5 {
		return "", "", false
	}
	n := binary.BigEndian.Uint32(body[i+1:])
	rest := body[i+5:]
	if uint64(n) != uint64(len(rest)) {
		return "", "", false
	}
	return string(body[:i]), string(rest), true
}
