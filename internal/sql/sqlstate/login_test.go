package sqlstate

import (
	"errors"
	"fmt"
	"testing"
)

type fromServer string

func (f fromServer) Error() string    { return "FATAL: " + string(f) }
func (f fromServer) SQLState() string { return string(f) }

func TestLoginFailed(t *testing.T) {
	for _, c := range []struct {
		loginError error
		want       Code
	}{
		{fmt.Errorf("connect: %w", fromServer("53300")), TooManyConnections},
		{fmt.Errorf("connect: %w", fromServer("28P01")), ConnectionFailure},
		{errors.New("no route to host"), ConnectionFailure},
	} {
		if e := LoginFailedError("pgconsent_control", c.loginError); e.Code != c.want || !errors.Is(e, c.loginError) {
			t.Errorf("%v: %v", c.loginError, e)
		}
	}
}
