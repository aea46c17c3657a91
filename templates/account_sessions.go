package templates

// A SessionRow is a browser in which the subscriber is signed in.
type SessionRow struct {
	ID       string // digest of its login, sent back with the form
	Device   string // its browser and system, in words
	Address  string
	SignedIn string // when the subscriber signed in, in words
	Seen     string // when it was last seen, in words
	Here     bool   // it is the browser that shows the page
}

// An AppRow is an app with access to the account.
type AppRow struct {
	ClientID, Name string
	Scopes         []string // what it may do, in words
	Since          string   // when access was granted or first used, in words
	URL            string   // starts a login at the app, or ""
}
