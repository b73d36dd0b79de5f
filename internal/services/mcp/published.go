package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/pgconsent/pgconsent/internal/services/identity"
	"github.com/pgconsent/pgconsent/internal/sql/sqlstate"
	"github.com/pgconsent/pgconsent/policy"
)

// publishedTools makes the tools that the policy declares for functions of the database.
func publishedTools(d *Database) []Tool {
	p := d.Policy()
	if p == nil {
		return nil
	}
	var out []Tool
	for _, function := range p.Functions() {
		if function.Tool != nil {
			out = append(out, publishFunction(function))
		}
	}
	slices.SortFunc(out, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// publishFunction makes a tool that calls a function in a statement of the agent. The proxy sets the arguments that the
// policy pins, whoever calls.
func publishFunction(function *policy.Function) Tool {
	t := Tool{
		Name: function.Tool.Name, Title: function.Tool.Name, Description: function.Tool.Description,
		Roles:    []identity.Role{identity.Agent},
		ReadOnly: function.Overloads[0].Volatility != 'v', IsDestructive: function.Overloads[0].Volatility == 'v',
		RunsStatements: true,
		input: &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{},
			AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}},
		output: rowsSchema,
	}
	for _, a := range function.Tool.Arguments {
		t.input.Properties[a.Name] = argumentSchema(a)
		t.input.PropertyOrder = append(t.input.PropertyOrder, a.Name)
		if !a.Optional {
			t.input.Required = append(t.input.Required, a.Name)
		}
	}
	t.resolveSchemas()
	t.run = func(ctx context.Context, c *Call, arguments json.RawMessage) (any, error) {
		argumentsByName := map[string]json.RawMessage{}
		if err := json.Unmarshal(arguments, &argumentsByName); err != nil {
			return nil, t.invalidArguments(err)
		}
		var names []string
		var parameters [][]byte
		for _, a := range function.Tool.Arguments {
			raw, ok := argumentsByName[a.Name]
			if !ok {
				continue
			}
			text, err := argumentText(a, raw)
			if err != nil {
				return nil, err
			}
			names, parameters = append(names, a.Name), append(parameters, text)
		}
		return c.runStatement(ctx, function.CallStatement(names), parameters, maxRows, false)
	}
	return t
}

var rowsSchema = func() *jsonschema.Schema {
	s, err := jsonschema.For[queryResult](nil)
	if err != nil {
		panic(err)
	}
	return answerSchema(s)
}()

// argumentSchema returns the JSON schema for an argument of the function.
func argumentSchema(a policy.ToolArgument) *jsonschema.Schema {
	element, array := strings.CutSuffix(a.Type, "[]")
	s := &jsonschema.Schema{Type: jsonType(element)}
	description := a.Description
	if s.Type == "string" && !isPlainText(element) || s.Type == "" {
		description = strings.TrimSpace(fmt.Sprintf("%s (%s of PostgreSQL)", description, a.Type))
	}
	if array {
		s = &jsonschema.Schema{Type: "array", Items: s}
	}
	s.Description = description
	return s
}

func jsonType(postgres string) string {
	switch postgres {
	case "smallint", "integer", "bigint":
		return "integer"
	case "real", "double precision", "numeric":
		return "number"
	case "boolean":
		return "boolean"
	case "json", "jsonb":
		return ""
	}
	return "string"
}

func isPlainText(postgres string) bool {
	return postgres == "text" || strings.HasPrefix(postgres, "character varying")
}

// argumentText converts a JSON value to the text format of PostgreSQL.
func argumentText(a policy.ToolArgument, raw json.RawMessage) ([]byte, error) {
	if string(raw) == "null" {
		return nil, nil
	}
	if a.Type == "json" || a.Type == "jsonb" {
		return raw, nil
	}
	if strings.HasSuffix(a.Type, "[]") {
		var elements []json.RawMessage
		if err := json.Unmarshal(raw, &elements); err != nil {
			return nil, sqlstate.New(sqlstate.InvalidParameterValue, sqlstate.ReasonBounds, "%s is an array", a.Name)
		}
		return arrayText(elements)
	}
	return scalarText(raw)
}

// scalarText converts a JSON string, number or boolean to text. The digits of a number stay as they are.
func scalarText(raw json.RawMessage) ([]byte, error) {
	if raw[0] != '"' {
		return raw, nil
	}
	var text string
	err := json.Unmarshal(raw, &text)
	return []byte(text), err
}

// arrayText formats values as a PostgreSQL array, such as {"a","b",NULL}.
func arrayText(elements []json.RawMessage) ([]byte, error) {
	out := []byte{'{'}
	for i, raw := range elements {
		if i > 0 {
			out = append(out, ',')
		}
		if string(raw) == "null" {
			out = append(out, "NULL"...)
			continue
		}
		text, err := scalarText(raw)
		if err != nil {
			return nil, err
		}
		out = append(out, '"')
		for _, c := range text {
			if c == '"' || c == '\\' {
				out = append(out, '\\')
			}
			out = append(out, c)
		}
		out = append(out, '"')
	}
	return append(out, '}'), nil
}
