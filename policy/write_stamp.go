package policy

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Stamp is the value that an INSERT gives to a column, whatever the agent sends.
type Stamp struct {
	Column    string
	Attribute string // the session's attribute that has the value; "": the value is fixed
	Type      string // the qualified name of the attribute's type
	Value     string // the fixed value

	// the condition under which the new row keeps the value that the agent sent; nil: the stamp always applies
	Unless predicate.Node
}

// plainDefault matches a column default that is a constant.
var plainDefault = regexp.MustCompile(`^('(?:[^']|'')*'(::[a-z0-9_ ."]+)?|-?[0-9]+|true|false|NULL::[a-z0-9_ ."]+)$`)

// Notice returns the text of the notice that an agent gets when it sends another value for a stamped column than the
// stamp's. It is "" if PostgreSQL cannot tell a sent value from the default of a column that was left out.
func (s Stamp) Notice(r *catalog.Relation) string {
	column := r.Column(s.Column)
	if s.Unless != nil || column == nil || column.Default != "" && !plainDefault.MatchString(column.Default) {
		return ""
	}
	return `column "` + s.Column + `" of relation "` + r.Name.Name + `" is set by the policy; the value that was sent is not kept`
}

// compileStamps compiles the values that an INSERT gives to columns.
func (c *writeCompiler) compileStamps(decl *writeDecl, r *catalog.Relation) []Stamp {
	var out []Stamp
	for _, s := range decl.stamps {
		column := c.findColumn(s.place, r, s.column)
		if column == nil {
			continue
		}
		if column.Generated || column.Identity == "always" {
			c.fail(s.place, "", "%s.%s is generated and cannot be stamped", r.Name, s.column)
			continue
		}
		if s.attribute != "" {
			if comparison, ok := c.rules.compileOwn(ownBlock{place: s.place, column: s.column, attribute: s.attribute,
				attributeAt: s.valueAt}, r).(predicate.Own); ok {
				if strings.HasSuffix(comparison.Type, "[]") {
					c.fail(s.valueAt, "stamp an attribute of one value", "%s is a list", s.attribute)
					continue
				}
				out = append(out, Stamp{Column: s.column, Attribute: comparison.Attribute, Type: comparison.Type,
					Unless: c.compileStampException(s, r)})
			}
			continue
		}
		if reason := c.whyUnstampable(column, s.value); reason != "" {
			c.fail(s.valueAt, reason, "%q cannot be stamped on %s.%s, which is a %s", s.value, r.Name, s.column, column.Type)
			continue
		}
		out = append(out, Stamp{Column: s.column, Value: s.value, Unless: c.compileStampException(s, r)})
	}
	return out
}

func (c *writeCompiler) compileStampException(s stampDecl, r *catalog.Relation) predicate.Node {
	if s.unless == nil {
		return nil
	}
	return c.rules.compileCondition(s.unless, r)
}

// whyUnstampable says why a column's type cannot have a fixed value, as PostgreSQL writes it; "": it can.
func (c *writeCompiler) whyUnstampable(column *catalog.Column, value string) string {
	t := c.snap.TypeByOID(column.TypeOID)
	switch {
	case t != nil && t.Kind == 'e' && len(t.Labels) > 0 && !slices.Contains(t.Labels, value):
		return closestOrFew(value, t.Labels)
	case typeFamily(column.Type) == "text", t != nil && t.Kind == 'e':
		return ""
	case typeFamily(column.Type) == "integer":
		if n, err := strconv.ParseInt(value, 10, 64); err != nil || strconv.FormatInt(n, 10) != value {
			return "write a whole number"
		}
	case typeFamily(column.Type) == "uuid":
		if !uuidPattern.MatchString(value) {
			return "write it in lower case with dashes"
		}
	case column.Type == "boolean":
		if value != "true" && value != "false" {
			return "write true or false"
		}
	default:
		return "stamp columns of type uuid, integer, text, boolean or an enum"
	}
	return ""
}
