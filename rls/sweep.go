package rls

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// Signatures of the sweeper's functions: the first lists the subjects whose rows are due, the second deletes or changes
// rows of one subject.
const (
	listDueFunction   = "pgconsent.sweep_due()"
	sweepRowsFunction = "pgconsent.sweep_rows(pg_catalog.text, pg_catalog.text, pg_catalog.int4)"
)

// sweeps are functions for the lifecycles of the policy. sweep_due lists the subjects whose rows are due; sweep_rows
// deletes and changes the due rows of one subject in one table. The functions run as the role that migrates, which owns
// the tables, so the control role, which may call them, needs no right on any table. They follow the registry at that
// moment: sweep_rows locks out the registry's writers first. So a renewal comes either before, and saves the rows, or
// after.
type sweeps struct{ *facts }

func (f sweeps) objects() []Object {
	o := newObject("functions of the sweeper",
		"The sweeper deletes what has ended and makes anonymous what has decayed, by the registry and in no other way.")
	for _, function := range []string{listDueFunction, sweepRowsFunction, sweepPreviewFunction, sweepTakeFunction, sweepMadeFunction} {
		o.drop("Take the functions of the sweeper away.", "DROP FUNCTION IF EXISTS "+function)
	}
	o.Make = slices.Clone(o.Drop)
	var due, rows, roots []string
	taken := newCascades(f.policy)
	for _, t := range f.policy.Tables() {
		if t.Lifecycle == nil {
			continue
		}
		s := tableSweep{t.Lifecycle, t.Relation, taken}
		due = append(due, s.due()...)
		rows = append(rows, s.rows())
		roots = append(roots, s.roots()...)
	}
	if len(due) == 0 {
		return []Object{o.Object}
	}
	// Triggers of the application run with the search path of the application's sessions.
	path := []string{"pg_catalog"}
	for _, s := range f.snap.SearchPath() {
		path = append(path, catalog.QuoteIdent(s))
	}
	search := strings.Join(append(path, "pg_temp"), ", ")
	o.Make = append(o.Make, taken.functions(f.control, search, roots)...)
	o.create(fmt.Sprintf("CREATE FUNCTION pgconsent.sweep_due() RETURNS TABLE (relation pg_catalog.text, "+
		`subject pg_catalog.text, what pg_catalog.text, number pg_catalog.int8)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $pgconsent_sweep$
#variable_conflict use_column
BEGIN
  RETURN QUERY %s;
END $pgconsent_sweep$`, strings.Join(due, "\n  UNION ALL ")))
	o.create(fmt.Sprintf("CREATE FUNCTION pgconsent.sweep_rows(relation pg_catalog.text, who pg_catalog.text, "+
		"most pg_catalog.int4) RETURNS TABLE (swept pg_catalog.text, what pg_catalog.text, "+
		`number pg_catalog.int8)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = %s AS $pgconsent_sweep$
#variable_conflict use_column
<<pgconsent_own>>
DECLARE
  os pg_catalog.oid[];
  xs pg_catalog.tid[];
BEGIN
  -- Nobody writes the registry until this transaction has ended.
  PERFORM FROM pgconsent.consent_registry AS g FOR SHARE;
  -- They wait for no transaction that holds a row which has to go: an agent's may last.
  PERFORM pg_catalog.set_config('lock_timeout', '1s', true);
  CASE sweep_rows.relation
%s  END CASE;
END $pgconsent_sweep$`, search, strings.Join(rows, "")))
	o.create(fmt.Sprintf("REVOKE ALL ON FUNCTION %s, %s FROM PUBLIC", listDueFunction, sweepRowsFunction))
	o.create(fmt.Sprintf("GRANT EXECUTE ON FUNCTION %s, %s TO %s", listDueFunction, sweepRowsFunction, f.control))
	return []Object{o.Object}
}

// tableSweep writes the conditions of one table: t is a row, c the registry's record of its subject's stream.
type tableSweep struct {
	*policy.Lifecycle
	relation *catalog.Relation
	cascades *cascades // what is deleted with its rows
}

func (s tableSweep) name() string {
	return catalog.QuoteLiteral(s.relation.Name.String()) + "::pg_catalog.text"
}

func (s tableSweep) column(name string) string { return "t." + catalog.QuoteIdent(name) }

// subject is the row's subject as the registry has it.
func (s tableSweep) subject() string {
	return "(" + s.column(s.Subject) + `::pg_catalog.text COLLATE pg_catalog."default")`
}

// streamRecord is the condition that c is the record of the row's subject that is about everything.
const streamRecord = "c.grantee OPERATOR(pg_catalog.=) '*'::pg_catalog.text AND c.scope OPERATOR(pg_catalog.=) " +
	"'*'::pg_catalog.text"

// older is the condition that the row is older than a time; a row without a time counts as older.
func (s tableSweep) older(than string) string {
	at := s.column(s.TimeColumn)
	return "(" + at + " IS NULL OR " + at + " OPERATOR(pg_catalog.<) " + than + ")"
}

// otherConsent is the condition that another consent of the subject, to one grantee or about one scope, may show the
// row.
const otherConsent = `EXISTS (SELECT FROM pgconsent.consent_current AS o WHERE o.subject OPERATOR(pg_catalog.=) c.subject
      AND (o.grantee OPERATOR(pg_catalog.<>) '*'::pg_catalog.text OR o.scope OPERATOR(pg_catalog.<>) ` +
	`'*'::pg_catalog.text) AND o.state OPERATOR(pg_catalog.=) 'given'::pg_catalog.text
      AND (o.expires_at IS NULL OR o.expires_at OPERATOR(pg_catalog.>) pg_catalog.statement_timestamp())
      AND (c.state OPERATOR(pg_catalog.<>) ALL ('{withdrawn,revoked}'::pg_catalog.text[]) ` +
	`OR o.number OPERATOR(pg_catalog.>) c.number))`

// ended is the condition that the consent for the row has ended. A consent that is given later does not renew it.
func (s tableSweep) ended() string {
	const over = "c.state OPERATOR(pg_catalog.=) ANY ('{withdrawn,revoked}'::pg_catalog.text[])"
	const expired = "c.stream IS NOT NULL AND c.state OPERATOR(pg_catalog.=) 'given'::pg_catalog.text AND " +
		"c.expires_at OPERATOR(pg_catalog.<=) pg_catalog.statement_timestamp()"
	if s.TimeColumn == "" {
		return "(" + over + " OR c.stream IS NOT NULL AND c.state OPERATOR(pg_catalog.=) " +
			"'expired'::pg_catalog.text OR " + expired + ")"
	}
	return "(" + over + " OR c.void_before IS NOT NULL AND " + s.older("c.void_before") + " OR " + expired +
		" AND " + s.older("c.expires_at") + ")"
}

// erased is the condition that the erasure e includes the row.
func (s tableSweep) erased() string {
	if s.TimeColumn != "" {
		return s.older("e.erased_at")
	}
	return "NOT EXISTS (SELECT FROM pgconsent.consent_current AS o WHERE o.subject OPERATOR(pg_catalog.=) e.subject " +
		`AND o.state OPERATOR(pg_catalog.=) 'given'::pg_catalog.text
      AND (o.expires_at IS NULL OR o.expires_at OPERATOR(pg_catalog.>) pg_catalog.statement_timestamp()))`
}

// columnIsDue is the condition that a column is to be masked, and is not yet.
func (s tableSweep) columnIsDue(b policy.LifecycleColumn) string {
	return s.decayed(b.LastDay, b.Categories) + s.notYetMasked(b)
}

// decayed is the condition that a row is past the given full day of a countdown, or that its subject no longer lists
// the categories beyond.
func (s tableSweep) decayed(after int, beyond []string) string {
	given := func(stream string) string {
		return "c.state OPERATOR(pg_catalog.=) 'given'::pg_catalog.text AND c.stream OPERATOR(pg_catalog.=) '" +
			stream + "'::pg_catalog.text"
	}
	ways := []string{
		// A running countdown, and one that was stopped: the same days as in the rule that hides.
		fmt.Sprintf("%s AND pg_catalog.statement_timestamp() OPERATOR(pg_catalog.-) "+
			"'%d:00:00'::pg_catalog.interval OPERATOR(pg_catalog.>=) c.decay_from", s.older("c.decay_from"), 24*(after+1)),
		fmt.Sprintf("%s AND c.decayed_days OPERATOR(pg_catalog.>) %d", s.older("c.decayed_before"), after),
		// Without a countdown, and for rows that are newer than its start: at once.
		given("ANONYMOUS") + " AND (c.decay_from IS NULL OR NOT " + s.older("c.decay_from") + ")",
	}
	// A row without a time counts as older, but only where the registry has a time to compare with.
	ways[0], ways[1] = "c.decay_from IS NOT NULL AND "+ways[0], "c.decayed_before IS NOT NULL AND "+ways[1]
	if len(beyond) > 0 {
		ways = append(ways, given("TEMPORARY")+" AND c.decayed_before IS NOT NULL AND "+s.older("c.decayed_before")+
			" AND NOT c.categories OPERATOR(pg_catalog.@>) "+array(beyond))
	}
	if s.Anonymise {
		ways = append(ways, s.ended())
	}
	return "(" + strings.Join(ways, " OR ") + ")"
}

func array(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = catalog.QuoteLiteral(w) + "::pg_catalog.text"
	}
	return "ARRAY[" + strings.Join(quoted, ", ") + "]"
}

// notYetMasked is the condition that the column does not have its masked value yet.
func (s tableSweep) notYetMasked(b policy.LifecycleColumn) string {
	column := s.column(b.Name)
	switch b.Mask {
	case policy.Null:
		return " AND " + column + " IS NOT NULL"
	case policy.Hash:
		if b.Subject { // afterwards no subject is found
			return ""
		}
		return " AND NOT pg_catalog.starts_with(" + column + "::pg_catalog.text, 'anonymous-')"
	default:
		return " AND " + column + "::pg_catalog.text IS DISTINCT FROM (" + s.maskedValue(b) + ")::pg_catalog.text"
	}
}

// maskedValue is the masked value. A pseudonym is made of the value and the subject's key: equal values of one subject
// have equal pseudonyms, so that groups are counted right. Nobody can find out whose they were once the key is deleted.
func (s tableSweep) maskedValue(b policy.LifecycleColumn) string {
	column := s.column(b.Name)
	switch b.Mask {
	case policy.Plain:
		return catalog.QuoteLiteral(b.Value) + "::" + b.Type
	case policy.Hash:
		// Without a key, which every subject of a record has, it is the ordinary hash mask.
		return pseudonymAs(b.Type, "COALESCE("+pseudonym("c.subject", column)+
			", pgconsent.mask('sweep||' OPERATOR(pg_catalog.||) "+column+"::pg_catalog.text))")
	default:
		return masked(b.VisibleColumn, column)
	}
}

// pseudonym replaces a value of the subject; NULL where the registry has no key of the subject.
func pseudonym(subject, value string) string {
	return "pgconsent.pseudonym(" + subject + ", " + value + "::pg_catalog.text)"
}

// pseudonymAs is a pseudonym as a value of a column's type.
func pseudonymAs(column, hash string) string {
	if column == "uuid" {
		return hash + "::pg_catalog.uuid"
	}
	return "('anonymous-' OPERATOR(pg_catalog.||) " + hash + ")::" + column
}

// anyColumnIsDue is the condition that some column of the row is due.
func (s tableSweep) anyColumnIsDue() string {
	ways := make([]string, len(s.Columns))
	for i, b := range s.Columns {
		ways[i] = "(" + s.columnIsDue(b) + ")"
	}
	return "(" + strings.Join(ways, "\n      OR ") + ")"
}

// current is a FROM list of the row and its subject's record.
func (s tableSweep) current() string {
	return s.relation.Name.SQL() + " AS t JOIN pgconsent.consent_current AS c ON c.subject OPERATOR(pg_catalog.=) " +
		s.subject() + " AND " + streamRecord
}

// due are queries of the subjects whose rows are due, and of how many of each kind.
func (s tableSweep) due() []string {
	return s.dueQueries(func(what, from, subject, where string) string {
		return fmt.Sprintf("SELECT %s, %s, '%s'::pg_catalog.text, pg_catalog.count(*) FROM %s\n    WHERE %s "+
			"GROUP BY 2", s.name(), subject, what, from, where)
	})
}

// dueQueries writes a query for each kind of rows that are due.
func (s tableSweep) dueQueries(query func(what, from, subject, where string) string) []string {
	out := []string{query("deleted", s.relation.Name.SQL()+
		" AS t JOIN pgconsent.sweep_erased AS e ON e.subject OPERATOR(pg_catalog.=) "+s.subject(), "e.subject", s.erased())}
	if !s.Anonymise {
		out = append(out, query("deleted", s.current(), "c.subject", s.ended()+" AND NOT "+otherConsent))
	}
	if len(s.Columns) > 0 {
		where := s.anyColumnIsDue() + " AND NOT " + otherConsent
		if !s.Anonymise { // what is deleted is not made anonymous
			where += " AND " + s.ended() + " IS NOT TRUE"
		}
		out = append(out, query("anonymised", s.current(), "c.subject", where))
	}
	if where := s.derivedRowsAreDue(); where != "" {
		out = append(out, query("derived", s.current(), "c.subject", where))
	}
	return out
}

// subjectCondition finds the rows of one subject, by an index if there is one.
func (s tableSweep) subjectCondition() string {
	column, who := s.column(s.Subject), "sweep_rows.who"
	typed := ""
	switch c := s.relation.Column(s.Subject); c.Type {
	case "uuid":
		typed = "CASE WHEN " + who + " OPERATOR(pg_catalog.~) '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN " +
			who + "::pg_catalog.uuid END"
	case "smallint", "integer", "bigint":
		// Of numbers of 19 digits not all are a bigint: they are compared before they are converted.
		number := who + "::pg_catalog.numeric OPERATOR"
		typed = "CASE WHEN " + who + " OPERATOR(pg_catalog.~) '^-?[0-9]{1,18}$' THEN " + who + "::pg_catalog.int8 WHEN " + who +
			" OPERATOR(pg_catalog.~) '^-?[0-9]{19}$' THEN CASE WHEN " + number + "(pg_catalog.>=) (-9223372036854775808) AND " +
			number + "(pg_catalog.<=) 9223372036854775807 THEN " + who + "::pg_catalog.int8 END END"
	case "date":
	default:
		return column + "::pg_catalog.text OPERATOR(pg_catalog.=) " + who + " AND " + s.subject() +
			" OPERATOR(pg_catalog.=) " + who
	}
	exact := s.subject() + " OPERATOR(pg_catalog.=) " + who
	if typed == "" {
		return exact
	}
	return column + " OPERATOR(pg_catalog.=) " + typed + " AND " + exact
}

// rows is the table's branch of sweep_rows: the due rows of one subject, at most so many of each kind.
func (s tableSweep) rows() string {
	table := s.relation.Name.SQL()
	locked := func(from, where string) string {
		return fmt.Sprintf("WITH due AS MATERIALIZED (SELECT t.tableoid AS o, t.ctid AS i FROM %s\n      WHERE %s "+
			"AND %s LIMIT sweep_rows.most FOR UPDATE OF t)", from, s.subjectCondition(), where)
	}
	const picked = "t.tableoid OPERATOR(pg_catalog.=) due.o AND t.ctid OPERATOR(pg_catalog.=) due.i"
	const one = "c.subject OPERATOR(pg_catalog.=) sweep_rows.who AND " + streamRecord
	current := table + " AS t JOIN pgconsent.consent_current AS c ON " + one
	returnCount := func(what string) string {
		return fmt.Sprintf(`;
    GET DIAGNOSTICS number = ROW_COUNT;
    IF number OPERATOR(pg_catalog.>) 0 THEN
      swept := %s;
      what := '%s';
      RETURN NEXT;
      %s
    END IF;
`, s.name(), what, note(what))
	}
	remove := func(from, where string) string {
		deleted := "\n    DELETE FROM " + table + " AS t USING due WHERE " + picked + returnCount("deleted")
		if !s.cascades.hasDependents(s.relation) {
			return "    " + locked(from, where) + deleted
		}
		return s.lockAndCollect(locked(from, where)) + s.deleteDependents(true) + "    WITH due (o, i) AS (SELECT * FROM " +
			lockedRows + " AS d)" + deleted
	}
	var b strings.Builder
	fmt.Fprintf(&b, "  WHEN %s THEN\n", s.name())
	b.WriteString(remove(table+
		" AS t JOIN pgconsent.sweep_erased AS e ON e.subject OPERATOR(pg_catalog.=) sweep_rows.who", s.erased()))
	if !s.Anonymise {
		b.WriteString(remove(current, s.ended()+" AND NOT "+otherConsent))
	}
	if where := s.derivedRowsAreDue(); where != "" {
		b.WriteString(s.lockAndCollect(locked(current, where)) + s.deleteDependents(false) +
			fmt.Sprintf(`    number := COALESCE(pg_catalog.cardinality(os), 0);
    IF number OPERATOR(pg_catalog.>) 0 THEN
      swept := %s;
      what := 'derived';
      RETURN NEXT;
      IF number OPERATOR(pg_catalog.>=) sweep_rows.most THEN
        RETURN; -- what others were made from stays until they have gone
      END IF;
    END IF;
`, s.name()))
	}
	if len(s.Columns) > 0 {
		set := make([]string, len(s.Columns))
		for i, column := range s.Columns {
			set[i] = fmt.Sprintf("%s = CASE WHEN %s THEN %s ELSE %s END", catalog.QuoteIdent(column.Name),
				s.columnIsDue(column), s.maskedValue(column), s.column(column.Name))
		}
		b.WriteString("    " + locked(current, s.anyColumnIsDue()+" AND NOT "+otherConsent) +
			"\n    UPDATE " + table + " AS t SET " + strings.Join(set, ",\n      ") +
			"\n    FROM due, pgconsent.consent_current AS c WHERE " + picked + " AND " + one + returnCount("anonymised"))
	}
	return b.String()
}
