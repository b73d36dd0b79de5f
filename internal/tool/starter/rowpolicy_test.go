package starter

import "testing"

// In existing row policies, the starter recognizes the functions and settings by which a session says who it is.
func TestClaims(t *testing.T) {
	for text, want := range map[string]string{
		"auth.uid()":                  "user",
		"( SELECT auth.uid() AS uid)": "user",
		"(current_setting('app.current_user_id'::text, true))::uuid":         "user",
		"(NULLIF(current_setting('request.jwt.claim.sub'::text, true), ''))": "user",
		"((current_setting('request.jwt.claims', true))::jsonb ->> 'sub')":   "user",
		"((auth.jwt() ->> 'tenant_id'::text))::uuid":                         "tenant",
		"((( SELECT auth.jwt() AS jwt) ->> 'tenant_id'::text))::uuid":        "tenant",
		"((auth.jwt() -> 'app_metadata'::text) ->> 'org_id'::text)":          "org",
		"current_setting('app.team')":                                        "team",
		"get_current_tenant_id()":                                            "tenant",
		"requesting_user_id()":                                               "user",
		"now()":                                                              "",
		"is_admin()":                                                         "",
		"'a'::text":                                                          "",
		"(body ->> 'sub')":                                                   "",
		"( SELECT members.user_id FROM members)":                             "",
		"( SELECT auth.uid() AS uid WHERE false)":                            "",
		"lower(auth.uid()::text)":                                            "",
		"COALESCE(auth.uid(), '00000000-0000-0000-0000-000000000000'::uuid)": "",
		"(auth.jwt() #>> '{app_metadata,tenant_id}'::text[])":                "",
		"(auth.uid())::text || 'x'":                                          "",
		"ROW(auth.uid())":                                                    "",
		"CASE WHEN true THEN auth.uid() ELSE NULL::uuid END":                 "",
		"(ARRAY[auth.uid()])[1]":                                             "",
		"current_user":                                                       "",
	} {
		node := parseCondition(text)
		if node == nil {
			t.Errorf("%s does not parse", text)
			continue
		}
		if got := claimOfCall(node); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{"", "a = ", "a, b", "1; SELECT 2"} {
		if parseCondition(text) != nil {
			t.Errorf("%q is taken for a condition", text)
		}
	}
}
