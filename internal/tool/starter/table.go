package starter

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// table makes the proposal for a table that is listed, and records which attributes it uses.
func (s *survey) table(r *catalog.Relation) *Table {
	t := &Table{Relation: r, Name: s.policyName(r.Name), Blocks: []Block{}, Hidden: []string{}, Contacts: []string{},
		Notes: []string{}, OpenBy: []string{}}
	roles := s.columns[r]
	if s.rank[r] < 0 {
		t.Open, t.Evidence = true, s.whyReferenceData(r)
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

	s.addWhose(t, roles, add, note)
	s.addConsent(r, add, note)
	s.addSubjects(r, add, note)
	for _, c := range roles.consent {
		if block, _ := s.consentBlock(r, c); block.YAML != "" {
			t.Blocks = append(t.Blocks, block.Block)
		}
	}
	for _, l := range s.parents[r] {
		switch {
		case l.optional:
			add(l.evidence(s)+", where it is not NULL: a row does not show beside one that is hidden",
				"any: [ sql: %s, visible: { %s } ]", yamlQuoted(s.isNull(r, l.link)), l.yaml(s))
		default:
			add(l.evidence(s)+": a row hangs on one that agents see", "visible: { %s }", l.yaml(s))
			if !l.notNull {
				note("%s may be NULL, which hides the row", strings.Join(l.columns, ", "))
			}
		}
	}
	for _, l := range s.circles[r] {
		note("%s refers to %s, whose rule cannot be asked in a circle: a row shows although the one that it names "+
			"there is hidden", strings.Join(l.columns, ", "), s.policyName(l.to.Name))
	}
	for _, c := range roles.deleted {
		if c.Type == "boolean" {
			add(c.Name+" looks like a mark of deletion", "status: { column: %s, is: false }", yamlFlow(c.Name))
		} else {
			add(c.Name+" looks like a mark of deletion", "sql: %s", yamlQuoted(catalog.QuoteIdent(c.Name)+" IS NULL"))
		}
	}
	if c := roles.expiry; c != nil {
		name := catalog.QuoteIdent(c.Name)
		add(c.Name+" looks like the end of a row's life", "sql: %s", yamlQuoted(name+" IS NULL OR "+name+" > now()"))
	}
	s.addHints(t, add, note)
	if kind, id := polymorphic(r); kind != "" {
		note("%s", s.oneOfSeveral(kind, id))
	}
	for _, by := range s.tables {
		if isConsentRegister(by) && s.denied[by] != "" && slices.ContainsFunc(s.links(by),
			func(l link) bool { return l.to == r }) {
			note("%s looks like a register of consents about it, and is not asked: add consent by records "+
				"(docs/reference/policy.md)", s.policyName(by.Name))
		}
	}
	if len(roles.vectors) > 0 {
		note("vectors: %s (docs/howto/vector-search.md)", strings.Join(roles.vectors, ", "))
	}
	for _, c := range r.Columns {
		switch {
		case slices.Contains(roles.secrets, c.Name):
			t.Hidden = append(t.Hidden, c.Name)
		case slices.Contains(roles.contacts, c.Name):
			t.Hidden, t.Contacts = append(t.Hidden, c.Name), append(t.Contacts, c.Name)
		}
	}
	for _, c := range r.Columns {
		if c.Virtual && !slices.Contains(t.Hidden, c.Name) &&
			slices.ContainsFunc(c.ComputedFrom, func(from string) bool { return slices.Contains(t.Hidden, from) }) {
			t.Hidden = append(t.Hidden, c.Name) // where it fails, the error would say what it is computed from
		}
	}
	for _, c := range r.Columns {
		if word := snake(c.Name); oneOf(word,
			"status state visibility privacy privacy_level sensitivity classification confidentiality") &&
			!slices.Contains(roles.consent, r.Column(c.Name)) {
			note("%s is not used here%s: does it say who may see a row?", c.Name, s.valuesOf(r.Column(c.Name)))
		}
	}
	return t
}

// oneOfSeveral describes a reference whose table is named by another column.
func (s *survey) oneOfSeveral(kind, id string) string {
	return fmt.Sprintf("%s and %s name a row of one of several tables; for each of these write, in an any, all: [ "+
		"status: { column: %s, is: its word }, visible: { its table: { its key: %s } } ]",
		kind, id, yamlFlow(kind), yamlFlow(id))
}

const notUsed = "%s says who wrote a row, and is not used here"

// addOwner adds the block that says to whom a row belongs.
func (s *survey) addOwner(t *Table, roles *roles, add func(string, string, ...any), note func(string, ...any)) {
	if slices.Contains(s.users, t.Relation) || s.user == nil {
		return
	}
	grant := s.user.grants(roles)
	switch {
	case roles.owner != nil:
		s.used[s.user.Name] = true
		add(s.columnEvidence(t.Relation, roles.owner), "own: { column: %s, is: %s }", yamlFlow(roles.owner.Name), s.user.Name)
		if grant != nil {
			note("%s looks like a list of grants; if it shows rows to others than their owner, write any: [ own: "+
				"{ column: %s, is: %s }, grant: { column: %s, to: %s } ]",
				grant.Name, yamlFlow(roles.owner.Name), s.user.Name, yamlFlow(grant.Name), s.user.Name)
		}
	case grant != nil:
		s.used[s.user.Name] = true
		add(fmt.Sprintf("%s, of type %s, looks like a list of those whom the row is shown to", grant.Name,
			grant.Type), "grant: { column: %s, to: %s }", yamlFlow(grant.Name), s.user.Name)
	case roles.author != nil && s.user.fits(roles.author) && len(roles.tenants) == 0 &&
		s.rank[t.Relation] > len(s.tables) && len(s.parents[t.Relation]) == 0:
		s.used[s.user.Name] = true
		add(s.columnEvidence(t.Relation, roles.author)+", and nothing else says whose rows these are",
			"own: { column: %s, is: %s }", yamlFlow(roles.author.Name), s.user.Name)
	case roles.author != nil:
		note(notUsed, roles.author.Name)
	}
}

// addConsent adds the consent of everybody whom a link table connects with a row. Neither the link table nor the one of
// people need be listed: a rule reads them all the same.
func (s *survey) addConsent(r *catalog.Relation, add func(string, string, ...any), note func(string, ...any)) {
	if s.consents(r) && s.isPersonTable(r) || s.isIdentityTable(r) {
		return
	}
	for _, through := range s.tables {
		links := s.links(through)
		var here, there []link
		for _, l := range links {
			switch {
			case l.to == r:
				here = append(here, l)
			case len(s.subjectsOfLink(l)) > 0:
				there = append(there, l)
			}
		}
		if through == r || len(here) != 1 || len(there) == 0 || isConsentRegister(through) {
			continue
		}
		name := s.policyName(through.Name)
		if more, ok := s.isLinkTable(through, links); !ok {
			if more != "" {
				note("%s names people besides, who are asked for its own rows and not here: by %s it is no table of links",
					name, more)
			}
			continue
		}
		var back []string
		for i := range here[0].columns {
			back = append(back, yamlFlow(here[0].columns[i])+": "+yamlFlow(here[0].targets[i]))
		}
		first := fmt.Sprintf("%s: { %s }", yamlFlow(name), strings.Join(back, ", "))
		for _, l := range there {
			for _, of := range s.subjectsOfLink(l) {
				s.addSubjectsThrough(name, first, l, of, add, note)
			}
		}
	}
}

// subjectsOfLink are the tables that say whether those have agreed to whom a link leads.
func (s *survey) subjectsOfLink(l link) []subject {
	switch {
	case len(l.columns) != len(l.to.PrimaryKey) || isConsentRegister(l.to):
		return nil
	case len(l.columns) > 1 || !slices.Equal(l.targets, l.to.PrimaryKey):
		if s.consents(l.to) {
			return []subject{{table: l.to}}
		}
		return nil
	}
	return s.subjectsOf(l.to)
}

// addSubjectsThrough adds the consent of those to whom a link of a link table leads.
func (s *survey) addSubjectsThrough(through, first string, l link, of subject, add func(string, string, ...any),
	note func(string, ...any)) {
	name, a, to := s.policyName(of.table.Name), s.agreements(of.table), l
	if of.table != l.to {
		to.to, to.targets = of.table, []string{of.column}
	}
	for _, w := range a.words {
		add(fmt.Sprintf("%s ties rows to %s, each of whom must have agreed (%s)", through, name, w.evidence), "%s",
			w.block(first, to.yaml(s)))
		if l.byName {
			note("%s", l.evidence(s))
		}
	}
	for _, c := range a.moments {
		note("%s of %s is not asked of those whom %s ties rows to: does it say that one of them has not agreed?", c, name, through)
	}
	for _, why := range a.unclear {
		note("%s ties rows to %s, where not everything about consent is asked: %s", through, name, why)
	}
}

// expiryColumn is the column that says until when a subject's consent is valid: the one that is named after it, or the
// only one that is named after no consent column.
func (s *survey) expiryColumn(r *catalog.Relation, agreement *catalog.Column) *catalog.Column {
	var own, any []*catalog.Column
	for _, c := range s.columns[r].consent {
		if !isExpiryTime(c) || c.Type != "timestamp with time zone" {
			continue
		}
		after := func(status *catalog.Column) bool {
			stem := strings.TrimSuffix(strings.TrimSuffix(snake(status.Name), "_status"), "_state")
			return !timeType(status.Type) && strings.HasPrefix(snake(c.Name), stem+"_") && stem != "consent"
		}
		switch {
		case after(agreement):
			own = append(own, c)
		case !slices.ContainsFunc(s.columns[r].consent, after):
			any = append(any, c)
		}
	}
	if len(own) == 1 {
		return own[0]
	}
	if len(own) == 0 && len(any) == 1 {
		return any[0]
	}
	return nil
}

// isExpiryTime tells whether a time of consent is the one at which it expires.
func isExpiryTime(c *catalog.Column) bool {
	_, negative := looksLikeConsent(c.Name)
	word := snake(c.Name)
	return timeType(c.Type) && !negative && !isWithdrawal(word) &&
		(strings.Contains(word, "expir") || strings.Contains(word, "until"))
}

func isWithdrawal(word string) bool {
	return strings.Contains(word, "withdraw") || strings.Contains(word, "revok")
}

// isLinkTable tells whether a table does little but link other tables: what tells its rows apart is links, or it has few
// columns, and none that holds what somebody wrote. Of a table with few columns that has such a one, more is its name.
func (s *survey) isLinkTable(r *catalog.Relation, links []link) (more string, ok bool) {
	var bound []string
	for _, l := range links {
		bound = append(bound, l.columns...)
	}
	unbound := func(name string) bool { return !slices.Contains(bound, name) }
	ofLinks := func(key []string) bool { return len(key) > 1 && !slices.ContainsFunc(key, unbound) }
	if ofLinks(r.PrimaryKey) || slices.ContainsFunc(r.Unique, func(k catalog.Key) bool { return ofLinks(k.Columns) }) {
		return "", true
	}
	if len(r.Columns) > 6 {
		return "", false
	}
	for i := range r.Columns {
		if c := &r.Columns[i]; unbound(c.Name) && !slices.Contains(r.PrimaryKey, c.Name) && s.holdsContent(c) {
			return c.Name, false
		}
	}
	return "", true
}

// holdsContent tells whether a column may hold what somebody wrote or sent, and not a word that describes a link.
func (s *survey) holdsContent(c *catalog.Column) bool {
	values, _ := s.values(c)
	return values == nil && (family(c.Type) == "text" && !oneOf(lastWord(snake(c.Name)), linkWords) ||
		oneOf(c.Type, "json jsonb bytea xml"))
}

// agreedBlock is a block on a consent column; word is the value that consent blocks of other tables require.
type agreedBlock struct {
	Block
	word string
}

// consentBlock makes the block of a consent column, or says why its values are not understood.
func (s *survey) consentBlock(r *catalog.Relation, c *catalog.Column) (out agreedBlock, why string) {
	_, negative := looksLikeConsent(c.Name)
	values, from := s.values(c)
	switch {
	case c.Type == "boolean":
		out.word = "true"
		if negative {
			out.word = "false"
		}
		out.Evidence = c.Name + " is a boolean"
	case family(c.Type) == "text" || values != nil:
		if negative {
			return out, fmt.Sprintf("%s seems to say no, and its words are not known", c.Name)
		}
		if values == nil {
			out.word, out.Evidence = "granted", fmt.Sprintf(
				"%s: the word is a guess, no enum and no CHECK says which there are", c.Name)
			break
		}
		for _, word := range strings.Fields(yesWords) {
			if i := slices.IndexFunc(values, func(v string) bool { return snake(v) == word }); i >= 0 {
				out.word = values[i]
				break
			}
		}
		if out.word == "" {
			return out, fmt.Sprintf("%s holds %s: which of these means that somebody agreed?", c.Name, strings.Join(values, ", "))
		}
		out.Evidence = fmt.Sprintf("%s: %s, by its %s", c.Name, strings.Join(values, ", "), from)
	case timeType(c.Type):
		name := catalog.QuoteIdent(c.Name)
		if negative || isWithdrawal(snake(c.Name)) {
			out.Block = Block{YAML: "sql: " + yamlQuoted(name+" IS NULL"), Evidence: c.Name + " looks like the time at which consent ended"}
		} else if isExpiryTime(c) {
			if c.Type != "timestamp with time zone" {
				return out, fmt.Sprintf("%s is a %s, which is not compared with the time", c.Name, c.Type)
			}
			out.Block = Block{YAML: "sql: " + yamlQuoted(name+" IS NULL OR "+name+" > now()"),
				Evidence: c.Name + " looks like the time at which consent ends"}
		} else {
			out.Block = Block{YAML: "sql: " + yamlQuoted(name+" IS NOT NULL"), Evidence: c.Name + " looks like the time of consent"}
		}
		return out, ""
	default: // an id, a text of consent, a version: does not say whether
		return out, ""
	}
	out.YAML = fmt.Sprintf("status: { column: %s, is: %s }", yamlFlow(c.Name), policySpelling(out.word, c))
	return out, ""
}

// policySpelling is a word as a policy compares a column with it.
func policySpelling(word string, c *catalog.Column) string {
	if c.Type == "boolean" {
		return word
	}
	return yamlFlow(word)
}

// values are the values that a column may have, by its enum or its CHECK.
func (s *survey) values(c *catalog.Column) (values []string, from string) {
	if t := s.snap.TypeByOID(c.TypeOID); t != nil && t.Kind == 'e' {
		return t.Labels, "enum"
	}
	return c.Values, "CHECK"
}

func (s *survey) valuesOf(c *catalog.Column) string {
	values, _ := s.values(c)
	if len(values) == 0 {
		return ""
	}
	return " (" + strings.Join(values, ", ") + ")"
}

func (s *survey) columnEvidence(r *catalog.Relation, c *catalog.Column) string {
	if to := s.target(r, c.Name); to != nil {
		return fmt.Sprintf("%s refers to %s", c.Name, s.policyName(to.Name))
	}
	return fmt.Sprintf("%s, of type %s, by its name", c.Name, c.Type)
}
