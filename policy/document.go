package policy

import (
	"errors"

	"github.com/pgconsent/pgconsent/catalog"
)

// Document is a policy as it is written, read and checked for itself.
type Document struct{}

// Load reads a policy from a file, or from every .yaml file of a folder. An error is of type [Errors] where the policy is
// at fault.
func Load(path string) (*Document, error) { return nil, errors.New("not built yet") }

// Compile checks the document against what the database contains. An error is of type [Errors].
func Compile(doc *Document, snap *catalog.Snapshot) (*Policy, error) {
	return nil, errors.New("not built yet")
}
