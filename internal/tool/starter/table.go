package starter

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// proposeTable proposes the rule of a listed table, and records which attributes the rule uses.
func (s *schemaSurvey) proposeTable(relation *catalog.Relation) *Table {
	t := &Table{Relation: relation, Name: s.policyName(relation.Name), Blocks: []Block{}, Hidden: []string{},
		ContactColumns: []string{},
		Notes:          []string{}, OpenReasons: []string{}}
	roles := s.columnRoles[relation]
	if s.listingRound[relation] < 0 {
		t.IsOpen, t.Evidence = true, s.whyReferenceData(relation)
		return t
	}
	add := func(evidence, format string, args ...any) {
		t.Blocks = append(t.Blocks, Block{YAML: fmt.Sprintf(format, args...), Evidence: evidence})
	}
	note := func(format string, args ...any) {
		if text := fmt.Sprintf(format, args...); !slices.Contains(t.Notes, text) {
			t.Notes = append(t.Notes, text)
		}
	}

	s.addOwnership(t, roles, add, note)
	s.addConsent(relation, add, note)
	s.addSubjects(relation, add, note)
	for _, column := range roles.consent {
		if block, _ := s.consentBlock(relation, column); block.YAML != "" {
			t.Blocks = append(t.Blocks, block.Block)
		}
	}
	for _, l := range s.parentLinks[relation] {
		switch {
		case l.isOptional:
			add(l.evidence(s)+", where it is not NULL: a row does not show beside one that is hidden",
				"any: [ sql: %s, visible: { %s } ]", yamlQuoted(s.isNullSQL(relation, l.tableLink)), l.yamlText(s))
		default:
			add(l.evidence(s)+": a row hangs on one that agents see", "visible: { %s }", l.yamlText(s))
			if !l.notNull {
				note("%s may be NULL, which hides the row", strings.Join(l.columns, ", "))
			}
		}
	}
	for _, l := range s.circleLinks[relation] {
		note("%s refers to %s, whose rule cannot be asked in a circle: a row shows although the one that it names "+
			"there is hidden", strings.Join(l.columns, ", "), s.policyName(l.target.Name))
	}
	for _, column := range roles.deletionColumns {
		if column.Type == "boolean" {
			add(column.Name+" looks like a mark of deletion", "status: { column: %s, is: false }", yamlFlow(column.Name))
		} else {
			add(column.Name+" looks like a mark of deletion", "sql: %s", yamlQuoted(catalog.QuoteIdent(column.Name)+" IS NULL"))
		}
	}
	if column := roles.expiryColumn; column != nil {
		name := catalog.QuoteIdent(column.Name)
		add(column.Name+" looks like the end of a row's life", "sql: %s", yamlQuoted(name+" IS NULL OR "+name+" > now()"))
	}
	s.addHints(t, add, note)
	if kind, id := polymorphicColumns(relation); kind != "" {
		note("%s", s.describePolymorphic(kind, id))
	}
	for _, referring := range s.tables {
		if isConsentRegister(referring) && s.denialReasons[referring] != "" && slices.ContainsFunc(s.linksOf(referring),
			func(l tableLink) bool { return l.target == relation }) {
			note("%s looks like a register of consents about it, and is not asked: add consent by records "+
				"(docs/reference/policy.md)", s.policyName(referring.Name))
		}
	}
	if len(roles.vectors) > 0 {
		note("vectors: %s (docs/howto/vector-search.md)", strings.Join(roles.vectors, ", "))
	}
	for _, c := range relation.Columns {
		switch {
		case slices.Contains(roles.secrets, c.Name):
			t.Hidden = append(t.Hidden, c.Name)
		case slices.Contains(roles.contacts, c.Name):
			t.Hidden, t.ContactColumns = append(t.Hidden, c.Name), append(t.ContactColumns, c.Name)
		}
	}
	for _, c := range relation.Columns {
		if c.Virtual && !slices.Contains(t.Hidden, c.Name) &&
			slices.ContainsFunc(c.ComputedFrom, func(from string) bool { return slices.Contains(t.Hidden, from) }) {
			t.Hidden = append(t.Hidden, c.Name) // An error in the computation could quote the hidden value.
		}
	}
	for _, c := range relation.Columns {
		if word := snakeCase(c.Name); isOneOf(word,
			"status state visibility privacy privacy_level sensitivity classification confidentiality") &&
			!slices.Contains(roles.consent, relation.Column(c.Name)) {
			note("%s is not used here%s: does it say who may see a row?", c.Name, s.valuesText(relation.Column(c.Name)))
		}
	}
	return t
}

// describePolymorphic tells how to write a rule for a reference whose table another column names.
func (s *schemaSurvey) describePolymorphic(kind, id string) string {
	return fmt.Sprintf("%s and %s name a row of one of several tables; for each of these write, in an any, all: [ "+
		"status: { column: %s, is: its word }, visible: { its table: { its key: %s } } ]",
		kind, id, yamlFlow(kind), yamlFlow(id))
}

const notUsedText = "%s says who wrote a row, and is not used here"

// addOwner adds the block that says to whom a row belongs.
func (s *schemaSurvey) addOwner(t *Table, roles *tableColumnRoles, add func(string, string, ...any), note func(string,
	...any)) {
	if slices.Contains(s.userTables, t.Relation) || s.userAttribute == nil {
		return
	}
	grant := s.userAttribute.grantColumn(roles)
	switch {
	case roles.ownerColumn != nil:
		s.usedAttributes[s.userAttribute.Name] = true
		add(s.columnEvidence(t.Relation, roles.ownerColumn), "own: { column: %s, is: %s }",
			yamlFlow(roles.ownerColumn.Name), s.userAttribute.Name)
		if grant != nil {
			note("%s looks like a list of grants; if it shows rows to others than their owner, write any: [ own: "+
				"{ column: %s, is: %s }, grant: { column: %s, to: %s } ]",
				grant.Name, yamlFlow(roles.ownerColumn.Name), s.userAttribute.Name, yamlFlow(grant.Name), s.userAttribute.Name)
		}
	case grant != nil:
		s.usedAttributes[s.userAttribute.Name] = true
		add(fmt.Sprintf("%s, of type %s, looks like a list of those whom the row is shown to", grant.Name,
			grant.Type), "grant: { column: %s, to: %s }", yamlFlow(grant.Name), s.userAttribute.Name)
	case roles.authorColumn != nil && s.userAttribute.comparesWith(roles.authorColumn) && len(roles.tenants) == 0 &&
		s.listingRound[t.Relation] > len(s.tables) && len(s.parentLinks[t.Relation]) == 0:
		s.usedAttributes[s.userAttribute.Name] = true
		add(s.columnEvidence(t.Relation, roles.authorColumn)+", and nothing else says whose rows these are",
			"own: { column: %s, is: %s }", yamlFlow(roles.authorColumn.Name), s.userAttribute.Name)
	case roles.authorColumn != nil:
		note(notUsedText, roles.authorColumn.Name)
	}
}

// addConsent adds blocks that require the consent of everybody whom a link table connects with a row. A rule reads the
// link table and the table of people even if the policy does not list them.
func (s *schemaSurvey) addConsent(relation *catalog.Relation, add func(string, string, ...any), note func(string,
	...any)) {
	if s.hasConsentColumn(relation) && s.isPersonTable(relation) || s.isIdentityTable(relation) {
		return
	}
	for _, through := range s.tables {
		links := s.linksOf(through)
		var ownLinks, exists []tableLink
		for _, l := range links {
			switch {
			case l.target == relation:
				ownLinks = append(ownLinks, l)
			case len(s.subjectsOfLink(l)) > 0:
				exists = append(exists, l)
			}
		}
		if through == relation || len(ownLinks) != 1 || len(exists) == 0 || isConsentRegister(through) {
			continue
		}
		name := s.policyName(through.Name)
		if contentColumn, ok := s.isLinkTable(through, links); !ok {
			if contentColumn != "" {
				note("%s names people besides, who are asked for its own rows and not here: by %s it is no table of links",
					name, contentColumn)
			}
			continue
		}
		var backColumns []string
		for i := range ownLinks[0].columns {
			backColumns = append(backColumns, yamlFlow(ownLinks[0].columns[i])+": "+yamlFlow(ownLinks[0].targets[i]))
		}
		first := fmt.Sprintf("%s: { %s }", yamlFlow(name), strings.Join(backColumns, ", "))
		for _, l := range exists {
			for _, subjects := range s.subjectsOfLink(l) {
				s.addSubjectsThrough(name, first, l, subjects, add, note)
			}
		}
	}
}

// subjectsOfLink returns the tables that say whether the persons to whom a link leads have agreed.
func (s *schemaSurvey) subjectsOfLink(l tableLink) []agreementTable {
	switch {
	case len(l.columns) != len(l.target.PrimaryKey) || isConsentRegister(l.target):
		return nil
	case len(l.columns) > 1 || !slices.Equal(l.targets, l.target.PrimaryKey):
		if s.hasConsentColumn(l.target) {
			return []agreementTable{{table: l.target}}
		}
		return nil
	}
	return s.agreementTables(l.target)
}

// addSubjectsThrough adds the block that requires the consent of the persons to whom a link of a link table leads.
func (s *schemaSurvey) addSubjectsThrough(through, first string, l tableLink, subjects agreementTable, add func(string,
	string, ...any),
	note func(string, ...any)) {
	name, a, target := s.policyName(subjects.table.Name), s.agreements(subjects.table), l
	if subjects.table != l.target {
		target.target, target.targets = subjects.table, []string{subjects.column}
	}
	for _, w := range a.wordAgreements {
		add(fmt.Sprintf("%s ties rows to %s, each of whom must have agreed (%s)", through, name, w.evidence), "%s",
			w.yamlBlock(first, target.yamlText(s)))
		if l.isGuessedFromName {
			note("%s", l.evidence(s))
		}
	}
	for _, c := range a.timeColumns {
		note("%s of %s is not asked of those whom %s ties rows to: does it say that one of them has not agreed?", c, name, through)
	}
	for _, reason := range a.unclearReasons {
		note("%s ties rows to %s, where not everything about consent is asked: %s", through, name, reason)
	}
}

// expiryColumn returns the column with the time at which a consent ends, or nil. It is the column whose name begins
// like that of the consent column. If there is none, it is the only one whose name begins like no consent column's.
func (s *schemaSurvey) expiryColumn(relation *catalog.Relation, agreement *catalog.Column) *catalog.Column {
	var ownColumns, unnamedColumns []*catalog.Column
	for _, column := range s.columnRoles[relation].consent {
		if !isExpiryTime(column) || column.Type != "timestamp with time zone" {
			continue
		}
		after := func(status *catalog.Column) bool {
			stem := strings.TrimSuffix(strings.TrimSuffix(snakeCase(status.Name), "_status"), "_state")
			return !isTimeType(status.Type) && strings.HasPrefix(snakeCase(column.Name), stem+"_") && stem != "consent"
		}
		switch {
		case after(agreement):
			ownColumns = append(ownColumns, column)
		case !slices.ContainsFunc(s.columnRoles[relation].consent, after):
			unnamedColumns = append(unnamedColumns, column)
		}
	}
	if len(ownColumns) == 1 {
		return ownColumns[0]
	}
	if len(ownColumns) == 0 && len(unnamedColumns) == 1 {
		return unnamedColumns[0]
	}
	return nil
}

// isExpiryTime reports whether a consent column holds the time at which the consent expires.
func isExpiryTime(c *catalog.Column) bool {
	_, negative := looksLikeConsent(c.Name)
	word := snakeCase(c.Name)
	return isTimeType(c.Type) && !negative && !isWithdrawal(word) &&
		(strings.Contains(word, "expir") || strings.Contains(word, "until"))
}

func isWithdrawal(word string) bool {
	return strings.Contains(word, "withdraw") || strings.Contains(word, "revok")
}

// isLinkTable reports whether a table does little but link other tables. Either its key columns are links, or it has
// few columns and none with text that somebody wrote. If a table has few columns but one with such text, contentColumn
// is its name.
func (s *schemaSurvey) isLinkTable(relation *catalog.Relation, links []tableLink) (contentColumn string, ok bool) {
	var linkColumns []string
	for _, l := range links {
		linkColumns = append(linkColumns, l.columns...)
	}
	isUnbound := func(name string) bool { return !slices.Contains(linkColumns, name) }
	ofLinks := func(key []string) bool { return len(key) > 1 && !slices.ContainsFunc(key, isUnbound) }
	if ofLinks(relation.PrimaryKey) || slices.ContainsFunc(relation.UniqueKeys,
		func(k catalog.Key) bool { return ofLinks(k.Columns) }) {
		return "", true
	}
	if len(relation.Columns) > 6 {
		return "", false
	}
	for i := range relation.Columns {
		if column := &relation.Columns[i]; isUnbound(column.Name) && !slices.Contains(relation.PrimaryKey, column.Name) &&
			s.hasContent(column) {
			return column.Name, false
		}
	}
	return "", true
}

// hasContent reports whether a column may hold text that a person wrote, and not just a word that describes a link.
func (s *schemaSurvey) hasContent(c *catalog.Column) bool {
	values, _ := s.columnValues(c)
	return values == nil && (typeFamily(c.Type) == "text" && !isOneOf(lastWord(snakeCase(c.Name)), linkWords) ||
		isOneOf(c.Type, "json jsonb bytea xml"))
}

// agreementBlock is a block on a consent column. word is the value that the column must have, for consent blocks of
// other tables that refer to this one.
type agreementBlock struct {
	Block
	word string
}

// consentBlock returns the block for a consent column, or the reason why the starter does not understand its values.
func (s *schemaSurvey) consentBlock(relation *catalog.Relation, column *catalog.Column) (out agreementBlock,
	reason string) {
	_, negative := looksLikeConsent(column.Name)
	values, from := s.columnValues(column)
	switch {
	case column.Type == "boolean":
		out.word = "true"
		if negative {
			out.word = "false"
		}
		out.Evidence = column.Name + " is a boolean"
	case typeFamily(column.Type) == "text" || values != nil:
		if negative {
			return out, fmt.Sprintf("%s seems to say no, and its words are not known", column.Name)
		}
		if values == nil {
			out.word, out.Evidence = "granted", fmt.Sprintf(
				"%s: the word is a guess, no enum and no CHECK says which there are", column.Name)
			break
		}
		for _, word := range strings.Fields(yesWords) {
			if i := slices.IndexFunc(values, func(v string) bool { return snakeCase(v) == word }); i >= 0 {
				out.word = values[i]
				break
			}
		}
		if out.word == "" {
			return out, fmt.Sprintf("%s holds %s: which of these means that somebody agreed?", column.Name,
				strings.Join(values, ", "))
		}
		out.Evidence = fmt.Sprintf("%s: %s, by its %s", column.Name, strings.Join(values, ", "), from)
	case isTimeType(column.Type):
		name := catalog.QuoteIdent(column.Name)
		if negative || isWithdrawal(snakeCase(column.Name)) {
			out.Block = Block{YAML: "sql: " + yamlQuoted(name+" IS NULL"), Evidence: column.Name +
				" looks like the time at which consent ended"}
		} else if isExpiryTime(column) {
			if column.Type != "timestamp with time zone" {
				return out, fmt.Sprintf("%s is a %s, which is not compared with the time", column.Name, column.Type)
			}
			out.Block = Block{YAML: "sql: " + yamlQuoted(name+" IS NULL OR "+name+" > now()"),
				Evidence: column.Name + " looks like the time at which consent ends"}
		} else {
			out.Block = Block{YAML: "sql: " + yamlQuoted(name+" IS NOT NULL"), Evidence: column.Name +
				" looks like the time of consent"}
		}
		return out, ""
	default: // The column is an id, a text or a version, which does not say whether somebody agreed.
		return out, ""
	}
	out.YAML = fmt.Sprintf("status: { column: %s, is: %s }", yamlFlow(column.Name), policySpelling(out.word, column))
	return out, ""
}

// policySpelling returns a word in the spelling that a policy file has for a column of this type.
func policySpelling(word string, c *catalog.Column) string {
	if c.Type == "boolean" {
		return word
	}
	return yamlFlow(word)
}

// columnValues returns the values that the column's enum or CHECK allows, and which of both it was.
func (s *schemaSurvey) columnValues(c *catalog.Column) (columnValues []string, from string) {
	if t := s.snap.TypeByOID(c.TypeOID); t != nil && t.Kind == 'e' {
		return t.Labels, "enum"
	}
	return c.AllowedValues, "CHECK"
}

func (s *schemaSurvey) valuesText(c *catalog.Column) string {
	values, _ := s.columnValues(c)
	if len(values) == 0 {
		return ""
	}
	return " (" + strings.Join(values, ", ") + ")"
}

func (s *schemaSurvey) columnEvidence(r *catalog.Relation, c *catalog.Column) string {
	if target := s.referencedTable(r, c.Name); target != nil {
		return fmt.Sprintf("%s refers to %s", c.Name, s.policyName(target.Name))
	}
	return fmt.Sprintf("%s, of type %s, by its name", c.Name, c.Type)
}
