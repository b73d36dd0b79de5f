package mcp

// toolSets lists what makes the tools that do not come from a policy. Their names are in policy.BuiltinTools.
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
