package why

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgconsent/pgconsent/internal/enforce/predicate"
)

// explainRegistered finds the subjects of the row, and for each the record of the consent registry that decides.
func (e *explainer) explainRegistered(ctx context.Context, b *Block, n predicate.RegistryConsent, row explainedRow) error {
	query := predicate.RegistryQuery(n, "r", e.values)
	if query == "" {
		return nil
	}
	rows, err := e.tx.Query(ctx, fmt.Sprintf(
		"SELECT q.*, statement_timestamp() FROM %s AS r CROSS JOIN LATERAL (%s) AS q WHERE %s ORDER BY q.self OR "+
			"q.agreed, q.id LIMIT %d",
		row.relation.Name.SQL(), query, row.findCondition("r"), maxRecords+1))
	if err != nil {
		return err
	}
	type subject struct {
		ID            *string
		Self, Agreed  bool
		Number        *int64
		State, Stream *string
		Categories    []string
		Expires       *time.Time
		DecayFrom     *time.Time
		Now           time.Time
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
		record := Record{Table: "subject", Key: []Value{{"id", s.ID}}, Holds: s.Self || s.Agreed}
		switch {
		case s.ID == nil:
			record.Says = "nobody can consent for NULL"
		case s.Self:
			record.Says = "it is the caller, who is not asked"
		case s.Number == nil:
			record.Says = "the registry has no record that is about this row and this agent"
		default:
			sentences := []string{fmt.Sprintf("record %d is %s", *s.Number, *s.State)}
			if s.Stream != nil {
				sentences = append(sentences, "stream "+*s.Stream)
			}
			sentences = append(sentences, "categories "+strings.Join(s.Categories, " and "))
			switch {
			case s.Expires == nil:
				sentences = append(sentences, "without an end")
			case !s.Expires.After(s.Now):
				sentences = append(sentences, "expired at "+s.Expires.UTC().Format(time.RFC3339))
			default:
				sentences = append(sentences, "expires at "+s.Expires.UTC().Format(time.RFC3339))
			}
			if s.DecayFrom != nil {
				sentences = append(sentences, fmt.Sprintf("day %d of a countdown", int(s.Now.Sub(*s.DecayFrom).Hours()/24)))
			}
			record.Says = strings.Join(sentences, ", ")
		}
		if !record.Holds {
			refusing++
		}
		b.Records = append(b.Records, record)
	}
	switch {
	case refusing > 0:
		b.Says = "somebody does not consent"
	case len(found) == 0 && b.Holds:
		b.Says = "nobody is to be asked"
	case len(found) == 0:
		b.Says = "the row that names the subjects is not there"
	case b.Holds:
		b.Says = "everybody consents"
	}
	return nil
}
