package api

import (
	"github.com/danielgtaylor/huma/v2"
)

// Patterns that strings in a request must match. They are part of /openapi.json, so that requests generated from it are
// valid.
const (
	textPattern  = `^[^\x00]*$`
	linePattern  = `^[^\x00-\x1f\x7f-\x9f]*$`
	wordPattern  = "^[^\\x00-\\x20\\x7f-\\xa0\"'`\\\\,;()\\[\\]{}<>$]*$"
	scopePattern = `^(\*|(table|row|ctx):[^\x00-\x1f\x7f-\x9f]+)$`
	pathPattern  = `^[A-Za-z0-9_.:-]+(/[A-Za-z0-9_.:-]+)*$`
)

// patternText describes each pattern, for error messages.
var patternText = map[string]string{
	textPattern:  "a text without NUL",
	linePattern:  "a text without line breaks and other control characters",
	wordPattern:  "an id: no spaces, quotes, brackets, commas, dollar signs or control characters",
	scopePattern: "*, or table:, row: or ctx: with a name",
	pathPattern:  "a word of letters, digits, _ . : -, or several with slashes between",
}

// memberPatterns has the patterns of members and parameters, by the tags of operations. The pattern of a list applies
// to each of its items.
var memberPatterns = map[string]map[string]string{
	tagConsent: {
		"user_id": linePattern, "grantee": linePattern, "scope": scopePattern, "categories": pathPattern, "purposes": pathPattern,
		"reason": textPattern, "evidence": textPattern, "Idempotency-Key": linePattern,
	},
	tagPrivacy: {
		"id": wordPattern, "kind": wordPattern, "store": wordPattern, "source_entity": wordPattern, "told_from": wordPattern,
		"subject_ids": wordPattern, "access_grants": wordPattern, "consent_grants": wordPattern, "who": wordPattern,
		"grantor": wordPattern, "grantee": wordPattern, "scope": wordPattern, "context": wordPattern, "participants": wordPattern,
		"default_access_grants": wordPattern, "role": wordPattern, "subject": wordPattern,
		"source": wordPattern, "content": textPattern, "belief": textPattern, "abstraction_note": textPattern, "reason": linePattern,
		"Idempotency-Key": linePattern,
	},
	"audit": {"user_id": linePattern},
}

// addPatterns adds the patterns to /openapi.json, against which package huma checks requests.
func (s *Server) addPatterns() {
	setPattern := func(schema *huma.Schema, pattern string) {
		if schema.Type == huma.TypeArray {
			schema = schema.Items
		}
		if pattern != "" && schema.Type == huma.TypeString && len(schema.Enum) == 0 {
			schema.Pattern, schema.PatternDescription = pattern, patternText[pattern]
			schema.PrecomputeMessages()
		}
	}
	for _, item := range s.api.OpenAPI().Paths {
		for _, o := range []*huma.Operation{item.Get, item.Post, item.Put, item.Delete} {
			if o == nil {
				continue
			}
			patterns := memberPatterns[o.Tags[0]]
			for _, p := range o.Parameters {
				setPattern(p.Schema, patterns[p.Name])
			}
			if o.RequestBody == nil {
				continue
			}
			for _, media := range o.RequestBody.Content {
				body := media.Schema
				if body.Ref != "" {
					body = s.api.OpenAPI().Components.Schemas.SchemaFromRef(body.Ref)
				}
				for name, member := range body.Properties {
					setPattern(member, patterns[name])
				}
			}
		}
	}
}
