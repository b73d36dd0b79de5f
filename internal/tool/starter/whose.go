package starter

import (
	"fmt"
	"slices"
	"strings"
)

// onlyOneColumnNote is the beginning of a note that two columns say whose a row is, and the rule reads only one. The
// reason follows it.
const onlyOneColumnNote = "%s and %s say whose a row is, and only %s is asked: "

// addOwnership adds the blocks that say whose a row is: a tenant's or a user's. If columns say both, the user's
// decides, since a user has fewer rows than a tenant. The tenant's block is added as a comment: both together would
// hide the rows that a tenant's users share. In the table of tenants, a tenant's row belongs to the tenant itself.
func (s *schemaSurvey) addOwnership(t *Table, roles *tableColumnRoles, add func(string, string, ...any),
	note func(string, ...any)) {
	relation := t.Relation
	tenant := s.tenantAttribute(relation)
	isTenant := tenant != nil && tenant.comparesWith(relation.Column(relation.PrimaryKey[0]))
	if isTenant {
		s.usedAttributes[tenant.Name] = true
		add("a tenant sees itself", "own: { column: %s, is: %s }", yamlFlow(relation.PrimaryKey[0]), tenant.Name)
	}
	isAccount := slices.Contains(s.userTables, relation)
	if isAccount {
		s.usedAttributes[s.userAttribute.Name] = true
		add("an account sees itself", "own: { column: %s, is: %s }", yamlFlow(relation.PrimaryKey[0]), s.userAttribute.Name)
	}
	isOwned := !isAccount && s.userAttribute != nil && roles.ownerColumn != nil
	var otherBlocks []Block
	var columns, nullable, selfReferences []string
	if isTenant {
		selfReferences = slices.Clone(relation.PrimaryKey)
	}
	for _, column := range roles.tenants {
		a := s.tenantAttributes[s.tenantKey(relation, column)]
		// This column names a parent tenant. A rule that requires the agent to be both tenants would show nothing.
		if a == tenant && !slices.Contains(relation.PrimaryKey, column.Name) {
			note("%s names another tenant, and is not used here: does it see this one?", column.Name)
			continue
		}
		block := Block{YAML: fmt.Sprintf("tenant: { column: %s, is: %s }", yamlFlow(column.Name), a.Name)}
		columns = append(columns, column.Name)
		if isAccount || isOwned && !isTenant {
			s.commentedAttributes[a.Name] = true
			block.Evidence = fmt.Sprintf("in its place: every row of one %s, whoever's it is; beside it: what the user has there", a.Name)
			otherBlocks = append(otherBlocks, block)
			continue
		}
		s.usedAttributes[a.Name] = true
		add(s.columnEvidence(relation, column), "%s", block.YAML)
		if !column.NotNull {
			nullable = append(nullable, column.Name)
		}
	}
	if ownerColumns := append(selfReferences, columns...); len(ownerColumns) > 1 && len(otherBlocks) == 0 {
		note("%s say of which tenant a row is, and all of them must hold", strings.Join(ownerColumns, " and "))
	}
	for _, name := range nullable {
		note("%s may be NULL, which hides the row; if such rows are everybody's, add shared: null", name)
	}
	switch {
	case isTenant && isOwned:
		s.commentedAttributes[s.userAttribute.Name] = true
		note(onlyOneColumnNote+"a %s is there for everybody in it, not for one user alone",
			relation.PrimaryKey[0], roles.ownerColumn.Name, relation.PrimaryKey[0], tenant.Name)
		otherBlocks = []Block{{YAML: fmt.Sprintf("own: { column: %s, is: %s }", yamlFlow(roles.ownerColumn.Name),
			s.userAttribute.Name),
			Evidence: fmt.Sprintf("in its place: what is of one user; beside it: each %s of that user alone", tenant.Name)}}
	case !isAccount:
		s.addOwner(t, roles, add, note)
	}
	if len(otherBlocks) == 0 {
		return
	}
	t.Blocks[len(t.Blocks)-1].Alternatives = otherBlocks
	switch {
	case isTenant:
	case isAccount:
		note(onlyOneColumnNote+"an account's row is its own", relation.PrimaryKey[0], strings.Join(columns, " and "),
			relation.PrimaryKey[0])
	default:
		ownerColumns := strings.Join(columns, " and ")
		note(onlyOneColumnNote+"a user's rows are fewer than everybody's; those with another %s show too",
			roles.ownerColumn.Name,
			ownerColumns, roles.ownerColumn.Name, ownerColumns)
	}
}
