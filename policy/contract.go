package policy

// Contract says what a session may retrieve.
type Contract struct{ Name string }
