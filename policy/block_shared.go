package policy

import (
	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/run/yamlfile"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// sharedBlock is `shared: { record: { table: { its key: column } }, granted: { column: …, is: … }, revoked: …, active:
// … }`. The row shows if it refers to a consent record that is granted and not revoked.
type sharedBlock struct {
	place
	records       []linkDecl
	grantedStatus statusBlock
	revokedColumn string
	revokedAt     place
	active        string
	activeAt      place
}

func (d *blockDecoder) decodeShared(position place, n *node) block {
	b := sharedBlock{place: position}
	d.decodeFields(n, "shared", map[string]func(*node){
		"record": func(v *node) {
			if v.Kind != yamlfile.ListNode {
				b.records = append(b.records, d.decodeLink(v, "record"))
				return
			}
			for _, item := range v.Items {
				b.records = append(b.records, d.decodeLink(item, "record"))
			}
			if len(v.Items) == 0 {
				d.fail(v.Place, "name the table of the consent records", "record is empty")
			}
		},
		"granted": func(v *node) {
			if d.requireKind(v, yamlfile.MappingNode, "granted") {
				b.grantedStatus = d.decodeStatus(v.Place, v).(statusBlock)
			}
		},
		"revoked": func(v *node) { b.revokedAt = v.Place; d.decodeWord(&b.revokedColumn, "revoked")(v) },
		"active":  func(v *node) { b.activeAt = v.Place; d.decodeWord(&b.active, "active")(v) },
	})
	d.requireFields(n, "shared", "record", "granted")
	return b
}

// sharedNode compiles a shared block: each record must exist, be granted and not be revoked, and the row's own flag
// must be set.
func (c *ruleCompiler) sharedNode(b sharedBlock, row *catalog.Relation) predicate.Node {
	var out predicate.All
	for _, link := range b.records {
		record := c.followLink(link, row)
		if record == nil {
			return predicate.Any{}
		}
		if !link.coversKey(record.PrimaryKey) {
			c.fail(link.place, "link to the primary key of the record",
				"several rows of %s may be meant, of which one could be granted and another revoked", record.Name)
			return predicate.Any{}
		}
		typeName := c.checkStatusColumn(b.grantedStatus.columnAt.OrElse(b.grantedStatus.place),
			b.grantedStatus.requiredWordAt.OrElse(b.grantedStatus.place),
			record, b.grantedStatus.column, b.grantedStatus.requiredWord)
		rows := predicate.All{predicate.Status{Column: b.grantedStatus.column, Value: b.grantedStatus.requiredWord,
			ColumnType: typeName}}
		if b.revokedColumn != "" {
			rows = append(rows, c.notRevokedNode(b, record))
		}
		out = append(out, predicate.Visible{Relation: record, Column: link.pairs[0].Column,
			FromColumn: link.pairs[0].FromColumn,
			MorePairs:  link.otherPairs(), Rows: rows})
	}
	if b.active != "" {
		if column := c.findRuleColumn(b.activeAt, row, b.active); column != nil && column.Type != "boolean" {
			c.fail(b.activeAt, "name a boolean column of "+row.Name.String(), "%s.%s is a %s", row.Name, b.active, column.Type)
		}
		out = append(out, predicate.Status{Column: b.active, Value: "true", ColumnType: "boolean"})
	}
	return out
}

// notRevokedNode compiles the condition that a record is not revoked: its revocation time is NULL, or its revocation
// flag is false.
func (c *ruleCompiler) notRevokedNode(b sharedBlock, record *catalog.Relation) predicate.Node {
	column := c.findRuleColumn(b.revokedAt, record, b.revokedColumn)
	if column == nil {
		return predicate.Any{}
	}
	if column.Type == "boolean" {
		return predicate.Status{Column: b.revokedColumn, Value: "false", ColumnType: "boolean"}
	}
	e, ok := c.expressionColumn(column)
	if !ok {
		c.fail(b.revokedAt, "name the time of the withdrawal, or a boolean column", "%s.%s is a %s", record.Name,
			b.revokedColumn, column.Type)
		return predicate.Any{}
	}
	return predicate.SQL{Expr: isNull(e)}
}
