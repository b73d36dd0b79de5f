package policy

import (
	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// notBlock is `not: block`: the row shows if it does not meet the block.
type notBlock struct {
	place
	part block
}

// notNode compiles a negation of conditions on the row's own columns. It refuses a block that reads another table: if
// row security hid all rows of that table, the negation would show every row.
func (c *ruleCompiler) notNode(b notBlock, row *catalog.Relation) predicate.Node {
	c.checkNegatable(b.part)
	return predicate.Not{Node: c.compileBlock(b.part, row)}
}

func (c *ruleCompiler) checkNegatable(b block) {
	switch b := b.(type) {
	case allBlock:
		for _, part := range b.parts {
			c.checkNegatable(part)
		}
	case anyBlock:
		for _, part := range b.parts {
			c.checkNegatable(part)
		}
	case ownBlock, tenantBlock, grantBlock, statusBlock, sqlBlock, openBlock, nil:
	case notBlock: // a not block inside the block is checked when it is compiled itself
	default:
		c.fail(b.At(), "say what must hold, with a status of its own",
			"not speaks of the row's own columns only: a table that another block reads could look empty, and not "+
				"would then show every row")
	}
}
