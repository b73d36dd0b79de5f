package privacy

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// These are limits of what callers may send.
const (
	maxIDBytes          = 256   // bytes of an id
	maxIDs              = 256   // ids in one list
	maxContentBytes     = 65536 // bytes of a memory's text
	maxReasonCharacters = 256   // characters of the reason for a change
)

// checkID returns an error unless the id is one word without the special characters of SQL and JSON.
func checkID(label, s string) error {
	const hint = "An id is one word of letters, digits and signs such as : _ - . @ /, for example human:sean."
	switch {
	case !utf8.ValidString(s):
		return newError(NameValidation, hint, "%s is not valid UTF-8", label)
	case s == "":
		return newError(NameValidation, hint, "%s is empty", label)
	case len(s) > maxIDBytes:
		return newError(NameValidation, hint, "%s is longer than %d bytes", label, maxIDBytes)
	case strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsControl(r) || unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) ||
			strings.ContainsRune("\"'`\\,;()[]{}<>$", r)
	}):
		return newError(NameValidation, hint, "%s is not an id", label)
	}
	return nil
}

// checkIDs checks a list of ids, and returns the list without repetitions.
func checkIDs(label string, list []string) ([]string, error) {
	if len(list) > maxIDs {
		return nil, newError(NameValidation, "Use a role or a context.", "%s has more than %d ids", label, maxIDs)
	}
	out := []string{}
	for _, s := range list {
		if err := checkID("an id of "+label, s); err != nil {
			return nil, err
		}
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out, nil
}

// checkText returns an error if a text is no valid UTF-8, has a NUL character or is too long.
func checkText(label, s string, maxBytes int) error {
	switch {
	case !utf8.ValidString(s):
		return newError(NameValidation, "Send UTF-8.", "%s is not valid UTF-8", label)
	case strings.ContainsRune(s, 0):
		return newError(NameValidation, "Leave it out.", "%s has a NUL character", label)
	case len(s) > maxBytes:
		return newError(NameValidation, "Make it shorter.", "%s is longer than %d bytes", label, maxBytes)
	}
	return nil
}

// checkReason returns an error if the reason for a change is too long or has control characters.
func checkReason(s string) error {
	if err := checkText("the reason", s, 4*maxReasonCharacters); err != nil {
		return err
	}
	if utf8.RuneCountInString(s) > maxReasonCharacters || strings.ContainsFunc(s, unicode.IsControl) {
		return newError(NameValidation, "Say it in one line.", "the reason is longer than %d characters, or has line breaks", maxReasonCharacters)
	}
	return nil
}

// checkOptionalID checks an id unless it is empty.
func checkOptionalID(label, s string) error {
	if s == "" {
		return nil
	}
	return checkID(label, s)
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
