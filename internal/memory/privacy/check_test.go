package privacy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
)

// requireRefused checks that err has the name and the SQLSTATE, and a hint.
func requireRefused(t *testing.T, description string, err error, name, code string) {
	t.Helper()
	var namedError *Error
	var state *sqlstate.Error
	switch {
	case !errors.As(err, &namedError) || !errors.As(err, &state):
		t.Errorf("%s: %v, want %s", description, err, name)
	case namedError.Name() != name || string(state.Code) != code:
		t.Errorf("%s: %s %s (%v), want %s %s", description, namedError.Name(), state.Code, err, name, code)
	case state.Hint == "":
		t.Errorf("%s: %v has no hint", description, err)
	}
}

// requireValidity checks that err is nil, or a validation error if isValid is false.
func requireValidity(t *testing.T, description string, err error, isValid bool) {
	t.Helper()
	if !isValid {
		requireRefused(t, description, err, NameValidation, "PC422")
	} else if err != nil {
		t.Errorf("%s: %v", description, err)
	}
}

func TestIDsAreOneWord(t *testing.T) {
	cases := map[string]bool{
		"human:sean": true, "role:vet": true, "si:my-project": true, "a@b.c/d_e": true, "*": true, "小黑": true, "x": true,
		strings.Repeat("x", maxIDBytes): true, strings.Repeat("x", maxIDBytes+1): false,
		strings.Repeat("é", maxIDBytes/2): true, strings.Repeat("é", maxIDBytes/2) + "x": false, // the limit is in bytes
		"": false, "human:\xff": false,
	}
	for _, separator := range " \u00a0\t\n\x00\u200b\"'`\\,;()[]{}<>$" {
		cases["a"+string(separator)+"b"] = false
	}
	for s, isValid := range cases {
		requireValidity(t, fmt.Sprintf("an id %q", s), checkID("the id", s), isValid)
		requireValidity(t, fmt.Sprintf("an id %q that may be left out", s), checkOptionalID("the id", s), isValid || s == "")
	}
}

func TestListsOfIDs(t *testing.T) {
	maxList := slices.Repeat([]string{"x"}, maxIDs)
	for _, c := range []struct {
		list, want []string // want nil: it is refused
	}{
		{nil, []string{}},
		{[]string{"b", "a", "b", "B"}, []string{"b", "a", "B"}},
		{maxList, []string{"x"}},
		{append(maxList, "x"), nil},
		{[]string{"a", ""}, nil},
		{[]string{"a b", "c"}, nil},
	} {
		got, err := checkIDs("access", c.list)
		requireValidity(t, strings.Join(c.list, " "), err, c.want != nil)
		if err == nil && (got == nil || !slices.Equal(got, c.want)) {
			t.Errorf("%q: %q, want %q", c.list, got, c.want)
		}
	}
}

func TestTextsAndReasons(t *testing.T) {
	for s, isValid := range map[string]bool{
		"": true, "a\nb": true, "12345": true, "123456": false, "ééx": true, "ééxx": false, "a\x00": false, "\xff": false,
	} {
		requireValidity(t, fmt.Sprintf("a text %q", s), checkText("the text", s, 5), isValid)
	}
	for s, isValid := range map[string]bool{
		"": true, "the vet has moved": true, "a\nb": false, "a\tb": false, "a\x00": false, "\xff": false,
		strings.Repeat("x", maxReasonCharacters+1): false, strings.Repeat("é", maxReasonCharacters+1): false,
		strings.Repeat("é", maxReasonCharacters): true, strings.Repeat("𝄞", maxReasonCharacters): true, // characters are counted
	} {
		requireValidity(t, fmt.Sprintf("a reason %q", s), checkReason(s), isValid)
	}
}

func TestTheFirstErrorIsTold(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	if got := firstError(nil, first, second); got != first {
		t.Errorf("%v", got)
	}
	if got := firstError(nil, nil); got != nil {
		t.Errorf("%v", got)
	}
}
