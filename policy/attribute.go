package policy

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// attributeType is a type that an attribute may have.
type attributeType struct {
	sql   string
	check func(string) bool
}

var uuidForm = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// attributeTypes is the closed list. A check accepts only what the type's input function takes without an error, since a
// cast that raised inside a policy would tell that a row exists.
var attributeTypes = map[string]attributeType{
	"uuid": {"pg_catalog.uuid", uuidForm.MatchString},
	"text": {"pg_catalog.text", func(string) bool { return true }},
	"bigint": {"pg_catalog.int8", func(v string) bool {
		n, err := strconv.ParseInt(v, 10, 64)
		return err == nil && strconv.FormatInt(n, 10) == v
	}},
	"integer": {"pg_catalog.int4", func(v string) bool {
		n, err := strconv.ParseInt(v, 10, 32)
		return err == nil && strconv.FormatInt(n, 10) == v
	}},
}

// maxAttribute bounds a value, so that a seal stays short.
const maxAttribute = 1024

// SQLType is the qualified name of the attribute's type.
func (a Attribute) SQLType() string { return attributeTypes[a.Type].sql }

// Check returns an error unless value is of the attribute's type, as PostgreSQL writes it, and has nothing in it that a
// seal could trip over. The error does not quote the value.
func (a Attribute) Check(value string) error {
	t, ok := attributeTypes[a.Type]
	switch {
	case !ok:
		return fmt.Errorf("attribute %s has the unknown type %s", a.Name, a.Type)
	case len(value) > maxAttribute:
		return fmt.Errorf("attribute %s is longer than %d bytes", a.Name, maxAttribute)
	case !utf8.ValidString(value):
		return fmt.Errorf("attribute %s is not UTF-8", a.Name)
	case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f || strings.ContainsRune("|#=%", r) }):
		return fmt.Errorf("attribute %s has a control character or one of | # = %%", a.Name)
	case !t.check(value):
		return fmt.Errorf("attribute %s is not a %s in the form PostgreSQL writes it", a.Name, a.Type)
	}
	return nil
}

// attributeName is what an attribute may be called: it goes into SQL text and into seals.
var attributeName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,31}$`)
