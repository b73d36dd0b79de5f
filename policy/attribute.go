package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
)

// attributeType describes a type that an attribute may have.
type attributeType struct {
	sql   string
	check func(string) bool
}

var uuidPattern = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// attributeTypes lists all types that an attribute may have. A check accepts a value only if the type's input function
// in PostgreSQL accepts it. If a cast failed inside a row policy, its error would tell an agent that a row exists.
var attributeTypes = map[string]attributeType{
	"uuid":      {"pg_catalog.uuid", uuidPattern.MatchString},
	"text":      {"pg_catalog.text", func(v string) bool { _, list := predicate.ParseArray(v); return !list }},
	"bigint":    {"pg_catalog.int8", integerForm(64)},
	"integer":   {"pg_catalog.int4", integerForm(32)},
	"uuid[]":    {"pg_catalog.uuid[]", checkElements(uuidPattern.MatchString)},
	"text[]":    {"pg_catalog.text[]", checkElements(func(string) bool { return true })},
	"bigint[]":  {"pg_catalog.int8[]", checkElements(integerForm(64))},
	"integer[]": {"pg_catalog.int4[]", checkElements(integerForm(32))},
}

func integerForm(bits int) func(string) bool {
	return func(v string) bool {
		n, err := strconv.ParseInt(v, 10, bits)
		return err == nil && strconv.FormatInt(n, 10) == v
	}
}

// checkElements returns a check that applies another check to each element of an array literal. It refuses NULL
// elements, since every value of an attribute must be known.
func checkElements(check func(string) bool) func(string) bool {
	return func(v string) bool {
		elements, ok := predicate.ParseArray(v)
		return ok && !slices.ContainsFunc(elements, func(e *string) bool { return e == nil || !check(*e) })
	}
}

// These bounds keep the seal short, the signed setting that tells the database the session's attributes. The database
// refuses a seal of 65,536 characters or more, and escaping may replace one character by three.
const (
	maxAttributeBytes     = 1024
	maxListAttributeBytes = 8192
	maxAttributesBytes    = 16384 // the largest size of all attributes of one session together
)

// SQLType is the attribute's type as a qualified SQL name.
func (a Attribute) SQLType() string { return attributeTypes[a.Type].sql }

// IsList tells whether the attribute's value is a list. A list is written as a PostgreSQL array literal.
func (a Attribute) IsList() bool { return strings.HasSuffix(a.Type, "[]") }

// elementType is the type of the value, or of the elements if the value is a list.
func (a Attribute) elementType() string { return strings.TrimSuffix(a.Type, "[]") }

// Check returns an error unless the value is valid for the attribute's type and written as PostgreSQL writes values of
// that type. The error does not quote the value.
func (a Attribute) Check(value string) error {
	t, ok := attributeTypes[a.Type]
	limit := maxAttributeBytes
	if a.IsList() {
		limit = maxListAttributeBytes
	}
	switch {
	case !ok:
		return fmt.Errorf("attribute %s has the unknown type %s", a.Name, a.Type)
	case len(value) > limit:
		return fmt.Errorf("attribute %s is longer than %d bytes", a.Name, limit)
	case !utf8.ValidString(value):
		return fmt.Errorf("attribute %s is not UTF-8", a.Name)
	case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return fmt.Errorf("attribute %s has a control character", a.Name)
	case a.IsList() && !t.check(value):
		return fmt.Errorf("attribute %s is not a list of %ss in the form PostgreSQL writes them", a.Name, a.elementType())
	case a.Type == "text" && !t.check(value):
		return fmt.Errorf("attribute %s is a list, and the policy declares a text", a.Name)
	case !t.check(value):
		return fmt.Errorf("attribute %s is not a %s in the form PostgreSQL writes it", a.Name, a.Type)
	}
	return nil
}

// CheckAttributes returns an error if the attributes of one session are too large together.
func CheckAttributes(attributes map[string]string) error {
	total := 0
	for name, value := range attributes {
		total += len(name) + len(value)
	}
	if total > maxAttributesBytes {
		return fmt.Errorf("the attributes are longer than %d bytes together", maxAttributesBytes)
	}
	return nil
}

// attributeName matches the names of attributes. Only few characters are permitted, because the names occur in SQL text
// and in seals.
var attributeName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,31}$`)
