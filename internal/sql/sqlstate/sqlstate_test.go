package sqlstate

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"
)

// Each code is a valid SQLSTATE and is used once: otherwise drivers would take one error for another.
func TestCodesAreDistinctSQLSTATEs(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "sqlstate.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	valid := regexp.MustCompile(`^[0-9A-Z]{5}$`)
	seenCodes := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "Code" {
			return true
		}
		name, code := spec.Names[0].Name, strings.Trim(spec.Values[0].(*ast.BasicLit).Value, `"`)
		if !valid.MatchString(code) {
			t.Errorf("%s is %q, which is no SQLSTATE", name, code)
		}
		if other, isTwice := seenCodes[code]; isTwice {
			t.Errorf("%s and %s are both %s", name, other, code)
		}
		seenCodes[code] = name
		return true
	})
	if len(seenCodes) < 20 {
		t.Errorf("only %d codes were found", len(seenCodes))
	}
}

func TestFromKeepsOurErrorsAndHidesOthers(t *testing.T) {
	ownError := New(InsufficientPrivilege, ReasonRelation, "no")
	if got := AsError(fmt.Errorf("wrapped: %w", ownError)); got != ownError {
		t.Errorf("got %v, want the error in the chain", got)
	}
	foreignError := errors.New("password of arcive_owner")
	got := AsError(foreignError)
	if got.Code != InternalError || strings.Contains(got.Message+got.Detail+got.Hint, "password") {
		t.Errorf("got %+v: another error leaves with a fixed text", got)
	}
	if !errors.Is(got, foreignError) {
		t.Error("the log loses the cause")
	}
	if AsError(nil) != nil {
		t.Error("no error is no error")
	}
}
