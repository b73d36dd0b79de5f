package starter

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// agreementTable is a table whose columns say whether a person has agreed, and the column by which other tables refer
// to that person.
type agreementTable struct {
	table  *catalog.Relation
	column string
}

// agreementTables returns the tables that say whether the persons in personTable have agreed: personTable itself, and
// tables with at most one row for each of its rows, such as profiles and settings. A register of consents is left out:
// a human must say which of its records counts.
func (s *schemaSurvey) agreementTables(personTable *catalog.Relation) []agreementTable {
	if len(personTable.PrimaryKey) != 1 {
		return nil
	}
	candidates := []agreementTable{{personTable, personTable.PrimaryKey[0]}}
	for i := 0; i < len(candidates); i++ {
		table := candidates[i]
		add := func(table *catalog.Relation, column string) {
			if !slices.ContainsFunc(candidates, func(knownTable agreementTable) bool { return knownTable.table == table }) {
				candidates = append(candidates, agreementTable{table, column})
			}
		}
		for _, k := range keysOf(table.table, table.column) {
			if parentTable, ok := s.findRelation(k.Target); ok && slices.Contains(s.tables, parentTable) {
				add(parentTable, k.TargetColumns[0])
			}
		}
		for _, childTable := range s.tables {
			for _, k := range childTable.ForeignKeys {
				if len(k.Columns) == 1 && k.Target == table.table.Name && k.TargetColumns[0] == table.column &&
					isKey(childTable, k.Columns[0]) {
					add(childTable, k.Columns[0])
				}
			}
		}
	}
	return slices.DeleteFunc(candidates, func(candidate agreementTable) bool {
		return !s.hasConsentColumn(candidate.table) ||
			isConsentRegister(candidate.table)
	})
}

// isKey reports whether a column alone identifies each row of a table.
func isKey(r *catalog.Relation, column string) bool {
	return slices.Equal(r.PrimaryKey, []string{column}) || slices.ContainsFunc(r.UniqueKeys,
		func(k catalog.Key) bool { return k.Where == "" && slices.Equal(k.Columns, []string{column}) })
}

// agreementHints are conditions on the columns of a table of people which say that a person has agreed.
type agreementHints struct {
	wordAgreements []agreement // conditions on columns that hold a word or a boolean
	// conditions on columns that hold a time, if no column with a word says whether the agreement has ended
	timeAgreements []agreementBlock
	timeColumns    []string // names of the columns that hold a time
	unclearReasons []string // reasons why a column's values are not understood
}

// agreement is a column, and the word that it holds if the person has agreed.
type agreement struct {
	column   *catalog.Column
	word     string
	expires  *catalog.Column // the column with the time at which the agreement ends; nil: there is none
	evidence string
}

func (s *schemaSurvey) agreements(relation *catalog.Relation) agreementHints {
	var out agreementHints
	ends := map[*catalog.Column]bool{}
	for _, column := range s.columnRoles[relation].consent {
		block, reason := s.consentBlock(relation, column)
		if reason != "" {
			out.unclearReasons = append(out.unclearReasons, reason)
		}
		if block.word == "" {
			continue
		}
		a := agreement{column: column, word: block.word, expires: s.expiryColumn(relation, column), evidence: block.Evidence}
		if a.expires != nil {
			a.evidence += "; " + a.expires.Name + " looks like its end"
			ends[a.expires] = true
		}
		out.wordAgreements = append(out.wordAgreements, a)
	}
	for _, column := range s.columnRoles[relation].consent {
		if block, _ := s.consentBlock(relation, column); isTimeType(column.Type) && !ends[column] {
			out.timeColumns = append(out.timeColumns, column.Name)
			if block.YAML != "" {
				out.timeAgreements = append(out.timeAgreements, block)
			}
		}
	}
	return out
}

// yamlBlock returns a block which requires that every person to whom the links lead has agreed.
func (a agreement) yamlBlock(links ...string) string {
	expires := ""
	if a.expires != nil {
		expires = ", expires: " + yamlFlow(a.expires.Name)
	}
	return fmt.Sprintf("consent: { every: [ %s ], status: %s, is: %s%s }", strings.Join(links, ", "), yamlFlow(a.column.Name),
		policySpelling(a.word, a.column), expires)
}

// addSubjects adds blocks that require the consent of the persons to whom a row's links lead. The links are of two
// kinds: to an account or tenant that says whether it agreed, and to people whose own rule cannot be used. That is so
// if the policy does not list them, or if the rules would read each other in a circle.
func (s *schemaSurvey) addSubjects(relation *catalog.Relation, add func(string, string, ...any), note func(string,
	...any)) {
	askedTables := map[string]bool{}
	addConsent := func(l tableLink, subjects agreementTable) {
		if key := subjects.table.Name.String() + " " + strings.Join(l.columns, " "); subjects.table != relation &&
			!askedTables[key] {
			askedTables[key] = true
			s.addSubject(relation, l, subjects, add, note)
		}
	}
	for _, l := range s.linksOf(relation) {
		if l.target == relation || slices.ContainsFunc(s.parentLinks[relation],
			func(p parentLink) bool { return p.target == l.target && slices.Equal(p.columns, l.columns) }) {
			continue
		}
		for _, subjects := range s.subjectsOfLink(l) {
			addConsent(l, subjects)
		}
	}
	if (s.isIdentityTable(relation) || s.isPersonTable(relation)) && len(relation.PrimaryKey) == 1 {
		linkToItself := tableLink{target: relation, columns: relation.PrimaryKey, targets: relation.PrimaryKey, notNull: true}
		for _, subjects := range s.agreementTables(relation) {
			addConsent(linkToItself, subjects)
		}
	}
	// An owner column without a foreign key names the same account as the owner columns that have one.
	if column := s.columnRoles[relation].ownerColumn; column != nil && s.userAttribute.comparesWith(column) &&
		!slices.ContainsFunc(s.linksOf(relation),
			func(l tableLink) bool { return slices.Contains(l.columns, column.Name) }) {
		var subjects []agreementTable
		for _, account := range s.userTables {
			for _, agreed := range s.agreementTables(account) {
				if s.userAttribute.comparesWith(agreed.table.Column(agreed.column)) && !slices.Contains(subjects, agreed) {
					subjects = append(subjects, agreed)
				}
			}
		}
		if len(subjects) == 1 {
			addConsent(tableLink{target: subjects[0].table, columns: []string{column.Name},
				targets:         []string{subjects[0].column},
				isFromRowPolicy: true, notNull: column.NotNull}, subjects[0])
		}
	}
}

// addSubject adds the block that requires the consent of one person whom a row names.
func (s *schemaSurvey) addSubject(relation *catalog.Relation, l tableLink, subjects agreementTable, add func(string,
	string,
	...any),
	note func(string, ...any)) {
	a := s.agreements(subjects.table)
	name, columnNames := s.policyName(subjects.table.Name), strings.Join(l.columns, ", ")
	for _, reason := range a.unclearReasons {
		note("%s leads to %s, where not everything about consent is asked: %s", columnNames, name, reason)
	}
	subjectLink := l
	evidence := l.evidence(s)
	if subjects.table != l.target {
		subjectLink.target, subjectLink.targets = subjects.table, []string{subjects.column}
		if l.target == relation {
			evidence = fmt.Sprintf("%s has one row for each of these, by %s", name, subjects.column)
		} else {
			evidence += fmt.Sprintf(", and %s has one row for each of these, by %s", name, subjects.column)
		}
	}
	// If deleting a person sets the column to NULL, a NULL does not mean that the row is about nobody.
	isOptional := !l.notNull && s.listingRound[relation] > 0 && !isOwnerColumn(s.columnRoles[relation], l) &&
		l.onDelete != catalog.SetNull &&
		l.onDelete != catalog.SetDefault
	addBlock := func(reason, block string) {
		if isOptional {
			add(fmt.Sprintf("%s: where it is not NULL, that one must have agreed (%s)", evidence, reason),
				"any: [ sql: %s, %s ]",
				yamlQuoted(s.isNullSQL(relation, l)), block)
			return
		}
		add(fmt.Sprintf("%s: that one must have agreed (%s)", evidence, reason), "%s", block)
	}
	isWholeKey := slices.Equal(subjectLink.targets, subjects.table.PrimaryKey)
	isListed := s.listingRound[subjects.table] > 0
	switch {
	case isListed && (len(a.timeAgreements) > 0 || !isWholeKey) && len(a.wordAgreements)+len(a.timeAgreements) > 0:
		var blocks, reason []string
		for _, w := range a.wordAgreements {
			blocks = append(blocks, fmt.Sprintf("status: { column: %s, is: %s }", yamlFlow(w.column.Name), policySpelling(w.word, w.column)))
			reason = append(reason, w.evidence)
			if w.expires != nil {
				until := catalog.QuoteIdent(w.expires.Name)
				blocks = append(blocks, "sql: "+yamlQuoted(until+" IS NULL OR "+until+" > now()"))
			}
		}
		for _, t := range a.timeAgreements {
			blocks, reason = append(blocks, t.YAML), append(reason, t.Evidence)
		}
		addBlock(strings.Join(reason, "; "), fmt.Sprintf("visible: { %s, rows: [ %s ] }", subjectLink.yamlText(s),
			strings.Join(blocks, ", ")))
	default:
		for _, w := range a.wordAgreements {
			addBlock(w.evidence, w.yamlBlock(subjectLink.yamlText(s)))
		}
		if len(a.wordAgreements) > 0 && !isWholeKey {
			note("a row whose %s leads to no row of %s shows: nobody is asked there", columnNames, name)
		}
		if len(a.timeColumns) > 0 {
			note("%s of %s is not asked of those whom %s names: does it say that one of them has not agreed?",
				strings.Join(a.timeColumns, ", "), name, columnNames)
		}
	}
	switch {
	case l.notNull || isOptional || len(a.wordAgreements)+len(a.timeAgreements) == 0:
	case isOwnerColumn(s.columnRoles[relation], l):
		note("%s may be NULL, which hides the row: nobody has agreed there", columnNames)
	default:
		note("%s is NULL where somebody was deleted, and that hides the row; if NULL says something else, write any: [ "+
			"sql: %s, and the block below on %s ]", columnNames, yamlQuoted(s.isNullSQL(relation, l)), columnNames)
	}
}

// isOwnerColumn reports whether a link is the column that says to whom a row belongs.
func isOwnerColumn(roles *tableColumnRoles, l tableLink) bool {
	return roles.ownerColumn != nil && slices.Equal(l.columns, []string{roles.ownerColumn.Name})
}

// isNullSQL returns the SQL condition that one of the link's columns is NULL, so that it leads to no row.
func (s *schemaSurvey) isNullSQL(r *catalog.Relation, l tableLink) string {
	var nullConditions []string
	for _, c := range l.columns {
		if !r.Column(c).NotNull {
			nullConditions = append(nullConditions, catalog.QuoteIdent(c)+" IS NULL")
		}
	}
	return strings.Join(nullConditions, " OR ")
}
