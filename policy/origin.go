package policy

import (
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// AttributeOrigin is where the value of an attribute comes from that the database works out, as text: what confirms a claim, the
// query, or the expression. It is "" for one of the credential.
func (p *Policy) AttributeOrigin(name string) string {
	for _, l := range p.live {
		if l.Name != name {
			continue
		}
		switch {
		case l.Table != nil:
			sql := "SELECT " + catalog.QuoteIdent(l.Column) + " FROM " + l.Table.Name.SQL()
			if l.Rows != nil {
				// A claim has no name among the attributes.
				sql += " WHERE " + strings.ReplaceAll(ReadableSQL(predicate.Check(l.Rows, l.Table)), "(SELECT attr(''))", "claim")
			}
			return sql
		case len(l.Equals) > 0:
			var ids []string
			for _, a := range l.Equals {
				ids = append(ids, "attribute('"+a.Name+"')")
			}
			return strings.Join(ids, ", or ")
		case len(l.Values) > 0:
			return "'" + strings.Join(l.Values, "', '") + "'"
		default:
			return strings.Join(strings.Fields(p.expressions[name]), " ")
		}
	}
	return ""
}
