package predicate_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

type object map[string]any

// policy draws a policy that lists every table. Its text is JSON, which is valid YAML.
func (s *schema) policy() string {
	attributes := object{}
	for name, t := range attributeTypes {
		attributes[name] = object{"type": t, "source": "credential"}
	}
	for _, family := range families {
		attributes["live_"+family] = s.liveAttribute(family, false)
		attributes["opt_"+family] = s.liveAttribute(family, true)
		attributes["calc_"+family] = s.expressionAttribute(family)
	}
	tables := object{}
	for i, t := range s.tables {
		var rows []any
		for range 1 + s.IntN(2) {
			rows = append(rows, s.block(t, i, 2))
		}
		tables[s.qualifiedName(t)] = object{"rows": rows}
	}
	return plainJSON(object{"version": 1, "attributes": attributes, "tables": tables})
}

func (s *schema) qualifiedName(t *table) string { return s.name + "." + t.name }

// block draws a block for rows of the i-th table. The block visible refers to tables before it, so there are no
// circles.
func (s *schema) block(t *table, i, depth int) any {
	kinds := []string{"shared", "own", "tenant", "grant", "grant", "status", "sql", "sql", "consent", "consent",
		"consent", "not", "recorded", "recorded", "registered", "registered"}
	if i > 0 {
		kinds = append(kinds, "visible", "visible", "visible", "derived", "derived")
	}
	if depth > 0 {
		kinds = append(kinds, "all", "any", "any", "any", "any")
	}
	if s.chance(3) {
		return "open"
	}
	switch kind := s.pick(kinds...); kind {
	case "all", "any":
		var parts []any
		for range 1 + s.IntN(3) {
			parts = append(parts, s.block(t, i, depth-1))
		}
		return object{kind: parts}
	case "not":
		return object{"not": s.ownBlock(t, depth)}
	case "consent":
		if b := s.consentBlock(t); b != nil {
			return object{"consent": b}
		}
	case "recorded":
		if b := s.recordBlock(t); b != nil {
			return object{"consent": b}
		}
	case "registered":
		if b := s.registryBlock(t); b != nil {
			return object{"consent": b}
		}
	case "shared":
		if b := s.sharedBlock(t); b != nil {
			return object{"shared": b}
		}
	case "derived":
		if b := s.derivedBlock(t, i); b != nil {
			return object{"derived": b}
		}
	case "visible":
		target := s.tables[s.IntN(i)]
		if from, to := s.link(t, target); from != nil {
			visible := object{s.qualifiedName(target): s.pairs(t, target, from, to)}
			if s.chance(25) {
				visible["where"] = []any{s.ownBlock(target, 0)}
			}
			return object{"visible": visible}
		}
	}
	return s.ownBlock(t, depth)
}

// ownBlock draws a block over the row's own columns.
func (s *schema) ownBlock(t *table, depth int) any {
	if depth > 0 && s.chance(25) {
		parts := []any{s.ownBlock(t, depth-1), s.ownBlock(t, depth-1)}
		return object{s.pick("all", "any"): parts}
	}
	switch s.pick("own", "tenant", "grant", "status", "sql", "not") {
	case "not":
		return object{"not": s.ownBlock(t, depth-1)}
	case "own":
		return object{"own": s.comparisonBlock(t)}
	case "tenant":
		b := s.comparisonBlock(t)
		if attribute := b["is"].(string); s.chance(70) {
			family := attribute[strings.IndexByte(attribute, '_')+1:]
			if b["shared"] = any(s.value(family)); b["shared"] == "" {
				b["shared"] = "a"
			}
		}
		if s.chance(30) {
			b["shared"] = nil
		}
		return object{"tenant": b}
	case "grant":
		if grantColumns := t.columnsWhere(func(c *tableColumn) bool {
			return c.use == list || c.use == document ||
				c.use == jsonText
		}); len(grantColumns) > 0 {
			return object{"grant": s.grantBlock(grantColumns[s.IntN(len(grantColumns))])}
		}
	case "sql":
		return object{"sql": s.expression(t, 2)}
	}
	column := t.columnsWhere(func(c *tableColumn) bool { return c.use == statusSQL })[0]
	statusValue := s.pick("granted", "granted", "refused", "none")
	if column.sqlType == "boolean" {
		statusValue = s.pick("true", "false")
	}
	return object{"status": object{"column": column.name, "is": statusValue}}
}

// attribute draws a prefix of an attribute's name. The first two prefixes are those of the credential's attributes.
func (s *schema) attribute(prefixes ...string) string {
	if s.credentialOnly {
		prefixes = prefixes[:2]
	}
	return s.pick(prefixes...)
}

func (s *schema) comparisonBlock(t *table) object {
	columns := t.columnsWhere(func(c *tableColumn) bool {
		return c.isComparable() || c.sqlType == "public.mood" || c.family == "character"
	})
	c := columns[s.IntN(len(columns))]
	family := c.family
	if c.use == specialType {
		family = "text"
	}
	return object{"column": c.name, "is": s.attribute("one_", "one_", "many_", "live_", "opt_", "calc_") + family}
}

func (s *schema) grantBlock(c *tableColumn) object {
	families := families
	if c.use == list && c.family != "text" {
		families = []string{c.family}
	}
	var granteeNames []string
	for range 1 + s.IntN(3) {
		granteeNames = append(granteeNames, s.attribute("one_", "many_", "live_", "opt_", "opt_", "calc_")+s.pick(families...))
	}
	b := object{"column": c.name, "to": granteeNames}
	if len(families) > 1 && s.chance(50) {
		b["all"] = "*"
	}
	return b
}

// link finds a column of t and a column of target that can be compared. It prefers a foreign key and the key to which
// that refers.
func (s *schema) link(t, target *table) (from, to *tableColumn) {
	type pair struct{ from, to *tableColumn }
	var preferred, matching []pair
	for _, a := range t.columnsWhere((*tableColumn).isLinkable) {
		for _, b := range target.columnsWhere((*tableColumn).isLinkable) {
			if a.family != b.family || collation(a) != collation(b) {
				continue
			}
			matching = append(matching, pair{a, b})
			if a.target == target && b == target.key || b.target == t && a == t.key {
				preferred = append(preferred, pair{a, b})
			}
		}
	}
	switch {
	case len(preferred) > 0 && s.chance(93):
		matching = preferred
	case s.chance(70): // joins over columns with few values have many rows
		matching = nil
	}
	if len(matching) == 0 {
		return nil, nil
	}
	p := matching[s.IntN(len(matching))]
	return p.from, p.to
}

// pairs returns the columns of a link, sometimes two pairs.
func (s *schema) pairs(t, target *table, from, to *tableColumn) object {
	out := object{to.name: from.name}
	if target.composite && s.chance(70) || s.chance(25) {
		second := target.columns[0]
		if !target.composite {
			linkable := target.columnsWhere((*tableColumn).isLinkable)
			second = linkable[s.IntN(len(linkable))]
		}
		for _, c := range t.columnsWhere((*tableColumn).isLinkable) {
			if c.family == second.family && collation(c) == collation(second) && out[second.name] == nil && s.chance(60) {
				out[second.name] = c.name
			}
		}
	}
	return out
}

func collation(c *tableColumn) bool { return strings.Contains(c.sqlType, "COLLATE") }

func (s *schema) consentBlock(t *table) object {
	var steps []any
	lastTable, isTracked := t, true
	for range 1 + s.IntN(2) {
		target := s.tables[s.IntN(len(s.tables))]
		from, to := s.link(lastTable, target)
		if from == nil {
			break
		}
		pairs := s.pairs(lastTable, target, from, to)
		isTracked = isTracked && s.hasTrackedTypes(lastTable, target, pairs)
		steps = append(steps, object{s.qualifiedName(target): pairs})
		lastTable = target
	}
	if steps == nil {
		return nil
	}
	column := lastTable.columnsWhere(func(c *tableColumn) bool { return c.use == statusSQL })[0]
	statusValue := "granted"
	if column.sqlType == "boolean" {
		statusValue = "true"
	}
	b := object{"every": steps, "status": column.name, "is": statusValue}
	// attributes are compared without a clock
	if instants := lastTable.columnsWhere(func(c *tableColumn) bool { return c.use == instant }); !s.credentialOnly && len(instants) > 0 &&
		s.chance(40) {
		b["expires"] = instants[0].name
	}
	if t.primary && isTracked && s.chance(40) {
		b["materialize"] = true
	}
	return b
}

// hasTrackedTypes tells whether the columns of a link have types whose changes triggers can record.
func (s *schema) hasTrackedTypes(t, target *table, pairs object) bool {
	column := func(ofTable *table, name string) *tableColumn {
		return ofTable.columnsWhere(func(c *tableColumn) bool { return c.name == name })[0]
	}
	for to, from := range pairs {
		for _, c := range []*tableColumn{column(target, to), column(t, from.(string))} {
			if !slices.Contains([]string{"uuid", "integer", "text"}, c.family) {
				return false
			}
		}
	}
	return true
}

// recordBlock draws a block for consent by records. Any table may serve as the table of records, as long as its ids
// have the right type.
func (s *schema) recordBlock(t *table) object {
	b := object{}
	subjectTable := t
	if s.chance(30) {
		target := s.tables[s.IntN(len(s.tables))]
		if from, granteeSpec := s.link(t, target); from != nil {
			b["every"] = []any{object{s.qualifiedName(target): s.pairs(t, target, from, granteeSpec)}}
			subjectTable = target
		}
	}
	lists := subjectTable.columnsWhere(func(c *tableColumn) bool { return c.use == list || c.use == document || c.use == jsonText })
	var subject *tableColumn
	if len(lists) > 0 && s.chance(75) {
		subject = lists[s.IntN(len(lists))]
		b["subjects"] = subject.name
	} else {
		comparableColumns := subjectTable.columnsWhere((*tableColumn).isComparable)
		subject = comparableColumns[s.IntN(len(comparableColumns))]
		b["subject"] = subject.name
	}
	comparableColumn := func(r *table, column *tableColumn) *tableColumn {
		columns := r.columnsWhere(func(c *tableColumn) bool {
			return c.isComparable() && c.family == column.family && (collation(c) == collation(column))
		})
		if len(columns) == 0 {
			return nil
		}
		return columns[s.IntN(len(columns))]
	}
	record := s.tables[s.IntN(len(s.tables))]
	grantor := comparableColumn(record, subject)
	if grantor == nil {
		return nil
	}
	if s.chance(70) {
		b["but"] = []string{s.pick("one_", "many_") + subject.family}
	}
	grantees := record.columnsWhere(func(c *tableColumn) bool { return c.isComparable() })
	grantee := grantees[s.IntN(len(grantees))]
	granteeSpec := object{"column": grantee.name, "to": []string{s.pick("one_", "many_") + grantee.family, "many_" + grantee.family}}
	if grantee.family == "text" && s.chance(50) {
		granteeSpec["all"] = "*"
	}
	r := object{"table": s.qualifiedName(record), "grantor": grantor.name, "grantee": granteeSpec}
	matchPairs := func(target *table) object {
		from, granteeSpec := s.link(t, target)
		if from == nil {
			return nil
		}
		return s.pairs(t, target, from, granteeSpec)
	}
	if s.chance(30) {
		if pairs := matchPairs(record); pairs != nil {
			r["match"] = pairs
		}
	}
	if s.chance(50) {
		table := s.tables[s.IntN(len(s.tables))]
		ward, guardian := comparableColumn(table, subject), comparableColumn(table, grantor)
		if ward != nil && guardian != nil {
			g := object{"table": s.qualifiedName(table), "subject": ward.name, "guardian": guardian.name}
			if s.chance(20) {
				if pairs := matchPairs(table); pairs != nil {
					g["match"] = pairs
				}
			}
			if s.chance(20) {
				g["where"] = []any{s.ownBlock(table, 0)}
			}
			r["guardians"] = g
		}
	}
	if s.chance(40) {
		scopes := record.columnsWhere(func(c *tableColumn) bool { return c.isComparable() })
		scope := scopes[s.IntN(len(scopes))]
		scopeSpec := object{"column": scope.name}
		if c := comparableColumn(t, scope); c != nil && s.chance(70) {
			scopeSpec["is"] = []string{c.name}
		}
		if listColumns := t.columnsWhere(func(c *tableColumn) bool {
			return (c.use == list || c.use == document || c.use == jsonText) && c.family == scope.family && collation(scope) == collation(c)
		}); len(listColumns) > 0 && s.chance(70) {
			scopeSpec["in"] = []string{listColumns[s.IntN(len(listColumns))].name}
		}
		if scope.family == "text" && s.chance(50) {
			scopeSpec["all"] = "*"
		}
		if len(scopeSpec) > 1 {
			r["scope"] = scopeSpec
		}
	}
	for _, key := range []string{"revoked", "expires"} {
		if instants := record.columnsWhere(func(c *tableColumn) bool { return c.use == instant }); len(instants) > 0 && s.chance(20) {
			r[key] = instants[0].name
		}
	}
	if s.chance(20) {
		r["where"] = []any{s.ownBlock(record, 0)}
	}
	b["record"] = r
	return b
}

// expression draws an expression over the table's columns.
func (s *schema) expression(t *table, depth int) string {
	if depth > 0 && s.chance(50) {
		a, b := s.expression(t, depth-1), s.expression(t, depth-1)
		return s.pick("("+a+" AND "+b+")", "("+a+" OR "+b+")", "NOT ("+a+")", "("+a+") IS NOT TRUE",
			"("+a+") IS UNKNOWN", "CASE WHEN "+a+" THEN "+b+" END", "coalesce("+a+", "+b+")")
	}
	usable := t.columnsWhere(func(c *tableColumn) bool {
		// attributes are compared without a clock
		return (c.use != specialType || c.family == "character") && (c.use != jsonText || c.sqlType != "json") &&
			!(s.credentialOnly && (c.use == instant || c.use == localTime || c.use == day))
	})
	c := usable[s.IntN(len(usable))]
	other := c
	if comparableColumns := t.columnsWhere(func(o *tableColumn) bool {
		return o.isComparable() &&
			o.family == c.family
	}); len(comparableColumns) > 0 {
		other = comparableColumns[s.IntN(len(comparableColumns))]
	}
	templates := map[string][]string{
		"text": {
			"{} = 'a'", "{} <> 'b'", "{} IS NOT NULL", "{} LIKE 'a%'", "{} NOT LIKE '_'", "lower({}) = 'a'",
			"{} = ANY (attribute('many_text'))", "coalesce({}, 'a') = 'a'", "{} IS DISTINCT FROM attribute('one_text')",
			"{} IN ('a', 'it''s', '')", "length({}) > 1", "starts_with({}, attribute('one_text'))", "{} = ~",
			"coalesce({}, ~) = 'a'", "CASE {} WHEN 'a' THEN true WHEN ~ THEN false END",
		},
		"integer": {"{} > 1", "{} BETWEEN 0 AND 2", "{} = attribute('one_integer')",
			"{} <> ALL (attribute('many_integer'))", "nullif({}, 1) < 3", "{} IS NULL", "{} <= ~", "{} NOT IN (1, 2)"},
		"uuid": {"{} = attribute('one_uuid')", "{} = ANY (attribute('many_uuid'))",
			"{} IS NOT DISTINCT FROM attribute('one_uuid')", "{}::text = attribute('one_text')", "{} <> '" + id(1) + "'", "{} = ~"},
	}[c.family]
	switch c.use {
	case specialType:
		templates = []string{"{} = 'a'", "{} <> 'b'", "{} LIKE 'a%'", "length({}) > 1", "lower({}) = 'a'",
			"{} = ANY (attribute('many_text'))", "{} IS DISTINCT FROM attribute('one_text')"}
	case list:
		templates = []string{"{} && attribute('many_" + c.family + "')", "{} @> attribute('many_" + c.family + "')",
			"attribute('one_" + c.family + "') = ANY ({})", "cardinality({}) > 1", "{} <@ attribute('many_" + c.family + "')"}
	case document:
		templates = []string{"{} ->> 'k' = 'a'", "{} ? 'a'", "jsonb_typeof({}) = 'array'", "{} -> 'k' IS NULL", "{} ->> 'k' IS DISTINCT FROM '5'"}
	case statusSQL:
		templates = []string{"{} = 'granted'", "{} IS DISTINCT FROM 'refused'"}
		if c.sqlType == "boolean" {
			templates = []string{"{}", "{} IS NOT FALSE", "NOT {}"}
		}
	case flag:
		templates = []string{"{}", "NOT {}", "{} IS UNKNOWN", "{} = false"}
	case instant:
		templates = []string{"{} > now()", "{} <= now() - interval '1 day'", "{} > now() + interval '100 seconds'",
			"{} IS NULL OR {} < current_timestamp", "{} > now() - interval '1 month'"}
	case localTime:
		templates = []string{"{} > now()", "{} < now() + interval '3 minutes'", "{} <= localtimestamp"}
	case day:
		templates = []string{"{} <= current_date", "{} > '2026-01-01'", "{} = current_date"}
	}
	return strings.NewReplacer("{}", catalog.QuoteIdent(c.name), "~", catalog.QuoteIdent(other.name), "'one_",
		"'"+s.attribute("one_", "one_", "live_", "calc_")).Replace(s.pick(templates...))
}

// describe returns the rows with the given ids, for the message of a failed test.
func (s *schema) describe(t *table, rids []string) string {
	var b strings.Builder
	for _, row := range t.rows {
		if slices.Contains(rids, row[t.columns[0].name]) {
			fmt.Fprintf(&b, "  %v\n", row)
		}
	}
	return b.String()
}
