// Package yamlfile reads the YAML files that people write for pgconsent: policies, tests of policies and the
// configuration.
//
// It takes the part of YAML that says each thing once and in one place: mappings with plain keys, lists and scalars, in
// one document. Every value carries its place in the file, so that an error can name it. Tokens are bounded before they
// are parsed: the parser goes down one call for each level of nesting.
package yamlfile
