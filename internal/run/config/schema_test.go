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

// The JSON schema has every key of the configuration's structs, no other, and is the one in docs/schema.
func TestSchema(t *testing.T) {
	var paths []string
	var walk func(path string, of reflect.Type)
	walk = func(path string, of reflect.Type) {
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		paths = append(paths, path)
		switch {
		case of == attributesType:
		case of.Kind() == reflect.Struct:
			for i := range of.NumField() {
				if key := of.Field(i).Tag.Get("yaml"); key != "-" {
					walk(joinPath(path, key), of.Field(i).Type)
				}
			}
		case of.Kind() == reflect.Map:
			walk(joinPath(path, "NAME"), of.Elem())
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
	committed, err := os.ReadFile("../../../docs/schema/configuration.json")
	if err != nil || !bytes.Equal(committed, Schema()) {
		t.Errorf("docs/schema/configuration.json is not what pgconsent policy schema configuration prints: write it again (%v)", err)
	}
}

// The schema accepts a configuration exactly if the decoder does, as far as a schema can check it.
func TestSchemaAgrees(t *testing.T) {
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", parsed); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	valid := func(text string) error {
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			return err
		}
		plain, err := json.Marshal(v)
		if err != nil {
			return err
		}
		instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(plain))
		if err != nil {
			return err
		}
		return compiled.Validate(instance)
	}
	page, err := os.ReadFile("../../../docs/reference/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	right := []string{whole, least}
	for _, block := range regexp.MustCompile("(?s)```yaml\n(version.*?)```").FindAllStringSubmatch(string(page), -1) {
		right = append(right, block[1])
	}
	if len(right) < 3 {
		t.Error("no configuration on docs/reference/configuration.md")
	}
	for _, text := range right {
		if err := valid(text); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
	}
	for _, text := range []string{
		"version: 2\ndatabases: { app: { policy: p.yaml, owners: [o] } }", "version: 1", least + "lisen: x\n", least + "audit: { mode: sometimes }\n",
		"version: 1\ndatabases: { app: { policy: p.yaml } }",
		"version: 1\ndatabases: { app: { policy: p.yaml, owners: o } }", least + "agents: { a: { attributes: {} } }\n",
		least + "agents: { a: { database: app, attributes: { user: { a: b } } } }\n", least + "upstream: { port: five }\n",
		least + "listen: { a: b }\n", least + "listen: []\n",
	} {
		if err := valid(text); err == nil {
			t.Errorf("the schema takes\n%s", text)
		}
		if _, err := load(text, nil); err == nil {
			t.Errorf("the decoder takes\n%s", text)
		}
	}
}
