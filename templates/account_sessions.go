package templates

// A SessionRow is a browser in which the subscriber is signed in.
type SessionRow struct {
	ID       string // digest of its login, to come back with the form
	Device   string // in words
	Address  string
	SignedIn string // when, in words
	Seen     string // when it was here last
	Here     bool   // it is the one that looks at the page
}

// An AppRow is an app that has access to the account.
type AppRow struct {
	ClientID, Name string
	Scopes         []string // what it may do, in words
	Since          string   // when it was agreed to, or used first, in words
}
