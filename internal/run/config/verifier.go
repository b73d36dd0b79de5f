package config

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/xdg-go/scram"
	"github.com/xdg-go/stringprep"
)

// The number of iterations and the length of the salt are PostgreSQL's own, so that verifiers of agents and of roles
// are alike.
const (
	scramIterations = 4096
	saltBytes       = 16
)

const scramScheme = "SCRAM-SHA-256$"

// NewVerifier returns the SCRAM verifier of a password as PostgreSQL stores it:
// SCRAM-SHA-256$4096:salt$StoredKey:ServerKey.
func NewVerifier(password string) (string, error) {
	if password == "" {
		return "", errors.New("an empty password")
	}
	salt := make([]byte, saltBytes)
	if _, err := rand.Read(salt); err != nil {
		return "", err
	}
	return formatVerifier(password, salt)
}

func formatVerifier(password string, salt []byte) (string, error) {
	c, err := storedCredentials(password, salt, scramIterations)
	if err != nil {
		return "", err
	}
	b64 := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("%s%d:%s$%s:%s", scramScheme, scramIterations, b64(salt), b64(c.StoredKey), b64(c.ServerKey)), nil
}

// MatchesPassword reports whether a verifier belongs to the password.
func MatchesPassword(verifier, password string) bool {
	want, err := ParseVerifier(verifier)
	if err != nil {
		return false
	}
	computed, err := storedCredentials(password, []byte(want.Salt), want.Iters)
	return err == nil && hmac.Equal(computed.StoredKey, want.StoredKey)
}

func storedCredentials(password string, salt []byte, iterations int) (c scram.StoredCredentials, err error) {
	// Like PostgreSQL, this uses the password unchanged if SASLprep refuses it.
	if preparedPassword, err := stringprep.SASLprep.Prepare(password); err == nil && preparedPassword != "" {
		password = preparedPassword
	}
	client, err := scram.SHA256.NewClientUnprepped("", password, "")
	if err != nil {
		return c, err
	}
	return client.GetStoredCredentialsWithError(scram.KeyFactors{Salt: string(salt), Iters: iterations})
}

// ParseVerifier parses a SCRAM verifier in the form that [NewVerifier] returns.
func ParseVerifier(s string) (scram.StoredCredentials, error) {
	var c scram.StoredCredentials
	invalidError := errors.New("not a verifier of the form SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey")
	afterScheme, ok := strings.CutPrefix(s, scramScheme)
	if !ok {
		return c, invalidError
	}
	factors, proofs, ok1 := strings.Cut(afterScheme, "$")
	iters, salt, ok2 := strings.Cut(factors, ":")
	storedKey, serverKey, ok3 := strings.Cut(proofs, ":")
	if !ok1 || !ok2 || !ok3 {
		return c, invalidError
	}
	n, err := strconv.Atoi(iters)
	if err != nil || n < scramIterations || n > 10_000_000 {
		return c, fmt.Errorf("%w, with at least %d iterations", invalidError, scramIterations)
	}
	parts := [3][]byte{}
	for i, text := range []string{salt, storedKey, serverKey} {
		if parts[i], err = base64.StdEncoding.DecodeString(text); err != nil {
			return c, invalidError
		}
	}
	if len(parts[0]) == 0 || len(parts[1]) != sha256.Size || len(parts[2]) != sha256.Size {
		return c, invalidError
	}
	c.Salt, c.Iters, c.StoredKey, c.ServerKey = string(parts[0]), n, parts[1], parts[2]
	return c, nil
}

// MockCredentials returns credentials that no password matches, always the same for the same key and user. With them, a
// client cannot tell the login of an unknown user from a login with a wrong password.
func MockCredentials(key []byte, user string) scram.StoredCredentials {
	derive := func(use string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte("pgconsent mock " + use + "\x00" + user))
		return h.Sum(nil)
	}
	var c scram.StoredCredentials
	c.Salt, c.Iters, c.StoredKey, c.ServerKey = string(derive("salt")[:saltBytes]), scramIterations, derive("stored"),
		derive("server")
	return c
}
