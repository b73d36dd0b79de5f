package policy

import (
	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// sqlBlock is `sql: "expression over the row's own columns"`.
type sqlBlock struct {
	place
	text    string
	placeAt func(offset int) place // the place in the file of a byte of the text
}

// maxExpressionBytes is the largest length of an expression's text.
const maxExpressionBytes = 8 << 10

func (d *blockDecoder) decodeSQL(position place, n *node) block {
	b := sqlBlock{place: position, placeAt: n.PlaceOfByte}
	if d.requireKind(n, yamlfile.ScalarNode, "sql") {
		b.text = n.Value
		if len(b.text) > maxExpressionBytes {
			d.fail(n.Place, "divide it into several blocks", "the expression is longer than %d bytes", maxExpressionBytes)
			b.text = "null"
		}
	}
	return b
}

const selectPrefix = "SELECT "

// compileSQL compiles an expression. The predicate is generated from the syntax tree alone, so no part of the policy's
// text reaches the database.
func (c *ruleCompiler) compileSQL(b sqlBlock, row *catalog.Relation) predicate.Node {
	x, n := c.parseExpression(b, row, "write the condition alone, as it would stand after WHERE")
	if n == nil {
		return predicate.Any{}
	}
	condition, ok := x.compileCondition(n)
	if !ok {
		return predicate.Any{}
	}
	if !x.namesColumnOrAttribute {
		c.fail(b.placeAt(0), `say "open" if every row may show`, "the expression speaks of no column and no attribute")
	}
	return predicate.SQL{Expr: condition}
}

// parseExpression parses the text of an expression; nil after an error.
func (c *ruleCompiler) parseExpression(b sqlBlock, row *catalog.Relation, fallback string) (*sqlExpression,
	*sqltext.Node) {
	tree, err := sqltext.Parse(selectPrefix + b.text)
	if err != nil {
		position := b.placeAt(0)
		if err.Position > len(selectPrefix) {
			position = b.placeAt(len(string([]rune(selectPrefix + b.text)[:err.Position-1])) - len(selectPrefix))
		}
		if slip := suggestPlainCharacter(b.text); slip != "" {
			fallback = slip
		} else if slip := c.suggestAttribute(b.text); slip != "" {
			fallback = slip
		}
		c.fail(position, fallback, "%s", err.Message)
		return nil, nil
	}
	n := singleExpression(tree)
	if n == nil {
		if slip := suggestPlainCharacter(b.text); slip != "" {
			fallback = slip
		}
		c.fail(b.placeAt(0), fallback, "sql is one expression, not a statement")
		return nil, nil
	}
	x := &sqlExpression{names: c.resolver, row: row, placeOf: func(location int32) place {
		return b.placeAt(max(0, int(location)-len(selectPrefix)))
	}}
	return x, n
}

// singleExpression returns the expression in a statement of the form SELECT expression; nil if the statement has any
// other part.
func singleExpression(tree *sqltext.ParseResult) *sqltext.Node {
	if len(tree.Stmts) != 1 {
		return nil
	}
	s := tree.Stmts[0].Stmt.GetSelectStmt()
	if s == nil || len(s.TargetList) != 1 {
		return nil
	}
	target := s.TargetList[0].GetResTarget()
	if target == nil || target.Name != "" || len(target.Indirection) > 0 {
		return nil
	}
	if len(s.DistinctClause)+len(s.FromClause)+len(s.GroupClause)+len(s.WindowClause)+len(s.ValuesLists)+
		len(s.SortClause)+len(s.LockingClause) > 0 ||
		s.IntoClause != nil || s.WhereClause != nil || s.GroupDistinct || s.HavingClause != nil ||
		s.LimitOffset != nil || s.LimitCount != nil ||
		s.WithClause != nil || s.Op != sqltext.SETOP_NONE || s.All || s.Larg != nil || s.Rarg != nil {
		return nil
	}
	return target.Val
}
