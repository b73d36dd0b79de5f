package pgcatalog

import (
	"context"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// When a row is written, PostgreSQL may call functions of the table's owner, with the rights of the role that writes. A
// function counts as the owner's unless it is PostgreSQL's own, pgconsent's, or code of a known extension.

var foreignCodeNodes = []string{"CONVERTROWTYPE", "COERCETODOMAIN", "ROWCOMPARE", "MINMAX", "XMLEXPR", "JSON", "NEXTVALUE",
	"SUBLINK"}

// mayRunForeignCode tells whether an expression may call code of other roles. Functions that are not immutable, except
// now(), count as such code, since they may execute a text. A polymorphic function calls the functions that compare
// values of its argument types, so all types in the expression count. t is nil if there is no expression.
func (k *objectFacts) mayRunForeignCode(t *tree) bool {
	return t != nil && (t.hasNode(foreignCodeNodes) || slices.ContainsFunc(t.functions, k.mayBeForeignCall) || !k.hasOnlyPlainTypes(t))
}

func (k *objectFacts) mayBeForeignCall(oid uint32) bool {
	f := k.functions[oid]
	return f == nil || !(f.isImmutable && (!k.isForeign(f) || k.isHarmlessSQL(f)) || f.oid < firstNormalOID &&
		f.name == "now")
}

// hasOnlyPlainTypes tells whether isPlainType holds for all types in an expression.
func (k *objectFacts) hasOnlyPlainTypes(t *tree) bool {
	return !slices.ContainsFunc(t.types, func(oid uint32) bool { return !k.isPlainType(oid) })
}

// isForeign tells whether a function is neither PostgreSQL's own nor code of a known extension. A known extension's
// function in another language than C counts as foreign: it calls other functions by name, and its owner may have
// replaced it, as users are meant to replace earth(). Only a superuser can replace C code, or one of PostgreSQL's
// functions under another name, as behind citext's operators.
func (k *objectFacts) isForeign(f *function) bool {
	return !f.isNative && !(k.isOfKnownExtension("pg_proc", f.oid) && (f.language == "c" || f.language == "internal"))
}

// isCallableByAnybody tells whether a function is foreign, as isForeign defines it, and is not C code of any extension.
func (k *objectFacts) isCallableByAnybody(f *function) bool {
	return k.isForeign(f) && !(f.language == "c" && k.extensionOf("pg_proc", f.oid) != "")
}

// isPlainType tells whether PostgreSQL calls no function of the owner to make, compare or write values of a type. It
// holds for PostgreSQL's own types, types of known extensions, enums, and arrays of these. It does not hold for domains
// (see hasPlainType) and composite types. Nor does it hold for a type for which another role has made an operator
// class, since arrays of it are compared with that class. OID 0 in an expression stands for no type.
func (k *objectFacts) isPlainType(oid uint32) bool {
	return oid == 0 || k.isPlain(k.types[oid]) || k.isPlain(k.elements[oid])
}

func (k *objectFacts) isPlain(t *typeFacts) bool {
	if t == nil {
		return false
	}
	var isComparable bool
	switch t.kind {
	case 'e':
		isComparable = true
	case 'b':
		isComparable = t.oid < firstNormalOID || k.isOfKnownExtension("pg_type", t.oid)
	case 'r', 'm':
		isComparable = t.oid < firstNormalOID
	}
	return isComparable && !slices.ContainsFunc(k.classes, func(c operatorClass) bool {
		return c.comparesType && (c.typeOID == t.oid || c.typeOID == t.array) && !k.isOfKnownExtension("pg_opclass", c.oid)
	})
}

// hasPlainType tells whether isPlainType holds for the type of a column. It also accepts a domain over such a type
// whose checks call no function of other roles.
func (l *loader) hasPlainType(oid uint32) bool {
	k := &l.objects
	if k.isPlainType(oid) {
		return true
	}
	d := k.types[oid]
	return d != nil && d.kind == 'd' && k.isPlainType(d.base) && !slices.ContainsFunc(l.checks, func(c check) bool {
		return c.domain == oid && c.tree != nil && k.mayRunForeignCode(c.tree.withRenamedValue())
	})
}

// withRenamedValue returns the check of a domain with other names for the nodes of the domain's value. Otherwise these
// nodes would count as casts to a domain.
func (t *tree) withRenamedValue() *tree {
	text := strings.ReplaceAll(t.text, "{COERCETODOMAINVALUE ", "{VALUE ")
	return newTree(&text)
}

// readUserCodeOfWrites finds the tables whose updates or deletes call no function of the owner. Triggers of foreign
// keys are PostgreSQL's own, and query with the rights of the tables' owners. pgconsent's own triggers do not count,
// nor do triggers that only write the time (timed.go).
func (l *loader) readUserCodeOfWrites(ctx context.Context) error {
	k := &l.objects
	// tables where any UPDATE may call functions of the owner, by a generated column, check, index or key
	updateRunsCode := map[uint32]bool{}
	for _, g := range l.generatedColumns {
		updateRunsCode[g.relation] = updateRunsCode[g.relation] || g.isVirtual || k.mayRunForeignCode(g.tree)
	}
	for _, c := range l.checks {
		updateRunsCode[c.relation] = updateRunsCode[c.relation] || k.mayRunForeignCode(c.tree)
	}
	for _, i := range l.indexes {
		updateRunsCode[i.relation] = updateRunsCode[i.relation] ||
			slices.ContainsFunc(i.storedTrees(), k.mayRunForeignCode) || k.hasForeignMethod(i)
	}
	if err := l.readKeysRunningUserCode(ctx, updateRunsCode); err != nil {
		return err
	}
	writesRunCode := map[uint32]bool{} // tables of which every write calls functions of the owner
	for _, p := range l.policies {
		writesRunCode[p.relation] = writesRunCode[p.relation] || !p.permissive ||
			slices.ContainsFunc(p.trees, func(t *tree) bool {
				return !k.hasOnlyPlainTypes(t) || slices.ContainsFunc(t.functions, k.isHarmfulInPolicy)
			})
	}
	// tables with triggers that call the owner's functions
	deletesRunCode, updatesRunCode := map[uint32]bool{}, map[uint32]bool{}
	for _, t := range l.triggers {
		runsForeignCode := k.mayRunForeignCode(t.whenTree) ||
			!(k.functions[t.functionOID].isNative || t.schema == "pgconsent" &&
				t.typeBits&triggerBefore == 0)
		deletesRunCode[t.relation] = deletesRunCode[t.relation] || t.typeBits&triggerOnDelete != 0 && runsForeignCode
		updatesRunCode[t.relation] = updatesRunCode[t.relation] ||
			t.typeBits&triggerOnUpdate != 0 && runsForeignCode && (k.mayRunForeignCode(t.whenTree) || !l.onlyWritesTime(t))
	}
	isPlain := map[uint32]bool{} // the results of hasPlainType, by the OIDs of types
	for oid, relation := range l.relations {
		if relation.Kind != catalog.Table || !l.heapTables[oid] || relation.Name.Schema == "pg_catalog" ||
			relation.Name.Schema == "information_schema" || relation.HasRules || writesRunCode[oid] {
			continue
		}
		relation.DeleteRunsNoUserCode = !deletesRunCode[oid]
		relation.UpdateRunsNoUserCode = !updatesRunCode[oid] && !updateRunsCode[oid] && !slices.ContainsFunc(relation.Columns,
			func(c catalog.Column) bool {
				if _, isKnown := isPlain[c.TypeOID]; !isKnown {
					isPlain[c.TypeOID] = l.hasPlainType(c.TypeOID)
				}
				return !isPlain[c.TypeOID]
			})
	}
	return nil
}

// isHarmfulInPolicy tells whether a function that a row policy calls belongs to another role, and PostgreSQL may call
// it while it plans.
func (k *objectFacts) isHarmfulInPolicy(oid uint32) bool {
	f := k.functions[oid]
	return f == nil || k.isForeign(f) && !k.isHarmlessInPolicy(f)
}

// readKeysRunningUserCode finds the tables with keys that PostgreSQL compares by operators of other roles, or casts by
// functions of other roles. PostgreSQL casts the columns of a foreign key to the types that the operators of the
// referenced key compare.
func (l *loader) readKeysRunningUserCode(ctx context.Context, updateRunsCode map[uint32]bool) error {
	uses := &l.objects.userCode
	if len(uses.operators) == 0 && len(uses.casts) == 0 {
		return nil
	}
	var oid uint32
	return l.each(ctx, `SELECT k.oid FROM pg_constraint AS con CROSS JOIN LATERAL (VALUES (con.conrelid), (con.confrelid)) AS k (oid)
		WHERE k.oid <> 0 AND (con.conpfeqop || con.conppeqop || con.conffeqop || con.conexclop) && $1::oid[]
		UNION SELECT con.conrelid FROM pg_constraint AS con JOIN pg_attribute AS a ON a.attrelid = con.conrelid AND a.attnum = ANY (con.conkey)
			WHERE con.contype = 'f' AND a.atttypid = ANY ($2::oid[])`,
		[]any{&oid},
		func() error {
			updateRunsCode[oid] = true
			return nil
		}, uses.operators, uses.casts)
}

// hasForeignMethod tells whether an index has an unknown access method or operator class, or an operator class with a
// support function of another role.
func (k *objectFacts) hasForeignMethod(i *index) bool {
	return i.methodOID >= firstNormalOID && !k.isOfKnownExtension("pg_am", i.methodOID) ||
		slices.ContainsFunc(i.classes, func(oid uint32) bool {
			return oid >= firstNormalOID && !k.isOfKnownExtension("pg_opclass", oid) || slices.Contains(k.userCode.classes, oid)
		})
}
