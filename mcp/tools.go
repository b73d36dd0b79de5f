package mcp

// own lists what makes the tools that do not come from a policy. Their names are in policy.OwnTools.
var own = []func() []Tool{consentTools, partnershipTools, statementTools, interactionTools}
