package pgcatalog

import (
	"context"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// When a row is written, PostgreSQL may run a function of the owner, with the rights of the role that writes. A
// function that is known neither as PostgreSQL's own nor as pgconsent's counts as the owner's.

var foreignCodeNodes = []string{"CONVERTROWTYPE", "COERCETODOMAIN", "ROWCOMPARE", "MINMAX", "XMLEXPR", "JSON", "NEXTVALUE",
	"SUBLINK"}

// mayRunForeignCode tells whether an expression may run a function that is neither PostgreSQL's own nor of a known
// extension, or whose result depends on more than its arguments, as with functions that execute a text. A function for
// any type runs the code by which its arguments' types are compared, so every type in the expression counts. nil is no
// expression.
func (k *objectFacts) mayRunForeignCode(t *tree) bool {
	return t != nil && (t.hasNode(foreignCodeNodes) || slices.ContainsFunc(t.functions, k.mayBeForeignCall) || !k.hasOnlyPlainTypes(t))
}

func (k *objectFacts) mayBeForeignCall(oid uint32) bool {
	f := k.functions[oid]
	return f == nil || !(f.isImmutable && (!k.isForeign(f) || k.isHarmlessSQL(f)) || f.oid < firstNormalOID &&
		f.name == "now")
}

// hasOnlyPlainTypes tells whether all types in an expression are plain.
func (k *objectFacts) hasOnlyPlainTypes(t *tree) bool {
	return !slices.ContainsFunc(t.types, func(oid uint32) bool { return !k.isPlainType(oid) })
}

// isForeign tells whether a function is neither PostgreSQL's own nor code of a known extension. A function of such an
// extension counts as foreign if it is in another language than C. Others may have replaced it, as earth() is meant to
// be, and it calls other functions by name. Only a superuser can replace C code, or a function that is the server's
// under another name, such as those of citext's operators.
func (k *objectFacts) isForeign(f *function) bool {
	return !f.isNative && !(k.isOfKnownExtension("pg_proc", f.oid) && (f.language == "c" || f.language == "internal"))
}

// isCallableByAnybody tells whether a function is foreign, as isForeign defines it, and is not C code of any extension.
func (k *objectFacts) isCallableByAnybody(f *function) bool {
	return k.isForeign(f) && !(f.language == "c" && k.extensionOf("pg_proc", f.oid) != "")
}

// isPlainType tells whether no code of the owner runs when a value of a type is made, compared or written. Plain are
// PostgreSQL's own types, types of known extensions, enums, and arrays of these. Domains (but see hasPlainType) and
// composite types are not plain. Nor is a type that others have made comparable: its arrays are compared by their code.
// In an expression OID 0 stands for no type.
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

// hasPlainType tells whether the type of a column is plain, or is a domain over a plain type whose checks run no code
// of other roles.
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

// withRenamedValue returns the check of a domain, in which the nodes for the domain's value have other names, so that
// they do not count as casts to a domain.
func (t *tree) withRenamedValue() *tree {
	text := strings.ReplaceAll(t.text, "{COERCETODOMAINVALUE ", "{VALUE ")
	return newTree(&text)
}

// readUserCodeOfWrites finds the tables whose writes run no code of the owner. Triggers of foreign keys are
// PostgreSQL's, and query with the rights of the tables' owners. Our triggers note what has changed, and some triggers
// only write the time (timed.go).
func (l *loader) readUserCodeOfWrites(ctx context.Context) error {
	k := &l.objects
	// tables whose update runs code of the owner, by something else than columns, policies and triggers
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
	writesRunCode := map[uint32]bool{} // tables of which any write runs such code
	for _, p := range l.policies {
		writesRunCode[p.relation] = writesRunCode[p.relation] || !p.permissive ||
			slices.ContainsFunc(p.trees, func(t *tree) bool {
				return !k.hasOnlyPlainTypes(t) || slices.ContainsFunc(t.functions, k.isHarmfulInPolicy)
			})
	}
	deletesRunCode, updatesRunCode := map[uint32]bool{}, map[uint32]bool{} // tables with triggers that count
	for _, t := range l.triggers {
		runsForeignCode := k.mayRunForeignCode(t.whenTree) ||
			!(k.functions[t.functionOID].isNative || t.schema == "pgconsent" &&
				t.typeBits&triggerBefore == 0)
		deletesRunCode[t.relation] = deletesRunCode[t.relation] || t.typeBits&triggerOnDelete != 0 && runsForeignCode
		updatesRunCode[t.relation] = updatesRunCode[t.relation] ||
			t.typeBits&triggerOnUpdate != 0 && runsForeignCode && (k.mayRunForeignCode(t.whenTree) || !l.onlyWritesTime(t))
	}
	isPlain := map[uint32]bool{} // whether a type is plain, by its OID
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

// isHarmfulInPolicy tells whether a function that a row policy calls belongs to another role and may run when the
// policy is planned.
func (k *objectFacts) isHarmfulInPolicy(oid uint32) bool {
	f := k.functions[oid]
	return f == nil || k.isForeign(f) && !k.isHarmlessInPolicy(f)
}

// readKeysRunningUserCode finds the tables with keys that compare by operators of other roles, or cast before
// they compare. The columns of a foreign key are cast to the types that the operators of the referenced key compare.
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

// hasForeignMethod tells whether an index's access method or one of its operator classes is not known, or has a support
// function of other roles.
func (k *objectFacts) hasForeignMethod(i *index) bool {
	return i.methodOID >= firstNormalOID && !k.isOfKnownExtension("pg_am", i.methodOID) ||
		slices.ContainsFunc(i.classes, func(oid uint32) bool {
			return oid >= firstNormalOID && !k.isOfKnownExtension("pg_opclass", oid) || slices.Contains(k.userCode.classes, oid)
		})
}
