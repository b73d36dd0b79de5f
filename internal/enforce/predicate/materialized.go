package predicate

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// Materialized says that the answer of a Consent is stored beside the rows of a table: until when everybody has agreed.
// While the stored answers are not complete, row policies read the subjects themselves. Injected texts and signed views
// always do.
type Materialized struct {
	Relation *catalog.Relation // the table of the row, which has a primary key
}

// MaterializedTable has, for each row of a table, the time until which a consent is valid: -infinity if somebody
// refuses, infinity if nobody's agreement expires.
func (n Consent) MaterializedTable() catalog.Name {
	return catalog.Name{Schema: Schema, Name: "materialized_" + n.MaterializedName()}
}

// MaterializedName is a name for a materialized consent, unique to its condition.
func (n Consent) MaterializedName() string {
	of := n.Materialized.Relation
	n.Materialized = nil
	sum := sha256.Sum256([]byte(of.Name.SQL() + "\x00" + policyOn(n, of, probe)))
	return hex.EncodeToString(sum[:10])
}

// MaterializedReady is the SQL function that takes a MaterializedName and tells whether the stored answers may be read:
// they are complete, and this transaction has changed nothing that they depend on.
const MaterializedReady = Schema + ".materialized_ready"

// materializedOr reads the stored answer where it is complete, and otherwise evaluates live.
func (w *writer) materializedOr(n Consent, row, live string) string {
	if n.Materialized == nil || !w.policy || w.form == flat {
		return live
	}
	table, key := n.MaterializedTable().SQL(), n.Materialized.Relation.PrimaryKey
	now := "OPERATOR(pg_catalog.>) pg_catalog.statement_timestamp()"
	look := func() string {
		k := w.alias()
		var on []string
		for _, name := range key {
			on = append(on, equal(column(k, name), column(row, name)))
		}
		return "EXISTS (SELECT 1 FROM " + table + " AS " + k + " WHERE " + strings.Join(on, " AND ") + " AND " +
			k + ".open_until " + now + fence
	}
	set := func() string {
		k := w.alias()
		return inSet(column(row, key[0]), "SELECT "+column(k, key[0])+" FROM "+table+" AS "+k+" WHERE "+
			k+".open_until "+now) + " IS TRUE"
	}
	fits := len(key) == 1 && hashFamilies[n.Materialized.Relation.Column(key[0]).TypeOID] != ""
	var is string
	switch {
	case w.form == hashedForm && fits:
		is = set()
	case w.form == dual && fits:
		is = "CASE WHEN pgconsent_signed.use_hash() THEN " + set() + " ELSE " + look() + " END"
	default:
		is = look()
	}
	return "CASE WHEN (SELECT " + MaterializedReady + "(" + catalog.QuoteLiteral(n.MaterializedName()) + ")) THEN " + is + " ELSE " +
		live + " END"
}

// subjectAgrees is the condition on a subject's row under which the subject agrees.
func (w *writer) subjectAgrees(n Consent, subject string) string {
	is := status(column(subject, n.Status), n.Is)
	if n.Of != "" {
		is = "(" + w.statusHolds(column(subject, n.Status), n.Is, n.Of) + ")"
	}
	if n.Expires == "" {
		return is
	}
	until := column(subject, n.Expires)
	return "(" + is + " AND (" + until + " IS NULL OR " + until + " OPERATOR(pg_catalog.>) pg_catalog.statement_timestamp()))"
}

// MaterializedConsents returns the materialized consents of n, each once.
func MaterializedConsents(n Node) []Consent {
	var out []Consent
	seen := map[string]bool{}
	walk(n, nil, func(n Node, _ *catalog.Relation) {
		if c, ok := n.(Consent); ok && c.Materialized != nil && !seen[c.MaterializedName()] {
			seen[c.MaterializedName()] = true
			out = append(out, c)
		}
	})
	return out
}

// after tells whether a moment is later than the statement's; "infinity" is.
func after(moment string, now time.Time) bool {
	if moment == "infinity" {
		return true
	}
	v := read(moment, TimestampTZ)
	return v.known && v.time.After(now)
}
