package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

const (
	// worthRows is the number of rows from which on it is worth materializing a consent that a scan evaluates for each
	// row.
	worthRows = 100_000
	// worthShare is the largest average share of these rows that one subject may have. If a subject's consent changes,
	// triggers update all of the subject's rows.
	worthShare = 0.01
)

// WorthMaterializing proposes the key materialize for consents that a scan evaluates for very many rows, judging by the
// sizes of the tables. The key changes only how fast a rule is.
func WorthMaterializing(doc *Document, snap *catalog.Snapshot, sizes catalog.Sizes, options ...Option) ([]*Error, error) {
	c, p, err := compileDocument(doc, snap, options)
	if err != nil {
		return nil, err
	}
	l := newLinter(c, p, LintContext{})
	for _, name := range l.tableOrder {
		t := l.tables[name]
		rows := estimateAskedRows(l.recompileBlock(t.decl.rows, t.relation), sizes[name])
		if rows < worthRows {
			continue
		}
		l.adviseMaterialize(t.decl.rows, t.relation, rows, sizes)
	}
	return l.sorted(), nil
}

// estimateAskedRows estimates for how many rows a scan evaluates a consent: the rows of one caller by the other blocks
// of the rule.
func estimateAskedRows(rule predicate.Node, size catalog.Size) float64 {
	parts, ok := rule.(predicate.All)
	if !ok {
		parts = predicate.All{rule}
	}
	rows := size.Rows
	for _, part := range parts {
		column := ""
		switch n := part.(type) {
		case predicate.Own:
			column = n.Column
		case predicate.Tenant:
			column = n.Own.Column
		case predicate.Grant: // the number of granted rows is unknown
			return 0
		}
		if column == "" {
			continue
		}
		values := size.DistinctValues[column]
		if values < 1 { // the number of values is unknown, and the caller may have few rows
			return 0
		}
		rows = min(rows, size.Rows/values)
	}
	return rows
}

// adviseMaterialize finds consents in the blocks of a rule that are worth materializing.
func (l *linter) adviseMaterialize(b block, row *catalog.Relation, rows float64, sizes catalog.Sizes) {
	switch b := b.(type) {
	case allBlock:
		for _, part := range b.parts {
			l.adviseMaterialize(part, row, rows, sizes)
		}
	case anyBlock:
		for _, part := range b.parts {
			l.adviseMaterialize(part, row, rows, sizes)
		}
	case consentBlock:
		n, ok := l.recompileBlock(b, row).(predicate.Consent)
		if !ok || b.materialize || l.rules.whyNotMaterialized(row, &n) != "" {
			return
		}
		links, subjects := sizes[row.Name].Rows, sizes[n.Steps[len(n.Steps)-1].Relation.Name].Rows
		if len(n.Steps) > 1 {
			links = sizes[n.Steps[len(n.Steps)-2].Relation.Name].Rows
		}
		if subjects < 1 || links < 1 || links/subjects > worthShare*rows {
			return
		}
		l.warn(b.place, b.withMaterialize(),
			"about %s rows of %s are asked about one by one, whether everybody has agreed: the answer can be stored "+
				"beside each; who changes their mind then changes about %s of these",
			roundedText(rows), row.Name, roundedText(max(1, links/subjects)))
	}
}

// roundedText returns an estimate with two significant digits, as text.
func roundedText(n float64) string {
	scale := 1.0
	for n/scale >= 100 {
		scale *= 10
	}
	return strconv.FormatFloat(float64(int(n/scale+0.5))*scale, 'f', 0, 64)
}

// withMaterialize returns the block as YAML with the key materialize added.
func (b consentBlock) withMaterialize() string {
	var linkTexts []string
	for _, link := range b.subjectLinks {
		var pairs []string
		for _, pair := range link.pairs {
			pairs = append(pairs, yamlWord(pair.Column)+": "+yamlWord(pair.FromColumn))
		}
		linkTexts = append(linkTexts, fmt.Sprintf("%s: { %s }", yamlWord(link.table), strings.Join(pairs, ", ")))
	}
	line := fmt.Sprintf("consent: { every: [ %s ], status: %s, is: %s", strings.Join(linkTexts, ", "), yamlWord(b.status),
		yamlWord(b.requiredWord))
	if b.expires != "" {
		line += ", expires: " + yamlWord(b.expires)
	}
	return line + ", materialize: true }"
}

var plainWord = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.]*$`)

// yamlWord quotes a word if YAML needs it.
func yamlWord(s string) string {
	if plainWord.MatchString(s) && !slices.Contains([]string{
		"true", "false", "null", "yes", "no", "on", "off", "y", "n"}, strings.ToLower(s)) {
		return s
	}
	return strconv.Quote(s)
}
