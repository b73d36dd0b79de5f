package starter

import (
	"slices"
	"strings"
	"unicode"

	"github.com/pgconsent/pgconsent/internal/sql/catalog"
)

// snakeCase spells a name in lower case with underscores: userId, UserID and USER_ID are user_id.
func snakeCase(name string) string {
	var b strings.Builder
	letters := []rune(name)
	for i, r := range letters {
		switch {
		case r == ' ' || r == '-':
			b.WriteByte('_')
			continue
		case unicode.IsUpper(r) && i > 0 && letters[i-1] != '_' &&
			(!unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1])):
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// columnStem returns the name of the thing that a column refers to: user for user_id, user_uuid and user.
func columnStem(column string) string {
	name := snakeCase(column)
	for _, suffix := range []string{"_id", "_uuid", "_ref", "_key", "_fk", "_guid"} {
		if s, ok := strings.CutSuffix(name, suffix); ok && s != "" {
			return s
		}
	}
	return name
}

var irregularPlurals = map[string]string{"people": "person", "children": "child", "men": "man", "women": "woman",
	"staff": "staff", "data": "data", "news": "news", "status": "status", "address": "address", "addresses": "address"}

// singularWord returns a table's name in snake case with the last word in the singular: app_user for app_users, person
// for people.
func singularWord(table string) string {
	name := snakeCase(table)
	head, word := "", name
	if i := strings.LastIndexByte(name, '_'); i >= 0 {
		head, word = name[:i+1], name[i+1:]
	}
	switch {
	case irregularPlurals[word] != "":
		word = irregularPlurals[word]
	case strings.HasSuffix(word, "ies") && len(word) > 4:
		word = strings.TrimSuffix(word, "ies") + "y"
	case strings.HasSuffix(word, "sses"), strings.HasSuffix(word, "xes"), strings.HasSuffix(word,
		"ches"), strings.HasSuffix(word, "shes"):
		word = strings.TrimSuffix(word, "es")
	case strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss"):
		word = strings.TrimSuffix(word, "s")
	}
	return head + word
}

// lastWord returns the last word of a name in snake case.
func lastWord(name string) string { return name[strings.LastIndexByte(name, '_')+1:] }

func isOneOf(word string, words string) bool { return slices.Contains(strings.Fields(words), word) }

// These lists of words say what columns and tables mean. They are guesses: the starter only proposes what it finds by
// them.
const (
	accountTables = "user account login member profile"
	tenantTables  = "tenant organization organisation org workspace company realm agency firm practice clinic " +
		"hospital school shop store merchant vendor stack"
	ownerStems  = "user owner owned_by belongs_to uid account user_account owner_user app_user auth_user"
	authorStems = "author creator created_by creator_user author_user added_by uploaded_by sender"
	tenantStems = "tenant organization organisation org workspace company realm agency firm practice clinic " +
		"hospital school shop store merchant vendor stack"
	// columns with these names hold the user to whom a row belongs, if they refer to users
	holderStems = "buyer purchaser customer client subscriber recipient holder student member"

	personTables = "person contact patient customer client subject resident student individual participant guest " +
		"donor volunteer child guardian employee member friend relative"

	consentTables = "permission_grant" // tables of consents whose names do not have the word consent

	deletionTimes = "deleted_at removed_at trashed_at archived_at"
	deletionFlags = "deleted is_deleted removed is_removed trashed archived is_archived"
	expiryColumns = "expires_at expiry expires_on valid_until valid_to"

	grantColumns = "grants access_grants granted_to shared_with readers viewers visible_to allowed_users " +
		"allowed_readers allowed_viewers acl access_list permitted_users can_read read_by_ids audience"

	referenceTables = "country currency language locale timezone time_zone unit continent region state_code " +
		"iso_code industry color colour month weekday"
	referenceEndings = "type kind category status code lookup enum"
	plainColumns     = "id code key slug name label title description position sort sort_order ordinal rank symbol " +
		"iso iso2 iso3 abbreviation short_name long_name value unit color colour active is_active enabled " +
		"created_at updated_at numeric_code alpha2 alpha3 decimals locale native_name display_name parent " +
		"parent_id lft rgt depth level path weight"

	// tables in which object-relational mappers and migration tools store their own data
	bookkeepingTables = "schema_migration flyway_schema_history alembic_version ar_internal_metadata databasechangelog " +
		"databasechangeloglock knex_migration knex_migrations_lock django_migration " +
		"django_session django_content_type django_admin_log auth_permission _prisma_migration sequelize_meta " +
		"typeorm_metadata goose_db_version schema_version migration " +
		"active_storage_blob active_storage_attachment active_storage_variant_record"

	// tables of keys with which programs log in
	keyTables = "api_key apikey access_key service_key signing_key personal_access_token"

	// last words of columns that describe a link
	linkWords = "role kind type status state relation relationship position source label level"

	// words for an agreement, the clearest first
	yesWords = "granted given consented yes accepted agreed opted_in opt_in approved confirmed allowed true y active"

	// if a column allows a word of both lists, it is a consent column, whatever its name is
	grantWords  = "granted consented opted_in opt_in"
	refuseWords = "refused withdrawn revoked denied declined rejected opted_out opt_out not_granted"
)

// looksSecret reports whether a column's name looks like that of a secret, which only the application should read.
func looksSecret(column string) bool {
	name := snakeCase(column)
	for _, part := range []string{"password", "passwd", "pass_hash", "secret", "token", "api_key", "apikey",
		"private_key", "key_hash", "hashed_key", "key_digest", "access_key", "signing_key", "encryption_key",
		"otp", "mfa", "totp", "recovery_code", "ssn", "social_security", "credit_card", "card_number", "cvv", "iban", "salt"} {
		if name == part || strings.HasPrefix(name, part+"_") || strings.HasSuffix(name, "_"+part) ||
			strings.Contains(name, "_"+part+"_") {
			return true
		}
	}
	return false
}

// isTokenCount reports whether a column counts the tokens of a language model, and does not hold a secret token.
func isTokenCount(c *catalog.Column) bool {
	return isOneOf(c.Type, "smallint integer bigint real numeric") && strings.Contains(snakeCase(c.Name), "token")
}

// looksLikeContact reports whether a column's name looks like a way to contact somebody, such as email or phone.
func looksLikeContact(column string) bool {
	name := snakeCase(column)
	for _, part := range []string{"email", "e_mail", "email_address", "phone", "phone_number", "telephone", "mobile",
		"mobile_number", "fax", "street_address", "postal_address", "home_address"} {
		if name == part || strings.HasSuffix(name, "_"+part) {
			return true
		}
	}
	return false
}

// looksLikeConsent reports whether a column's name says that it holds a consent, and whether true there means no.
func looksLikeConsent(column string) (consent, negative bool) {
	name := snakeCase(column)
	switch {
	case isOneOf(name, "opt_out opted_out do_not_contact do_not_share do_not_process no_consent consent_withdrawn "+
		"consent_revoked unsubscribed no_ai disallow_ai"), strings.HasSuffix(name, "_opt_out"),
		strings.HasPrefix(name, "no_consent"), strings.HasPrefix(name, "disallow_ai_"):
		return true, true
	case isOneOf(name, "allow_ai allows_ai ai_allowed"), strings.HasPrefix(name, "allow_ai_"), strings.HasPrefix(name,
		"allows_ai_"),
		strings.HasSuffix(name, "_ai_allowed"):
		return true, false
	case strings.Contains(name, "consent"), isOneOf(name, "opt_in opted_in opt_status"), strings.HasSuffix(name,
		"_opt_in"), strings.HasPrefix(name, "opt_in_"), strings.HasSuffix(name, "_opt_status"):
		return true, false
	}
	return false, false
}
