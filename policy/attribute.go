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

// attributeType is a type that an attribute may have.
type attributeType struct {
	sql   string
	check func(string) bool
}

var uuidPattern = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// attributeTypes is the closed list of types. A check accepts a value only if the type's input function takes it
// without an error. A cast that failed inside a row policy would tell that a row exists.
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

// checkElements returns a check of an array literal that checks each element. It refuses NULL as an element: every
// value of a session's attribute is known.
func checkElements(check func(string) bool) func(string) bool {
	return func(v string) bool {
		elements, ok := predicate.ParseArray(v)
		return ok && !slices.ContainsFunc(elements, func(e *string) bool { return e == nil || !check(*e) })
	}
}

// These bounds keep a seal short. The database reads a seal of fewer than 65,536 characters, and escaping may turn one
// character into three.
const (
	maxAttributeBytes     = 1024
	maxListAttributeBytes = 8192
	maxAttributesBytes    = 16384 // the bound of all attributes of one session together
)

// SQLType is the attribute's type as a qualified SQL name.
func (a Attribute) SQLType() string { return attributeTypes[a.Type].sql }

// List tells whether the attribute's value is a list. A list is written as a PostgreSQL array literal.
func (a Attribute) IsList() bool { return strings.HasSuffix(a.Type, "[]") }

// elementType is the type of the value, or of the elements if the value is a list.
func (a Attribute) elementType() string { return strings.TrimSuffix(a.Type, "[]") }

// Check returns an error unless the value is of the attribute's type and written as PostgreSQL writes that type. The
// error does not quote the value.
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

// CheckAttributes returns an error if the attributes of one session have too many bytes together.
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

// attributeName matches the name of an attribute. Names go into SQL text and into seals, so their characters are few.
var attributeName = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,31}$`)
