package why

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// explainBlock explains a block for a row. ruleResults says, for each block, whether it and its negation hold.
func (e *explainer) explainBlock(ctx context.Context, row explainedRow, r *policy.Rule,
	ruleResults map[*policy.Rule][2]bool) (*Block,
	error) {
	return e.blockUnderNot(ctx, row, r, ruleResults, false)
}

// blockUnderNot explains a block inside negations. If isNegated, it is inside an odd number of them and must not hold.
func (e *explainer) blockUnderNot(ctx context.Context, explained explainedRow, rule *policy.Rule,
	ruleResults map[*policy.Rule][2]bool,
	isNegated bool) (*Block, error) {
	row := explained.values
	b := &Block{File: rule.File, Line: rule.Line, Column: rule.Column, Block: rule.Block, Holds: ruleResults[rule][0]}
	for _, part := range rule.Parts {
		explained, err := e.blockUnderNot(ctx, explained, part, ruleResults, isNegated != (rule.Block == "not"))
		if err != nil {
			return nil, err
		}
		b.Parts = append(b.Parts, explained)
	}
	var err error
	switch n := rule.Node.(type) {
	case predicate.All, predicate.Any:
		if len(rule.Parts) > 0 {
			return b, nil
		}
		if parts, ok := n.(predicate.All); ok && rule.Block == "shared" {
			err = e.explainShared(ctx, b, parts, row)
			break
		}
		b.Says, err = e.describeOtherBlock(n, row)
	case predicate.Open:
		b.Says = "all rows show"
		return b, nil
	case predicate.Consent:
		err = e.explainConsent(ctx, b, n, row)
	case predicate.RecordedConsent:
		err = e.explainRecorded(ctx, b, n, explained)
	case predicate.Derived:
		err = e.explainDerived(ctx, b, n, explained)
	case predicate.RegistryConsent:
		err = e.explainRegistered(ctx, b, n, explained)
	case predicate.Visible:
		err = e.explainVisible(ctx, b, n, row)
	case predicate.Own:
		b.Says = columnValueText(row, n.Column) + ", the agent's " + e.attributeText(n.Attribute)
	case predicate.Tenant:
		b.Says = columnValueText(row, n.Column) + ", the agent's " + e.attributeText(n.Attribute)
		if n.SharedValue != "" {
			b.Says += ", shared is '" + n.SharedValue + "'"
		}
		if n.SharedNull {
			b.Says += ", NULL is shared"
		}
	case predicate.Status:
		b.Says = columnValueText(row, n.Column)
		if !isNegated {
			b.Says += requiredValueText(b.Holds, n.Value)
		} else if b.Holds {
			b.Says += ", must not be"
		}
	case predicate.Grant:
		var ids []string
		for _, grantee := range n.Grantees {
			ids = append(ids, "the agent's "+e.attributeText(grantee.Attribute))
		}
		if n.EverybodyWord != "" {
			ids = append(ids, "'"+n.EverybodyWord+"' is everybody")
		}
		b.Says = columnValueText(row, n.Column) + ", " + strings.Join(ids, ", ")
	case predicate.Not:
		switch {
		case len(b.Parts) != 1:
		case b.Parts[0].Holds:
			b.Says = "what is below holds, and must not"
		case !b.Holds:
			b.Says = "it is not certain that what is below does not hold"
		}
	default:
		b.Says, err = e.describeOtherBlock(n, row)
	}
	if len(rule.Parts) == 0 || rule.Block == "not" {
		b.Unknown = len(predicate.LookupTables(rule.Node)) == 0 && !b.Holds && !ruleResults[rule][1]
	}
	return b, err
}

// describeOtherBlock names the columns and tables that a block reads, with the columns' values.
func (e *explainer) describeOtherBlock(node predicate.Node, row map[string]*string) (string, error) {
	var parts []string
	if columns, isKnown := predicate.RowColumns(node); isKnown {
		for _, c := range columns {
			parts = append(parts, columnValueText(row, c))
		}
	}
	for _, h := range predicate.LookupTables(node) {
		parts = append(parts, "it reads "+h.Relation.Name.String())
	}
	for _, name := range predicate.AttributesOf(node) {
		parts = append(parts, "the agent's "+e.attributeText(name))
	}
	return strings.Join(parts, ", "), nil
}

// columnValueText returns the text "column is 'value'" for a column of the row.
func columnValueText(row map[string]*string, column string) string {
	return column + " is " + quotedOrNull(row[column])
}

// quotedOrNull returns a value in quotes, or NULL without quotes.
func quotedOrNull(v *string) string {
	if v == nil {
		return "NULL"
	}
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) { // An agent may have written such characters.
			return ' '
		}
		return r
	}, *v)
	if len(text) > 80 {
		text = strings.ToValidUTF8(text[:77], "") + "…"
	}
	return "'" + text + "'"
}

// requiredValueText names the value that the block requires, if the block does not hold.
func requiredValueText(isFulfilled bool, value string) string {
	if isFulfilled {
		return ""
	}
	return ", must be '" + value + "'"
}

// attributeText returns an attribute of the session with its value.
func (e *explainer) attributeText(name string) string {
	value, ok := e.values[name]
	if !ok {
		return name + " is missing"
	}
	return name + " is " + quotedOrNull(&value)
}

// linkCondition returns the condition on the rows to which a link leads; false if a column is NULL, so that it leads
// nowhere.
func linkCondition(pairs []predicate.ColumnPair, alias string, row map[string]*string) (string, bool) {
	var parts []string
	for _, p := range pairs {
		if row[p.FromColumn] == nil {
			return "", false
		}
		parts = append(parts, alias+"."+catalog.QuoteIdent(p.Column)+" = "+catalog.QuoteLiteral(*row[p.FromColumn]))
	}
	return strings.Join(parts, " AND "), true
}

// linkStartText returns the link's columns with the values that they must have.
func linkStartText(pairs []predicate.ColumnPair, row map[string]*string) string {
	var parts []string
	for _, p := range pairs {
		parts = append(parts, p.Column+"="+strings.Trim(quotedOrNull(row[p.FromColumn]), "'"))
	}
	return strings.Join(parts, ", ")
}

// explainVisible explains a block which requires that a row of another table is visible.
func (e *explainer) explainVisible(ctx context.Context, b *Block, n predicate.Visible, row map[string]*string) error {
	pairs := append([]predicate.ColumnPair{{Column: n.Column, FromColumn: n.FromColumn}}, n.MorePairs...)
	condition, ok := linkCondition(pairs, "r", row)
	if !ok {
		b.Says = fmt.Sprintf("it points to no row of %s: NULL", n.Relation.Name)
		return nil
	}
	table, isListed := e.policy.Table(n.Relation.Name)
	if !isListed {
		return fmt.Errorf("%s is not in the policy", n.Relation.Name)
	}
	var err error
	if b.Targets, b.More, err = e.explainRows(ctx, table, condition, n.Rows, maxRecords); err != nil {
		return err
	}
	if !predicate.Implies(n.Rows, table.Rows) { // The policy gives this condition instead of the target table's own rule.
		if b.Says = fmt.Sprintf("no row of %s with %s is what the rule asks for", n.Relation.Name, linkStartText(pairs,
			row)); b.Holds {
			b.Says = fmt.Sprintf("it points to a row of %s that is what the rule asks for", n.Relation.Name)
		}
		b.Targets, b.More = nil, false
		return nil
	}
	for i := range b.Targets { // n.Rows contains the target table's own rule.
		b.Targets[i].Besides = b.Targets[i].Besides && b.Targets[i].Visible
	}
	isShown := slices.ContainsFunc(b.Targets, func(r Row) bool { return r.Visible && !r.Besides })
	switch {
	case len(b.Targets) == 0:
		b.Says = fmt.Sprintf("%s has no row with %s", n.Relation.Name, linkStartText(pairs, row))
	case isShown:
		b.Says = fmt.Sprintf("it points to a row of %s that shows", n.Relation.Name)
	default:
		b.Says = fmt.Sprintf("it points to no row of %s that shows", n.Relation.Name)
	}
	return nil
}

// explainConsent finds the subjects to whom the links lead, and lists those who refuse first.
func (e *explainer) explainConsent(ctx context.Context, b *Block, n predicate.Consent, row map[string]*string) error {
	first := n.Steps[0]
	pairs := first.Pairs()
	condition, ok := linkCondition(pairs, "s0", row)
	if !ok {
		b.Says = "it has no key to find subjects by: NULL"
		return nil
	}
	lastTable := n.Steps[len(n.Steps)-1].Relation
	from := first.Relation.Name.SQL() + " AS s0"
	for i, step := range n.Steps[1:] {
		var conditions []string
		for _, p := range step.Pairs() {
			conditions = append(conditions, fmt.Sprintf("s%d.%s = s%d.%s", i+1, catalog.QuoteIdent(p.Column), i,
				catalog.QuoteIdent(p.FromColumn)))
		}
		from += fmt.Sprintf(" LEFT JOIN %s AS s%d ON %s", step.Relation.Name.SQL(), i+1, strings.Join(conditions, " AND "))
	}
	end := fmt.Sprintf("s%d", len(n.Steps)-1)
	subject, link := keyColumns(lastTable), []string{}
	if len(n.Steps) > 1 {
		link = keyColumns(first.Relation)
	}
	var selectList []string
	for _, name := range subject {
		selectList = append(selectList, end+"."+catalog.QuoteIdent(name)+"::pg_catalog.text")
	}
	for _, name := range link {
		selectList = append(selectList, "s0."+catalog.QuoteIdent(name)+"::pg_catalog.text")
	}
	status := end + "." + catalog.QuoteIdent(n.StatusColumn) + "::pg_catalog.text"
	exists := "true"
	if len(n.Steps) > 1 {
		steps := n.Steps[len(n.Steps)-1].Pairs()
		exists = end + "." + catalog.QuoteIdent(steps[0].Column) + " IS NOT NULL"
	}
	expiredSQL := "false"
	if n.ExpiryColumn != "" {
		expiredSQL = "(" + end + "." + catalog.QuoteIdent(n.ExpiryColumn) + " <= pg_catalog.statement_timestamp()) IS TRUE"
	}
	order := strings.Join(selectList, ", ")
	selectList = append(selectList, expiredSQL, status, exists)
	agreesSQL := "(" + status + " = " + catalog.QuoteLiteral(n.AgreedStatus) + " AND NOT " + expiredSQL + ")"
	rows, err := e.tx.Query(ctx, fmt.Sprintf("SELECT %s FROM %s WHERE %s ORDER BY %s IS TRUE, %s LIMIT %d",
		strings.Join(selectList, ", "), from, condition, agreesSQL, order, maxRecords+1))
	if err != nil {
		return err
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
	if err != nil {
		return err
	}
	text := func(v any) *string {
		if s, ok := v.(string); ok {
			return &s
		}
		return nil
	}
	refusing := 0
	for i, values := range found {
		if i == maxRecords {
			b.More = true
			break
		}
		record := Record{Table: lastTable.Name.String()}
		for j, name := range subject {
			record.Key = append(record.Key, Value{name, text(values[j])})
		}
		if len(link) > 0 {
			record.Link = first.Relation.Name.String()
		}
		for j, name := range link {
			record.Via = append(record.Via, Value{name, text(values[len(subject)+j])})
		}
		value := text(values[len(values)-2])
		isPresent, _ := values[len(values)-1].(bool)
		hasExpired, _ := values[len(values)-3].(bool)
		record.Holds = value != nil && *value == n.AgreedStatus
		record.Says = n.StatusColumn + " is " + quotedOrNull(value) + requiredValueText(record.Holds, n.AgreedStatus)
		if record.Holds && hasExpired {
			record.Holds, record.Says = false, record.Says+", until a moment that is over ("+n.ExpiryColumn+")"
		}
		if !isPresent {
			record.Key, record.Says = nil, "there is no such row: the link leads nowhere"
		}
		if !record.Holds {
			refusing++
		}
		b.Records = append(b.Records, record)
	}
	switch {
	case len(found) == 0 && n.FirstRequired:
		b.Says = fmt.Sprintf("%s has no row with %s", first.Relation.Name, linkStartText(pairs, row))
	case len(found) == 0:
		b.Says = "nobody is linked to it"
	case refusing > 0:
		b.Says = "somebody has not agreed"
	default:
		b.Says = "everybody has agreed"
	}
	return nil
}

// explainRecorded finds the subjects of the row, and whether each has agreed by a consent record.
func (e *explainer) explainRecorded(ctx context.Context, b *Block, n predicate.RecordedConsent,
	row explainedRow) error {
	query := predicate.SubjectsQuery(n, "r", e.values)
	if query == "" {
		return nil
	}
	rows, err := e.tx.Query(ctx, fmt.Sprintf(
		"SELECT q.id, q.self, q.agreed, q.guarded FROM %s AS r CROSS JOIN LATERAL (%s) AS q WHERE %s ORDER BY "+
			"q.self OR q.agreed OR q.guarded, q.id LIMIT %d",
		row.relation.Name.SQL(), query, row.findCondition("r"), maxRecords+1))
	if err != nil {
		return err
	}
	type subject struct {
		ID *string
		// the subject is the caller itself, has agreed, or has a guardian who has agreed
		Self, Agreed, GuardianAgreed bool
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[subject])
	if err != nil {
		return err
	}
	refusing := 0
	for i, s := range found {
		if i == maxRecords {
			b.More = true
			break
		}
		record := Record{Table: "subject", Key: []Value{{"id", s.ID}}, Holds: s.Self || s.Agreed || s.GuardianAgreed}
		switch {
		case s.Self:
			record.Says = "it is the caller, who is not asked"
		case s.Agreed:
			record.Says = "a record of " + n.Record.Relation.Name.String() + " says that they agree"
		case s.GuardianAgreed:
			record.Says = "a guardian has agreed, by a record of " + n.Record.Relation.Name.String()
		case s.ID == nil:
			record.Says = "nobody can agree for NULL"
		default:
			record.Says = "no record of " + n.Record.Relation.Name.String() + " that counts"
		}
		if !record.Holds {
			refusing++
		}
		b.Records = append(b.Records, record)
	}
	switch {
	case refusing > 0:
		b.Says = "somebody has not agreed"
	case len(found) == 0 && b.Holds:
		b.Says = "nobody is to be asked"
	case len(found) == 0:
		b.Says = "the row that names the subjects is not there"
	case b.Holds:
		b.Says = "everybody has agreed"
	}
	return nil
}

// keyColumns returns the columns of the primary key, or every column where there is none.
func keyColumns(r *catalog.Relation) []string {
	if len(r.PrimaryKey) > 0 {
		return r.PrimaryKey
	}
	var out []string
	for _, c := range r.Columns {
		out = append(out, c.Name)
	}
	return out
}
