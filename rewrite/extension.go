package rewrite

// KnownExtension tells whether agents may use the types and operators of an extension, and its functions as far as they
// are classified.
func KnownExtension(name string) bool { return knownExtension(name) }
