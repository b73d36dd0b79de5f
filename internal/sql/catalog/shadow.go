package catalog

// ShadowSchema has the objects that agents see in place of pg_catalog and information_schema. For each catalog that
// they may read it has a view with the same columns, which shows only the relations of the policy. Values that tell
// about data (estimates, sizes, expressions, sources, comments) are NULL in it. For each function that could tell such
// values it has a stand-in.
const ShadowSchema = "pgconsent_catalog"

// infoSchemaPrefix is the beginning of the names of views for information_schema; without it they could have the names
// of views for pg_catalog.
const infoSchemaPrefix = "is_"

// ShadowRelation returns the view that agents read in place of a relation of pg_catalog or information_schema. The
// second result is false if agents may not read the relation.
func ShadowRelation(n Name) (Name, bool) {
	s, ok := shadowIndex[n]
	if !ok {
		return Name{}, false
	}
	return s.View(), true
}

// ShadowHidesRows tells whether the view that agents read in place of a relation leaves out rows of what it reads.
func ShadowHidesRows(n Name) bool {
	s := shadowIndex[n]
	return !s.IsEmpty && (s.Where != "" || s.Query != "" || n.Schema == "information_schema")
}

// ShadowFunction returns the stand-in for a function of pg_catalog. The second result is false if there is none;
// whether agents may call the function is then for the rewriter's list to say.
func ShadowFunction(name string) (Name, bool) {
	if !shadowFunctionNames[name] {
		return Name{}, false
	}
	return Name{ShadowSchema, name}, true
}

// Shadow describes the view that agents read in place of a catalog relation.
type Shadow struct {
	Source Name

	// Query is the whole query of the view, if filtering the catalog is not enough. It returns every column of the
	// catalog.
	Query string

	// IsEmpty: the view has the catalog's columns and no rows, and does not read the catalog.
	IsEmpty bool

	// Where is a condition on the rows of the catalog, which has the alias t. "": all rows show.
	Where string

	// KeptColumns lists the columns that show; nil: all columns but those of ReplacedColumns. Other columns are NULL,
	// so that a column which a later PostgreSQL adds does not show by itself.
	KeptColumns []string

	// ReadsColumns has expressions for columns by which the catalog describes a relation that agents read through a
	// view r. JoinCondition joins the catalog to pgconsent.reads, which has the alias r. The catalog itself describes
	// the view, on which agents have rights, and not the relation, on which they have none.
	ReadsColumns  map[string]string
	JoinCondition string

	// ReplacedColumns has expressions that replace the values of columns.
	ReplacedColumns map[string]string
}

// View returns the name of the shadow.
func (s Shadow) View() Name {
	if s.Source.Schema == "information_schema" {
		return Name{ShadowSchema, infoSchemaPrefix + s.Source.Name}
	}
	return Name{ShadowSchema, s.Source.Name}
}

// Shadows returns all shadows, in an order in which they can be created.
func Shadows() []Shadow { return allShadows }

var shadowIndex = func() map[Name]Shadow {
	m := make(map[Name]Shadow, len(allShadows))
	for _, s := range allShadows {
		m[s.Source] = s
	}
	return m
}()
