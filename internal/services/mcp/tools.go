package mcp

// toolSets are the functions that make the tools of this package; a policy can declare more. Package policy knows the
// names of all of them.
var toolSets = []func() []Tool{consentTools, partnershipTools, statementTools, interactionTools, privacyTools, generalizeTools}

// ReservedNames returns the names of the tools that this package makes.
func ReservedNames() []string {
	var out []string
	for _, toolSet := range toolSets {
		for _, t := range toolSet() {
			out = append(out, t.Name)
		}
	}
	return out
}
