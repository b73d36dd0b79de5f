package catalog

// ShadowSchema contains the objects that agents see in place of pg_catalog and information_schema. Each catalog that
// agents may read has a view there with the same columns, which shows only the relations of the policy. Values that
// tell about data (estimates, sizes, expressions, sources, comments) are NULL in it. Functions that return such values
// have stand-ins in this schema.
const ShadowSchema = "pgconsent_catalog"

// infoSchemaPrefix begins the names of views in place of those of information_schema, since views in place of
// pg_catalog could otherwise have the same names.
const infoSchemaPrefix = "is_"

// ShadowRelation returns the view that agents read in place of a relation of pg_catalog or information_schema. The
// second result is false if agents may not read the relation at all.
func ShadowRelation(n Name) (Name, bool) {
	s, ok := shadowIndex[n]
	if !ok {
		return Name{}, false
	}
	return s.View(), true
}

// ShadowHidesRows tells whether the view that agents read in place of a catalog relation leaves out some of its rows.
func ShadowHidesRows(n Name) bool {
	s := shadowIndex[n]
	return !s.IsEmpty && (s.HidesRows() || n.Schema == "information_schema")
}

// ShadowFunction returns the function that agents' statements call in place of a function of pg_catalog. The second
// result is false if there is none. The rewriter then decides by its own list whether agents may call the function.
func ShadowFunction(name string) (Name, bool) {
	if !shadowFunctionNames[name] {
		return Name{}, false
	}
	return Name{ShadowSchema, name}, true
}

// Shadow describes the view that agents read in place of a catalog relation.
type Shadow struct {
	Source Name

	// Query is the whole query of the view, for views that are more than a filtered catalog. It returns every column of
	// the catalog.
	Query string

	// IsEmpty: the view has the columns of the catalog but no rows, and does not read the catalog.
	IsEmpty bool

	// Where is a condition on the rows of the catalog, which has the alias t. "": the view shows all rows.
	Where string

	// Listed is a FROM item l of OIDs. If it is not "", the view shows the rows of the catalog that have these OIDs and
	// for which ListedWhere holds, and those for which one of OtherWheres holds, of which no two may hold for one row.
	// PostgreSQL finds the rows of each part by an index, and need not read the whole catalog.
	Listed      string
	ListedWhere string
	OtherWheres []string

	// KeptColumns lists the columns that the view shows; nil: all columns except ReplacedColumns. Columns that are not
	// listed are NULL, so that a column which a later PostgreSQL adds does not show.
	KeptColumns []string

	// ReadsColumns has expressions for columns that describe a relation which agents read through a view. Agents have
	// rights on the view, so that the catalog describes the view to them; the expressions describe the relation.
	// JoinCondition joins the catalog to pgconsent.reads, which lists such relations and has the alias r.
	ReadsColumns  map[string]string
	JoinCondition string

	// ReplacedColumns has expressions that replace the values of columns. If the policy lists the columns of a table,
	// MaskedColumns come before them: these also ask whether a column is masked.
	ReplacedColumns, MaskedColumns map[string]string
}

// HidesRows tells whether the view's own definition leaves out rows of the catalog.
func (s Shadow) HidesRows() bool { return s.Where != "" || s.Query != "" || s.Listed != "" }

// View returns the name of the view that agents read.
func (s Shadow) View() Name {
	if s.Source.Schema == "information_schema" {
		return Name{ShadowSchema, infoSchemaPrefix + s.Source.Name}
	}
	return Name{ShadowSchema, s.Source.Name}
}

// Shadows returns all shadows, ordered so that each can be created after those before it.
func Shadows() []Shadow { return allShadows }

var shadowIndex = func() map[Name]Shadow {
	m := make(map[Name]Shadow, len(allShadows))
	for _, s := range allShadows {
		m[s.Source] = s
	}
	return m
}()
