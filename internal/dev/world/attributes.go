package world

import (
	"fmt"
	"strings"
)

// Attributes are the attributes of an agent's credential, as the configuration takes them: each value as text, a list
// as a PostgreSQL array.
type Attributes map[string]string

// UnmarshalYAML reads scalars and lists of scalars.
func (a *Attributes) UnmarshalYAML(decode func(any) error) error {
	var written map[string]any
	if err := decode(&written); err != nil {
		return err
	}
	*a = Attributes{}
	for name, value := range written {
		list, ok := value.([]any)
		if !ok {
			text, err := scalar(name, value)
			if err != nil {
				return err
			}
			(*a)[name] = text
			continue
		}
		elements := make([]string, 0, len(list))
		for _, e := range list {
			text, err := scalar(name, e)
			if err != nil {
				return err
			}
			elements = append(elements, `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text)+`"`)
		}
		(*a)[name] = "{" + strings.Join(elements, ",") + "}"
	}
	return nil
}

func scalar(name string, value any) (string, error) {
	switch value.(type) {
	case string, bool, int64, uint64:
		return fmt.Sprint(value), nil
	}
	return "", fmt.Errorf("attribute %s is a text, a whole number, true or false, or a list of these; quote "+
		"anything else", name)
}
