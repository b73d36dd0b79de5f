package predicate_test

// liveAttribute draws a live attribute: one that the session claims, or that is computed from a table.
func (s *schema) liveAttribute(family string, optional bool) object {
	out := object{"type": attributeTypes["one_"+family], "optional": optional}
	t := s.tables[s.IntN(len(s.tables))]
	columns := t.columnsWhere(func(c *tableColumn) bool { return c.isComparable() && c.family == family })
	switch kind := s.pick("equals", "values", "table", "table", "query", "query"); {
	case kind == "values" || len(columns) == 0 && kind == "table":
		values := []string{"1", "2"}
		if family != "integer" {
			values = []string{id(1), id(2)}
		}
		if family == "text" {
			values = []string{"a", "it's"}
		}
		out["source"], out["within"] = "set", object{"values": values}
	case kind == "equals" || len(columns) == 0:
		out["source"], out["within"] = "set", object{"attribute": s.pick("one_", "many_") + family}
		if s.chance(50) {
			out["within"] = object{"attribute": []string{"one_" + family, "many_" + family}}
		}
	case kind == "table":
		within := object{"table": s.qualifiedName(t), "column": columns[s.IntN(len(columns))].name}
		if s.chance(40) {
			m := columns[s.IntN(len(columns))]
			within["match"] = object{m.name: "many_" + family}
		}
		within["rows"] = s.lookupRules(t)
		out["source"], out["within"] = "set", within
	default:
		query := object{"table": s.qualifiedName(t), "column": columns[s.IntN(len(columns))].name,
			"match": object{t.key.name: "one_" + t.key.family}}
		if s.chance(30) {
			query["rows"] = s.lookupRules(t)
		}
		out["source"], out["query"] = "query", query
	}
	return out
}

// lookupRules draws the rules for the rows of a live attribute's table. They read attributes of the credential only,
// since other attributes could depend on this one.
func (s *schema) lookupRules(t *table) any {
	s.credentialOnly = true
	defer func() { s.credentialOnly = false }()
	if s.chance(30) {
		return "open"
	}
	if s.chance(40) {
		if b := s.consentBlock(t); b != nil {
			return []any{object{"consent": b}}
		}
	}
	return []any{s.ownBlock(t, 1)}
}

// expressionAttribute draws an expression over other attributes.
func (s *schema) expressionAttribute(family string) object {
	sql := map[string][]string{
		"text": {"CASE WHEN attribute('live_integer') > 1 THEN 'a' ELSE attribute('one_text') END",
			"lower(attribute('live_text'))", "CASE attribute('one_text') WHEN 'a' THEN 'b' WHEN 'b' THEN '*' END"},
		"integer": {"CASE WHEN attribute('live_text') = 'a' THEN 1 ELSE attribute('one_integer') END",
			"length(attribute('one_text'))", "nullif(attribute('live_integer'), 1)", "CASE WHEN attribute('one_integer') > 1 THEN 1.5 ELSE 2 END"},
		"uuid": {"CASE WHEN attribute('live_uuid') = attribute('one_uuid') THEN attribute('live_uuid') END",
			"coalesce(nullif(attribute('one_uuid'), '" + id(1) + "'), attribute('live_uuid'))"},
	}[family]
	return object{"type": attributeTypes["one_"+family], "source": "expression", "sql": s.pick(sql...)}
}
