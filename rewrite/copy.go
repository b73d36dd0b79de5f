package rewrite

import (
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// copyStmt visits COPY (query) TO STDOUT, whose query may write and return rows, and COPY table TO STDOUT.
func (w *walker) copyStmt(c *sqltext.CopyStmt) {
	w.countNode("CopyStmt")
	location := w.source.Tokens[0].Start
	switch {
	case c.IsProgram || c.Filename != "":
		w.refuseAt(refusalOf("CopyStmt.filename"), location)
	case c.WhereClause != nil && !c.IsFrom:
		w.refuse(refusalOf("CopyStmt.where_clause"))
	}
	w.checkCopyOptions(c.Options, c.IsFrom)
	if w.refused != nil {
		return
	}
	if c.IsFrom {
		w.visitCopyFrom(c)
		return
	}
	if c.Relation != nil {
		w.copyTable(c)
		return
	}
	w.visitQuery(c.GetQuery(), nil)
}

// copyTable visits COPY table [(columns)] TO STDOUT.
func (w *walker) copyTable(c *sqltext.CopyStmt) {
	ref := w.resolveRelation(c.Relation)
	if ref == nil {
		return
	}
	if ref.fragment == nil || ref.relation.Kind != catalog.Table {
		w.refuseAt(refusalOf("CopyStmt.relation"), ref.start)
		return
	}
	ref.copyStmt, ref.columnsEnd = c, ref.end
	if ref.fragment.isView() && (ref.relation.HasChildren ||
		w.source.KindAt(w.source.TokenAt(ref.start)-1) == sqltext.Binary) {
		w.refuseAt(refusalOf("CopyStmt.relation"), ref.start)
		return
	}
	if ref.relation.HasChildren {
		ref.doNotInject(copyOfParent)
	}
	i := w.source.TokenAt(ref.start)
	if w.source.KindAt(i-1) == sqltext.Binary {
		ref.doNotInject(copyBinary) // COPY BINARY is not possible with a query
	}
	if len(c.Attlist) == 0 {
		ref.allColumns = true
		return
	}
	for ; i < len(w.source.Tokens); i++ {
		if w.source.Tokens[i].Kind == sqltext.CloseParen {
			ref.columnsEnd = w.source.Tokens[i].End
			break
		}
	}
	for _, n := range c.Attlist {
		name := n.GetString_().GetSval()
		w.noteColumn(name, ref.start)
		if ref.relation.Column(name) == nil {
			ref.doNotInject(unknownCopyColumn) // PostgreSQL reports that the column does not exist
		}
	}
}

// injectCopy replaces COPY t (columns) by COPY (SELECT columns FROM ...), so that the table can have its predicate.
func (w *walker) injectCopy(ref *reference) {
	c := ref.copyStmt
	var columns []string
	for _, n := range c.Attlist {
		columns = append(columns, catalog.QuoteIdent(n.GetString_().GetSval()))
	}
	if len(c.Attlist) == 0 {
		for _, name := range copiedColumns(ref.relation) {
			columns = append(columns, catalog.QuoteIdent(name))
		}
	}
	text := "(SELECT " + strings.Join(columns, ", ") + " FROM " + ref.fragment.sql +
		" AS " + catalog.QuoteIdent(ref.relation.Name.Name) + ")"
	tree, refusal := sqltext.Parse("COPY " + text + " TO STDOUT")
	if refusal != nil || len(tree.Stmts) != 1 || tree.Stmts[0].GetStmt().GetCopyStmt().GetQuery() == nil {
		w.refuse(sqlstate.AsError(errPolicyExpression))
		return
	}
	w.replace(ref.start, ref.columnsEnd, text, func() {
		c.Relation, c.Attlist, c.Query = nil, nil, tree.Stmts[0].GetStmt().GetCopyStmt().GetQuery()
	})
}

// listedColumns replaces COPY t by COPY t (columns). Under row security PostgreSQL copies SELECT *, which includes
// generated columns; without row security COPY leaves them out.
func (w *walker) listedColumns(ref *reference) {
	rv, c, name := ref.rangeVar, ref.copyStmt, ref.name
	var columns []string
	var list []*sqltext.Node
	for _, column := range copiedColumns(ref.relation) {
		columns = append(columns, catalog.QuoteIdent(column))
		list = append(list, stringNode(column))
	}
	w.replace(ref.start, ref.end, name.SQL()+" ("+strings.Join(columns, ", ")+")", func() {
		rv.Schemaname, rv.Relname, c.Attlist = name.Schema, name.Name, list
	})
}

// copiedColumns returns the columns that PostgreSQL copies if a COPY has no column list.
func copiedColumns(r *catalog.Relation) []string {
	var out []string
	for _, column := range r.Columns {
		if !column.Generated {
			out = append(out, column.Name)
		}
	}
	return out
}

func hasGenerated(r *catalog.Relation) bool { return len(copiedColumns(r)) < len(r.Columns) }

// checkCopyOptions refuses a COPY with an option or a value that is not on the list of allowed ones.
func (w *walker) checkCopyOptions(options []*sqltext.Node, isCopyFrom bool) {
	for _, n := range options {
		d := n.GetDefElem()
		if d == nil || d.Defnamespace != "" || d.Defaction != sqltext.DEFELEM_UNSPEC ||
			!(isAllowedCopyOption(d.Defname, d.Arg) && (!isCopyFrom || d.Defname != "force_quote") ||
				isCopyFrom && isAllowedCopyFromOption(d.Defname, d.Arg)) {
			location := int32(-1)
			if d != nil {
				location = d.Location
			}
			w.refuseAt(refusalOf("CopyStmt.options"), location)
			return
		}
		w.countNode("DefElem")
		if d.Arg.GetAStar() != nil {
			w.countNode("A_Star")
		}
	}
}

// copyEncodings are the encodings besides UTF8 from and to which PostgreSQL converts the rows of a COPY. SQL_ASCII is
// not allowed, because PostgreSQL would check no byte of it.
var copyEncodings = strings.Fields("latin1 latin2 latin3 latin4 latin5 latin6 latin7 latin8 latin9 latin10 " +
	"iso88591 iso88592 iso88593 iso88594 iso88595 iso88596 iso88597 iso88598 iso88599 iso885910 iso885913 iso885914 " +
	"iso885915 iso885916 koi8 koi8r koi8u win866 win874 win1250 win1251 win1252 win1253 win1254 win1255 win1256 win1257 " +
	"win1258 windows866 windows874 windows1250 windows1251 windows1252 windows1253 windows1254 windows1255 windows1256 " +
	"windows1257 windows1258 eucjp euccn euckr euctw eucjis2004 sjis shiftjis shiftjis2004 big5 gbk gb18030 uhc johab")

func isAllowedCopyOption(name string, arg *sqltext.Node) bool {
	text := arg.GetString_()
	switch name {
	case "format":
		return text != nil && (text.Sval == "text" || text.Sval == "csv" || text.Sval == "binary")
	case "delimiter", "null", "quote", "escape":
		return text != nil
	case "header":
		return arg == nil || arg.GetNode() == nil || arg.GetBoolean() != nil || arg.GetInteger() != nil ||
			text != nil && isBoolean(strings.ToLower(text.Sval))
	case "force_quote":
		if arg.GetAStar() != nil {
			return true
		}
		for _, item := range arg.GetList().GetItems() {
			if item.GetString_() == nil {
				return false
			}
		}
		return len(arg.GetList().GetItems()) > 0
	case "encoding":
		return text != nil && (isUTF8(text.Sval) || slices.Contains(copyEncodings, encodingName(text.Sval)))
	}
	return false
}
