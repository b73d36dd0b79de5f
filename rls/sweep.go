package rls

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/policy"
)

// Signatures of the sweeper's functions: the first lists the subjects whose rows are due, and the second deletes or
// changes rows of one subject.
const (
	listDueFunction   = "pgconsent.sweep_due()"
	sweepRowsFunction = "pgconsent.sweep_rows(pg_catalog.text, pg_catalog.text, pg_catalog.int4)"
)

// sweepFeature makes the functions for the lifecycles of the policy. sweep_due lists the subjects whose rows are due.
// sweep_rows deletes and changes the due rows of one subject in one table. The functions run as the role that migrates,
// which owns the tables. So the control role, which may call them, needs no right on any table. They follow the
// registry at that moment: sweep_rows locks out the registry's writers first. So a renewal comes either before, and
// saves the rows, or afterwards.
type sweepFeature struct{ *planFacts }

func (f sweepFeature) objects() []Object {
	o := newObject("functions of the sweeper",
		"The sweeper deletes what has ended and makes anonymous what has decayed, by the registry and in no other way.")
	for _, function := range []string{listDueFunction, sweepRowsFunction, sweepPreviewFunction, sweepTakeFunction, sweepMadeFunction} {
		o.drop("Take the functions of the sweeper away.", "DROP FUNCTION IF EXISTS "+function)
	}
	o.MakeStatements = slices.Clone(o.DropStatements)
	var dueQueries, rowStatements, rootQueries []string
	dependents := newCascades(f.policy)
	for _, t := range f.policy.Tables() {
		if t.Lifecycle == nil {
			continue
		}
		s := tableSweep{t.Lifecycle, t.Relation, dependents}
		dueQueries = append(dueQueries, s.dueSubjectQueries()...)
		rowStatements = append(rowStatements, s.sweepBranch())
		rootQueries = append(rootQueries, s.rootQueries()...)
	}
	if len(dueQueries) == 0 {
		return []Object{o.Object}
	}
	// Triggers of the application run with the search path of the application's sessions.
	path := []string{"pg_catalog"}
	for _, s := range f.snap.SearchPath() {
		path = append(path, catalog.QuoteIdent(s))
	}
	searchPath := strings.Join(append(path, "pg_temp"), ", ")
	o.MakeStatements = append(o.MakeStatements, dependents.functions(f.control, searchPath, rootQueries)...)
	o.create(fmt.Sprintf("CREATE FUNCTION pgconsent.sweep_due() RETURNS TABLE (relation pg_catalog.text, "+
		`subject pg_catalog.text, what pg_catalog.text, number pg_catalog.int8)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $pgconsent_sweep$
#variable_conflict use_column
BEGIN
  RETURN QUERY %s;
END $pgconsent_sweep$`, strings.Join(dueQueries, "\n  UNION ALL ")))
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
END $pgconsent_sweep$`, searchPath, strings.Join(rowStatements, "")))
	o.create(fmt.Sprintf("REVOKE ALL ON FUNCTION %s, %s FROM PUBLIC", listDueFunction, sweepRowsFunction))
	o.create(fmt.Sprintf("GRANT EXECUTE ON FUNCTION %s, %s TO %s", listDueFunction, sweepRowsFunction, f.control))
	return []Object{o.Object}
}

// tableSweep writes the conditions for one table: in them t is a row, and c the registry's record of its subject's
// stream.
type tableSweep struct {
	*policy.Lifecycle
	relation *catalog.Relation
	cascades *cascades // the rows of other tables that are deleted with rows of this one
}

// name returns the name of the table as an SQL literal.
func (s tableSweep) name() string {
	return catalog.QuoteLiteral(s.relation.Name.String()) + "::pg_catalog.text"
}

func (s tableSweep) column(name string) string { return "t." + catalog.QuoteIdent(name) }

// subjectExpression returns the expression of the row's subject as the registry names it.
func (s tableSweep) subjectExpression() string {
	return "(" + s.column(s.Subject) + `::pg_catalog.text COLLATE pg_catalog."default")`
}

// streamRecord is the condition that c is the record of the row's subject for everybody and everything.
const streamRecord = "c.grantee OPERATOR(pg_catalog.=) '*'::pg_catalog.text AND c.scope OPERATOR(pg_catalog.=) " +
	"'*'::pg_catalog.text"

// olderThan returns the condition that the row is older than a time; a row without a time counts as older.
func (s tableSweep) olderThan(moment string) string {
	rowTime := s.column(s.TimeColumn)
	return "(" + rowTime + " IS NULL OR " + rowTime + " OPERATOR(pg_catalog.<) " + moment + ")"
}

// otherConsent is the condition that another consent of the subject, to one grantee or for one scope, may show the row.
const otherConsent = `EXISTS (SELECT FROM pgconsent.consent_current AS o WHERE o.subject OPERATOR(pg_catalog.=) c.subject
      AND (o.grantee OPERATOR(pg_catalog.<>) '*'::pg_catalog.text OR o.scope OPERATOR(pg_catalog.<>) ` +
	`'*'::pg_catalog.text) AND o.state OPERATOR(pg_catalog.=) 'given'::pg_catalog.text
      AND (o.expires_at IS NULL OR o.expires_at OPERATOR(pg_catalog.>) pg_catalog.statement_timestamp())
      AND (c.state OPERATOR(pg_catalog.<>) ALL ('{withdrawn,revoked}'::pg_catalog.text[]) ` +
	`OR o.number OPERATOR(pg_catalog.>) c.number))`

// consentHasEnded returns the condition that the consent for the row has ended. A consent that is given later does not
// renew it.
func (s tableSweep) consentHasEnded() string {
	const isWithdrawn = "c.state OPERATOR(pg_catalog.=) ANY ('{withdrawn,revoked}'::pg_catalog.text[])"
	const isExpired = "c.stream IS NOT NULL AND c.state OPERATOR(pg_catalog.=) 'given'::pg_catalog.text AND " +
		"c.expires_at OPERATOR(pg_catalog.<=) pg_catalog.statement_timestamp()"
	if s.TimeColumn == "" {
		return "(" + isWithdrawn + " OR c.stream IS NOT NULL AND c.state OPERATOR(pg_catalog.=) " +
			"'expired'::pg_catalog.text OR " + isExpired + ")"
	}
	return "(" + isWithdrawn + " OR c.void_before IS NOT NULL AND " + s.olderThan("c.void_before") + " OR " + isExpired +
		" AND " + s.olderThan("c.expires_at") + ")"
}

// isErased returns the condition that the erasure e includes the row.
func (s tableSweep) isErased() string {
	if s.TimeColumn != "" {
		return s.olderThan("e.erased_at")
	}
	return "NOT EXISTS (SELECT FROM pgconsent.consent_current AS o WHERE o.subject OPERATOR(pg_catalog.=) e.subject " +
		`AND o.state OPERATOR(pg_catalog.=) 'given'::pg_catalog.text
      AND (o.expires_at IS NULL OR o.expires_at OPERATOR(pg_catalog.>) pg_catalog.statement_timestamp()))`
}

// columnIsDueCondition returns the condition that a column must be masked and is not masked yet.
func (s tableSweep) columnIsDueCondition(b policy.LifecycleColumn) string {
	return s.isPastDay(b.LastDay, b.Categories) + s.isNotYetMasked(b)
}

// isPastDay returns the condition that a row is past the given full day of a countdown. It holds as well if the row's
// subject no longer lists the given categories.
func (s tableSweep) isPastDay(day int, categories []string) string {
	isGiven := func(stream string) string {
		return "c.state OPERATOR(pg_catalog.=) 'given'::pg_catalog.text AND c.stream OPERATOR(pg_catalog.=) '" +
			stream + "'::pg_catalog.text"
	}
	conditions := []string{
		// for a running countdown, and for one that was stopped: the same days as in the rule that hides
		fmt.Sprintf("%s AND pg_catalog.statement_timestamp() OPERATOR(pg_catalog.-) "+
			"'%d:00:00'::pg_catalog.interval OPERATOR(pg_catalog.>=) c.decay_from", s.olderThan("c.decay_from"), 24*(day+1)),
		fmt.Sprintf("%s AND c.decayed_days OPERATOR(pg_catalog.>) %d", s.olderThan("c.decayed_before"), day),
		// for a consent without a countdown, and for rows that are newer than its start: at once
		isGiven("ANONYMOUS") + " AND (c.decay_from IS NULL OR NOT " + s.olderThan("c.decay_from") + ")",
	}
	// A row without a time counts as older, but only where the registry has a time to compare with.
	conditions[0] = "c.decay_from IS NOT NULL AND " + conditions[0]
	conditions[1] = "c.decayed_before IS NOT NULL AND " + conditions[1]
	if len(categories) > 0 {
		conditions = append(conditions,
			isGiven("TEMPORARY")+" AND c.decayed_before IS NOT NULL AND "+s.olderThan("c.decayed_before")+
				" AND NOT c.categories OPERATOR(pg_catalog.@>) "+arraySQL(categories))
	}
	if s.Anonymise {
		conditions = append(conditions, s.consentHasEnded())
	}
	return "(" + strings.Join(conditions, " OR ") + ")"
}

// arraySQL writes words as an SQL array.
func arraySQL(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = catalog.QuoteLiteral(w) + "::pg_catalog.text"
	}
	return "ARRAY[" + strings.Join(quoted, ", ") + "]"
}

// isNotYetMasked returns the condition that the column does not have its masked value yet.
func (s tableSweep) isNotYetMasked(b policy.LifecycleColumn) string {
	column := s.column(b.Name)
	switch b.Mask {
	case policy.Null:
		return " AND " + column + " IS NOT NULL"
	case policy.Hash:
		if b.Subject { // when the subject is masked, rows of the subject are no longer found
			return ""
		}
		return " AND NOT pg_catalog.starts_with(" + column + "::pg_catalog.text, 'anonymous-')"
	default:
		return " AND " + column + "::pg_catalog.text IS DISTINCT FROM (" + s.maskedValue(b) + ")::pg_catalog.text"
	}
}

// maskedValue returns the expression of a column's masked value. A pseudonym is made from the value and the subject's
// key: equal values of one subject have equal pseudonyms, so that groups are counted right. Once the key is deleted,
// nobody can find out whose values they were.
func (s tableSweep) maskedValue(b policy.LifecycleColumn) string {
	column := s.column(b.Name)
	switch b.Mask {
	case policy.Plain:
		return catalog.QuoteLiteral(b.Value) + "::" + b.Type
	case policy.Hash:
		// a subject without a key gets the ordinary hash; every subject of a record has a key
		return pseudonymAs(b.Type, "COALESCE("+pseudonym("c.subject", column)+
			", pgconsent.mask('sweep||' OPERATOR(pg_catalog.||) "+column+"::pg_catalog.text))")
	default:
		return maskedColumn(b.VisibleColumn, column)
	}
}

// pseudonym returns the expression of the pseudonym for a value of the subject; it is NULL if the registry has no key
// of the subject.
func pseudonym(subject, value string) string {
	return "pgconsent.pseudonym(" + subject + ", " + value + "::pg_catalog.text)"
}

// pseudonymAs returns a pseudonym as a value of a column's type.
func pseudonymAs(columnType, hash string) string {
	if columnType == "uuid" {
		return hash + "::pg_catalog.uuid"
	}
	return "('anonymous-' OPERATOR(pg_catalog.||) " + hash + ")::" + columnType
}

// anyColumnIsDueCondition returns the condition that some column of the row is due.
func (s tableSweep) anyColumnIsDueCondition() string {
	conditions := make([]string, len(s.Columns))
	for i, b := range s.Columns {
		conditions[i] = "(" + s.columnIsDueCondition(b) + ")"
	}
	return "(" + strings.Join(conditions, "\n      OR ") + ")"
}

// fromRowAndRecord returns a FROM list of the row and its subject's record.
func (s tableSweep) fromRowAndRecord() string {
	return s.relation.Name.SQL() + " AS t JOIN pgconsent.consent_current AS c ON c.subject OPERATOR(pg_catalog.=) " +
		s.subjectExpression() + " AND " + streamRecord
}

// dueSubjectQueries returns queries of the subjects whose rows are due, and of the number of such rows of each kind.
func (s tableSweep) dueSubjectQueries() []string {
	return s.dueQueries(func(what, from, subject, where string) string {
		return fmt.Sprintf("SELECT %s, %s, '%s'::pg_catalog.text, pg_catalog.count(*) FROM %s\n    WHERE %s "+
			"GROUP BY 2", s.name(), subject, what, from, where)
	})
}

// dueQueries returns a query for each kind of rows that are due.
func (s tableSweep) dueQueries(query func(what, from, subject, where string) string) []string {
	out := []string{query("deleted", s.relation.Name.SQL()+
		" AS t JOIN pgconsent.sweep_erased AS e ON e.subject OPERATOR(pg_catalog.=) "+s.subjectExpression(), "e.subject",
		s.isErased())}
	if !s.Anonymise {
		out = append(out, query("deleted", s.fromRowAndRecord(), "c.subject", s.consentHasEnded()+" AND NOT "+otherConsent))
	}
	if len(s.Columns) > 0 {
		where := s.anyColumnIsDueCondition() + " AND NOT " + otherConsent
		if !s.Anonymise { // rows that are deleted are not made anonymous
			where += " AND " + s.consentHasEnded() + " IS NOT TRUE"
		}
		out = append(out, query("anonymised", s.fromRowAndRecord(), "c.subject", where))
	}
	if where := s.derivedRowsAreDueCondition(); where != "" {
		out = append(out, query("derived", s.fromRowAndRecord(), "c.subject", where))
	}
	return out
}

// subjectCondition returns the condition that finds the rows of one subject, by an index if there is one.
func (s tableSweep) subjectCondition() string {
	column, subjectParameter := s.column(s.Subject), "sweep_rows.who"
	typedSubject := ""
	switch c := s.relation.Column(s.Subject); c.Type {
	case "uuid":
		typedSubject = "CASE WHEN " + subjectParameter +
			" OPERATOR(pg_catalog.~) '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN " +
			subjectParameter + "::pg_catalog.uuid END"
	case "smallint", "integer", "bigint":
		// a number of 19 digits may not fit into bigint, so the text is compared before it is converted
		number := subjectParameter + "::pg_catalog.numeric OPERATOR"
		typedSubject = "CASE WHEN " + subjectParameter + " OPERATOR(pg_catalog.~) '^-?[0-9]{1,18}$' THEN " + subjectParameter +
			"::pg_catalog.int8 WHEN " + subjectParameter +
			" OPERATOR(pg_catalog.~) '^-?[0-9]{19}$' THEN CASE WHEN " + number + "(pg_catalog.>=) (-9223372036854775808) AND " +
			number + "(pg_catalog.<=) 9223372036854775807 THEN " + subjectParameter + "::pg_catalog.int8 END END"
	case "date":
	default:
		return column + "::pg_catalog.text OPERATOR(pg_catalog.=) " + subjectParameter + " AND " + s.subjectExpression() +
			" OPERATOR(pg_catalog.=) " + subjectParameter
	}
	isSubject := s.subjectExpression() + " OPERATOR(pg_catalog.=) " + subjectParameter
	if typedSubject == "" {
		return isSubject
	}
	return column + " OPERATOR(pg_catalog.=) " + typedSubject + " AND " + isSubject
}

// sweepBranch returns the branch of sweep_rows for this table. It deletes or changes the due rows of one subject, up to
// a number of each kind.
func (s tableSweep) sweepBranch() string {
	table := s.relation.Name.SQL()
	lockDueRows := func(from, where string) string {
		return fmt.Sprintf("WITH due AS MATERIALIZED (SELECT t.tableoid AS o, t.ctid AS i FROM %s\n      WHERE %s "+
			"AND %s LIMIT sweep_rows.most FOR UPDATE OF t)", from, s.subjectCondition(), where)
	}
	const dueRowCondition = "t.tableoid OPERATOR(pg_catalog.=) due.o AND t.ctid OPERATOR(pg_catalog.=) due.i"
	const isSubjectsRecord = "c.subject OPERATOR(pg_catalog.=) sweep_rows.who AND " + streamRecord
	rowsAndRecords := table + " AS t JOIN pgconsent.consent_current AS c ON " + isSubjectsRecord
	returnCount := func(what string) string {
		return fmt.Sprintf(`;
    GET DIAGNOSTICS number = ROW_COUNT;
    IF number OPERATOR(pg_catalog.>) 0 THEN
      swept := %s;
      what := '%s';
      RETURN NEXT;
      %s
    END IF;
`, s.name(), what, noteStatement(what))
	}
	deleteDueRows := func(from, where string) string {
		deleteStatement := "\n    DELETE FROM " + table + " AS t USING due WHERE " + dueRowCondition + returnCount("deleted")
		if !s.cascades.hasDependents(s.relation) {
			return "    " + lockDueRows(from, where) + deleteStatement
		}
		return s.lockAndCollect(lockDueRows(from, where)) + s.deleteDependents(true) +
			"    WITH due (o, i) AS (SELECT * FROM " +
			lockedRows + " AS d)" + deleteStatement
	}
	var b strings.Builder
	fmt.Fprintf(&b, "  WHEN %s THEN\n", s.name())
	b.WriteString(deleteDueRows(table+
		" AS t JOIN pgconsent.sweep_erased AS e ON e.subject OPERATOR(pg_catalog.=) sweep_rows.who", s.isErased()))
	if !s.Anonymise {
		b.WriteString(deleteDueRows(rowsAndRecords, s.consentHasEnded()+" AND NOT "+otherConsent))
	}
	if where := s.derivedRowsAreDueCondition(); where != "" {
		b.WriteString(s.lockAndCollect(lockDueRows(rowsAndRecords, where)) + s.deleteDependents(false) +
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
		assignments := make([]string, len(s.Columns))
		for i, column := range s.Columns {
			assignments[i] = fmt.Sprintf("%s = CASE WHEN %s THEN %s ELSE %s END", catalog.QuoteIdent(column.Name),
				s.columnIsDueCondition(column), s.maskedValue(column), s.column(column.Name))
		}
		b.WriteString("    " + lockDueRows(rowsAndRecords, s.anyColumnIsDueCondition()+" AND NOT "+otherConsent) +
			"\n    UPDATE " + table + " AS t SET " + strings.Join(assignments, ",\n      ") +
			"\n    FROM due, pgconsent.consent_current AS c WHERE " + dueRowCondition + " AND " + isSubjectsRecord + returnCount("anonymised"))
	}
	return b.String()
}
