package starter

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// RowPolicy is a row policy of the application about reading, as the view pg_policies shows it.
type RowPolicy struct {
	Table      catalog.Name
	Name       string
	Permissive bool
	Roles      []string // roles to which the policy applies; public: all roles
	Using      string   // the policy's USING condition; "": it has none
}

// policyHints are what the row policies of a table say about whose its rows are. A hint never makes the proposal show
// more rows: it adds a condition to a rule, or becomes a comment.
type policyHints struct {
	users           []columnHint // columns that a policy compares with the current user
	tenants         []columnHint // columns that a policy compares with another claim or setting of the session
	members         []memberHint
	openPolicies    []RowPolicy // policies that show every row
	unclearPolicies []string    // names of policies with conditions that the starter does not understand
}

// columnHint is a column that a row policy compares with a claim or setting of the session.
type columnHint struct {
	column, policy string
	claim          string // "user", or the name of the claim or setting
}

// memberHint is a table of members in which a row policy finds the current user.
type memberHint struct {
	table *catalog.Relation
	// column belongs to the members' table and must equal rowColumn of the row; memberColumn names the user.
	column, rowColumn, memberColumn string
	policy                          string
}

// hintsOf returns the hints that the row policies of a table give.
func (s *schemaSurvey) hintsOf(relation *catalog.Relation) *policyHints {
	if cached := s.policyHints[relation]; cached != nil {
		return cached
	}
	out := &policyHints{}
	s.policyHints[relation] = out
	for _, p := range s.policies {
		// A policy of the application's own service role says nothing about users.
		if p.Table != relation.Name || strings.HasPrefix(p.Name, "pgconsent_") || slices.Equal(p.Roles,
			[]string{"service_role"}) {
			continue
		}
		condition := parseCondition(p.Using)
		reader := policyReader{schemaSurvey: s, row: relation, policy: p.Name, hints: out}
		switch {
		case condition == nil:
			reader.isUnclear = true
		case isTrueConstant(condition):
			if p.Permissive {
				out.openPolicies = append(out.openPolicies, p)
			}
		default:
			reader.readCondition(condition)
		}
		if reader.isUnclear {
			out.unclearPolicies = append(out.unclearPolicies, p.Name)
		}
	}
	return out
}

// parseCondition parses an SQL condition. It returns nil if the condition cannot be parsed.
func parseCondition(text string) *sqltext.Node {
	if text == "" {
		return nil
	}
	tree, err := sqltext.Parse("SELECT " + text)
	if err != nil || len(tree.Stmts) != 1 {
		return nil
	}
	if targets := tree.Stmts[0].Stmt.GetSelectStmt().GetTargetList(); len(targets) == 1 {
		return targets[0].GetResTarget().GetVal()
	}
	return nil
}

func isTrueConstant(n *sqltext.Node) bool { return n.GetAConst().GetBoolval().GetBoolval() }

// policyReader derives hints from the condition of one row policy.
type policyReader struct {
	*schemaSurvey
	row       *catalog.Relation
	policy    string
	hints     *policyHints
	isUnclear bool // the reader does not understand a part of the condition
}

func (p *policyReader) readCondition(node *sqltext.Node) {
	if b := node.GetBoolExpr(); b != nil && b.Boolop != sqltext.NOT_EXPR {
		for _, arg := range b.Args {
			p.readCondition(arg)
		}
		return
	}
	if a, b, ok := equalOperands(node); ok {
		for range 2 {
			column, claim := p.columnOf(a), claimOfCall(b)
			if hint := (columnHint{column, p.policy, claim}); column != "" && claim != "" {
				if claim == "user" {
					p.hints.users = append(p.hints.users, hint)
				} else {
					p.hints.tenants = append(p.hints.tenants, hint)
				}
				return
			}
			a, b = b, a
		}
	}
	if l := node.GetSubLink(); l != nil {
		if hint, ok := p.memberHintOf(l); ok {
			p.hints.members = append(p.hints.members, hint)
			return
		}
	}
	p.isUnclear = true
}

// equalOperands returns the two sides of a comparison with =.
func equalOperands(n *sqltext.Node) (a, b *sqltext.Node, ok bool) {
	e := n.GetAExpr()
	if e == nil || e.Kind != sqltext.AEXPR_OP || len(e.Name) == 0 || e.Name[len(e.Name)-1].GetString_().GetSval() != "=" || e.Lexpr == nil {
		return nil, nil, false
	}
	return e.Lexpr, e.Rexpr, true
}

// columnOf returns the name of the row's column if the expression is a column of the row, or else "".
func (p *policyReader) columnOf(n *sqltext.Node) string {
	names := columnNames(withoutCasts(n))
	if len(names) == 0 || len(names) > 1 && names[len(names)-2] != p.row.Name.Name || p.row.Column(names[len(names)-1]) == nil {
		return ""
	}
	return names[len(names)-1]
}

func columnNames(n *sqltext.Node) []string {
	var out []string
	for _, field := range n.GetColumnRef().GetFields() {
		if field.GetString_() == nil {
			return nil
		}
		out = append(out, field.GetString_().GetSval())
	}
	return out
}

func withoutCasts(n *sqltext.Node) *sqltext.Node {
	for n.GetTypeCast() != nil {
		n = n.GetTypeCast().Arg
	}
	return n
}

// claimOfCall returns which claim of the session an expression reads: "user" for the current user, or else the name of
// the claim, setting or function. It returns "" for any other expression.
func claimOfCall(node *sqltext.Node) string {
	node = withoutCasts(node)
	switch {
	case node.GetSubLink() != nil: // The expression is like (SELECT auth.uid()).
		l := node.GetSubLink()
		innerSelect := l.Subselect.GetSelectStmt()
		if l.SubLinkType != sqltext.EXPR_SUBLINK || len(innerSelect.GetTargetList()) != 1 ||
			len(innerSelect.FromClause) > 0 || innerSelect.WhereClause != nil {
			return ""
		}
		return claimOfCall(innerSelect.TargetList[0].GetResTarget().GetVal())
	case node.GetAExpr() != nil:
		e := node.GetAExpr()
		if e.Kind == sqltext.AEXPR_NULLIF {
			return claimOfCall(e.Lexpr)
		}
		if e.Kind != sqltext.AEXPR_OP || len(e.Name) == 0 || !isOneOf(e.Name[len(e.Name)-1].GetString_().GetSval(),
			"-> ->>") {
			return ""
		}
		if key := stringOf(e.Rexpr); key != "" && readsSession(e.Lexpr) {
			return claimName(key)
		}
	case node.GetFuncCall() != nil:
		name, args := functionName(node), node.GetFuncCall().Args
		switch {
		case name == "current_setting" && len(args) > 0:
			return claimName(stringOf(args[0]))
		case len(args) == 0:
			if claim := claimName(name); claim == "user" || isOneOf(claim, tenantStems) {
				return claim
			}
		}
	}
	return ""
}

// readsSession reports whether an expression reads the claims of the session's token, or a part of them.
func readsSession(n *sqltext.Node) bool {
	n = withoutCasts(n)
	if e := n.GetAExpr(); e != nil && e.Lexpr != nil {
		return readsSession(e.Lexpr)
	}
	if l := n.GetSubLink(); l != nil && l.SubLinkType == sqltext.EXPR_SUBLINK && len(l.Subselect.GetSelectStmt().GetTargetList()) == 1 {
		return readsSession(l.Subselect.GetSelectStmt().TargetList[0].GetResTarget().GetVal())
	}
	return isOneOf(functionName(n), "jwt current_setting")
}

func functionName(n *sqltext.Node) string {
	if names := n.GetFuncCall().GetFuncname(); len(names) > 0 {
		return names[len(names)-1].GetString_().GetSval()
	}
	return ""
}

func stringOf(n *sqltext.Node) string { return withoutCasts(n).GetAConst().GetSval().GetSval() }

// claimName returns an attribute name for a claim: tenant for app.current_tenant_id, user for sub.
func claimName(name string) string {
	word := columnStem(name[strings.LastIndexByte(name, '.')+1:])
	for _, before := range []string{"get_", "current_", "requesting_", "my_"} {
		word = strings.TrimPrefix(word, before)
	}
	if isOneOf(word, "sub uid") || isOneOf(word, ownerStems) {
		return "user"
	}
	return word
}

// memberHintOf understands two forms of a sub-query: EXISTS (SELECT FROM members WHERE members.x = row.y AND
// members.user = the user), and y IN (SELECT x …).
func (p *policyReader) memberHintOf(l *sqltext.SubLink) (memberHint, bool) {
	innerSelect := l.Subselect.GetSelectStmt()
	hint := memberHint{policy: p.policy}
	if innerSelect == nil || len(innerSelect.FromClause) != 1 || innerSelect.FromClause[0].GetRangeVar() == nil ||
		innerSelect.WhereClause == nil ||
		l.SubLinkType != sqltext.EXISTS_SUBLINK && l.SubLinkType != sqltext.ANY_SUBLINK {
		return hint, false
	}
	from := innerSelect.FromClause[0].GetRangeVar()
	name, ok := p.snap.ResolveRelation(from.Schemaname, from.Relname)
	if !ok {
		return hint, false
	}
	if hint.table, ok = p.findRelation(name); !ok {
		return hint, false
	}
	alias := from.Relname
	if from.Alias != nil {
		alias = from.Alias.Aliasname
	}
	// membersColumn returns the name of the column if the expression is a column of the members' table, or else "".
	membersColumn := func(node *sqltext.Node) string {
		names := columnNames(withoutCasts(node))
		if len(names) == 0 || len(names) > 1 && names[len(names)-2] != alias || hint.table.Column(names[len(names)-1]) == nil {
			return ""
		}
		return names[len(names)-1]
	}
	if l.SubLinkType == sqltext.ANY_SUBLINK {
		if len(l.OperName) > 0 && l.OperName[len(l.OperName)-1].GetString_().GetSval() != "=" ||
			len(innerSelect.TargetList) != 1 {
			return hint, false
		}
		hint.rowColumn, hint.column = p.columnOf(l.Testexpr), membersColumn(innerSelect.TargetList[0].GetResTarget().GetVal())
	}
	conditions := []*sqltext.Node{innerSelect.WhereClause}
	if b := innerSelect.WhereClause.GetBoolExpr(); b != nil && b.Boolop != sqltext.OR_EXPR &&
		b.Boolop != sqltext.NOT_EXPR {
		conditions = b.Args
	}
	for _, c := range conditions {
		a, b, ok := equalOperands(c)
		if !ok {
			return hint, false
		}
		hasMember := false
		for range 2 {
			column := membersColumn(a)
			switch {
			case hasMember || column == "":
			case claimOfCall(b) == "user" && hint.memberColumn == "":
				hint.memberColumn, hasMember = column, true
			case hint.rowColumn == "" && p.columnOf(b) != "" && (len(columnNames(withoutCasts(b))) > 1 ||
				membersColumn(b) == ""):
				hint.column, hint.rowColumn, hasMember = column, p.columnOf(b), true
			}
			a, b = b, a
		}
		if !hasMember {
			return hint, false
		}
	}
	return hint, hint.column != "" && hint.rowColumn != "" && hint.memberColumn != ""
}

// addHints adds the hints of a table's row policies to its rule, as conditions or as comments.
func (s *schemaSurvey) addHints(t *Table, add func(string, string, ...any), note func(string, ...any)) {
	relation, h := t.Relation, s.hintsOf(t.Relation)
	var alternatives []Block
	propose := func(policy, yaml, evidence string) {
		if existingBlocks := strings.Join(yamlTexts(t.Blocks), "\n"); strings.Contains(existingBlocks, yaml) ||
			slices.ContainsFunc(alternatives, func(b Block) bool { return b.YAML == yaml }) {
			return
		}
		alternatives = append(alternatives, Block{YAML: yaml,
			Evidence: fmt.Sprintf("the row policy %q %s; in place of what says whose a row is, or beside it", policy, evidence)})
	}
	for _, hint := range h.users {
		if column := relation.Column(hint.column); s.userAttribute.comparesWith(column) && !column.Virtual {
			yaml := fmt.Sprintf("own: { column: %s, is: %s }", yamlFlow(column.Name), s.userAttribute.Name)
			if i := slices.Index(yamlTexts(t.Blocks), yaml); i >= 0 {
				t.Blocks[i].Evidence += fmt.Sprintf("; the row policy %q says so", hint.policy)
			} else if s.isOnlyUserColumn(h, hint.column) && !s.isIdentityTable(relation) &&
				s.columnRoles[relation].ownerColumn == nil {
				// The block is an additional condition, so it shows no more rows.
				s.usedAttributes[s.userAttribute.Name] = true
				add(fmt.Sprintf("the row policy %q compares %s with the user who asks; beside what else is asked", hint.policy,
					column.Name),
					"%s", yaml)
				t.Notes = slices.DeleteFunc(t.Notes, func(n string) bool { return n == fmt.Sprintf(notUsedText, column.Name) })
				note("%s is asked because of a row policy, and what else says whose a row is must hold as well", column.Name)
			} else {
				s.commentedAttributes[s.userAttribute.Name] = true
				propose(hint.policy, yaml, "compares "+column.Name+" with the user who asks")
			}
		}
	}
	for _, hint := range h.tenants {
		a, column := s.tenantAttributes[s.tenantName(hint.claim)], relation.Column(hint.column)
		if !a.comparesWith(column) || column.Virtual {
			note("the row policy %q compares %s with %s of the session, and is not used here", hint.policy, hint.column, hint.claim)
			continue
		}
		yaml := fmt.Sprintf("tenant: { column: %s, is: %s }", yamlFlow(column.Name), a.Name)
		evidence := fmt.Sprintf("; the row policy %q says so", hint.policy)
		if i := slices.Index(yamlTexts(t.Blocks), yaml); i >= 0 {
			t.Blocks[i].Evidence += evidence
			continue
		}
		if !addEvidence(t.Blocks, yaml, evidence) {
			s.commentedAttributes[a.Name] = true
			propose(hint.policy, yaml, "compares "+column.Name+" with "+hint.claim+" of the session")
		}
	}
	for _, hint := range h.members {
		member := hint.table.Column(hint.memberColumn)
		if s.listingRound[hint.table] <= 0 || !s.userAttribute.comparesWith(member) || !s.canLink(relation, hint) {
			note("the row policy %q looks for the user in %s, and is not used here", hint.policy, s.policyName(hint.table.Name))
			continue
		}
		if slices.ContainsFunc(s.parentLinks[relation], func(p parentLink) bool {
			return p.target == hint.table &&
				slices.Equal(p.columns, []string{hint.rowColumn})
		}) {
			continue
		}
		s.commentedAttributes[s.userAttribute.Name] = true
		propose(hint.policy, s.memberBlock(hint.table, hint.column, hint.rowColumn, member),
			"looks for the user in "+s.policyName(hint.table.Name))
	}
	if len(alternatives) > 0 && len(t.Blocks) > 0 {
		t.Blocks[0].Alternatives = append(t.Blocks[0].Alternatives, alternatives...)
	}
	for _, p := range h.openPolicies {
		t.OpenReasons = append(t.OpenReasons, fmt.Sprintf("the row policy %q shows every row to %s", p.Name,
			strings.Join(p.Roles, ", ")))
	}
	if len(h.unclearPolicies) > 0 {
		note("row policies with conditions that are not used here: %s", strings.Join(quoteNames(h.unclearPolicies), ", "))
	}
}

// policiesLimitRows reports whether row policies say who reads which rows of a table, and none of them shows all rows.
func (s *schemaSurvey) policiesLimitRows(r *catalog.Relation) bool {
	h := s.hintsOf(r)
	return len(h.openPolicies) == 0 && len(h.users)+len(h.tenants)+len(h.members)+len(h.unclearPolicies) > 0
}

// isOnlyUserColumn reports whether the row policies of a table compare only this column with the user, and say nothing
// else.
func (s *schemaSurvey) isOnlyUserColumn(h *policyHints, column string) bool {
	return len(h.tenants)+len(h.members)+len(h.openPolicies)+len(h.unclearPolicies) == 0 &&
		!slices.ContainsFunc(h.users, func(hint columnHint) bool { return hint.column != column })
}

// canLink reports whether a policy file can link the two columns of a hint: their types and collations must fit.
func (s *schemaSurvey) canLink(r *catalog.Relation, hint memberHint) bool {
	a, b := hint.table.Column(hint.column), r.Column(hint.rowColumn)
	return typeFamily(a.Type) != "" && typeFamily(a.Type) == typeFamily(b.Type) && a.Collation == b.Collation &&
		!a.Virtual && !b.Virtual
}

// askAboutPolicies returns a question for the reader of the proposal: what the row policies of a denied table say about
// its rows. It is empty if another question already asks the same.
func (s *schemaSurvey) askAboutPolicies(relation *catalog.Relation, question string) string {
	h := s.hintsOf(relation)
	var out strings.Builder
	addQuestion := func(policy, evidence, rows string) {
		fmt.Fprintf(&out, "; the row policy %q %s: if that is right, write %s: { rows: %s }", policy, evidence,
			yamlFlow(s.policyName(relation.Name)), rows)
	}
	for _, hint := range h.users {
		column, attribute := relation.Column(hint.column), "user"
		evidence := "compares " + column.Name + " with the user who asks"
		switch {
		case typeFamily(column.Type) == "" || column.Virtual:
			continue
		case s.userAttribute == nil || !s.usedAttributes[s.userAttribute.Name]:
			evidence += ", an attribute user"
		case !s.userAttribute.comparesWith(column):
			continue
		default:
			attribute = s.userAttribute.Name
		}
		addQuestion(hint.policy, evidence, fmt.Sprintf("[ own: { column: %s, is: %s } ]", yamlFlow(column.Name), attribute))
	}
	for _, hint := range h.tenants {
		if column := relation.Column(hint.column); typeFamily(column.Type) != "" && !column.Virtual &&
			attributeName.MatchString(hint.claim) {
			addQuestion(hint.policy, "compares "+column.Name+" with an attribute "+hint.claim,
				fmt.Sprintf("[ own: { column: %s, is: %s } ]", yamlFlow(column.Name), hint.claim))
		}
	}
	for _, hint := range h.members {
		if member := hint.table.Column(hint.memberColumn); s.listingRound[hint.table] > 0 && s.userAttribute.comparesWith(member) &&
			s.canLink(relation, hint) {
			rows := "[ " + s.memberBlock(hint.table, hint.column, hint.rowColumn, member) + " ]"
			if strings.Contains(question, rows) {
				fmt.Fprintf(&out, "; the row policy %q says so", hint.policy)
				continue
			}
			addQuestion(hint.policy, "looks for the user in "+s.policyName(hint.table.Name), rows)
		}
	}
	for _, p := range h.openPolicies {
		addQuestion(p.Name, "shows every row to "+strings.Join(p.Roles, ", "), "open")
	}
	if len(h.unclearPolicies) > 0 {
		fmt.Fprintf(&out, "; row policies with conditions that are not used here: %s",
			strings.Join(quoteNames(h.unclearPolicies), ", "))
	}
	return out.String()
}

func yamlTexts(blocks []Block) []string {
	var out []string
	for _, b := range blocks {
		out = append(out, b.YAML)
	}
	return out
}

// addEvidence adds evidence to a block that is proposed as a comment, and reports whether there is such a block.
func addEvidence(blocks []Block, yaml, newEvidence string) bool {
	for _, b := range blocks {
		if i := slices.Index(yamlTexts(b.Alternatives), yaml); i >= 0 {
			b.Alternatives[i].Evidence += newEvidence
			return true
		}
	}
	return false
}

func quoteNames(names []string) []string {
	var out []string
	for _, name := range names {
		out = append(out, fmt.Sprintf("%q", name))
	}
	return out
}
