package predicate

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Materialized says that a table of pgconsent stores the answer of a Consent for each row: the time until which all
// subjects have agreed. While the stored answers are incomplete, row policies read the subjects themselves. Statements
// into which the rewriter writes the condition, and the signed views, always read the subjects.
type Materialized struct {
	Relation *catalog.Relation // the table whose rows the answers are for; it has a primary key
}

// MaterializedTable returns the name of the table with the stored answers. For each row it has the time until which the
// consent is valid: -infinity if somebody refuses, infinity if no consent expires.
func (n Consent) MaterializedTable() catalog.Name {
	return catalog.Name{Schema: OwnSchema, Name: "materialized_" + n.MaterializedName()}
}

// MaterializedName returns a name for a materialized consent that is unique to its table and condition.
func (n Consent) MaterializedName() string {
	relation := n.Materialized.Relation
	n.Materialized = nil
	sum := sha256.Sum256([]byte(relation.Name.SQL() + "\x00" + policySQL(n, relation, probeForm)))
	return hex.EncodeToString(sum[:10])
}

// MaterializedReady is the name of the SQL function that takes a MaterializedName and reports whether predicates may
// read the stored answers. They may if the answers are complete and this transaction has changed nothing that the
// answers depend on.
const MaterializedReady = OwnSchema + ".materialized_ready"

// storedOrLiveSQL writes an SQL expression that reads the stored answers if they are ready, and otherwise evaluates the
// condition live.
func (w *predicateWriter) storedOrLiveSQL(n Consent, row, live string) string {
	if n.Materialized == nil || !w.forRowPolicy || w.sublinks == existsForm {
		return live
	}
	table, key := n.MaterializedTable().SQL(), n.Materialized.Relation.PrimaryKey
	now := "OPERATOR(pg_catalog.>) pg_catalog.statement_timestamp()"
	look := func() string {
		k := w.newAlias()
		var keyConditions []string
		for _, name := range key {
			keyConditions = append(keyConditions, equalSQL(columnSQL(k, name), columnSQL(row, name)))
		}
		return "EXISTS (SELECT 1 FROM " + table + " AS " + k + " WHERE " + strings.Join(keyConditions, " AND ") + " AND " +
			k + ".open_until " + now + offsetZeroEnd
	}
	set := func() string {
		k := w.newAlias()
		return inSetSQL(columnSQL(row, key[0]), "SELECT "+columnSQL(k, key[0])+" FROM "+table+" AS "+k+" WHERE "+
			k+".open_until "+now) + " IS TRUE"
	}
	fits := len(key) == 1 && hashFamilies[n.Materialized.Relation.Column(key[0]).TypeOID] != ""
	var comparison string
	switch {
	case w.sublinks == hashedForm && fits:
		comparison = set()
	case w.sublinks == choiceForm && fits:
		comparison = "CASE WHEN pgconsent_signed.use_hash() THEN " + set() + " ELSE " + look() + " END"
	default:
		comparison = look()
	}
	return "CASE WHEN (SELECT " + MaterializedReady + "(" + catalog.QuoteLiteral(n.MaterializedName()) + ")) THEN " +
		comparison + " ELSE " +
		live + " END"
}

// subjectAgreesSQL returns the SQL condition on a subject's row that the subject agrees.
func (w *predicateWriter) subjectAgreesSQL(n Consent, subject string) string {
	statusCondition := statusSQL(columnSQL(subject, n.StatusColumn), n.AgreedStatus)
	if n.StatusType != "" {
		statusCondition = "(" + w.statusHoldsSQL(columnSQL(subject, n.StatusColumn), n.AgreedStatus, n.StatusType) + ")"
	}
	if n.ExpiryColumn == "" {
		return statusCondition
	}
	until := columnSQL(subject, n.ExpiryColumn)
	return "(" + statusCondition + " AND (" + until + " IS NULL OR " + until +
		" OPERATOR(pg_catalog.>) pg_catalog.statement_timestamp()))"
}

// MaterializedConsents returns the materialized consents in a predicate, each once.
func MaterializedConsents(n Node) []Consent {
	var out []Consent
	seen := map[string]bool{}
	walkNodes(n, nil, func(n Node, _ *catalog.Relation) {
		if c, ok := n.(Consent); ok && c.Materialized != nil && !seen[c.MaterializedName()] {
			seen[c.MaterializedName()] = true
			out = append(out, c)
		}
	})
	return out
}

// isLaterThan reports whether a moment is later than the time of the statement; "infinity" is later than any time.
func isLaterThan(moment string, now time.Time) bool {
	if moment == "infinity" {
		return true
	}
	v := parseValue(moment, TimestampTZ)
	return v.notNull && v.time.After(now)
}
