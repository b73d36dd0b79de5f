package policy_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pgconsent/pgconsent/policy"
)

func TestSchemaIsCommitted(t *testing.T) {
	committedSchema, err := os.ReadFile("../docs/schema/policy.json")
	if *update {
		if err := os.WriteFile("../docs/schema/policy.json", policy.Schema(), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err != nil || !bytes.Equal(committedSchema, policy.Schema()) {
		t.Errorf("docs/schema/policy.json is not what pgconsent policy schema prints: go test ./policy -run TestSchemaIsCommitted -update (%v)", err)
	}
}

// validator returns a function that validates a policy with the JSON schema. Text that is not YAML gives an error of
// its own.
func validator(t *testing.T) func(text string) (notYAML, schemaError error) {
	t.Helper()
	parsedSchema, err := jsonschema.UnmarshalJSON(bytes.NewReader(policy.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", parsedSchema); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return func(text string) (notYAML, schemaError error) {
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			return err, nil
		}
		jsonText, err := json.Marshal(v)
		if err != nil {
			return err, nil
		}
		instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(jsonText))
		if err != nil {
			return err, nil
		}
		return nil, schema.Validate(instance)
	}
}

// Every policy of the test worlds and of the docs is valid.
func TestSchemaAcceptsRightPolicies(t *testing.T) {
	validate := validator(t)
	kinds := map[string]int{}
	check := func(kind, sourceColumn, text string) {
		kinds[kind]++
		if notYAML, schemaError := validate(text); notYAML != nil || schemaError != nil {
			t.Errorf("%s: %v%v\n%s", sourceColumn, notYAML, schemaError, text)
		}
	}
	for _, root := range []string{"../examples/worlds", "../docs", "../cmd/pgconsent/testdata/init", "../test"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			switch {
			case err != nil:
				return err
			case d.Name() == "policy.yaml", root == "../cmd/pgconsent/testdata/init" && strings.HasSuffix(path, ".yaml"):
				check(root, path, string(text))
			case strings.HasSuffix(path, ".md"):
				for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
					switch language := block[1]; {
					case strings.HasPrefix(language, "rows:"):
						check("rules", path, "version: 1\ntables:\n  t:\n    "+strings.ReplaceAll(language, "\n", "\n    "))
					case strings.HasPrefix(language, "version:") && strings.Contains(language, "tables:"), strings.HasPrefix(language, "tables:"):
						check("policies", path, "version: 1\n"+strings.TrimPrefix(language, "version: 1\n"))
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range []string{"../examples/worlds", "../cmd/pgconsent/testdata/init", "policies"} {
		if kinds[kind] == 0 {
			t.Errorf("no examples of %s were found: %v", kind, kinds)
		}
	}
}

// The schema refuses a wrong policy exactly if the decoder does, which uses no database either.
func TestSchemaRefusesWrongPolicies(t *testing.T) {
	validate := validator(t)
	paths, err := filepath.Glob("testdata/wrong/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	// A schema cannot check the following: the content of texts, two parts together, and names that are used twice.
	unchecked := []string{
		"file-environment", "file-environment-key", "file-entry-far-out", "file-utf8", "file-utf16", "file-nul",
		"file-anchor", "file-merge", "file-tag", "file-bom-crlf", "file-two-documents", "include-missing",
		"aggregate-measure-order", "live-list", "live-seal", "live-setting", "live-no-within", "live-wrong-part",
		"object-any",
		"contract-terms-twice",
		"registry-both", "registry-days", "registry-no-subject", "registry-until", "registry-until-groups", "registry-word",
	}
	refused := 0
	for _, path := range paths {
		c := readCase(t, path)
		name := strings.TrimSuffix(filepath.Base(path), ".txt")
		if len(c.files) != 1 || slices.Contains(unchecked, name) {
			continue
		}
		policyText, err := os.ReadFile(c.write(t))
		if err != nil {
			t.Fatal(err)
		}
		_, loadError := policy.Parse("policy.yaml", policyText)
		notYAML, schemaError := validate(string(policyText))
		switch {
		case notYAML != nil:
		case loadError != nil && schemaError == nil:
			t.Errorf("%s: the schema takes what the decoder refuses: %v", name, loadError)
		case loadError == nil && schemaError != nil:
			t.Errorf("%s: the schema refuses what the decoder takes: %v", name, schemaError)
		case schemaError != nil:
			refused++
		}
	}
	if refused < 20 {
		t.Errorf("the schema refuses %d wrong policies", refused)
	}
}
