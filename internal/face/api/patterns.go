package api

import (
	"github.com/danielgtaylor/huma/v2"
)

// Patterns of the strings of a request, besides their lengths. With them in the document, requests that are made from
// it are valid.
const (
	anyText = `^[^\x00]*$`
	oneLine = `^[^\x00-\x1f\x7f-\x9f]*$`
	oneWord = "^[^\\x00-\\x20\\x7f-\\xa0\"'`\\\\,;()\\[\\]{}<>$]*$"
	aScope  = `^(\*|(table|row|ctx):[^\x00-\x1f\x7f-\x9f]+)$`
	aPath   = `^[A-Za-z0-9_.:-]+(/[A-Za-z0-9_.:-]+)*$`
)

// patternText describes each pattern, for the error message.
var patternText = map[string]string{
	anyText: "a text without NUL",
	oneLine: "a text without line breaks and other control characters",
	oneWord: "an id: no spaces, quotes, brackets, commas, dollar signs or control characters",
	aScope:  "*, or table:, row: or ctx: with a name",
	aPath:   "a word of letters, digits, _ . : -, or several with slashes between",
}

// memberPatterns are the patterns of members and parameters, by the tags of operations. Of a list the pattern applies
// to its items.
var memberPatterns = map[string]map[string]string{
	tagConsent: {
		"user_id": oneLine, "grantee": oneLine, "scope": aScope, "categories": aPath, "purposes": aPath,
		"reason": anyText, "evidence": anyText, "Idempotency-Key": oneLine,
	},
	tagPrivacy: {
		"id": oneWord, "kind": oneWord, "store": oneWord, "source_entity": oneWord, "told_from": oneWord,
		"subject_ids": oneWord, "access_grants": oneWord, "consent_grants": oneWord, "who": oneWord,
		"grantor": oneWord, "grantee": oneWord, "scope": oneWord, "context": oneWord, "participants": oneWord,
		"default_access_grants": oneWord, "role": oneWord, "subject": oneWord,
		"source": oneWord, "content": anyText, "belief": anyText, "abstraction_note": anyText, "reason": oneLine,
		"Idempotency-Key": oneLine,
	},
	"audit": {"user_id": oneLine},
}

// addPatterns adds the patterns to the document, against which requests are checked.
func (s *Server) addPatterns() {
	narrow := func(schema *huma.Schema, pattern string) {
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
			of := memberPatterns[o.Tags[0]]
			for _, p := range o.Parameters {
				narrow(p.Schema, of[p.Name])
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
					narrow(member, of[name])
				}
			}
		}
	}
}
