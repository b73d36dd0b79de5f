package config

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The JSON Schema has all keys of the configuration's structs and no others, and is the same as in docs/schema.
func TestSchema(t *testing.T) {
	var paths []string
	var walk func(path string, structType reflect.Type)
	walk = func(path string, structType reflect.Type) {
		if structType.Kind() == reflect.Pointer {
			structType = structType.Elem()
		}
		paths = append(paths, path)
		switch {
		case structType == attributesType:
		case structType.Kind() == reflect.Struct:
			for i := range structType.NumField() {
				if key := structType.Field(i).Tag.Get("yaml"); key != "-" {
					walk(joinPath(path, key), structType.Field(i).Type)
				}
			}
		case structType.Kind() == reflect.Map:
			walk(joinPath(path, "NAME"), structType.Elem())
		}
	}
	walk("", reflect.TypeFor[Config]())
	for _, path := range paths {
		if keyDocs[path].doc == "" {
			t.Errorf("%q is not described in config/schema.go", path)
		}
	}
	for path := range keyDocs {
		if !slices.Contains(paths, path) {
			t.Errorf("%q is described in config/schema.go and is no key", path)
		}
	}
	committedSchema, err := os.ReadFile("../../../docs/schema/configuration.json")
	if err != nil || !bytes.Equal(committedSchema, Schema()) {
		t.Errorf("docs/schema/configuration.json is not what pgconsent policy schema configuration prints: write it again (%v)", err)
	}
}

// The JSON Schema accepts a configuration exactly if [Load] does, as far as a schema can express it.
func TestSchemaAgrees(t *testing.T) {
	parsedSchema, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", parsedSchema); err != nil {
		t.Fatal(err)
	}
	compiledSchema, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	validate := func(text string) error {
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			return err
		}
		jsonText, err := json.Marshal(v)
		if err != nil {
			return err
		}
		instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(jsonText))
		if err != nil {
			return err
		}
		return compiledSchema.Validate(instance)
	}
	page, err := os.ReadFile("../../../docs/reference/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	validTexts := []string{fullConfig, minimalConfig}
	for _, block := range regexp.MustCompile("(?s)```yaml\n(version.*?)```").FindAllStringSubmatch(string(page), -1) {
		validTexts = append(validTexts, block[1])
	}
	if len(validTexts) < 3 {
		t.Error("no configuration on docs/reference/configuration.md")
	}
	for _, text := range validTexts {
		if err := validate(text); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	}
	for _, text := range []string{
		"version: 2\ndatabases: { app: { policy: p.yaml, owners: [o] } }", "version: 1", minimalConfig + "lisen: x\n", minimalConfig + "audit: { mode: sometimes }\n",
		"version: 1\ndatabases: { app: { policy: p.yaml } }",
		"version: 1\ndatabases: { app: { policy: p.yaml, owners: o } }", minimalConfig + "agents: { a: { attributes: {} } }\n",
		minimalConfig + "agents: { a: { database: app, attributes: { user: { a: b } } } }\n", minimalConfig + "upstream: { port: five }\n",
		minimalConfig + "listen: { a: b }\n", minimalConfig + "listen: []\n",
	} {
		if err := validate(text); err == nil {
			t.Errorf("the schema takes\n%s", text)
		}
		if _, err := load(text, nil); err == nil {
			t.Errorf("the decoder takes\n%s", text)
		}
	}
}
