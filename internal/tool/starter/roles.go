package starter

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// tableColumnRoles are the meanings that the columns of a table seem to have, such as owner or tenant.
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

// tableLink is a foreign key, or a column that is named like one.
type tableLink struct {
	target            *catalog.Relation
	columns           []string // columns of the table that has the link
	targets           []string // columns of the table to which the link leads
	isGuessedFromName bool     // the link is known only from the column's name
	isFromRowPolicy   bool     // the link is only known from a comparison in a row policy
	notNull           bool

	onDelete catalog.Action // for a foreign key: what deleting the row of the other table does
}

// findAccounts finds the tables of accounts and of tenants.
func (s *schemaSurvey) findAccounts() {
	for _, r := range s.tables {
		if len(r.PrimaryKey) != 1 || typeFamily(r.Column(r.PrimaryKey[0]).Type) == "" {
			continue
		}
		word := lastWord(singularWord(r.Name.Name))
		switch {
		case isOneOf(word, tenantTables):
			s.tenantTables = append(s.tenantTables, r)
		case isOneOf(word, "user login") || isOneOf(singularWord(r.Name.Name), accountTables):
			s.userTables = append(s.userTables, r)
		}
	}
	// If there is a table of users, accounts are what users belong to, and members and profiles are people of their own.
	if plain := slices.IndexFunc(s.userTables, func(r *catalog.Relation) bool {
		return isOneOf(lastWord(singularWord(r.Name.Name)), "user login")
	}); plain >= 0 {
		accounts := s.userTables[:0:0]
		for _, r := range s.userTables {
			switch {
			case isOneOf(lastWord(singularWord(r.Name.Name)), "user login"):
				accounts = append(accounts, r)
			case singularWord(r.Name.Name) == "account":
				s.tenantTables = append(s.tenantTables, r)
			}
		}
		s.userTables = accounts
	}
	for _, r := range s.tables { // Profiles may have the account's key as their own.
		if len(r.PrimaryKey) == 1 && snakeCase(r.PrimaryKey[0]) == "id" &&
			slices.Contains(s.userTables, s.referencedTable(r, r.PrimaryKey[0])) && !s.isIdentityTable(r) {
			s.userTables = append(s.userTables, r)
		}
	}
	for _, r := range s.tables {
		s.columnRoles[r] = s.assignRoles(r)
	}
}

// assignRoles gives each column of a table its role.
func (s *schemaSurvey) assignRoles(r *catalog.Relation) *tableColumnRoles {
	out := &tableColumnRoles{}
	ownerAt := len(strings.Fields(ownerStems))
	for i := range r.Columns {
		c := &r.Columns[i]
		to, name, word := s.referencedTable(r, c.Name), snakeCase(c.Name), columnStem(c.Name)
		ofUsers, ofTenants := to == nil || slices.Contains(s.userTables, to), to == nil || slices.Contains(s.tenantTables, to)
		switch {
		case typeFamily(c.Type) == "" || c.Generated || s.isIdentityTable(r) && slices.Equal(r.PrimaryKey, []string{c.Name}):
		case ofTenants && (to != nil || s.isTenantStem(word)):
			out.tenants = append(out.tenants, c)
		case ofUsers && (isOneOf(word, ownerStems) || isOneOf(name, ownerStems) ||
			to != nil && word == lastWord(singularWord(to.Name.Name))):
			if name == "uid" && to == nil && isUnique(r, c.Name) {
				break // The column is the row's own key.
			}
			if rank := slices.Index(strings.Fields(ownerStems), word); out.ownerColumn == nil || rank >= 0 && rank < ownerAt {
				out.ownerColumn, ownerAt = c, max(rank, 0)
			}
		case to != nil && ofUsers && isOneOf(word, holderStems):
			if out.ownerColumn == nil {
				out.ownerColumn = c
			}
		case ofUsers && (isOneOf(word, authorStems) || isOneOf(name, authorStems)) && out.authorColumn == nil:
			out.authorColumn = c
		}
		if !c.Virtual { // No rule reads a virtual column.
			s.assignVisibilityRole(out, c, name)
		}
		if s.isVector(c) {
			out.vectors = append(out.vectors, c.Name)
		}
		if looksLikeContact(c.Name) && s.contactType(c) && !isKeyOrReference(r, c.Name) {
			out.contacts = append(out.contacts, c.Name)
		}
		if looksSecret(c.Name) && !isTokenCount(c) {
			out.secrets = append(out.secrets, c.Name)
		}
	}
	return out
}

// assignVisibilityRole gives a column that decides who sees the row its role.
func (s *schemaSurvey) assignVisibilityRole(out *tableColumnRoles, c *catalog.Column, name string) {
	if s.isConsentColumn(c) {
		out.consent = append(out.consent, c)
	}
	if isOneOf(name, grantColumns) && canHoldGrants(c.Type) {
		out.grants = append(out.grants, c)
	}
	if isOneOf(name, deletionTimes) && isTimeType(c.Type) && !c.NotNull || isOneOf(name, deletionFlags) &&
		c.Type == "boolean" {
		out.deletionColumns = append(out.deletionColumns, c)
	}
	if isOneOf(name, expiryColumns) && c.Type == "timestamp with time zone" {
		out.expiryColumn = c
	}
}

// isConsentColumn reports whether a column says to what somebody agreed: by its name, the name of its enum, or the
// words that it may have.
func (s *schemaSurvey) isConsentColumn(c *catalog.Column) bool {
	consent, _ := looksLikeConsent(c.Name)
	if !consent {
		if t := s.snap.TypeByOID(c.TypeOID); t != nil && t.Kind == 'e' {
			consent, _ = looksLikeConsent(t.Name.Name)
		}
	}
	if consent {
		return s.canHoldConsent(c)
	}
	values, _ := s.columnValues(c)
	return areOneOf(values, grantWords) && areOneOf(values, refuseWords)
}

func areOneOf(values []string, words string) bool {
	return slices.ContainsFunc(values, func(v string) bool { return isOneOf(snakeCase(v), words) })
}

// isUnique reports whether no two rows share a column's value.
func isUnique(r *catalog.Relation, column string) bool {
	return slices.ContainsFunc(r.UniqueKeys, func(k catalog.Key) bool { return slices.Equal(k.Columns, []string{column}) })
}

// polymorphicColumns returns the two columns that name a row of one of several tables: x_id with x_type.
func polymorphicColumns(r *catalog.Relation) (kind, id string) {
	for _, c := range r.Columns {
		word, ok := strings.CutSuffix(snakeCase(c.Name), "_type")
		if !ok || typeFamily(c.Type) != "text" {
			continue
		}
		for _, other := range r.Columns {
			if snakeCase(other.Name) == word+"_id" && typeFamily(other.Type) != "" && len(keysOf(r, other.Name)) == 0 {
				return c.Name, other.Name
			}
		}
	}
	return "", ""
}

// isKeyOrReference reports whether a column identifies rows of its table or refers to others.
func isKeyOrReference(r *catalog.Relation, column string) bool {
	return slices.Contains(r.PrimaryKey, column) ||
		slices.ContainsFunc(r.ForeignKeys, func(k catalog.ForeignKey) bool { return slices.Contains(k.Columns, column) })
}

func (s *schemaSurvey) contactType(c *catalog.Column) bool {
	sqlType := c.Type
	if t := s.snap.TypeByOID(c.TypeOID); t != nil && t.Kind == 'd' {
		sqlType = t.BaseName
	}
	return typeFamily(sqlType) == "text" || strings.HasSuffix(sqlType, "citext")
}

// canHoldConsent reports whether a column about consent can say that there is one, and is not its text, version or
// number.
func (s *schemaSurvey) canHoldConsent(c *catalog.Column) bool {
	values, _ := s.columnValues(c)
	return values != nil || c.Type == "boolean" || isTimeType(c.Type) || typeFamily(c.Type) == "text" &&
		isOneOf(lastWord(strings.TrimSuffix(strings.TrimSuffix(snakeCase(c.Name), "_status"), "_state")), "consent in")
}

// isIdentityTable reports whether a table is one of accounts or of tenants.
func (s *schemaSurvey) isIdentityTable(r *catalog.Relation) bool {
	return slices.Contains(s.userTables, r) || slices.Contains(s.tenantTables, r)
}

// isTenantStem reports whether a column with this stem names a tenant; "account" does so where accounts have users of
// their own.
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

// referencedTable returns the table that a column refers to alone, by a foreign key.
func (s *schemaSurvey) referencedTable(r *catalog.Relation, column string) *catalog.Relation {
	for _, k := range keysOf(r, column) {
		if to, ok := s.relation(k.Target); ok {
			return to
		}
	}
	return nil
}

// linksOf returns the foreign keys of a table, and the columns that are named like foreign keys.
func (s *schemaSurvey) linksOf(r *catalog.Relation) []tableLink {
	var out []tableLink
	bound := map[string]bool{}
	for _, k := range r.ForeignKeys {
		to, ok := s.relation(k.Target)
		if !ok || slices.ContainsFunc(out, func(l tableLink) bool {
			return l.target == to && slices.Equal(l.columns,
				k.Columns)
		}) {
			continue
		}
		l := tableLink{target: to, columns: k.Columns, targets: k.TargetColumns, notNull: true, onDelete: k.OnDelete}
		for _, c := range k.Columns {
			bound[c] = true
			l.notNull = l.notNull && r.Column(c).NotNull
		}
		out = append(out, l)
	}
	for i := range r.Columns {
		c := &r.Columns[i]
		// A link by the table's name alone must be a number or a uuid, not a word.
		plain := columnStem(c.Name) == snakeCase(c.Name)
		if bound[c.Name] || c.Virtual || typeFamily(c.Type) == "" || plain && typeFamily(c.Type) == "text" {
			continue
		}
		for _, to := range s.tables {
			if to == r || len(to.PrimaryKey) != 1 || singularWord(to.Name.Name) != columnStem(c.Name) {
				continue
			}
			key := to.Column(to.PrimaryKey[0])
			if typeFamily(key.Type) == typeFamily(c.Type) && key.Collation == c.Collation && to.Name.Schema == r.Name.Schema {
				out = append(out, tableLink{target: to, columns: []string{c.Name}, targets: to.PrimaryKey,
					isGuessedFromName: true, notNull: c.NotNull})
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

// typeFamily returns a name for the types whose values an attribute can equal.
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
