package migrations

// WithBase is the runner of a program that has one numbered migration more, until the function that it returns is
// called.
func WithBase(name, up, down string) (restore func()) {
	before := baseMigrations
	baseMigrations = append(baseMigrations[:len(baseMigrations):len(baseMigrations)],
		baseMigration{len(baseMigrations) + 1, name, up, down})
	return func() { baseMigrations = before }
}
