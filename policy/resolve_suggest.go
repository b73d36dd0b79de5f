package policy

import (
	"regexp"
	"slices"
	"strings"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

func (c *resolver) suggestTable(writtenName string) string {
	schema, _ := splitName(writtenName)
	var names []string
	for _, r := range c.snap.Relations() {
		if isSystemSchema(r.Name.Schema) || (r.Kind != catalog.Table && r.Kind != catalog.PartitionedTable) {
			continue
		}
		if strings.Contains(r.Name.Schema, ".") {
			if r.Name.String() == writtenName {
				return "a schema whose name has a dot cannot be named in a policy: its tables stay out of agents' " +
					"reach until it is renamed"
			}
			continue
		}
		if schema == "" && slices.Contains(c.snap.SearchPath(), r.Name.Schema) {
			names = append(names, r.Name.Name)
		} else {
			names = append(names, r.Name.String())
		}
	}
	if schema == "" && !slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, writtenName) }) {
		for _, n := range names { // the same table may exist in another schema
			if _, name := splitName(n); strings.EqualFold(name, writtenName) {
				return "did you mean " + quoteName(n) + "?"
			}
		}
	}
	return closest(writtenName, names)
}

func (c *resolver) suggestView(writtenName string) string {
	schema, _ := splitName(writtenName)
	var names []string
	for _, r := range c.snap.Relations() {
		switch {
		case isSystemSchema(r.Name.Schema) || r.Kind != catalog.View:
		case schema == "" && slices.Contains(c.snap.SearchPath(), r.Name.Schema):
			names = append(names, r.Name.Name)
		default:
			names = append(names, r.Name.String())
		}
	}
	return closest(writtenName, names)
}

func (c *resolver) suggestFunction(schema, writtenName string) string {
	var names []string
	for _, f := range c.snap.Functions() {
		switch {
		case schema == "" && slices.Contains(c.snap.SearchPath(), f.Name.Schema):
			names = append(names, f.Name.Name)
		default:
			names = append(names, f.Name.String())
		}
	}
	return closest(writtenName, names)
}

// suggestAttribute suggests attribute('user') for a placeholder such as $user or :user.
func (c *resolver) suggestAttribute(text string) string {
	for _, paths := range placeholder.FindAllStringSubmatch(text, -1) {
		if slices.ContainsFunc(c.attributes, func(a Attribute) bool { return a.Name == paths[1] }) {
			return "write attribute('" + paths[1] + "')"
		}
	}
	return ""
}

var placeholder = regexp.MustCompile(`[:$@]\{?([a-z_][a-z0-9_]*)\}?`)
