package mcp

// toolSets lists the functions that make the tools of this package. A policy can declare more tools. Package policy
// knows the names of the tools of this package.
var toolSets = []func() []Tool{consentTools, partnershipTools, statementTools, interactionTools, privacyTools, generalizeTools}

// ReservedNames returns the names of the tools of this package, which a policy cannot declare.
func ReservedNames() []string {
	var out []string
	for _, toolSet := range toolSets {
		for _, t := range toolSet() {
			out = append(out, t.Name)
		}
	}
	return out
}
