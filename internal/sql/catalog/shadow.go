package catalog

// ShadowSchema holds what agents see in place of pg_catalog and information_schema: for each catalog relation they may
// read a view of the same columns that shows the relations of the policy only, with everything that tells of data
// (estimates, sizes, expressions, sources, comments) null, and for each function that could tell such things a stand-in.
const ShadowSchema = "pgconsent_catalog"

// infoSchemaPrefix keeps the views of information_schema apart from those of pg_catalog.
const infoSchemaPrefix = "is_"

// ShadowRelation returns the view that stands for a relation of pg_catalog or information_schema. False: agents are
// refused the relation.
func ShadowRelation(n Name) (Name, bool) {
	s, ok := shadowIndex[n]
	if !ok {
		return Name{}, false
	}
	return s.View(), true
}

// ShadowFunction returns the stand-in for a function of pg_catalog. False: it has none, and whether it may be called is
// for the rewriter's list to say.
func ShadowFunction(name string) (Name, bool) {
	if !shadowFunctionNames[name] {
		return Name{}, false
	}
	return Name{ShadowSchema, name}, true
}

// Shadow describes the view that stands for a catalog relation.
type Shadow struct {
	Source Name

	// Query is the view's whole query, where filtering the original would not do; it names every column of the original.
	Query string

	// Empty: the view has the columns and no rows, and does not read the original at all.
	Empty bool

	// Where filters the original, which is named t. Empty: all rows.
	Where string

	// Keep lists the columns that show; nil: all but those of Set. What it does not list is null, so that a column that
	// a later PostgreSQL adds does not show by itself.
	Keep []string

	// Reads gives columns an expression where the original speaks of a view r that agents read in place of a relation; On
	// joins it to pgconsent.reads, named r. The original shows them the view, on which they have rights, and not the
	// relation, on which they have none.
	Reads map[string]string
	On    string

	// Set gives columns an expression in place of the original's value.
	Set map[string]string
}

// View is the name of the shadow.
func (s Shadow) View() Name {
	if s.Source.Schema == "information_schema" {
		return Name{ShadowSchema, infoSchemaPrefix + s.Source.Name}
	}
	return Name{ShadowSchema, s.Source.Name}
}

// Shadows returns every shadow, in an order in which they can be created.
func Shadows() []Shadow { return shadows }

var shadowIndex = func() map[Name]Shadow {
	m := make(map[Name]Shadow, len(shadows))
	for _, s := range shadows {
		m[s.Source] = s
	}
	return m
}()
