package yamlfile

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Format says which parts of YAML a kind of file may use.
type Format struct {
	// RefuseOther is the error message for an alias, an anchor, a tag or a merge key. If it is "", they become nodes of
	// kind [OtherNode], which the user of the node refuses.
	RefuseOther string

	// SecondDocument is the error message for a file with more than one document, and SecondDocumentFix is the suggestion.
	SecondDocument, SecondDocumentFix string

	// CheckText checks each scalar of the file, and the line of a syntax error. If it is nil, every text is accepted.
	CheckText func(at Place, text string) *Error
}

// Parse parses a file. It returns nil without an error for an empty file. After a syntax error it returns no node;
// other errors are collected and returned with the node.
func (f Format) Parse(file string, data []byte) (*Node, Errors) {
	start := Place{file, 1, 1}
	data, textError := decodeText(file, data)
	if textError != nil {
		return nil, Errors{textError}
	}
	tokens := lexer.Tokenize(string(data))
	if textError := checkDepth(file, tokens); textError != nil {
		return nil, Errors{textError}
	}
	parsedFile, err := parser.Parse(tokens, 0)
	if err != nil {
		var syntax yaml.Error
		if !errors.As(err, &syntax) {
			return nil, Errors{start.Errorf("", "not YAML: %s", err)}
		}
		place := placeOf(file, syntax.GetToken())
		if f.CheckText != nil { // The parser takes the braces of ${VARIABLE} for a mapping.
			if textError := f.CheckText(place, lineText(data, place.Line)); textError != nil {
				return nil, Errors{textError}
			}
		}
		suggestion, message := explainMessage(syntax.GetMessage())
		return nil, Errors{place.Errorf(suggestion, "%s", message)}
	}
	r := &yamlReader{Format: f, file: file}
	var root *Node
	for _, doc := range parsedFile.Docs {
		switch {
		case doc.Body == nil:
		case root != nil:
			r.fail(placeOf(file, doc.Body.GetToken()), f.SecondDocumentFix, "%s", f.SecondDocument)
		default:
			root = r.readNode(doc.Body)
		}
	}
	return root, r.errs
}

// yamlReader converts the parser's nodes to nodes of this package.
type yamlReader struct {
	Format
	file string
	errs Errors
}

func (r *yamlReader) fail(place Place, suggestion, format string, args ...any) {
	r.errs = append(r.errs, place.Errorf(suggestion, format, args...))
}

func placeOf(file string, t *token.Token) Place {
	if t == nil || t.Position == nil {
		return Place{file, 1, 1}
	}
	return Place{file, t.Position.Line, t.Position.Column}
}

func (r *yamlReader) readNode(n ast.Node) *Node {
	place := placeOf(r.file, n.GetToken())
	scalar := func(value string, literal ScalarType) *Node {
		return &Node{Place: place, Kind: ScalarNode, Value: value, SourceText: value, ScalarType: literal}
	}
	switch n := n.(type) {
	case *ast.StringNode:
		r.checkText(place, n.Value)
		out := scalar(n.Value, StringScalar)
		out.quotedText, out.quotedPlace = strings.TrimLeft(n.Token.Origin, " \t\n"), place
		return out
	case *ast.LiteralNode:
		r.checkText(place, n.Value.Value)
		out := scalar(n.Value.Value, StringScalar)
		out.quotedText, out.quotedPlace = n.Value.Token.Origin, Place{r.file, place.Line + 1, 1}
		return out
	case *ast.IntegerNode:
		return scalar(n.Token.Value, IntegerScalar)
	case *ast.FloatNode:
		return scalar(n.Token.Value, FloatScalar)
	case *ast.BoolNode:
		out := scalar(strconv.FormatBool(n.Value), BoolScalar)
		out.SourceText = n.Token.Value
		return out
	case *ast.NullNode:
		return &Node{Place: place, Kind: NullNode}
	case *ast.SequenceNode:
		out := &Node{Place: place, Kind: ListNode}
		for _, item := range n.Values {
			out.Items = append(out.Items, r.readNode(item))
		}
		return out
	case *ast.MappingNode:
		return r.readMapping(place, n.Values)
	case *ast.MappingValueNode:
		return r.readMapping(place, []*ast.MappingValueNode{n})
	default:
		if r.RefuseOther != "" {
			r.fail(place, "write the value out", "%s", r.RefuseOther)
		}
		return &Node{Place: place, Kind: OtherNode}
	}
}

func (r *yamlReader) checkText(place Place, text string) {
	if r.CheckText == nil {
		return
	}
	if refused := r.CheckText(place, text); refused != nil {
		r.errs = append(r.errs, refused)
	}
}

func (r *yamlReader) readMapping(place Place, values []*ast.MappingValueNode) *Node {
	out := &Node{Place: place, Kind: MappingNode}
	if len(values) > 0 {
		out.Place = placeOf(r.file, values[0].Key.GetToken())
	}
	for _, v := range values {
		place := placeOf(r.file, v.Key.GetToken())
		key, ok := r.readKey(place, v.Key)
		if !ok {
			continue
		}
		if slices.Contains(out.Keys, key) {
			r.fail(place, "", "the key %q is there twice", key)
			continue
		}
		out.Keys, out.KeyPlaces = append(out.Keys, key), append(out.KeyPlaces, place)
		out.Values = append(out.Values, r.readNode(v.Value))
	}
	return out
}

func (r *yamlReader) readKey(place Place, key ast.MapKeyNode) (string, bool) {
	keyNode, ok := key.(ast.Node)
	if !ok {
		r.fail(place, "", "a key must be a plain word")
		return "", false
	}
	errorCount := len(r.errs)
	n := r.readNode(keyNode)
	switch {
	case len(r.errs) > errorCount:
		return "", false
	case n.Kind != ScalarNode || n.Value == "":
		r.fail(place, "", "a key must be a plain word")
		return "", false
	case hasOddSpace(n.Value):
		r.fail(place, "write plain spaces", "in or before this name is a space of another kind, or an invisible character")
		return "", false
	}
	return n.Value, true
}

var duplicateKeyPattern = regexp.MustCompile(`mapping key "(.*)" already defined at \[(\d+:\d+)\]`)

// explainMessage returns a message of the parser in simpler words, and a suggestion.
func explainMessage(message string) (suggestion, plain string) {
	switch {
	case duplicateKeyPattern.MatchString(message):
		m := duplicateKeyPattern.FindStringSubmatch(message)
		return "", `the key "` + m[1] + `" is there twice, first at ` + m[2]
	case strings.Contains(message, "found character '\t'"), strings.Contains(message, "tab character"):
		return "indent with spaces", "YAML is not indented with tabs"
	case strings.Contains(message, "must be specified"):
		return "close the bracket, or add what is missing before it", message
	case strings.Contains(message, "unexpected key name"):
		return "write name: with a colon behind it; a comment begins with #", "this is no name of a mapping"
	case strings.Contains(message, "not allowed in this context"):
		return "entries of one mapping begin at one column: look at the indentation here and above", message
	}
	return "", message
}
