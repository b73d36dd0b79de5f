// Package yamlfile parses the YAML files that people write for pgconsent: policies, tests of policies and the
// configuration.
//
// The package accepts a part of YAML: one document of mappings with plain keys, lists and scalars, without anchors,
// aliases, tags or merge keys. Each value has its place in the file, so that errors can name it. The nesting is limited
// before the text is parsed, since the parser is recursive.
package yamlfile
