package predicate_test

import (
	"fmt"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// One tree says which rows a session may see. It is written as the expression of a row security policy and as the
// condition in an agent's statement, and evaluated in memory: all agree on every row.
func Example() {
	notes := &catalog.Relation{Name: catalog.Name{Schema: "public", Name: "notes"}, Kind: catalog.Table,
		Columns: []catalog.Column{{Name: "owner", Type: "text"}, {Name: "consent", Type: "text"}}}
	rows := predicate.All{
		predicate.Own{Column: "owner", Attribute: "user", Type: "pg_catalog.text"},
		predicate.Status{Column: "consent", Value: "granted"},
	}
	lines := strings.NewReplacer(" AND ", "\n  AND ")
	fmt.Println(lines.Replace(predicate.RowPolicySQL(rows, notes)))
	condition, needsSignature := predicate.InjectedCondition(rows, "n")
	fmt.Println(lines.Replace(condition))
	fmt.Println("reads signed views:", needsSignature)

	ann := predicate.World{Attributes: map[string]string{"user": "ann"}, Sealed: true}
	fmt.Println(predicate.Eval(rows, predicate.Row{"owner": "ann", "consent": "granted"}, ann))
	fmt.Println(predicate.Eval(rows, predicate.Row{"owner": "ann"}, ann)) // nobody was asked
	// Output:
	// (notes.owner OPERATOR(pg_catalog.=) (SELECT pgconsent_signed.attr('user'))::pg_catalog.text
	//   AND (notes.consent::pg_catalog.text OPERATOR(pg_catalog.=) 'granted'::pg_catalog.text) IS TRUE)
	// (CASE WHEN (n.owner OPERATOR(pg_catalog.=) (SELECT pgconsent_signed.attr('user'))::pg_catalog.text
	//   AND (n.consent::pg_catalog.text OPERATOR(pg_catalog.=) 'granted'::pg_catalog.text) IS TRUE) THEN true END) IS NOT NULL
	// reads signed views: false
	// true
	// false
}
