package mcp

// toolSets makes the tools that do not come from a policy. Their names are also in package policy.
var toolSets = []func() []Tool{consentTools, partnershipTools, statementTools, interactionTools, privacyTools, generalizeTools}

// OwnNames are the names of these tools.
func OwnNames() []string {
	var out []string
	for _, some := range toolSets {
		for _, t := range some() {
			out = append(out, t.Name)
		}
	}
	return out
}
