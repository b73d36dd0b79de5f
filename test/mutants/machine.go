package mutants

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// MachineMutants makes n mutants of the packages rewrite, predicate and rls. They are always the same for a seed and a
// state of the code. It changes operators, conditions, results and constants, and removes statements.
func MachineMutants(root string, n int, seed uint64) ([]Mutant, error) {
	var all []Mutant
	for _, pkg := range []string{"rewrite", "internal/enforce/predicate", "rls"} {
		files, err := filepath.Glob(filepath.Join(root, pkg, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			base := filepath.Base(file)
			// Left out is code that only tests use, and code that only chooses between two equivalent ways.
			if strings.HasSuffix(base, "_test.go") || strings.HasSuffix(base, "eval.go") ||
				strings.HasPrefix(base, "hint") || base == "fingerprint.go" || base == "doc.go" {
				continue
			}
			fileMutants, err := mutantsOfFile(file, pkg+"/"+base)
			if err != nil {
				return nil, err
			}
			all = append(all, fileMutants...)
		}
	}
	r := rand.New(rand.NewPCG(seed, 3))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(n, len(all))], nil
}

var flippedOperators = map[token.Token]string{
	token.EQL: "!=", token.NEQ: "==", token.LSS: ">=", token.GEQ: "<", token.GTR: "<=", token.LEQ: ">",
	token.LAND: "||", token.LOR: "&&", token.ADD: "-", token.SUB: "+",
}

// mutantsOfFile returns all mutants that can be made of a file.
func mutantsOfFile(path, name string) ([]Mutant, error) {
	fileSet := token.NewFileSet()
	tree, err := parser.ParseFile(fileSet, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	source := string(text)
	var out []Mutant
	offsetOf := func(p token.Pos) int { return fileSet.Position(p).Offset }
	add := func(from, to token.Pos, kind, replacement string) {
		old := source[offsetOf(from):offsetOf(to)]
		out = append(out, Mutant{
			Name: fmt.Sprintf("%s:%d %s", name, fileSet.Position(from).Line, kind), Why: strings.Join(strings.Fields(old), " ") + " → " + replacement,
			File: name, Old: old, New: replacement, At: offsetOf(from), Machine: true,
		})
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			return n.Tok != token.IMPORT && n.Tok != token.TYPE
		case *ast.BinaryExpr:
			if replacement, ok := flippedOperators[n.Op]; ok && (n.Op != token.ADD || isNumber(n.X) || isNumber(n.Y)) {
				add(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), "operator", replacement)
			}
		case *ast.IfStmt:
			condition := source[offsetOf(n.Cond.Pos()):offsetOf(n.Cond.End())]
			add(n.Cond.Pos(), n.Cond.End(), "condition turned over", "!("+condition+")")
			add(n.Cond.Pos(), n.Cond.End(), "condition never", "false && ("+condition+")")
		case *ast.UnaryExpr:
			if n.Op == token.NOT {
				add(n.OpPos, n.OpPos+1, "not left out", "")
			}
		case *ast.Ident:
			if n.Name == "true" {
				add(n.Pos(), n.End(), "constant", "false")
			}
			if n.Name == "false" {
				add(n.Pos(), n.End(), "constant", "true")
			}
		case *ast.BasicLit:
			if n.Kind == token.INT {
				add(n.Pos(), n.End(), "number", "("+n.Value+" + 1)")
			}
		case *ast.ExprStmt:
			if call, ok := n.X.(*ast.CallExpr); ok {
				add(call.Pos(), call.End(), "call left out", "func() {}()")
			}
		}
		return true
	})
	return out, nil
}

func isNumber(e ast.Expr) bool {
	l, ok := e.(*ast.BasicLit)
	return ok && l.Kind == token.INT
}
