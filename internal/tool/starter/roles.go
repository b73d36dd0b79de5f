package starter

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// tableColumnRoles are the roles that the columns of a table seem to have, such as owner or tenant.
type tableColumnRoles struct {
	ownerColumn, authorColumn *catalog.Column
	tenants                   []*catalog.Column
	consent                   []*catalog.Column
	grants                    []*catalog.Column
	deletionColumns           []*catalog.Column
	expiryColumn              *catalog.Column
	vectors                   []string
	secrets                   []string
	contacts                  []string
}

// tableLink is a foreign key, or a column that is named like a foreign key.
type tableLink struct {
	target            *catalog.Relation
	columns           []string // the columns that refer to the other table
	targets           []string // the columns of the other table to which they refer
	isGuessedFromName bool     // there is no foreign key, only a column with such a name
	isFromRowPolicy   bool     // there is no foreign key, only a comparison in a row policy
	notNull           bool

	onDelete catalog.Action // what the foreign key does to the link if the other table's row is deleted
}

// findAccounts finds the tables of accounts and the tables of tenants, by their names.
func (s *schemaSurvey) findAccounts() {
	for _, relation := range s.tables {
		if len(relation.PrimaryKey) != 1 || typeFamily(relation.Column(relation.PrimaryKey[0]).Type) == "" {
			continue
		}
		word := lastWord(singularWord(relation.Name.Name))
		switch {
		case isOneOf(word, tenantTables):
			s.tenantTables = append(s.tenantTables, relation)
		case isOneOf(word, "user login") || isOneOf(singularWord(relation.Name.Name), accountTables):
			s.userTables = append(s.userTables, relation)
		}
	}
	// If there is a table of users, each row of a table of accounts is a tenant, to which users belong. Rows of tables of
	// members and profiles are then people, not accounts.
	if plainIndex := slices.IndexFunc(s.userTables, func(relation *catalog.Relation) bool {
		return isOneOf(lastWord(singularWord(relation.Name.Name)), "user login")
	}); plainIndex >= 0 {
		accounts := s.userTables[:0:0]
		for _, relation := range s.userTables {
			switch {
			case isOneOf(lastWord(singularWord(relation.Name.Name)), "user login"):
				accounts = append(accounts, relation)
			case singularWord(relation.Name.Name) == "account":
				s.tenantTables = append(s.tenantTables, relation)
			}
		}
		s.userTables = accounts
	}
	for _, relation := range s.tables { // A profile's primary key may be the key of its account.
		if len(relation.PrimaryKey) == 1 && snakeCase(relation.PrimaryKey[0]) == "id" &&
			slices.Contains(s.userTables, s.referencedTable(relation, relation.PrimaryKey[0])) && !s.isIdentityTable(relation) {
			s.userTables = append(s.userTables, relation)
		}
	}
	for _, relation := range s.tables {
		s.columnRoles[relation] = s.assignRoles(relation)
	}
}

// assignRoles finds which role each column of a table has, by names, types and keys.
func (s *schemaSurvey) assignRoles(relation *catalog.Relation) *tableColumnRoles {
	out := &tableColumnRoles{}
	ownerRank := len(strings.Fields(ownerStems))
	for i := range relation.Columns {
		column := &relation.Columns[i]
		target, name, word := s.referencedTable(relation, column.Name), snakeCase(column.Name), columnStem(column.Name)
		mayBeUser, mayBeTenant := target == nil || slices.Contains(s.userTables, target), target == nil ||
			slices.Contains(s.tenantTables, target)
		switch {
		case typeFamily(column.Type) == "" || column.Generated || s.isIdentityTable(relation) &&
			slices.Equal(relation.PrimaryKey, []string{column.Name}):
		case mayBeTenant && (target != nil || s.isTenantStem(word)):
			out.tenants = append(out.tenants, column)
		case mayBeUser && (isOneOf(word, ownerStems) || isOneOf(name, ownerStems) ||
			target != nil && word == lastWord(singularWord(target.Name.Name))):
			if name == "uid" && target == nil && isUnique(relation, column.Name) {
				break // The column is the row's own key, not a user's.
			}
			if rank := slices.Index(strings.Fields(ownerStems), word); out.ownerColumn == nil || rank >= 0 && rank < ownerRank {
				out.ownerColumn, ownerRank = column, max(rank, 0)
			}
		case target != nil && mayBeUser && isOneOf(word, holderStems):
			if out.ownerColumn == nil {
				out.ownerColumn = column
			}
		case mayBeUser && (isOneOf(word, authorStems) || isOneOf(name, authorStems)) && out.authorColumn == nil:
			out.authorColumn = column
		}
		if !column.Virtual { // Rules cannot read virtual columns.
			s.assignVisibilityRole(out, column, name)
		}
		if s.isVector(column) {
			out.vectors = append(out.vectors, column.Name)
		}
		if looksLikeContact(column.Name) && s.hasContactType(column) && !isKeyOrReference(relation, column.Name) {
			out.contacts = append(out.contacts, column.Name)
		}
		if looksSecret(column.Name) && !isTokenCount(column) {
			out.secrets = append(out.secrets, column.Name)
		}
	}
	return out
}

// assignVisibilityRole adds a column that decides who sees a row to the fields of out.
func (s *schemaSurvey) assignVisibilityRole(out *tableColumnRoles, column *catalog.Column, name string) {
	if s.isConsentColumn(column) {
		out.consent = append(out.consent, column)
	}
	if isOneOf(name, grantColumns) && canHoldGrants(column.Type) {
		out.grants = append(out.grants, column)
	}
	if isOneOf(name, deletionTimes) && isTimeType(column.Type) && !column.NotNull || isOneOf(name, deletionFlags) &&
		column.Type == "boolean" {
		out.deletionColumns = append(out.deletionColumns, column)
	}
	if isOneOf(name, expiryColumns) && column.Type == "timestamp with time zone" {
		out.expiryColumn = column
	}
}

// isConsentColumn reports whether a column says to what somebody agreed: by its name, the name of its enum, or the
// values that it allows.
func (s *schemaSurvey) isConsentColumn(column *catalog.Column) bool {
	consent, _ := looksLikeConsent(column.Name)
	if !consent {
		if t := s.snap.TypeByOID(column.TypeOID); t != nil && t.Kind == 'e' {
			consent, _ = looksLikeConsent(t.Name.Name)
		}
	}
	if consent {
		return s.canHoldConsent(column)
	}
	values, _ := s.columnValues(column)
	return areOneOf(values, grantWords) && areOneOf(values, refuseWords)
}

func areOneOf(values []string, words string) bool {
	return slices.ContainsFunc(values, func(v string) bool { return isOneOf(snakeCase(v), words) })
}

// isUnique reports whether no two rows share a column's value.
func isUnique(r *catalog.Relation, column string) bool {
	return slices.ContainsFunc(r.UniqueKeys, func(k catalog.Key) bool { return slices.Equal(k.Columns, []string{column}) })
}

// polymorphicColumns returns two columns, x_type and x_id, of which the first names a table and the second a row of it.
func polymorphicColumns(relation *catalog.Relation) (kind, id string) {
	for _, c := range relation.Columns {
		word, ok := strings.CutSuffix(snakeCase(c.Name), "_type")
		if !ok || typeFamily(c.Type) != "text" {
			continue
		}
		for _, other := range relation.Columns {
			if snakeCase(other.Name) == word+"_id" && typeFamily(other.Type) != "" && len(keysOf(relation, other.Name)) == 0 {
				return c.Name, other.Name
			}
		}
	}
	return "", ""
}

// isKeyOrReference reports whether a column belongs to the primary key or to a foreign key.
func isKeyOrReference(r *catalog.Relation, column string) bool {
	return slices.Contains(r.PrimaryKey, column) ||
		slices.ContainsFunc(r.ForeignKeys, func(k catalog.ForeignKey) bool { return slices.Contains(k.Columns, column) })
}

func (s *schemaSurvey) hasContactType(c *catalog.Column) bool {
	sqlType := c.Type
	if t := s.snap.TypeByOID(c.TypeOID); t != nil && t.Kind == 'd' {
		sqlType = t.BaseName
	}
	return typeFamily(sqlType) == "text" || strings.HasSuffix(sqlType, "citext")
}

// canHoldConsent reports whether a consent column can say that somebody has agreed. The text, version or number of a
// consent cannot.
func (s *schemaSurvey) canHoldConsent(c *catalog.Column) bool {
	values, _ := s.columnValues(c)
	return values != nil || c.Type == "boolean" || isTimeType(c.Type) || typeFamily(c.Type) == "text" &&
		isOneOf(lastWord(strings.TrimSuffix(strings.TrimSuffix(snakeCase(c.Name), "_status"), "_state")), "consent in")
}

// isIdentityTable reports whether a table is a table of accounts or of tenants.
func (s *schemaSurvey) isIdentityTable(r *catalog.Relation) bool {
	return slices.Contains(s.userTables, r) || slices.Contains(s.tenantTables, r)
}

// isTenantStem reports whether a column with this stem names a tenant. "account" does if tables of accounts are
// tenants.
func (s *schemaSurvey) isTenantStem(word string) bool {
	return isOneOf(word, tenantStems) || slices.ContainsFunc(s.tenantTables,
		func(r *catalog.Relation) bool { return singularWord(r.Name.Name) == word })
}

func keysOf(r *catalog.Relation, column string) []catalog.ForeignKey {
	var out []catalog.ForeignKey
	for _, k := range r.ForeignKeys {
		if len(k.Columns) == 1 && k.Columns[0] == column {
			out = append(out, k)
		}
	}
	return out
}

// referencedTable returns the table to which the column has a foreign key of its own, or nil.
func (s *schemaSurvey) referencedTable(r *catalog.Relation, column string) *catalog.Relation {
	for _, k := range keysOf(r, column) {
		if target, ok := s.findRelation(k.Target); ok {
			return target
		}
	}
	return nil
}

// linksOf returns the links of a table: foreign keys, and columns that are named like foreign keys.
func (s *schemaSurvey) linksOf(relation *catalog.Relation) []tableLink {
	var out []tableLink
	boundColumns := map[string]bool{}
	for _, k := range relation.ForeignKeys {
		target, ok := s.findRelation(k.Target)
		if !ok || slices.ContainsFunc(out, func(l tableLink) bool {
			return l.target == target && slices.Equal(l.columns,
				k.Columns)
		}) {
			continue
		}
		l := tableLink{target: target, columns: k.Columns, targets: k.TargetColumns, notNull: true, onDelete: k.OnDelete}
		for _, c := range k.Columns {
			boundColumns[c] = true
			l.notNull = l.notNull && relation.Column(c).NotNull
		}
		out = append(out, l)
	}
	for i := range relation.Columns {
		column := &relation.Columns[i]
		// A column that is named like a table without _id counts as a link only if it is a number or a uuid.
		isPlainName := columnStem(column.Name) == snakeCase(column.Name)
		if boundColumns[column.Name] || column.Virtual || typeFamily(column.Type) == "" || isPlainName &&
			typeFamily(column.Type) == "text" {
			continue
		}
		for _, target := range s.tables {
			if target == relation || len(target.PrimaryKey) != 1 || singularWord(target.Name.Name) != columnStem(column.Name) {
				continue
			}
			key := target.Column(target.PrimaryKey[0])
			if typeFamily(key.Type) == typeFamily(column.Type) && key.Collation == column.Collation &&
				target.Name.Schema == relation.Name.Schema {
				out = append(out, tableLink{target: target, columns: []string{column.Name}, targets: target.PrimaryKey,
					isGuessedFromName: true, notNull: column.NotNull})
				break
			}
		}
	}
	return out
}

func (l tableLink) yamlText(s *schemaSurvey) string {
	var pairs []string
	for i := range l.columns {
		pairs = append(pairs, yamlFlow(l.targets[i])+": "+yamlFlow(l.columns[i]))
	}
	return fmt.Sprintf("%s: { %s }", yamlFlow(s.policyName(l.target.Name)), strings.Join(pairs, ", "))
}

func (l tableLink) evidence(s *schemaSurvey) string {
	columns := strings.Join(l.columns, ", ")
	if l.isGuessedFromName {
		return fmt.Sprintf("%s is named after %s and has the type of its key; no foreign key says so", columns,
			s.policyName(l.target.Name))
	}
	if l.isFromRowPolicy {
		return fmt.Sprintf("%s is compared with the key of %s, though no foreign key says so", columns,
			s.policyName(l.target.Name))
	}
	return fmt.Sprintf("%s refers to %s", columns, s.policyName(l.target.Name))
}

// typeFamily returns the same name for types that an attribute can be compared with alike; "": no attribute can.
func typeFamily(sqlType string) string {
	switch {
	case sqlType == "uuid":
		return "uuid"
	case sqlType == "smallint", sqlType == "integer", sqlType == "bigint":
		return "integer"
	case sqlType == "text", sqlType == "character varying", strings.HasPrefix(sqlType, "character varying(") &&
		strings.HasSuffix(sqlType, ")"):
		return "text"
	}
	return ""
}

func canHoldGrants(sqlType string) bool {
	return strings.HasSuffix(sqlType, "[]") && typeFamily(strings.TrimSuffix(sqlType, "[]")) != "" ||
		sqlType == "jsonb" || sqlType == "json" || sqlType == "text"
}

func isTimeType(sqlType string) bool {
	return strings.HasPrefix(sqlType, "timestamp") || sqlType == "date"
}

func (s *schemaSurvey) isVector(c *catalog.Column) bool {
	t := s.snap.TypeByOID(c.TypeOID)
	return t != nil && (t.Extension == "vector" || t.Extension == "cube")
}
