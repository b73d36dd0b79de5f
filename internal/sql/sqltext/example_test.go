package sqltext_test

import (
	"fmt"

	"github.com/pgconsent/pgconsent/internal/sql/sqltext"
)

// A statement is parsed, changed in its text and in its tree, and sent only if the new text means the new tree.
func Example() {
	const text = "SELECT id FROM people"
	tree, refused := sqltext.Parse(text)
	if refused != nil {
		panic(refused)
	}
	table := tree.Stmts[0].Stmt.GetSelectStmt().FromClause[0].GetRangeVar()
	at := table.Location
	table.Schemaname = "public"
	spliced, refused := sqltext.ApplyEdits(text, []sqltext.Edit{{Start: at, End: at, Text: "public."}})
	if refused != nil {
		panic(refused)
	}
	fmt.Println(spliced.Text)
	fmt.Println(sqltext.ProveSameTree(tree, spliced.Text))
	// Prove strips the tree of its locations, and compares it with that of the text.
	fmt.Println(sqltext.ProveSameTree(tree, "SELECT id FROM private.people").Code)
	// Output:
	// SELECT id FROM public.people
	// <nil>
	// 0A000
}

// What is too long, too deep or no SQL is refused before it reaches the parser, or with its error.
func ExampleParse() {
	_, refused := sqltext.Parse("SELEC 1")
	fmt.Println(refused.Code, refused.Message)
	// Output:
	// 42601 syntax error at or near "SELEC"
}
