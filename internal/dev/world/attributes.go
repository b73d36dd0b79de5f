package world

import (
	"fmt"
	"strings"
)

// Attributes are the attributes of an agent's credential, in the form of the configuration: each value is a text, and a
// list is a PostgreSQL array literal.
type Attributes map[string]string

// UnmarshalYAML reads scalars and lists of scalars.
func (a *Attributes) UnmarshalYAML(decode func(any) error) error {
	var yamlValues map[string]any
	if err := decode(&yamlValues); err != nil {
		return err
	}
	*a = Attributes{}
	for name, value := range yamlValues {
		list, ok := value.([]any)
		if !ok {
			text, err := scalarText(name, value)
			if err != nil {
				return err
			}
			(*a)[name] = text
			continue
		}
		elements := make([]string, 0, len(list))
		for _, e := range list {
			text, err := scalarText(name, e)
			if err != nil {
				return err
			}
			elements = append(elements, `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text)+`"`)
		}
		(*a)[name] = "{" + strings.Join(elements, ",") + "}"
	}
	return nil
}

func scalarText(name string, value any) (string, error) {
	switch value.(type) {
	case string, bool, int64, uint64:
		return fmt.Sprint(value), nil
	}
	return "", fmt.Errorf("attribute %s is a text, a whole number, true or false, or a list of these; quote "+
		"anything else", name)
}
