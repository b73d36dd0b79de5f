package config

import (
	"bytes"
	"os"
	"strings"

	"github.com/pgconsent/pgconsent/internal/run/secretfile"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// isVariable reports whether the source of a secret is an environment variable. If not, it is a file.
func isVariable(source string) bool { return strings.HasPrefix(source, "PGCONSENT_") }

// ReadSecret reads a secret from the file or the environment variable that source names. For "" it returns "".
func ReadSecret(source string) (string, error) {
	if source == "" {
		return "", nil
	}
	if isVariable(source) {
		value := os.Getenv(source)
		if value == "" {
			return "", sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal,
				"the environment variable %s is not set", source).
				WithHint("The configuration says that a password is in it.")
		}
		return value, nil
	}
	if err := CheckPrivate(source); err != nil {
		return "", err
	}
	text, err := os.ReadFile(source)
	if err != nil {
		return "", err
	}
	text = bytes.TrimRight(text, "\r\n")
	if len(text) == 0 || bytes.ContainsAny(text, "\n\x00") {
		return "", sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal, "%s must hold one line, a password", source)
	}
	return string(text), nil
}

// CheckPrivate returns an error if users other than the owner of a file may read or write it.
func CheckPrivate(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal, "a secret cannot be read: %v", err)
	}
	if secretfile.IsExposed(info) {
		return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal,
			"%s can be read or written by others (mode %04o)", path, info.Mode().Perm()).
			WithHint("chmod 600 %s", path)
	}
	if !info.Mode().IsRegular() {
		return sqlstate.New(sqlstate.ConfigFileError, sqlstate.ReasonInternal, "%s is not a file", path)
	}
	return nil
}
