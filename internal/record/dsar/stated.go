package dsar

import (
	"slices"
	"time"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
	"github.com/pgconsent/pgconsent/internal/registry/consent"
	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// ConsentTable is a table of the application that states consents of persons, according to the policy. Either a
// person's row has a status, or each row is the record of a consent.
type ConsentTable struct {
	Relation      *catalog.Relation
	PersonColumn  string         // the column with the person's id
	StatusColumn  string         // the column with the status; "": each row is a record
	ExpiryColumn  string         // the column with the time at which the consent ends; "": there is none
	GranteeColumn string         // the column of a record with the grantee; "": records are for everybody
	ScopeColumn   string         // the column of a record with the scope; "": records are about everything
	Active        predicate.Node // the condition that a row is an active consent; nil: every row is one
}

// ConsentTables returns the tables of a policy that state consents, without repetitions.
func ConsentTables(p *policy.Policy) []ConsentTable {
	var out []ConsentTable
	add := func(t ConsentTable) {
		isSame := func(o ConsentTable) bool {
			return o.Relation.Name == t.Relation.Name && o.PersonColumn == t.PersonColumn &&
				o.StatusColumn == t.StatusColumn && o.ExpiryColumn == t.ExpiryColumn &&
				o.ActiveCondition() == t.ActiveCondition()
		}
		if !slices.ContainsFunc(out, isSame) {
			out = append(out, t)
		}
	}
	visit := func(node predicate.Node) {
		switch n := node.(type) {
		case predicate.Consent:
			if len(n.Steps) == 0 {
				return
			}
			relation := n.Steps[len(n.Steps)-1].Relation
			if len(relation.PrimaryKey) != 1 {
				return
			}
			// The condition is about the person's own row.
			id := relation.PrimaryKey[0]
			itself := predicate.Consent{Steps: []predicate.Step{{Relation: relation, Column: id, FromColumn: id}},
				FirstRequired: true,
				StatusColumn:  n.StatusColumn, AgreedStatus: n.AgreedStatus, StatusType: n.StatusType, ExpiryColumn: n.ExpiryColumn}
			add(ConsentTable{Relation: relation, PersonColumn: id, StatusColumn: n.StatusColumn, ExpiryColumn: n.ExpiryColumn,
				Active: itself})
		case predicate.RecordedConsent:
			t := ConsentTable{Relation: n.Record.Relation, PersonColumn: n.Record.GrantorColumn,
				GranteeColumn: n.Record.Grantee.Column,
				Active:        n.Record.Rows}
			if n.Record.Scope != nil {
				t.ScopeColumn = n.Record.Scope.Column
			}
			add(t)
		}
	}
	for _, table := range p.Tables() {
		if table.Observed != nil {
			table = table.Observed
		}
		conditions := append([]predicate.Node{table.Rows}, table.ColumnConditions()...)
		if table.Aggregate != nil {
			conditions = append(conditions, table.Aggregate.Rows)
		}
		for _, node := range conditions {
			forEachNode(node, visit)
		}
	}
	return out
}

// ActiveCondition returns the SQL condition, for the owner, that a row called r is an active consent.
func (t ConsentTable) ActiveCondition() string {
	if t.Active == nil {
		return "true"
	}
	return predicate.DirectCondition(t.Active, "r", nil)
}

// StatedConsent is the consent that one row of a [ConsentTable] states about the person.
type StatedConsent struct {
	Table   ConsentTable
	Status  string // the value of the status column; "": the table has no such column
	Grantee string // to whom the record gives the consent; "": to everybody
	Scope   string // what the record gives the consent for; "" and *: everything
	Until   time.Time
	Active  bool
}

// describe says in words what the row states.
func (s StatedConsent) describe() string {
	out := s.Table.Relation.Name.String()
	switch {
	case s.Table.StatusColumn != "":
		out += " says " + s.Table.StatusColumn + " " + s.Status
	case s.Active:
		out += " has a record"
	default:
		out += " has a record that is not in force"
	}
	if s.Grantee != "" {
		out += " to " + s.Grantee
	}
	if s.Scope != "" && s.Scope != consent.AnyScope {
		out += " about " + s.Scope
	}
	if !s.Until.IsZero() {
		out += " until " + Instant(s.Until)
	}
	return out
}

// These texts describe a consent that a table of the application states and that is not active.
const (
	notGivenText = "not given"
	notGivenDPV  = "dpv:ConsentStatusInvalidForProcessing"
)

func (s StatedConsent) basis() Basis {
	c := Consent{Grantee: consent.AnyGrantee, Scope: consent.AnyScope, State: string(consent.StateGiven),
		DPV:       consent.StateGiven.DPVTerm(),
		ExpiresAt: optionalTime(s.Until)}
	if s.Grantee != "" {
		c.Grantee = s.Grantee
	}
	if s.Scope != "" {
		c.Scope = s.Scope
	}
	text := "Consent of the data subject, active: " + s.describe()
	if !s.Active {
		c.State, c.DPV = notGivenText, notGivenDPV
		text = "No consent of the data subject: " + s.describe()
	}
	return Basis{Article: "Article 6(1)(a) GDPR", Text: text, Active: s.Active, Consent: c}
}

func (s StatedConsent) retention() Retention {
	out := Retention{Grantee: consent.AnyGrantee, Scope: consent.AnyScope, Until: optionalTime(s.Until),
		Period: "The consent is not in force: the data are hidden from agents. The controller has to say how long they are kept."}
	if s.Grantee != "" {
		out.Grantee = s.Grantee
	}
	if s.Scope != "" {
		out.Scope = s.Scope
	}
	switch {
	case s.Active && s.Until.IsZero():
		out.Period = "Until the consent is withdrawn; no date is set."
	case s.Active:
		out.Period = "Until the consent expires or is withdrawn."
	}
	return out
}
